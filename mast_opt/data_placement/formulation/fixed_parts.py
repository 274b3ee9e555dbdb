"""Keeping parts of a data placement: whole datasets, workloads, regions, or GPU types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mast_opt.core.errors import UnsupportedOption
from mast_opt.data_placement.plan import Plan
from mast_opt.data_placement.problem import SHARE, Bools, DataPlacement, Ints
from mast_opt.kind.kind import Freezing

_RUN = ("workload", "region", "gpu_type")


def _rules(problem: DataPlacement, plan: Plan, parts: Mapping[str, Ints]) -> DataPlacement:
    """The problem with pins and bans that leave the named parts no choice.

    Raises:
        UnsupportedOption: work that is split, or that other GPU types would serve with fewer GPUs, since no rule says
            so; or a GPU type.
    """
    if "gpu_type" in parts:
        raise UnsupportedOption(
            "no rule of data placement keeps a GPU type as it is; use an exact solver, such as highs"
        )
    p = problem
    none: Ints = np.zeros(0, np.int64)
    fixed: Bools = np.zeros(p.stored.shape, np.bool_)
    fixed[parts.get("dataset", none)] = True
    fixed[:, parts.get("region", none)] = True
    held: Bools = np.zeros(p.allowed.shape, np.bool_)
    held[parts.get("workload", none)] = True
    held[:, parts.get("region", none)] = True
    runs: Bools = np.zeros(p.allowed.shape, np.bool_)
    runs[plan.run_workload, plan.run_region] = True
    stays = np.unique(plan.run_workload[held[plan.run_workload, plan.run_region]])
    split = stays[np.isin(stays, plan.run_workload[plan.run_share < SHARE])]
    if len(split):
        raise UnsupportedOption(
            f"{p.workloads[split[0]]} runs in parts, which no rule of data placement can keep; use an exact solver"
        )
    work_pinned = p.work_pinned | (held & runs)
    return replace(
        _with_types(p, plan, stays),
        pinned=p.pinned | (fixed & plan.place),
        forbidden=p.forbidden | (fixed & ~plan.place),
        work_pinned=work_pinned,
        work_forbidden=p.work_forbidden | (held & ~runs),
    )


def _with_types(problem: DataPlacement, plan: Plan, stays: Ints) -> DataPlacement:
    """The problem in which work that stays accepts no type but the one that it runs on.

    The objective measures work by the fewest GPUs that it accepts, so a type may only go if that stays the same.
    """
    p = problem
    row = np.searchsorted(plan.run_workload, stays)
    type_of = np.full(len(p.workloads), -1, np.int64)
    type_of[stays] = plan.run_type[row]
    drop = (type_of[p.option_workload] >= 0) & (p.option_type != type_of[p.option_workload])
    region_of = np.zeros(len(p.workloads), np.int64)
    region_of[stays] = plan.run_region[row]
    drop &= p.option_regions[np.arange(len(drop)), region_of[p.option_workload]]
    kept = {
        "option_workload": p.option_workload[~drop],
        "option_type": p.option_type[~drop],
        "option_mgpu": p.option_mgpu[~drop],
    }
    edited = replace(p, **kept)
    changed = np.flatnonzero(edited.demand_mgpu != p.demand_mgpu)
    if len(changed):
        raise UnsupportedOption(
            f"{p.workloads[changed[0]]} runs on a GPU type of which it needs more than of another that it accepts; no "
            "rule of data placement keeps it there; use an exact solver"
        )
    return edited


FREEZING: Freezing[DataPlacement, Plan] = Freezing(
    tables=("placements", "runs"),
    blocks={"place": ("dataset", "region"), "run": _RUN, "part": _RUN},
    rules=_rules,
)
