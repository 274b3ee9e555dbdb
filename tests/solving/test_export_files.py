"""Programs and files for other tools, from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import InputError, UsageError
from mast_opt.problems.registry import kind_names
from tests.narrowing import some


@pytest.fixture
def tiny() -> Any:
    return mast_opt.read("instances/data_placement/two-regions")


def test_a_program_has_names_and_the_optimum(tiny: Any) -> None:
    from mast_opt.core.solve_result import SolveParams
    from mast_opt.problems.backends import get

    mip = mast_opt.formulate(tiny)
    assert "place[clicks,east]" in set(mip.column_names())
    result = get("highs").solve(mip, SolveParams())
    optimum = mast_opt.solve(tiny, "highs").objective
    assert np.isclose(some(result.objective), some(optimum))


def test_a_lexicographic_program_minimises_its_first_term() -> None:
    problem = mast_opt.generate("data-placement", "lexicographic", datasets=4, workloads=4, regions=2)
    mip, first = mast_opt.formulate(problem), problem.objective.order[0]
    assert np.count_nonzero(mip.cost) == np.count_nonzero(mip.minimise({first: 1.0}).cost)


@pytest.mark.parametrize("ending", [".lp", ".mps", ".dat", ".json", ".xlsx", ""])
def test_an_instance_is_written_in_each_format(tiny: Any, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"made{ending}"
    mast_opt.export(tiny, out)
    assert out.exists()
    if ending in (".json", ".xlsx", ""):
        assert mast_opt.checksum(mast_opt.read(out)) == mast_opt.checksum(tiny)
    with pytest.raises(InputError):
        mast_opt.export(tiny, out)
    mast_opt.export(tiny, out, force=True)


def test_a_changed_program_can_be_written(tiny: Any, tmp_path: Path) -> None:
    mast_opt.write_program(mast_opt.formulate(tiny).limit_term("remote", 1.0), tmp_path / "limited.lp")
    assert "limit_remote" in (tmp_path / "limited.lp").read_text()
    with pytest.raises(UsageError, match=r"ends in \.lp or \.mps"):
        mast_opt.write_program(mast_opt.formulate(tiny), tmp_path / "limited.txt")


def test_what_has_no_such_format_is_refused(tiny: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no formulation called 'srtong'"):
        mast_opt.formulate(tiny, "srtong")
    with pytest.raises(UsageError, match=r"ends in one of \.lp"):
        mast_opt.export(tiny, tmp_path / "made.txt")
    with pytest.raises(UsageError, match="holds no program"):
        mast_opt.export(tiny, tmp_path / "made.json", formulation="base")
    with pytest.raises(UsageError, match="no format of another tool for plans"):
        mast_opt.export(tiny, tmp_path / "made.txt", plan=mast_opt.solve(tiny, "highs").plan)
    assert list(tmp_path.iterdir()) == []


def test_a_plan_of_the_challenge_is_written(tmp_path: Path) -> None:
    tasks = mast_opt.generate("task-reassignment", processes=6, machines=3, resources=1)
    plan = mast_opt.solve(tasks, "highs", gap=0.5).plan
    mast_opt.export(tasks, tmp_path / "new.txt", plan=plan)
    assert len((tmp_path / "new.txt").read_text().split()) == 6


@pytest.mark.second_tier
def test_solvers_are_listed_for_each_kind() -> None:
    every = {found.name: found for found in mast_opt.solvers()}
    assert every["highs"].available
    assert every["highs"].version
    assert (every["tetris"].kinds, every["tetris"].exact) == (("data-placement",), False)
    assert "tetris" not in {found.name for found in mast_opt.solvers("job-placement")}
    assert every["highs"].kinds == kind_names()
    with pytest.raises(UsageError, match="no kind of problem called 'jobs'"):
        mast_opt.solvers("jobs")


def test_an_instance_is_imported(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("1 1 5 2 3")
    problem = mast_opt.import_instance("gap", tmp_path / "one.txt")
    assert problem.jobs.labels == ("item-1",)
    with pytest.raises(UsageError, match="no setting 'colour'"):
        mast_opt.import_instance("gap", tmp_path / "one.txt", colour="red")


def test_a_reading_has_warnings_and_conflicts() -> None:
    reading = mast_opt.validate("instances/data_placement/infeasible-pins")
    assert reading.conflicts
    assert mast_opt.checksum(reading.problem) == mast_opt.checksum(
        mast_opt.read("instances/data_placement/infeasible-pins")
    )
