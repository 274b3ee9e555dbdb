"""The checker's sums by enumeration and by hand, without the search."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import mast_opt
from mast_opt.core.errors import PlanError
from mast_opt.problems.server_assignment import ServerAssignment
from mast_opt.problems.server_assignment.problem import EMBEDDED, NONE
from mast_opt.problems.server_assignment.verification.certificate import Certificate, Prices
from mast_opt.problems.server_assignment.verification.certificate_bound import (
    Fractions,
    around,
    certified_bound,
    whole_cost,
)
from tests.examples import examples
from tests.server_assignment.brute import Brute

Offer = tuple[int, int, int, float]
"""(switchboard, worth, servers, price of one)"""


@st.composite
def offered(draw: st.DrawFn) -> tuple[list[Offer], float, list[float], list[float]]:
    """Offers at up to two switchboards; where excess begins, its price, and the most that each may hold."""
    unit = draw(st.sampled_from((1, 20)))
    offer = st.tuples(
        st.integers(0, 1),
        st.integers(0, 3).map(lambda units: units * unit),
        st.integers(0, 3),
        st.integers(-8, 12).map(lambda price: price / 4),
    )
    offers = draw(st.lists(offer, min_size=1, max_size=4))
    limit = draw(st.sampled_from((math.inf, 0.0, 2.0 * unit, 3.0 * unit)))
    steep = [draw(st.sampled_from((0.0, 0.5 / unit, 2.0 / unit))) for _ in range(2)]
    cap = [draw(st.sampled_from((math.inf, 2.0 * unit, 5.0 * unit))) for _ in range(2)]
    return offers, limit, steep, cap


def fractions(
    offers: list[Offer],
    limit: float,
    steep: list[float],
    cap: list[float],
    between: tuple[float, float] | None = None,
) -> Fractions:
    """``between``: what whole servers add up to around the limit; the limit itself where it is None."""
    board, worth, number, price = (np.array(column) for column in zip(*offers, strict=True))
    ends = (limit, limit) if between is None else between
    return Fractions(board, worth, number, price.astype(float), limit, ends, np.array(steep), np.array(cap))


def holdings(offers: list[Offer], board: int, limit: float, steep: float, cap: float) -> list[tuple[int, float]]:
    """(mrru, cost) of every choice of servers at a switchboard that are worth something."""
    mine = [(worth, number, price) for at, worth, number, price in offers if at == board and worth]
    found = []
    for counts in itertools.product(*(range(number + 1) for _, number, _ in mine)):
        held = sum(count * worth for count, (worth, _, _) in zip(counts, mine, strict=True))
        cost = sum(count * price for count, (_, _, price) in zip(counts, mine, strict=True))
        if held <= cap:
            found.append((held, cost + steep * max(held - limit, 0.0) if steep else cost))
    return found


@examples(400)
@given(
    case=offered(),
    asked=st.integers(0, 10),
    gains=st.lists(st.sampled_from((0.0, 0.25, 1.0, 2.0)), min_size=1, max_size=2),
    buffer=st.sampled_from((0.0, 0.25, 1.5)),
)
def test_whole_servers_cost_what_enumeration_says(
    case: tuple[list[Offer], float, list[float], list[float]],
    asked: int,
    gains: list[float],
    buffer: float,
) -> None:
    """Counted to beyond what all servers together are worth: each level chooses its best gain, the cost its level."""
    offers, limit, steep, cap = case
    worths = [worth for _, worth, _, _ in offers if worth]
    unit = math.gcd(*worths) if worths else 1
    asked, gains, buffer = asked * unit, [gain / unit for gain in gains], buffer / unit
    most = unit * (sum(worth * number for _, worth, number, _ in offers) // unit + 1)
    ways = [holdings(offers, b, limit, steep[b], cap[b]) for b in range(2)]
    best = math.inf
    for level in range(0, most + 1, unit):
        costs = [
            sum(min(cost - gain * held for held, cost in way if held <= level) for way in ways)
            + (buffer + gain) * level
            + gain * asked
            for gain in gains
        ]
        best = min(best, max(costs))
    free = sum(min(price, 0.0) * number for _, worth, number, price in offers if not worth)
    table = fractions(offers, limit, steep, cap)
    found = whole_cost(table, gains, buffer, asked, most)
    beyond = max(table.from_level(gain, buffer, most) + gain * asked for gain in gains)
    event(f"several alike: {any(number > 1 for _, _, number, _ in offers)}")
    assert found == pytest.approx(min(best + free, beyond), abs=1e-9)


@examples(200)
@given(case=offered(), survive=st.sampled_from((0.0, 0.5, 2.0)), buffer=st.sampled_from((0.0, 0.5)))
def test_fractions_cost_no_more_than_whole_servers(
    case: tuple[list[Offer], float, list[float], list[float]], survive: float, buffer: float
) -> None:
    offers, limit, steep, cap = case
    between = None if math.isinf(limit) else around(np.array([worth for _, worth, _, _ in offers]), int(limit))
    table = fractions(offers, limit, steep, cap, between)
    ways = [holdings(offers, b, limit, steep[b], cap[b]) for b in range(2)]
    free = sum(min(price, 0.0) * number for _, worth, number, price in offers if not worth)
    plain = free + sum(min(cost - survive * held for held, cost in way) for way in ways)
    assert table.without_level(survive) <= plain + 1e-9
    levels = sorted({held for way in ways for held, _ in way})
    for least in (0, 2):
        whole = min(
            sum(min(cost - survive * held for held, cost in way if held <= level) for way in ways)
            + (buffer + survive) * level
            for level in [*levels, *(level + 60 for level in levels)]
            if level >= least
        )
        assert table.from_level(survive, buffer, least) <= free + whole + 1e-9


def test_a_line_of_one_offer_is_exact() -> None:
    """Two servers of 10 at -3 each; excess over 10 costs 0.1 an mrru; at most 15 there: 10 at -0.3, 5 at -0.2."""
    offers: list[Offer] = [(0, 10, 2, -3.0)]
    assert fractions(offers, 10.0, [0.1], [15.0]).without_level(0.0) == pytest.approx(-4.0)
    assert fractions(offers, 10.0, [0.1], [math.inf]).without_level(0.0) == pytest.approx(-5.0)
    assert fractions(offers, 10.0, [0.4], [math.inf]).without_level(0.0) == pytest.approx(-3.0)
    assert fractions(offers, 10.0, [0.4], [math.inf]).without_level(0.2) == pytest.approx(-6.0)
    assert fractions(offers, math.inf, [0.0], [math.inf]).from_level(0.0, 0.1, 0) == pytest.approx(-4.0)
    assert fractions(offers, math.inf, [0.0], [math.inf]).from_level(0.0, 0.5, 15) == pytest.approx(3.0)


def test_excess_between_two_sums_of_whole_servers() -> None:
    """From 8, the last sum within the limit of 10, to 12, the next one: half of that is excess."""
    offers: list[Offer] = [(0, 10, 2, -3.0)]
    assert fractions(offers, 10.0, [0.4], [math.inf], (8, 12)).without_level(0.0) == pytest.approx(-2.4 - 0.4)
    assert fractions(offers, 10.0, [0.2], [math.inf], (8, 12)).without_level(0.0) == pytest.approx(-2.4 - 0.8 - 0.8)


def test_amounts_around_a_limit() -> None:
    """Servers of 300 and 500: 900 within 950, 1000 from there on."""
    assert around(np.array([300, 0, 500]), 950) == (900, 1000)
    assert around(np.array([300, 500]), 1100) == (1100, 1100)
    assert around(np.array([300, 500]), 200) == (0, 300)
    assert around(np.array([0, 0]), 200) == (200, 200)
    assert around(np.array([1]), 10**9) == (10**9, 10**9)


def drifting() -> ServerAssignment:
    """ads wants nothing in dc0, where it has one of the two servers of 1000 that it asks for; the other, free one is
    there too. Nothing may be farther off than today, so it goes on lacking 1000 of 2000."""
    fleet: ServerAssignment = mast_opt.generate("server-assignment", "fresh", servers=2, reservations=1, datacenters=1)
    width = len(fleet.types)
    weights = dict.fromkeys(fleet.objective.weights, 0.0) | {"shortfall": 1.0}
    return replace(
        fleet,
        reservations=replace(
            fleet.reservations,
            labels=("ads",),
            buffer=np.full(1, NONE),
            asked_mrru=np.array([2000]),
            spread_limited=np.zeros(1, np.bool_),
            spread_limit_milli=np.zeros(1, np.int64),
            value_mrru=np.full((1, width), 1000),
        ),
        servers=replace(fleet.servers, type=np.array([0, 0]), owner=np.array([0, 1]), in_use=np.zeros(2, np.bool_)),
        affinities=replace(
            fleet.affinities,
            reservation=np.array([0]),
            datacenter=np.array([0]),
            share_milli=np.array([0]),
            tolerance_milli=np.array([0]),
        ),
        objective=replace(fleet.objective, weights=weights),
    )


def free_prices(problem: ServerAssignment) -> Prices:
    return Prices(
        once=np.zeros(len(problem.stocks)),
        survive=np.zeros(len(problem.reservations)),
        loss=np.zeros(len(problem.switchboards)),
        affinity_most=np.zeros(len(problem.affinities)),
        affinity_least=np.zeros(len(problem.affinities)),
    )


def test_a_limit_of_today_proves_what_goes_on_lacking() -> None:
    """The price of the affinity is above what its slack costs, as it may be where today is off."""
    problem = drifting()
    assert Brute(problem).optimum() == 0.5
    each = 1.0 / 2000
    prices = replace(free_prices(problem), survive=np.array([each]), affinity_most=np.array([each / 1000]))
    assert certified_bound(problem, Certificate.in_fractions(prices).arrays()) == pytest.approx(0.5)
    half = replace(prices, survive=np.array([each / 2]), affinity_most=np.array([each / 2000]))
    assert certified_bound(problem, Certificate.in_fractions(half).arrays()) == pytest.approx(0.25)


def test_levels_are_counted_only_for_who_has_a_buffer_of_its_own() -> None:
    problem = drifting()
    certificate = Certificate.in_fractions(free_prices(problem))
    assert certified_bound(problem, certificate.arrays()) == 0.0
    with pytest.raises(PlanError, match="counted_to"):
        certified_bound(problem, replace(certificate, counted_to=np.array([1])).arrays())
    own = replace(problem, reservations=replace(problem.reservations, buffer=np.array([EMBEDDED])))
    for most, fine in ((20_000_000, True), (20_000_001, False), (-1, False)):
        arrays = replace(certificate, counted_to=np.array([most])).arrays()
        if fine:
            assert certified_bound(own, arrays) >= 0.0
            continue
        with pytest.raises(PlanError, match="counted_to"):
            certified_bound(own, arrays)


def test_positions_that_are_none_are_refused() -> None:
    certificate = Certificate.in_fractions(free_prices(drifting()))
    for at in (-1, 1):
        wrong = replace(certificate, other_of=np.array([at]), other_survive=np.zeros(1))
        with pytest.raises(PlanError, match="positions of reservations, 0 … 0"):
            certified_bound(drifting(), wrong.arrays())


def test_prices_of_0_are_in_every_box() -> None:
    """Also where nothing costs anything and today breaks nothing."""
    problem = drifting()
    weights = dict.fromkeys(problem.objective.weights, 0.0)
    calm = replace(
        problem,
        reservations=replace(problem.reservations, asked_mrru=np.array([1000])),
        affinities=replace(problem.affinities, share_milli=np.array([1000])),
        objective=replace(problem.objective, weights=weights),
    )
    assert certified_bound(calm, Certificate.in_fractions(free_prices(calm)).arrays()) == 0.0


def test_a_buffer_is_needed_whatever_the_prices() -> None:
    """ads asks for 2000 and there is a server of 1000 at each of three switchboards. With none of them it lacks all; so
    one of them is its buffer, which whole servers show. Free servers that are worth nothing change nothing."""
    problem = mast_opt.generate("server-assignment", "fresh", servers=4, reservations=1, datacenters=3)
    assert len(problem.switchboards) >= 3
    racks = [problem.racks.switchboard.tolist().index(board) for board in range(3)]
    weights = dict.fromkeys(problem.objective.weights, 0.0) | {"shortfall": 1.0, "buffer": 0.1}
    problem = replace(
        problem,
        types=("good", "useless"),
        servers=replace(
            problem.servers,
            type=np.array([0, 0, 0, 1]),
            rack=np.array([*racks, racks[0]]),
            owner=np.full(4, 1),
            in_use=np.zeros(4, np.bool_),
        ),
        reservations=replace(
            problem.reservations,
            buffer=np.array([EMBEDDED]),
            asked_mrru=np.array([2000]),
            spread_limited=np.zeros(1, np.bool_),
            spread_limit_milli=np.zeros(1, np.int64),
            value_mrru=np.array([[1000, 0]]),
        ),
        affinities=replace(
            problem.affinities,
            reservation=np.zeros(0, np.int64),
            datacenter=np.zeros(0, np.int64),
            share_milli=np.zeros(0, np.int64),
            tolerance_milli=np.zeros(0, np.int64),
        ),
        objective=replace(problem.objective, weights=weights),
    )
    assert Brute(problem).optimum() == pytest.approx(0.05)
    certificate = replace(
        Certificate.in_fractions(free_prices(problem)),
        counted_to=np.array([3000]),
        other_of=np.array([0]),
        other_survive=np.array([1 / 2000]),
    )
    assert certified_bound(problem, certificate.arrays()) == pytest.approx(0.05)
