"""Plans of another instance on the command line: a start is matched by label, and the rest warns."""

from pathlib import Path

import pytest

import mast_opt
from mast_opt.planner.io import write
from tests.cli.conftest import Call


@pytest.fixture
def plan(call: Call, tmp_path: Path) -> Path:
    """A plan of an instance of five workloads, one of which the instance at ``less`` does not have."""
    problem = mast_opt.generate("data-placement", seed=1, datasets=4, workloads=5, regions=3)
    write(problem, tmp_path / "all")
    tables = {
        name: frame if "workload" not in frame.columns else frame.filter(frame["workload"] != "w4")
        for name, frame in mast_opt.to_tables(problem).items()
    }
    write(mast_opt.from_tables("data-placement", tables, name="less"), tmp_path / "less")
    write(problem.replace("datasets", "d0", size_mb=7), tmp_path / "larger")
    assert (
        call("solve", tmp_path / "all", "--solver", "tetris", "--iterations", "1", "--out", tmp_path / "plan").code == 0
    )
    return tmp_path / "plan"


@pytest.mark.parametrize("option", ["--start", "--near"])
def test_a_start_of_another_instance_is_matched_by_label(call: Call, plan: Path, option: str) -> None:
    ended = call("solve", plan.parent / "less", "--solver", "tetris", "--iterations", "1", option, plan)
    assert ended.code == 0
    assert "their rows are left out: workload: w4" in " ".join(ended.err.split())
    same = call("solve", plan.parent / "all", "--solver", "tetris", "--iterations", "1", option, plan)
    assert "left out" not in same.err


@pytest.mark.parametrize("command", [("steps",), ("explain", "--plan"), ("marginal", "--plan"), ("diff",)])
def test_other_commands_say_that_the_plan_is_of_another_instance(
    call: Call, plan: Path, command: tuple[str, ...]
) -> None:
    ended = call(command[0], plan.parent / "larger", *command[1:], plan)
    assert "warning: this plan was made for another instance called" in " ".join(ended.err.split())
