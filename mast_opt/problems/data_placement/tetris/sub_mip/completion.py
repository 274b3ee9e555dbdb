"""Sub-MIPs that complete a tetris plan: shares of splittable work, sources across links, or a first feasible plan.

Terms that no data touches (balance of GPUs, what moves, what is left out) depend on work alone where remote reads are
allowed. With replicas held where they are, no read counts, and what is left of the base formulation is small enough
for a solver of integer programs to take as a whole.
"""

import math
from dataclasses import replace

import numpy as np

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.core.errors import BackendError
from mast_opt.core.solve_result import SolveParams
from mast_opt.problems.data_placement.formulation.formulation import base, exact_shares
from mast_opt.problems.data_placement.plan import Plan, fill_remote, today
from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.data_placement.tetris.params import TetrisParams
from mast_opt.problems.data_placement.tetris.stage_objective import StageObjective
from mast_opt.problems.data_placement.tetris.strategy import Finish
from mast_opt.problems.data_placement.tetris.sub_mip.fix_and_optimise import FixAndOptimise
from mast_opt.problems.data_placement.tetris.sub_mip.params import WorkloadsOnlyParams
from mast_opt.problems.mip import Mip
from mast_opt.problems.search.interface import SearchContext
from mast_opt.problems.search.sub_mip import LEAST_S, SubMip

TOLERANCE = 1e-6
"""Relative difference from its limit from which on a row counts as broken."""
LEAST_RESERVE_S = 0.2
"""Least seconds that are reserved for handing the plan over."""


def complete_plan(
    problem: DataPlacement,
    tools: SearchContext,
    plan: Plan | None,
    objective: StageObjective,
    start: Plan | None,
    until_s: float,
    finish: Finish,
    params: TetrisParams,
) -> Plan | None:
    """The plan with what the search leaves open completed, and improved by sub-MIPs where the strategy has them, until
    the watch shows ``until_s``.

    Never worse than ``start``, where that breaks no rule and no cap.
    """
    if finish is Finish.SHARES:
        return optimise_shares(problem, tools, plan, objective, start, params)
    before = optimise_shares(problem, tools, plan, objective, start, params) if problem.links is None else None
    first = before or plan or start
    better = None
    if first is not None and finish is Finish.WORKLOADS:
        left_s = until_s - tools.watch.elapsed_s
        better = place_work(problem, tools, objective, first, left_s, params.workloads_only)
    elif first is not None:
        whole = finish is Finish.WHOLE
        better = FixAndOptimise(problem, tools, objective, params.neighbourhoods, until_s, whole).improve(first)
    if better is not None and math.isinf(objective.worth(problem, better)):
        better = optimise_shares(problem, tools, better, objective, None, params)
    return _best(problem, objective, before, today(problem), start, better) or optimise_shares(
        problem, tools, None, objective, None, params
    )


def optimise_shares(
    problem: DataPlacement,
    tools: SearchContext,
    plan: Plan | None,
    objective: StageObjective,
    start: Plan | None,
    params: TetrisParams,
) -> Plan | None:
    """The plan with its open shares optimised, or a feasible one where there was none; never worse than plan or start.

    A start that breaks a rule or a cap counts only where nothing else is found: then what stands in no row that it
    breaks is kept, and the rest is chosen again. The whole program is solved last.
    """
    rounds = problem.links is not None or bool(problem.workloads.splittable.any())
    if plan is not None and not rounds:
        return plan
    given, start, best = start, _best(problem, objective, start), _best(problem, objective, plan, start)
    size = len(problem.reads) * len(problem.regions)
    if size > params.completion.read_cells:
        return best
    formulation = exact_shares(problem) if rounds else base(problem)
    mip = objective.stated(formulation.mip)
    sub_mip = SubMip(tools, params.completion.sub_mip)

    def solved(program: Mip, x: FloatArray | None) -> Plan | None:
        result = sub_mip(program, _limits(sub_mip, tools, objective, x, params))
        return None if result.x is None else formulation.decode(result.x)

    for held in (plan, start):
        if held is not None:
            x, fixed = formulation.encode(held), _fixed_integers(mip)
            feasible = _best(problem, objective, held) is not None
            best = _best(problem, objective, best, solved(mip.fix(fixed, np.rint(x[fixed])), x if feasible else None))
    if best is None and given is not None:
        x, fixed = formulation.encode(given), _fixed_integers(mip)
        kept = fixed[~_in_broken_rows(mip, x)[fixed]]
        best = _best(problem, objective, solved(mip.fix(kept, np.rint(x[kept])), None))
    if best is None and (tools.watch.stop.iterations is None or size <= params.completion.counted_cells):
        best = _best(problem, objective, solved(mip, None))
    return best


def _best(problem: DataPlacement, objective: StageObjective, *plans: Plan | None) -> Plan | None:
    """The first of the best plans; None if each breaks a rule or a cap."""
    known = [(objective.worth(problem, plan), plan) for plan in plans if plan is not None]
    worth, best = min(known, key=lambda pair: pair[0], default=(math.inf, None))
    return best if math.isfinite(worth) else None


def _limits(
    sub_mip: SubMip, tools: SearchContext, objective: StageObjective, start: FloatArray | None, params: TetrisParams
) -> SolveParams:
    """Limits of the sub-MIP; where rounds are counted, so are nodes, and the clock has no say."""
    stop, own = tools.watch.stop, params.completion
    limits = sub_mip.limits(gap=stop.gap / params.lexicographic_weight if objective.caps else stop.gap, start=start)
    if stop.iterations is not None:
        return replace(limits, time_limit_s=None, node_limit=min(own.nodes, own.sub_mip.node_limit))
    return replace(limits, time_limit_s=max(own.least_s, min(own.sub_mip.time_limit_s, tools.watch.remaining_s)))


def _fixed_integers(mip: Mip) -> IntArray:
    """Columns of what the search has decided: replicas, and work that is not split."""
    return np.concatenate([block.ids.ravel() for block in mip.columns if block.name in ("place", "run", "unserved")])


def _in_broken_rows(mip: Mip, x: FloatArray) -> BoolArray:
    """[columns] True for those that stand in a row that does not hold at x."""
    activity = mip.activity(x)
    slack = TOLERANCE * np.maximum(1.0, np.abs(activity))
    broken = (activity < mip.row_lower - slack) | (activity > mip.row_upper + slack)
    found = np.zeros(len(mip.cost), np.bool_)
    found[mip.index[np.repeat(broken, np.diff(mip.row_start))]] = True
    return found


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
    return plan.with_rows(remote=fill_remote(problem, plan.place, *plan.rows("run")))
