"""The portfolio ``auto``: who solves, and that the best plan and the tightest bound of all members come out."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

import mast_opt
from mast_opt.core.errors import BackendError
from mast_opt.core.solve_result import Event, Limit, SolveParams, SolveResult, Status
from mast_opt.planner.solving.auto_strategy import AutoParams, Portfolio, choose_strategy, solver_text
from mast_opt.planner.solving.portfolio_answer import Outcomes, together
from mast_opt.problems.backends.progress import Progress
from mast_opt.problems.backends.supervise import Outcome, Supervised
from mast_opt.problems.mip import Mip
from tests.data_placement.workshop import PROBLEM

BOTH = {"head_start_s": 0.0}
SMALL = {
    "data-placement": {"datasets": 4, "workloads": 4, "regions": 2},
    "job-placement": {"jobs": 3},
    "server-assignment": {"servers": 12},
    "task-reassignment": {"processes": 8, "machines": 4},
}
OWN = {
    "data-placement": "tetris",
    "job-placement": "exhaustive+repair",
    "server-assignment": "ras",
    "task-reassignment": "twine",
}


@pytest.mark.parametrize(
    ("columns", "heuristic", "threads", "limit_s", "expected"),
    [
        (100, "tetris", 2, None, Portfolio("highs", 1, "tetris", 1, 3.0)),
        (100, "tetris", 2, 10.0, Portfolio("highs", 1, "tetris", 1, 1.0)),
        (100, "tetris", 8, 60.0, Portfolio("highs", 1, "tetris", 7, 3.0)),
        (100_000, "tetris", 2, 10.0, Portfolio("highs", 1, "tetris", 1, 0.0)),
        (2_000_000, "tetris", 2, None, Portfolio("", 0, "tetris", 2, 0.0)),
        (100, "tetris", 1, None, Portfolio("highs", 1, "", 0, 0.0)),
        (100, "tetris", 1, 10.0, Portfolio("highs", 1, "tetris", 1, 5.0, in_turn=True)),
        (100_000, "tetris", 1, 10.0, Portfolio("", 0, "tetris", 1, 0.0)),
        (100_000, "", 2, None, Portfolio("highs", 2, "", 0, 0.0)),
        (None, "twine", 4, None, Portfolio("highs", 1, "twine", 3, 0.0)),
    ],
)
def test_strategy(
    columns: int | None, heuristic: str, threads: int, limit_s: float | None, expected: Portfolio
) -> None:
    assert choose_strategy(columns, heuristic, threads, AutoParams(), limit_s) == expected


def test_who_found_what_is_said_in_words() -> None:
    found, versions = {"plan_by": "tetris", "bound_by": "highs"}, {"highs": "1.13"}
    assert solver_text("auto", found, versions) == "auto (plan by tetris, bound by highs 1.13)"
    assert (
        solver_text("auto", {"plan_by": "highs", "bound_by": "highs"}, versions)
        == "auto (plan and bound by highs 1.13)"
    )
    assert solver_text("auto", {"plan_by": "", "bound_by": "highs"}, {}) == "auto (bound by highs)"
    assert solver_text("auto", {}, {}) == "auto"
    assert solver_text("highs", found, versions) == "highs 1.13"


@pytest.mark.parametrize("kind", SMALL)
def test_the_answer_is_the_optimum_with_who_found_it(kind: str) -> None:
    problem = mast_opt.generate(kind, None, seed=3, **SMALL[kind])
    exact = mast_opt.solve(problem, "highs")
    found = mast_opt.solve(problem, "auto", threads=2, params=BOTH)
    assert found.solver == "auto"
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(exact.objective, rel=2e-4, abs=1e-9)
    assert found.verdict == mast_opt.verify(problem, found.plan)
    assert found.strategy["heuristic"] == OWN[kind]
    assert found.strategy["plan_by"] in ("highs", OWN[kind])
    assert "highs" in found.versions
    assert found.params == BOTH


def test_events_improve_from_one_to_the_next() -> None:
    heard: list[Event] = []
    problem = mast_opt.generate("data-placement", None, seed=5, datasets=12, workloads=15, regions=3)
    found = mast_opt.solve(problem, "auto", threads=2, gap=0.05, params=BOTH, on_event=heard.append)
    assert heard == list(found.events)
    known = [event for event in heard if not event.compiling and event.incumbent is not None]
    incumbents = [event.incumbent for event in known]
    assert incumbents == sorted(incumbents, reverse=True)  # type: ignore[type-var]
    bounds = [event.bound for event in known if event.bound is not None]
    assert bounds == sorted(bounds)
    assert [event.elapsed_s for event in heard] == sorted(event.elapsed_s for event in heard)


def test_infeasible_is_said_at_once() -> None:
    problem = mast_opt.read("instances/data_placement/infeasible-pins")
    assert mast_opt.solve(problem, "auto", params=BOTH).status is Status.INFEASIBLE


def test_terms_minimised_one_after_another() -> None:
    exact = mast_opt.solve(PROBLEM, "highs", order=("peak", "storage"))
    found = mast_opt.solve(PROBLEM, "auto", order=("peak", "storage"), threads=2, params=BOTH)
    assert found.verdict is not None
    assert exact.verdict is not None
    assert found.verdict.terms["peak"] == pytest.approx(exact.verdict.terms["peak"], rel=1e-4)
    assert [stage.term for stage in found.stages] == ["peak", "storage"]
    assert found.overrides.order == ("peak", "storage")


def test_a_cancelled_solve_keeps_what_there_is() -> None:
    cancel = threading.Event()
    cancel.set()
    problem = mast_opt.generate("data-placement", None, seed=5, datasets=12, workloads=15, regions=3)
    found = mast_opt.solve(problem, "auto", threads=2, params=BOTH, cancel=cancel)
    assert found.status in (Status.FEASIBLE, Status.NO_SOLUTION)
    assert found.limit is Limit.INTERRUPT


class _Broken:
    """A backend that fails after loading."""

    name, package = "highs", "highspy"

    def version(self) -> str:
        return "0"

    def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
        raise BackendError("it is broken")


def test_a_member_that_fails_costs_nothing_but_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    from mast_opt.problems import backends

    real = backends.get
    broken: Any = _Broken()
    monkeypatch.setattr(backends, "get", lambda name: broken if name == "highs" else real(name))
    problem = mast_opt.generate("task-reassignment", None, seed=3, processes=8, machines=4)
    found = mast_opt.solve(problem, "auto", threads=2, time_limit_s=2.0, params=BOTH)
    assert found.plan is not None
    assert found.strategy["plan_by"] == "twine"
    assert "highs failed: it is broken" in found.message
    with pytest.raises(BackendError, match="it is broken"):
        mast_opt.solve(problem, "auto", threads=1)


class _Unresponsive(Supervised):
    """A backend that neither keeps its time limit nor looks whether it should stop."""

    name, package, takes_incumbents = "highs", "highspy", False

    def __init__(self) -> None:
        self.released, self.ended = threading.Event(), threading.Event()

    def version(self) -> str:
        return "0"

    def _minimise(self, mip: Mip, params: SolveParams, progress: Progress) -> Outcome:
        self.released.wait(60)
        self.ended.set()
        return Outcome(Status.NO_SOLUTION, limit=Limit.TIME)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_exact_solver_that_overruns_the_limit_is_not_waited_for(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mast_opt.problems import backends

    real, unresponsive = backends.get, _Unresponsive()
    monkeypatch.setattr(backends, "get", lambda name: unresponsive if name == "highs" else real(name))
    problem = mast_opt.generate("task-reassignment", None, seed=3, processes=8, machines=4)
    try:
        found = mast_opt.solve(problem, "auto", threads=threads, time_limit_s=1.0, params=BOTH)
        assert not unresponsive.ended.is_set()
    finally:
        unresponsive.released.set()
    assert found.plan is not None
    assert (found.status, found.limit) == (Status.FEASIBLE, Limit.TIME)


@pytest.mark.parametrize(("timed", "limit"), [(True, Limit.TIME), (False, Limit.OTHER)])
def test_members_that_were_stopped_by_nobody_ran_out_of_time(timed: bool, limit: Limit) -> None:
    solution = mast_opt.solve(PROBLEM, "highs", threads=1)
    open_ = replace(solution, status=Status.FEASIBLE, bound=0.0, limit=Limit.INTERRUPT)
    ended = Outcomes([("highs", open_)], [], [], "highs", (), interrupted=False, timed=timed)
    found = together(ended, Portfolio("highs", 1, "", 0, 0.0), AutoParams(), lambda objective, bound: False)
    assert (found.status, found.limit) == (Status.FEASIBLE, limit)


def test_a_member_that_came_to_more_terms_is_better() -> None:
    """The other one ended after two terms, of which the first is better by no more than the slack of later terms."""
    solution = mast_opt.solve(PROBLEM, "highs", threads=1, order=("peak", "storage", "copy"))
    assert solution.verdict is not None
    terms = {**solution.verdict.terms, "copy": 0.25}
    whole = replace(solution, verdict=replace(solution.verdict, terms=terms))
    terms = {**terms, "peak": terms["peak"] - 1e-8, "copy": 0.75}
    early = replace(solution, verdict=replace(solution.verdict, terms=terms), stages=solution.stages[:2])
    ended = Outcomes([("tetris", early), ("highs", whole)], [], [], "", (), interrupted=False, timed=True)
    found = together(ended, Portfolio("highs", 1, "tetris", 1, 0.0), AutoParams(), lambda objective, bound: False)
    assert len(found.stages) == 3


def test_a_kind_without_a_heuristic_is_solved_as_by_its_backend() -> None:
    problem = mast_opt.generate("resource-allocation", None, seed=3, jobs=4)
    found = mast_opt.solve(problem, params={"pop": 2}, options={"presolve": "off"})
    assert found.solver == "highs"
    assert found.params == {"pop": 2}


def test_on_one_thread_the_heuristic_takes_over_what_the_exact_solver_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exact solver has nearly no time, so the plan is the heuristic's."""
    problem = mast_opt.generate("data-placement", None, seed=1, datasets=30, workloads=40, regions=4)
    monkeypatch.setattr(AutoParams, "turn_share", 1e-3)
    found = mast_opt.solve(problem, "auto", threads=1, time_limit_s=2.0)
    assert found.strategy["in_turn"]
    assert found.strategy["plan_by"] == "tetris"
    assert found.objective is not None
    assert found.objective < 10.0


