"""The .mod and the base formulation are the same program, entry by entry, by name.

Two differences are allowed, because they are GLPK's way of reading: a column that no row and no cost mentions
is left out, and the objective is listed once more as a free row.
"""

from __future__ import annotations

from pathlib import Path

from hypothesis import given

from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.data_placement.tables.mathprog import printable
from mast_opt.problems.kind.mathprog import symbols
from tests.data_placement.glpk import statement
from tests.data_placement.strategies import ODD_LABELS, problems
from tests.examples import examples
from tests.mathprog import assert_same, stated


@examples(250)
@given(problem=problems(regions=4, datasets=4, workloads=5))
def test_the_formulation_is_the_mod(problem: DataPlacement, tmp_path: Path) -> None:
    assert_same(statement(problem, tmp_path), stated(base(printable(problem)).mip))


@examples(60)
@given(problem=problems(regions=3, datasets=3, workloads=3, limited=True))
def test_limits_of_the_formulation_are_those_of_the_mod(problem: DataPlacement, tmp_path: Path) -> None:
    assert_same(statement(problem, tmp_path), stated(base(printable(problem)).mip))


@examples(30)
@given(problem=problems(odd_labels=True))
def test_labels_of_any_kind_survive(problem: DataPlacement, tmp_path: Path) -> None:
    assert_same(statement(problem, tmp_path), stated(base(printable(problem)).mip))


def test_symbols_are_distinct_and_keep_what_is_plain() -> None:
    labels = ("a b", "a_b", "a_b_1", "a-b", *ODD_LABELS)
    names = symbols(labels, reserved=["none"])
    assert len(set(names)) == len(labels)
    assert names[1:4] == labels[1:4]
    assert "none" not in names
