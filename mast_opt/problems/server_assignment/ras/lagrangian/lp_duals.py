"""LP duals for ras's Lagrangian bound: the best prices in fractions, from the dual of the linear relaxation.

The volume algorithm comes near them soon and then creeps; where capacity lacks it hardly moves, because shortfall
outweighs all else and prices are needed to four digits. A simplex finds them exactly at sizes that it takes.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.sparse import csr_array, diags_array, hstack

from mast_opt.core.solve_result import SolveParams
from mast_opt.problems.mip import Mip, unnamed
from mast_opt.problems.search.interface import MipSolver
from mast_opt.problems.server_assignment.problem import Bools
from mast_opt.problems.server_assignment.ras.lagrangian.relaxation import Relaxed
from mast_opt.problems.server_assignment.verification.certificate import Prices


def lp_duals(r: Relaxed, mip: Mip, solver: MipSolver, params: SolveParams) -> Prices | None:
    """Prices of the rows of the formulation; None where the solver found none in its time.

    Args:
        mip: the program of the problem, with the weights of the search as its cost.
    """
    p, weights = r.problem, [weight for weight in r.weights.values() if weight > 0]
    scale = len(p.servers) / max(min(weights, default=1.0), 1.0)
    result = solver(_dual(r, mip, scale), params)
    if result.x is None:
        return None
    price = dict(zip([block.name for block in mip.rows], np.split(result.x / scale, _ends(mip)), strict=False))
    loss = np.zeros(len(p.switchboards))
    if p.pool is not None:
        loss = price["loss"].reshape(-1, len(p.switchboards))[np.flatnonzero(p.buffered) == p.pool][0]
    return r.within(Prices(price["once"], price["survive"], loss, price["affinity_most"], price["affinity_least"]))


def _dual(r: Relaxed, mip: Mip, scale: float) -> Mip:
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
    return list(itertools.accumulate(block.size for block in mip.rows))
