"""Every policy of the engine on the trace ``mixed``: 2,000 jobs, 8 regions, 3 GPU types, data; each log is checked.

    python -m benchmarks.policies_in_time --out benchmarks/data/policies-in-time.jsonl
    python -m benchmarks.policies_in_time --jobs 60 --regions 2 --policies mast gavel
    python -m benchmarks.policies_in_time --table benchmarks/data/policies-in-time.jsonl

A run whose line is in ``--out`` already is not run again. ``allox`` schedules jobs of one GPU; it has the same trace
without gangs, and so has a second run of ``mast``, to compare with.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.mixed_trace import mixed_tables
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.loop.metrics import metrics
from mast_opt.live.simulation.run import ENGINE_POLICIES, run_trace
from mast_opt.live.simulation.traces.trace import JobTrace, read_trace, trace_from_tables

SPEEDS = Path(__file__).parents[1] / "instances" / "traces" / "gavel-minimize-makespan"
VARIANTS: Mapping[str, tuple[dict[str, str], ...]] = {
    "federated": ({"rule": "share"},),
    "gavel": (
        *({"objective": name} for name in ("max-min", "finish-time", "makespan", "fifo")),
        {"objective": "max-min", "packing": "true"},
    ),
    "throughput": ({}, {"packing": "true"}),
    "gandiva": ({}, {"packing": "true"}),
    "strategy-proof": ({"reset_s": "86400"},),
    "mast": ({}, {"gangs": "no"}),
    "allox": ({"gangs": "no"},),
}
"""Policy → parameters of each run; ``gangs`` is of the trace. One run with the defaults for those not named.
``strategy-proof`` solves a program for each job: once a day."""
COLUMNS = (
    "policy",
    "mean wait, h",
    "mean completion, h",
    "P99 completion, h",
    "makespan, d",
    "stops",
    "starved",
    "CPU, s",
)


def trace(jobs: int, regions: int, *, gangs: bool) -> JobTrace:
    """The trace, with the speeds that Gavel measured."""
    found = mixed_tables(read_trace(SPEEDS).speeds, jobs=jobs, regions=regions, gangs=gangs)
    return trace_from_tables(found.name, found.provenance, found.tables)


def run(policy: str, given: Mapping[str, str], jobs: int, regions: int) -> dict[str, Any]:
    """One run, checked.

    Raises:
        RuntimeError: the checker of logs finds a fault, or a job has not ended.
    """
    own = {name: value for name, value in given.items() if name != "gangs"}
    one = trace(jobs, regions, gangs=given.get("gangs") != "no")
    began = time.process_time()
    made = run_trace(one, policy, own)
    cpu_s = time.process_time() - began
    held = {name: set(places) for name, places in one.replicas.items()}
    alone, packed = one.speeds.alone, one.speeds.packed
    faults = check_log(made.events(), replicas=held, all_end=True, durations=True, speeds=alone, packed=packed)
    if faults:
        raise RuntimeError(f"{policy} {dict(given)}: {faults[0]}")
    found = metrics(made.rows)
    return {
        "policy": policy, "given": dict(given), "jobs": jobs, "regions": regions, "wait_s": found.queue_s.mean,
        "jct_s": found.jct_s.mean, "p99_jct_s": found.jct_s.p99, "makespan_s": found.makespan_s,
        "stops": found.preemptions, "starved": found.starved, "cpu_s": cpu_s,
    }  # fmt: skip


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The runs as a table of Markdown, the least mean completion time first."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---|" + "--:|" * (len(COLUMNS) - 1)]
    for row in sorted(rows, key=lambda row: (row["given"].get("gangs") == "no", row["jct_s"])):
        words = ", ".join(_words(name, value) for name, value in row["given"].items() if name != "gangs")
        name = f"`{row['policy']}`{f' {words}' if words else ''}"
        name += " (no gangs)" if row["given"].get("gangs") == "no" else ""
        hours = (row["wait_s"] / 3600, row["jct_s"] / 3600, row["p99_jct_s"] / 3600)
        cells = [f"{value:.2f}" for value in hours] + [f"{row['makespan_s'] / 86400:.1f}", f"{row['stops']:,}"]
        lines.append(f"| {name} | {' | '.join(cells)} | {row['starved']:,} | {row['cpu_s']:.0f} |")
    return "\n".join(lines)


def _words(name: str, value: str) -> str:
    """A parameter that was given, in the table."""
    if name == "packing":
        return name
    return value if name in ("objective", "rule") else f"{name}={value}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--regions", type=int, default=8)
    parser.add_argument("--policies", nargs="*", default=list(ENGINE_POLICIES), choices=list(ENGINE_POLICIES))
    parser.add_argument("--out", type=Path, help="add each run to this file")
    parser.add_argument("--table", type=Path, help="print the runs of this file as a table, and run nothing")
    asked = parser.parse_args(arguments)
    if asked.table is not None:
        print(table([json.loads(line) for line in asked.table.read_text().splitlines()]))
        return
    there = [] if asked.out is None or not asked.out.exists() else asked.out.read_text().splitlines()
    rows = [json.loads(line) for line in there]
    done = [(row["policy"], row["given"], row["jobs"], row["regions"]) for row in rows]
    for policy in asked.policies:
        for given in VARIANTS.get(policy, ({},)):
            if (policy, given, asked.jobs, asked.regions) in done:
                continue
            rows.append(run(policy, given, asked.jobs, asked.regions))
            print(json.dumps(rows[-1]), flush=True)
            if asked.out is not None:
                with asked.out.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
