"""The .mod and the base formulation are the same program, entry by entry, by name."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings

from mast_opt.job_placement import JobPlacement
from mast_opt.job_placement.dat import printable, write_dat
from mast_opt.job_placement.formulation import base
from tests.job_placement.strategies import problems
from tests.mathprog import assert_same, stated, statement

MODEL = Path(__file__).parents[2] / "models" / "job_placement.mod"
QUICK = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


def same(problem: JobPlacement, folder: Path) -> None:
    data = folder / "instance.dat"
    write_dat(problem, data)
    assert_same(statement(MODEL, data), stated(base(printable(problem)).mip))


@settings(max_examples=150, deadline=None, suppress_health_check=QUICK)
@given(problem=problems())
def test_the_formulation_is_the_mod(problem: JobPlacement, tmp_path: Path) -> None:
    same(problem, tmp_path)


@settings(max_examples=20, deadline=None, suppress_health_check=QUICK)
@given(problem=problems(odd_labels=True))
def test_labels_of_any_kind_survive(problem: JobPlacement, tmp_path: Path) -> None:
    same(problem, tmp_path)
