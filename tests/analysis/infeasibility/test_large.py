"""Conflicts of a hundred limits: storage is short everywhere."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import mast_opt
from mast_opt.core.solve_result import SolveParams
from mast_opt.planner.analysis.infeasibility.elastic_program import Elastic
from mast_opt.planner.analysis.infeasibility.iis import ROUNDS, ModelRotation
from mast_opt.planner.report.terminal.analysis import show_explanation
from mast_opt.problems import backends
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.analysis.elastic_program import relief
from mast_opt.problems.mip import frozen


@pytest.fixture(scope="module")
def short() -> DataPlacement:
    """Sixty datasets, and storage for nine tenths of one copy of each."""
    problem: DataPlacement = mast_opt.generate("data-placement", seed=2, datasets=60, workloads=12, regions=4)
    share = 0.9 * int(problem.datasets.size_mb.sum()) / int(problem.usable_storage_mb.sum())
    return problem.with_columns({"regions.storage_mb": frozen((problem.regions.storage_mb * share).astype(np.int64))})


@pytest.fixture(scope="module")
def answer(short: DataPlacement) -> mast_opt.Explanation:
    return mast_opt.explain(short, alternatives=0, time_limit_s=60)


def test_the_heaviest_datasets_conflict_with_all_storage(short: DataPlacement, answer: mast_opt.Explanation) -> None:
    assert answer.limits is not None
    assert set(answer.limits) == {"storage", "copies_min"}
    assert len(answer.limits["storage"]) == 4
    held = short.datasets.size_mb[list(answer.limits["copies_min"])]
    assert len(held) > ROUNDS
    assert held.sum() > short.usable_storage_mb.sum()
    assert any(f", together {short.usable_storage_mb.sum() / 1e6:.12g} TB" in words for words in answer.conflict)


def test_few_solves_show_that_many_are_needed(answer: mast_opt.Explanation) -> None:
    assert answer.limits is not None
    assert answer.proven > 0.8 * sum(map(len, answer.limits.values()))
    assert answer.solves < answer.proven + 30


def test_what_is_not_proven_is_said(short: DataPlacement, answer: mast_opt.Explanation) -> None:
    console = Console(file=io.StringIO(), width=200)
    show_explanation(console, short.name, replace(answer, minimal=False, proven=3))
    assert "limits 3 are needed" in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_rotated_plan_keeps_all_limits_but_the_other(short: DataPlacement) -> None:
    elastic = Elastic(relief(short))
    params = SolveParams()
    backend = backends.get("highs")
    rotation = ModelRotation(elastic, backend, params)
    kept = np.zeros(elastic.count, np.bool_)
    sorts = {one.name: int(first) for one, first in zip(elastic.relief.limits, elastic.first, strict=True)}
    storage, copies = sorts["storage"], sorts["copies_min"]
    light, heavy = (copies + int(at) for at in np.argsort(short.datasets.size_mb)[[0, -1]])
    kept[[*range(storage, storage + 4), light, heavy]] = True
    x = np.zeros(len(elastic.relief.mip.cost))
    for i in (light - copies, heavy - copies):  # both in the first region: all limits are kept
        block = next(block for block in elastic.relief.mip.columns if block.name == "place")
        x[block.ids[i, 0]] = 1.0
    x[block.ids[heavy - copies, 0]] = 0.0  # now the heavy one is nowhere
    assert rotation.without(light, x, heavy, kept)
    tight = replace(short, regions=replace(short.regions, storage_mb=frozen(np.zeros_like(short.regions.storage_mb))))
    none = Elastic(relief(tight))
    assert not ModelRotation(none, backend, params).without(light, np.zeros(len(x)), heavy, kept)
