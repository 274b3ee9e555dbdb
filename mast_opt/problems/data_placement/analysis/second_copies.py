"""Second copies of data: which datasets can have one at the same time, and why the others cannot."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mast_opt.core.arrays import IntArray
from mast_opt.core.solve_result import SolveParams
from mast_opt.core.units import MB_PER_TB
from mast_opt.problems import backends
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.data_placement.problem import Bools, DataPlacement
from mast_opt.problems.mip.program import Term
from mast_opt.problems.mip.transforms import Extension, extended

COPIES = 2
"""Copies that data has to have so that no region takes any with it."""
TRIED_S, GAP = 20.0, 1e-3
"""Time for the program that decides which datasets get a second copy, and its gap."""
LARGEST = 500_000
"""Programs with more columns are not built for this: every copy that the rules allow is then asked for."""
NOT_WORTH = "too little work would go on with a second one"
NO_ROOM_LEFT = "the other second copies leave no room for one"
NO_ROOM = "second copies of all data do not fit together: storage, ingress, links or limits of the plan"


def second_copies(problem: DataPlacement, columns: int) -> tuple[Mapping[str, int], Mapping[str, str]]:
    """Dataset → the copies to ask for, for those that need no two today; and dataset → why it gets no second one.

    Of data for which there is not room enough, that of the work with most GPUs comes first.

    Args:
        problem: the instance.
        columns: number of columns of its program.
    """
    p, labels = problem, problem.datasets.labels
    fewer = p.datasets.copies_min < COPIES
    asked = fewer & (np.minimum((~p.closed).sum(axis=1), p.datasets.copies_max) >= COPIES)
    shut = {labels[i]: obstacle(p, i) for i in np.flatnonzero(fewer & ~asked).tolist()}
    wanted = {labels[i]: COPIES for i in np.flatnonzero(asked).tolist()}
    if not wanted:
        return {}, shut
    lacking = _lacking(p.with_copies_min(wanted), asked) if columns <= LARGEST else np.zeros_like(asked)
    for i in np.flatnonzero(lacking).tolist():
        del wanted[labels[i]]
        shut[labels[i]] = obstacle(p, i) or NO_ROOM
    return wanted, shut


def _lacking(doubled: DataPlacement, asked: Bools) -> Bools:
    """Mask [I] of the datasets that are left with fewer copies, by an exact program; none where it finds no plan."""
    p, own = doubled, np.flatnonzero(asked)
    mip = base(p).mip
    rows: IntArray = next(block for block in mip.rows if block.name == "copies").ids[own]
    first = len(mip.cost)
    short = first + np.arange(len(own))
    mip = extended(
        mip,
        Extension("short", columns=len(own), col_upper=1.0, integral=True, entries=[(rows, short, 1.0)]),
    )
    used = np.bincount(p.reads.dataset, p.fewest_mgpu[p.reads.workload].astype(np.float64), len(p.datasets))[own]
    weight = 1.0 + used / max(float(used.mean()), 1.0)
    program = replace(mip, terms={**mip.terms, "short": Term(short, weight, 0.0)}).minimise({"short": 1.0})
    result = backends.get("highs").solve(program, SolveParams(TRIED_S, gap=GAP, threads=1))
    found = np.zeros_like(asked)
    if result.x is not None:
        found[own] = result.x[short] > 0.5
    return found


def is_no_room(problem: DataPlacement, i: int, place: Bools) -> bool:
    """Whether no further region can take a dataset next to what a plan stores and copies."""
    p, size = problem, problem.datasets.size_mb
    new = place & ~p.datasets.stored
    room = (p.usable_storage_mb - size @ place >= size[i]) & ~p.closed[i] & ~place[i]
    free = ~p.regions.ingress_limited | p.datasets.stored[i] | (p.ingress_mb - size @ new >= size[i])
    copied_mb = float(p.limits.get("copied_tb", np.inf)) * MB_PER_TB - float((size @ new).sum())
    return not np.any(room & free & (p.datasets.stored[i] | (copied_mb >= size[i])))


def obstacle(problem: DataPlacement, i: int) -> str:
    """The reason why no further region can take a dataset by itself; empty if one can."""
    p, size = problem, int(problem.datasets.size_mb[i])
    if np.count_nonzero(~p.closed[i]) < COPIES:
        return "residency and bans leave one region"
    if p.datasets.copies_max[i] < COPIES:
        return "copies_max is 1"
    others = ~p.closed[i] & ~p.datasets.stored[i]
    if not np.any(others & (p.usable_storage_mb >= size)):
        return "larger than the storage of every other region"
    if not np.any(others & (~p.regions.ingress_limited | (p.ingress_mb >= size))):
        return "larger than what may be copied into any other region in the days"
    return ""
