"""The page of a plan: its figures are the verifier's, it asks for nothing, and a browser shows it well."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import PlanError
from mast_opt.core.sense import Sense
from mast_opt.core.solve_result import Event
from mast_opt.planner.io import read_events
from mast_opt.planner.report.html.content import convergence, report, table_of
from mast_opt.planner.report.html.page import page
from mast_opt.planner.report.html.render import draw, fullest
from mast_opt.planner.report.html.vega_specs import lines, thinned
from mast_opt.planner.report.html.write import write_report
from mast_opt.problems.kind.presentation import Bars, Chart, Flows, Form, HeatMap, Lines, Spans
from mast_opt.problems.registry import kind_named, kind_names
from tests.data_placement.workshop import PLAN, PROBLEM
from tests.platforms import needs
from tests.report.browser import look


class Figures(HTMLParser):
    """The exact values that a page states, by what they are of."""

    def __init__(self) -> None:
        super().__init__()
        self.metrics: dict[str, float] = {}
        self.terms: dict[str, float] = {}
        self.objective: float | None = None
        self.cells: Counter[float] = Counter()
        self.tags: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        given = dict(attrs)
        if given.get("data-value"):
            value = float(given["data-value"] or "")
            if "data-metric" in given:
                self.metrics[given["data-metric"] or ""] = value
            elif "data-term" in given:
                self.terms[given["data-term"] or ""] = value
            elif "data-objective" in given:
                self.objective = value
            else:
                self.cells[value] += 1


def figures(text: str) -> Figures:
    found = Figures()
    found.feed(text)
    return found


def solved(name: str) -> tuple[Any, Any, mast_opt.Verdict, tuple[Event, ...]]:
    """A small instance of a kind and a plan of it."""
    family = next(iter(kind_named(name).generate.families.values()))
    problem = mast_opt.generate(name, None, seed=1, **{size: min(default, 6) for size, default in family.sizes.items()})
    solution = mast_opt.solve(problem, time_limit_s=20, gap=0.3)
    assert solution.verdict is not None
    return problem, solution.plan, solution.verdict, solution.events


@pytest.mark.parametrize("name", kind_names())
def test_every_figure_is_the_verifiers(name: str) -> None:
    problem, plan, verdict, events = solved(name)
    charts = kind_named(name).presentation.charts(problem, plan)
    assert any(isinstance(chart, HeatMap) for chart in charts)
    text = page(report(problem, plan, events=events))
    found = figures(text)
    assert found.metrics == verdict.metrics
    assert found.objective == verdict.objective
    assert found.terms.items() <= verdict.terms.items()
    assert all(value == 0 for name, value in verdict.terms.items() if name not in found.terms)
    for chart in charts:
        values = _values(chart)
        assert values
        assert all(found.cells[value] for value in values), chart.title


def _values(chart: Chart) -> set[float]:
    if isinstance(chart, Spans):
        return {end for _, parts in chart.rows for _, end, *_ in parts}
    if isinstance(chart, HeatMap):
        return {value for row in (*(chart.before or ()), *chart.after) for value in row if value is not None}
    if isinstance(chart, Bars):
        return {value for _, values in chart.series for value in values if value is not None}
    if isinstance(chart, Flows):
        return {amount for *_, amount in chart.flows}
    return {y for _, points in chart.lines for _, y in points}


def of(kind: str, problem: Any, plan: Any, title: str) -> Any:
    return next(chart for chart in kind_named(kind).presentation.charts(problem, plan) if chart.title == title)


def flows_of(chart: Chart | None) -> tuple[tuple[str, str, float], ...]:
    """The flows of a chart of flows; none where there is no chart."""
    if chart is None:
        return ()
    assert isinstance(chart, Flows)
    return chart.flows


def test_charts_of_data_placement_add_up_to_the_metrics() -> None:
    real = mast_opt.read("instances/data_placement/cloud-regions")
    for problem, plan in ((real, kind_named("data-placement").analysis.current_plan(real)), (PROBLEM, PLAN)):
        verdict = mast_opt.verify(problem, plan)
        heat = of("data-placement", problem, plan, "GPU demand over supply")
        assert max(_values(replace(heat, before=None))) == verdict.metrics["peak_ratio"]
        charts = {chart.title: chart for chart in kind_named("data-placement").presentation.charts(problem, plan)}
        for title, metric in (("Copies to make", "copied_tb"), ("Reads that stay remote", "remote_tb_per_day")):
            total = sum(amount for *_, amount in flows_of(charts.get(title)))
            assert total == pytest.approx(verdict.metrics[metric], rel=1e-12)
        tiers = dict(of("data-placement", problem, plan, "GPU demand and supply by tier").series)
        assert sum(tiers["supply"]) == pytest.approx(problem.regions.supply_mgpu.sum() / 1000)
        stored = dict(of("data-placement", problem, plan, "Storage in use").series)["after"]
        usable_tb = problem.usable_storage_mb / 1e6
        assert sum(stored * usable_tb) >= verdict.metrics["stored_tb"] - 1e-9


def test_charts_of_job_placement_add_up_to_the_metrics() -> None:
    problem, plan, verdict, _ = solved("job-placement")
    jobs = dict(of("job-placement", problem, plan, "Jobs admitted by tier").series)
    assert sum(jobs["admitted"]) == verdict.metrics["admitted_jobs"]
    held = dict(of("job-placement", problem, plan, "GPUs held by tier").series)
    share = (sum(held["still running"]) + sum(held["started"])) / (problem.all_mgpu / 1000)
    assert share == pytest.approx(verdict.metrics["gpu_allocation_rate"])
    clusters = dict(of("job-placement", problem, plan, "GPUs in use by cluster").series)
    assert max(clusters["after"]) == pytest.approx(verdict.metrics["peak_utilisation"])


def test_charts_of_task_reassignment_add_up_to_the_metrics() -> None:
    problem, plan, verdict, _ = solved("task-reassignment")
    charts = {chart.title: chart for chart in kind_named("task-reassignment").presentation.charts(problem, plan)}
    flows = flows_of(charts.get("Moves between locations"))
    assert sum(amount for *_, amount in flows) == verdict.metrics["moved_processes"]


@pytest.mark.parametrize("name", kind_names())
def test_the_page_asks_for_nothing(name: str) -> None:
    problem, plan, _, events = solved(name)
    text = page(report(problem, plan, events=events))
    found = figures(text)
    assert not set(found.tags) & {"link", "img", "iframe", "object", "embed", "base"}
    without_names = re.sub(r'xmlns(:xlink)?="[^"]*"', "", text)
    names = re.findall(r'\bid="([^"]*)"', text)
    assert len(set(names)) == len(names)
    assert not re.findall(r"https?://|@import|url\((?!#)|src=|href=(?!\"#)", without_names)


def test_labels_are_only_text() -> None:
    odd = "<b>\"&'{{x}}</script><script>alert(1)</script>"
    problem = replace(PROBLEM, name=odd, regions=replace(PROBLEM.regions, labels=(odd, "b", "c")))
    text = page(report(problem, PLAN, fields={"solver": odd}))
    assert odd not in text
    assert figures(text).tags["script"] == 1


def test_a_plan_that_breaks_limits_says_so() -> None:
    text = page(report(PROBLEM, replace(PLAN, place=~PLAN.place)))
    assert "badge bad" in text
    assert "Verified" not in text


def test_reads_that_nobody_does_are_no_flows() -> None:
    """A plan of somebody's own may list them; the verifier says so."""
    readers = set(zip(PROBLEM.reads.workload.tolist(), PROBLEM.reads.dataset.tolist(), strict=True))
    everything = [(w, i) for w in range(len(PROBLEM.workloads)) for i in range(len(PROBLEM.datasets))]
    idle = [pair for pair in everything if pair not in readers]
    workload, dataset = (np.array(column) for column in zip(*idle, strict=True))
    one = np.ones(len(idle), np.int64)
    odd = replace(
        PLAN,
        remote_workload=workload,
        remote_dataset=dataset,
        remote_source=0 * one,
        remote_target=one,
        remote_share=1000 * one,
    )
    kind = kind_named("data-placement")
    assert not [chart for chart in kind.presentation.charts(PROBLEM, odd) if chart.title == "Reads that stay remote"]
    [section] = [
        section for section in kind.presentation.sections(PROBLEM, odd) if section.title == "Reads that stay remote"
    ]
    assert section.rows == ()
    assert section.note.startswith("0 of ")


