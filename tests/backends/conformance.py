"""What every backend must do. A library: subclass ``Conformance`` and give it a fixture ``backend``.

class TestMine(Conformance):
    @pytest.fixture
    def backend(self):
        return Mine()
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from mast_opt.core.errors import UnsupportedOption, UsageError
from mast_opt.core.solve_result import Event, Limit, SolveParams, SolveResult, Status
from mast_opt.problems.backends import supervise
from mast_opt.problems.backends.base import Backend
from mast_opt.problems.mip import Mip, scale
from tests.backends import programs
from tests.backends.programs import INF, DenseRow, program
from tests.narrowing import some

QUIET = SolveParams()
EXACT = SolveParams(gap=0.0)


def assert_feasible(mip: Mip, result: SolveResult) -> None:
    """The answer's x satisfies bounds, integrality and rows to 1e-5 of the scaled program."""
    assert result.x is not None
    scaled = scale(mip)
    x, tolerance = result.x, 1e-5
    assert (x >= mip.col_lower).all()
    assert (x <= mip.col_upper).all()
    assert np.abs(x - np.round(x))[mip.integral].max(initial=0.0) <= tolerance
    activity = mip.activity(x) * scaled.row_factor
    assert (activity >= scaled.mip.row_lower - tolerance).all()
    assert (activity <= scaled.mip.row_upper + tolerance).all()


def assert_minimum(mip: Mip, result: SolveResult, minimum: float) -> None:
    """Proven optimal at ``minimum``, with a bound that is not above it."""
    assert result.status is Status.OPTIMAL, result.message
    assert_feasible(mip, result)
    assert result.objective == pytest.approx(minimum, rel=1e-6, abs=1e-9)
    assert result.objective == mip.objective(some(result.x))
    assert result.bound is not None
    assert result.bound <= minimum + 1e-6 * abs(minimum) + 1e-9
    assert result.bound == pytest.approx(minimum, rel=2e-4, abs=1e-9)
    assert result.limit is None


