"""ras end to end: verified plans and sound bounds in every family, exact prices of changes, the same for a seed."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import mast_opt
from mast_opt.core.jit import compiled
from mast_opt.core.solve_result import Event, Limit, SolveParams, Status
from mast_opt.planner.solving import Solution
from mast_opt.problems import backends
from mast_opt.problems.server_assignment import Plan, ServerAssignment
from mast_opt.problems.server_assignment.formulation.disaggregation import expand
from mast_opt.problems.server_assignment.formulation.formulation import base
from mast_opt.problems.server_assignment.generate import FAMILIES
from mast_opt.problems.server_assignment.problem import NONE
from mast_opt.problems.server_assignment.ras import ras_search as passes
from mast_opt.problems.server_assignment.ras.lagrangian import integer_bound as whole_servers
from mast_opt.problems.server_assignment.ras.lagrangian import relaxation as relaxed
from mast_opt.problems.server_assignment.ras.lagrangian.lp_duals import lp_duals
from mast_opt.problems.server_assignment.ras.lagrangian.relaxation import Relaxed
from mast_opt.problems.server_assignment.ras.operators.delta_costs import change, cost
from mast_opt.problems.server_assignment.ras.operators.reservation_reoptimise import reoptimise_reservation, settle
from mast_opt.problems.server_assignment.ras.operators.transfers import transfer_servers
from mast_opt.problems.server_assignment.ras.ras_search import round_relaxation
from mast_opt.problems.server_assignment.ras.state import RasArrays, RasState, lacking, ras_arrays_of, state_of
from mast_opt.problems.server_assignment.verification.certificate_bound import certified_bound
from mast_opt.problems.server_assignment.verification.verifier import verify
from tests.examples import examples
from tests.server_assignment.brute import Brute
from tests.server_assignment.strategies import problems
from tests.server_assignment.support import RELATIVE


@compiled
def _change(fleet: RasArrays, state: RasState, pair: int, more: int) -> None:
    """The kernel, to be called from Python."""
    change(fleet, state, pair, more)


def run(problem: ServerAssignment, **given: Any) -> Solution[Any]:
    return mast_opt.solve(problem, "ras", **({"iterations": 3, "threads": 1, "gap": 0.0} | given))


def made(family: str, servers: int = 60, reservations: int = 6, seed: int = 1) -> ServerAssignment:
    problem: ServerAssignment = mast_opt.generate(
        "server-assignment", family, servers=servers, reservations=reservations, datacenters=2, seed=seed
    )
    return problem


@pytest.mark.parametrize("family", FAMILIES)
def test_plan_and_bound_enclose_the_optimum(family: str) -> None:
    problem = made(family, 30, 4)
    solution = run(problem)
    assert solution.verdict is not None
    assert solution.verdict.ok
    assert solution.bound is not None
    assert solution.objective is not None
    assert solution.certificate is not None
    assert certified_bound(problem, solution.certificate.arrays()) >= solution.bound - 1e-12
    exact = mast_opt.solve(problem, "highs", time_limit_s=5, threads=1)
    assert exact.objective is not None
    assert exact.bound is not None
    assert solution.bound <= exact.objective * (1 + RELATIVE) + 1e-9
    assert exact.bound <= solution.objective * (1 + RELATIVE) + 1e-9


@examples(25)
@given(problem=problems(servers=5, reservations=2, default_weights=True))
def test_tiny_cases_against_enumeration(problem: ServerAssignment) -> None:
    best, solution = Brute(problem).optimum(), run(problem, iterations=1)
    assert solution.bound is not None
    assert solution.objective is not None
    event(f"optimal: {solution.objective <= best * (1 + 1e-9) + 1e-9}")
    assert solution.bound <= best + 1e-9 * max(1.0, best)
    assert best <= solution.objective + 1e-9 * max(1.0, best)


@examples(80)
@given(data=st.data(), problem=problems())
def test_changes_keep_every_sum(data: st.DataObject, problem: ServerAssignment) -> None:
    """After changes, and after reservations have chosen again, the cost is that of a fresh state and the verifier's."""
    r = Relaxed(problem, problem.objective.weights)
    fleet, size = ras_arrays_of(r), problem.stocks.size
    count = (r.pairs.today)[r.order]
    state = state_of(fleet, size, count)
    if len(count):
        pairs = np.array(data.draw(st.lists(st.integers(0, len(count) - 1), max_size=6)), np.int64)
        for pair in pairs.tolist():
            room = min(int(fleet.most[pair] - state.servers[pair]), int(state.free[fleet.stock[pair]]))
            more = data.draw(st.integers(-int(state.servers[pair]), room))
            _change(fleet, state, pair, more)
    before = cost(fleet, state)
    prices = np.zeros(len(size))
    hint = np.full(len(problem.reservations), float(data.draw(st.integers(0, 5000))))
    settle(fleet, state, np.arange(len(problem.reservations)), 3, 24)
    assert cost(fleet, state) <= before * (1 + 1e-12) + 1e-9
    before = cost(fleet, state)
    gain = reoptimise_reservation(fleet, state, np.arange(len(problem.reservations)), hint, prices, 2, 24)
    lack = lacking(fleet, state)
    if lack.any() and cost(fleet, state) < fleet.forbidden:
        taken = transfer_servers(fleet, state, int(lack.argmax()), 5, 5)
        event(f"taken: {taken > 0}")
        gain += taken
    after = cost(fleet, state)
    fresh = state_of(fleet, size, state.servers)
    for kept, summed in zip(state, fresh, strict=True):
        np.testing.assert_array_equal(kept, summed)
    if before < fleet.forbidden:
        assert gain >= 0
        assert after == pytest.approx(before - gain, rel=1e-9, abs=1e-9)
    named = np.empty_like(state.servers)
    named[r.order] = state.servers
    verdict = verify(problem, expand(problem, r.pairs, named))
    event(f"ok: {verdict.ok}")
    assert verdict.ok == (after < fleet.forbidden)
    if verdict.ok:
        assert after == pytest.approx(verdict.objective, rel=1e-9, abs=1e-9)


