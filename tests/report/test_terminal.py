"""What a person sees is what the verifier says, and it fits."""

from __future__ import annotations

import io
import re
import time
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import mast_opt
from mast_opt.core.solve_result import Event, Limit, Status
from mast_opt.core.wording import UNKNOWN, amounts, percent, plain, seconds
from mast_opt.planner.analysis.two_stage import Robust
from mast_opt.planner.report.change_sections import moves_section
from mast_opt.planner.report.terminal.analysis import show_robust, show_whatif
from mast_opt.planner.report.terminal.diff_and_migration import show_order
from mast_opt.planner.report.terminal.progress import Progress
from mast_opt.planner.report.terminal.sections import TOP_ROWS, show_section
from mast_opt.planner.report.terminal.solution import show_solution
from mast_opt.problems.kind.analysis_hooks import Loss
from mast_opt.problems.kind.migration_plan import Move, Order
from mast_opt.problems.kind.presentation import Form, Head, Section


def console(width: int = 80, **given: object) -> Console:
    return Console(file=io.StringIO(), width=width, markup=False, emoji=False, highlight=False, **given)  # type: ignore[arg-type]


def text_of(shown: Console) -> str:
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0"),
        (1, "1"),
        (0.1234567, "0.1235"),
        (12.3456, "12.346"),
        (123.456, "123.46"),
        (1234.567, "1,234.6"),
        (1_234_567.8, "1,234,568"),
        (2.083e-5, "2.083e-05"),
        (1.5e12, "1.5e+12"),
        (-0.5, "-0.5"),
        (20.0, "20"),
        (100.0, "100"),
    ],
)
def test_plain_numbers(value: float | None, text: str) -> None:
    assert plain(value) == text


def test_other_numbers() -> None:
    assert [percent(share) for share in (None, 0.0123, 0.123, 1.0)] == ["–", "1.23%", "12.3%", "100.0%"]
    assert [percent(share) for share in (0.0, -1e-16, 1e-9)] == ["0.00%"] * 3
    assert [percent(share) for share in (1e-8, 4.9e-5, 5e-5, -1e-8)] == ["<0.01%", "<0.01%", "0.01%", ">-0.01%"]
    assert [percent(share, 1) for share in (0.0, 4e-4, 6e-4)] == ["0.0%", "<0.1%", "0.1%"]
    assert percent(0.004, 0) == "<1%"
    assert [seconds(value) for value in (0.123, 59.6, 1200)] == ["0.12 s", "60 s", "20 min"]
    assert amounts([1, 20, None]) == ["1", "20", "–"]
    assert amounts([1.5, 20]) == ["1.50", "20.00"]
    assert amounts([1.5, 2000]) == ["1.5", "2,000.0"]
    assert amounts([0.004, 0, 20, -0.004]) == ["< 0.01", "0.00", "20.00", "> -0.01"]
    assert amounts([0.04, 200.5]) == ["< 0.1", "200.5"]
    assert amounts([]) == []


def section(rows: int) -> Section:
    heads = (Head("region"), Head("TB", Form.AMOUNT), Head("ratio", Form.RATIO), Head("full", Form.FILL))
    return Section("Title", heads, tuple((f"r{row}", row * 1.5, row / 10, None) for row in range(rows)), "A note.")


def test_a_long_section_is_cut_and_says_so() -> None:
    shown = console()
    show_section(shown, section(30))
    lines = text_of(shown).splitlines()
    assert sum(line.startswith("r") for line in lines) == TOP_ROWS + 1  # with the heads
    assert f"{30 - TOP_ROWS} more" in lines[-1]


def test_a_section_in_full() -> None:
    for rows, limit in ((30, None), (TOP_ROWS + 1, TOP_ROWS), (0, TOP_ROWS)):
        shown = console()
        show_section(shown, section(rows), limit)
        assert sum(line.startswith("r") and line[1].isdigit() for line in text_of(shown).splitlines()) == rows
        assert "more" not in text_of(shown)


