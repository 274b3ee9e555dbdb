"""Late against early binding: the page has the committed runs, and today's code makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.late_binding import LATE, TRACE, WAITS, read, run, table
from benchmarks.study_pages import with_tables
from mast_opt.live.simulation.traces.trace import read_trace

ROOT = Path(__file__).parents[2]
RUNS = read(ROOT / "benchmarks" / "data" / "late-binding.jsonl")


def test_the_page_has_the_runs() -> None:
    page = (ROOT / "docs" / "benchmarks" / "late-binding.md").read_text()
    assert "<!-- table: waits -->" in page
    assert with_tables(page, {"waits": lambda: table(RUNS)}) == page
    assert [(row["policy"], row["speed"]) for row in RUNS] == [(rule, speed) for speed in (4, 5, 6) for rule in WAITS]


def test_late_binding_waits_least_in_every_run() -> None:
    for row in RUNS:
        late = next(one for one in RUNS if (one["policy"], one["speed"]) == (LATE, row["speed"]))
        assert late["mean_s"] <= row["mean_s"]
        assert late["jobs"] == row["jobs"]


def test_the_page_states_the_load_of_the_trace() -> None:
    trace = read_trace(TRACE)
    jobs = trace.submissions
    last = int(jobs.submitted_ms.max())
    load = float(jobs.gang_mgpu @ jobs.duration_ms) / sum(1000 * server.gpus for server in trace.servers) / last
    page = " ".join((ROOT / "docs" / "benchmarks" / "late-binding.md").read_text().split())
    assert "that is {:.2f}, {:.2f} and {:.2f} of all GPU time".format(*(n * load for n in (4, 5, 6))) in page


@pytest.mark.second_tier
def test_a_run_is_what_the_code_gives() -> None:
    stated = next(row for row in RUNS if (row["policy"], row["speed"]) == (LATE, 5))
    assert run(read_trace(TRACE), LATE, 5) == pytest.approx(stated)


def test_a_small_trace_is_run_to_its_end() -> None:
    trace = read_trace(TRACE.parent / "philly-small")
    found = {rule: run(trace, rule, 40) for rule in ("home", LATE)}
    assert {row["jobs"] for row in found.values()} == {len(trace.submissions)}
    assert min(row["mean_s"] for row in found.values()) > 0
