"""Gavel (OSDI'20): shares of the time of jobs on GPU types, under policies that know how fast each job is on each type.

A job runs on one type at a time, on all GPUs of its gang; ``shared_rounds`` turns the shares into who runs now. Two
jobs may be packed on the same GPUs. J counts jobs, G types, P pairs, E entities.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_limits import SolveLimits
from mast_opt.core.solve_result import Status
from mast_opt.core.verdict import Conflict
from mast_opt.live.policies.arguments import numbers
from mast_opt.live.policies.program import Program
from mast_opt.problems.resource_allocation.arrays import Columns, names

POLICIES = {
    "las": "max-min",
    "ftf": "finish-time-fairness",
    "makespan": "makespan",
    "cost": "rate-per-cost",
    "throughput": "total-rate",
    "hierarchical": "hierarchical",
    "strategy-proof": "nash",
}
"""Gavel's policy → policy of resource allocation; the last one with partial allocation."""
_ONE, _NOTHING = np.ones(()), np.zeros(())


@dataclass(frozen=True, eq=False)
class Pairs:
    """Jobs that may be packed on the same GPUs. Raises UsageError for arrays of other shapes."""

    jobs: IntArray
    """[P, 2] positions of two jobs with gangs of the same size."""
    rate: FloatArray
    """[P, 2, G] rate of each of the two on each type while they share GPUs; 0 for either: they are not packed there."""

    def __post_init__(self) -> None:
        both = np.asarray(self.jobs, np.int64).reshape(-1, 2)
        object.__setattr__(self, "jobs", both)
        object.__setattr__(self, "rate", numbers("pairs.rate", self.rate, (len(both), 2, None)))


@dataclass(frozen=True, eq=False)
class Jobs:
    """Jobs as Gavel knows them. Arrays are checked and copied; a single number stands for all jobs.

    Raises:
        UsageError: arrays of other shapes, or numbers that they cannot hold.
    """

    rate: FloatArray
    """[J, G] steps a second on each type; 0 where the job cannot run."""
    gang: FloatArray = field(default_factory=lambda: _ONE)
    """[J] GPUs that the job runs on."""
    weight: FloatArray = field(default_factory=lambda: _ONE)
    """[J] priority."""
    steps: FloatArray | None = None
    """[J] that are left; makespan, finish-time fairness and deadlines need them."""
    elapsed_s: FloatArray = field(default_factory=lambda: _NOTHING)
    """[J] since submission."""
    fair_elapsed_s: FloatArray = field(default_factory=lambda: _NOTHING)
    """[J] what the work done so far would have taken at the fair rate."""
    deadline_s: FloatArray | None = None
    """[J] seconds within which the steps must be done; infinite for no deadline."""
    submitted_s: FloatArray = field(default_factory=lambda: _NOTHING)
    """[J] order inside an entity under ``inside="fifo"``."""
    entity: IntArray | None = None
    """[J] position of the entity that the job belongs to, for hierarchical policies."""
    entity_weight: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Weight of each entity, [E]."""
    pairs: Pairs | None = None
    names: Sequence[str] | None = None
    """[J] labels; j0, j1, … unless given."""
    types: Sequence[str] | None = None
    """[G] labels; g0, g1, … unless given."""

    def __post_init__(self) -> None:
        rate = numbers("rate", self.rate, (None, None))
        jobs, types = rate.shape
        nowhere = np.flatnonzero(~(rate > 0).any(axis=1))
        if len(nowhere):
            raise UsageError(f"rate[{nowhere[0]}] is 0 on every type; expected one on which the job runs")
        checked = {"rate": rate, "entity_weight": numbers("entity_weight", self.entity_weight, (None,), above=0.0)}
        for name in ("gang", "weight", "steps", "deadline_s"):
            given = getattr(self, name)
            if given is not None:
                checked[name] = numbers(name, given, (jobs,), above=0.0, infinite=name == "deadline_s")
        for name in ("elapsed_s", "fair_elapsed_s", "submitted_s"):
            checked[name] = numbers(name, getattr(self, name), (jobs,))
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        self._check_positions(jobs, types)
        for what, labels, count in (("names", self.names, jobs), ("types", self.types, types)):
            if labels is not None and len(labels) != count:
                raise UsageError(f"{len(labels)} {what} are given; expected {count}")

    def _check_positions(self, jobs: int, types: int) -> None:
        """Raises UsageError where Gavel's jobs name an entity that there is not, or pairs that cannot be."""
        if self.entity is not None:
            entity = np.asarray(self.entity, np.int64)
            object.__setattr__(self, "entity", entity)
            if entity.shape != (jobs,) or (jobs and not 0 <= entity.min() <= entity.max() < len(self.entity_weight)):
                raise UsageError(f"entity is {entity.tolist()}; expected a position in entity_weight for each job")
        if self.pairs is not None:
            both = self.pairs.jobs
            if self.pairs.rate.shape[2] != types or (len(both) and not 0 <= both.min() <= both.max() < jobs):
                raise UsageError(
                    f"pairs are of other jobs or types; expected positions of {jobs} jobs, on {types} types"
                )
            odd = np.flatnonzero((both[:, 0] == both[:, 1]) | (self.gang[both[:, 0]] != self.gang[both[:, 1]]))
            if len(odd):
                raise UsageError(f"pairs.jobs[{odd[0]}] is {both[odd[0]].tolist()}; expected two jobs with equal gangs")


