"""Edits of a data-placement instance that move a limit or give it up; ``amounts`` maps members to units."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from operator import attrgetter

import numpy as np

from mast_opt.core.arrays import IntArray
from mast_opt.core.units import MB_PER_TB
from mast_opt.problems.data_placement.problem import Bools, DataPlacement, Ints

Amounts = Mapping[int, float]
Edit = Callable[[DataPlacement, Amounts], DataPlacement]

ROUNDING = 1e-3
"""Base units by which a solver's amount may be too large before it is rounded up."""


def base_units(amount: float, per_unit: float) -> int:
    """Base units of an edited data placement: rounded up, but not for what is only a solver's rounding."""
    return math.ceil(amount * per_unit - ROUNDING * (1 + amount * per_unit * 1e-6))


def raised(values: Ints, members: Ints, amounts: Amounts, per_unit: float) -> Ints:
    """A copy of a data placement's limits with some raised.

    Args:
        values: the limits, in base units.
        members: their positions, by number of the member.
        amounts: member → units to add.
        per_unit: base units in one unit.
    """
    more = values.copy()
    for member, amount in amounts.items():
        more[members[member]] += base_units(amount, per_unit)
    return more


def more_storage(problem: DataPlacement, amounts: Amounts) -> DataPlacement:
    """The problem with more usable storage: what headroom keeps free comes on top, and a headroom of everything is
    given up."""
    storage, headroom = problem.regions.storage_mb.copy(), problem.regions.headroom_milli.copy()
    for r, amount in amounts.items():
        more = base_units(amount, MB_PER_TB)
        if headroom[r] == 1000:
            headroom[r] = 0
            storage[r] = more
        else:
            storage[r] += -(-more * 1000 // (1000 - int(headroom[r])))
    return replace(problem, regions=replace(problem.regions, storage_mb=storage, headroom_milli=headroom))


def bought_storage(problem: DataPlacement, amounts: Amounts) -> DataPlacement:
    """The problem with more storage, of which the region's headroom keeps its share free."""
    every = np.arange(len(problem.regions))
    return problem.with_columns({"regions.storage_mb": raised(problem.regions.storage_mb, every, amounts, MB_PER_TB)})


def more_cores(problem: DataPlacement, amounts: Amounts) -> DataPlacement:
    """The instance with more CPU: region → cores."""
    every = np.arange(len(problem.regions))
    return problem.with_columns({"regions.cpu_mcores": raised(problem.regions.cpu_mcores, every, amounts, 1000)})


def more_quota(problem: DataPlacement, amounts: Amounts) -> DataPlacement:
    """The instance with higher CPU quotas: position of the quota → cores."""
    every = np.arange(len(problem.cpu_quotas))
    return problem.with_columns({"cpu_quotas.cpu_mcores": raised(problem.cpu_quotas.cpu_mcores, every, amounts, 1000)})


def more_ingress(problem: DataPlacement, amounts: Amounts) -> DataPlacement:
    """Members are positions among the regions whose ingress is limited."""
    limited = np.flatnonzero(problem.regions.ingress_limited)
    return problem.with_columns(
        {"regions.ingress_mb_per_day": raised(problem.regions.ingress_mb_per_day, limited, amounts, MB_PER_TB)}
    )


def more_link(problem: DataPlacement, amounts: Amounts) -> DataPlacement:
    """The instance with wider links: position of the link → TB a day."""
    assert problem.links is not None
    every = np.arange(len(problem.links))
    capacity = raised(problem.links.capacity_mb_per_day, every, amounts, MB_PER_TB)
    return replace(problem, links=replace(problem.links, capacity_mb_per_day=capacity))


def more_copies(problem: DataPlacement, amounts: Amounts) -> DataPlacement:
    """The instance that allows more replicas: dataset → how many more."""
    every = np.arange(len(problem.datasets))
    return problem.with_columns({"datasets.copies_max": raised(problem.datasets.copies_max, every, amounts, 1)})


def fewer_copies(problem: DataPlacement, amounts: Amounts) -> DataPlacement:
    """The instance that needs fewer replicas: dataset → how many fewer."""
    fewest = problem.datasets.copies_min.copy()
    for i, amount in amounts.items():
        fewest[i] -= base_units(amount, 1)
    return replace(problem, datasets=replace(problem.datasets, copies_min=fewest))


def without(column: str, cells: tuple[IntArray, ...]) -> Edit:
    """Clears listed cells of a grid of rules, such as ``datasets.pinned``."""

    def edit(problem: DataPlacement, amounts: Amounts) -> DataPlacement:
        grid: Bools = attrgetter(column)(problem).copy()
        members = list(amounts)
        grid[cells[0][members], cells[1][members]] = False
        return problem.with_columns({column: grid})

    return edit


def supplying(cells: tuple[IntArray, ...], mgpu: Ints) -> Edit:
    """GPUs of a type in regions that have none: as many as one workload needs at most."""

    def edit(problem: DataPlacement, amounts: Amounts) -> DataPlacement:
        supply = problem.regions.supply_mgpu.copy()
        members = list(amounts)
        supply[cells[0][members], cells[1][members]] = mgpu[members]
        return replace(problem, regions=replace(problem.regions, supply_mgpu=supply))

    return edit


def with_remote_reads(problem: DataPlacement, amounts: Amounts) -> DataPlacement:
    """The instance with remote reads allowed, at their price."""
    return replace(problem, remote_reads=True)


def without_workloads(problem: DataPlacement, gone: Collection[int]) -> DataPlacement:
    """The instance with some work taken out; its datasets stay."""
    p = problem
    kept = np.ones(len(p.workloads), np.bool_)
    kept[list(gone)] = False
    number = np.cumsum(kept) - 1
    fewer: dict[str, object] = {"workloads": p.workloads.rows(kept)}
    for relation in (p.options, p.reads, p.current_runs):
        rows = relation.rows(kept[relation.workload])
        fewer[relation.AXIS] = replace(rows, workload=number[rows.workload])
    return p.with_columns(fewer)
