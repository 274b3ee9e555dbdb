"""The best plans that are kept next to the committed instances: every one is verified again, and none is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_opt.cli import main
from mast_opt.core.errors import MastOptError
from mast_opt.planner.bench.results import best_known
from mast_opt.planner.io import kind_of_file, read, read_plan_of
from mast_opt.problems.registry import kind_of

ROOT = Path(__file__).parents[1] / "instances"


def instances() -> list[Path]:
    """Every committed instance."""
    folders = [header.parent for header in sorted(ROOT.glob("*/*/instance.toml")) if "traces" not in header.parts]
    return folders + sorted(ROOT.glob("*/*.json"))


@pytest.mark.parametrize("path", instances(), ids=lambda path: path.stem)
def test_the_best_known_plan_is_what_it_claims_to_be(path: Path) -> None:
    problem = read(path)
    kept = best_known.folder_of(path)
    if kind_of(problem).analysis.conflicts(problem):
        assert not kept.exists(), "there is no plan for an instance that contradicts itself"
        return
    assert kept.is_dir(), "add it to suite_files/best-known.toml: mast-opt bench best-known --update-best-known"
    reading = read_plan_of(problem, kept)
    verdict = kind_of(problem).verification.verify(problem, reading.plan)
    assert verdict.violations == ()
    assert reading.same_instance, "the instance has changed since; find its best plan again"
    if not problem.objective.lexicographic:
        assert verdict.objective == pytest.approx(float(reading.fields["objective"]), rel=1e-9)
    assert reading.fields["solver"]
    assert main(["verify", str(path), str(kept)]) == 0


def test_every_plan_kept_belongs_to_an_instance() -> None:
    kept = {folder for folder in ROOT.glob("**/best_known/*") if folder.is_dir()}
    assert kept <= {best_known.folder_of(path) for path in instances()}


def test_the_kind_of_a_file_is_known_without_its_tables(tmp_path: Path) -> None:
    assert {kind_of_file(path) for path in instances()} >= {"data-placement", "job-placement", "task-reassignment"}
    with pytest.raises(MastOptError):
        kind_of_file(tmp_path / "none")
