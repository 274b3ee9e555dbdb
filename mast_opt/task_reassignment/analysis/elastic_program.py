"""Elastic program of task reassignment: every hard limit in words, as rows, to be moved or given up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from mast_opt.core.arrays import IntArray
from mast_opt.core.wording import listed, named
from mast_opt.kind.analysis_hooks import NONE, ElasticLimits, ElasticProgram
from mast_opt.task_reassignment.formulation.formulation import base
from mast_opt.task_reassignment.problem import Ints, TaskReassignment

RULE = 1.0
"""What a repair pays for one location less or a dependency given up; making a machine's capacity larger by that of an
average one is 1. That processes run, and each of a service on a machine of its own, is never given up."""


def relief(problem: TaskReassignment) -> ElasticProgram:
    """The program and its limits; none of them closes a column."""
    p, formulation = problem, base(problem)
    rows = {block.name: block for block in formulation.mip.rows}
    every = np.arange(len(p.processes))
    listed_conflict = rows["conflict"].cells
    listed_dependency = rows["dependency"].cells
    assert listed_conflict is not None
    assert listed_dependency is not None
    limits = (
        _capacity(p, rows["capacity"].ids.ravel()),
        _limits(
            "spread",
            "lower",
            _spread_services(p),
            np.full(len(_spread_services(p)), RULE),
            rows["spread"].ids,
            lambda s: f"service {p.services.labels[s]} in at least {p.services.spread_min[s]} locations",
            lambda s, fewer: (
                f"let service {p.services.labels[s]} run in {int(p.services.spread_min[s]) - round(fewer)} locations"
            ),
            _fewer_locations(p),
        ),
        _grouped(
            "dependency",
            _pairs(p),
            p.processes.service[listed_dependency[0]] * len(p.services) + listed_dependency[1],
            rows["dependency"].ids,
            lambda pair: f"service {_ends(p, pair)[0]} needs {_ends(p, pair)[1]} in its neighbourhood",
            lambda pair: f"let service {_ends(p, pair)[0]} run without {_ends(p, pair)[1]} nearby",
            _without_dependencies(p),
        ),
        _grouped(
            "conflict",
            np.unique(listed_conflict[0]),
            listed_conflict[0],
            rows["conflict"].ids,
            lambda s: f"the {p.service_size[s]} processes of {p.services.labels[s]} on machines of their own",
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
            column_member=NONE,
            column=NONE,
        ),
    )
    kept = tuple(one for one in limits if one.count)
    by_name = {one.name: one for one in kept}

    def story(chosen: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
        return tuple(by_name[name].describe(members) for name, members in chosen.items())

    return ElasticProgram(formulation.mip, kept, formulation.decode, story)


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

    return ElasticLimits(
        "capacity",
        "upper",
        np.tile(1 / mean, len(p.machines)),
        describe=lambda members: listed([f"{called(member)} ({amount(member)})" for member in members]),
        row_member=np.arange(len(rows)),
        row=rows,
        column_member=NONE,
        column=NONE,
        advice=lambda member, units: f"raise {called(member)} by {round(units):,}",
        relax=more,
        per_unit=1.0,
        whole=True,
    )


def _spread_services(p: TaskReassignment) -> Ints:
    services: Ints = np.flatnonzero((p.services.spread_min > 1) & (p.service_size > 0))
    return services


def _limits(
    name: str,
    side: str,
    positions: Ints,
    price: np.ndarray[tuple[int], np.dtype[np.float64]],
    rows: IntArray,
    describe: Callable[[int], str],
    advice: Callable[[int, float], str],
    relax: Callable[[TaskReassignment, Mapping[int, float]], TaskReassignment],
) -> ElasticLimits:
    return ElasticLimits(
        name,
        side,
        price,
        describe=lambda members: listed([describe(int(positions[member])) for member in members]),
        row_member=np.arange(len(rows)),
        row=rows,
        column_member=NONE,
        column=NONE,
        advice=lambda member, units: advice(int(positions[member]), units),
        relax=relax,
        per_unit=1.0,
        whole=True,
    )


def _grouped(
    name: str,
    keys: Ints,
    key_of_row: IntArray,
    rows: IntArray,
    describe: Callable[[int], str],
    advice: Callable[[int], str] | None = None,
    relax: Callable[[TaskReassignment, Mapping[int, float]], TaskReassignment] | None = None,
) -> ElasticLimits:
    """Limits that are stated by several rows each and given up as a whole."""
    return ElasticLimits(
        name,
        "upper",
        np.full(len(keys), RULE if relax is not None else np.inf),
        describe=lambda members: listed([describe(int(keys[member])) for member in members]),
        row_member=np.searchsorted(keys, key_of_row),
        row=rows,
        column_member=NONE,
        column=NONE,
        advice=lambda member, _: "" if advice is None else advice(int(keys[member])),
        relax=relax,
    )


def _fewer_locations(p: TaskReassignment) -> Callable[[TaskReassignment, Mapping[int, float]], TaskReassignment]:
    services = _spread_services(p)

    def edit(problem: TaskReassignment, amounts: Mapping[int, float]) -> TaskReassignment:
        fewest = problem.services.spread_min.copy()
        for member, units in amounts.items():
            fewest[services[member]] -= round(units)
        return replace(problem, services=replace(problem.services, spread_min=fewest))

    return edit


def _pairs(p: TaskReassignment) -> Ints:
    """Dependencies as dependent · S + dependency, ascending; those on the service itself say nothing."""
    other = p.dependencies.service != p.dependencies.needs
    pairs: Ints = np.unique(p.dependencies.service[other] * len(p.services) + p.dependencies.needs[other])
    return pairs


def _ends(p: TaskReassignment, pair: int) -> tuple[str, str]:
    dependent, dependency = divmod(pair, len(p.services))
    return p.services.labels[dependent], p.services.labels[dependency]


def _without_dependencies(
    p: TaskReassignment,
) -> Callable[[TaskReassignment, Mapping[int, float]], TaskReassignment]:
    pairs = _pairs(p)

    def edit(problem: TaskReassignment, amounts: Mapping[int, float]) -> TaskReassignment:
        gone = pairs[list(amounts)]
        kept = ~np.isin(problem.dependencies.service * len(problem.services) + problem.dependencies.needs, gone)
        return replace(
            problem,
            dependencies=replace(
                problem.dependencies, service=problem.dependencies.service[kept], needs=problem.dependencies.needs[kept]
            ),
        )

    return edit
