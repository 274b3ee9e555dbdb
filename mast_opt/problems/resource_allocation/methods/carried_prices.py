"""Prices of an earlier allocation's certificate, and the basis that they and its plan describe."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import Fault, PlanError
from mast_opt.core.solve_result import AT_LOWER, AT_UPPER, BASIC, ROUND_OFF, Basis
from mast_opt.problems.kind.carried_axes import Match, taken
from mast_opt.problems.kind.problem_data import Floats
from mast_opt.problems.mip import Mip
from mast_opt.problems.resource_allocation.methods.columns import best_of_each
from mast_opt.problems.resource_allocation.problem import ResourceAllocation
from mast_opt.problems.resource_allocation.verification.price_bound import ARRAYS

_ROWS = {
    "one": ("job_price", AT_UPPER),
    "capacity": ("resource_price", AT_UPPER),
    "floor": ("floor_price", AT_LOWER),
    "group_floor": ("group_floor_price", AT_LOWER),
    "reach": ("rate_weight", AT_LOWER),
}
"""Block of rows → its prices, and the limit at which a row with a price is."""


def carried(
    problem: ResourceAllocation, arrays: Mapping[str, NDArray[Any]], match: Match
) -> Mapping[str, NDArray[Any]]:
    """Arrays of an earlier certificate for this instance; 0 where that had no such job, resource or group.

    Raises:
        PlanError: the arrays are no certificate.
    """
    try:
        return {name: taken(arrays[name], match.axis(of.removesuffix("s"))) for name, of in ARRAYS.items()}
    except (KeyError, IndexError):
        raise PlanError([Fault("certificate", "the prices of an earlier allocation")]) from None


def basis_of(problem: ResourceAllocation, mip: Mip, share: Floats, prices: Mapping[str, Floats]) -> Basis:
    """Basis of a linear program: what has a share is basic, and a row with a price is at its limit.

    A job that neither has a share nor a price is new; of its configurations the one is basic that gives most for what
    its resources cost. A solver has to complete the basis, since a plan need be no vertex of the program.

    Args:
        problem: that of the program.
        mip: an allocation program, its first columns the shares.
        share: [C] of a plan.
        prices: arrays of a certificate.
    """
    members, uses = problem.members, problem.uses
    cost = np.bincount(uses.configuration, uses.amount * prices["resource_price"][uses.resource], len(share))
    served = np.bincount(members.job, share[members.configuration], len(problem.jobs)) > 0
    new = ~served & (prices["rate_weight"] <= 0)
    rate = np.bincount(members.configuration, members.rate, len(share))
    gain = np.divide(rate, cost, out=rate * (1 + cost.max(initial=1.0)), where=cost > 0)
    first = best_of_each(problem, np.flatnonzero(new[members.job]), gain, 1)
    columns = np.full(len(mip.cost), BASIC, np.int8)
    columns[: len(share)] = np.where((share > 0) | first, BASIC, AT_LOWER)
    rows = np.full(len(mip.row_lower), BASIC, np.int8)
    for block in mip.rows:
        if block.name in _ROWS:
            name, limit = _ROWS[block.name]
            tight = prices[name] > ROUND_OFF * prices[name].max(initial=0.0)
            tight = tight | new if name == "rate_weight" else tight
            rows[block.start : block.start + block.size] = np.where(
                tight if block.cells is None else tight[block.cells[0]], limit, BASIC
            )
    return Basis(columns, rows)