@dataclass(frozen=True)
class Shares:
    """Shares of the time; what is solved for is None where there is no solution."""

    status: Status
    objective: float | None
    """Objective in the unit and sense of the policy: a rate over the fair one, seconds, …"""
    bound: float | None
    share: FloatArray | None
    """[J, G] of the time that each job has on each type, alone."""
    pair_share: FloatArray | None
    """[P, G] of the time that each pair has on each type."""
    rate: FloatArray | None
    """[J] steps a second; under ``strategy-proof`` what is left of them."""
    kept: FloatArray | None
    """[J] part of its rate that each job keeps; below 1 only under ``strategy-proof``."""
    conflicts: tuple[Conflict, ...] = ()
    """Reasons why there is no solution, where that shows before solving."""


def equal_mix(rate: ArrayLike, gpus: ArrayLike) -> FloatArray:
    """[J] rate of each job on 1/J of each type: what ``las`` divides by, for gangs of one GPU.

    Args:
        rate: [J, G]
        gpus: [G] GPUs of each type.
    """
    speed, supply = _speed(rate, gpus)
    part = supply / max(1, len(speed))
    mixed: FloatArray = speed @ (part / max(1.0, float(part.sum())))
    return mixed


def isolated(rate: ArrayLike, gpus: ArrayLike, gang: ArrayLike = 1.0) -> FloatArray:
    """[J] rate of each job on a cluster of its own with 1/J of the GPUs of each type: what ``ftf`` compares with.

    Args:
        rate: [J, G]
        gpus: [G] GPUs of each type.
        gang: [J] GPUs that a job runs on; with fewer it has them for a part of the time.
    """
    speed, supply = _speed(rate, gpus)
    part = supply / (max(1, len(speed)) * numbers("gang", gang, (len(speed),), above=0.0)[:, None])
    alone: FloatArray = (speed * (part / np.maximum(1.0, part.sum(axis=1, keepdims=True)))).sum(axis=1)
    return alone


def solve(
    jobs: Jobs,
    gpus: ArrayLike,
    policy: str = "las",
    *,
    price: ArrayLike | None = None,
    inside: str = "max-min",
    solver: str = "highs",
    **limits: Unpack[SolveLimits],
) -> Shares:
    """Shares of the time of jobs on GPU types under a policy of Gavel.

    Args:
        jobs: what is known of them.
        gpus: [G] GPUs of each type.
        policy: ``las`` (least attained service: max-min fairness), ``ftf`` (finish-time fairness), ``makespan``,
            ``cost`` (rate per price), ``throughput``, ``hierarchical`` or ``strategy-proof``.
        price: [G] of a GPU, for ``cost``.
        inside: ``max-min`` or ``fifo`` inside each entity, for ``hierarchical``.
        solver, limits: as in ``mast_opt.solve``; the gap is 1e-6 unless stated.

    Raises:
        UsageError: a policy that there is not, or that lacks an input.
    """
    program = tables(jobs, gpus, policy, price=price, inside=inside)
    found = program.solve(solver, **limits)
    if found.share is None or found.rate is None or found.kept is None:
        return Shares(found.status, None, None, None, None, None, None, found.conflicts)
    alone, packed = _alone(jobs), _packed(jobs)
    share, pair_share = np.zeros(alone.shape), np.zeros(packed.shape)
    share[alone], pair_share[packed] = np.split(found.share, [int(alone.sum())])
    rate: FloatArray = found.rate * found.kept
    return Shares(found.status, found.objective, found.bound, share, pair_share, rate, found.kept)


