"""What the frame around every backend promises, seen with a solver that answers whatever a test sets."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import BackendError
from mast_opt.core.solve_result import Event, Limit, SolveParams, SolveResult, Status
from mast_opt.problems.backends.base import GRACE_S, converted, interruptibly, one_sided
from mast_opt.problems.backends.progress import Progress, Relay, watching
from mast_opt.problems.backends.supervise import Outcome, supervised
from mast_opt.problems.mip import Mip
from tests.backends.programs import INF, knapsack, program
from tests.platforms import needs

MIP, MINIMUM = knapsack()
BEST = np.array([1.0, 1.0, 0.0, 0.0])
WORSE = np.array([0.0, 1.0, 1.0, 0.0])


def say(outcome: Outcome, params: SolveParams | None = None) -> SolveResult:
    return supervised(lambda mip, params, progress: outcome, MIP, params or SolveParams())


def test_optimal_needs_a_bound_within_the_gap() -> None:
    assert say(Outcome(Status.OPTIMAL, BEST, MINIMUM)).status is Status.OPTIMAL
    assert say(Outcome(Status.OPTIMAL, BEST, MINIMUM - 0.1)).status is Status.FEASIBLE
    assert say(Outcome(Status.OPTIMAL, BEST, None)).status is Status.FEASIBLE
    assert say(Outcome(Status.OPTIMAL, BEST, MINIMUM - 0.1), SolveParams(gap=0.01)).status is Status.OPTIMAL


def test_a_limit_that_came_with_the_proof_is_no_limit() -> None:
    result = say(Outcome(Status.FEASIBLE, BEST, MINIMUM, Limit.TIME))
    assert (result.status, result.limit) == (Status.OPTIMAL, None)


def test_the_bound_is_never_above_the_objective_nor_below_the_obvious() -> None:
    assert say(Outcome(Status.FEASIBLE, WORSE, 5.0, Limit.TIME)).bound == -20.0
    assert say(Outcome(Status.FEASIBLE, BEST, -INF, Limit.TIME)).bound == -38.0
    assert say(Outcome(Status.NO_SOLUTION, None, None, Limit.TIME)).bound == -38.0


def test_the_objective_is_that_of_x_within_its_bounds() -> None:
    result = say(Outcome(Status.OPTIMAL, BEST + 1e-9, MINIMUM))
    assert result.objective == MIP.objective(BEST) - 15e-9
    assert result.x is not None
    assert result.x.max() <= 1.0
    assert not result.x.flags.writeable


@pytest.mark.parametrize(("ratio", "exact", "counts"), [(1e6, False, True), (1e8, False, False), (1e8, True, True)])
def test_no_proof_counts_where_a_tolerance_hides_a_coefficient(ratio: float, exact: bool, counts: bool) -> None:
    """A first column of 1 - 1e-8 leaves room for the second."""
    mip = program([-1, -2], [([ratio, 1], -INF, ratio)])
    optimal, infeasible = Outcome(Status.OPTIMAL, np.array([1.0, 0.0]), -1.0), Outcome(Status.INFEASIBLE)
    proven = supervised(lambda *_: optimal, mip, SolveParams(), exact=exact)
    assert (proven.status, proven.bound) == ((Status.OPTIMAL, -1.0) if counts else (Status.FEASIBLE, -3.0))
    denied = supervised(lambda *_: infeasible, mip, SolveParams(), exact=exact)
    assert denied.status is (Status.INFEASIBLE if counts else Status.NO_SOLUTION)
    assert ("too far apart" in denied.message) is not counts


def test_what_misses_a_wide_row_is_no_solution_and_no_fault() -> None:
    mip = program([-1, -2], [([1e8, 1], -INF, 5e7)])
    false = Outcome(Status.OPTIMAL, np.array([1.0, 1.0]), -3.0)
    result = supervised(lambda *_: false, mip, SolveParams())
    assert (result.status, result.limit) == (Status.NO_SOLUTION, Limit.OTHER)
    assert "misses row" in result.message
    result = supervised(lambda *_: false, mip, SolveParams(start=np.array([0.0, 1.0])))
    assert (result.status, result.objective) == (Status.FEASIBLE, -2.0)


@pytest.mark.parametrize(("cost", "counts"), [([1.0, 0.2, 0.1], True), ([1e6, 2e-9, 1e-9], False)])
def test_no_proof_counts_where_the_costs_that_decide_are_hidden(cost: list[float], counts: bool) -> None:
    """Next to a cost of 1e6, HiGHS overlooks what is below its tolerance of 1e-7 times as much."""
    mip = program(cost, [([0, 1, 1], 1.0, INF)])
    result = supervised(lambda *_: Outcome(Status.OPTIMAL, np.array([0.0, 1.0, 0.0]), cost[1]), mip, SolveParams())
    assert result.status is (Status.OPTIMAL if counts else Status.FEASIBLE)
    assert result.bound == (cost[1] if counts else 0.0)


def test_a_better_start_refutes_a_proof() -> None:
    result = say(Outcome(Status.OPTIMAL, WORSE, MIP.objective(WORSE)), SolveParams(start=BEST))
    assert (result.status, result.objective, result.bound) == (Status.FEASIBLE, MINIMUM, -38.0)
    assert "the start is better" in result.message


@pytest.mark.parametrize("found", [None, WORSE])
def test_a_limit_never_loses_a_feasible_start(found: FloatArray | None) -> None:
    status = Status.NO_SOLUTION if found is None else Status.FEASIBLE
    events: list[Event] = []
    params = SolveParams(start=BEST, on_event=events.append)
    result = say(Outcome(status, found, -30.0, Limit.TIME), params)
    assert (result.status, result.limit, result.objective) == (Status.FEASIBLE, Limit.TIME, MINIMUM)
    assert [event.incumbent for event in events] == [MINIMUM, MINIMUM]


@pytest.mark.parametrize("status", [Status.INFEASIBLE, Status.INFEASIBLE_OR_UNBOUNDED])
def test_nobody_denies_a_feasible_start(status: Status) -> None:
    """As a solver does that was given a cutoff by an option of its own."""
    result = say(Outcome(status, message="cutoff"), SolveParams(start=BEST))
    assert (result.status, result.limit, result.objective) == (Status.FEASIBLE, Limit.OTHER, MINIMUM)
    assert "although the start is feasible: cutoff" in result.message
    assert say(Outcome(status), SolveParams(start=np.ones(4))).status is status


def test_a_solver_that_writes_its_answer_is_waited_for() -> None:
    params = SolveParams(start=WORSE)

    def slow(mip: Mip, params: SolveParams, progress: Progress) -> Outcome:
        progress.answering = True
        params.cancel.set()
        time.sleep(1.5 * GRACE_S)
        return Outcome(Status.FEASIBLE, BEST, None, Limit.INTERRUPT)

    assert supervised(slow, MIP, params).objective == MINIMUM


@pytest.mark.parametrize("start", [np.ones(4), np.full(4, 0.25), np.array([1.0, 1.0, 0.0, -1.0])])
def test_an_infeasible_start_is_not_kept(start: FloatArray) -> None:
    result = say(Outcome(Status.NO_SOLUTION, None, None, Limit.TIME), SolveParams(start=start))
    assert result.status is Status.NO_SOLUTION


def test_a_start_for_a_program_without_columns() -> None:
    result = supervised(lambda *_: Outcome(Status.INFEASIBLE), program([], offset=3), SolveParams(start=np.zeros(0)))
    assert (result.status, result.objective) == (Status.OPTIMAL, 3)


def test_rows_in_large_units_are_judged_at_their_own_scale() -> None:
    mip = program([-1, -1], [([1e12, 1e12], -INF, 1e12)])
    nothing = Outcome(Status.NO_SOLUTION, None, None, Limit.TIME)
    for start, kept in ((np.array([1.0, 0.0]), True), (np.array([1.0, 1.0]), False)):
        result = supervised(lambda *_: nothing, mip, SolveParams(start=start))
        assert result.status.has_solution is kept


def test_events_only_improve_whatever_the_solver_reports() -> None:
    events: list[Event] = []
    progress = Progress(events.append, clock=iter(range(100)).__next__)
    for incumbent, bound in ((None, None), (9.0, 1.0), (10.0, 2.0), (8.0, 1.5), (8.0, 2.0), (None, 3.0)):
        progress.update(incumbent, bound)
    assert [(event.incumbent, event.bound) for event in events] == [(9.0, 1.0), (9.0, 2.0), (8.0, 2.0), (8.0, 3.0)]


def test_time_left() -> None:
    progress = Progress(None, clock=iter([0.0, 4.0, 11.0]).__next__)
    assert progress.remaining_s(None) is None
    assert progress.remaining_s(10.0) == 6.0
    assert progress.remaining_s(10.0) == 0.0


def _fail(text: str) -> None:
    raise KeyError(text)


def test_relay_keeps_the_first_failure_and_stops() -> None:
    relay = Relay(SolveParams(), Progress(None))
    relay.call(lambda: None)
    relay.reraise()
    assert not relay.stop
    for text in ("first", "second"):
        relay.call(partial(_fail, text))
    assert relay.stop
    with pytest.raises(KeyError, match="first"):
        relay.reraise()


def test_watching_interrupts_until_the_solver_gives_in() -> None:
    cancel = threading.Event()
    cancel.set()
    deaf_at_first = threading.Semaphore(0)
    with watching(Relay(SolveParams(cancel=cancel), Progress(None)), deaf_at_first.release):
        for _ in range(3):
            assert deaf_at_first.acquire(timeout=10)


@needs("signals")
def test_ctrl_c_sets_cancel_and_keeps_the_answer() -> None:
    cancel = threading.Event()

    def run() -> str:
        os.kill(os.getpid(), signal.SIGINT)
        assert cancel.wait(10)
        return "incumbent"

    assert interruptibly(run, cancel) == "incumbent"


@needs("signals")
def test_the_third_ctrl_c_gives_up() -> None:
    done = threading.Event()

    def run() -> None:
        while not done.wait(0.1):
            os.kill(os.getpid(), signal.SIGINT)
            done.wait(0.3)

    def never_done() -> None:
        try:
            interruptibly(run, threading.Event())
        finally:
            done.set()

    with pytest.raises(KeyboardInterrupt):
        never_done()


@needs("signals")
def test_a_handler_of_the_callers_stays_in_charge() -> None:
    heard, cancel = threading.Event(), threading.Event()

    def press() -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return heard.wait(10)

    before = signal.signal(signal.SIGINT, lambda number, frame: heard.set())
    try:
        assert interruptibly(press, cancel)
        assert not cancel.is_set()
    finally:
        signal.signal(signal.SIGINT, before)
    assert signal.getsignal(signal.SIGINT) is before


def test_interruptibly_passes_failures_on() -> None:
    with pytest.raises(ZeroDivisionError):
        interruptibly(lambda: 1 // 0, threading.Event())


def test_option_values_take_the_solvers_type() -> None:
    assert converted("TRUE", False) is True
    assert converted(0, True) is False
    assert converted("3", 1) == 3
    assert converted("0.5", 1.0) == 0.5
    for value, like in (("yes", True), (1.5, 1), ("x", 1.0)):
        with pytest.raises(ValueError, match=str(value)):
            converted(value, like)


def test_one_sided_rows_say_the_same() -> None:
    rows = [([1, 0], -INF, 3), ([1, 0], 2, INF), ([1, 0], 1, 4), ([1, 0], 5, 5), ([1, 0], -INF, INF)]
    at, sense, limit = one_sided(program([0, 0], rows), "<", ">", "=")
    assert sorted(zip(at.tolist(), sense.tolist(), limit.tolist(), strict=True)) == [
        (0, "<", 3.0),
        (1, ">", 2.0),
        (2, "<", 4.0),
        (2, ">", 1.0),
        (3, "=", 5.0),
    ]


def test_bounds_that_cross_name_the_culprit() -> None:
    mip = replace(MIP, col_lower=np.array([0.0, 0.0, 2.0, 0.0]))
    result = supervised(lambda *_: pytest.fail("needs no solver"), mip, SolveParams())
    assert result.status is Status.INFEASIBLE
    assert "x[2]" in result.message


def test_a_solver_that_overruns_its_limit_is_stopped_for_time() -> None:
    seconds = iter([0.0, 10.1, 10.1, 10.3, 10.3, 10.3])
    cancel = threading.Event()
    relay = Relay(SolveParams(time_limit_s=10.0, cancel=cancel), Progress(None, clock=seconds.__next__))
    assert not relay.stop
    assert relay.limit is Limit.INTERRUPT
    assert relay.stop
    assert relay.limit is Limit.TIME
    cancel.set()
    assert relay.limit is Limit.INTERRUPT


@pytest.mark.parametrize(
    ("x", "words"),
    [(np.ones(4), r"misses row row\[0\] by"), (np.array([1.0, 0.5, 0.0, 0.0]), "fractions"), (None, "no solution")],
)
def test_what_is_no_solution_is_not_passed_on(x: FloatArray | None, words: str) -> None:
    with pytest.raises(BackendError, match=words):
        say(Outcome(Status.OPTIMAL, x, MINIMUM))


@pytest.mark.parametrize("named", [True, False])
def test_what_is_wrong_is_said_of_programs_without_names_too(named: bool) -> None:
    mip = MIP if named else replace(MIP, columns=(), rows=())
    heavy = np.ones(len(MIP.cost))
    row = next(iter(MIP.row_names())) if named else "#0"
    with pytest.raises(BackendError, match=f"misses row {re.escape(row)} by"):
        supervised(lambda mip, params, progress: Outcome(Status.FEASIBLE, heavy), mip, SolveParams())
    column = next(iter(MIP.column_names())) if named else "#0"
    empty = replace(mip, col_lower=mip.col_upper + 1)
    result = supervised(lambda mip, params, progress: Outcome(Status.OPTIMAL, heavy), empty, SolveParams())
    assert (result.status, result.message) == (
        Status.INFEASIBLE,
        f"column {column} must lie between 2 and 1, which is empty",
    )
