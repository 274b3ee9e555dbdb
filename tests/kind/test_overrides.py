"""Weights and order that a solve states instead of its instance's."""

from __future__ import annotations

import pytest

import mast_opt
from mast_opt.core.errors import UsageError
from mast_opt.problems.kind.overrides import Overrides
from mast_opt.problems.registry import kind_named, kind_names

EVERY_KIND_WITH_TERMS = [name for name in kind_names() if kind_named(name).terms]
SMALL = mast_opt.generate("data-placement", seed=1, datasets=4, workloads=5, regions=2)


@pytest.mark.parametrize("kind", EVERY_KIND_WITH_TERMS)
def test_weights_and_order_of_every_kind(kind: str) -> None:
    problem = mast_opt.generate(kind, seed=1)
    first, second, *_ = problem.objective.weights
    changed = problem.with_objective({first: 7.5})
    assert changed.objective.weights == {**problem.objective.weights, first: 7.5}
    assert changed.objective.order == problem.objective.order
    ordered = changed.with_objective(order=[second, first])
    assert ordered.objective.order == (second, first)
    assert ordered.objective.weights == changed.objective.weights
    assert ordered.with_objective(order=()).objective.order == ()
    with pytest.raises(UsageError, match=rf"{kind} has no term called 'remotes'; expected some of: {first}, {second}"):
        problem.with_objective({"remotes": 1.0})
    with pytest.raises(UsageError, match="has no term called 'x'"):
        problem.with_objective(order=("x",))


def test_weights_out_of_range_and_terms_named_twice_are_refused() -> None:
    for weight in (-1.0, float("inf"), float("nan")):
        with pytest.raises(UsageError, match=r"objective\.weights\['remote'\] is .*expected a number from 0"):
            SMALL.with_objective({"remote": weight})
    with pytest.raises(UsageError, match="each term once"):
        SMALL.with_objective(order=("peak", "peak"))


def test_a_policy_has_no_weights() -> None:
    problem = mast_opt.generate("resource-allocation", seed=1)
    for changed in (Overrides({"peak": 1.0}), Overrides(order=("peak",)), Overrides(order=())):
        with pytest.raises(UsageError, match=r"it has a policy \(max-min\), no weights"):
            changed.applied_to(problem)


def test_weights_that_count_for_nothing_are_refused() -> None:
    ordered = SMALL.with_objective(order=("peak", "storage"))
    with pytest.raises(UsageError, match="a weight of remote counts for nothing"):
        Overrides({"remote": 1.0}).applied_to(ordered)
    assert Overrides({"remote": 1.0}, ()).applied_to(ordered).objective.weights["remote"] == 1.0


def test_later_overrides_win() -> None:
    first = Overrides({"remote": 1.0, "copy": 2.0}, ("peak",))
    assert first.followed_by(Overrides({"copy": 3.0})) == Overrides({"remote": 1.0, "copy": 3.0}, ("peak",))
    assert first.followed_by(Overrides(order=())) == Overrides({"remote": 1.0, "copy": 2.0}, ())


def test_what_is_overridden_in_words_and_fields() -> None:
    assert not Overrides()
    assert Overrides().fields() == {}
    assert Overrides().applied_to(SMALL) is SMALL
    zero = dict.fromkeys(("peak", "overload", "copy", "storage"), 0.0)
    assert str(Overrides({**zero, "remote": 2.0})) == "weight remote = 2, weight 0 for 4 terms"
    both = Overrides({"remote": 500}, ())
    assert both
    assert str(both) == "weight remote = 500, a weighted sum"
    assert both.fields() == {"order": [], "weights": {"remote": 500.0}}
    assert str(Overrides(order=("peak", "copy"))) == "order peak, copy"