@examples(100)
@given(problem=problems(), seed=st.integers(0, 2**32))
def test_rounding_fits_every_stock(problem: ServerAssignment, seed: int) -> None:
    fleet = ras_arrays_of(Relaxed(problem, problem.objective.weights))
    size = problem.stocks.size
    servers = np.random.default_rng(seed).random(len(fleet.stock)) * fleet.most * 1.5
    count = round_relaxation(fleet, size, servers)
    used = np.bincount(fleet.stock, count, len(size))
    assert (count >= 0).all()
    assert (count <= fleet.most).all()
    assert (used <= size).all()


def test_weights_of_any_size_leave_the_search_working() -> None:
    """A broken rule costs more than today does, whatever the weights."""
    problem = made("fresh", 30, 4)
    heavy = {name: 1e14 * weight for name, weight in problem.objective.weights.items()}
    heavy_problem = replace(problem, objective=replace(problem.objective, weights=heavy))
    solution = run(heavy_problem)
    today = verify(heavy_problem, Plan(problem.servers.owner.copy())).objective
    assert today > 1e12
    assert solution.objective is not None
    assert solution.bound is not None
    assert solution.objective < today / 2
    assert 0 < solution.bound <= solution.objective


def test_the_same_seed_gives_the_same_plan_and_bound() -> None:
    problem = made("scarce", 200, 8)
    first, second = run(problem, seed=3), run(problem, seed=3)
    assert first.plan.reservation.tolist() == second.plan.reservation.tolist()  # type: ignore[union-attr]
    assert first.bound == second.bound


def drifted(problem: ServerAssignment, plan: Plan, percent: int) -> ServerAssignment:
    """The plan as today, and what is asked up or down by so many percent."""
    way = np.where(np.arange(len(problem.reservations)) % 2 == 0, 1, -1)
    asked = problem.reservations.asked_mrru * (100 + way * percent) // 100
    return replace(
        problem,
        servers=replace(problem.servers, owner=plan.reservation.copy()),
        reservations=replace(problem.reservations, asked_mrru=asked),
    )


def changed(problem: ServerAssignment, solution: Solution[Any]) -> tuple[int, int]:
    """Servers that are taken from somebody, and servers that somebody gains."""
    after = solution.plan.reservation  # type: ignore[union-attr]
    moves = after != problem.servers.owner
    return int((moves & problem.owned).sum()), int((moves & (after < len(problem.reservations))).sum())


@pytest.mark.parametrize("percent", [1, 15])
def test_solved_again_after_demand_has_changed_it_moves_at_most_twice_what_must_move(percent: int) -> None:
    """The least is proven by HiGHS, with no term but what moves; both plans lack the same."""
    problem = made("standard", 200, 6)
    first = run(problem)
    again = drifted(problem, first.plan, percent)  # type: ignore[arg-type]
    warm = run(again, start=first.plan, iterations=2)
    weights = dict.fromkeys(again.objective.weights, 0.0) | {
        "shortfall": 1000.0,
        "moves_in_use": 1.0,
        "moves_idle": 1.0,
    }
    least = []
    for use in (0.0, 1.0):  # as few as possible that are taken; as few as possible that are gained
        counted = replace(again, objective=replace(again.objective, weights=weights | {"use": use}))
        exact = mast_opt.solve(counted, "highs", gap=0.0, threads=1)
        assert exact.status is Status.OPTIMAL
        assert exact.verdict is not None
        assert exact.verdict.terms["shortfall"] == warm.verdict.terms["shortfall"]  # type: ignore[union-attr]
        least.append(changed(again, exact)[int(use)])
    assert max(least) > 0
    assert all(moved <= 2 * must for moved, must in zip(changed(again, warm), least, strict=True))