def test_figures_of_different_kinds_have_digits_of_their_own() -> None:
    shown = console()
    rows = (("ratio", 0.9966), ("USD", 5_410_910.4), ("TB", 199.9))
    show_section(shown, Section("T", (Head("figure"), Head("now", Form.FIGURE)), rows))
    assert [line.split()[-1] for line in text_of(shown).splitlines()[-3:]] == ["0.9966", "5,410,910", "199.9"]


def test_ratios_are_coloured_by_heat() -> None:
    heads = (Head("ratio", Form.RATIO),)
    shown = console(color_system="standard", force_terminal=True)
    show_section(shown, Section("T", heads, ((1.5,), (1.1,), (0.95,), (0.5,), (None,))))
    colours = [line.split("m")[0] for line in text_of(shown).splitlines() if "\x1b" in line][2:]
    assert len(set(colours)) == 5


@pytest.fixture(scope="module")
def solved() -> tuple[mast_opt.DataPlacement, mast_opt.Solution[Any]]:
    problem = mast_opt.generate("data-placement", "standard", seed=1, datasets=8, workloads=10, regions=3)
    return problem, mast_opt.solve(problem, gap=0.5)


def test_every_figure_is_the_verifiers(solved: tuple[mast_opt.DataPlacement, mast_opt.Solution[Any]]) -> None:
    problem, solution = solved
    assert solution.plan is not None
    verdict = mast_opt.verify(problem, solution.plan)
    shown = console()
    show_solution(shown, problem, solution, elapsed_s=1.0, rows=None)
    text = text_of(shown)
    assert f"objective {plain(verdict.objective)}" in text
    words = [line.split() for line in text.splitlines()]
    for term, value in verdict.terms.items():
        weight = problem.objective.weights[term]
        if weight:
            row = next(row for row in words if row[:1] == [term])
            assert row[1:4] == [plain(value), plain(weight), plain(value * weight)]
    flat = " ".join(text.split())
    assert all(f"{name} {plain(value)}" in flat for name, value in verdict.metrics.items())
    assert all(len(line) <= 80 for line in text.splitlines())
    supply = problem.regions.supply_mgpu
    assert sum(
        len(row) > 2 and row[0] in problem.regions.labels and row[1] in problem.gpu_types for row in words
    ) == int(np.count_nonzero(supply))


def test_terms_in_order_are_told_one_by_one(solved: tuple[mast_opt.DataPlacement, mast_opt.Solution[Any]]) -> None:
    problem = replace(solved[0], objective=replace(solved[0].objective, order=("peak", "remote")))
    solution = mast_opt.solve(problem, "cpsat", threads=1)
    assert solution.verdict is not None
    assert solution.term == "remote"
    shown = console()
    show_solution(shown, problem, solution, elapsed_s=1.0)
    text = text_of(shown)
    assert f"objective {plain(solution.verdict.terms['remote'])} (remote)" in text
    words = [line.split() for line in text.splitlines()]
    for stage in solution.stages:
        assert [stage.term, plain(stage.objective), plain(stage.bound)] in [row[:3] for row in words]
    for term, value in solution.verdict.terms.items():
        left = [row for row in words if row[:1] == [term] and row[2:4] == ["not", "minimised"]]
        assert len(left) == (value != 0 and term not in problem.objective.order)


def test_no_plan_is_said_in_words(solved: tuple[mast_opt.DataPlacement, mast_opt.Solution[Any]]) -> None:
    problem, solution = solved
    nothing = replace(
        solution,
        status=Status.NO_SOLUTION,
        plan=None,
        verdict=None,
        objective=None,
        limit=Limit.TIME,
        message="gave up",
    )
    shown = console()
    show_solution(shown, problem, nothing, elapsed_s=1.0)
    assert "NO_SOLUTION" in text_of(shown)
    assert "the time limit" in text_of(shown)
    assert "gave up" in text_of(shown)


@pytest.mark.parametrize(
    ("bound", "words"), [(None, "nothing is proven"), (2.5, "no set of replicas has less than 2.5")]
)
def test_a_robust_plan_claims_what_is_proven(bound: float | None, words: str) -> None:
    shown = console()
    robust: Robust[Any] = Robust("worst", "replicas", Status.FEASIBLE, None, 3.0, bound, 4.0, {}, {})
    show_robust(shown, robust)
    assert words in text_of(shown)
    assert UNKNOWN not in text_of(shown)


