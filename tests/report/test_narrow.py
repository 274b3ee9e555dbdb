"""Tables in a narrow terminal: heads break between words, numbers never."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import mast_opt
from mast_opt.core.wording import RESTORE
from mast_opt.planner.analysis.pareto import Frontier, Point
from mast_opt.planner.analysis.whatif import Outcome
from mast_opt.planner.report.terminal.analysis import show_frontier, show_whatif
from mast_opt.planner.report.terminal.sections import show_section, show_table
from mast_opt.planner.report.terminal.solution import show_solution
from mast_opt.problems.kind.presentation import Form, Head, Section
from mast_opt.problems.registry import kind_named, kind_names


def shown_in(width: int) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, width=width, markup=False, emoji=False, highlight=False), text


def printed(width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    heads = ("scenario", "objective", "workloads moved", "storage overhead")
    show_table(console, "", heads, [("the whole of the east is lost", "1,234.5", "1,000,000", "0.1234")])
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined,no-any-return]


def test_a_wide_terminal_keeps_heads_whole() -> None:
    assert any("workloads moved" in line for line in printed(100))


def test_a_narrow_terminal_breaks_heads_between_words() -> None:
    lines = printed(56)
    assert max(map(len, lines)) <= 56
    words = " ".join(lines).split()
    for whole in ("scenario", "objective", "workloads", "moved", "storage", "overhead", "1,234.5", "1,000,000"):
        assert whole in words


def test_a_frontier_with_many_figures_is_several_tables() -> None:
    metrics = [f"figure_{at}" for at in range(9)]
    points = tuple(
        Point({"storage": 1.0 + at, "peak": 5.0 - at}, dict.fromkeys(metrics, 1000.5 + at), None, None, 2.0, at > 0)
        for at in range(2)
    )
    console = Console(file=io.StringIO(), width=80)
    show_frontier(console, "network", Frontier("data-placement", "highs", ("storage", "peak"), "epsilon", points, 0, 0))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("1,000.5") == text.count("1,001.5") == len(metrics)
    assert sum("storage" in line for line in text.splitlines()) > 2  # in the headline, and at the left of each table


LOSSES: dict[str, dict[str, object]] = {
    "data-placement": {"lose_regions": ["us-east"]},
    "job-placement": {"lose_regions": ["us-east"]},
    "server-assignment": {"lose_switchboards": ["board-1"]},
    "task-reassignment": {"drain_machines": ["m1"]},
    "resource-allocation": {"lose_resources": ["k80"]},
}


@pytest.mark.parametrize("kind", kind_names())
def test_scenarios_with_losses_fit_eighty_columns(kind: str, tmp_path: Path) -> None:
    mast_opt.write_template(kind, tmp_path / "example.xlsx")
    problem = mast_opt.read(tmp_path / "example.xlsx")
    scenarios = [mast_opt.Scenario("the-largest-of-all-regions-is-lost", LOSSES[kind])]
    answer = mast_opt.whatif(problem, scenarios)
    answer = replace(answer, outcomes=tuple(_larger(one) for one in answer.outcomes))
    console, text = shown_in(80)
    show_whatif(console, "example", answer)
    sentence = f"{scenarios[0].name}: "
    lines = [line for line in text.getvalue().splitlines() if not line.startswith((sentence, RESTORE))]
    assert max(map(len, lines)) <= 80
    first = "\n".join(lines).split("Terms")[0].split()
    outcome = answer.outcomes[0]
    assert outcome.base_verdict is not None
    for unit, figure in outcome.moved.items():
        assert unit in first
        assert f"{figure:,.0f}" in first
    assert first.count("breaks") == 1
    assert f"{len(outcome.base_verdict.violations):,}" in first
    if outcome.lost is None:
        assert "lost" not in first[first.index("breaks") :]
        return
    assert outcome.lost.datasets
    assert sentence in text.getvalue()
    at = next(at for at, line in enumerate(lines) if line.startswith("Lost data"))
    words = " ".join(lines[at + 1 : lines.index("", at)]).split()
    sizes = [] if outcome.lost.tb is None else ["lost_tb"]
    assert words[: 3 + len(sizes)] == ["scenario", "lost_datasets", *sizes, f"lost_{outcome.lost.noun}s"]
    assert f"{len(outcome.lost.work):,}" in words
    assert "base" not in words  # nothing is lost in the base, which has no row here


def _larger(one: Outcome[Any]) -> Outcome[Any]:
    """The outcome with figures as long as those of a large instance."""
    moved = dict.fromkeys(one.moved, 1234567.0)
    lost = one.lost
    if lost is not None:
        lost = replace(lost, tb=None if lost.tb is None else 1_234_567.0, work=lost.work * 1000)
    return replace(one, moved=moved, lost=lost)


@pytest.mark.parametrize("kind", kind_names())
def test_the_tables_of_every_kind_fit_eighty_columns(kind: str, tmp_path: Path) -> None:
    mast_opt.write_template(kind, tmp_path / "example.xlsx")
    problem = mast_opt.read(tmp_path / "example.xlsx")
    solution = mast_opt.solve(problem)
    console, text = shown_in(80)
    show_solution(console, problem, solution, 1.0, None)
    assert max(map(len, text.getvalue().splitlines())) <= 80
    for section in kind_named(kind).presentation.sections(problem, solution.plan):
        console, text = shown_in(80)
        show_section(console, section)
        table = text.getvalue().split()
        if not section.rows:
            continue
        assert [word for head in section.heads for word in head.title.split() if word not in table] == []
        for form, cell in ((head.form, cell) for row in section.rows for head, cell in zip(section.heads, row)):
            if form is Form.COUNT and cell is not None:
                assert f"{cell:,}" in table


def test_a_section_that_is_too_wide_goes_on_below_with_its_label() -> None:
    heads = (Head("wave", Form.COUNT), Head("what"), *(Head(f"figure {at}", Form.AMOUNT) for at in range(9)))
    section = Section("Steps", heads, tuple((at, f"replica-{at}", *[12_345.6] * 9) for at in range(2)))
    console, text = shown_in(40)
    show_section(console, section)
    assert max(map(len, text.getvalue().splitlines())) <= 40
    assert text.getvalue().count("12,345.6") == 18
    assert text.getvalue().count("replica-0") == text.getvalue().count("what") > 1
    assert text.getvalue().count("wave") == 1


def test_labels_fold_before_a_section_is_cut_in_two() -> None:
    heads = (Head("what"), Head("from"), Head("to"), Head("TB", Form.AMOUNT))
    section = Section(
        "Steps", heads, (("a-dataset-with-a-long-name", "a-region-with-a-long-name", "another-long-one", 1),)
    )
    console, text = shown_in(60)
    show_section(console, section)
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    assert sum("TB" in line for line in lines) == 1
    assert "".join(line.split()[0] for line in lines[-2:]) == "a-dataset-with-a-long-name"
