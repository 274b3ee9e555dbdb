"""Rules that say what part of the time each job should have on each GPU type; rounds turn that into who runs when.

Gavel (OSDI'20) calls them policies: first come, first served; max-min fairness over rates; finish-time fairness; least
makespan. AlloX's rule is here too. J counts jobs, G types.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.core.errors import UsageError
from mast_opt.live.policies import allox
from mast_opt.live.policies.central_shares import Demand, largest_fraction, least_ratio


@dataclass(frozen=True, eq=False)
class Sizes:
    """Numbers of tasks that jobs may have, one row for each job and number, in the order of the jobs; S counts rows."""

    job: IntArray
    """[S] position of the job."""
    tasks: IntArray
    """Number of tasks, [S]."""
    need: FloatArray
    """[S] GPUs, on the type on which they are most."""
    rate: FloatArray
    """[S, G] rate with so many tasks on each type; 0 where the job cannot run with them."""
    held: IntArray
    """[J] tasks that each job has now; 0 for none."""
    asked: IntArray
    """[J] row of the size that each job asks for, or else of the next smaller one that it may have, or of its least."""


@dataclass(frozen=True, eq=False)
class Competing:
    """Jobs that compete for GPUs at a moment, in the order of their submission."""

    names: tuple[str, ...]
    demand: Demand
    left_s: FloatArray
    """[J] work that is left, in seconds at the reference speed; NaN where nobody knows."""
    elapsed_s: FloatArray
    """[J] since submission."""
    attained_s: FloatArray = field(default_factory=lambda: np.zeros(0))
    """[J] GPU-seconds held so far."""
    ran_s: FloatArray = field(default_factory=lambda: np.zeros(0))
    """[J] seconds for which it has held its GPUs."""
    tier: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    """Tier of each job, [J]."""
    user: tuple[str, ...] = ()
    """[J] tenant, or else namespace."""
    runs_on: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    """[J] type on which the job runs now; -1 for none."""
    sizes: Sizes | None = None
    """Sizes to choose from, for a rule that ``resizes``."""


class ShareRule(Protocol):
    """Interface of a rule that computes shares. It may remember what it said before."""

    only_shared: bool = False
    """Whether a job without a share does not run even where GPUs are left over."""
    every_round: bool = False
    """Whether shares are computed for every round, and not only when jobs have come or gone."""
    resizes: bool = False
    """Whether it chooses sizes too: then ``tasks`` are those of each job, [J], when shares have been computed."""
    tasks: IntArray = np.zeros(0, np.int64)

    def shares(self, jobs: Competing) -> FloatArray:
        """[J, G] part of the time that each job is to have on each type; rows of the pairs of ``demand`` follow."""
        ...


def _known(jobs: Competing) -> FloatArray:
    """[J] work that is left of the competing jobs, above 0. Raises UsageError where nobody knows."""
    unknown = np.flatnonzero(np.isnan(jobs.left_s))
    if len(unknown):
        raise UsageError(
            f"job {jobs.names[unknown[0]]} has no duration; this objective needs the duration of every job"
        )
    return np.maximum(jobs.left_s, 1e-3)


class MaxMin(ShareRule):
    """Least attained service: every job's rate over that of an equal mix of all GPUs, as high as it can be for the one
    that has least. Jobs of larger gangs count for more, as one GPU of theirs is worth as much."""

    def shares(self, jobs: Competing) -> FloatArray:
        """Shares by max-min fairness of the rates."""
        demand = jobs.demand
        mixed = demand.rate @ (demand.gpus / demand.gpus.sum())
        return largest_fraction(demand, mixed / demand.need.max(axis=1))


class Makespan(ShareRule):
    """The rates under which the last job ends as early as it can."""

    def shares(self, jobs: Competing) -> FloatArray:
        """Shares with the least makespan."""
        return largest_fraction(jobs.demand, _known(jobs))


class FinishTime(ShareRule):
    """Finish-time fairness: the largest ratio of the time until a job ends to that with an equal part of all GPUs, as
    low as it can be. Work done so far counts as long as it would have taken with the equal parts of its time."""

    def __init__(self) -> None:
        self._fair_s: dict[str, float] = {}
        self._before: dict[str, tuple[float, float]] = {}
        """Job → work left, and rate with an equal part, when it was last seen."""

    def shares(self, jobs: Competing) -> FloatArray:
        """Shares with the least finish-time ratio."""
        demand, left = jobs.demand, _known(jobs)
        part = demand.gpus / (len(left) * demand.need.max(axis=1)[:, None])
        alone = (demand.rate * part / np.maximum(part.sum(axis=1, keepdims=True), 1.0)).sum(axis=1)
        fair = np.array([self._so_far(name, had) for name, had in zip(jobs.names, left.tolist(), strict=True)])
        self._fair_s = dict(zip(jobs.names, fair.tolist(), strict=True))
        self._before = dict(zip(jobs.names, zip(left.tolist(), alone.tolist(), strict=True), strict=True))
        return least_ratio(demand, left, jobs.elapsed_s, fair + left / alone)

    def _so_far(self, name: str, left: float) -> float:
        """Seconds that a job's work so far would have taken at its fair rates."""
        had, rate = self._before.get(name, (left, 1.0))
        return self._fair_s.get(name, 0.0) + (had - left) / rate


