"""Generated instances of every kind and family survive every format."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from mast_opt.planner.io import FORMATS, checksum, read, read_plan, write, write_plan
from mast_opt.problems.data_placement import Plan
from mast_opt.problems.registry import kind_named, kind_names

FAMILIES = [(kind, family) for kind in kind_names() for family in kind_named(kind).generate.families]


@pytest.mark.parametrize(("name", "family"), FAMILIES)
def test_a_generated_instance_survives(name: str, family: str, tmp_path: Path) -> None:
    kind = kind_named(name)
    recipe = kind.generate.families[family]
    sizes = {size: max(3, recipe.least.get(size, 1), count // 20) for size, count in recipe.sizes.items()}
    problem = recipe.generate(np.random.default_rng(1), **sizes)
    header, tables = kind.tables.problem_to_tables(problem)
    for format in FORMATS:
        path = tmp_path / (f"a.{format}" if format in ("xlsx", "json") else format)
        write(problem, path, format)
        again = read(path)
        assert checksum(again) == checksum(problem), format
        found_header, found = kind.tables.problem_to_tables(again)
        assert found_header == header
        assert found.missing == tables.missing
        for table in kind.tables.schema.tables:
            assert found.rows(table.name) == tables.rows(table.name)


def test_a_data_placement_plan_survives(tmp_path: Path) -> None:
    kind = kind_named("data-placement")
    problem = kind.generate.families["features"].generate(np.random.default_rng(2), datasets=6, workloads=5, regions=3)
    plan = Plan(
        place=problem.datasets.stored | problem.datasets.pinned,
        run_workload=np.array([0, 0, 3]),
        run_region=np.array([0, 2, 1]),
        run_type=np.array([0, 0, len(problem.gpu_types)]),
        run_share=np.array([250, 750, 1000]),
        copy_dataset=np.array([4]),
        copy_source=np.array([0]),
        copy_target=np.array([2]),
        copy_share=np.array([1000]),
        remote_workload=np.zeros(0, np.int64),
        remote_dataset=np.zeros(0, np.int64),
        remote_source=np.zeros(0, np.int64),
        remote_target=np.zeros(0, np.int64),
        remote_share=np.zeros(0, np.int64),
    )
    write_plan(problem, plan, {"status": "FEASIBLE", "objective": 1.5}, tmp_path / "plan")
    files = sorted(path.name for path in (tmp_path / "plan").iterdir())
    assert files == ["copies.csv", "digests.npz", "placements.csv", "plan.toml", "remote_reads.csv", "runs.csv"]
    again = read_plan(problem, tmp_path / "plan")
    for item in fields(Plan):
        np.testing.assert_array_equal(getattr(again, item.name), getattr(plan, item.name), item.name)
