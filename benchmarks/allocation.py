"""Policies of resource allocation against the same policies in cvxpy: seconds from arrays to arrays, and objectives.

    python benchmarks/allocation.py --peer .venv-cvxpy/bin/python [--jobs 128 256 512] [--seeds 3] [--repeats 5]

Instances have J jobs with gangs of 1 to 8 GPUs on three types. Each policy is solved ``repeats`` times after one solve
that is not counted, ours and the peer's one after the other; the table has medians, the peer's with the fastest of its
solvers whose objective is within 1e-4 of ours or better. Ours includes building the tables, validating them, the proof
of the bound and the verifier. ``las`` has two times: until the first level is proven, and all levels (leximin). How the
peer works, and its environment: ``benchmarks/peers/cvxpy_allocation.py``. Prints one JSON object with --json, else a
table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import mast_opt
from mast_opt.core.arrays import FloatArray
from mast_opt.policies import gavel

GPUS_A_JOB = 0.6
"""GPUs that there are for each GPU of a gang."""
WITHIN = 1e-4
"""Relative distance from our objective up to which a peer's answer counts; makespan's counts whatever it is."""
Row = dict[str, Any]


def instance(jobs: int, seed: int) -> tuple[gavel.Jobs, FloatArray]:
    """Jobs as Gavel's paper draws them, by size and by how much a newer GPU gains them, and GPUs of three types."""
    rng = np.random.default_rng(seed)
    gang = rng.choice([1.0, 1.0, 1.0, 2.0, 4.0, 8.0], jobs)
    speed = rng.lognormal(0.0, 0.8, (jobs, 1)) * np.array([1.0, 0.5, 0.2]) * rng.lognormal(0.0, 0.4, (jobs, 3))
    gpus = np.ceil(rng.dirichlet(np.full(3, 4.0)) * gang.sum() * GPUS_A_JOB)
    return gavel.Jobs(rate=speed, gang=gang, steps=rng.lognormal(9.0, 1.0, jobs)), gpus


def first_level_s(jobs: gavel.Jobs, gpus: FloatArray) -> float:
    """Seconds until the first level of ``las`` is proven, building the tables included."""
    start = time.perf_counter()
    problem = gavel.tables(jobs, gpus, "las").problem()
    solution = mast_opt.solve(problem, "highs", gap=1e-6)
    built = time.perf_counter() - start - sum(solution.runtime_s.values())
    for event in solution.events:
        if event.bound and event.incumbent and abs(event.bound / event.incumbent - 1) <= 1e-6:
            return built + event.elapsed_s
    raise RuntimeError("the first level has no proof")


def ours(jobs: gavel.Jobs, gpus: FloatArray, policy: str, repeats: int) -> tuple[float, list[float]]:
    objective, seconds = 0.0, []
    for repeat in range(repeats + 1):
        start = time.perf_counter()
        shares = gavel.solve(jobs, gpus, policy)
        if repeat:
            seconds.append(time.perf_counter() - start)
        if shares.objective is None:
            raise RuntimeError(f"{policy}: {shares.status.name}")
        objective = shares.objective
    return objective, seconds


def peer(python: Path, jobs: gavel.Jobs, gpus: FloatArray, repeats: int) -> Row:
    if jobs.steps is None:
        raise ValueError("the jobs have no steps")
    alone = gavel.isolated(jobs.rate, gpus, jobs.gang)
    data = {
        "rate": jobs.rate,
        "gang": jobs.gang,
        "steps": jobs.steps,
        "gpus": gpus,
        "fair_rate": gavel.equal_mix(jobs.rate, gpus) / jobs.gang,
        "fair_time_s": jobs.steps / alone,
    }
    program = Path(__file__).parent / "peers" / "cvxpy_allocation.py"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "instance.json"
        path.write_text(json.dumps({name: values.tolist() for name, values in data.items()}))
        command = [str(python), str(program), str(path), "--repeats", str(repeats)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    policies: Row = json.loads(printed.splitlines()[-1])["policies"]
    return policies


def compared(policy: str, objective: float, seconds: list[float], answers: Row) -> Row:
    """Our median and the fastest of the peer's, and how far its objective is from ours (positive: ours is better)."""
    sign = 1.0 if policy == "las" else -1.0
    better = {
        solver: sign * (objective - answer["objective"]) / objective
        for solver, answer in answers.items()
        if "objective" in answer
    }
    able = [solver for solver, by in better.items() if policy == "makespan" or by <= WITHIN]
    fastest = min(able, key=lambda solver: median(answers[solver]["seconds"]))
    theirs = median(answers[fastest]["seconds"])
    return {
        "ours_s": median(seconds),
        "peer_s": theirs,
        "peer": fastest,
        "ratio": theirs / median(seconds),
        "ours_better_by": better[fastest],
        "ours_worst_by": min(better.values()),
    }


def rows(python: Path, jobs: list[int], seeds: int, repeats: int) -> list[Row]:
    out = []
    for count in jobs:
        for seed in range(seeds):
            drawn, gpus = instance(count, seed)
            answers = peer(python, drawn, gpus, repeats)
            for policy in ("las", "makespan", "ftf"):
                objective, seconds = ours(drawn, gpus, policy, repeats)
                row: Row = {"jobs": count, "seed": seed, "policy": policy, "objective": objective}
                out.append(row | compared(policy, objective, seconds, answers[policy]))
            first = median(first_level_s(drawn, gpus) for _ in range(repeats))
            level = next(row for row in reversed(out) if row["policy"] == "las")
            level |= {"first_level_s": first, "first_level_ratio": level["peer_s"] / first}
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", type=Path, required=True, help="Python of the environment that has cvxpy")
    parser.add_argument("--jobs", type=int, nargs="+", default=[128, 256, 512])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    table = rows(arguments.peer, arguments.jobs, arguments.seeds, arguments.repeats)
    if arguments.json:
        print(json.dumps(table))
        return
    print(f"{'jobs':>5} {'seed':>4} {'policy':<9} {'ours s':>8} {'peer s':>8} {'ratio':>6} {'peer':<9} ours better by")
    for row in table:
        level = f"; first level {row['first_level_s']:.3f} s" if "first_level_s" in row else ""
        print(
            f"{row['jobs']:>5} {row['seed']:>4} {row['policy']:<9} {row['ours_s']:>8.3f} {row['peer_s']:>8.3f}"
            f" {row['ratio']:>6.1f} {row['peer']:<9} {row['ours_better_by']:.1e}{level}"
        )


if __name__ == "__main__":
    main()
