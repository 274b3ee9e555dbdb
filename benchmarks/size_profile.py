"""What a job costs the loop at 2,000 to 100,000 GPUs, and which part of the package takes it.

    python -m benchmarks.size_profile 2000 10000 30000 100000 >> benchmarks/data/loop-at-size.jsonl
    python -m benchmarks.measured_pages

The organisation of ``headline_at_size`` with room for gangs, four days of it, the first at half the demand; datasets in
proportion to GPUs, and 30 regions (12 of 2,000 GPUs). Only the run counts, neither its trace nor figures of its log.
Parts are by samples of the stack each 10 ms of processor time: the innermost frame of the package says which one works,
but all that a plan of data does is the slow path's.
"""

from __future__ import annotations

import argparse
import gc
import json
import signal
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from benchmarks.headline_at_size import COLLECT_AFTER, FULL, RUN, SKEW
from benchmarks.headline_runs import DAY_MS, trace_of
from benchmarks.headline_structure import OrganisationParams
from benchmarks.headline_variants import DEFAULTS, ROOM
from mast_opt.live.simulation.run import run_trace

DAYS = 4
EVERY_S = 0.01
GPUS_PER_DATASET = FULL["gpus"] / FULL["datasets"]
FEW_GPUS, FEW_REGIONS = 2000, 12
"""Up to so many GPUs are in so many regions."""
PARTS: Mapping[str, str] = {
    "/mast_opt/live/slow_paths/": "data plans",
    "/mast_opt/live/policies/": "policy",
    "/mast_opt/live/loop/": "loop",
    "/mast_opt/live/simulation/": "simulation",
    "/mast_opt/problems/job_placement/": "fleet",
}
"""Folder → part of the table. The first one counts wherever it is in the stack."""
REST = "rest"


def part_of(frame: FrameType | None) -> str:
    """The part of the package that works in a frame."""
    slow, *_ = PARTS
    found = REST
    while frame is not None:
        file = frame.f_code.co_filename
        if slow in file:
            return PARTS[slow]
        if found == REST:
            found = next((part for folder, part in PARTS.items() if folder in file), REST)
        frame = frame.f_back
    return found


@contextmanager
def sampled() -> Iterator[dict[str, float]]:
    """Processor seconds of each part of the package inside. A long call into compiled code is one sample, which counts
    as long as it took."""
    spent: dict[str, float] = defaultdict(float)
    last_s = time.process_time()

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal last_s
        now_s = time.process_time()
        spent[part_of(frame)] += now_s - last_s
        last_s = now_s

    before = signal.signal(signal.SIGPROF, note)
    signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)
    try:
        yield spent
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def profile(gpus: int, days: int = DAYS, seed: int = 1) -> dict[str, object]:
    """Processor time of a run of so many GPUs."""
    sizes: dict[str, Any] = {
        **FULL,
        "gpus": gpus,
        "regions": FEW_REGIONS if gpus <= FEW_GPUS else FULL["regions"],
        "datasets": round(gpus / GPUS_PER_DATASET),
        "days": days,
        "ramp_days": 1,
    }
    params = OrganisationParams(**sizes, seed=seed, skew=SKEW)
    trace = trace_of(ROOM, params)
    stated = {name: text for name, text in {**DEFAULTS, **RUN}.items() if not name.startswith("slow.servers.")}
    began = time.process_time()
    with sampled() as spent:
        run_trace(trace, ROOM.policy, {**stated, **ROOM.params}, slow=ROOM.slow, until_ms=days * DAY_MS)
    cpu_s = time.process_time() - began
    came = int((trace.submissions.submitted_ms < days * DAY_MS).sum())
    return {
        "case": "size",
        "gpus": gpus,
        "regions": params.regions,
        "jobs": came,
        "cpu_s": round(cpu_s, 2),
        "shares": {part: round(spent.get(part, 0.0) / cpu_s, 4) for part in (*PARTS.values(), REST)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpus", nargs="+", type=int)
    given = parser.parse_args()
    gc.set_threshold(*COLLECT_AFTER)
    profile(400, 1)  # compiles what later runs need
    for gpus in given.gpus:
        print(json.dumps(profile(gpus)), flush=True)


if __name__ == "__main__":
    main()
