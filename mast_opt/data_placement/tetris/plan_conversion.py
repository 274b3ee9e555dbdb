"""Between plans and the search's view of them: one option and one region for every workload."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mast_opt.data_placement.dependent_values import fill_copies, fill_remote
from mast_opt.data_placement.plan import Plan
from mast_opt.data_placement.problem import SHARE, Bools, DataPlacement, Ints
from mast_opt.data_placement.tetris.instance_arrays import Arrays
from mast_opt.data_placement.tetris.state import State, state_of


class Snapshot(NamedTuple):
    """The decisions of a state. Region R means left out."""

    option: Ints
    region: Ints
    place: Bools


def decisions(s: State) -> Snapshot:
    """Those of a state, to keep."""
    return Snapshot(s.option.copy(), s.region.copy(), s.place.copy())


def plan_of(problem: DataPlacement, snapshot: Snapshot) -> Plan:
    """The plan, with copies and remote reads from the first region that holds the dataset."""
    runs = np.flatnonzero(snapshot.region < len(problem.regions))
    run = (
        runs,
        snapshot.region[runs],
        problem.option_type[snapshot.option[runs]],
        np.full(len(runs), SHARE, np.int64),
    )
    return Plan(
        snapshot.place, *run, *fill_copies(problem, snapshot.place), *fill_remote(problem, snapshot.place, *run)
    )


def restore(a: Arrays, s: State, snapshot: Snapshot) -> None:
    """Make the state that of a snapshot, keeping its random numbers."""
    fresh = state_of(a, snapshot.option, snapshot.region, snapshot.place, 1)
    for name in State._fields:
        if name != "random":
            getattr(s, name)[...] = getattr(fresh, name)


def snapshot_of(problem: DataPlacement, plan: Plan) -> Snapshot:
    """What the search can start from: split work is put where most of it runs."""
    workloads, regions = len(problem.workloads), len(problem.regions)
    first = np.searchsorted(problem.option_workload, np.arange(workloads))
    option, region = first.copy(), np.full(workloads, regions)
    order = np.argsort(plan.run_share, kind="stable")
    types = len(problem.gpu_types) + 1
    key = problem.option_workload * types + problem.option_type
    by_key = np.argsort(key, kind="stable")
    wanted = plan.run_workload[order] * types + plan.run_type[order]
    at = np.minimum(np.searchsorted(key[by_key], wanted), len(key) - 1)
    known = key[by_key][at] == wanted
    option[plan.run_workload[order][known]] = by_key[at][known]
    region[plan.run_workload[order][known]] = plan.run_region[order][known]
    return Snapshot(option, region, plan.place)
