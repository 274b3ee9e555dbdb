"""Replicas with which the worst loss of a region leaves the fewest GPUs missing: the goal ``safest``.

A two-stage program, as of ``whatif --robust worst``: replicas are decided once, and where work runs again after the
loss of each region. Where a loss is far from the worst, work is in parts there, which is quicker and never worse.
Copies weigh much less than the worst loss, and as much as the work that they keep going after the others.
"""

import time
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.core.solve_result import SolveParams
from mast_opt.core.units import MB_PER_TB, MILLI
from mast_opt.problems import backends
from mast_opt.problems.data_placement.analysis import scenarios
from mast_opt.problems.data_placement.analysis.second_copies import (
    COPIES,
    NO_ROOM_LEFT,
    NOT_WORTH,
    is_no_room,
    obstacle,
    second_copies,
)
from mast_opt.problems.data_placement.analysis.two_stage import TWO_STAGE
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.data_placement.formulation.size import size
from mast_opt.problems.data_placement.goals import FIRST
from mast_opt.problems.data_placement.problem import Bools, DataPlacement
from mast_opt.problems.kind.overrides import Overrides, Secured
from mast_opt.problems.mip import Mip, frozen
from mast_opt.problems.mip.extensive import Extensive, extensive
from mast_opt.problems.mip.transforms import Extension, extended

LARGEST, COLUMNS_A_SECOND, LONGEST_S = 60_000, 1_000, 60.0
"""Most columns of the program, in all and for each second of the time; the time where none is stated."""
NEAR = 0.9
"""Part of the worst loss from which on work is whole after a loss, as it is when the loss is judged."""
GAP, ROUNDING = 1e-2, 1e-6
"""Gap of the program; a share of work that is none."""
BEYOND, COPYING = 10.0, 0.07
"""Weights of a GPU missing after the worst loss and, as a part of all work, of a copy of all data; the mean of the GPUs
that stand still weighs 1."""


def secured(problem: DataPlacement, params: SolveParams | None) -> Secured:
    """The instance with the replicas of the safest plan that is found; with a second copy of all data that can have
    one, where the program is too large for the time, or where nothing is found in it.

    It minimises the GPUs missing after the worst loss first, then copies, against the mean of the work that stands
    still. Copies that no work reads after a loss are left to the objective of the instance.

    Args:
        problem: the instance.
        params: limits of all that is solved; None where replicas are not to be chosen.
    """
    found = None if params is None else _chosen(problem, params)
    if found is None:
        copies, single = second_copies(problem, size(problem).columns)
        found = Secured(problem.with_copies_min(copies), overrides=Overrides(copies_min=copies, single_copies=single))
    sizes_tb = dict(zip(problem.datasets.labels, (problem.datasets.size_mb / MB_PER_TB).tolist(), strict=True))
    return replace(found, overrides=replace(found.overrides, sizes_tb=sizes_tb))


def _chosen(problem: DataPlacement, params: SolveParams) -> Secured | None:
    """The instance with the replicas of the safest plan; None where none is found."""
    began, limit_s = time.monotonic(), params.time_limit_s or LONGEST_S
    demand_gpus = float(problem.demand_mgpu.sum()) / MILLI
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
        solve(replace(_minimised(mip, missing), integral=frozen(np.zeros_like(mip.integral))), params).bound or 0.0
        for mip, (missing, _) in zip(mips[1:], counted, strict=True)
    ]
    program = _program(own.mip.minimise({"copy": COPYING * demand_gpus}).cost, joint, counted, least)
    left_s = max(0.01, limit_s - (time.monotonic() - began))
    found = solve(program, replace(params, gap=max(GAP, params.gap), time_limit_s=left_s)).x
    if found is None:
        return None
    decided = own.decode(found[: len(own.mip.cost)])
    place = decided.place
    needed = np.zeros_like(place)
    for mip, columns_of in zip(mips[1:], joint.columns[1:], strict=True):
        needed |= _needed(problem, mip, found[columns_of], place)
    plan = replace(decided, place=needed)
    stated = _stated(problem, needed)
    return Secured(problem.with_copies_min(stated.copies_min).with_replicas(stated.replicas), plan, max(least), stated)


def _stated(problem: DataPlacement, needed: Bools) -> Overrides:
    """The copies that a plan states to have, of the data that gets a second one, and why other data gets none."""
    p, labels, several = problem, problem.datasets.labels, needed.sum(axis=1) >= COPIES
    regions, held = p.regions.labels, needed & ~p.closed
    fewer = p.datasets.copies_min < COPIES

    def why(i: int) -> str:
        return obstacle(p, i) or (NO_ROOM_LEFT if is_no_room(p, i, needed) else NOT_WORTH)

    return Overrides(
        copies_min={labels[i]: COPIES for i in np.flatnonzero(fewer & several).tolist()},
        single_copies={labels[i]: why(i) for i in np.flatnonzero(fewer & ~several).tolist()},
        replicas={
            labels[i]: tuple(regions[r] for r in np.flatnonzero(held[i]).tolist())
            for i in np.flatnonzero(held.any(axis=1)).tolist()
        },
    )


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
    """Costs of the columns after a loss: GPUs over the supply or of work that stands still; and all work that does, in
    GPUs or what its cores are worth in them.

    Remote reads count as many GPUs over the supply as they weigh when a loss is judged, by the goal ``least-change``.
    """
    p, missing, still = problem, np.zeros(len(mip.cost)), np.zeros(len(mip.cost))
    for block in mip.columns:
        if block.name in ("unserved", "unserved_part"):
            work = np.arange(block.size) if block.cells is None else block.cells[0]
            missing[block.ids.ravel()] = p.fewest_mgpu[work] / MILLI
            still[block.ids.ravel()] = p.demand_mgpu[work] / MILLI
        elif block.name == "overload":
            missing[block.ids.reshape(-1, len(p.tiers))[:, -1]] = 1 / MILLI
    far = FIRST["remote"] / FIRST["overload"] * float(p.demand_mgpu.sum()) / MILLI
    return missing + far * mip.minimise({"remote": 1.0}).cost, still


def _program(
    copies: FloatArray, joint: Extensive, counted: list[tuple[FloatArray, FloatArray]], least: list[float]
) -> Mip:
    """The program with a column for what is missing after the worst loss beyond what always is.

    Args:
        copies: cost of the copies, for each column of the instance's own program.
        joint: all programs, that one first.
        counted: what is missing and what stands still after each loss.
        least: what is missing at least after each loss.
    """
    width, rows = len(joint.mip.cost), len(joint.mip.row_lower)
    integral, order, far = joint.mip.integral.copy(), np.zeros(width + 1), NEAR * max(least)
    entries: list[tuple[IntArray, IntArray, ArrayLike]] = []
    order[: len(copies)] = copies
    order[width] = BEYOND
    whole = np.array(least) >= far
    for at, (place, (missing, still)) in enumerate(zip(joint.columns[1:], counted, strict=True)):
        used = np.flatnonzero(missing)
        entries.append((np.full(len(used), rows + at), place[used], missing[used]))
        order[place] += still / len(counted)
        if not whole[at]:
            integral[place[place >= len(joint.columns[0])]] = False
    entries.append((rows + np.arange(len(counted)), np.full(len(counted), width), -1.0))
    most = np.where(whole, max(least), far)
    more = Extension("beyond", columns=1, rows=len(counted), row_upper=most, entries=entries)
    return _minimised(extended(replace(joint.mip, integral=frozen(integral)), more), order)


def _minimised(mip: Mip, cost: FloatArray) -> Mip:
    """The program with other costs."""
    return replace(mip, cost=frozen(cost), offset=0.0)
