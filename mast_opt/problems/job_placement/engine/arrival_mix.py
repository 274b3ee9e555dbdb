"""Mix of arrivals (job-placement engine): how often jobs of which shape came, and samples of what comes next.

A shape is what a job takes of one server: all of its tasks where they fit on one and should be there, otherwise one
of them. Counts of a limited number of shapes are kept by the algorithm of Misra and Gries (Finding repeated elements,
1982): where a new shape finds no place, all counts fall. Shapes are drawn with a probability in proportion to count
times GPUs, at least one: what takes many GPUs is the hardest to place, and would be missing in short samples.

Room for a shape has a price: its share of the GPUs that arrive, divided by the square of the share of the fleet's GPUs
that are on servers of which one, empty, holds it. The square makes room expensive that few servers have.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.job_placement.engine.limits import DEFAULT_SAMPLING, FillSampling
from mast_opt.problems.job_placement.units import CPU, GPU, MEMORY, SERVER, WHOLE, Bools, Ints

Floats = NDArray[np.float64]
KIND, COUNT = 3, 4
"""Further columns of classes of servers."""
ANY = ""
"""Key in the place of a GPU type that stands for all types."""
MASK = (1 << 64) - 1
PER_MILLE = 1000
"""Prices of shapes are in thousandths."""
LEAST_SHARE = 1e-2
"""A smaller share of the GPUs counts as this one, so that no sum of prices overflows."""


class Shape(NamedTuple):
    """Amounts that one arrival takes of a server. Sorted by GPUs first, similar mixes give similar samples."""

    mgpu: int
    """Milli-GPUs of all its tasks, on the type where that is most."""
    cpu: int
    """Millicores of a task."""
    memory: int
    """MiB of a task."""
    tasks: int
    needs: tuple[tuple[str, int], ...]
    """GPU type, or ANY → milli-GPUs of a task."""


def shape_of(
    needs: Mapping[str, int], cpu: int, memory: int, tasks: int, together: bool, largest: int
) -> tuple[Shape, int]:
    """The shape of a job and how many of it the job is.

    Args:
        needs: GPU type, or ANY → milli-GPUs of a task.
        together: whether the job should be on one server.
        largest: milli-GPUs of the largest server.
    """
    each = max(needs.values(), default=0)
    one = tasks if together and each * tasks <= largest else 1
    return Shape(each * one, cpu, memory, one, tuple(sorted(needs.items()))), tasks // one


class Arrivals(NamedTuple):
    """Expected arrivals."""

    sample: Ints
    """[K, L, T + 3] sequences of arrivals: milli-GPUs of a task on each type (−1 where it may not run), millicores,
    MiB, tasks."""
    demand: Ints
    """[M, T + 4] the shapes, likewise, and what room for a milli-GPU of theirs is worth, in thousandths."""


@dataclass
class ArrivalMix:
    """Counts of shapes, and when to draw samples again."""

    sampling: FillSampling = DEFAULT_SAMPLING
    counts: dict[Shape, int] = field(default_factory=dict)
    total: int = 0
    """Sum of the counts, and of what Misra and Gries took from them since they were last halved."""
    due: int = 1
    """Samples are drawn again when the total is this."""

    def copy(self) -> "ArrivalMix":
        """A mix that can go its own way."""
        return ArrivalMix(self.sampling, dict(self.counts), self.total, self.due)

    def add(self, shape: Shape, count: int) -> bool:
        """Count arrivals of a shape; says whether samples should be drawn again."""
        count = min(count, self.sampling.window)
        if shape in self.counts or len(self.counts) < self.sampling.shapes:
            self.counts[shape] = self.counts.get(shape, 0) + count
        else:
            least = min(count, min(self.counts.values()))
            self.counts = {one: kept - least for one, kept in self.counts.items() if kept > least}
            if count > least:
                self.counts[shape] = count - least
        self.total += count
        while self.total > self.sampling.window:
            self.counts = {one: kept // 2 for one, kept in self.counts.items() if kept > 1}
            self.total //= 2
            self.due = min(self.due, self.total * self.sampling.growth_percent // 100)
        return self.total >= self.due

    def draw(self, types: Mapping[str, int], classes: Ints) -> Arrivals:
        """Samples and shapes for GPU types with these numbers; without arrivals there are none. They are due again
        after further arrivals.

        Args:
            classes: the fleet's servers, see ``server_classes``.
        """
        self.due = max(self.total + 1, self.total * self.sampling.growth_percent // 100)
        shapes = sorted(self.counts, key=lambda one: (one[:-1], sorted((types.get(t, -1), n) for t, n in one.needs)))
        if not shapes:
            return Arrivals(np.zeros((0, 0, len(types) + 3), np.int64), np.zeros((0, len(types) + 4), np.int64))
        count = np.array([self.counts[shape] for shape in shapes], np.float64)
        mgpu = np.array([shape.mgpu for shape in shapes], np.float64)
        weight = count * np.maximum(mgpu, WHOLE)
        drawn = np.searchsorted(np.cumsum(weight), _positions(self.sampling) * weight.sum(), side="right")
        table = np.full((len(shapes), len(types) + 3), -1, np.int64)
        for row, shape in zip(table, shapes):
            row[-3:] = shape.cpu, shape.memory, shape.tasks
            for kind, need in shape.needs:
                if kind == ANY:
                    row[:-3] = need
                elif kind in types:
                    row[types[kind]] = need
        sample = np.ascontiguousarray(table[np.minimum(drawn, len(shapes) - 1)])
        return Arrivals(sample, self._demand(table, count * mgpu / max((count * mgpu).sum(), 1), classes))

    def _demand(self, table: Ints, arriving: Floats, classes: Ints) -> Ints:
        """[M, T + 4] see ``Arrivals``; without the shapes that no server holds, and those without GPUs."""
        mgpu = classes[:, GPU] * classes[:, COUNT]
        share = _fits_when_empty(table, classes) @ mgpu / max(int(mgpu.sum()), 1)
        weight = self.sampling.samples * self.sampling.scarcity_percent / 100 * PER_MILLE
        price = np.rint(weight * arriving / np.maximum(share, LEAST_SHARE) ** 2).astype(np.int64)
        scarce = (share > 0) & (price > 0) & (table[:, :-3] > 0).any(axis=1)
        demand: Ints = np.column_stack([table, price])[scarce]
        return demand


def server_classes(kind: Ints, supply: Ints) -> Ints:
    """[C, 5] equal servers: milli-GPUs, millicores and MiB (in the order of ``supply`` [S, 3]), GPU type, how many."""
    rows, count = np.unique(np.column_stack([supply, kind]), axis=0, return_counts=True)
    return np.column_stack([rows, count])


def _fits_when_empty(table: Ints, classes: Ints) -> Bools:
    """[M, C] whether an empty server of a class holds a shape."""
    mgpu, tasks = table[:, classes[:, KIND]], table[:, -1:]
    gpus = classes[:, GPU] // WHOLE
    most = np.where(mgpu >= WHOLE, gpus // np.maximum(mgpu // WHOLE, 1), gpus * (WHOLE // np.clip(mgpu, 1, WHOLE)))
    fits: Bools = (mgpu >= 0) & (most >= tasks)
    for column, amount in ((-3, CPU), (-2, MEMORY)):
        fits &= table[:, column, None] * tasks <= classes[:, amount]
    return fits


def together(within: int, prefer: int) -> bool:
    """Whether a job with these levels should be on one server."""
    return within == SERVER or prefer == SERVER


@cache
def _positions(sampling: FillSampling) -> np.ndarray:
    """[K, L] numbers between 0 and 1, the same ones always: for each draw, the samples take the middle of each K-th
    part of the interval, in an order that a hash decides."""
    samples, draws = sampling.samples, sampling.draws
    order = np.array([[_hashed(k * draws + at) for at in range(draws)] for k in range(samples)], np.uint64)
    rank = np.argsort(np.argsort(order, axis=0, kind="stable"), axis=0, kind="stable")
    positions: np.ndarray = (2 * rank + 1) / (2 * samples)
    positions.flags.writeable = False
    return positions


def _hashed(number: int) -> int:
    """The number, mixed by the finaliser of splitmix64 (Steele, Lea and Flood, 2014)."""
    z = (number + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)
