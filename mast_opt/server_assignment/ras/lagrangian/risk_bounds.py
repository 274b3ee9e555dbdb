"""Lower bounds on a reservation's loss at one switchboard (ras), by counting whole servers.

With nothing above L at any switchboard, a switchboard holds at most the largest sum of whole servers up to L, so a
reservation is guaranteed at most Σ of those − L. A continuous relaxation spreads a third of a server over every
switchboard instead, and so makes small buffers look free.
"""

from __future__ import annotations

from math import gcd

import numpy as np

from mast_opt.server_assignment.problem import Ints, ServerAssignment

MOST_CELLS = 20_000
"""Amounts that are looked at for one reservation, as many as the check of certificates looks at."""


def _sums(values: Ints, cells: int) -> np.ndarray:
    """[cells] which amounts some whole servers add up to."""
    sums = np.zeros(cells, np.bool_)
    sums[0] = True
    for value in values.tolist():
        reach = value
        while reach < cells:  # doubling: any number of servers of the value
            sums[reach:] |= sums[:-reach].copy()
            reach *= 2
    return sums


def around(problem: ServerAssignment) -> tuple[Ints, Ints]:
    """[Q] the most that whole servers add up to within the spread limit, and the least that they do from it on.

    Where that is too long a list, both are the limit.
    """
    p, limit = problem, problem.spread_limit_mrru
    low, high = limit.copy(), limit.copy()
    for q in np.flatnonzero(p.reservations.spread_limited).tolist():
        values = p.reservations.value_mrru[q][p.reservations.value_mrru[q] > 0]
        if len(values) == 0:
            continue
        unit = gcd(*values.tolist())
        cells = int(limit[q] + values.min()) // unit + 2
        if cells <= MOST_CELLS:
            amounts = np.flatnonzero(_sums(values // unit, cells)) * unit
            low[q] = amounts[amounts <= limit[q]].max()
            high[q] = amounts[amounts >= limit[q]].min()
    return low, high
