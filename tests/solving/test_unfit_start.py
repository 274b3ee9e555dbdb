"""A start that breaks a limit: a heuristic begins without it, and says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.problems.data_placement.verification.verifier import verify
from mast_opt.problems.registry import kind_named
from tests.data_placement.workshop import PLAN, PROBLEM
from tests.narrowing import some


def test_a_start_that_breaks_a_link_changes_nothing() -> None:
    links = some(PROBLEM.links)
    narrow = PROBLEM.with_columns({"links.capacity_mb_per_day": np.minimum(links.capacity_mb_per_day, 300_000)})
    assert verify(narrow, PLAN).violations[0].name.startswith("link")
    without, begun = (
        mast_opt.solve(narrow, "tetris", start=start, iterations=3, threads=1, seed=1) for start in (None, PLAN)
    )
    assert begun.objective == without.objective
    assert "the start breaks link" in begun.message
    assert "so the search began without it" in begun.message


@pytest.mark.parametrize(
    ("kind", "solver", "sizes"),
    [
        ("task-reassignment", "twine", {"processes": 8, "machines": 3}),
        ("server-assignment", "ras", {"servers": 12}),
    ],
)
def test_other_heuristics_begin_without_it_too(kind: str, solver: str, sizes: dict[str, int]) -> None:
    problem: Any = mast_opt.generate(kind, None, **sizes)
    broken = some(mast_opt.solve(problem, solver, iterations=1, threads=1, seed=1).plan)
    for column in vars(broken).values():
        if isinstance(column, np.ndarray):
            column.flags.writeable = True
            column[:] = column[0]
    if kind_named(kind).verification.verify(problem, broken).ok:
        pytest.fail("the start was to break a limit")
    without, begun = (
        mast_opt.solve(problem, solver, start=start, iterations=1, threads=1, seed=1) for start in (None, broken)
    )
    assert begun.objective == without.objective
    assert "the search began without it" in begun.message
