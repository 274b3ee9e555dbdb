"""Two-stage stochastic program of data placement: replicas decided first, where work runs once a scenario has come.

Copies are made before, so they count in the plan for today's instance and in no scenario. A replica where a scenario
allows none, as in a region that is lost, is void there, and work whose data is lost cannot run. What a scenario pins
has to be there before.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from mast_opt.core.arrays import IntArray
from mast_opt.problems.data_placement.analysis.scenarios import without_data
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.problem import Bools, DataPlacement
from mast_opt.problems.kind.analysis_hooks import TwoStage
from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.mip import Mip
from mast_opt.problems.mip.transforms import Extension, extended


def alive(scenario: DataPlacement) -> Bools:
    """[I, R] where the scenario lets a replica be of use."""
    return np.logical_not(scenario.closed)


def formulate(scenario: DataPlacement) -> Formulation[Plan]:
    """The formulation with every copy made before, and no reading of what is nowhere any more."""
    usable = alive(scenario)
    second = scenario.with_columns(
        {
            "datasets.stored": usable,
            "datasets.copies_min": np.zeros_like(scenario.datasets.copies_min),
            "datasets.copies_max": np.full_like(scenario.datasets.copies_max, len(scenario.regions)),
        }
    )
    formulation = base(second)
    mip = formulation.mip
    blocks = {block.name: block for block in mip.columns}
    if "remote" not in blocks or scenario.links is not None:
        return formulation
    remote, place = blocks["remote"], blocks["place"].ids
    assert remote.cells is not None
    dataset = remote.cells[1]
    row = len(mip.row_lower) + np.arange(remote.size)
    regions = len(scenario.regions)
    held = Extension(
        "held",
        rows=remote.size,
        row_upper=0.0,
        entries=[(row, remote.ids, 1.0), (np.repeat(row, regions), place[dataset].ravel(), -1.0)],
    )
    return replace(formulation, mip=extended(mip, held), exact=None)


def shared(mip: Mip) -> IntArray:
    """The columns that say where replicas are."""
    return next(block for block in mip.columns if block.name == "place").ids.ravel()


def recourse(scenario: DataPlacement, plan: Plan, before: bool) -> DataPlacement:
    """The scenario with the plan's replicas in place and no others; ``before`` any of them was copied, for the base.

    Where the plan lacks what the scenario pins, that is an instance without a plan.
    """
    if before:
        return replace(scenario, datasets=replace(scenario.datasets, pinned=plan.place.copy(), forbidden=~plan.place))
    return with_replicas_only(scenario, plan.place)


def with_replicas_only(scenario: DataPlacement, place: Bools) -> DataPlacement:
    """The scenario with these replicas in place, as far as it lets them be of use, and no others."""
    held = place & alive(scenario)
    fixed = scenario.with_columns(
        {
            "datasets.stored": held,
            "datasets.pinned": held | scenario.datasets.pinned,
            "datasets.forbidden": ~held,
            "datasets.copies_min": np.zeros_like(scenario.datasets.copies_min),
            "datasets.copies_max": np.full_like(scenario.datasets.copies_max, len(scenario.regions)),
        }
    )
    lost: Bools = np.logical_not(held.any(axis=1))
    return without_data(fixed, lost)


def _alive_flat(scenario: DataPlacement) -> np.ndarray[Any, Any]:
    """Mask of the replicas that a scenario leaves, as the columns of the two-stage program."""
    return alive(scenario).ravel()


TWO_STAGE = TwoStage("replicas", formulate, shared, _alive_flat, recourse)
