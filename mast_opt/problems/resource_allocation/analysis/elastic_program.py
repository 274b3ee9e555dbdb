"""Elastic program of resource allocation: every hard limit in words, as rows, to be moved or given up."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.core.verdict import Conflict
from mast_opt.problems.kind.analysis_hooks import ElasticLimits, ElasticProgram, row_limits
from mast_opt.problems.kind.problem_data import Floats
from mast_opt.problems.mip import Mip
from mast_opt.problems.resource_allocation.formulation.feasibility import within_limits
from mast_opt.problems.resource_allocation.formulation.program import AllocationProgram
from mast_opt.problems.resource_allocation.plan import Plan
from mast_opt.problems.resource_allocation.policies import EVERY_JOB_RUNS
from mast_opt.problems.resource_allocation.problem import ResourceAllocation

RULE = 1.0
"""Cost in a repair of lowering a floor to nothing, or of leaving out a required job; a resource that becomes larger by
an average one costs as much."""
TRACE = 1e-6
"""Part of a job's largest rate at which it counts as running."""


def relief(problem: ResourceAllocation) -> ElasticProgram:
    """The program and its limits; none of them closes a column. Where all resources are whole numbers, a repair raises
    them by whole units."""
    p, program = problem, AllocationProgram(problem)
    runs = p.objective.policy in EVERY_JOB_RUNS
    if runs:
        most = np.zeros(len(p.jobs))
        np.maximum.at(most, p.members.job, p.members.rate)
        rows = program.m.rows("running", [p.jobs.labels], lower=np.maximum(TRACE * most, np.finfo(float).tiny))
        program.add_rates(rows, np.arange(len(p.jobs)))
    program.linear(np.zeros(len(p.configurations)))
    mip = program.build(maximise=False)
    every = np.arange(len(p.jobs))
    floors, groups = np.flatnonzero(p.jobs.min_rate > 0), np.flatnonzero(p.groups.min_rate > 0)
    required = np.flatnonzero(p.jobs.required)
    mean = max(float(p.resources.amount.mean()), np.finfo(float).tiny)
    names, owners = p.jobs.labels, p.groups.labels
    counted = bool((p.resources.amount == np.round(p.resources.amount)).all())
    capacity = _limits(
        mip,
        "capacity",
        "upper",
        np.arange(len(p.resources)),
        np.full(len(p.resources), 1 / mean),
        lambda k: f"{p.resources.labels[k]} ({p.resources.amount[k]:g})",
        lambda k, more: f"raise {p.resources.labels[k]} by {more:.6g}",
        partial(_moved, "resources", "amount", 1.0),
    )
    limits = [
        replace(capacity, step=np.ones(len(p.resources)) if counted else None),
        _limits(
            mip,
            "floor",
            "lower",
            floors,
            RULE / p.jobs.min_rate[floors],
            lambda j: f"{names[j]} at a rate of at least {p.jobs.min_rate[j]:g}",
            lambda j, less: f"lower the floor of {names[j]} by {less:.6g}",
            partial(_moved, "jobs", "min_rate", -1.0),
        ),
        _limits(
            mip,
            "group_floor",
            "lower",
            groups,
            RULE / p.groups.min_rate[groups],
            lambda g: f"group {owners[g]} at a rate of at least {p.groups.min_rate[g]:g}",
            lambda g, less: f"lower the floor of group {owners[g]} by {less:.6g}",
            partial(_moved, "groups", "min_rate", -1.0),
        ),
        _limits(
            mip,
            "required",
            "lower",
            required,
            np.full(len(required), RULE),
            lambda j: f"{names[j]} is required all the time",
            lambda j, _: f"let {names[j]} run a part of the time",
            _not_required,
            block="one",
            amounts=False,
        ),
    ]
    if runs:
        words = f"has to run, as {p.objective.policy} asks of every job"
        none = np.full(len(every), np.inf)
        limits.append(
            _limits(mip, "running", "lower", every, none, lambda j: f"{names[j]} {words}", lambda j, _: "", None)
        )

    def decode(x: FloatArray) -> Plan:
        return Plan.of_shares(problem, within_limits(problem, x[: len(p.configurations)]))

    return ElasticProgram.of(mip, limits, decode)


def _limits(
    mip: Mip,
    name: str,
    side: str,
    positions: IntArray,
    price: Floats,
    describe: Callable[[int], str],
    advice: Callable[[int, float], str],
    relax: Callable[..., ResourceAllocation] | None,
    *,
    block: str = "",
    amounts: bool = True,
) -> ElasticLimits:
    """Limits with a row each. ``positions``: on their axis; ``block``: of the rows, if it has another name."""
    found = next(one for one in mip.rows if one.name == (block or name))
    rows = found.ids.ravel()
    rows = rows if found.cells is not None else rows[positions]

    per_unit = 1.0 if amounts else None
    return row_limits(name, side, price, positions, rows, describe, advice, relax, per_unit=per_unit)


def _moved(
    group: str, column: str, sign: float, problem: ResourceAllocation, amounts: Mapping[int, float]
) -> ResourceAllocation:
    """The problem with some values of a column moved, and not below 0. What becomes no whole number moves a little more
    than needed, for rounding."""
    values = getattr(getattr(problem, group), column).copy()
    for at, units in amounts.items():
        moved = values[at] + sign * units
        values[at] = max(moved if moved == round(moved) else moved + sign * units * 1e-6, 0.0)
    return problem.with_columns({f"{group}.{column}": values})


def _not_required(problem: ResourceAllocation, amounts: Mapping[int, float]) -> ResourceAllocation:
    """The instance in which these jobs of a resource allocation need not run."""
    required = problem.jobs.required.copy()
    required[list(amounts)] = False
    return replace(problem, jobs=replace(problem.jobs, required=required))


def conflicts(problem: ResourceAllocation) -> tuple[Conflict, ...]:
    """Jobs whose floor is above every rate that they can have, and jobs that have to run and cannot."""
    p = problem
    most = np.zeros(len(p.jobs))
    np.maximum.at(most, p.members.job, p.members.rate)
    found = [
        Conflict(
            "floor",
            (p.jobs.labels[j],),
            f"{p.jobs.labels[j]} is to have a rate of at least {p.jobs.min_rate[j]:g}, and its best configuration "
            f"gives {most[j]:g}",
        )
        for j in np.flatnonzero(p.jobs.min_rate > most * (1 + 1e-9)).tolist()
    ]
    if p.objective.policy in EVERY_JOB_RUNS:
        words = f"makes no progress in any configuration, and {p.objective.policy} needs every job to run"
        found += [
            Conflict("runs", (p.jobs.labels[j],), f"{p.jobs.labels[j]} {words}")
            for j in np.flatnonzero(most <= 0).tolist()
        ]
    return tuple(found)
