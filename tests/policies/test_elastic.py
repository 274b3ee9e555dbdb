"""Goodput, sizes that pack, and the heuristic for CPUs: known answers without a program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
from mast_opt.live.policies import pollux, synergy, themis
from mast_opt.live.policies.goodput import Goodput
from mast_opt.live.policies.node_sizes import packed, sizes, spanned
from tests.policies.inputs import FAIR, JOB, POINTS, RATES


@pytest.mark.parametrize(
    ("nodes", "replicas", "speedup"),
    [
        (1, 2, 1.728339),
        (1, 3, 1.891620),
        (1, 4, 1.981932),
        (1, 8, 2.113881),
        (2, 2, 1.702707),
        (2, 4, 1.934834),
        (2, 8, 2.025472),
        (4, 8, 2.025472),
    ],
)
def test_goodput_is_that_of_the_authors_functions(nodes: int, replicas: int, speedup: float) -> None:
    assert JOB.best(1, 1) == pytest.approx(150.936276, abs=1e-6)
    assert JOB.best(nodes, replicas) / JOB.best(1, 1) == pytest.approx(speedup, abs=1e-6)


def test_efficiency_falls_with_the_batch() -> None:
    assert JOB.efficiency(np.array([128, 256, 512, 1280])) == pytest.approx([1, 0.577902, 0.313363, 0.132038], abs=1e-6)


def test_accumulating_steps_never_hurts_and_helps_where_exchanging_is_slow() -> None:
    slow = Goodput(0.1, 0.001, (2.0, 9.0), (0.0, 0.0), 1.0, 0.01, 10.0, 64, 4096, 16, 64)
    often, seldom = slow.best(2, 4), replace(slow, accumulates=True).best(2, 4)
    assert seldom > often > 0


def test_a_job_without_a_batch_that_fits_has_no_goodput() -> None:
    assert Goodput(0.1, 0.001, (0, 0), (0, 0), 1.0, 1, 1, 64, 100, 60, 60).best(1, 2) == 0
    with pytest.raises(UsageError, match=r"jobs\[0\] has no batch for one GPU"):
        pollux.speedups([Goodput(0.1, 0.001, (0, 0), (0, 0), 1.0, 1, 1, 64, 100, 60, 60)], 1, 2)
    assert Goodput(0.1, 0.001, (0, 0), (0, 0), 1.0, 1, 1, 64, 64).best(1, 1) == pytest.approx(64 / 0.164)
    with pytest.raises(UsageError, match="1 ≤ least ≤ most"):
        Goodput(0.1, 0.001, (0, 0), (0, 0), 1.0, 1, 1, 64, 100, 60, 50)
    with pytest.raises(UsageError, match="batches go from 64 to 32"):
        Goodput(0.1, 0.001, (0, 0), (0, 0), 1.0, 1, 1, 64, 32)


def test_sizes_divide_one_another() -> None:
    assert sizes(2, 8).tolist() == [1, 2, 4, 8, 16]
    assert sizes(3, 6).tolist() == [1, 3, 6, 12, 18]
    assert sizes(4, 1).tolist() == [1, 2, 3, 4]
    assert sizes(64, 8, most=24).tolist() == [1, 2, 4, 8, 16, 24]
    assert spanned([1, 8, 16, 24], 8).tolist() == [1, 1, 2, 3]


@pytest.mark.parametrize(("nodes", "each"), [(3, 8), (4, 6), (5, 4)])
def test_sizes_pack_wherever_they_fit_in_all(nodes: int, each: int) -> None:
    rng = np.random.default_rng(nodes)
    able = sizes(nodes, each)
    for _ in range(30):
        wanted: list[int] = []
        most = rng.integers(1, nodes * each + 1)  # ascending sizes pack as well where every GPU is held
        while (fits := able[able <= most - sum(wanted)]).size and len(wanted) < 20:
            wanted.append(int(rng.choice(fits)))
        held = packed(wanted, nodes, each)
        assert held.sum(axis=1).tolist() == wanted
        assert (held.sum(axis=0) <= each).all()
        assert ((held > 0).sum(axis=1) == spanned(wanted, each)).all()


def test_what_does_not_pack_is_refused() -> None:
    with pytest.raises(UsageError, match=r"size\[1\] is 3; expected one of \[0, 1, 2, 4, 8\]"):
        packed([1, 3], 2, 4)
    with pytest.raises(UsageError, match="need 12 GPUs; expected at most 8"):
        packed([8, 4], 2, 4)


def test_a_restart_takes_its_part_of_the_speedup() -> None:
    assert pollux.restart_factor([300, 30, 10], [1, 0, 2], 30) == pytest.approx([270 / 330, 0.5, 0])


@pytest.mark.parametrize(("copies", "proportional", "tuned"), [(1, 1.5, 1.6), (4, 6.0, 6.6)])
def test_tuned_points_are_between_proportional_and_optimal(copies: int, proportional: float, tuned: float) -> None:
    rate, fair, totals = np.repeat(RATES, copies, axis=0), [FAIR] * 2 * copies, [6 * copies]
    assert synergy.proportional(rate, fair) == pytest.approx(proportional)
    point = synergy.tune(rate, POINTS, fair, totals)
    assert rate[np.arange(2 * copies), point].sum() == pytest.approx(tuned)
    assert POINTS[point].sum() <= totals[0]


def test_fair_points_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError, match="fair points need more than there is"):
        synergy.tune(RATES, POINTS, [FAIR, FAIR], [5])
    with pytest.raises(UsageError, match="position in points"):
        synergy.tune(RATES, POINTS, [FAIR, 9], [6])


def test_themis_bids_by_finish_time() -> None:
    value = themis.bids([0, 50], [100, 100], [50, 100], np.array([[0, 1, 2], [0, 1, 1.5]]))
    assert value == pytest.approx(np.array([[0, 0.5, 1.0], [0, 100 / 150, 100 / (50 + 100 / 1.5)]]))
    assert themis.worst_off([1.0, 3.0, 2.0, 1.5, 1.2], 0.8).tolist() == [False, True, False, False, False]
    assert themis.worst_off([1.0, 3.0, 2.0], 0.3).tolist() == [True, True, True]
