"""Result files survive crashes, and keys say what has to be run again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mast_opt.core.errors import InputError
from mast_opt.planner.bench.results.store import append, key_of, latest, load, used_by
from mast_opt.planner.bench.suites.instances import Stored
from mast_opt.planner.bench.suites.suite import Contestant, Suite
from tests.bench.conftest import result

VERSIONS = {"mast-opt": "0.1.0", "numpy": "2", "highs": "1.13"}


def test_lines_are_added_and_a_torn_one_gives_way(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "two.jsonl"
    assert load(file) == []
    append(file, result("a", 1.0))
    with file.open("a") as lines:
        lines.write('{"key": "torn')
    assert [one["contestant"]["name"] for one in load(file)] == ["a"]
    append(file, result("b", 2.0))
    assert [one["contestant"]["name"] for one in load(file)] == ["a", "b"]


def test_a_whole_line_without_its_end_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "two.jsonl"
    append(file, result("a", 1.0))
    file.write_bytes(file.read_bytes().removesuffix(b"\n"))
    append(file, result("b", 2.0))
    assert [one["contestant"]["name"] for one in load(file)] == ["a", "b"]


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    file = tmp_path / "two.jsonl"
    file.write_text('{"key": "a"}\nnonsense\n{"key": "b"}\n')
    with pytest.raises(InputError, match="line 2"):
        load(file)


@pytest.mark.parametrize(
    "line", [b"\xff", b"7", b"[]", b"[" * 5000, b"9" * 5000], ids=["not UTF-8", "number", "list", "deep", "long number"]
)
def test_a_line_that_is_no_object_is_named(tmp_path: Path, line: bytes) -> None:
    file = tmp_path / "two.jsonl"
    file.write_bytes(b'{"key": "a"}\n' + line + b"\n{}\n")
    with pytest.raises(InputError, match="line 2"):
        load(file)


@pytest.mark.parametrize("change", [{"entry": []}, {"instance": None}, {"source": None}])
def test_a_result_without_what_names_its_instance(change: dict[str, object]) -> None:
    broken = {key: value for key, value in (result("a", 1.0) | change).items() if value is not None}
    with pytest.raises(InputError, match="expected a text as entry and instance, and a source"):
        latest([broken])


def test_the_key_changes_with_all_that_decides_a_run(suite: Suite) -> None:
    trial = suite.trials[0]
    keys = {
        key_of(trial, VERSIONS, "abc"),
        key_of(trial, VERSIONS, "abd"),
        key_of(trial, {**VERSIONS, "highs": "1.14"}, "abc"),
        key_of(replace(trial, seed=1), VERSIONS, "abc"),
        key_of(replace(trial, time_limit_s=3.0), VERSIONS, "abc"),
        key_of(replace(trial, threads=2), VERSIONS, "abc"),
        *(key_of(other, VERSIONS, "abc") for other in suite.trials[1:]),
    }
    assert len(keys) == 6 + 3
    assert key_of(trial, VERSIONS, "abc") == key_of(suite.trials[0], dict(VERSIONS), "abc")
    assert key_of(trial, {**VERSIONS, "scip": "10"}, "abc") == key_of(trial, VERSIONS, "abc"), (
        "another solver's version"
    )


def test_solvers_of_our_own_depend_on_the_backends_inside(suite: Suite) -> None:
    ours = replace(suite.trials[0], contestant=Contestant("exhaustive+repair", "exhaustive+repair"))
    newer = {**VERSIONS, "highs": "1.14"}
    assert key_of(ours, VERSIONS, "abc") != key_of(ours, newer, "abc")
    assert {"highs", "cpsat"} <= set(used_by(ours))
    assert "cpsat" not in used_by(suite.trials[0])


def test_the_content_of_an_instance_is_part_of_its_key(suite: Suite) -> None:
    trial = suite.trials[0]
    before = key_of(trial, VERSIONS, "abc")
    assert isinstance(trial.source, Stored)
    path = trial.source.path
    path.write_text(path.read_text().replace('"gpus": 8', '"gpus": 4'))
    assert key_of(trial, VERSIONS, "abc") != before


def test_the_latest_result_of_a_trial_counts() -> None:
    first, second, other = result("a", 5.0, commit="x"), result("a", 4.0, commit="y"), result("a", 3.0, seed=1)
    assert [one["objective"] for one in latest([first, other, second])] == [4.0, 3.0]


def test_results_on_another_content_of_an_instance_do_not_count() -> None:
    before = {"kind": "job-placement", "content": "1"}
    old, kept = result("a", 1.0, source=before), result("a", 2.0, source=before, instance="j")
    new = result("b", 5.0, source={**before, "content": "2"})
    assert [one["objective"] for one in latest([old, kept, new])] == [2.0, 5.0]


def test_a_readme_does_not_part_an_instance_from_its_results(tmp_path: Path) -> None:
    (tmp_path / "instance.toml").write_text("format = 1")
    (tmp_path / "jobs.csv").write_text("job")
    before = Stored("job-placement", tmp_path).facts
    (tmp_path / "README.md").write_text("figures")
    (tmp_path / "instance.dat").write_text("data;")
    assert Stored("job-placement", tmp_path).facts == before
    (tmp_path / "jobs.csv").write_text("job,tier")
    assert Stored("job-placement", tmp_path).facts != before
