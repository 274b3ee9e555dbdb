"""Within the gap: one definition, with what it allows a solver's own claim."""

from __future__ import annotations

import math

import pytest

from mast_opt.core.solve_result import relative_gap, within_gap


@pytest.mark.parametrize(
    ("objective", "bound", "gap", "asked", "claimed"),
    [
        (10.0, 9.0, 0.1, True, True),
        (10.0, 9.0, 0.0999, False, False),
        (10.0, 9.0, 0.0999995, False, True),  # a relative 1e-6 is allowed where a solver says so itself
        (10.0, 9.0, 0.099998, False, False),
        (-10.0, -11.0, 0.1, True, True),
        (10.0, 11.0, 0.0, True, True),  # a bound above the objective
        (0.0, 0.0, 0.0, True, True),
        (5e-10, 0.0, 1e-4, False, True),  # and an absolute 1e-9
        (2e-9, 0.0, 1e-4, False, False),
        (1.0, -math.inf, 1e6, False, False),
        (None, 0.0, 1.0, False, False),
        (1.0, None, 1.0, False, False),
    ],
)
def test_within_the_gap(objective: float | None, bound: float | None, gap: float, asked: bool, claimed: bool) -> None:
    assert within_gap(objective, bound, gap) is asked
    assert within_gap(objective, bound, gap, claimed=True) is claimed


def test_what_is_within_the_gap_has_no_larger_one() -> None:
    reached = relative_gap(3.0, 2.0)
    assert reached is not None
    assert within_gap(3.0, 2.0, reached)
    assert not within_gap(3.0, 2.0, math.nextafter(reached, 0))


def test_an_objective_near_0_is_compared_with_the_scale() -> None:
    assert not within_gap(1e-6, 0.0, 1e-4)
    assert within_gap(1e-6, 0.0, 1e-4, scale=2.0)
    assert not within_gap(3e-4, 0.0, 1e-4, scale=2.0)
