"""Use of tenants: now, and in the mean of seven days, against the sum over single changes."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.live.loop.tenants import DAY_MS, DAYS, Tenants


def test_credit_is_what_was_left_of_the_quota() -> None:
    tenants = Tenants()
    assert tenants.credit_milli("search", 0, DAY_MS) == 0
    assert tenants.credit_milli("ads", 10, DAY_MS) == 1000
    tenants.change("ads", 10, 0)
    assert tenants.credit_milli("ads", 10, DAY_MS) == 0
    tenants.change("ads", -5, DAY_MS)
    assert tenants.credit_milli("ads", 10, 2 * DAY_MS) == 250
    tenants.change("ads", 25, 2 * DAY_MS)
    assert tenants.credit_milli("ads", 10, 4 * DAY_MS) < 0


@pytest.mark.parametrize("seed", range(5))
def test_mean_of_seven_days_up_to_the_day(seed: int) -> None:
    """A window begins at the first change of a day, so that the mean may lack up to one day of the seven."""
    rng = np.random.default_rng(seed)
    tenants, quota, use = Tenants(), 1000, 0
    times = np.sort(rng.integers(0, 30 * DAY_MS, 2000))
    at = np.zeros(len(times), np.int64)
    for number, now in enumerate(times.tolist()):
        change = int(rng.integers(-use, 500 - use + 1))
        tenants.change("ads", change, now)
        use += change
        at[number] = use
    now = 30 * DAY_MS
    edges = np.append(times, now)
    low, high = (int((np.diff(np.maximum(edges, now - days * DAY_MS)) * at).sum()) for days in (DAYS - 1.1, DAYS))
    credit, span = tenants.credit_milli("ads", quota, now), quota * DAYS * DAY_MS
    assert 1000 * (span - high) // span <= credit <= 1000 * (span - low) // span + 1


def test_mean_with_a_half_life() -> None:
    """10 GPUs until two days ago, and 4 in the last day: with a half-life of a day, 10 · 1/4 · 1/2 + 4 · 1/2 and less
    for what is before the first day."""
    tenants = Tenants()
    assert tenants.mean_mgpu("ads", DAY_MS, DAY_MS) == 0
    tenants.change("ads", 10, 0)
    tenants.change("ads", -10, DAY_MS)
    tenants.change("ads", 4, 2 * DAY_MS)
    assert tenants.mean_mgpu("ads", DAY_MS, 3 * DAY_MS) == pytest.approx(10 * (1 / 4 - 1 / 8) + 4 * (1 - 1 / 2))
