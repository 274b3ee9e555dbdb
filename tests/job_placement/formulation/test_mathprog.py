"""The .mod and the base formulation are the same program, entry by entry, by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.entities import Clusters, Racks, Servers
from mast_opt.problems.job_placement.formulation.formulation import base
from mast_opt.problems.job_placement.formulation.size import size
from mast_opt.problems.job_placement.generate.blank import GeneratedFleet, Pending, Running, assemble
from mast_opt.problems.job_placement.tables.mathprog import symbol_axes, write_dat
from mast_opt.problems.kind.mathprog import with_symbols
from tests.job_placement.strategies import problems
from tests.mathprog import assert_same, stated, statement

MODEL = Path(__file__).parents[3] / "models" / "job_placement.mod"
QUICK = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


def same(problem: JobPlacement, folder: Path) -> None:
    data = folder / "instance.dat"
    write_dat(problem, data)
    assert_same(statement(MODEL, data), stated(base(with_symbols(problem, symbol_axes(problem))).mip))


@settings(max_examples=150, deadline=None, suppress_health_check=QUICK)
@given(problem=problems())
def test_the_formulation_is_the_mod(problem: JobPlacement, tmp_path: Path) -> None:
    same(problem, tmp_path)


@settings(max_examples=100, deadline=None, suppress_health_check=QUICK)
@given(problem=problems(moves=True))
def test_the_formulation_with_moves_is_the_mod(problem: JobPlacement, tmp_path: Path) -> None:
    same(problem, tmp_path)


@settings(max_examples=40, deadline=None, suppress_health_check=QUICK)
@given(problem=problems(moves=True, parts=True))
def test_the_formulation_with_parts_is_the_mod(problem: JobPlacement, tmp_path: Path) -> None:
    same(problem, tmp_path)


@settings(max_examples=20, deadline=None, suppress_health_check=QUICK)
@given(problem=problems(odd_labels=True, moves=True))
def test_labels_of_any_kind_survive(problem: JobPlacement, tmp_path: Path) -> None:
    same(problem, tmp_path)


@pytest.mark.parametrize("mgpu", [1000, 500])
def test_the_size_counts_the_gpus_of_servers_on_which_a_fraction_runs(mgpu: int) -> None:
    """Two equal servers, half a GPU held on one of them; a job of each tier waits."""
    fleet = GeneratedFleet(
        regions=("r",),
        gpu_types=("a100",),
        clusters=Clusters(("c",), np.array([0])),
        racks=Racks(("b",), np.array([0])),
        servers=Servers(("s1", "s2"), np.array([0, 0]), np.array([0, 0]), np.array([[4000, 8000, 64]] * 2)),
    )
    none = np.zeros(2, np.int64)
    waiting = Pending(np.arange(2), none + 1, none + mgpu, none, none, none + 1000, (np.arange(2), none))
    held = Running([1], [False], [0], [(0, 0, 1, 500, 0, 0)])
    assert beyond(assemble("half", fleet, held, waiting)) == beyond(assemble("empty", fleet, Running(), waiting))


def beyond(problem: JobPlacement) -> tuple[int, int, int]:
    """By how many rows, columns and entries the size is too large."""
    said, mip = size(problem), base(problem).mip
    return said.rows - mip.shape[0], said.columns - mip.shape[1], said.entries - len(mip.value)
