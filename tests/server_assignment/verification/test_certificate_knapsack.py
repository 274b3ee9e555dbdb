"""A reservation's least cost over whole servers: search, checker and enumeration say the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from mast_opt.problems.server_assignment.ras.lagrangian.integer_bound import Knapsack
from mast_opt.problems.server_assignment.ras.lagrangian.integer_subproblem import Claim
from mast_opt.problems.server_assignment.ras.lagrangian.relaxation import never_stop
from mast_opt.problems.server_assignment.verification.certificate_bound import Choices
from tests.examples import examples


@st.composite
def reservations(draw: st.DrawFn) -> tuple[np.ndarray, int, Claim]:
    """(base, unit, claim): up to four switchboards with up to eight amounts each, some that no servers add up to."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    boards, cells, unit = draw(st.integers(0, 4)), draw(st.integers(1, 8)), draw(st.sampled_from([1, 20, 1000]))
    base = np.round(rng.uniform(-3, 6, (boards, cells)), 2)
    base[rng.random((boards, cells)) < 0.3] = np.inf
    base[:, 0] = 0.0
    asked = draw(st.integers(1, max(boards, 1) * cells * unit))
    buffer, shortfall = (draw(st.sampled_from(prices)) / unit for prices in ((0.0, 0.1, 1.0), (0.0, 0.5, 20.0)))
    return base, unit, Claim(asked, buffer, shortfall)


def enumerated(base: np.ndarray, unit: int, claim: Claim) -> float:
    """The least cost over every combination of amounts."""
    best = np.inf
    for held in itertools.product(range(base.shape[1]), repeat=len(base)):
        level = max(held, default=0) * unit
        short = max(claim.asked + level - sum(held) * unit, 0)
        cost = sum(row[amount] for row, amount in zip(base, held, strict=True))
        best = min(best, cost + claim.buffer * level + claim.shortfall * short)
    return float(best)


@examples(150)
@given(reservation=reservations(), beyond=st.floats(-2, 10))
def test_both_halves_find_the_least_of_all_combinations(
    reservation: tuple[np.ndarray, int, Claim], beyond: float
) -> None:
    base, unit, claim = reservation
    best = enumerated(base, unit, claim)
    target = best + beyond
    event(f"within the target: {beyond > 0}")
    found, _ = Knapsack.of(base, unit, claim, 40).least_cost(target, np.inf, never_stop)
    checked = Choices(base, unit, claim.asked, claim.buffer, claim.shortfall).least(target)
    assert found == pytest.approx(min(best, target), abs=1e-8)
    assert checked == pytest.approx(min(best, target), abs=1e-8)


@examples(50)
@given(reservation=reservations(), work=st.integers(0, 200))
def test_work_that_ends_early_claims_too_little(reservation: tuple[np.ndarray, int, Claim], work: int) -> None:
    base, unit, claim = reservation
    best = enumerated(base, unit, claim)
    found, steps = Knapsack.of(base, unit, claim, 40).least_cost(best + 1, work, never_stop)
    event(f"enough work: {steps <= work}")
    assert found <= best + 1e-8
    assert steps > work or found == pytest.approx(best, abs=1e-8)
