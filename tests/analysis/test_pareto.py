"""Frontiers: every point is efficient, proven, and the verifier's."""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

import mast_opt
from mast_opt.planner.analysis import pareto
from mast_opt.problems.data_placement.formulation.formulation import base
from tests.data_placement.support import proven
from tests.data_placement.workshop import PROBLEM

SMALL = mast_opt.generate("data-placement", seed=1, datasets=9, workloads=11, regions=3)


def test_points_against_their_programs() -> None:
    """Each bound is the least of the second term under the cap on the first, which HiGHS finds again."""
    answer = mast_opt.pareto(SMALL, ("storage", "peak"), points=5, keep={"remote": 0.0}, gap=1e-6)
    assert answer.method == "epsilon"
    assert len(answer.points) + answer.dominated + answer.missing == 5
    assert len(answer.points) >= 3
    for point in answer.points:
        verdict = mast_opt.verify(SMALL, point.plan)
        assert verdict.ok
        assert verdict.terms == point.terms
        assert point.terms["remote"] == 0
        assert point.proven
        assert point.bound == pytest.approx(point.terms["peak"], rel=1e-4)
        mip = base(SMALL).mip.limit_term("remote", 0.0).minimise({"peak": 1.0})
        if point.cap is not None:
            mip = mip.limit_term("storage", point.cap)
            assert point.terms["storage"] <= point.cap + 1e-6
        assert proven(mip).objective == pytest.approx(point.bound, rel=1e-4)
    for one, other in pairwise(answer.points):
        assert one.terms["storage"] < other.terms["storage"]
        assert one.terms["peak"] > other.terms["peak"]


def test_the_ends_are_the_least_of_each() -> None:
    answer = mast_opt.pareto(SMALL, ("storage", "remote"), points=3, gap=1e-6)
    mip = base(SMALL).mip
    assert answer.points[0].terms["storage"] == pytest.approx(proven(mip.minimise({"storage": 1.0})).objective)
    assert answer.points[-1].terms["remote"] == pytest.approx(proven(mip.minimise({"remote": 1.0})).objective, abs=1e-9)


def test_work_is_not_refused_to_save_anything() -> None:
    answer = mast_opt.pareto(replace(SMALL, may_refuse=True), ("storage", "peak"), points=2)
    assert all(point.terms["unserved"] == 0 for point in answer.points)


def test_a_heuristic_varies_the_weights() -> None:
    answer = mast_opt.pareto(SMALL, ("storage", "peak"), points=3, solver="tetris", time_limit_s=3)
    assert answer.method == "weights"
    assert answer.points
    for point in answer.points:
        assert mast_opt.verify(SMALL, point.plan).ok
        assert point.cap is None
        assert point.bound is not None


@pytest.mark.parametrize(
    ("terms", "given", "words"),
    [
        (("storage",), {}, "between two terms"),
        (("storage", "storage"), {}, "two different"),
        (("storage", "beauty"), {}, "no term called 'beauty'"),
        (("storage", "peak"), {"points": 1}, "at least 2"),
        (("storage", "peak"), {"solver": "nobody"}, "expected one of"),
        (("storage", "peak"), {"solver": "tetris", "keep": {"remote": 0.0}}, "cannot keep remote"),
        (("peak", "storage"), {"solver": "tetris", "formulation": "strong"}, "no formulation"),
        (("storage", "peak"), {"keep": {"joy": 0.0}}, "no term called 'joy'"),
        (("storage", "peak"), {"formulation": "odd"}, "no formulation"),
        (("storage", "peak"), {"keep": {"copy": -1.0}}, "no plan has copy ≤ -1"),
    ],
)
def test_arguments_that_cannot_be_honoured(terms: tuple[str, ...], given: dict[str, Any], words: str) -> None:
    with pytest.raises(mast_opt.UsageError, match=words):
        mast_opt.pareto(PROBLEM, terms, **given)


def test_an_end_cut_short_has_no_bound_on_the_other_term(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancelled when the least storage is proven: nothing is known of the peak that goes with it."""
    cancel = threading.Event()
    least = pareto._Epsilon._least

    def cancelling(search: Any, weights: dict[str, float], caps: dict[str, float], share: float) -> Any:
        answer = least(search, weights, caps, share)
        if weights == {"storage": 1.0}:
            cancel.set()
        return answer

    monkeypatch.setattr(pareto._Epsilon, "_least", cancelling)
    (end,) = mast_opt.pareto(SMALL, ("storage", "peak"), cancel=cancel).points
    assert mast_opt.verify(SMALL, end.plan).ok
    assert (end.bound, end.proven) == (None, False)