def test_the_exact_solver_is_given_the_plans_of_the_heuristic(monkeypatch: pytest.MonkeyPatch) -> None:
    from mast_opt.planner.solving.exchange import PlanExchange

    taken: list[Any] = []
    take = PlanExchange.take

    def spied(self: PlanExchange) -> Any:
        found = take(self)
        taken.extend([] if found is None else [found])
        return found

    monkeypatch.setattr(PlanExchange, "take", spied)
    problem = mast_opt.generate("data-placement", None, seed=1, datasets=30, workloads=40, regions=4)
    found = mast_opt.solve(problem, "auto", threads=2, time_limit_s=3.0, params=BOTH)
    assert taken
    assert all(mast_opt.verify(problem, plan).ok for plan in taken)
    assert found.objective is not None
    assert found.objective <= min(mast_opt.verify(problem, plan).objective for plan in taken)


def test_an_exchange_keeps_the_best_plan_and_gives_it_once() -> None:
    from mast_opt.core.sense import Sense
    from mast_opt.planner.solving.exchange import PlanExchange

    board = PlanExchange(Sense.MAX)
    assert board.take() is None
    for value in (1.0, 3.0, 2.0):
        board.offer(value, lambda value=value: f"plan {value}")  # type: ignore[misc]
    assert board.take() == "plan 3.0"
    assert board.take() is None
    board.offer(3.0, lambda: "no better")
    assert board.take() is None


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"options": {"presolve": "off"}}, "takes no options"),
        ({"iterations": 3}, "iterations is for"),
        ({"formulation": "aggregated"}, "formulation"),
        ({"params": {"exact": "none"}}, "parameter exact is 'none'"),
        ({"params": {"most": 3}}, "AutoParams has no parameter 'most'"),
    ],
)
def test_what_it_does_not_take_is_refused(asked: dict[str, Any], words: str) -> None:
    problem = mast_opt.generate("job-placement", None, seed=3, jobs=3)
    with pytest.raises(mast_opt.UsageError, match=words):
        mast_opt.solve(problem, "auto", **asked)