class Fifo(ShareRule):
    """First come, first served: each job has one type for itself. A job for which no type has room lets nobody pass;
    one that cannot run where there is room does.

    Args:
        aware: whether speeds are known: then each job takes the fastest type that has room, and moves when a faster one
            has. If not, it takes any type with room, by chance, and keeps it.
        seed: of chance.
    """

    only_shared = True

    def __init__(self, aware: bool, seed: int = 0) -> None:
        self._aware = aware
        self._seed = seed
        self._type: dict[str, int] = {}
        self._drawn = 0
        """Types that were chosen by chance."""

    def shares(self, jobs: Competing) -> FloatArray:
        """Shares in order of submission."""
        demand = jobs.demand
        kept = {} if self._aware else {name: self._type[name] for name in jobs.names if name in self._type}
        left, rates, needs = demand.gpus.tolist(), demand.rate.tolist(), demand.need.tolist()
        for name, need in zip(jobs.names, needs, strict=True):
            if name in kept:
                left[kept[name]] -= need[kept[name]]
        for name, rate, need in zip(jobs.names, rates, needs, strict=True):
            if name in kept:
                continue
            room = [kind for kind, gpus in enumerate(left) if gpus >= max(need)]
            if not room:
                break
            able = [kind for kind in room if rate[kind] > 0]
            if not able:
                continue
            kind = max(able, key=rate.__getitem__) if self._aware else self._any(able)
            kept[name] = kind
            left[kind] -= need[kind]
        self._type = kept
        return _whole(jobs, kept)

    def _any(self, able: Sequence[int]) -> int:
        """One of the GPU types that a job can use, drawn at random by its name."""
        rng = np.random.Generator(np.random.PCG64([self._seed, zlib.crc32(b"fifo"), self._drawn]))
        self._drawn += 1
        return able[int(rng.integers(len(able)))]


class AlloX(ShareRule):
    """AlloX (EuroSys'20): the least total completion time of jobs of one GPU; a job keeps its GPU once it runs."""

    def __init__(self) -> None:
        self._type: dict[str, int] = {}

    def shares(self, jobs: Competing) -> FloatArray:
        """Shares by AlloX. Raises UsageError for a gang."""
        demand, left = jobs.demand, _known(jobs)
        gangs = np.flatnonzero(((demand.need > 0) & (demand.need != 1)).any(axis=1))
        if len(gangs):
            raise UsageError(f"job {jobs.names[gangs[0]]} does not take exactly one GPU; allox places no others")
        kept = {name: self._type[name] for name in jobs.names if name in self._type}
        free = demand.gpus.astype(np.int64) - np.bincount(list(kept.values()), minlength=len(demand.gpus))
        machine = np.repeat(np.arange(len(free)), np.maximum(free, 0))
        waiting = [at for at, name in enumerate(jobs.names) if name not in kept]
        if len(machine) and waiting:
            with np.errstate(divide="ignore"):
                time = left[waiting, None] / demand.rate[waiting][:, machine]
            able = np.isfinite(time).any(axis=1)
            waiting, time = np.array(waiting)[able].tolist(), time[able]
            if waiting:
                found = allox.solve(time)
                for one in range(len(machine)):
                    if len(order := found.order(one)):
                        kept[jobs.names[waiting[int(order[0])]]] = int(machine[one])
        self._type = kept
        return _whole(jobs, kept)


def _whole(jobs: Competing, kinds: Mapping[str, int]) -> FloatArray:
    """[J, G] all of the time of each job on one GPU type."""
    found = np.zeros(jobs.demand.rate.shape)
    for at, name in enumerate(jobs.names):
        if name in kinds:
            found[at, kinds[name]] = 1.0
    return found


OBJECTIVES: Mapping[str, Callable[[bool, int], ShareRule]] = {
    "fifo": Fifo,
    "max-min": lambda aware, seed: MaxMin(),
    "finish-time": lambda aware, seed: FinishTime(),
    "makespan": lambda aware, seed: Makespan(),
    "allox": lambda aware, seed: AlloX(),
}
"""Objective → its rule, from whether speeds are known and a seed."""
PACKING = ("max-min", "finish-time", "makespan")
"""Objectives that give shares to pairs of jobs on the same GPUs as well."""
