"""Rounding heuristic of ras (server assignment): from the fractional plan of the prices to whole servers."""

from __future__ import annotations

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.problems.server_assignment.problem import Ints
from mast_opt.problems.server_assignment.ras.state import RasArrays


def round_relaxation(f: RasArrays, size: Ints, servers: FloatArray) -> Ints:
    """[P] the nearest counts that no stock is too small for; where it is, those that were rounded up most give way.

    Args:
        size: [K] servers of each stock.
        servers: [P] a fractional plan; it may want more than there is.
    """
    count = np.clip(np.rint(servers), 0, f.most).astype(np.int64)
    order = np.lexsort((servers - count, f.stock))
    stock, wanted = f.stock[order], count[order]
    used = np.bincount(stock, wanted, len(size)).astype(np.int64)
    if (used > size).any():
        # one from each, the most generously rounded first, then whatever does not fit
        excess = np.maximum(used - size, 0)[stock]
        has = (wanted > 0).astype(np.int64)
        wanted = wanted - has * (_before(stock, has, len(size)) < excess)
        room = np.maximum(size[stock] - _before(stock, wanted, len(size)), 0)
        wanted = np.minimum(wanted, room)
    count[order] = wanted
    return count


def _before(stock: Ints, amount: Ints, stocks: int) -> Ints:
    """[·] what comes before each row of the same stock; equal stocks are neighbours."""
    total = np.cumsum(amount) - amount
    first = np.searchsorted(stock, np.arange(stocks))
    return np.asarray(total - np.append(total, 0)[np.minimum(first, len(total))][stock])
