"""Batches of real servers, pods and jobs: which there are, and solving them, one record a run.

The data are read from a folder and not part of the project: ``alibaba-gpu-v2023`` (OpenB nodes and pods),
``alibaba-spot-v2026`` (nodes) and ``philly`` (jobs), each as its publisher names the files. ``mast-opt import
gpu-fleet`` makes the same instances.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.fast_path.queue_optimum import queue_optimum
from mast_opt import solve
from mast_opt.core.solve_result import Status
from mast_opt.planner.importers.gpu_fleet.instance import Settings, build
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.units import Bools

OPENB, SPOT, PHILLY = "alibaba-gpu-v2023", "alibaba-spot-v2026", "philly"
OPTIMUM, IN_ORDER, IN_BID_ORDER = "optimum", "queue order", "bid order"
"""Solvers of the study: HiGHS on the problem itself; on admission in queue order; the same with the fewest stops."""
OURS = ("exhaustive", "exhaustive+repair", "best-fit")
PROOF_S = 120.0
REPAIR_S = 10.0


@dataclass(frozen=True)
class RealBatches:
    """Seeds 0, 1, … of one size."""

    name: str
    nodes_of: str
    settings: Settings
    seeds: int = 12

    def draw(self, data: Path, seed: int) -> JobPlacement:
        paths = [data / folder for folder in (self.nodes_of, OPENB, PHILLY)]
        return build(paths, self.settings, np.random.default_rng(seed))


def _settings(nodes: int, pods: int, gangs: int, fill: int) -> Settings:
    return Settings(nodes=nodes, regions=3, clusters=2, pods=pods, gangs=gangs, fill=fill)


REAL = (
    RealBatches("OpenB, 40 servers, 90% full", OPENB, _settings(40, 40, 8, 90)),
    RealBatches("OpenB, 40 servers, 97% full", OPENB, _settings(40, 40, 8, 97)),
    RealBatches("OpenB, 60 servers, 94% full", OPENB, _settings(60, 60, 12, 94)),
    RealBatches("2026, 60 servers, 92% full", SPOT, _settings(60, 60, 20, 92)),
    RealBatches("2026, 60 servers, Philly jobs only", SPOT, _settings(60, 0, 40, 90)),
)


@dataclass(frozen=True)
class RealRun:
    """One solver on one batch; arrays are by tier, the most important first."""

    batch: str
    seed: int
    solver: str
    proven: bool
    objective: float | None
    """None where only admission is decided."""
    bound: float | None
    weight: list[float]
    asked: list[float]
    """Value of the waiting jobs."""
    admitted: list[float]
    """Value that is admitted."""
    jobs: int
    admitted_jobs: int
    lost_gpu_hours: float | None
    cpu_s: float
    wall_s: float

    @property
    def key(self) -> tuple[str, int, str]:
        return self.batch, self.seed, self.solver

    @property
    def value(self) -> float:
        """Tier-weighted value that is admitted."""
        return float(np.dot(self.weight, self.admitted))


class RealRecords:
    """The runs that there are, in a file of JSON lines; a new one is written at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        text = path.read_text() if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            path.write_text(whole)
        runs = (RealRun(**json.loads(line)) for line in whole.splitlines())
        self.runs = {run.key: run for run in runs}

    def add(self, run: RealRun) -> None:
        self.runs[run.key] = run
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(run)) + "\n")


def real_study(records: RealRecords, data: Path, kinds: Sequence[RealBatches] = REAL) -> None:
    """Do every run that the records lack, seed by seed."""
    for seed in range(max(batches.seeds for batches in kinds)):
        for batches in (one for one in kinds if seed < one.seeds):
            lacking = [
                name
                for name in (OPTIMUM, IN_ORDER, IN_BID_ORDER, *OURS)
                if (batches.name, seed, name) not in records.runs
            ]
            if lacking:
                problem = batches.draw(data, seed)
                for name in lacking:
                    records.add(_run(problem, batches.name, seed, name))
                print(f"{batches.name}, seed {seed}: done", flush=True)


@dataclass(frozen=True)
class _Answer:
    admitted: Bools
    """[J]"""
    proven: bool
    objective: float | None = None
    bound: float | None = None
    lost_gpu_hours: float | None = None


def _run(problem: JobPlacement, batch: str, seed: int, name: str) -> RealRun:
    p = problem
    cpu, wall = time.process_time(), time.monotonic()
    answer = _ANSWERS[name](p, seed)
    cpu_s, wall_s = time.process_time() - cpu, time.monotonic() - wall
    value, tiers = p.jobs.value_milli / 1000, len(p.tiers)
    return RealRun(
        batch=batch,
        seed=seed,
        solver=name,
        proven=answer.proven,
        objective=_rounded(answer.objective),
        bound=_rounded(answer.bound),
        weight=p.tier_weight.tolist(),
        asked=np.bincount(p.queue_tier, value, tiers).round(3).tolist(),
        admitted=np.bincount(p.queue_tier[answer.admitted], value[answer.admitted], tiers).round(3).tolist(),
        jobs=len(p.jobs),
        admitted_jobs=int(answer.admitted.sum()),
        lost_gpu_hours=_rounded(answer.lost_gpu_hours),
        cpu_s=round(cpu_s, 3),
        wall_s=round(wall_s, 3),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _in_order(fewest_stops: bool) -> Callable[[JobPlacement, int], _Answer]:
    def answer(problem: JobPlacement, seed: int) -> _Answer:
        found = queue_optimum(problem, fewest_stops=fewest_stops)
        return _Answer(found.admitted, found.proven)

    return answer


def _solved(name: str) -> Callable[[JobPlacement, int], _Answer]:
    exact = name == OPTIMUM

    def answer(problem: JobPlacement, seed: int) -> _Answer:
        limit_s = {OPTIMUM: PROOF_S, "exhaustive+repair": REPAIR_S}.get(name)
        solution = solve(
            problem,
            "highs" if exact else name,
            time_limit_s=limit_s,
            threads=1,
            seed=seed,
            formulation="strong" if exact else "base",
        )
        if solution.plan is None or solution.verdict is None:
            raise RuntimeError(f"{name} found no plan for {problem.name}, seed {seed}: {solution.message}")
        return _Answer(
            np.isin(np.arange(len(problem.jobs)), solution.plan.job),
            solution.status is Status.OPTIMAL,
            solution.objective,
            solution.bound,
            solution.verdict.metrics["preempted_gpu_hours"],
        )

    return answer


_ANSWERS = {
    IN_ORDER: _in_order(fewest_stops=False),
    IN_BID_ORDER: _in_order(fewest_stops=True),
    **{name: _solved(name) for name in (OPTIMUM, *OURS)},
}