def test_a_line_of_zeros_lies_at_the_bottom() -> None:
    scales = []
    for most in (0.0, 2.0):
        chart = Lines("t", "days", "jobs", (("a", ((0.0, 0.0), (1.0, most))),), from_zero=True)
        scales.append(lines(chart, 600)["encoding"]["y"]["scale"])
    assert scales == [{"domain": [0, 1]}, {"zero": True}]


def test_of_a_long_chart_the_fullest_rows_are_drawn() -> None:
    names = tuple(f"r{n}" for n in range(100))
    heat = HeatMap("t", "row", "column", names, ("c", "d"), None, tuple((n % 50 / 50, None) for n in range(100)))
    drawn = fullest(heat)
    assert isinstance(drawn, HeatMap)
    assert drawn.rows == tuple(name for n, name in enumerate(names) if n % 50 >= 38)
    assert "24 largest of 100" in draw(heat).left_out
    bars = Bars("t", "row", names, (("a", tuple(map(float, range(100)))), ("b", (None,) * 100)))
    kept = fullest(bars)
    assert isinstance(kept, Bars)
    assert kept.categories == names[-24:]
    few = replace(bars, categories=names[:3], series=(("a", (1.0, 2.0, None)),))
    assert fullest(few) == few
    assert draw(few).left_out == ""


