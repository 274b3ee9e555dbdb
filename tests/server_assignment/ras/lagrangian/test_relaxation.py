"""What ras buys at the prices of its relaxation."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.problems.server_assignment.ras.lagrangian.reservation_subproblem import (
    Limits,
    PricedItems,
    ServerPrices,
    bought,
)


def test_what_rounding_leaves_of_a_server_is_bought_with_it() -> None:
    """Where the price of excess begins a server is cut in two; its second part ends, but for rounding, where that
    price is whole, and another server is worth its price beyond."""
    offers = PricedItems(*(np.array(row) for row in ([0, 2], [0, 0], [2050, 4800], [0, 1], [0, 1], [1, 2])))
    limits = Limits(
        embedded=np.zeros(1, np.int64),
        least=np.zeros(1, np.int64),
        limit=np.array([8967.0]),
        low=np.array([8900.0]),
        high=np.array([9600.0]),
        share=np.array([0.5]),
        steep=np.array([[2e-5]]),
        cap=np.array([[np.inf]]),
    )
    amount = np.zeros(2)
    bought(offers, limits, 0, 1, ServerPrices(np.array([-2.0, -72.0]), 0.1, 0.05), np.zeros(1), amount)
    assert amount == pytest.approx([1.0, 2.0])
