"""Reports of runs: figures of the log, why jobs waited, the page, and two runs compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mast_opt.core.errors import InputError, UsageError
from mast_opt.live.loop.event_log import LogError
from mast_opt.live.loop.history import history
from mast_opt.live.loop.metrics import metrics
from mast_opt.live.reports.charts import charts_of
from mast_opt.live.reports.comparison import compare
from mast_opt.live.reports.content import run_page, run_report, tiles, time_text, write_run_report
from mast_opt.live.simulation.run import run_trace
from mast_opt.live.simulation.run_folder import RunFacts, StoredRun, read_run, write_run
from mast_opt.live.simulation.traces.trace import read_trace
from mast_opt.planner.io.plain_tables import RUN_FILES as FILES
from mast_opt.problems.kind.presentation import Lines
from tests.platforms import needs
from tests.report.browser import look
from tests.report.test_html import figures
from tests.simulation.test_order_only import trace_of

SMALL = Path(__file__).parents[2] / "instances" / "traces" / "philly-small"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, StoredRun]:
    """Runs of the small trace, by policy."""
    folder, trace = tmp_path_factory.mktemp("runs"), read_trace(SMALL)
    for policy in ("fifo", "sjf", "mast"):
        done = run_trace(trace, policy)
        write_run(done, RunFacts(trace.name), metrics(done.rows), folder / policy, force=False)
    return {policy: read_run(folder / policy) for policy in ("fifo", "sjf", "mast")}


@pytest.mark.parametrize("policy", ["fifo", "sjf", "mast"])
def test_waits_and_gpu_hours_are_those_of_the_metrics(runs: dict[str, StoredRun], policy: str) -> None:
    run = runs[policy]
    found = history(run.events())
    assert sum(wait.end_ms - wait.begin_ms for wait in found.waits) / 1000 == run.metrics["sum_queue_s"]
    edges = np.array([found.first_ms, found.last_ms])
    held = sum(series.means(edges)[0] for series in found.held_mgpu.values())
    supply = sum(series.means(edges)[0] for series in found.supply_mgpu.values())
    assert held / supply == pytest.approx(run.metrics["allocation"], rel=1e-12)
    length = found.last_ms - found.first_ms
    assert found.waiting_jobs.means(edges)[0] * length / 1000 == pytest.approx(run.metrics["sum_queue_s"])
    assert found.waiting_jobs.at(edges)[-1] == 0


def test_who_waited_longest_and_why(runs: dict[str, StoredRun]) -> None:
    report = run_report(runs["fifo"])
    assert report.violations == ()
    rows = {row[0]: row for row in report.sections[0].rows}
    assert list(rows) == ["389", "390", "391", "392", "393", "394", "395"]
    assert rows["389"][-1] == "103959 never had 4 free GPUs"
    assert rows["390"][-1] == (
        "103959 had 1 free GPU all the time, but not close enough together or not in its turn; "
        "1 that came earlier waited there too"
    )
    assert run_report(runs["mast"]).sections[0].note == "No job waited."


def test_jobs_that_never_run_and_those_that_still_wait_have_rows_of_their_own(tmp_path: Path) -> None:
    trace = trace_of(
        {"tasks": 2, "mgpu": 4000, "duration_ms": 900},
        {"tasks": 2, "mgpu": 4000, "duration_ms": 900},
        {"tasks": 5, "mgpu": 4000, "duration_ms": 9},
    )
    done = run_trace(trace, "mast", until_ms=400)
    found = metrics(done.rows, until_ms=400, impossible=done.impossible)
    write_run(done, RunFacts("t", until_s=0.4), found, tmp_path / "run", force=False)
    sections = {section.title: section for section in run_report(read_run(tmp_path / "run")).sections}
    never = sections["Jobs that can never run"].rows
    assert [(row[0], row[2]) for row in never] == [("j2", 20.0)]
    assert "it needs 20 GPUs" in str(never[0][-1])
    assert [row[0] for row in sections["Who waited longest, and why"].rows] == ["j1"]
    size, job, hours, why = sections["Longest wait of each size of jobs"].rows[0]
    assert (size, job) == (8, "j1")
    assert hours == pytest.approx(1 / 3_600_000)
    assert str(why).startswith("still waits; ")
    names = [[row[0] for row in sections[f"Waits by {what}"].rows] for what in ("region", "tier", "size")]
    assert names == [
        ["–, still waiting", "r", "can never run"],
        ["tier 1, still waiting", "tier 1", "can never run"],
        ["8 GPUs, still waiting", "8 GPUs", "can never run"],
    ]


def test_the_page(runs: dict[str, StoredRun]) -> None:
    report = run_report(runs["fifo"])
    text = run_page(report)
    found = figures(text)
    assert found.metrics["sum_queue_s"] == 226_773
    assert found.metrics["queue_s_mean"] == runs["fifo"].metrics["queue_s"]["mean"]
    assert not set(found.tags) & {"link", "img", "iframe", "object", "embed", "base"}
    assert [picture.title for picture, _ in report.pictures] == [
        *("Jobs that wait", "GPUs", "GPUs that waiting jobs want", "GPUs in use by region"),
    ]
    assert "Checked: the log breaks no rule." in text


def test_the_page_answers_in_hours_and_days_and_folds_the_rest(runs: dict[str, StoredRun]) -> None:
    report = run_report(runs["fifo"])
    first, rest = tiles(report)
    assert [one["name"] for one in first] == [
        *("queue_s_mean", "queue_s_p95", "jct_s_mean", "allocation", "starved", "lost_gpu_h"),
    ]
    assert {"wait, mean": "7.6 min", "until done, mean": "15.1 h"}.items() <= {
        one["words"]: one["text"] for one in first
    }.items()
    assert len(first) + len(rest) == sum(value is not None for _, value in report.metrics)
    shown = {one["name"]: one["text"] for one in rest}
    assert (shown["sum_queue_s"], shown["makespan_s"]) == ("2.6 days", "14.9 days")
    text = run_page(report)
    opened, folded = text.partition('<details class="rest">')[::2]
    assert opened.count('class="value"') == 6
    assert folded.partition("</details>")[0].count('class="value"') == len(rest)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "none"), (0.25, "0.25 s"), (59, "59 s"), (90, "1.5 min"), (86_400, "24.0 h"), (511_318_580, "5,918.0 days")],
)
def test_times_are_in_units_that_people_think_in(seconds: float, words: str) -> None:
    assert time_text(seconds) == words


def test_what_waiting_jobs_want_does_not_set_the_scale_of_what_runs(runs: dict[str, StoredRun]) -> None:
    found = history(runs["fifo"].events())
    crowded = replace(found, waiting_mgpu=replace(found.waiting_mgpu, amount=found.waiting_mgpu.amount * 1000))
    gpus, wanted = (chart for chart in charts_of(crowded) if chart.title in ("GPUs", "GPUs that waiting jobs want"))
    assert isinstance(gpus, Lines)
    assert isinstance(wanted, Lines)
    supply = sum(int(series.amount.max()) for series in found.supply_mgpu.values()) / 1000
    assert max(y for _, points in gpus.lines for _, y in points) <= supply
    assert max(y for _, points in wanted.lines for _, y in points) > supply


@needs("browser")
@pytest.mark.parametrize(("width", "dark"), [(390, True), (1400, False)])
def test_a_browser_shows_it_well(runs: dict[str, StoredRun], tmp_path: Path, width: int, dark: bool) -> None:
    write_run_report(runs["fifo"], tmp_path / "run.html")
    seen = look(tmp_path / "run.html", width, dark=dark)
    assert (seen["overflow"], seen["requests"], seen["clipped"]) == ("0", "0", "0")
    assert seen["paper"] != seen["switched"]


def test_two_runs(runs: dict[str, StoredRun]) -> None:
    found = compare(runs["fifo"], runs["sjf"])
    assert (found.longer, found.shorter, found.same) == (0, 6, 494)
    assert found.jobs[0].job == "390"
    assert sum(job.by_ms for job in found.jobs) / 1000 == 39_944 - 226_773 == found.metrics["sum_queue_s"].by
    assert compare(runs["fifo"], runs["fifo"]).jobs == ()


def test_runs_of_other_jobs_are_not_compared(runs: dict[str, StoredRun], tmp_path: Path) -> None:
    text = (runs["fifo"].path / FILES[0]).read_text()
    for name, old, new, words in (
        ("size", '"duration_ms": 382000', '"duration_ms": 382001', "duration_ms of job 1 differ"),
        ("name", '"job": "1"', '"job": "one"', "1 and 1 more is in"),
    ):
        other = tmp_path / name
        other.mkdir()
        assert old in text
        (other / FILES[0]).write_text(text.replace(old, new))
        (other / FILES[1]).write_text((runs["fifo"].path / FILES[1]).read_text())
        with pytest.raises(UsageError, match=words):
            compare(runs["fifo"], read_run(other))


@pytest.mark.parametrize("figures", ["", "[]", "{}", '{"trace": 1, "policy": "fifo", "params": {}}', '{"trace": "a"}'])
def test_a_folder_that_is_no_run(tmp_path: Path, figures: str) -> None:
    with pytest.raises(InputError, match="no folder of a run"):
        read_run(tmp_path)
    (tmp_path / FILES[0]).write_text("")
    (tmp_path / FILES[1]).write_text(figures)
    with pytest.raises(InputError, match=r"metrics\.json: expected the figures of a run"):
        read_run(tmp_path)


def test_a_log_that_was_cut_is_refused(runs: dict[str, StoredRun], tmp_path: Path) -> None:
    lines = (runs["fifo"].path / FILES[0]).read_text().splitlines(keepends=True)
    (tmp_path / FILES[0]).write_text("".join(lines[:-5]))
    (tmp_path / FILES[1]).write_text((runs["fifo"].path / FILES[1]).read_text())
    with pytest.raises(LogError, match="the log was cut"):
        write_run_report(read_run(tmp_path), tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_data_and_moves_have_pictures(runs: dict[str, StoredRun], tmp_path: Path) -> None:
    """Events of slow paths, which no run of these policies has."""
    lines = (runs["fifo"].path / FILES[0]).read_text().splitlines(keepends=True)
    more = [
        '"event": "DatasetCreated", "dataset": "d", "size_mb": 3000000, "regions": ["103959"]',
        '"event": "CopyAsked", "dataset": "d", "source": "103959", "region": "2869ce", "size_mb": 3000000',
        '"event": "CopyEnded", "dataset": "d", "region": "2869ce"',
        '"event": "ReplicaDropped", "dataset": "d", "region": "103959"',
        '"event": "PlanAdopted", "path": "data", "plan": "p", "ratios": {"0": 0.9, "1": 1.25}',
    ]
    events, last = len(lines) - 1, 1_288_614_000 + 10**9
    added = [f'{{"seq": {events + at}, "at_ms": {last}, {words}}}\n' for at, words in enumerate(more, start=1)]
    head = lines[0].replace(str(events), str(events + len(more)))
    (tmp_path / FILES[0]).write_text("".join([head, *lines[1:], *added]))
    (tmp_path / FILES[1]).write_text((runs["fifo"].path / FILES[1]).read_text())
    found = history(read_run(tmp_path).events())
    assert (found.stored_mb.amount.tolist(), found.copying_mb.amount.tolist()) == ([3_000_000], [0])
    assert {name: series.amount.tolist() for name, series in found.counts.items()} == {"copies": [1], "drops": [1]}
    titles = [picture.title for picture, _ in run_report(read_run(tmp_path)).pictures]
    assert titles[-3:] == ["Storage", "Moves so far", "Worst ratio of the plan of data"]
