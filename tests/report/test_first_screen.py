"""First screen of a report: answers, days, risk, and the calendar of the migration."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

import mast_opt
from mast_opt.core.wording import gap_text
from mast_opt.planner.analysis import region_loss
from mast_opt.planner.analysis.goals import NOTHING, Figures, figures_of
from mast_opt.planner.analysis.goals import PLAN as THIS_PLAN
from mast_opt.planner.analysis.plan_diff import Change
from mast_opt.planner.analysis.region_loss import RegionLoss, loss_fields
from mast_opt.planner.report.html.content import CALENDAR, _words, headline, report, story, table_of
from mast_opt.planner.report.html.page import page, slug
from mast_opt.planner.report.html.render import draw
from mast_opt.planner.report.html.vega_specs import value_text
from mast_opt.planner.report.result_sections import SINGLE_COPIES, goal_sections, lost_data_words, shown
from mast_opt.planner.report.terminal.diff_and_migration import show_diff
from mast_opt.planner.report.terminal.sections import show_section
from mast_opt.problems.kind.analysis_hooks import Loss
from mast_opt.problems.kind.migration_plan import Move
from mast_opt.problems.kind.presentation import Form, Head, Scale, Section, Spans
from mast_opt.problems.registry import check_plan, kind_of
from tests.analysis.support import worst_region_loss
from tests.data_placement.workshop import PLAN, PROBLEM
from tests.instance_rows import DataRows
from tests.narrowing import some


def test_eight_answers_in_order_with_links_that_lead_somewhere() -> None:
    found = story(PROBLEM, PLAN)
    topics = [
        *("If nothing is done", "What to do", "When it is done", "What can go wrong"),
        *("Overload", "Cost", "Storage", "What to buy"),
    ]
    assert [one.topic for one in found.answers] == topics
    order = mast_opt.steps(PROBLEM, PLAN)
    migration = found.answers[2]
    assert migration.value == (f"{order.days} day" if order.days == 1 else f"{order.days} days")
    assert f"{len(order.moves)} steps" in migration.detail
    assert found.answers[1].detail.endswith("'solve --goals' finds the least that helps.")
    risk = mast_opt.risk(PROBLEM, PLAN)
    assert found.answers[3].value == f"{len(risk.single_copies)} datasets with one copy"
    text = page(report(PROBLEM, PLAN))
    targets = set(re.findall(r'<section class="card" id="([^"]+)"', text))
    links = re.findall(r'<a href="#([^"]+)">', text)
    assert len(links) >= 5
    assert set(links) <= targets
    assert slug(SINGLE_COPIES) in targets


def test_the_least_that_helps_is_that_of_its_goal() -> None:
    """The page is on a plan that moves; the plan of the least change, here the one of one dataset, moves less."""
    least = mast_opt.solve(PROBLEM, "highs", goal="least-change", threads=1).plan
    assert least is not None
    found = report(PROBLEM, PLAN, others={"balanced": PLAN, "least-change": least}, notes=["solved yesterday"])
    topics = [one.topic for one in found.answers]
    assert topics[:4] == ["If nothing is done", "The least that helps", "What to do", "When it is done"]
    assert "'solve --goals'" not in "".join(one.detail for one in found.answers)
    alone = report(PROBLEM, least).answers[1]
    assert (found.answers[1].value, alone.detail.startswith(found.answers[1].detail)) == (alone.value, True)
    assert "Solved yesterday." in page(found)


def test_the_report_of_one_plan_says_what_the_worst_loss_of_a_region_costs() -> None:
    problem = mast_opt.generate("data-placement", "organisation", seed=1, datasets=5, workloads=6, regions=3)
    plan = mast_opt.solve(problem, "highs", threads=1).plan
    assert plan is not None
    rows = {str(row[0]): row[1:] for row in report(problem, plan).compared[0].rows}
    loss = worst_region_loss(problem, plan)
    assert loss is not None
    assert str(rows["GPUs missing after the worst loss of a region, before any copy"][-1]).endswith(f"({loss.region})")
    content = report(problem, plan)
    card = next(one for one in content.answers if one.topic == "What can go wrong")
    missing = str(rows["GPUs missing after the worst loss of a region, before any copy"][-1]).split()[0]
    assert card.value == f"{missing} GPUs missing"
    assert card.detail.startswith(
        f"After the worst loss of a region, {loss.region}, before any copy. Most data is lost"
    )
    by_region = {row[0]: row[1:] for row in content.compared[1].rows}
    assert set(by_region) == set(problem.regions.labels)
    assert [head.title for head in content.compared[1].heads] == ["region", NOTHING, THIS_PLAN]
    still = str(rows["of these, work that stands still"][-1])
    assert by_region[loss.region][-1] == f"{missing}, {still} still"
    each = {one.region: one.missing_gpus for one in loss.regions}
    assert max(each.values()) == loss.missing_gpus
    assert {name: str(cells[-1]).split(",")[0].split()[0] for name, cells in by_region.items()} == {
        name: shown(gpus, "gpus") for name, gpus in each.items()
    }
    without = report(problem, plan, losses=False)
    assert not [row for row in without.compared[0].rows if "worst loss" in str(row[0])]
    card = next(one for one in without.answers if one.topic == "What can go wrong")
    assert card.value.endswith("with one copy")
    assert "GPUs missing" not in card.detail


def test_the_loss_of_a_region_is_told_by_its_work_and_its_size() -> None:
    lost = Loss(("logs", "clicks"), 7.5, ("rank", "spam"), 12.0)
    assert lost_data_words(lost) == "2 datasets (7.5 TB), and with them 2 workloads (12 GPUs)"
    assert lost_data_words(Loss(("logs",), 7.5)) == "1 dataset (7.5 TB), which no workload reads"


def test_today_breaks_as_many_limits_whatever_a_plan_was_asked_for() -> None:
    """The safest plan has two copies of both datasets; the instance asks for one, and today has one."""
    builder = DataRows("single")
    for name in ("east", "west"):
        builder.add_region(name, storage_tb=30, cpu_cores=9, gpus={"a100": 10})
    for name in ("logs", "clicks"):
        builder.add_dataset(name, size_tb=9, replicas=["east"])
    builder.add_dataset("people", size_tb=1, replicas=["east"], residency=["west"])
    builder.add_workload("rank", tier=0, cpu_cores=1, gpus={"a100": 4}, reads={"logs": 1}, current_region="east")
    problem = builder.build()
    plan = mast_opt.solve(problem, "highs", goal="safest", threads=1).plan
    assert plan is not None
    asked = check_plan(kind_of(problem), problem, plan)
    content = report(asked, plan, instance=problem, losses=False)
    row = next(one for one in content.compared[0].rows if one[0] == "limits that it breaks")
    assert row[1:] == ("1", "0")
    assert "1 limit broken" in f"{content.answers[0].value} {content.answers[0].detail}"
    assert "It breaks 1 limit." in content.sections[-1].note
    assert figures_of(problem, {"safest": plan})[NOTHING].broken == 1


def test_without_gpus_none_are_missing_after_a_loss() -> None:
    builder = DataRows("no-gpus")
    for name in ("east", "west"):
        builder.add_region(name, storage_tb=10, cpu_cores=10)
    builder.add_dataset("logs", size_tb=1, replicas=["east"])
    builder.add_workload("rank", tier=0, cpu_cores=1, reads={"logs": 1}, current_region="east")
    problem = builder.build()
    plan = mast_opt.solve(problem, "highs", threads=1).plan
    assert plan is not None
    assert worst_region_loss(problem, plan) is None
    content = report(problem, plan)
    assert not [row for row in content.compared[0].rows if "GPU" in str(row[0])]
    text = page(content)
    assert "What binds" not in text, "nothing binds, so no answer leads to that table"
    assert set(re.findall(r'<a href="#([^"]+)">', text)) <= set(re.findall(r'id="([^"]+)"', text))


def test_a_loss_that_is_not_proven_is_not_the_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    """A placement that the solver did not finish misses more than it has to, and looks like the worst loss."""
    problem = mast_opt.generate("data-placement", "organisation", seed=1, datasets=5, workloads=6, regions=3)
    plan = mast_opt.solve(problem, "highs", threads=1).plan
    assert plan is not None
    proven = worst_region_loss(problem, plan)
    assert proven is not None
    counted = region_loss.region_loss

    def loss(unproven: str) -> RegionLoss | None:
        """The worst loss where that of one region is not proven."""

        def late(region: str, metrics: Any, lost: Loss, proven: bool) -> RegionLoss:
            return counted(region, metrics, lost, proven and region != unproven)

        monkeypatch.setattr(region_loss, "region_loss", late)
        return worst_region_loss(problem, plan)

    other = next(name for name in problem.regions.labels if name != proven.region)
    found = loss(other)
    assert found is not None
    assert (found.region, found.missing_gpus) == (proven.region, proven.missing_gpus)
    by_region = goal_sections(problem, {name: Figures(mast_opt.verify(problem, plan), loss=found) for name in "ab"})[1]
    assert [row[0] for row in by_region.rows if "at most" in str(row[1])] in ([other], [])
    bound = loss(proven.region)
    assert bound is not None
    assert not bound.proven
    assert bound.keys()["missing_gpus_at_most"] == bound.missing_gpus == max(one.missing_gpus for one in bound.regions)
    assert loss_fields({"one": bound}) == {}, "a plan states only what is proven"
    figures = {name: Figures(mast_opt.verify(problem, plan), judged=True) for name in ("one", "two")}
    figures["two"] = replace(figures["two"], loss=proven)
    section = goal_sections(problem, figures)[0]
    cells = next(row[1:] for row in section.rows if "before any copy" in str(row[0]))
    assert cells == ("not proven", f"{shown(proven.missing_gpus, '')} ({proven.region})")
    assert "--time-limit" in section.note
    text = page(replace(report(problem, plan, losses=False), compared=(section,)))
    assert "Not proven: no placement is known" in text
    assert "At most: a placement" not in text


def test_a_loss_for_which_no_time_is_left_is_an_upper_bound_without_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = mast_opt.generate("data-placement", "organisation", seed=1, datasets=5, workloads=6, regions=3)
    plan = mast_opt.solve(problem, "highs", threads=1).plan
    assert plan is not None
    missing = []
    for columns_a_second, proven in ((0, False), (50_000, True)):
        monkeypatch.setattr("mast_opt.planner.analysis.region_loss.COLUMNS_A_SECOND", columns_a_second)
        figures = figures_of(problem, {THIS_PLAN: plan}, judging={"time_limit_s": 60.0})
        losses = [some(one.loss) for one in figures.values()]
        assert [one.proven for one in losses] == [proven] * 2
        record = losses[-1].keys()
        assert (record["unserved_gpus"] is None, record["overload_gpus"] is None) == (not proven, not proven)
        missing.append(record["missing_gpus_at_most"])
        side_by_side, by_region = goal_sections(problem, figures)
        assert (side_by_side.note == "") == proven
        each = [str(cell) for row in by_region.rows for cell in row[1:]]
        assert not [cell for cell in each if "at most" in cell and "still" in cell]
        assert any("at most" in cell for cell in each) == (not proven)
    assert missing[0] == pytest.approx(missing[1], rel=0.05)


def test_the_calendar_has_every_step() -> None:
    calendar = story(PROBLEM, PLAN).calendar
    assert isinstance(calendar, Spans)
    assert calendar.title == CALENDAR
    moves = mast_opt.steps(PROBLEM, PLAN).moves
    rows = table_of(calendar).rows
    assert len(rows) == len(moves)
    assert sorted(str(row[0]) for row in rows) == sorted(move.what for move in moves)
    assert calendar.sorts == tuple(sorted({move.action for move in moves}))
    assert len(calendar.sorts) > 1
    legend = draw(calendar).legend
    assert tuple(name for _, name in legend) == calendar.sorts
    assert len({colour for colour, _ in legend}) == len(legend)
    assert all(colour in draw(calendar).drawings[0].wide for colour, _ in legend)
    for move in moves:
        assert move.day is not None
        assert (move.what, move.day + 1, move.day + move.days) in {row[:3] for row in rows}


def test_kinds_without_answers_have_no_first_screen() -> None:
    problem = mast_opt.generate("task-reassignment", processes=6, machines=3)
    plan = mast_opt.solve(problem, time_limit_s=10).plan
    assert plan is not None
    found = story(problem, plan)
    assert (found.answers, found.calendar, found.sections) == ((), None, ())
    assert "answers" not in page(report(problem, plan)).split("<body>")[1]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        *((0.063, "overload_gpus", "0"), (0.063, "peak_ratio", "0.06"), (0.4321, "overload_gpus", "0.43")),
        *((20.35, "overload_gpus", "20"), (688.02, "gpus", "688"), (1.7, "unserved_gpus", "2")),
        *((1.0005, "peak_ratio", "1.0005"), (0.99996, "peak_ratio", "0.99996"), (1.0, "peak_ratio", "1")),
        *((0.063, "share of GPU work", "6.3%"), (5_343_048.4, "USD a month", "5,343,048"), (0.04, "USD", "0")),
    ],
)
def test_a_figure_is_nothing_or_shows_on_which_side_of_1_it_is(value: float, unit: str, text: str) -> None:
    assert shown(value, unit) == text


def test_a_ratio_does_not_seem_to_be_at_a_limit_that_it_crosses() -> None:
    assert (shown(0.9006, "peak_ratio", (0.9, 1.0)), shown(0.9, "peak_ratio", (0.9, 1.0))) == ("0.901", "0.9")
    section = Section("Ratios", (Head("ratio", Form.RATIO, (0.9, 1.0)),), ((0.9006,), (1.004,), (0.9,)))
    console = Console(file=io.StringIO(), width=80)
    show_section(console, section)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    text = page(replace(report(PROBLEM, PLAN, losses=False), sections=(section,)))
    for ratio in ("0.901", "1.004", "0.90"):
        assert f"{ratio}\n" in printed
        assert f">{ratio}</td>" in text


def test_people_see_whole_gpus_and_files_the_exact_number() -> None:
    section = Section("Work", (Head("GPUs", Form.GPUS),), ((20.35,), (0.25,), (0.03,), (None,)))
    console = Console(file=io.StringIO(), width=80)
    show_section(console, section)
    lines = [line.strip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert lines[-4:] == ["20", "0.25", "0", "–"]
    text = page(replace(report(PROBLEM, PLAN, losses=False), sections=(section,)))
    assert '<td class="n" data-value="20.35">20</td>' in text
    assert [value_text(number, Scale.AMOUNT, "GPUs") for number in (903.98, 0.25)] == ["904", "0.25"]
    assert [value_text(number, Scale.RATIO) for number in (1.004, 1.0, 0.9998)] == ["1.004", "1.00", "1.00"]
    move = Move(0, "move", "train", "east", "west", 20.35, 0, unit="GPUs")
    assert _words(move) == "move east to west, 20 GPUs"


def test_what_rounds_to_nothing_is_nothing_everywhere() -> None:
    """Page, text and comparison, of a plan that lacks 0.032 GPUs and reads 0.04 TB remotely."""
    content = report(PROBLEM, PLAN)
    verdict = content.verdict
    little = {"overload_gpus": 0.032, "remote_tb_per_day": 0.04, "peak_ratio": 0.04}
    verdict = replace(verdict, metrics={**verdict.metrics, **little})
    text = page(replace(content, verdict=verdict))
    for name, said in (("overload_gpus", "0"), ("remote_tb_per_day", "0"), ("peak_ratio", "0.04")):
        assert f'data-metric="{name}" data-value="{little[name]!r}">{said}<' in text
    rows = {
        row[0]: row[1] for row in goal_sections(PROBLEM, {"one": Figures(verdict), "two": Figures(verdict)})[0].rows
    }
    assert rows["worst demand / supply"] == "0.04"
    assert not {"GPUs over the supply", "TB read remotely a day"} & set(rows)
    change = {name: Change(0.0, value) for name, value in little.items()}
    console = Console(file=io.StringIO(), width=80)
    show_diff(console, replace(mast_opt.diff(PROBLEM, PLAN, PLAN), metrics=change))
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "peak_ratio" in printed
    assert "overload_gpus" not in printed


def test_the_gap_has_its_amount_beside_it() -> None:
    fields = {"objective": 0.27, "bound": 0.2, "solver": "highs"}
    content = report(PROBLEM, PLAN, fields=fields)
    assert dict(headline(content))["gap, absolute"] == pytest.approx(0.07)
    assert "25.9% (absolute 0.07)" in page(content)
    assert gap_text(1e-6, 0.27, 0.26999) == "<0.01%"
    assert gap_text(3e-4, 0.1, 0.09997) == "0.03% (absolute <0.0001)"


def test_figures_that_are_0_on_both_sides_are_folded_away() -> None:
    content = report(PROBLEM, PLAN)
    metrics = {"stored_tb": 5.0, "overload_gpus": 0.01, "unserved_gpus": 0.0}
    text = page(replace(content, verdict=replace(content.verdict, metrics=metrics), before=None))
    first, folded = text.split('<section aria-label="Key figures">')[1].split("</section>")[0].split("<details>")
    assert "stored_tb" in first
    assert "overload_gpus" in folded
    assert "2 more that are 0<" in folded