class Conformance:
    """The suite. Every test takes the fixture ``backend``."""

    needing_finite_bounds: frozenset[str] = frozenset()
    """Backends that refuse a column without finite bounds where rows and costs imply none."""
    single_threaded: frozenset[str] = frozenset()
    """Backends that refuse more than one thread."""
    unseeded: frozenset[str] = frozenset()
    """Backends that have no seed and refuse any but 0."""

    # --- answers ---

    def test_mip(self, backend: Backend) -> None:
        mip, minimum = programs.knapsack()
        assert_minimum(mip, backend.solve(mip, QUIET), minimum)

    def test_lp(self, backend: Backend) -> None:
        mip, minimum = programs.diet()
        assert_minimum(mip, backend.solve(mip, QUIET), minimum)

    def test_mixed(self, backend: Backend) -> None:
        mip, minimum = programs.overload(1.0)
        assert_minimum(mip, backend.solve(mip, QUIET), minimum)

    @pytest.mark.parametrize("unit", [1e9, 1e12])
    def test_coefficients_in_base_units(self, backend: Backend, unit: float) -> None:
        mip, minimum = programs.overload(unit)
        assert_minimum(mip, backend.solve(mip, QUIET), minimum)

    def test_one_unit_in_1e9_is_not_lost(self, backend: Backend) -> None:
        unit = 10**6
        fits = program([-3, -2], [([unit, unit + 1], -INF, 2 * unit + 1)])
        assert_minimum(fits, backend.solve(fits, QUIET), -5)

    def test_infeasible_relaxation(self, backend: Backend) -> None:
        mip = program([1, 1], [([1, 1], 3, INF)])
        result = backend.solve(mip, QUIET)
        assert result.status is Status.INFEASIBLE
        assert (result.x, result.objective, result.bound, result.limit) == (None, None, None, None)

    def test_infeasible_integers(self, backend: Backend) -> None:
        mip = program([1, 1], [([2, 2], 3, 3)], upper=10.0)
        assert backend.solve(mip, QUIET).status is Status.INFEASIBLE

    def test_infeasible_lp(self, backend: Backend) -> None:
        mip = program([1, 1], [([1, 1], 3, INF), ([1, -1], 2, 2)], integral=False)
        assert backend.solve(mip, QUIET).status is Status.INFEASIBLE

    def test_bounds_that_cross(self, backend: Backend) -> None:
        assert backend.solve(program([1], lower=1.0, upper=0.0), QUIET).status is Status.INFEASIBLE
        assert backend.solve(program([1], [([1], 1, 0)]), QUIET).status is Status.INFEASIBLE
        assert backend.solve(program([1], lower=0.25, upper=0.75), QUIET).status is Status.INFEASIBLE

    @pytest.mark.parametrize("integral", [True, False])
    def test_unbounded(self, backend: Backend, integral: bool) -> None:
        mip = program([-1, 1], [([1, -1], 0, INF)], upper=INF, integral=integral)
        result = backend.solve(replace(mip, cost=np.array([-2.0, 1.0])), QUIET)
        assert result.status in (Status.UNBOUNDED, Status.INFEASIBLE_OR_UNBOUNDED)
        assert (result.x, result.objective, result.bound) == (None, None, None)

    def test_offset(self, backend: Backend) -> None:
        mip, minimum = programs.knapsack()
        assert_minimum(replace(mip, offset=1000.5), backend.solve(replace(mip, offset=1000.5), QUIET), minimum + 1000.5)

    def test_objective_of_zero(self, backend: Backend) -> None:
        mip, minimum = programs.knapsack()
        assert_minimum(replace(mip, offset=-minimum), backend.solve(replace(mip, offset=-minimum), QUIET), 0.0)

    def test_no_costs(self, backend: Backend) -> None:
        mip = program([0, 0], [([1, 1], 1, 1)], offset=4.0)
        assert_minimum(mip, backend.solve(mip, QUIET), 4.0)

    def test_tiny_costs(self, backend: Backend) -> None:
        mip, minimum = programs.knapsack()
        tiny = replace(mip, cost=mip.cost * 1e-9)
        assert_minimum(tiny, backend.solve(tiny, EXACT), minimum * 1e-9)

    def test_no_rows(self, backend: Backend) -> None:
        mip = program([1, -2, 0], lower=[-1, 0, 0], upper=[3, 4, 1], integral=[True, False, True], offset=0.5)
        assert_minimum(mip, backend.solve(mip, QUIET), -8.5)

    def test_no_columns(self, backend: Backend) -> None:
        assert_minimum(program([], offset=2.0), backend.solve(program([], offset=2.0), QUIET), 2.0)
        assert backend.solve(program([], [([], 1, 2)]), QUIET).status is Status.INFEASIBLE

    def test_empty_rows_and_columns(self, backend: Backend) -> None:
        mip = program([-1, -1, 0], [([0, 0, 0], -1, 0), ([1, 0, 0], -INF, 3), ([0, 0, 0], 0, INF)], upper=[5, 2, 7])
        assert_minimum(mip, backend.solve(mip, QUIET), -5)
        broken = program([-1, -1], [([0, 0], 1, INF)])
        assert backend.solve(broken, QUIET).status is Status.INFEASIBLE

    def test_free_columns(self, backend: Backend) -> None:
        rows = [([1, 1], -7, INF), ([1, -1], -INF, 3), ([1, -1], -3, INF)]
        mip = program([1, 1], rows, lower=-INF, upper=INF, integral=False)
        if backend.name in self.needing_finite_bounds:
            with pytest.raises(UnsupportedOption, match=r"x\[0\]"):
                backend.solve(mip, QUIET)
        else:
            assert_minimum(mip, backend.solve(mip, QUIET), -7)

    def test_columns_whose_bounds_follow_from_rows_and_costs(self, backend: Backend) -> None:
        # x0 free but x0 + 2 x1 = 3 and 0 <= x1 <= 2; x2 priced and needed for x2 >= 4 - 3 x1; x3 integer, x3 <= 2.5 x1
        rows: list[DenseRow] = [([1, 2, 0, 0], 3, 3), ([0, 3, 1, 0], 4, INF), ([0, -2.5, 0, 1], -INF, 0)]
        lower, upper = [-INF, 0, 0, 0], [INF, 2, INF, INF]
        mip = program([1, 1, 10, -1], rows, lower=lower, upper=upper, integral=[False, False, False, True])
        assert_minimum(mip, backend.solve(mip, QUIET), 3 - 2 * 2 + 2 - 5)

    def test_rows_of_every_sense(self, backend: Backend) -> None:
        rows = [
            ([1, 1, 1], 4, 4),
            ([1, -1, 0], -1, 1),
            ([0, 1, 2], -INF, 6),
            ([1, 0, 0], 1, INF),
            ([0, 1, 0], -INF, INF),
        ]
        mip = program([1, 2, -1], rows, upper=5.0)
        assert_minimum(mip, backend.solve(mip, QUIET), -2.0)

    def test_negative_and_fixed_integers(self, backend: Backend) -> None:
        mip = program([1, -1, 3], [([2, 3, 1], -8, 5)], lower=[-4, -2, 2], upper=[4, 6, 2])
        minimum = programs.enumerated(mip)
        assert minimum is not None
        assert_minimum(mip, backend.solve(mip, QUIET), minimum)

    def test_integers_with_fractional_bounds(self, backend: Backend) -> None:
        mip = program([-1, 1], [([1, 1], -INF, 10)], lower=[0, -1.5], upper=[3.7, 2])
        assert_minimum(mip, backend.solve(mip, QUIET), -4)

    @pytest.mark.parametrize("continuous", [False, True])
    @pytest.mark.parametrize("seed", range(12))
    def test_equals_enumeration(self, backend: Backend, seed: int, continuous: bool) -> None:
        mip = programs.small_random(seed, continuous=continuous)
        minimum = programs.enumerated(mip)
        result = backend.solve(mip, EXACT)
        if minimum is None:
            assert result.status is Status.INFEASIBLE
        else:
            assert_minimum(mip, result, minimum)

    # --- gap, seed, threads, limits ---

    @pytest.mark.parametrize("gap", [0.2, 0.01])
    def test_gap_is_honoured(self, backend: Backend, gap: float) -> None:
        mip = programs.hard(items=30, rows=5)
        result = backend.solve(mip, SolveParams(gap=gap))
        assert result.status is Status.OPTIMAL
        assert result.gap is not None
        assert result.gap <= gap

    @pytest.mark.parametrize("seed", range(3))
    def test_bound_is_never_above_the_minimum(self, backend: Backend, seed: int) -> None:
        mip = programs.hard(seed=seed, items=25, rows=5)
        minimum = backend.solve(mip, EXACT).objective
        assert minimum is not None
        events: list[Event] = []
        early = backend.solve(mip, SolveParams(gap=0.05, on_event=events.append))
        bounds = [early.bound, *(event.bound for event in events)]
        assert all(bound <= minimum + 1e-6 * abs(minimum) for bound in bounds if bound is not None)

    def test_seed_and_one_thread_repeat_the_answer(self, backend: Backend) -> None:
        mip = programs.hard(items=25, rows=5)
        params = SolveParams(seed=7, threads=1, gap=0.01)
        if backend.name in self.unseeded:
            with pytest.raises(UnsupportedOption, match="seed = 7"):
                backend.solve(mip, params)
            params = replace(params, seed=0)
        once, again = (backend.solve(mip, params) for _ in range(2))
        assert (once.objective, once.bound) == (again.objective, again.bound)
        np.testing.assert_array_equal(once.x, again.x)

    def test_threads(self, backend: Backend) -> None:
        mip, minimum = programs.knapsack()
        for threads in (2, 1, 3):
            params = replace(QUIET, threads=threads)
            if threads > 1 and backend.name in self.single_threaded:
                with pytest.raises(UnsupportedOption, match=f"threads = {threads}"):
                    backend.solve(mip, params)
            else:
                assert_minimum(mip, backend.solve(mip, params), minimum)

    def test_time_limit_keeps_the_incumbent(self, backend: Backend) -> None:
        backend.solve(programs.knapsack()[0], QUIET)  # loads the library, which may take longer than the limit
        mip = programs.hard()
        result = backend.solve(mip, SolveParams(time_limit_s=1.0, gap=0.0))
        assert (result.status, result.limit) == (Status.FEASIBLE, Limit.TIME)
        assert_feasible(mip, result)
        assert result.bound is not None
        assert result.objective is not None
        assert result.bound <= result.objective

    def test_time_limit_without_incumbent(self, backend: Backend) -> None:
        mip, _ = programs.market_split()
        result = backend.solve(mip, SolveParams(time_limit_s=0.5))
        assert (result.status, result.limit) == (Status.NO_SOLUTION, Limit.TIME)
        assert (result.x, result.objective) == (None, None)
        assert result.bound is not None
        assert result.bound >= 0, "no column costs less than 0"

    @pytest.mark.parametrize(
        ("field", "value"),
        [("time_limit_s", 0.0), ("time_limit_s", float("nan")), ("gap", -0.1), ("seed", -1), ("threads", 0)],
    )
    def test_senseless_parameters(self, backend: Backend, field: str, value: float) -> None:
        mip, _ = programs.knapsack()
        wrong: dict[str, Any] = {field: value}
        with pytest.raises(UsageError, match=field):
            backend.solve(mip, replace(QUIET, **wrong))

    def test_misspelt_option(self, backend: Backend) -> None:
        mip, _ = programs.knapsack()
        with pytest.raises(UnsupportedOption, match="heuristic_efort"):
            backend.solve(mip, replace(QUIET, options=(("heuristic_efort", 1),)))

    def test_numbers_that_are_none(self, backend: Backend) -> None:
        with pytest.raises(UsageError, match="cost"):
            backend.solve(program([1, np.nan]), QUIET)

    # --- warm starts ---

    def test_start_is_used(self, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(supervise, "_feasible", lambda mip, start: None)
        mip, planted = programs.market_split()
        result = backend.solve(mip, SolveParams(time_limit_s=2.0, start=planted))
        assert result.status.has_solution, "the solver itself must take the start, without our safety net"
        assert result.objective is not None
        assert result.objective <= mip.objective(planted)
        assert_feasible(mip, result)

    def test_start_survives_a_limit(self, backend: Backend) -> None:
        mip, planted = programs.market_split(seed=1)
        events: list[Event] = []
        result = backend.solve(mip, SolveParams(time_limit_s=0.01, start=planted, on_event=events.append))
        assert (result.status, result.limit) == (Status.FEASIBLE, Limit.TIME)
        assert result.objective == mip.objective(planted)
        assert events[0].incumbent == mip.objective(planted)

    def test_infeasible_start_is_no_solution(self, backend: Backend) -> None:
        mip, planted = programs.market_split()
        result = backend.solve(mip, SolveParams(time_limit_s=0.5, start=1 - planted))
        assert result.status is Status.NO_SOLUTION
        small, minimum = programs.knapsack()
        assert_minimum(small, backend.solve(small, replace(QUIET, start=np.ones(4))), minimum)
        empty = program([1, 1], [([1, 1], 3, INF)])
        assert backend.solve(empty, replace(QUIET, start=np.ones(2))).status is Status.INFEASIBLE

    def test_start_with_fractions_or_outside_its_bounds(self, backend: Backend) -> None:
        mip, minimum = programs.knapsack()
        for start in (np.full(4, 0.5), np.array([9.0, -4.0, 1.0, 0.0])):
            assert_minimum(mip, backend.solve(mip, replace(QUIET, start=start)), minimum)

    def test_start_of_the_wrong_length(self, backend: Backend) -> None:
        mip, _ = programs.knapsack()
        with pytest.raises(UsageError, match="start"):
            backend.solve(mip, replace(QUIET, start=np.zeros(3)))

    # --- events, interrupts, threads of the caller ---

    def test_events_only_improve(self, backend: Backend) -> None:
        mip = programs.hard(items=40, rows=8)
        events: list[Event] = []
        result = backend.solve(mip, SolveParams(time_limit_s=2.0, on_event=events.append))
        assert events
        for before, after in pairwise(events):
            assert before.elapsed_s <= after.elapsed_s
            assert before.incumbent is None or some(after.incumbent) <= before.incumbent
            assert before.bound is None or some(after.bound) >= before.bound
        assert events[-1].incumbent == pytest.approx(result.objective, rel=1e-6)
        assert any(event.incumbent is not None for event in events[:-1]), "reported as it went, not only at the end"

    def test_lp_reports_its_answer(self, backend: Backend) -> None:
        mip, minimum = programs.diet()
        events: list[Event] = []
        backend.solve(mip, replace(QUIET, on_event=events.append))
        assert events[-1].incumbent == pytest.approx(minimum)

    def test_cancel_returns_the_incumbent(self, backend: Backend) -> None:
        mip = programs.hard()
        cancel = threading.Event()

        def stop(event: Event) -> None:
            if event.incumbent is not None:
                cancel.set()

        result = backend.solve(mip, SolveParams(time_limit_s=60.0, gap=0.0, on_event=stop, cancel=cancel))
        assert (result.status, result.limit) == (Status.FEASIBLE, Limit.INTERRUPT)
        assert_feasible(mip, result)

    def test_cancel_from_another_thread_without_incumbent(self, backend: Backend) -> None:
        mip, _ = programs.market_split()
        cancel = threading.Event()
        timer = threading.Timer(0.5, cancel.set)
        timer.start()
        result = backend.solve(mip, SolveParams(time_limit_s=60.0, cancel=cancel))
        timer.join()
        assert (result.status, result.limit) == (Status.NO_SOLUTION, Limit.INTERRUPT)

    def test_cancelled_before_it_began(self, backend: Backend) -> None:
        mip = programs.hard()
        cancel = threading.Event()
        cancel.set()
        result = backend.solve(mip, SolveParams(cancel=cancel))
        assert (result.status, result.limit) == (Status.NO_SOLUTION, Limit.INTERRUPT)
        kept = backend.solve(mip, SolveParams(cancel=cancel, start=np.zeros(len(mip.cost))))
        assert (kept.status, kept.limit, kept.objective) == (Status.FEASIBLE, Limit.INTERRUPT, 0.0)

    def test_failing_callback_is_heard(self, backend: Backend) -> None:
        def fail(event: Event) -> None:
            raise ZeroDivisionError("in the callback")

        with pytest.raises(ZeroDivisionError, match="in the callback"):
            backend.solve(programs.hard(), SolveParams(time_limit_s=60.0, on_event=fail))

    def test_several_solves_at_once(self, backend: Backend) -> None:
        seeds = range(20, 26)

        def solve(seed: int) -> SolveResult:
            threads = 1 if backend.name in self.single_threaded else 1 + seed % 2
            return backend.solve(programs.small_random(seed), replace(EXACT, threads=threads))

        with ThreadPoolExecutor(3) as pool:
            results = list(pool.map(solve, seeds))
        for seed, result in zip(seeds, results, strict=True):
            minimum = programs.enumerated(programs.small_random(seed))
            assert result.objective == (None if minimum is None else pytest.approx(minimum, rel=1e-6, abs=1e-9))
