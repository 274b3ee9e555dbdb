"""What the relaxed problem of ras rests on: floors of whole servers, and what is bought at its prices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import mast_opt
from mast_opt.kind.header import Objective
from mast_opt.server_assignment import ServerAssignment
from mast_opt.server_assignment.entities import Affinities, Racks, Reservations, Servers, Switchboards
from mast_opt.server_assignment.problem import EMBEDDED, TERMS
from mast_opt.server_assignment.ras.lagrangian.reservation_subproblem import Limits, PricedItems, ServerPrices, bought
from mast_opt.server_assignment.ras.lagrangian.risk_bounds import min_risk_bounds
from mast_opt.server_assignment.verification.certificate_bound import certified_bound
from mast_opt.server_assignment.verification.measures import Measure
from tests.server_assignment.strategies import problems
from tests.server_assignment.support import examples


@examples(100)
@given(data=st.data(), problem=problems())
def test_no_assignment_is_below_the_floors(data: st.DataObject, problem: ServerAssignment) -> None:
    owner = data.draw(st.lists(st.integers(0, len(problem.reservations)), min_size=8, max_size=8))
    plan = Measure(problem, np.array(owner)[: len(problem.servers)])
    floor = min_risk_bounds(problem, 60)
    below = (problem.reservations.buffer == 0) & (plan.lost < floor.least)
    event(f"some reservation is below: {bool(below.any())}")
    assert (plan.short[below] >= floor.short[below]).all()


def types_apart(types: int) -> ServerAssignment:
    """One reservation, and ten servers of each type at a switchboard of its own."""
    kinds, at = tuple(f"n{position}" for position in range(types)), np.repeat(np.arange(types), 10)
    none, servers = np.zeros(0, np.int64), len(at)
    return ServerAssignment(
        name="apart",
        datacenters=("d",),
        switchboards=Switchboards(labels=kinds, datacenter=np.zeros(types, np.int64)),
        racks=Racks(labels=kinds, switchboard=np.arange(types)),
        types=kinds,
        reservations=Reservations(
            labels=("q",),
            asked_mrru=np.array([1000 * (types - 1)]),
            buffer=np.array([EMBEDDED]),
            spread_limited=np.zeros(1, np.bool_),
            spread_limit_milli=np.zeros(1, np.int64),
            value_mrru=np.full((1, types), 1000),
        ),
        servers=Servers(
            labels=tuple(f"s{position}" for position in range(servers)),
            type=at,
            rack=at,
            owner=np.ones(servers, np.int64),
            in_use=np.zeros(servers, np.bool_),
        ),
        affinities=Affinities(reservation=none, datacenter=none, share_milli=none, tolerance_milli=none),
        objective=Objective(dict(TERMS)),
    )


@pytest.mark.parametrize("types", [2, 63, 64, 70])
def test_a_server_of_each_of_many_types_is_enough(types: int) -> None:
    """With one at every switchboard, all but one are left when one is lost."""
    problem = types_apart(types)
    floor, asked = min_risk_bounds(problem, 60), int(problem.reservations.asked_mrru[0])
    assert (floor.least.tolist(), floor.short.tolist()) == ([1000], [asked])
    solution = mast_opt.solve(problem, "ras", iterations=1, threads=1)
    assert solution.bound is not None
    assert solution.certificate is not None
    assert certified_bound(problem, solution.certificate.arrays()) >= solution.bound - 1e-12


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
