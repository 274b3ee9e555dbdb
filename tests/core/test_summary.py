"""Summaries on consoles and in notebooks: short, complete, and safe to show."""

from __future__ import annotations

import pickle
from html.parser import HTMLParser

import pytest

import mast_opt
from mast_opt.core.summary import MOST_ROWS, Summary
from mast_opt.problems.registry import kind_named, kind_names


class _Cells(HTMLParser):
    """The texts of a page, and whether its tags are balanced."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_line_and_a_page_have_every_fact() -> None:
    summary = Summary("Plan", (("first_fact", "1"), ("second", "<b>\x1b")), ("term", "value"), (("peak", "0.5"),))
    assert summary.line() == "Plan(first_fact=1, second=<b>\\x1b)"
    page = _Cells(summary.html())
    assert page.open == []
    assert page.texts == ["Plan", "first fact", "1", "second", "<b>\\x1b", "term", "value", "peak", "0.5"]


def test_long_tables_are_cut_and_the_rest_is_counted() -> None:
    rows = tuple((str(number),) for number in range(MOST_ROWS + 7))
    page = _Cells(Summary("Diff", (), ("row",), rows).html())
    assert page.texts[-1] == "7 more rows"
    assert str(MOST_ROWS) not in page.texts


@pytest.mark.parametrize("kind", kind_names())
def test_every_kind_has_short_summaries_of_problem_plan_solution_and_verdict(kind: str) -> None:
    family = next(iter(kind_named(kind).generate.families.values()))
    sizes = {size: min(6, number) for size, number in family.sizes.items()}
    problem = mast_opt.generate(kind, None, seed=0, **sizes)
    solution = mast_opt.solve(problem, "highs", time_limit_s=20, gap=0.5)
    assert solution.plan is not None
    assert solution.verdict is not None
    for thing in (problem, solution.plan, solution, solution.verdict):
        assert len(repr(thing)) < 400
        assert _Cells(thing._repr_html_()).open == []
    assert f"status={solution.status.value}" in repr(solution)
    assert all(term in _Cells(solution._repr_html_()).texts for term in solution.verdict.terms)
    again = pickle.loads(pickle.dumps(solution.plan))
    assert again == solution.plan
    assert hash(again) == hash(solution.plan)


def test_a_verdict_shows_what_is_violated() -> None:
    verdict = mast_opt.Verdict((mast_opt.Violation("storage", ("<eu>",), 5.0, 2.0, "TB"),), 1.0, {"peak": 1.0}, {})
    assert repr(verdict) == "Verdict(ok=False, violations=1, objective=1)"
    assert _Cells(verdict._repr_html_()).texts[-2:] == ["storage[<eu>]", "5 TB"]


def test_a_run_shows_its_progress() -> None:
    problem = mast_opt.generate("task-reassignment", processes=8, machines=3)
    run = mast_opt.start(problem, "highs", time_limit_s=20)
    run.result()
    assert repr(run).startswith("SolveRun(done=True, ")
    assert "incumbent=–" not in repr(run)
