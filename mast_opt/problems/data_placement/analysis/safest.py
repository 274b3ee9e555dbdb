"""Replicas with which the worst loss of a region leaves the fewest GPUs missing: the goal ``safest``.

A two-stage program, as of ``whatif --robust worst``: replicas are decided once, and where work runs again after the
loss of each region. Where a loss is far from the worst, work is in parts there, which is quicker and never worse.
"""

import time
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.core.solve_result import SolveParams
from mast_opt.core.units import MILLI
from mast_opt.problems import backends
from mast_opt.problems.data_placement.analysis import scenarios
from mast_opt.problems.data_placement.analysis.two_stage import TWO_STAGE
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.data_placement.formulation.size import size
from mast_opt.problems.data_placement.goals import FIRST
from mast_opt.problems.data_placement.problem import Bools, DataPlacement
from mast_opt.problems.kind.overrides import Secured
from mast_opt.problems.mip import Mip, frozen
from mast_opt.problems.mip.extensive import Extensive, extensive
from mast_opt.problems.mip.transforms import Extension, extended

LARGEST, COLUMNS_A_SECOND, LONGEST_S = 60_000, 1_000, 60.0
"""Most columns of the program, in all and for each second of the time; the time where none is stated."""
NEAR = 0.9
"""Part of the worst loss from which on work is whole after a loss, as it is when the loss is judged."""
GAP, COPYING, ROUNDING = 1e-3, 10.0, 1e-6
"""Gap of the program; GPUs for which a copy of all data counts; a share of work that is none."""


def secured(problem: DataPlacement, params: SolveParams) -> Secured | None:
    """The instance with the replicas of the safest plan that is found; None where it is too large for the time, or
    where nothing is found in it.

    It minimises the GPUs missing after the worst loss, the mean of those that stand still, and a little what is copied.
    Copies that no work reads after a loss are left to the objective of the instance.

    Args:
        problem: the instance, with the copies that the goal asks for.
        params: limits of all that is solved.
    """
    began, limit_s = time.monotonic(), params.time_limit_s or LONGEST_S
    columns = size(problem).columns * (len(problem.regions) + 1)
    if columns > min(LARGEST, COLUMNS_A_SECOND * limit_s):
        return None
    own, instances = base(problem), [_after(problem, name) for name in problem.regions.labels]
    mips = [own.mip, *(TWO_STAGE.formulate(one).mip for one in instances)]
    alive = [TWO_STAGE.alive(one) for one in (problem, *instances)]
    joint = extensive(mips, [TWO_STAGE.shared(mip) for mip in mips], alive)
    counted = [_missing(one, mip) for one, mip in zip(instances, mips[1:], strict=True)]
    solve = backends.get("highs").solve
    least = [
        solve(replace(_minimised(mip, over + still), integral=frozen(np.zeros_like(mip.integral))), params).bound or 0.0
        for mip, (over, still) in zip(mips[1:], counted, strict=True)
    ]
    program = _program(own.mip, joint, counted, [one >= NEAR * max(least) for one in least])
    left_s = max(0.01, limit_s - (time.monotonic() - began))
    found = solve(program, replace(params, gap=max(GAP, params.gap), time_limit_s=left_s))
    if found.x is None:
        return None
    plan = own.decode(found.x[: len(own.mip.cost)])
    needed = np.zeros_like(plan.place)
    for mip, place in zip(mips[1:], joint.columns[1:], strict=True):
        needed |= _needed(problem, mip, found.x[place], plan.place)
    return Secured(scenarios.with_replicas(problem, replace(plan, place=needed)), plan, max(least))


def _needed(problem: DataPlacement, mip: Mip, x: FloatArray, place: Bools) -> Bools:
    """Mask [I, R] of the replicas that work reads after a loss; all of a dataset where it is read from elsewhere."""
    p, here = problem, np.zeros((len(problem.workloads), len(problem.regions)), np.bool_)
    for block in mip.columns:
        if block.name in ("run", "part") and block.cells is not None:
            runs = x[block.ids.ravel()] > ROUNDING
            here[block.cells[0][runs], block.cells[1][runs]] = True
    read = np.zeros_like(place)
    np.logical_or.at(read, p.reads.dataset, here[p.reads.workload])
    far = np.any(read & ~place, axis=1)
    found: Bools = place & (read | far[:, None])
    return found


def _after(problem: DataPlacement, region: str) -> DataPlacement:
    """The instance after the loss of a region, in which work that cannot be served is priced and no limit holds."""
    return replace(scenarios.priced(scenarios.lose_regions(problem, [region])), limits={})


def _missing(problem: DataPlacement, mip: Mip) -> tuple[FloatArray, FloatArray]:
    """Costs of the columns after a loss: GPUs over the supply, and GPUs of work that stands still.

    Remote reads count as many GPUs over the supply as they weigh when a loss is judged, by the goal ``least-change``.
    """
    p, over, still = problem, np.zeros(len(mip.cost)), np.zeros(len(mip.cost))
    for block in mip.columns:
        if block.name in ("unserved", "unserved_part"):
            work = np.arange(block.size) if block.cells is None else block.cells[0]
            still[block.ids.ravel()] = p.fewest_mgpu[work] / MILLI
        elif block.name == "overload":
            over[block.ids.reshape(-1, len(p.tiers))[:, -1]] = 1 / MILLI
    far = FIRST["remote"] / FIRST["overload"] * float(p.demand_mgpu.sum()) / MILLI
    return over + far * mip.minimise({"remote": 1.0}).cost, still


def _program(own: Mip, joint: Extensive, counted: list[tuple[FloatArray, FloatArray]], whole: list[bool]) -> Mip:
    """The program with a column that is at least what is missing after every loss.

    Args:
        own: program of the instance.
        joint: all programs, that one first.
        counted: what is over the supply and stands still after each loss.
        whole: for each loss, whether work is whole after it.
    """
    width, rows = len(joint.mip.cost), len(joint.mip.row_lower)
    integral, order = joint.mip.integral.copy(), np.zeros(width + 1)
    entries: list[tuple[IntArray, IntArray, ArrayLike]] = []
    order[: len(own.cost)] = COPYING * own.minimise({"copy": 1.0}).cost
    order[width] = 1.0
    for at, (place, (over, still), keep) in enumerate(zip(joint.columns[1:], counted, whole, strict=True)):
        used = np.flatnonzero(over + still)
        entries.append((np.full(len(used), rows + at), place[used], (over + still)[used]))
        order[place] += still / len(counted)
        if not keep:
            integral[place[place >= len(joint.columns[0])]] = False
    entries.append((rows + np.arange(len(counted)), np.full(len(counted), width), -1.0))
    more = Extension("worst", columns=1, rows=len(counted), row_upper=0.0, entries=entries)
    return _minimised(extended(replace(joint.mip, integral=frozen(integral)), more), order)


def _minimised(mip: Mip, cost: FloatArray) -> Mip:
    """The program with other costs."""
    return replace(mip, cost=frozen(cost), offset=0.0)
