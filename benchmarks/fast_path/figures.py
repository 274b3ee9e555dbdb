"""What the records say: gaps, time ratios, and the difference to early binding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.fast_path.instances import FILL_SEEDS, FILLS, Batches
from benchmarks.fast_path.runs import EXACT, HEURISTICS, Records, Run, counts, fill_name

LONG_PROOF_S = 10.0

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pair:
    """A run and the proven optimum of its batch."""

    run: Run
    best: Run

    @property
    def gap(self) -> float:
        """(V* − V) / V* of tier-weighted admitted value."""
        return (self.best.value - self.run.value) / self.best.value

    @property
    def same_top(self) -> bool:
        """Whether the set of admitted tier-0 jobs is that of the optimum."""
        return self.run.top == self.best.top


@dataclass(frozen=True)
class Row:
    """One solver over many batches."""

    solver: str
    batches: int
    mean: float
    p95: float
    worst: float
    same_top: float
    hours: float
    """GPU-hours of victims / those of the optimum."""
    us_per_job: float
    """Median over batches."""
    ratio: float
    """Geometric mean of the exact solver's time / this one's, where the proof took long."""


def optima(records: Records, kinds: Sequence[Batches]) -> list[Run]:
    """The proven optima that count, as many of each kind of batch as are wanted."""
    chosen: list[Run] = []
    for batches in kinds:
        runs = (run for run in records.runs.values() if (run.batch, run.solver) == (batches.name, EXACT))
        chosen += sorted((run for run in runs if counts(run)), key=lambda run: run.seed)[: batches.wanted]
    return chosen


def pairs(records: Records, solver: str, best: Iterable[Run]) -> list[Pair]:
    """The solver's runs on these batches."""
    keys = ((run, (run.batch, run.seed, solver)) for run in best)
    return [Pair(records.runs[key], run) for run, key in keys if key in records.runs]


def row_of(solver: str, found: Sequence[Pair]) -> Row:
    gap = np.array([pair.gap for pair in found])
    long = [pair.best.cpu_s / pair.run.cpu_s for pair in found if pair.best.cpu_s >= LONG_PROOF_S]
    lost, least = (sum(run.lost_gpu_hours for run in runs) for runs in zip(*((pair.run, pair.best) for pair in found)))
    return Row(
        solver=solver,
        batches=len(found),
        mean=float(gap.mean()),
        p95=float(np.percentile(gap, 95)),
        worst=float(gap.max()),
        same_top=float(np.mean([pair.same_top for pair in found])),
        hours=lost / least if least else float("nan"),
        us_per_job=float(np.median([pair.run.cpu_s / pair.run.jobs * 1e6 for pair in found])),
        ratio=float(np.exp(np.mean(np.log(long)))) if long else float("nan"),
    )


def rows(records: Records, best: Sequence[Run]) -> list[Row]:
    """One row a solver, the exact one first."""
    return [row_of(solver, pairs(records, solver, best)) for solver in (EXACT, *HEURISTICS)]


@dataclass(frozen=True)
class Filling:
    """Exhaustive search against early binding at one fill."""

    fill: int
    late: Floats
    """Share of the tier-weighted value that ``exhaustive`` admits, for each seed."""
    early: Floats
    """The same for ``federated``."""
    late_hours: float
    early_hours: float

    @property
    def difference(self) -> Floats:
        """What early binding gives away, as a share of what exhaustive search admits."""
        return (self.late - self.early) / np.maximum(self.late, 1e-12)


def fillings(records: Records) -> list[Filling]:
    found = []
    for fill in FILLS:
        runs = [
            [records.runs.get((fill_name(fill), seed, solver)) for seed in range(FILL_SEEDS)]
            for solver in ("exhaustive", "federated")
        ]
        late, early = zip(*((a, b) for a, b in zip(*runs) if a is not None and b is not None))
        found.append(
            Filling(
                fill,
                np.array([run.value / run.asked for run in late]),
                np.array([run.value / run.asked for run in early]),
                sum(run.lost_gpu_hours for run in late),
                sum(run.lost_gpu_hours for run in early),
            )
        )
    return found
