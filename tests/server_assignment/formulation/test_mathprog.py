"""The .mod and the base formulation are the same program, entry by entry, by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

import mast_opt
from mast_opt.problems.kind.mathprog import with_symbols
from mast_opt.problems.server_assignment import ServerAssignment
from mast_opt.problems.server_assignment.formulation.formulation import base
from mast_opt.problems.server_assignment.tables.mathprog import AXES
from tests.examples import examples
from tests.mathprog import assert_same, stated
from tests.server_assignment.strategies import problems
from tests.server_assignment.support import statement


@examples(100)
@given(problem=problems())
def test_the_formulation_is_the_mod(problem: ServerAssignment, tmp_path: Path) -> None:
    assert_same(statement(problem, tmp_path), stated(base(with_symbols(problem, AXES)).mip))


@examples(30)
@given(problem=problems(odd_labels=True))
def test_labels_of_any_kind_survive(problem: ServerAssignment, tmp_path: Path) -> None:
    assert_same(statement(problem, tmp_path), stated(base(with_symbols(problem, AXES)).mip))


@pytest.mark.parametrize("family", ["standard", "crowded", "features"])
def test_generated_instances(family: str, tmp_path: Path) -> None:
    problem = mast_opt.generate("server-assignment", family, servers=80, reservations=6, datacenters=2, seed=1)
    assert_same(statement(problem, tmp_path), stated(base(with_symbols(problem, AXES)).mip))
