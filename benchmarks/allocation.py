"""Policies of resource allocation against the same policies in cvxpy: time from arrays to arrays, and objectives.

    python benchmarks/allocation.py --peer .venv-cvxpy/bin/python [--jobs 128 256 512] [--seeds 3] [--repeats 5]

Instances have J jobs with gangs of 1 to 8 GPUs on three types. Each policy is solved ``repeats`` times after one solve
that is not counted, ours and the peer's in turn, so that whatever else the machine does slows both. Figures are the
medians of the seeds' medians; the peer's are those of the fastest of its solvers whose objective is within 1e-4 of
ours. Ours includes the validation, the proof of the bound and the verifier. ``las-first`` ends where the first level of
``las`` is proven, which is all that the peer solves. How the peer works, and its environment:
``benchmarks/peers/cvxpy_allocation.py``. Prints one JSON object with --json, else a table: milliseconds, how many times
as long the peer takes by the clock and by processor time, and by how much our objective is better, at worst.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import mast_opt
from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_result import Event
from mast_opt.live.policies import gavel

GPUS_A_JOB = 0.6
"""GPUs that there are for each GPU of a gang."""
WITHIN = 1e-4
"""Relative distance from our objective up to which a peer's answer counts; makespan's counts whatever it is."""
GAP = 1e-6
POLICIES = {
    "las-first": "las",
    "las": "las",
    "makespan": "makespan",
    "ftf": "ftf",
    "ftf-by-job": "ftf-by-job",
    "nash": "nash",
    "harmonic": "harmonic",
}
"""Row of the table → policy of the peer."""
SOLVERS = {"CLARABEL": "Clarabel", "HIGHS": "HiGHS"}
MAXIMISED = ("las-first", "las", "nash")
Row = dict[str, Any]
Timed = tuple[float, float, float]
"""Objective, seconds, processor seconds."""


def instance(jobs: int, seed: int) -> tuple[gavel.Jobs, FloatArray]:
    """Jobs as Gavel's paper draws them, by size and by how much a newer GPU gains them, and GPUs of three types."""
    rng = np.random.default_rng(seed)
    gang = rng.choice([1.0, 1.0, 1.0, 2.0, 4.0, 8.0], jobs)
    speed = rng.lognormal(0.0, 0.8, (jobs, 1)) * np.array([1.0, 0.5, 0.2]) * rng.lognormal(0.0, 0.4, (jobs, 3))
    gpus = np.ceil(rng.dirichlet(np.full(3, 4.0)) * gang.sum() * GPUS_A_JOB)
    return gavel.Jobs(rate=speed, gang=gang, steps=rng.lognormal(9.0, 1.0, jobs)), gpus


def first_level(jobs: gavel.Jobs, gpus: FloatArray) -> Timed:
    """Until the first level of ``las`` is proven."""
    proven: list[tuple[float, float]] = []

    def hear(event: Event) -> None:
        if not proven and event.bound and event.incumbent and abs(event.bound / event.incumbent - 1) <= GAP:
            proven.append((time.perf_counter(), time.process_time()))

    wall, processor = time.perf_counter(), time.process_time()
    solution = mast_opt.solve(gavel.tables(jobs, gpus, "las").problem(), "highs", gap=GAP, on_event=hear)
    if not proven or solution.objective is None:
        raise RuntimeError("the first level has no proof")
    return solution.objective, proven[0][0] - wall, proven[0][1] - processor


def ours(jobs: gavel.Jobs, gpus: FloatArray, row: str) -> Timed:
    """One solve."""
    if row == "las-first":
        return first_level(jobs, gpus)
    wall, processor = time.perf_counter(), time.process_time()
    if row in ("nash", "harmonic"):
        objective = replace(gavel.tables(jobs, gpus, "las"), policy=row).solve(gap=GAP).objective
    else:
        objective = gavel.solve(jobs, gpus, row.removesuffix("-by-job"), gap=GAP).objective
    if objective is None:
        raise RuntimeError(f"{row} has no solution")
    return objective, time.perf_counter() - wall, time.process_time() - processor


