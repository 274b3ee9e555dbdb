"""The second phase: fewer servers in one rack for the worst reservations, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import mast_opt
from mast_opt.core.solve_result import SolveParams
from mast_opt.problems import backends
from mast_opt.problems.server_assignment import Plan, ServerAssignment
from mast_opt.problems.server_assignment.formulation.disaggregation import expand
from mast_opt.problems.server_assignment.formulation.index_sets import counted, pairs_of
from mast_opt.problems.server_assignment.formulation.rack_phase import at_racks, refined, worst_in_racks
from mast_opt.problems.server_assignment.verification.measures import Measure
from mast_opt.problems.server_assignment.verification.verifier import verify
from tests.examples import examples
from tests.server_assignment.strategies import plans, problems
from tests.server_assignment.support import proven

HIGHS = backends.get("highs")


def shares(problem: ServerAssignment, plan: Plan, reservations: list[int]) -> float:
    then = Measure(problem, plan.reservation)
    return float(sum(then.held_in_rack[q] / max(then.total[q], 1) for q in reservations))


def canonical(problem: ServerAssignment, drawn: Plan) -> Plan:
    pairs = pairs_of(problem)
    return expand(problem, pairs, np.minimum(counted(problem, pairs, drawn.reservation), pairs.most))


@examples(60)
@given(data=st.data(), problem=problems(servers=7))
def test_the_best_of_all_exchanges_within_stocks(data: st.DataObject, problem: ServerAssignment) -> None:
    plan = canonical(problem, data.draw(plans(problem)))
    chosen = worst_in_racks(problem, plan, 2)
    if not len(chosen):
        return
    formulation = at_racks(problem, plan, chosen)
    start = formulation.encode(plan)
    assert formulation.mip.objective(start) == pytest.approx(shares(problem, plan, chosen.tolist()), rel=1e-9)
    result = proven(formulation.mip)
    assert result.x is not None
    after = formulation.decode(result.x)
    before, verdict = verify(problem, plan), verify(problem, after)
    assert verdict.objective == pytest.approx(before.objective, rel=1e-12, abs=1e-12)
    assert dict(verdict.terms) == dict(before.terms)
    assert len(verdict.violations) == len(before.violations)
    best = min(shares(problem, other, chosen.tolist()) for other in exchanges(problem, plan, chosen.tolist()))
    assert shares(problem, after, chosen.tolist()) == pytest.approx(best, rel=1e-6)
    event(f"better: {best < shares(problem, plan, chosen.tolist()) - 1e-9}")


def exchanges(problem: ServerAssignment, plan: Plan, chosen: list[int]) -> list[Plan]:
    """Every plan in which the chosen reservations and nobody exchange servers of a stock and the terms stay."""
    open_at = [s for s, q in enumerate(plan.reservation.tolist()) if q in chosen or q == len(problem.reservations)]
    stock, found = problem.stocks.of, []
    taken = verify(problem, plan).metrics
    for order in set(permutations(plan.reservation[open_at].tolist())):
        after = plan.reservation.copy()
        after[open_at] = order
        if (
            np.bincount(stock * 10 + after, minlength=1000)
            == np.bincount(stock * 10 + plan.reservation, minlength=1000)
        ).all():
            metrics = verify(problem, Plan(after)).metrics
            if all(metrics[name] <= taken[name] for name in ("moved_servers", "moved_in_use")):
                found.append(Plan(after))
    return found


def test_a_crowded_reservation_is_spread_and_the_rest_is_left_alone() -> None:
    problem = mast_opt.generate("server-assignment", "fresh", servers=400, reservations=6, datacenters=1, seed=3)
    problem = replace(problem, racks=replace(problem.racks, switchboard=problem.racks.switchboard // 20))
    pairs = pairs_of(problem)
    plan = expand(problem, pairs, pairs.most // 8)
    crowded = Plan(crowd(problem, plan))
    chosen = worst_in_racks(problem, crowded, 2)
    after = refined(problem, crowded, chosen, HIGHS.solve, SolveParams(gap=0.0, threads=1))
    assert shares(problem, after, chosen.tolist()) < shares(problem, crowded, chosen.tolist())
    others = ~np.isin(crowded.reservation, [*chosen, len(problem.reservations)])
    assert (after.reservation[others] == crowded.reservation[others]).all()
    assert verify(problem, after).objective == pytest.approx(verify(problem, crowded).objective)


def crowd(problem: ServerAssignment, plan: Plan) -> np.ndarray:
    """The same counts with each stock handed out rack after rack."""
    after = plan.reservation.copy()
    for stock in range(len(problem.stocks)):
        members = problem.stocks.members(stock)
        after[members] = np.sort(after[members])
    return after


def test_what_cannot_be_better_stays_as_it_is() -> None:
    problem = mast_opt.generate("server-assignment", "standard", servers=60, reservations=3, datacenters=1)
    frozen = replace(
        problem,
        racks=replace(problem.racks, labels=("r",), switchboard=np.zeros(1, np.int64)),
        servers=replace(problem.servers, rack=np.zeros(60, np.int64)),
    )
    plan = Plan(frozen.servers.owner.copy())
    assert refined(frozen, plan, np.array([0]), HIGHS.solve, SolveParams(threads=1)) is plan


def test_the_worst_come_first_and_single_servers_do_not_count() -> None:
    problem = mast_opt.generate("server-assignment", "standard", servers=200, reservations=6, datacenters=2)
    plan = Plan(problem.servers.owner.copy())
    then = Measure(problem, problem.servers.owner)
    worst = worst_in_racks(problem, plan, 3)
    share = then.held_in_rack[worst] / then.total[worst]
    assert (np.diff(share) <= 0).all()
    alone = Plan(np.full(200, 6))
    alone.reservation.setflags(write=True)
    alone.reservation[0] = int(np.argmax(problem.reservations.value_mrru[:, problem.servers.type[0]] > 0))
    assert len(worst_in_racks(problem, alone, 3)) == 0
