"""Warnings in ``validate``, ``solve`` and ``whatif``; ``--strict`` makes them errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Call, write_tables


def test_validate_shows_warnings_and_strict_refuses(call: Call, tmp_path: Path) -> None:
    path = write_tables(tmp_path / "i", {"gpu_demand.csv": "workload,gpu_type,gpus\nrank,A100,8\nspam,A100,17\n"})
    ended = call("validate", path, "--json")
    assert ended.code == 0
    [record] = ended.record["warnings"]
    assert (record["file"], record["row"], record["column"], record["value"]) == ("gpu_demand.csv", 2, "gpus", "17")
    assert record["message"]
    assert record["suggestion"]
    assert "Warning: gpu_demand.csv, row 2" in call("validate", path).out
    ended = call("validate", path, "--strict", "--json")
    assert ended.code == 2
    assert "row 2" in ended.record["error"]
    assert len(ended.record["warnings"]) == 1


def test_solve_warns_on_stderr_and_strict_refuses(call: Call, tmp_path: Path) -> None:
    path = write_tables(tmp_path / "i", {"gpu_demand.csv": "workload,gpu_type,gpus\nrank,A100,8\nspam,A100,17\n"})
    ended = call("solve", path, "--json")
    assert ended.code == 0
    assert "warning: gpu_demand.csv, row 2" in ended.err
    assert len(ended.record["warnings"]) == 1
    assert call("solve", path, "--strict").code == 2


def test_a_sound_instance_passes_strict(call: Call, instance: Path) -> None:
    ended = call("validate", instance, "--strict", "--json")
    assert (ended.code, ended.record["warnings"]) == (0, [])


@pytest.mark.parametrize(
    ("value", "hint"),
    [("30", "1.3"), ("{ all = 20 }", "1.2"), ("0.3", "1.3"), ("1.2", None), ("0", None), ("3", None)],
)
def test_growth_that_was_meant_in_percent(
    call: Call, instance: Path, tmp_path: Path, value: str, hint: str | None
) -> None:
    path = tmp_path / "scenarios.toml"
    path.write_text(f'[[scenario]]\nname = "more"\ngrow_demand = {value}\n', encoding="utf-8")
    ended = call("whatif", instance, "--scenarios", path, "--strict", "--time-limit", "5", "--json")
    if hint is None:
        assert ended.record["warnings"] == []
        return
    assert ended.code == 2
    assert f"% more write {hint}" in ended.record["error"]
    assert "scenario more" in ended.record["warnings"][0]["file"]
