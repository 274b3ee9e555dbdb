"""AlloX and Gandiva: known answers, and agreement with brute force."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import UsageError
from mast_opt.live.policies import allox, gandiva

TWO_MACHINES = [[20, 10], [30, 10], [8, 6]]
STEPS = np.array([300, 500, 1000, 500])
RATES = np.array([[2, 1, 0.5], [3, 2, 1], [4, 3, 2], [1, 1, 1]])
GAVEL = (STEPS[:, None] / RATES)[:, [0, 0, 1, 2, 2, 2]]
"""[job, machine] seconds of Gavel's test of AlloX, on two v100, one p100, three k80."""


def least_total(time: FloatArray) -> float:
    """Σ of completion times by trying every machine and every order."""
    jobs, machines = time.shape
    best = np.inf
    for choice in product(range(machines), repeat=jobs):
        total = 0.0
        for machine in range(machines):
            here = [job for job in range(jobs) if choice[job] == machine]
            total += min(np.cumsum([time[job, machine] for job in order]).sum() for order in permutations(here))
        best = min(best, total)
    return best


def test_allox_has_the_known_totals() -> None:
    first = allox.solve(TWO_MACHINES)
    assert first.total_s == pytest.approx(38)
    assert first.machine.tolist() == [1, 1, 0]
    assert sorted(first.order(1).tolist()) == [0, 1]
    second = allox.solve(GAVEL)
    assert second.total_s == pytest.approx(1150)
    assert second.completion_s == pytest.approx([150, 500 / 3, 1000 / 3, 500])
    assert set(second.machine[:2].tolist()) == {0, 1}
    assert second.machine[2] == 2
    assert second.machine[3] >= 3


def test_allox_gives_a_new_job_the_machine_that_is_free() -> None:
    new = allox.solve([[500 / rate] for rate in (2,)], waited_s=[40])
    assert new.machine.tolist() == [0]
    assert new.total_s == pytest.approx(290)


def test_allox_agrees_with_brute_force() -> None:
    rng = np.random.default_rng(1)
    for _ in range(12):
        time = rng.integers(1, 20, (5, 2)).astype(np.float64)
        found = allox.solve(time)
        assert found.total_s == pytest.approx(least_total(time))
        assert np.nansum(found.completion_s) == pytest.approx(found.total_s)


def test_allox_puts_all_jobs_on_the_one_fast_machine() -> None:
    """The places that are tried at first are too few here."""
    time = np.full((30, 10), 1e6)
    time[:, 3] = 1.0
    found = allox.solve(time)
    assert (found.machine == 3).all()
    assert found.total_s == pytest.approx(30 * 31 / 2)


def test_allox_finds_more_places_where_mean_speeds_mislead() -> None:
    """One job makes the second machine look fast; the other 19 belong on the first."""
    time = np.column_stack([np.ones(20), np.full(20, 1000.0)])
    time[0, 1] = 0.001
    found = allox.solve(time)
    assert found.machine.tolist() == [1] + [0] * 19
    assert found.total_s == pytest.approx(19 * 20 / 2 + 0.001)


def test_allox_leaves_machines_alone_that_cannot_run_a_job() -> None:
    time = np.array([[np.inf, 5.0], [1.0, np.inf], [np.inf, 7.0]])
    found = allox.solve(time)
    assert found.machine.tolist() == [1, 0, 1]
    assert found.total_s == pytest.approx(1 + 5 + 12)


def test_allox_takes_jobs_of_users_with_least_progress() -> None:
    found = allox.solve(np.ones((4, 2)), progress=[3, 1, 2, 0], alpha=0.5, waited_s=[5, 6, 7, 8])
    assert (found.machine >= 0).tolist() == [False, True, False, True]
    assert np.isnan(found.completion_s[[0, 2]]).all()
    assert found.total_s == pytest.approx(1 + 1 + 6 + 8)


def four_jobs() -> FloatArray:
    worth = np.zeros((4, 4))
    for (one, other), value in {(0, 1): 1.6, (2, 3): 1.1, (0, 2): 1.5, (1, 3): 1.5, (0, 3): 1.2, (1, 2): 1.2}.items():
        worth[one, other] = value
    return worth


def test_gandiva_matches_better_than_the_best_pair_first() -> None:
    found = gandiva.solve(four_jobs(), 2)
    assert found.pairs == ((0, 2), (1, 3))
    assert found.worth == pytest.approx(3.0)
    assert gandiva.greedy(four_jobs(), 2).pairs == ((0, 1), (2, 3))
    assert gandiva.greedy(four_jobs(), 2).worth == pytest.approx(2.7)


def test_gandiva_unpacks_a_pair_that_is_worth_less_than_taking_turns() -> None:
    good = gandiva.worth([2, 3], [[0, 2], [3, 0]])
    bad = gandiva.worth([2, 3], [[0, 1], [1, 0]])
    assert good[0, 1] == pytest.approx(2.0)
    assert bad[0, 1] == pytest.approx(5 / 6)
    assert np.diag(gandiva.worth([2, 3], [[2, 2], [3, 3]])).tolist() == [0, 0]
    assert gandiva.solve(bad, 1).worth == pytest.approx(gandiva.TURNS)


def best_packing(worth: FloatArray, gpus: int) -> float:
    """The highest worth by trying every choice of a GPU for each job, or none."""
    value = np.maximum(worth, worth.T)
    best = 0.0
    for choice in product(range(gpus + 1), repeat=len(worth)):
        total = 0.0
        for gpu in range(gpus):
            here = [job for job in range(len(worth)) if choice[job] == gpu]
            if len(here) > 2:
                break
            total += max(1.0, value[here[0], here[1]]) if len(here) == 2 else float(len(here))
        else:
            best = max(best, total)
    return best


@pytest.mark.parametrize(("jobs", "gpus"), [(4, 1), (5, 2), (5, 3), (3, 3), (2, 3)])
def test_gandiva_agrees_with_brute_force(jobs: int, gpus: int) -> None:
    rng = np.random.default_rng(jobs * gpus)
    for _ in range(4):
        worth = rng.uniform(0.5, 2.0, (jobs, jobs))
        found = gandiva.solve(worth, gpus)
        assert found.worth == pytest.approx(best_packing(worth, gpus))
        seated = [job for pair in found.pairs for job in pair] + list(found.alone)
        assert len(set(seated)) == len(seated)
        assert len(found.pairs) + len(found.alone) <= gpus
        assert found.worth >= gandiva.greedy(worth, gpus).worth - 1e-9


def test_wrong_input_is_named() -> None:
    with pytest.raises(UsageError, match=r"processing_s\[0\] is infinite everywhere"):
        allox.solve([[np.inf, np.inf]])
    with pytest.raises(UsageError, match="progress is not given"):
        allox.solve([[1]], alpha=0.5)
    with pytest.raises(UsageError, match="expected a number above 0"):
        allox.solve([[1]], alpha=0)
    with pytest.raises(UsageError, match="shape"):
        gandiva.worth([1, 2], [[0, 1, 1], [1, 0, 1]])
    with pytest.raises(UsageError, match="gpus is 0"):
        gandiva.solve(four_jobs(), 0)
