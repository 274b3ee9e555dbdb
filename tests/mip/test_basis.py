"""Bases carried to the next program: by blocks and labels, and what a solver does with one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import AT_LOWER, AT_UPPER, BASIC, Basis, SolveParams, Status
from mast_opt.problems import backends
from mast_opt.problems.mip import Mip, MipBuilder
from mast_opt.problems.mip.basis import carried


def knapsacks(names: str, weight: list[float], least: str = "") -> Mip:
    """Items that share one bag, continuous; some are taken by half at least, and the level is free."""
    m = MipBuilder("bag")
    take = m.columns("take", [tuple(names)], upper=1.0)
    m.rows("weight", [], upper=4.0).add(0, take, weight)
    if least:
        at = np.array([names.index(name) for name in least])
        m.rows("half", [tuple(names)], [at], lower=0.5).add(np.arange(len(at)), take[at])
    m.term("worth", take, -np.arange(1.0, len(names) + 1))
    return m.build({"worth": 1.0})


def test_members_keep_their_status_by_label_and_new_ones_are_at_the_same_vertex() -> None:
    old, new = knapsacks("abc", [1.0, 2.0, 3.0], "ac"), knapsacks("xcba", [1.0, 3.0, 2.0, 1.0], "abx")
    basis = Basis(np.array([AT_LOWER, BASIC, AT_UPPER], np.int8), np.array([AT_UPPER, AT_LOWER, BASIC], np.int8))
    found = carried(basis, old, new)
    assert found.columns.tolist() == [AT_LOWER, AT_UPPER, BASIC, AT_LOWER]
    assert found.rows.tolist() == [AT_UPPER, AT_LOWER, BASIC, BASIC]
    same = carried(basis, old, old)
    assert (same.columns.tolist(), same.rows.tolist()) == (basis.columns.tolist(), basis.rows.tolist())


def test_blocks_of_one_name_with_other_axes_are_different() -> None:
    old = knapsacks("ab", [1.0, 2.0])
    m = MipBuilder("grid")
    m.columns("take", [("a", "b"), ("p", "q")])
    new = m.build({})
    statuses = np.full(2, BASIC, np.int8)
    assert carried(Basis(statuses, np.zeros(1, np.int8)), old, new).columns.tolist() == [AT_LOWER] * 4


@pytest.mark.parametrize(("half", "objective"), [("", -5.25), ("a", -4.5)])
def test_a_program_begins_where_another_one_ended(half: str, objective: float) -> None:
    highs = backends.get("highs")
    first, second = knapsacks("abc", [4.0, 2.0, 1.0]), knapsacks("abc", [4.0, 2.0, 1.0], half)
    found = highs.solve(first, SolveParams()).basis
    assert found is not None
    assert (found.columns.tolist(), found.rows.tolist()) == ([BASIC, AT_UPPER, AT_UPPER], [AT_UPPER])
    begun = highs.solve(second, SolveParams(basis=carried(found, first, second)))
    assert begun.status is Status.OPTIMAL
    assert begun.objective == pytest.approx(objective)


def test_a_basis_that_is_no_vertex_is_completed() -> None:
    mip = knapsacks("abc", [1.0, 2.0, 3.0], "ab")
    for status in (AT_LOWER, BASIC, AT_UPPER):
        basis = Basis(np.full(3, status, np.int8), np.full(3, status, np.int8))
        found = backends.get("highs").solve(mip, SolveParams(basis=basis))
        assert found.objective == pytest.approx(backends.get("highs").solve(mip, SolveParams()).objective)


def test_a_basis_of_another_program_is_an_error_and_whole_columns_have_none() -> None:
    mip = knapsacks("abc", [1.0, 2.0, 3.0])
    with pytest.raises(UsageError, match="basis has 1 rows and 2 columns; expected 1 and 3"):
        backends.get("highs").solve(mip, SolveParams(basis=Basis(np.zeros(2, np.int8), np.zeros(1, np.int8))))
    whole = replace(mip, integral=np.ones(3, np.bool_))
    assert backends.get("highs").solve(whole, SolveParams()).basis is None
