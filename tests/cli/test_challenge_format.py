"""The ROADEF challenge's files in, its assignment file out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.task_reassignment.hand import MODEL, TODAY


@pytest.fixture
def imported(call: Call, tmp_path: Path) -> Path:
    (tmp_path / "model_hand.txt").write_text(MODEL)
    (tmp_path / "today.txt").write_text(TODAY)
    ended = call("import", "roadef", tmp_path / "model_hand.txt", tmp_path / "today.txt", tmp_path / "hand")
    assert ended.code == 0
    return tmp_path / "hand"


def test_a_plan_goes_back_in_the_challenges_form(call: Call, imported: Path, tmp_path: Path) -> None:
    plan, new = tmp_path / "plan", tmp_path / "new.txt"
    assert call("solve", imported, "--out", plan, "--json").record["status"] == "OPTIMAL"
    assert call("export", imported, new, "--plan", plan).code == 0
    again = call("import", "roadef", tmp_path / "model_hand.txt", new, tmp_path / "again")
    assert again.code == 0
    machines = [row.split(",")[1] for row in (plan / "assignments.csv").read_text().splitlines()[1:]]
    assert new.read_text().split() == [name.removeprefix("m") for name in machines]
    assert call("export", imported, new, "--plan", plan).code == 2
    assert call("export", imported, new, "--plan", plan, "--force").code == 0


def test_the_model_file_is_written_too(call: Call, imported: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.txt"
    assert call("export", imported, model).code == 0
    assert model.read_text().split() == MODEL.split()


def test_a_plan_needs_a_format_for_plans(call: Call, imported: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    call("solve", imported, "--out", plan)
    assert "ends in .txt" in call("export", imported, tmp_path / "new.dat", "--plan", plan).err
    assert "a formulation" in call("export", imported, tmp_path / "n.txt", "--plan", plan, "--formulation", "base").err


def test_other_kinds_have_no_format_for_plans(call: Call, instance: Path, tmp_path: Path) -> None:
    assert "leave out the plan" in call("export", instance, tmp_path / "new.txt", "--plan", tmp_path).err


def test_a_fault_names_the_file_and_the_number(call: Call, tmp_path: Path) -> None:
    (tmp_path / "model.txt").write_text(MODEL)
    (tmp_path / "today.txt").write_text("0 2 0 1")
    ended = call("import", "roadef", tmp_path / "model.txt", tmp_path / "today.txt", tmp_path / "out")
    assert ended.code == 2
    assert "today.txt" in ended.err
    assert "truncated" in ended.err
