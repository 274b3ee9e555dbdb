"""The stages of a lexicographic objective: what each search is asked, and when the last one is."""

from __future__ import annotations

import pytest

from mast_opt.problems.search.interface import SearchMonitor, SearchResult, StageBound, StoppingCriteria
from mast_opt.problems.search.lexicographic import SearchStage, search_in_order, with_slack

ORDER, TERMS = ("b", "a"), ("a", "b", "c")


def run(
    plans: list[str | None], bounds: list[float | None], stop: StoppingCriteria, cancel: bool = False
) -> tuple[list[SearchStage[str]], SearchResult[str]]:
    """The stages that were searched, and the result of the last with the first one's bound."""
    seen: list[SearchStage[str]] = []

    def search(stage: SearchStage[str]) -> SearchResult[str]:
        seen.append(stage)
        if cancel:
            stop.cancel.set()
        return SearchResult(plans[len(seen) - 1], bounds[len(seen) - 1], None, f"stage {len(seen)}")

    found = search_in_order(ORDER, TERMS, SearchMonitor(stop), "start", 50.0, search, lambda plan, term: len(plan))
    return seen, found


def test_each_stage_keeps_the_terms_before_and_begins_with_their_plan() -> None:
    seen, found = run(["first", "second"], [-1.0, None], StoppingCriteria())
    assert seen == [
        SearchStage({"a": 0.0, "b": 1.0, "c": 0.0}, {}, "start", 2),
        SearchStage({"a": 1.0, "b": 50.0, "c": 0.0}, {"b": 5}, "first", 1),
    ]
    assert (found.plan, found.bound, found.message) == ("second", -1.0, "stage 2")
    assert found.stages == (StageBound("b", 0.0), StageBound("a", None))


@pytest.mark.parametrize(("plan", "cancel"), [(None, False), ("first", True)])
def test_no_stage_follows_one_without_a_plan_or_one_that_was_interrupted(plan: str | None, cancel: bool) -> None:
    seen, found = run([plan, "second"], [2.0, 3.0], StoppingCriteria(), cancel)
    assert len(seen) == 1
    assert (found.plan, found.stages) == (plan, (StageBound("b", 2.0),))


def test_the_slack_is_relative_and_absolute() -> None:
    assert with_slack(0.0) == 1e-9
    assert with_slack(2e6) == pytest.approx(2e6 + 2, rel=1e-12)
