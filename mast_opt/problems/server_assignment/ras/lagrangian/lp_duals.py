"""Dual prices of ras from linear programs: the first ones from an aggregated one, later those of the formulation.

The aggregated program takes switchboards together, so that only types and reservations count. It is written as the dual
program, whose columns are the prices; a few thousand of them, whatever the number of servers.

The volume algorithm comes near the best prices soon and then creeps; where capacity lacks it hardly moves, because
shortfall outweighs all else and prices are needed to four digits. A simplex finds them exactly at sizes that it takes.
"""

import itertools

import numpy as np
from scipy.sparse import csr_array, diags_array, hstack

from mast_opt.core.solve_result import SolveParams
from mast_opt.problems.mip import Mip, MipBuilder, unnamed
from mast_opt.problems.search.interface import MipSolver
from mast_opt.problems.server_assignment.problem import SHARED, Bools
from mast_opt.problems.server_assignment.ras.lagrangian.relaxation import Relaxed
from mast_opt.problems.server_assignment.verification.certificate import Prices


def aggregated_lp_duals(r: Relaxed, solver: MipSolver, params: SolveParams) -> Prices | None:
    """Prices (ras) of types and of guaranteed capacity; None where the solver found none in its time."""
    p = r.problem
    result = solver(_dual(r), params)
    if result.x is None:
        return None
    types, reservations = len(p.types), len(p.reservations)
    once, survive = result.x[:types], result.x[types : types + reservations].copy()
    short = np.flatnonzero(r.short_today)
    first = types + reservations
    survive[short] += result.x[first : first + len(short)]
    boards = len(p.switchboards)
    loss = np.zeros(boards)
    if p.pool is not None:
        loss += (r.buffer + survive[p.pool]) / boards
    none = np.zeros(len(p.affinities))
    return r.within(Prices(once[p.servers.type[p.stocks.first]], survive, loss, none, none.copy()))


def _dual(r: Relaxed) -> Mip:
    """Columns: prices of types, of each reservation's capacity, of what each has today, and of its bounds."""
    p, pairs = r.problem, r.pairs
    types, width, boards = len(p.types), len(p.reservations), len(p.switchboards)
    code, at = np.unique(pairs.type * width + pairs.reservation, return_inverse=True)
    kind, who = code // width, code % width
    in_use, idle = (np.bincount(at, number, len(code)) for number in (pairs.in_use, pairs.idle))
    size = np.bincount(p.servers.type, minlength=types)
    asked = p.reservations.asked_mrru
    backed = (p.reservations.buffer == SHARED) & (p.pool is not None)
    kept = np.where(p.buffered, 1 - 1 / boards, 1.0)
    least = np.where(p.buffered | backed, r.buffer / boards, 0.0)
    m = MipBuilder("server_assignment_prices")
    once = m.columns("once", [p.types])
    survive = m.columns("survive", [p.reservations.labels], upper=np.full(width, r.shortfall))
    cells = [p.types, p.reservations.labels]
    short = np.flatnonzero(r.short_today)
    beyond = m.columns("beyond", [p.reservations.labels], [short])
    stays = m.columns("stays", cells, [kind, who])
    over_in_use = m.columns("over_in_use", cells, [kind, who])
    over_idle = m.columns("over_idle", cells, [kind, who])
    worth = p.reservations.value_mrru[who, kind]
    rows = m.rows("worth", cells, [kind, who], upper=r.use + least[who] * worth)
    every = np.arange(len(code))
    rows.add(every, survive[who], worth * kept[who])
    at_beyond = np.full(width, -1)
    at_beyond[short] = np.arange(len(short))
    lacks = np.flatnonzero(at_beyond[who] >= 0)
    rows.add(lacks, beyond[at_beyond[who[lacks]]], (worth * kept[who])[lacks])
    if p.pool is not None:
        shares = np.flatnonzero(backed[who])
        rows.add(shares, np.full(len(shares), survive[p.pool]), -worth[shares] / boards)
    rows.add(every, once[kind], -1)
    rows.add(every, stays)
    for name, over, price in (("left_in_use", over_in_use, r.in_use), ("left_idle", over_idle, r.idle)):
        row = m.rows(name, cells, [kind, who], upper=np.full(len(code), price))
        row.add(every, stays)
        row.add(every, over, -1)
    m.term("proven", survive, -asked)
    m.term("no_shorter", beyond, (r.short_today - asked)[short])
    m.term("stocks", once, size)
    m.term("held", stays, -(in_use + idle))
    m.term("left", np.concatenate([over_in_use, over_idle]), np.concatenate([in_use, idle]))
    return m.build(dict.fromkeys(("proven", "no_shorter", "stocks", "held", "left"), 1.0))


def lp_duals(r: Relaxed, mip: Mip, solver: MipSolver, params: SolveParams) -> Prices | None:
    """Prices (ras) of the rows of the formulation; None where the solver found none in its time.

    Args:
        mip: the program of the problem, with the weights of the search as its cost.
    """
    p, weights = r.problem, [weight for weight in r.weights.values() if weight > 0]
    scale = len(p.servers) / max(min(weights, default=1.0), 1.0)
    result = solver(_dual_of(r, mip, scale), params)
    if result.x is None:
        return None
    price = dict(zip([block.name for block in mip.rows], np.split(result.x / scale, _ends(mip)), strict=False))
    loss = np.zeros(len(p.switchboards))
    if p.pool is not None:
        loss = price["loss"].reshape(-1, len(p.switchboards))[np.flatnonzero(p.buffered) == p.pool][0]
    return r.within(Prices(price["once"], price["survive"], loss, price["affinity_most"], price["affinity_least"]))


def _dual_of(r: Relaxed, mip: Mip, scale: float) -> Mip:
    """A column for each row and for each upper bound of ``mip``, whose rows all have one side and whose columns begin
    at 0. Costs are times ``scale``, so that a solver's tolerances, which are absolute, suit them."""
    rows = csr_array((mip.value, mip.index, mip.row_start), shape=mip.shape)
    least = np.isfinite(mip.row_lower)
    sign = np.where(least, 1.0, -1.0)
    bounded = np.flatnonzero(np.isfinite(mip.col_upper) & ~_implied(r, len(mip.cost)))
    upper = csr_array((np.ones(len(bounded)), (bounded, np.arange(len(bounded)))), shape=(len(mip.cost), len(bounded)))
    columns = hstack([rows.T @ diags_array(sign), -upper]).tocsr()
    cost = np.concatenate([-sign * np.where(least, mip.row_lower, mip.row_upper), mip.col_upper[bounded]])
    return unnamed("server_assignment_dual", columns, cost, row_upper=scale * mip.cost)


def _implied(r: Relaxed, width: int) -> Bools:
    """[columns] is the upper bound that of the stock anyway? ``n`` comes first, in the order of the pairs."""
    implied = np.zeros(width, np.bool_)
    implied[: len(r.pairs.stock)] = r.pairs.worth_mrru > 0
    return implied


def _ends(mip: Mip) -> list[int]:
    """Ends of the blocks of rows in ras' linear program."""
    return list(itertools.accumulate(block.size for block in mip.rows))
