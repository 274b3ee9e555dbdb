"""Late against early binding on the committed Philly trace: every virtual cluster a region, no data, no preemption.

    python -m benchmarks.late_binding --speeds 4 5 6 --out benchmarks/data/late-binding.jsonl
    python -m benchmarks.late_binding --page benchmarks/data/late-binding.jsonl docs/benchmarks/late-binding.md

Times of arrival are divided by the speed. A run that is in the file is not run again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.head_of_line import HeadOfLine
from benchmarks.study_pages import with_tables
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine, Turn
from mast_opt.live.loop.state import State
from mast_opt.live.policies.early_binding import RULES, EarlyBinding, EarlyBindingParams
from mast_opt.live.simulation.driver import Happening, simulate
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.live.simulation.traces.trace import JobTrace, read_trace

TRACE = Path(__file__).parents[1] / "instances" / "traces" / "philly"
LATE = "fifo"
WAITS = {
    "home": "in its home region",
    "random": "in a random region, in proportion to size",
    "free": "where most GPUs are free, less those that wait there",
    "share": "where the largest share is free",
    LATE: "in one global queue (late binding)",
}
"""Rule → where a job waits, in words."""


def run(trace: JobTrace, policy: str, speed: float, seed: int = 1) -> dict[str, Any]:
    """One replay; the loads that the rules see are exact and of now."""
    make = HeadOfLine if policy == LATE else partial(EarlyBinding, EarlyBindingParams(policy, 0, seed))
    engine = Engine(State(trace.servers, tiers=(0, 1), placement="best-fit"), make())
    happenings: list[Happening] = []
    work: dict[str, Work] = {}
    jobs = trace.submissions
    for j, (name, at_ms, duration_ms) in enumerate(
        zip(jobs.labels, jobs.submitted_ms.tolist(), jobs.duration_ms.tolist())
    ):
        happenings.append((int(at_ms / 1000 / speed) * 1000, ev.Submitted(name, jobs.spec(j))))
        work[name] = Work(duration_ms, 0)
    waiting: dict[str, int] = {}
    waits = []

    def count(turn: Turn) -> None:
        for stored in turn.events:
            if isinstance(stored.event, ev.Submitted):
                waiting[stored.event.job] = stored.at_ms
            elif isinstance(stored.event, ev.Started):
                waits.append((stored.at_ms - waiting.pop(stored.event.job)) / 1000)

    simulate(engine, SimulatedHost(work), happenings, on_turn=count)
    mean, late = float(np.mean(waits)), float(np.percentile(waits, 95))
    return {"trace": trace.name, "policy": policy, "speed": speed, "jobs": len(waits), "mean_s": mean, "p95_s": late}


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The runs as a table of Markdown, a row for each rule."""
    found = {(row["policy"], row["speed"]): row for row in rows}
    speeds = sorted({speed for _, speed in found})
    heads = [words for speed in speeds for words in (f"mean wait, s, at {speed:g} ×", "P95, s")]
    lines = [f"| a job waits | {' | '.join(heads)} |", "|---|" + "--:|" * len(heads)]
    for policy, words in WAITS.items():
        cells = [f"{found[policy, speed][name]:,.0f}" for speed in speeds for name in ("mean_s", "p95_s")]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--speeds", type=float, nargs="+", default=[4.0, 5.0, 6.0])
    parser.add_argument("--policies", nargs="+", choices=[*RULES, LATE], default=list(WAITS))
    parser.add_argument("--out", type=Path, default=Path("late-binding.jsonl"))
    parser.add_argument("--page", type=Path, nargs=2, metavar=("RUNS", "PAGE"), help="write the table of a page")
    given = parser.parse_args()
    if given.page:
        runs, page = given.page
        page.write_text(with_tables(page.read_text(), {"waits": lambda: table(read(runs))}))
        return
    trace = read_trace(TRACE)
    done = {(row["policy"], row["speed"]) for row in read(given.out)}
    for speed in given.speeds:
        for policy in given.policies:
            if (policy, speed) not in done:
                row = run(trace, policy, speed)
                print(row, flush=True)
                with given.out.open("a") as out:
                    out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
