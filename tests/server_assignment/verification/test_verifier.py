"""The verifier against figures worked out by hand, and plans that break one limit each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given

from mast_opt.problems.kind.header import Objective
from mast_opt.problems.server_assignment import Plan, ServerAssignment
from mast_opt.problems.server_assignment.entities import Affinities, Racks, Reservations, Servers, Switchboards
from mast_opt.problems.server_assignment.formulation.formulation import base
from mast_opt.problems.server_assignment.problem import EMBEDDED, POOL, SHARED, TERMS
from mast_opt.problems.server_assignment.verification.verifier import verify
from tests.examples import examples
from tests.server_assignment.brute import Brute
from tests.server_assignment.strategies import problems
from tests.server_assignment.support import proven

ADS, FEED, SPARE, NOBODY = range(4)


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


@pytest.fixture
def problem() -> ServerAssignment:
    """Eight servers, two of each type at each of two switchboards in two datacenters.

    ``ads`` takes old (1 RRU) and new (2) ones and has an embedded buffer, ``feed`` only new ones (1.5) and shares the
    pool ``spare`` (1). ads: 3 old, 1 of them at sb2; limit 1 RRU; feed: the new ones at sb1 and one at sb2.
    """
    return ServerAssignment(
        name="hand",
        datacenters=("east", "west"),
        switchboards=Switchboards(labels=("sb1", "sb2"), datacenter=ints(0, 1)),
        racks=Racks(labels=("r1", "r2", "r3"), switchboard=ints(0, 0, 1)),
        types=("old", "new"),
        reservations=Reservations(
            labels=("ads", "feed", "spare"),
            asked_mrru=ints(2000, 4000, 0),
            buffer=ints(EMBEDDED, SHARED, POOL),
            spread_limited=np.array([True, False, False]),
            spread_limit_milli=ints(500, 0, 0),
            value_mrru=np.array([[1000, 2000], [0, 1500], [1000, 1000]]),
        ),
        servers=Servers(
            labels=tuple(f"s{number}" for number in range(8)),
            type=ints(0, 0, 1, 1, 0, 0, 1, 1),
            rack=ints(0, 1, 0, 1, 2, 2, 2, 2),
            owner=ints(ADS, ADS, FEED, FEED, ADS, NOBODY, FEED, NOBODY),
            in_use=np.array([True, False, True, True, False, True, False, False]),
        ),
        affinities=Affinities(
            reservation=ints(FEED), datacenter=ints(1), share_milli=ints(500), tolerance_milli=ints(100)
        ),
        objective=Objective(dict(TERMS)),
    )


def changed(problem: ServerAssignment, *moves: tuple[int, int]) -> Plan:
    after = problem.servers.owner.copy()
    for server, reservation in moves:
        after[server] = reservation
    return Plan(after)


def test_the_figures_of_today(problem: ServerAssignment) -> None:
    """ads: 3 less 2 at sb1, 1 short of 2; feed: 4.5; spare: nothing for the 3 at sb1. Excess 1 at sb1; feed has a third
    in west where half less a tenth is the least: 4.5 · (0.4 − 1/3) = 0.3."""
    verdict = verify(problem, changed(problem))
    assert verdict.ok
    assert verdict.terms == pytest.approx(
        {
            "shortfall": (1 + 3) / 6,
            "moves_in_use": 0,
            "moves_idle": 0,
            "spread": 1 / 6,
            "buffer": (2 + 3) / 6,
            "affinity": 0.3 / 6,
            "use": 6 / 8,
            "repair": 1.3 / 6,
        }
    )
    expected = 1000 * 4 / 6 + 1 / 6 + 5 / 6 + 0.3 / 6 + 0.1 * 6 / 8 + 100 * 1.3 / 6
    assert verdict.objective == pytest.approx(expected)
    assert verdict.metrics == pytest.approx(
        {
            "shortfall_rru": 4,
            "moved_servers": 0,
            "moved_in_use": 0,
            "buffer_rru": 5,
            "assigned_servers": 6,
            "worst_domain_share": 2 / 3,
            "worst_rack_share": 1 / 3,
        }
    )


def test_the_smallest_holding_has_a_share_too(problem: ServerAssignment) -> None:
    """One server that is worth a thousandth of an RRU, all of it at one switchboard and in one rack."""
    tiny = replace(
        problem, reservations=replace(problem.reservations, value_mrru=np.ones_like(problem.reservations.value_mrru))
    )
    alone = np.full(len(problem.servers), NOBODY)
    alone[0] = ADS
    metrics = verify(tiny, Plan(alone)).metrics
    assert (metrics["worst_domain_share"], metrics["worst_rack_share"]) == (1, 1)


def test_moves_count_by_what_they_interrupt(problem: ServerAssignment) -> None:
    verdict = verify(problem, changed(problem, (0, SPARE), (1, NOBODY), (5, ADS), (7, ADS)))
    assert (verdict.terms["moves_in_use"], verdict.terms["moves_idle"]) == (1 / 8, 1 / 8)
    assert (verdict.metrics["moved_servers"], verdict.metrics["moved_in_use"]) == (2, 1)


@pytest.mark.parametrize(
    ("moves", "name", "amount", "limit"),
    [
        ([(5, FEED)], "n[old,sb2,feed]", 1, 0),
        ([(5, FEED), (4, FEED), (7, ADS)], "n[old,sb2,feed]", 2, 0),
        ([(1, NOBODY), (4, NOBODY)], "no_shorter[ads]", 1000, 1000),
        ([(7, FEED), (2, NOBODY), (3, NOBODY)], "no_farther[feed,west]", 900, 300),
        ([(2, SPARE)], None, 0, 0),
        ([(6, NOBODY)], "no_farther[feed,west]", 900, 300),
    ],
)
def test_a_broken_limit_is_named(
    problem: ServerAssignment, moves: list[tuple[int, int]], name: str | None, amount: int, limit: int
) -> None:
    violations = verify(problem, changed(problem, *moves)).violations
    found = [(violation.name, violation.amount, violation.limit) for violation in violations]
    assert found == ([] if name is None else [(name, amount, limit)])


def test_the_least_shortage_of_today_may_not_grow(problem: ServerAssignment) -> None:
    asked = problem.reservations.asked_mrru.copy()
    asked[ADS] -= 999
    problem = replace(problem, reservations=replace(problem.reservations, asked_mrru=asked))
    (violation,) = verify(problem, changed(problem, (1, NOBODY), (4, NOBODY))).violations
    assert (violation.name, violation.amount, violation.limit) == ("no_shorter[ads]", 1000, 1)


def test_a_pool_that_is_too_small_today_may_not_be_smaller(problem: ServerAssignment) -> None:
    """A new server for feed at sb1 would be 1.5 more at risk there."""
    more = replace(
        problem, servers=replace(problem.servers, type=ints(0, 0, 1, 1, 0, 0, 1, 1), owner=ints(0, 0, 1, 1, 0, 3, 3, 3))
    )
    assert verify(more, changed(more, (6, FEED), (7, FEED))).ok
    none = Affinities(ints(), ints(), ints(), ints())
    worse = replace(more, racks=replace(more.racks, switchboard=ints(0, 0, 0)), affinities=none)
    (violation,) = verify(worse, changed(worse, (7, FEED))).violations
    assert (violation.name, violation.amount, violation.limit) == ("no_shorter[spare]", 1500, 3000)


def test_where_the_limit_is_exceeded_nothing_may_be_added(problem: ServerAssignment) -> None:
    more = replace(problem, servers=replace(problem.servers, owner=ints(0, 0, 3, 1, 0, 3, 1, 3)))
    (violation,) = verify(more, changed(more, (2, ADS))).violations
    assert (violation.name, violation.amount, violation.limit) == ("no_denser[ads,sb1]", 2000, 1000)
    assert verify(more, changed(more, (7, ADS))).ok, "at sb2 the limit is kept today, so more has only its price"


def test_who_has_worthless_servers_today_may_keep_them(problem: ServerAssignment) -> None:
    held = replace(problem, servers=replace(problem.servers, owner=ints(FEED, 0, 1, 1, 0, 3, 1, 3)))
    assert verify(held, changed(held)).ok
    exchanged = verify(held, changed(held, (0, NOBODY), (1, FEED)))
    assert "n[old,sb1,feed]" in [violation.name for violation in exchanged.violations]


@pytest.mark.parametrize("reservation", [ints(0, 1), ints(0, 0, 1, 1, 0, 3, 1, 4), ints(0, 0, 1, 1, 0, 3, 1, -1)])
def test_what_is_no_plan_is_an_error(problem: ServerAssignment, reservation: np.ndarray) -> None:
    with pytest.raises(ValueError, match="reservation"):
        verify(problem, Plan(reservation))


def test_nothing_asked_costs_nothing_per_rru(problem: ServerAssignment) -> None:
    terms = verify(
        replace(problem, reservations=replace(problem.reservations, asked_mrru=ints(0, 0, 0))), changed(problem)
    ).terms
    assert [terms[name] for name in ("shortfall", "spread", "buffer", "affinity", "repair")] == [0] * 5


@examples(40)
@given(problem=problems(servers=6))
def test_every_server_of_an_optimal_plan_given_to_everybody_else(problem: ServerAssignment) -> None:
    """Each limit that such a plan breaks is named, with its amount, and nothing else is."""
    formulation, brute = base(problem), Brute(problem)
    result = proven(formulation.mip)
    assert result.x is not None
    best = formulation.decode(result.x).reservation
    names = set()
    for server in range(len(problem.servers)):
        for reservation in range(len(problem.reservations) + 1):
            other = best.copy()
            other[server] = reservation
            verdict, expected = verify(problem, Plan(other)), brute.broken(other.tolist())
            assert {violation.name: violation.amount for violation in verdict.violations} == pytest.approx(
                {name: float(amount) for name, amount in expected.items()}
            )
            names |= {name.split("[")[0] for name in expected}
    for name in sorted(names):
        event(f"breaks {name}")
