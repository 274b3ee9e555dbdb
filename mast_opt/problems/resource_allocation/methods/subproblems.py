"""Sub-problems: some of the jobs, some of the configurations, and what of the members and uses belongs to them."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from mast_opt.problems.kind.problem_data import Bools, Floats, Ints
from mast_opt.problems.resource_allocation.problem import ResourceAllocation


@dataclass(frozen=True, eq=False)
class Rows:
    """Positions of what a sub-problem has, each in ascending order."""

    jobs: Ints
    configurations: Ints
    members: Ints
    uses: Ints


def subproblem(problem: ResourceAllocation, rows: Rows, amount: Floats | None = None) -> ResourceAllocation:
    """The problem with these rows only.

    Args:
        rows: every job of a configuration has to be there too.
        amount: [K] of the resources; as in the problem unless given.

    Raises:
        InstanceError: a job is left without a configuration.
    """
    p = problem
    members, uses = p.members.rows(rows.members), p.uses.rows(rows.uses)
    every = len(rows.jobs) == len(p.jobs)
    return replace(
        p,
        resources=p.resources if amount is None else replace(p.resources, amount=amount),
        jobs=p.jobs if every else p.jobs.rows(rows.jobs),
        configurations=p.configurations.rows(rows.configurations),
        members=replace(
            members,
            configuration=np.searchsorted(rows.configurations, members.configuration),
            job=members.job if every else np.searchsorted(rows.jobs, members.job),
        ),
        uses=replace(uses, configuration=np.searchsorted(rows.configurations, uses.configuration)),
    )


def with_configurations(problem: ResourceAllocation, chosen: Bools) -> ResourceAllocation:
    """The problem with some of its configurations. Raises InstanceError for a job that has none left."""
    members, uses = chosen[problem.members.configuration], chosen[problem.uses.configuration]
    every = np.arange(len(problem.jobs))
    return subproblem(problem, Rows(every, *(np.flatnonzero(mask) for mask in (chosen, members, uses))))


def without_job(problem: ResourceAllocation, job: int) -> ResourceAllocation:
    """The problem without a job and every configuration that it is in, and without the mechanism.

    Raises:
        InstanceError: another job has no configuration without this one.
    """
    p = problem
    stays = np.ones(len(p.configurations), np.bool_)
    stays[p.members.configuration[p.members.job == job]] = False
    masks = (np.arange(len(p.jobs)) != job, stays, stays[p.members.configuration], stays[p.uses.configuration])
    rest = subproblem(p, Rows(*(np.flatnonzero(mask) for mask in masks)))
    return replace(rest, objective=replace(p.objective, mechanism=""))


def equal_jobs(problem: ResourceAllocation) -> Ints:
    """[J] the first job that the policies cannot tell from each: of the same weight and limits, with configurations of
    the same rates and uses. Each job is its own where some configuration packs several."""
    p = problem
    first = np.arange(len(p.jobs))
    if (np.bincount(p.members.configuration, minlength=len(p.configurations)) > 1).any():
        return first
    uses = np.lexsort((p.uses.resource, p.uses.configuration))
    cuts = np.searchsorted(p.uses.configuration[uses], np.arange(len(p.configurations) + 1))
    resource, amount = p.uses.resource[uses], p.uses.amount[uses]
    held = [(resource[low:high].tobytes(), amount[low:high].tobytes()) for low, high in pairwise(cuts.tolist())]
    ways: list[list[tuple[float, bytes, bytes]]] = [[] for _ in first]
    members = zip(p.members.job.tolist(), p.members.configuration.tolist(), p.members.rate.tolist(), strict=True)
    for job, configuration, rate in members:
        ways[job].append((rate, *held[configuration]))
    own = zip(p.jobs.weight.tolist(), p.jobs.required.tolist(), p.jobs.min_rate.tolist(), p.jobs.group.tolist())
    seen: dict[object, int] = {}
    for job, (stated, configurations) in enumerate(zip(own, ways, strict=True)):
        first[job] = seen.setdefault((stated, tuple(sorted(configurations))), job)
    return first


def parts_of(problem: ResourceAllocation, job_part: Ints, count: int) -> list[Rows]:
    """The rows of each part of the jobs: those of configurations whose jobs are all in it.

    Args:
        job_part: [J] the part that each job is in.
        count: of parts.
    """
    p, size = problem, len(problem.configurations)
    least, most = np.full(size, count), np.full(size, -1)
    part = job_part[p.members.job]
    np.minimum.at(least, p.members.configuration, part)
    np.maximum.at(most, p.members.configuration, part)
    of_configuration = np.where(least == most, least, count)
    split = [
        _by_part(one, count)
        for one in (
            job_part,
            of_configuration,
            of_configuration[p.members.configuration],
            of_configuration[p.uses.configuration],
        )
    ]
    return [Rows(*rows) for rows in zip(*split, strict=True)]


def _by_part(part: Ints, count: int) -> list[Ints]:
    """Positions of the jobs of each part, ascending; those of the part ``count`` are left out."""
    order = np.argsort(part, kind="stable")
    cuts = np.searchsorted(part[order], np.arange(count + 1))
    return [order[cuts[at] : cuts[at + 1]] for at in range(count)]
