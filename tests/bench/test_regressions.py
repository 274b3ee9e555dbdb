"""A regression is what lies beyond the range of the committed seeds, and nothing else."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("regressions", ROOT / "benchmarks" / "regressions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(objective: float | None, seed: int = 0, *, bound: float | None = None, limit_s: float = 8.0) -> dict[str, Any]:
    return {
        "entry": "many readers",
        "instance": "drawn",
        "source": {"kind": "data-placement"},
        "contestant": {"name": "tetris"},
        "time_limit_s": limit_s,
        "seed": seed,
        "status": "NO_SOLUTION" if objective is None else "FEASIBLE",
        "objective": objective,
        "bound": bound,
    }


BEFORE = [run(10.0, 0, bound=9.0), run(11.0, 1, bound=8.0)]


@pytest.mark.parametrize("after", [run(11.1), run(9.0), run(10.5, bound=7.9), run(50.0, limit_s=60.0)])
def test_what_the_seeds_spread_is_no_regression(script: ModuleType, after: dict[str, Any]) -> None:
    assert script.regressions(BEFORE, [after], 0.02) == []


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (run(11.3), "objective 11.3; at most 11 before"),
        (run(10.0, bound=7.5), "bound 7.5; at least 8 before"),
        (run(None), "no plan (NO_SOLUTION); every earlier run has one"),
    ],
)
def test_what_lies_beyond_is_one(script: ModuleType, after: dict[str, Any], words: str) -> None:
    (line,) = script.regressions(BEFORE, [after], 0.02)
    assert words in line
    assert line.startswith("many readers, drawn, tetris, seed 0")


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (run(9.9), None),
        (run(20.0, bound=12.1), None),
        (run(9.7), "objective 9.7; at least 10 before"),
        (run(10.0, bound=12.5), "bound 12.5; at most 12 before"),
    ],
)
def test_where_more_is_better_less_is_a_regression(
    script: ModuleType, after: dict[str, Any], words: str | None
) -> None:
    before = [{**one, "sense": "max"} for one in (run(10.0, 0, bound=12.0), run(11.0, 1, bound=11.5))]
    lines = script.regressions(before, [{**after, "sense": "max"}], 0.02)
    assert [words in line for line in lines] == ([] if words is None else [True])


def test_files_without_a_run_in_common_are_an_error(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ROOT / "benchmarks" / "results" / "small.jsonl"
    for other, code in ((small, 0), (ROOT / "benchmarks" / "results" / "gap.jsonl", 1)):
        monkeypatch.setattr("sys.argv", ["regressions.py", str(small), str(other)])
        assert script.main() == code
    assert "no run in common" in capsys.readouterr().out
