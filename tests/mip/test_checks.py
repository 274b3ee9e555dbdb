"""A program with a wrong array is refused when it is made, before any solver sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import UsageError
from mast_opt.problems.mip import Mip, Term
from mast_opt.problems.registry import kind_of
from tests.backends.programs import knapsack


def changed(array: Any, at: int, value: float) -> Any:
    copy = np.array(array)
    copy[at] = value
    return copy


@pytest.mark.parametrize("name", ["cost", "col_lower", "col_upper", "integral", "row_lower", "row_upper", "value"])
@pytest.mark.parametrize("spoil", [list, lambda array: array[:, None], lambda array: array[:0], lambda array: "x"])
def test_arrays_of_another_shape_or_type(name: str, spoil: Any) -> None:
    mip, _ = knapsack()
    with pytest.raises(UsageError, match="of program"):
        replace(mip, **{name: spoil(getattr(mip, name))})


@pytest.mark.parametrize("position", [-1, 10**6, 2**31 - 1])
def test_positions_that_do_not_exist(position: int) -> None:
    mip, _ = knapsack()
    with pytest.raises(UsageError, match="index of program"):
        replace(mip, index=changed(mip.index, 0, position))
    with pytest.raises(UsageError, match="row_start of program"):
        replace(mip, row_start=changed(mip.row_start, 1, position))
    with pytest.raises(UsageError, match="columns of the term 'more'"):
        replace(mip, terms={"more": Term(np.array([position], np.int64), np.ones(1))})


@pytest.mark.parametrize("name", ["cost", "value", "col_lower", "col_upper", "row_lower", "row_upper"])
def test_numbers_that_are_none(name: str) -> None:
    mip, _ = knapsack()
    with pytest.raises(UsageError, match=f"{name} of program"):
        replace(mip, **{name: changed(getattr(mip, name), 0, np.nan)})


def test_limits_that_cross_are_allowed() -> None:
    mip, _ = knapsack()
    crossed = replace(mip, col_lower=changed(mip.col_lower, 0, 5.0), col_upper=changed(mip.col_upper, 0, 4.0))
    assert isinstance(crossed, Mip)


def test_unknown_terms_are_refused_with_those_that_there_are() -> None:
    problem = mast_opt.generate("data-placement", datasets=3, workloads=3, regions=2)
    mip = kind_of(problem).formulate(problem).mip
    calls: tuple[Callable[[], Mip], ...] = (
        lambda: mip.minimise({"storag": 1.0}),
        lambda: mip.limit_term("storag", 1.0),
    )
    for call in calls:
        with pytest.raises(UsageError, match=r"no term called .storag.; expected one of: .*storage"):
            call()


@pytest.mark.parametrize("weight", [np.nan, np.inf])
def test_an_objective_that_is_not_finite_is_refused(weight: float) -> None:
    mip = replace(knapsack()[0], terms={"all": Term(np.arange(1), np.ones(1), 2.0)})
    with pytest.raises(UsageError, match="cost of program"):
        mip.minimise({"all": weight})
    with pytest.raises(UsageError, match="offset of program"):
        replace(mip, terms={"all": Term(np.zeros(0, np.int64), np.zeros(0), weight)}).minimise({"all": 1.0})
    with pytest.raises(UsageError, match="col_lower of program"):
        mip.fix(np.arange(1), np.array([np.nan]))


def test_another_objective_does_not_check_the_matrix_again(monkeypatch: pytest.MonkeyPatch) -> None:
    mip = replace(knapsack()[0], terms={"all": Term(np.arange(1), np.ones(1), 2.0)})
    monkeypatch.setattr("mast_opt.problems.mip.program.check", lambda mip: pytest.fail("checked again"))
    derived = mip.minimise({"all": 3.0})
    assert (derived.cost[0], derived.offset) == (3.0, 6.0)
    assert derived.value is mip.value
    assert mip.cost[0] != 3.0
    assert derived.fix(np.arange(1), np.zeros(1)).col_upper[0] == 0.0
