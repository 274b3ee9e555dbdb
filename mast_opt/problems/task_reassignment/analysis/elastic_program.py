"""Elastic program of task reassignment: every hard limit in words, as rows, to be moved or given up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mast_opt.core.arrays import IntArray
from mast_opt.core.wording import named
from mast_opt.problems.kind.analysis_hooks import ElasticLimits, ElasticProgram, row_limits
from mast_opt.problems.task_reassignment.formulation.formulation import base
from mast_opt.problems.task_reassignment.problem import Ints, TaskReassignment

RULE = 1.0
"""Cost in a repair of one location less or a dependency given up; making a machine's capacity larger by that of an
average one costs 1. Repairs never give up that processes run, and each of a service on a machine of its own."""


def relief(problem: TaskReassignment) -> ElasticProgram:
    """The program and its limits; none of them closes a column."""
    p, formulation = problem, base(problem)
    rows = {block.name: block for block in formulation.mip.rows}
    every = np.arange(len(p.processes))
    listed_conflict = rows["conflict"].cells
    listed_dependency = rows["dependency"].cells
    assert listed_conflict is not None
    assert listed_dependency is not None
    services, pairs = _spread_services(p), _pairs(p)
    limits = (
        _capacity(p, rows["capacity"].ids.ravel()),
        replace(
            row_limits(
                "spread",
                "lower",
                np.full(len(services), RULE),
                services,
                rows["spread"].ids,
                lambda s: f"service {p.services.labels[s]} in at least {p.services.spread_min[s]} locations",
                lambda s, fewer: (
                    f"let service {p.services.labels[s]} run in {p.services.spread_min[s] - round(fewer)} locations"
                ),
                _fewer_locations,
                per_unit=1.0,
            ),
            whole=True,
        ),
        row_limits(
            "dependency",
            "upper",
            np.full(len(pairs), RULE),
            pairs,
            rows["dependency"].ids,
            lambda pair: f"service {_ends(p, pair)[0]} needs {_ends(p, pair)[1]} in its neighbourhood",
            lambda pair, _: f"let service {_ends(p, pair)[0]} run without {_ends(p, pair)[1]} nearby",
            _without_dependencies,
            position_of_row=p.processes.service[listed_dependency[0]] * len(p.services) + listed_dependency[1],
        ),
        row_limits(
            "conflict",
            "upper",
            np.full(len(np.unique(listed_conflict[0])), np.inf),
            np.unique(listed_conflict[0]),
            rows["conflict"].ids,
            lambda s: f"the {p.service_size[s]} processes of {p.services.labels[s]} on machines of their own",
            position_of_row=listed_conflict[0],
        ),
        ElasticLimits(
            "assigned",
            "lower",
            np.full(len(every), np.inf),
            describe=lambda members: (
                f"{named('process', [p.processes.labels[m] for m in members], 'processes')} must run"
            ),
            row_member=every,
            row=rows["assigned"].ids,
        ),
    )
    return ElasticProgram.of(formulation.mip, limits, formulation.decode)


def _capacity(p: TaskReassignment, rows: IntArray) -> ElasticLimits:
    """[M, K] machine after machine; what is transient is also held by what moves away."""
    resources = len(p.resources)
    mean = np.maximum(p.machines.capacity.mean(axis=0), 1.0) if len(p.machines) else np.ones(resources)

    def called(member: int) -> str:
        m, k = divmod(member, resources)
        return f"{p.resources.labels[k]} of machine {p.machines.labels[m]}"

    def amount(member: int) -> str:
        m, k = divmod(member, resources)
        held = f", {p.held[m, k]:,} held by what runs there now" if p.resources.transient[k] else ""
        return f"{p.machines.capacity[m, k]:,}{held}"

    def more(problem: TaskReassignment, amounts: Mapping[int, float]) -> TaskReassignment:
        capacity = problem.machines.capacity.copy()
        for member, units in amounts.items():
            capacity[divmod(member, resources)] += round(units)
        return replace(problem, machines=replace(problem.machines, capacity=capacity))

    limits = row_limits(
        "capacity",
        "upper",
        np.tile(1 / mean, len(p.machines)),
        np.arange(len(rows)),
        rows,
        lambda member: f"{called(member)} ({amount(member)})",
        lambda member, units: f"raise {called(member)} by {round(units):,}",
        more,
        per_unit=1.0,
    )
    return replace(limits, whole=True)


def _spread_services(p: TaskReassignment) -> Ints:
    services: Ints = np.flatnonzero((p.services.spread_min > 1) & (p.service_size > 0))
    return services


def _fewer_locations(problem: TaskReassignment, amounts: Mapping[int, float]) -> TaskReassignment:
    fewest = problem.services.spread_min.copy()
    for service, units in amounts.items():
        fewest[service] -= round(units)
    return replace(problem, services=replace(problem.services, spread_min=fewest))


def _pairs(p: TaskReassignment) -> Ints:
    """Dependencies as dependent · S + dependency, ascending; those on the service itself say nothing."""
    other = p.dependencies.service != p.dependencies.needs
    pairs: Ints = np.unique(p.dependencies.service[other] * len(p.services) + p.dependencies.needs[other])
    return pairs


def _ends(p: TaskReassignment, pair: int) -> tuple[str, str]:
    dependent, dependency = divmod(pair, len(p.services))
    return p.services.labels[dependent], p.services.labels[dependency]


def _without_dependencies(problem: TaskReassignment, amounts: Mapping[int, float]) -> TaskReassignment:
    """Members are dependent · S + dependency."""
    pairs = problem.dependencies.service * len(problem.services) + problem.dependencies.needs
    return replace(problem, dependencies=problem.dependencies.rows(~np.isin(pairs, list(amounts))))
