"""A plan replaces the best known one only if the verifier passes it and it is strictly better."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mast_opt.core.errors import InputError
from mast_opt.planner.bench.results import best_known
from mast_opt.planner.io import read, write
from mast_opt.planner.solving import solve, write_plan_folder
from mast_opt.problems.registry import generate
from tests.bench.conftest import INSTANCES

VICTIMS = INSTANCES / "job_placement" / "tiny-victims.json"


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    return Path(shutil.copy(VICTIMS, tmp_path / "tiny-victims.json"))


def offered(instance: Path, solver: str, folder: str) -> Path:
    problem = read(instance)
    write_plan_folder(problem, solve(problem, solver), instance.parent / folder)
    return instance.parent / folder


def emptied(plan: Path) -> Path:
    """The plan that places nothing and stops nothing."""
    for name in ("assignments.csv", "preemptions.csv"):
        head, *_ = (plan / name).read_text().splitlines()
        (plan / name).write_text(head + "\n")
    text = (plan / "plan.toml").read_text()
    (plan / "plan.toml").write_text(re.sub(r"(?m)^objective = .*$", "objective = 1000.0", text))
    return plan


def test_only_a_better_plan_replaces(instance: Path) -> None:
    assert best_known.objective_of(instance) is None
    worse, better = emptied(offered(instance, "highs", "worse")), offered(instance, "highs", "better")
    assert best_known.offer(instance, worse).startswith("best known: ")
    first = best_known.objective_of(instance)
    assert "(was " in best_known.offer(instance, better)
    second = best_known.objective_of(instance)
    assert first is not None
    assert second is not None
    assert second < first
    assert best_known.offer(instance, worse) == ""
    assert best_known.offer(instance, better) == ""
    assert best_known.objective_of(instance) == second


def test_a_plan_that_breaks_a_rule_is_refused(instance: Path) -> None:
    wrong = offered(instance, "highs", "wrong")
    rows = (wrong / "preemptions.csv").read_text().splitlines()
    (wrong / "preemptions.csv").write_text(rows[0] + "\n")
    with pytest.raises(InputError, match="is not one for"):
        best_known.offer(instance, wrong)
    assert best_known.objective_of(instance) is None


def test_a_plan_for_another_version_of_the_instance_is_refused(instance: Path) -> None:
    plan = offered(instance, "highs", "plan")
    changed(instance)
    with pytest.raises(InputError, match="another version"):
        best_known.offer(instance, plan)


def changed(instance: Path) -> None:
    """Another version of the instance, in which every label is still there."""
    instance.write_text(instance.read_text().replace('"gpu_hours_at_risk": ', '"gpu_hours_at_risk": 1', 1))


def renamed(instance: Path) -> None:
    """Another version of the instance, without a server that had its name before."""
    instance.write_text(instance.read_text().replace('"server": "', '"server": "new '))


@pytest.mark.parametrize("change", [changed, renamed])
def test_a_plan_kept_for_another_version_counts_for_nothing(instance: Path, change: Callable[[Path], None]) -> None:
    best_known.offer(instance, offered(instance, "highs", "before"))
    assert best_known.objective_of(instance) is not None
    change(instance)
    assert best_known.objective_of(instance) is None
    worse = emptied(offered(instance, "highs", "after"))
    assert "was" not in best_known.offer(instance, worse)
    assert best_known.objective_of(instance) == 1000.0


def test_a_lexicographic_objective_is_no_single_value(tmp_path: Path) -> None:
    problem = generate("data-placement", "lexicographic", datasets=3, workloads=3, regions=2, seed=1)
    write(problem, tmp_path / "small.json")
    best_known.offer(tmp_path / "small.json", offered(tmp_path / "small.json", "highs", "plan"))
    assert best_known.folder_of(tmp_path / "small.json").is_dir()
    assert best_known.objective_of(tmp_path / "small.json") is None