def tables(
    jobs: Jobs, gpus: ArrayLike, policy: str = "las", *, price: ArrayLike | None = None, inside: str = "max-min"
) -> Program:
    """The program of a published policy, Gavel's: configurations of jobs and types, then of pairs and types, with rates
    above 0.
    """
    if policy not in POLICIES:
        raise UsageError(f"policy is {policy!r}; expected one of: {', '.join(POLICIES)}")
    supply = numbers("gpus", gpus, (jobs.rate.shape[1],))
    _check_inputs(jobs, policy, price)
    cost = None if price is None else numbers("price", price, supply.shape, above=0.0)
    types = names("g", len(supply)) if jobs.types is None else jobs.types
    groups: Columns | int = 0
    if policy == "hierarchical":
        groups = {"labels": names("e", len(jobs.entity_weight)), "weight": jobs.entity_weight}
    configurations, members, uses = _configurations(jobs, types, cost)
    return Program(
        policy=POLICIES[policy],
        inside=inside if policy == "hierarchical" else "",
        mechanism="partial-allocation" if policy == "strategy-proof" else "",
        resources={"labels": types, "amount": supply},
        groups=groups,
        jobs=_job_columns(jobs, supply, policy),
        configurations=configurations,
        members=members,
        uses=uses,
    )


def _speed(rate: ArrayLike, gpus: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Rates of jobs [J, G] and GPUs of each type [G], checked. Raises UsageError."""
    supply = numbers("gpus", gpus, (None,))
    return numbers("rate", rate, (None, len(supply))), supply


def _check_inputs(jobs: Jobs, policy: str, price: ArrayLike | None) -> None:
    """Raises UsageError where a policy of Gavel needs what is not given, or takes no notice of what is."""
    if policy in ("ftf", "makespan") and jobs.steps is None:
        raise UsageError(f"the policy {policy} needs the steps of the jobs, which are not given")
    if jobs.deadline_s is not None and jobs.steps is None:
        raise UsageError("deadline_s is given without steps; expected both")
    if (policy == "cost") != (price is not None):
        raise UsageError("expected a price with the policy cost, and with no other")
    if policy == "hierarchical" and jobs.entity is None:
        raise UsageError("the policy hierarchical needs the entity of each job, which is not given")


def _alone(jobs: Jobs) -> BoolArray:
    """[J, G] whether each of Gavel's jobs can run on each GPU type."""
    return jobs.rate > 0


def _packed(jobs: Jobs) -> BoolArray:
    """[P, G] whether each of Gavel's pairs of jobs can run on each GPU type."""
    if jobs.pairs is None:
        return np.zeros((0, jobs.rate.shape[1]), np.bool_)
    return np.asarray((jobs.pairs.rate > 0).all(axis=1))


def _job_columns(jobs: Jobs, supply: FloatArray, policy: str) -> Columns:
    """Columns of jobs in the program of a policy of Gavel: weight, fair rate, times, and what that policy needs."""
    if policy == "ftf":
        fair = isolated(jobs.rate, supply, jobs.gang)
    elif policy in ("las", "hierarchical"):
        fair = equal_mix(jobs.rate, supply) / jobs.gang
    else:
        fair = np.ones(len(jobs.rate))
    columns: dict[str, object] = {
        "labels": names("j", len(jobs.rate)) if jobs.names is None else jobs.names,
        "weight": jobs.weight,
        "fair_rate": fair,
        "elapsed_s": jobs.elapsed_s,
        "fair_elapsed_s": jobs.fair_elapsed_s,
        "submitted_s": jobs.submitted_s,
    }
    if jobs.steps is not None:
        columns["steps"] = jobs.steps
        if jobs.deadline_s is not None:
            columns["min_rate"] = jobs.steps / jobs.deadline_s
    if policy == "hierarchical" and jobs.entity is not None:
        columns["group"] = jobs.entity
    return columns


def _configurations(jobs: Jobs, types: Sequence[str], price: FloatArray | None) -> tuple[Columns, Columns, Columns]:
    """Columns of configurations, members and uses in the program of a policy of Gavel."""
    label = names("j", len(jobs.rate)) if jobs.names is None else jobs.names
    job, kind = np.nonzero(_alone(jobs))
    pair, pair_kind = np.nonzero(_packed(jobs))
    both = np.zeros((0, 2), np.int64) if jobs.pairs is None else jobs.pairs.jobs[pair]
    pair_rate = np.zeros((0, 2)) if jobs.pairs is None else jobs.pairs.rate[pair, :, pair_kind]
    alone = [f"{label[j]}@{types[g]}" for j, g in zip(job.tolist(), kind.tolist())]
    packed = [f"{label[i]}+{label[j]}@{types[g]}" for (i, j), g in zip(both.tolist(), pair_kind.tolist())]
    every, where = np.arange(len(job) + len(pair)), np.r_[kind, pair_kind]
    gang = jobs.gang[np.r_[job, both[:, 0]]]
    members = {
        "configuration": np.r_[every, every[len(job) :]],
        "job": np.r_[job, both[:, 0], both[:, 1]],
        "rate": np.r_[jobs.rate[job, kind], pair_rate[:, 0], pair_rate[:, 1]],
    }
    uses = {"configuration": every, "resource": where, "amount": gang}
    configurations: Columns = {"labels": alone + packed}
    if price is not None:
        configurations = {**configurations, "cost": gang * price[where]}
    return configurations, members, uses