def test_cancelled_before_it_begins_it_returns_today() -> None:
    cancel = threading.Event()
    cancel.set()
    problem = made("standard")
    solution = run(problem, cancel=cancel)
    assert solution.limit is Limit.INTERRUPT
    assert solution.objective is not None
    assert solution.objective <= verify(problem, Plan(problem.servers.owner.copy())).objective


class Asked(threading.Event):
    """Counts how often the search looks at it once it is set."""

    times = 0

    def is_set(self) -> bool:
        self.times += super().is_set()
        return super().is_set()


@pytest.mark.parametrize("share", [0.0, 0.2, 0.4, 0.6, 0.8])
def test_an_interrupt_ends_the_search_within_a_step(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set at any event, it is seen before another kernel has run, except in whoever reports that very event."""
    problem, reported = made("standard", 300, 8), list[Event]()
    run(problem, on_event=reported.append, iterations=50)
    number = 1 + int(share * len(reported))
    cancel, events = Asked(), list[Event]()
    after: list[str] = []

    def watched(name: str, module: Any) -> None:
        kernel = getattr(module, name)

        def run(*given: Any) -> Any:
            if threading.Event.is_set(cancel):
                after.append(name)
            return kernel(*given)

        monkeypatch.setattr(module, name, run)

    for name in ("reoptimise_reservation", "settle", "transfer_servers"):
        watched(name, passes)
    for name in ("cheapest", "bought"):
        watched(name, relaxed)
    watched("tabulated", whole_servers)

    def on_event(event: Event) -> None:
        events.append(event)
        if len(events) == number:
            cancel.set()

    solution = run(problem, cancel=cancel, on_event=on_event, iterations=50)
    assert len(events) >= number
    assert solution.limit is Limit.INTERRUPT
    assert len(after) <= 1
    assert solution.verdict is not None
    assert solution.verdict.ok


def test_events_tell_incumbents_and_bounds() -> None:
    events: list[Event] = []
    run(made("standard"), on_event=events.append)
    incumbents = [event.incumbent for event in events if event.incumbent is not None]
    assert incumbents == sorted(incumbents, reverse=True)
    assert events[-1].bound is not None


def test_a_gap_that_is_reached_is_proven() -> None:
    solution = run(made("standard", 300, 5), gap=0.5, iterations=20)
    assert solution.status is Status.OPTIMAL


def test_capacity_goes_to_whom_it_is_worth_most() -> None:
    """Two servers, both at a reservation that values them half as much as the one that lacks them: one moves."""
    problem = made("standard", 30, 2).with_columns(
        {
            "servers.owner": np.zeros(30, np.int64),
            "servers.in_use": np.zeros(30, np.bool_),
            "reservations.buffer": np.full(2, NONE),
            "reservations.asked_mrru": np.array([30_000, 4_000]),
            "reservations.spread_limited": np.zeros(2, np.bool_),
            "reservations.value_mrru": np.array([[1000], [2000]]) * np.ones((2, 5), np.int64),
            "affinities.reservation": np.zeros(0, np.int64),
            "affinities.datacenter": np.zeros(0, np.int64),
            "affinities.share_milli": np.zeros(0, np.int64),
            "affinities.tolerance_milli": np.zeros(0, np.int64),
        }
    )
    r = Relaxed(problem, problem.objective.weights)
    fleet = ras_arrays_of(r)._replace(short_most=np.full(2, 10**9))  # nobody has what today must not lose
    state = state_of(fleet, problem.stocks.size, r.pairs.today[r.order])
    before = cost(fleet, state)
    gain = transfer_servers(fleet, state, 1, 10, 5)
    assert state.total.tolist() == [28_000, 4_000]
    assert cost(fleet, state) == pytest.approx(before - gain)
    assert transfer_servers(fleet, state, 1, 10, 5) == 0


@examples(40)
@given(problem=problems(), seed=st.integers(0, 2**16))
def test_exact_prices_prove_the_linear_relaxation(problem: ServerAssignment, seed: int) -> None:
    r, mip = Relaxed(problem, problem.objective.weights), base(problem).mip
    solver = backends.get("highs").solve
    prices = lp_duals(r, mip, solver, SolveParams(threads=1, seed=seed))
    assert prices is not None
    relaxed = solver(replace(mip, integral=np.zeros_like(mip.integral)), SolveParams(gap=0.0, threads=1))
    assert relaxed.objective is not None
    proven = r.bound(prices, r.solved(prices)[0])
    assert proven >= relaxed.objective - 1e-5 * max(1.0, relaxed.objective)