def test_there_are_no_half_jobs() -> None:
    one_each = Bars("Jobs admitted", "tier", ("0", "1"), (("pending", (1.0, 1.0)), ("admitted", (1.0, 0.0))), "jobs")
    assert not re.search(r">0\.\d<", draw(one_each).drawings[0].wide)
    half = Bars("GPUs", "tier", ("0",), (("held", (0.9,)),), "GPUs")
    assert re.search(r">0\.\d<", draw(half).drawings[0].wide)


def test_the_search_holds_its_values() -> None:
    events = (Event(1.0, 9.0, None), Event(2.0, 9.0, 4.0), Event(3.0, 5.0, 4.0))
    chart = convergence(events, Sense.MIN)
    assert chart is not None
    assert dict(chart.lines) == {
        "incumbent": ((1.0, 9.0), (2.0, 9.0), (3.0, 5.0)),
        "bound": ((2.0, 4.0), (3.0, 4.0)),
    }
    staged = convergence([Event(1.0, 2.0, None, "peak"), Event(2.0, 3.0, 3.0, "copy")], Sense.MIN)
    assert staged is not None
    assert [name for name, _ in staged.lines] == ["incumbent of peak", "incumbent of copy", "bound of copy"]
    late = convergence([Event(1.0, None, 3.0, None), Event(2.0, 9.0, 3.0, None)], Sense.MIN)
    assert late is not None
    assert [name for name, _ in late.lines] == ["incumbent", "bound"]
    assert convergence((), Sense.MIN) is None


def test_a_search_that_begins_again_is_drawn_on_from_what_is_known() -> None:
    events = [Event(1.0, 0.2034, 0.2), Event(2.0, 223.1, 0.1), Event(3.0, 0.2031, 0.2012)]
    chart = convergence(events, Sense.MIN)
    assert chart is not None
    assert dict(chart.lines) == {
        "incumbent": ((1.0, 0.2034), (2.0, 0.2034), (3.0, 0.2031)),
        "bound": ((1.0, 0.2), (2.0, 0.2), (3.0, 0.2012)),
    }
    assert table_of(chart).heads[-1].form is Form.FIGURE
    most = convergence([Event(1.0, 5.0, 9.0), Event(2.0, 2.0, 8.0)], Sense.MAX)
    assert most is not None
    assert dict(most.lines) == {"incumbent": ((1.0, 5.0), (2.0, 5.0)), "bound": ((1.0, 9.0), (2.0, 8.0))}


def test_thinning_keeps_both_ends() -> None:
    points = [(float(n), 0.0) for n in range(1001)]
    few = thinned(points)
    assert len(few) <= 202
    assert (few[0], few[-1]) == (points[0], points[-1])
    assert thinned(points[:3]) == points[:3]


