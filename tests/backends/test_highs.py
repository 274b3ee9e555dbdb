"""HiGHS in particular: interrupts inside LPs, threads of several sizes, and errors that it contradicts itself with."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from mast_opt.core.errors import UnsupportedOption
from mast_opt.core.solve_result import Limit, SolveParams, Status
from mast_opt.problems.backends.highs import Highs
from mast_opt.problems.backends.progress import Relay
from mast_opt.problems.mip import Mip, MipBuilder
from tests.backends.programs import enumerated, hard, small_random


def linear(columns: int = 400) -> Mip:
    rng = np.random.default_rng(0)
    m = MipBuilder("linear")
    x = m.columns("x", [[str(i) for i in range(columns)]], upper=10)
    labels = [str(i) for i in range(columns)]
    m.rows("row", [labels], lower=5).add(np.arange(columns)[:, None], x, rng.random((columns, columns)))
    m.term("cost", x, rng.random(columns))
    return m.build({"cost": 1.0})


@pytest.mark.parametrize("solver", ["simplex", "ipm"])
def test_a_linear_program_can_be_interrupted(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Relay, "stop", property(lambda relay: True))
    result = Highs().solve(linear(), SolveParams(options=(("solver", solver),)))
    assert (result.status, result.limit) == (Status.NO_SOLUTION, Limit.INTERRUPT)


@pytest.mark.parametrize("seed", [756, 704, 694])
def test_a_solve_error_of_its_presolve_is_overcome(seed: int) -> None:
    for continuous in (False, True):
        mip = small_random(seed, continuous=continuous)
        minimum = enumerated(mip)
        result = Highs().solve(mip, SolveParams(gap=0.0))
        assert result.objective == (None if minimum is None else pytest.approx(minimum, rel=1e-6))


def test_thread_counts_change_from_solve_to_solve_and_from_thread_to_thread() -> None:
    mip = replace(hard(items=20, rows=3), offset=1.0)
    expected = Highs().solve(mip, SolveParams()).objective
    together = threading.Barrier(3)

    def solve(threads: int) -> list[float | None]:
        together.wait(30)
        return [Highs().solve(mip, SolveParams(threads=count)).objective for count in (threads, 1, threads + 1)]

    with ThreadPoolExecutor(3) as pool:
        found = [objective for objectives in pool.map(solve, (1, 2, 3)) for objective in objectives]
    assert found == [pytest.approx(expected, rel=1e-4)] * 9


def test_its_own_words_explain_a_refusal() -> None:
    with pytest.raises(UnsupportedOption, match="below lower bound"):
        Highs().solve(hard(), SolveParams(options=(("mip_heuristic_effort", -1.0),)))


def test_our_tolerance_is_no_complaint_about_the_program() -> None:
    m = MipBuilder("wide")
    x = m.columns("x", [["a", "b"]], upper=1e8, integral=True)
    m.rows("least", [["one"]], lower=7).add(np.zeros((1, 2), np.int64), x[None, :], np.array([[2.0, 3.0]]))
    m.term("cost", x, np.array([3.0, 4.0]))
    result = Highs().solve(m.build({"cost": 1.0}), SolveParams(gap=0.0))
    assert (result.status, "WARNING" in result.message) == (Status.OPTIMAL, False)


def test_what_a_start_breaks_is_not_in_the_message() -> None:
    m = MipBuilder("cover")
    labels = [str(i) for i in range(6)]
    x = m.columns("x", [labels], upper=1, integral=True)
    m.rows("cover", [labels], lower=1).add(np.arange(6)[:, None], np.stack([x, np.roll(x, 1)], axis=1), 1.0)
    m.term("cost", x, np.arange(1.0, 7.0))
    mip = m.build({"cost": 1.0})
    broken = np.array([1.0, 0, 0, 0, 1, 0])
    result = Highs().solve(mip, SolveParams(start=broken))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(9.0)
    assert result.message == Highs().solve(mip, SolveParams()).message == "Optimal"
