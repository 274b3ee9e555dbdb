"""The .mod and the base formulation are the same program, entry by entry, by name.

Two differences are allowed, because they are GLPK's way of reading: a column that no row and no cost mentions
is left out, and the objective is listed once more as a free row.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from mast_opt.data_placement import DataPlacement
from mast_opt.data_placement.dat import printable, symbols
from mast_opt.data_placement.formulation import base
from tests.data_placement.glpk import stated, statement
from tests.data_placement.strategies import ODD_LABELS, problems

RELATIVE = 1e-12


def same(problem: DataPlacement, folder: Path) -> None:
    read, built = statement(problem, folder), stated(base(printable(problem)).mip)
    assert read.rows.keys() ^ built.rows.keys() == set()
    mentioned = {column for _, column in built.entries} | built.cost.keys()
    assert read.columns.keys() ^ {name for name in built.columns if name in mentioned} == set()
    for name, limits in read.rows.items():
        assert limits == pytest.approx(built.rows[name], rel=RELATIVE, abs=0), name
    for name, (lower, upper, kind) in read.columns.items():
        assert (lower, upper, kind) == built.columns[name], name
    assert read.entries == pytest.approx(built.entries, rel=RELATIVE, abs=0)
    assert read.cost == pytest.approx(built.cost, rel=RELATIVE, abs=0)
    assert read.constant == built.constant


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(problem=problems())
def test_the_formulation_is_the_mod(problem: DataPlacement, tmp_path: Path) -> None:
    same(problem, tmp_path)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(problem=problems(odd_labels=True))
def test_labels_of_any_kind_survive(problem: DataPlacement, tmp_path: Path) -> None:
    same(problem, tmp_path)


def test_symbols_are_distinct_and_keep_what_is_plain() -> None:
    labels = ("a b", "a_b", "a_b_1", "a-b", *ODD_LABELS)
    names = symbols(labels, reserved=["none"])
    assert len(set(names)) == len(labels)
    assert names[1:4] == labels[1:4]
    assert "none" not in names