@contextmanager
def peer(python: Path) -> Iterator[Callable[[Row], Row]]:
    """Asks the peer's process, which lives as long as the block."""
    program = Path(__file__).parent / "peers" / "cvxpy_allocation.py"
    pipe = subprocess.PIPE
    with subprocess.Popen([python, program], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines, answers = process.stdin, process.stdout

        def ask(question: Row) -> Row:
            print(json.dumps(question), file=lines, flush=True)
            while not (line := answers.readline()).startswith("{"):
                if not line:
                    raise RuntimeError("the peer has ended")
            found: Row = json.loads(line)
            return found

        yield ask
        lines.close()


def write(path: Path, jobs: gavel.Jobs, gpus: FloatArray) -> None:
    """The instance for the peer."""
    assert jobs.steps is not None
    data = {
        "rate": jobs.rate,
        "gang": jobs.gang,
        "steps": jobs.steps,
        "gpus": gpus,
        "fair_rate": gavel.equal_mix(jobs.rate, gpus) / jobs.gang,
        "fair_time_s": jobs.steps / gavel.isolated(jobs.rate, gpus, jobs.gang),
    }
    path.write_text(json.dumps({name: values.tolist() for name, values in data.items()}))


def compared(row: str, mine: list[Timed], theirs: dict[str, list[Row]], jobs: int) -> Row:
    """Our medians and those of the peer's fastest solver."""
    objective = mine[-1][0]
    sign = 1.0 if row in MAXIMISED else -1.0
    unit = jobs if row == "nash" else abs(objective)
    better = {name: sign * (objective - found[-1]["objective"]) / unit for name, found in theirs.items()}
    able = [name for name, by in better.items() if row == "makespan" or abs(by) <= WITHIN]
    fastest = min(able, key=lambda name: median(one["processor_s"] for one in theirs[name]))
    ours_s, processor_s = (median(one[at] for one in mine) for at in (1, 2))
    peer_s, peer_processor_s = (median(one[key] for one in theirs[fastest]) for key in ("seconds", "processor_s"))
    return {
        "ours_ms": 1e3 * ours_s,
        "peer_ms": 1e3 * peer_s,
        "ours_processor_ms": 1e3 * processor_s,
        "peer_processor_ms": 1e3 * peer_processor_s,
        "ratio": peer_s / ours_s,
        "processor_ratio": peer_processor_s / processor_s,
        "peer": fastest,
        "better_by": better[fastest],
    }


def measured(
    ask: Callable[[Row], Row], folder: Path, count: int, seed: int, repeats: int, policies: list[str]
) -> list[Row]:
    """Some policies on one instance."""
    jobs, gpus = instance(count, seed)
    write(folder / "instance.json", jobs, gpus)
    solvers = ask({"instance": str(folder / "instance.json")})
    out = []
    for row in policies:
        policy = POLICIES[row]
        mine: list[Timed] = []
        theirs: dict[str, list[Row]] = {name: [] for name in solvers[policy]}
        for repeat in range(repeats + 1):
            found = ours(jobs, gpus, row)
            answers = {name: ask({"policy": policy, "solver": name}) for name in theirs}
            theirs = {name: theirs[name] for name, answer in answers.items() if "objective" in answer}
            if repeat:
                mine.append(found)
                for name, earlier in theirs.items():
                    earlier.append(answers[name])
        out.append({"jobs": count, "seed": seed, "policy": row} | compared(row, mine, theirs, count))
    return out


def summary(rows: list[Row]) -> list[Row]:
    """The median over seeds of each figure, and the worst difference of objectives."""
    out = []
    for jobs, policy in dict.fromkeys((row["jobs"], row["policy"]) for row in rows):
        same = [row for row in rows if (row["jobs"], row["policy"]) == (jobs, policy)]
        figures = {key: median(row[key] for row in same) for key in same[0] if key.endswith(("_ms", "ratio"))}
        solvers = "/".join(sorted({row["peer"] for row in same}))
        worst = min(row["better_by"] for row in same)
        out.append({"jobs": jobs, "policy": policy, "peer": solvers, "better_by": worst} | figures)
    return out


WORDS = {
    "las-first": "`las`, first level",
    "las": "`las`, all levels",
    "makespan": "`makespan`, all levels",
    "ftf": "`ftf`, all levels",
    "ftf-by-job": "`ftf`, cvxpy by job",
    "nash": "`nash`",
    "harmonic": "`harmonic`",
}
"""Row of the table → how the page calls it."""


def page_table(rows: list[Row]) -> str:
    """The table of docs/benchmarks/peers.md from the rows of all instances, in Markdown."""
    lines = [
        "| jobs | policy | ours | cvxpy | cvxpy/ours | by the clock | its solver |",
        "|--:|---|--:|--:|--:|--:|---|",
    ]
    for row in summary(rows):
        figures = [f"{row[name]:.1f}" for name in ("ours_processor_ms", "peer_processor_ms")]
        figures += [f"{row[name]:.2f}" for name in ("processor_ratio", "ratio")]
        solvers = ", ".join(SOLVERS.get(name, name) for name in row["peer"].split("/"))
        lines.append(f"| {' | '.join([str(row['jobs']), WORDS[row['policy']], *figures, solvers])} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", type=Path, required=True, help="Python of the environment that has cvxpy")
    parser.add_argument("--jobs", type=int, nargs="+", default=[128, 256, 512])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--policies", nargs="+", default=list(POLICIES), choices=POLICIES)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows: list[Row] = []
    with peer(arguments.peer) as ask, tempfile.TemporaryDirectory() as folder:
        for count in arguments.jobs:
            for seed in range(arguments.seeds):
                rows += measured(ask, Path(folder), count, seed, arguments.repeats, arguments.policies)
    table = summary(rows)
    if arguments.json:
        print(json.dumps({"instances": rows, "medians": table}))
        return
    print(
        f"{'jobs':>5} {'policy':<11} {'ours ms':>8} {'peer ms':>8} {'ratio':>6} {'by processor':>12}  better by  peer"
    )
    for row in table:
        print(
            f"{row['jobs']:>5} {row['policy']:<11} {row['ours_ms']:>8.1f} {row['peer_ms']:>8.1f} {row['ratio']:>6.2f}"
            f" {row['processor_ratio']:>12.2f}  {row['better_by']:>9.1e}  {row['peer']}"
        )


if __name__ == "__main__":
    main()
