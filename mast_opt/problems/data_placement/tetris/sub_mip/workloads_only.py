"""Sub-MIP of workloads alone (tetris), for terms that no data touches: balance of GPUs, what moves, what is left out.

Where remote reads are allowed, such terms depend on work alone. With replicas held where they are, no read counts,
and what is left of the base formulation is small enough for a solver of integer programs to take as a whole.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mast_opt.core.errors import BackendError
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.data_placement.plan import Plan, fill_remote
from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.data_placement.tetris.stage_objective import StageObjective
from mast_opt.problems.data_placement.tetris.sub_mip.params import WorkloadsOnlyParams
from mast_opt.problems.search.interface import SearchContext
from mast_opt.problems.search.sub_mip import LEAST_S, SubMip

LEAST_RESERVE_S = 0.2
"""Least seconds that are reserved for handing the plan over."""


def place_work(
    problem: DataPlacement,
    tools: SearchContext,
    objective: StageObjective,
    plan: Plan,
    left_s: float,
    params: WorkloadsOnlyParams,
) -> Plan | None:
    """The plan with its work placed again, its replicas as they are; None if nothing was found within ``left_s``."""
    none = np.zeros(0, np.int64)
    unread = problem.with_columns(
        {
            "reads.workload": none,
            "reads.dataset": none,
            "reads.mb_per_day": none,
            "workloads.forbidden": problem.workloads.forbidden | problem.reads_outside,
        }
    )
    formulation = base(unread)
    mip, x = objective.staged(formulation.mip), formulation.encode(plan)
    replicas = np.concatenate([block.ids.ravel() for block in mip.columns if block.name == "place"])
    mip = mip.fix(replicas, np.rint(x[replicas]))
    reserved_s = max(params.reserve * left_s, LEAST_RESERVE_S)
    longest_s = params.unhurried_s if math.isinf(left_s) else max(left_s - reserved_s, LEAST_S)
    for own in (params.sub_mip,) if problem.workloads.splittable.any() else (params.integer_sub_mip, params.sub_mip):
        sub_mip = SubMip(tools, own)
        limits = sub_mip.limits(gap=tools.watch.stop.gap, start=x)
        try:
            result = sub_mip(mip, replace(limits, time_limit_s=min(longest_s, own.time_limit_s)))
        except BackendError:  # such as amounts too large for it
            continue
        return None if result.x is None else _with_remote_reads(problem, formulation.decode(result.x))
    return None


def _with_remote_reads(problem: DataPlacement, plan: Plan) -> Plan:
    """The plan of a problem without reads as one of the problem that has them."""
    runs = plan.run_workload, plan.run_region, plan.run_type, plan.run_share
    workload, dataset, source, target, share = fill_remote(problem, plan.place, *runs)
    return replace(
        plan,
        remote_workload=workload,
        remote_dataset=dataset,
        remote_source=source,
        remote_target=target,
        remote_share=share,
    )