def test_progress_is_one_line_that_fits() -> None:
    progress = Progress(console(), "highs", 60.0, waiting="no plan yet")
    assert "no plan yet" in progress.line().plain
    progress(Event(1.0, None, 0.5))
    assert "bound 0.5" in progress.line().plain
    progress(Event(2.0, 123456.789, 100000.123, stage="overload"))
    line = progress.line().plain
    assert "incumbent 123,457" in line
    assert "gap 19.0%" in line
    assert "stage overload" in line
    assert len(line) <= 78


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_shows_only_in_a_terminal(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    monkeypatch.setattr("mast_opt.planner.report.terminal.progress.PATIENCE_S", 0.0)
    shown = console(force_terminal=terminal)
    with Progress(shown, "highs", None) as progress:
        progress(Event(1.0, 2.0, 1.0))
        if progress._timer is not None:
            progress._timer.join()
    assert ("incumbent" in text_of(shown)) is terminal


def test_progress_without_a_terminal_prints_lines_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mast_opt.planner.report.terminal.progress.FIRST_S", 0.01)
    shown = console(force_terminal=False)
    with Progress(shown, "purchases", None, lines=True) as progress:
        progress(Event(1.0, 2.0, 1.0, "next year"))
        while text_of(shown).count("\n") < 2:
            time.sleep(0.001)
    printed = text_of(shown)
    assert printed.startswith("purchases 0 s  incumbent 2  bound 1  gap 50.0%  stage next year\n")
    time.sleep(0.1)
    assert text_of(shown) == printed, "nothing follows the end"


@pytest.mark.parametrize("lines", [False, True])
def test_progress_that_is_over_soon_shows_nothing(lines: bool) -> None:
    shown = console(force_terminal=not lines)
    with Progress(shown, "highs", None, lines=lines) as progress:
        progress(Event(0.1, 2.0, 1.0))
    assert text_of(shown) == ""


def test_steps_are_one_table_and_data_with_fewer_copies_is_named() -> None:
    """A part of a job of 32 GPUs moves, next to a copy of 7.5 TB a day."""
    moves = (
        Move(0, "copy", "impressions-eu", "frankfurt", "stockholm", 7.5, day=0, days=3, unit="TB"),
        Move(1, "move", "genai-05", "frankfurt", "stockholm", 6.08, 3, 1, False, "GPUs", 0.19, "H100", "A100"),
    )
    console = Console(file=io.StringIO(), width=80)
    show_order(console, Order(moves, unit="TB"))
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert printed.count("wave") == 2, "in DONE and in the head of one table"
    assert re.search(r"1 +1–3 +copy .*7\.5 TB", printed)
    assert "6 GPUs (19%)" in printed
    console = Console(file=io.StringIO(), width=80)
    show_order(console, Order(moves, unit="TB", begin=date(2027, 1, 30)))
    dated = console.file.getvalue()  # type: ignore[attr-defined]
    assert dated.count("wave") == 2
    assert re.search(r"1 +Jan 30–Feb 1 +copy .*7\.5 TB", dated)
    assert re.search(r"2 +Feb 2 +move +genai-05 .*6 GPUs \(19%\)", dated)
    table = moves_section(Order(moves, unit="TB"))
    assert [head.title for head in table.heads][-3:] == ["TB", "GPUs", "share"]
    assert table.rows[1][-2:] == (6.08, 0.19)
    problem = mast_opt.generate("data-placement", seed=1, datasets=4, workloads=4, regions=2)
    answer = mast_opt.whatif(problem, [mast_opt.Scenario("growth", {"grow_demand": 1.1})], solver="highs")
    lost = replace(answer.base, lost=Loss(fewer_copies=("logs", "clicks")))
    console = Console(file=io.StringIO(), width=80)
    show_whatif(console, "it", replace(answer, base=lost))
    printed = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "base: datasets logs and clicks may do with the copies that are left" in printed