def test_events_come_back_from_a_plan(tmp_path: Path) -> None:
    problem = mast_opt.generate("data-placement", datasets=5, workloads=5, regions=2)
    solution = mast_opt.solve(problem, time_limit_s=20)
    mast_opt.write_plan(problem, solution, tmp_path / "plan")
    back = read_events(tmp_path / "plan")
    assert [(event.incumbent, event.bound) for event in back] == [(e.incumbent, e.bound) for e in solution.events]
    assert mast_opt.verify(problem, mast_opt.read_plan(problem, tmp_path / "plan")).ok
    lines = ('{"elapsed_s": 1}', '{"elapsed_s": "soon"}', "nothing", f'{{"elapsed_s": {10**400}}}', "[" * 100_000)
    (tmp_path / "plan" / "events.jsonl").write_text("\n".join(lines))
    with pytest.raises(PlanError, match=r"row 2.*\n.*row 3.*\n.*row 4.*\n.*row 5"):
        read_events(tmp_path / "plan")


def test_a_name_that_is_no_page(tmp_path: Path) -> None:
    with pytest.raises(mast_opt.UsageError, match=r"\.html"):
        write_report(PROBLEM, PLAN, tmp_path / "report.pdf")
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(mast_opt.InputError, match="exists already"):
        write_report(PROBLEM, PLAN, tmp_path / "report.html")
    with pytest.raises(mast_opt.UsageError, match=r"\.png"):
        write_report(PROBLEM, PLAN, tmp_path / "new.html", picture=tmp_path / "new.svg")
    assert not (tmp_path / "new.html").exists()


def test_the_picture(tmp_path: Path) -> None:
    write_report(PROBLEM, PLAN, tmp_path / "r.html", picture=tmp_path / "r.png")
    data = (tmp_path / "r.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert int.from_bytes(data[16:20], "big") == 2048
    assert len(data) > 50_000


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the present state of the real instance: ten regions with long names."""
    problem = mast_opt.read("instances/data_placement/cloud-regions")
    path = tmp_path_factory.mktemp("page") / "report.html"
    events = [Event(float(n), 50.0 - n, 10.0 + n / 2) for n in range(20)]
    write_report(problem, kind_named("data-placement").analysis.current_plan(problem), path, events=events)
    return path


@needs("browser")
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_in_a_browser(real: Path, width: int, dark: bool) -> None:
    seen = look(real, width, dark=dark)
    assert int(seen["width"]) == width
    assert int(seen["overflow"]) <= 0
    assert seen["requests"] == "0"
    assert seen["clipped"] == "0"
    assert width < 720 or seen["scrolled"] == "0"
    assert seen["terms"] == "0"
    light_paper, dark_paper = "rgb(246, 247, 249)", "rgb(16, 21, 28)"
    assert (seen["paper"], seen["switched"]) == ((dark_paper, light_paper) if dark else (light_paper, dark_paper))
    assert (seen["wide"], seen["phone"]) == (("none", "block") if width < 720 else ("block", "none"))
    assert seen["tip"] == "true"
    shot = Path(seen["shot"]).read_bytes()
    assert shot.startswith(b"\x89PNG")
    assert len(shot) > 50_000


@needs("browser")
def test_the_plans_of_all_goals_are_seen_at_once_on_a_phone(tmp_path: Path) -> None:
    """Five columns with figures in the millions and dates fit into the width, and no cell into the next."""
    others = dict.fromkeys(("do nothing", "least-change", "balanced", "cheapest", "safest"), PLAN)
    content = report(PROBLEM, PLAN, others=others, begin=date(2027, 1, 11), losses=False)
    (compared,) = content.compared
    cells = (5_415_856.0,) * (len(compared.heads) - 1)
    content = replace(content, compared=(replace(compared, rows=(*compared.rows, ("USD a month", *cells))),))
    file = tmp_path / "goals.html"
    file.write_text(page(content), encoding="utf-8")
    assert len(cells) == 5
    assert look(file, 390, dark=False)["compared"] == "0"


@needs("browser")
@pytest.mark.parametrize("name", kind_names())
def test_no_table_is_cut_on_a_laptop(name: str, tmp_path: Path) -> None:
    problem, plan, _, events = solved(name)
    write_report(problem, plan, tmp_path / "report.html", events=events)
    assert look(tmp_path / "report.html", 1280, dark=False)["scrolled"] == "0"
