"""Solving the batches: one record a run, kept in a file of JSON lines."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fast_path.instances import BATCHES, FILL_SEEDS, FILLS, HELD_OUT, Batches, filling
from mast_opt import Solution, solve
from mast_opt.core.solve_result import Status
from mast_opt.problems.job_placement import JobPlacement

EXACT = "highs"
REPAIR_ROUNDS = 1_000
"""``exhaustive+repair`` is given so many rounds, divided by the jobs of the batch: about equal work on each."""
HEURISTICS = ("exhaustive", "exhaustive+repair", "federated", "random", "least-loaded", "best-fit")
LEAST_RATIO, MOST_RATIO = 1.1, 1.5


@dataclass(frozen=True)
class Run:
    """One solver on one batch."""

    batch: str
    seed: int
    solver: str
    proven: bool
    value: float
    """Tier-weighted value that is admitted."""
    asked: float
    """Tier-weighted value of all jobs."""
    lost_gpu_hours: float
    top: str
    """A digest of the jobs of the most important tier that are admitted."""
    jobs: int
    admitted: int
    cpu_s: float
    """Of the whole call: formulation, search, verification."""
    asked_gpus: float
    admitted_gpus: float

    @property
    def key(self) -> tuple[str, int, str]:
        return self.batch, self.seed, self.solver

    @property
    def ratio(self) -> float:
        """GPUs asked for / GPUs admitted."""
        return self.asked_gpus / self.admitted_gpus if self.admitted_gpus else float("inf")


class Records:
    """The runs that there are; a new one is written at once. A line that was cut short is dropped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text() if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            path.write_text(whole)
        runs = (Run(*json.loads(line)) for line in whole.splitlines())
        self.runs = {run.key: run for run in runs}

    def add(self, run: Run) -> Run:
        self.runs[run.key] = run
        with self._path.open("a") as file:
            file.write(_line(run))
        return run


def _line(run: Run) -> str:
    """The fields of the run, in order."""
    values = [round(value, 4) if isinstance(value, float) else value for value in astuple(run)]
    return json.dumps(values, separators=(",", ":")) + "\n"


def study(records: Records) -> None:
    """Do every run that the records lack."""
    for batches in (*BATCHES, *HELD_OUT):
        for seed in qualifying(batches, records):
            for solver in HEURISTICS:
                _kept(records, batches.name, seed, solver, partial(batches.generate, seed), None)
        print(f"{batches.name}: done", flush=True)
    for fill in FILLS:
        for seed in range(FILL_SEEDS):
            for solver in ("exhaustive", "federated"):
                _kept(records, fill_name(fill), seed, solver, partial(filling, fill, seed), None)
        print(f"{fill}% full: done", flush=True)


def fill_name(fill: int) -> str:
    return f"standard, {fill}% full"


def qualifying(batches: Batches, records: Records) -> Iterator[int]:
    """Seeds whose proven optimum admits as much as is wanted, solving until there are enough."""
    found, seed = 0, batches.first_seed
    while found < batches.wanted:
        run = _kept(records, batches.name, seed, EXACT, partial(batches.generate, seed), batches.limit_s)
        if counts(run):
            found += 1
            yield seed
        seed += 1


def counts(run: Run) -> bool:
    """Whether the optimum is proven, something is left out, and demand is 110–150% of what is admitted."""
    return run.proven and run.admitted < run.jobs and LEAST_RATIO <= run.ratio <= MOST_RATIO


def _kept(
    records: Records, batch: str, seed: int, solver: str, generate: Callable[[], JobPlacement], limit_s: float | None
) -> Run:
    run = records.runs.get((batch, seed, solver))
    return run or records.add(_run(generate(), batch, seed, solver, limit_s))


def _run(problem: JobPlacement, batch: str, seed: int, solver: str, limit_s: float | None) -> Run:
    began = time.process_time()
    if solver == EXACT:
        solution = solve(problem, EXACT, time_limit_s=limit_s, threads=1, formulation="strong")
    else:
        rounds = max(1, REPAIR_ROUNDS // len(problem.jobs)) if solver == "exhaustive+repair" else None
        solution = solve(problem, solver, iterations=rounds, threads=1, seed=seed)
    return _recorded(problem, solution, batch, seed, time.process_time() - began)


def _recorded(problem: JobPlacement, solution: Solution[Any], batch: str, seed: int, cpu_s: float) -> Run:
    p, plan, verdict = problem, solution.plan, solution.verdict
    if plan is None or verdict is None:
        raise RuntimeError(f"{solution.solver} found no plan for {batch}, seed {seed}: {solution.message}")
    worth = p.tier_weight[p.queue_tier] * p.jobs.value_milli / 1000
    admitted = np.unique(plan.job)
    widest = p.jobs.tasks * p.need_mgpu.max(axis=1) / 1000
    return Run(
        batch=batch,
        seed=seed,
        solver=solution.solver,
        proven=solution.status is Status.OPTIMAL,
        value=float(worth[admitted].sum()),
        asked=float(worth.sum()),
        lost_gpu_hours=verdict.metrics["preempted_gpu_hours"],
        top=hashlib.blake2b(admitted[p.queue_tier[admitted] == 0].tobytes(), digest_size=6).hexdigest(),
        jobs=len(p.jobs),
        admitted=len(admitted),
        cpu_s=cpu_s,
        asked_gpus=float(widest.sum()),
        admitted_gpus=float(widest[admitted].sum()),
    )
