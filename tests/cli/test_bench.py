"""``mast-opt bench``: running, listing, going on, reporting, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Call, write_tables

SUITE = """
title = "One"
about = "One run."
time_limits_s = [5]
solvers = ["highs"]
plots = ["profile"]

[[entry]]
name = "two regions"
instances = ["instance"]
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    write_tables(tmp_path / "instance")
    (tmp_path / "one.toml").write_text(SUITE)
    return tmp_path / "one.toml"


@pytest.mark.second_tier
def test_a_suite_is_listed_run_and_reported(call: Call, suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(suite.parent)
    monkeypatch.setattr("mast_opt.planner.bench.execution.runner.commit", lambda: "abc")
    monkeypatch.setattr("mast_opt.planner.bench.execution.subprocess_run.commit", lambda: "abc")
    listed = call("bench", suite, "--list")
    assert "two regions/instance/highs/5s/seed0" in listed.out
    assert "1 runs to do" in listed.out
    ended = call("bench", suite, "--out", "results", "--update-best-known")
    assert ended.code == 0
    assert "OPTIMAL" in ended.err
    assert "best known: 2.1" in ended.err
    assert Path("best_known/instance/plan.toml").exists()
    assert call("verify", "instance", "best_known/instance").code == 0
    record = call("bench", suite, "--out", "results", "--json").record
    assert record["runs"] == {"todo": 0, "done": 1}
    suite.rename("one.toml")
    reported = call("bench", "report", "results", "--out", "page.md")
    assert reported.code == 0
    page = Path("page.md").read_text()
    assert "| highs | 5 s | 1 | 1/1 | 1 | 2.1 | 2.1 | 0.00% | 0.00% | 0.00% |" in page
    assert Path("page/images/one-data-placement-profile.svg").exists()
    assert call("bench", "report", "results", "--out", "page.md").code == 0
    assert Path("page.md").read_text() == page
    Path("page.md").write_text("# Benchmarks\n\nNotes of my own.\n")
    refused = call("bench", "report", "results", "--out", "page.md")
    assert refused.code == 2
    assert "page.md exists already and is no page of results; choose another path" in refused.err
    assert "Notes of my own" in Path("page.md").read_text()


@pytest.mark.second_tier
def test_a_broken_run_is_told_by_the_exit_code(call: Call, suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mast_opt.planner.bench.execution.subprocess_run.sys.executable", "/bin/false")
    ended = call("bench", suite, "--out", suite.parent / "results")
    assert ended.code == 1
    assert "CRASHED" in ended.err


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (("none",), "there is no suite 'none'"),
        (("report",), "nothing to report"),
        (("report", "results", "--filter", "x", "--again"), "leave out --filter, --again"),
        (("report", "results", "--patience", "5"), "leave out --patience"),
        (("{suite}", "results"), "only 'mast-opt bench report' takes results"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Call, suite: Path, tokens: tuple[str, ...], words: str) -> None:
    ended = call("bench", *(token.replace("{suite}", str(suite)) for token in tokens))
    assert ended.code == 2
    assert words in ended.err
