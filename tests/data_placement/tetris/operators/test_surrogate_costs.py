"""Changes that are proposed where the data is, and windows of what is changed for a while."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.core.jit import compiled
from mast_opt.problems.data_placement.problem import Ints
from mast_opt.problems.data_placement.tetris.annealing.kernel import anneal, annealing_workspace, proposals_of
from mast_opt.problems.data_placement.tetris.annealing.params import OperatorParams
from mast_opt.problems.data_placement.tetris.decomposition import Subproblem, decompose, undivided
from mast_opt.problems.data_placement.tetris.initial_solution import first_state
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays, arrays_of
from mast_opt.problems.data_placement.tetris.operators.candidate_lists import (
    ActiveWindow,
    draw_index,
    draw_window,
    sample_region_by_surrogate,
    sample_swap_partner,
)
from mast_opt.problems.data_placement.tetris.operators.workspace import SurrogateBuffers
from mast_opt.problems.data_placement.tetris.state import TetrisState, cost
from tests.data_placement.support import made

ALL = ActiveWindow(0.0, 0.0, 1.0)
PARAMS = OperatorParams()


@compiled
def regions_for(
    a: TetrisArrays, s: TetrisState, part: Subproblem, option: Ints, surrogate: SurrogateBuffers, temperature: float
) -> Ints:
    """[W] a region guessed for each workload on an option of its own."""
    guessed = np.empty(len(option), np.int64)
    for w in range(len(option)):
        guessed[w] = sample_region_by_surrogate(a, s, part, w, option[w], temperature, surrogate)
    return guessed


@compiled
def twins_for(
    a: TetrisArrays,
    s: TetrisState,
    part: Subproblem,
    window: ActiveWindow,
    surrogate: SurrogateBuffers,
    temperature: float,
) -> Ints:
    """[W] a partner guessed for each workload."""
    guessed = np.empty(len(s.region), np.int64)
    for w in range(len(guessed)):
        guessed[w] = sample_swap_partner(a, s, part, window, w, 16, temperature, surrogate)
    return guessed


@compiled
def drawn(random: NDArray[np.uint64], share: float, windows: int, draws: int, n: int) -> tuple[Ints, FloatArray]:
    """[windows, draws] indices, and where the windows of partners begin."""
    taken, begins = np.empty((windows, draws), np.int64), np.empty(windows)
    for number in range(windows):
        window = draw_window(random, share)
        begins[number] = window.partners
        for draw in range(draws):
            taken[number, draw] = draw_index(random, window.begin, window.share, n)
    return taken, begins


@pytest.fixture(scope="module")
def begun() -> tuple[TetrisArrays, TetrisState]:
    problem = made("standard", datasets=200, workloads=300, regions=8)
    a = arrays_of(problem, dict(problem.objective.weights))
    return a, first_state(a, False, 1)


def parts_of(a: TetrisArrays, s: TetrisState, number: int) -> list[Subproblem]:
    return decompose(a, s, np.random.default_rng(1), [np.array([seed], np.uint64) for seed in range(1, number + 1)])


def local_reads(a: TetrisArrays, s: TetrisState) -> np.ndarray:
    """[W, R] what is read of data that the region holds."""
    reads = np.repeat(np.arange(len(s.region)), np.diff(a.read_start))
    saved = np.zeros((len(s.region), s.place.shape[1]))
    np.add.at(saved, reads, a.read_volume[:, None] * s.place[a.read_dataset])
    return saved


def test_without_noise_the_region_is_the_one_that_holds_most_of_what_is_read(
    begun: tuple[TetrisArrays, TetrisState],
) -> None:
    a, s = begun
    a = a._replace(
        overload_price=0 * a.overload_price, idle_price=0 * a.idle_price, peak_price=0 * a.peak_price, cpu=2 * a.cpu
    )
    guessed = regions_for(a, s, undivided(a, s), a.option_start[:-1], annealing_workspace(a, PARAMS).surrogate, 0.0)
    saved = local_reads(a, s)
    allowed = a.option_region[a.option_start[:-1], :-1] & (s.cpu + a.cpu_need[:, None] <= a.cpu)
    np.put_along_axis(allowed, s.region[:, None], False, axis=1)
    best = np.where(allowed, saved, -1.0).max(axis=1)
    assert (guessed >= 0).all()
    np.testing.assert_allclose(saved[np.arange(len(guessed)), guessed], best, rtol=1e-6)


def test_a_guessed_region_has_room_and_is_one_of_the_part(begun: tuple[TetrisArrays, TetrisState]) -> None:
    a, s = begun
    for part in parts_of(a, s, 2):
        option = np.array([a.option_start[w + 1] - 1 for w in range(len(s.region))])
        guessed = regions_for(a, part.state, part, option, annealing_workspace(a, PARAMS).surrogate, 1e-3)
        found = np.flatnonzero(guessed >= 0)
        assert len(found) > 0
        r = guessed[found]
        assert part.mine[r].all()
        assert (r != s.region[found]).all()
        assert a.option_region[option[found], r].all()
        assert (s.cpu[r] + a.cpu_need[found] <= a.cpu[r]).all()


def test_a_guessed_partner_is_a_twin_elsewhere_in_the_part(begun: tuple[TetrisArrays, TetrisState]) -> None:
    a, s = begun
    part = parts_of(a, s, 2)[0]
    guessed = twins_for(a, part.state, part, ALL, annealing_workspace(a, PARAMS).surrogate, 1e-3)
    found = np.flatnonzero(guessed != np.arange(len(guessed)))
    assert len(found) > 0
    v = guessed[found]
    assert (a.twin_class[v] == a.twin_class[found]).all()
    assert (s.region[v] != s.region[found]).all()
    assert part.mine[s.region[v]].all()


def test_partners_keep_more_reads_at_home_than_twins_drawn_at_random(begun: tuple[TetrisArrays, TetrisState]) -> None:
    a, s = begun
    saved, w = local_reads(a, s), np.arange(len(s.region))

    def gain(v: Ints) -> float:
        here, there = s.region[w], s.region[v]
        return float((saved[w, there] + saved[v, here] - saved[w, here] - saved[v, there]).sum())

    guessed = twins_for(a, s, undivided(a, s), ALL, annealing_workspace(a, PARAMS).surrogate, 0.0)
    rng = np.random.default_rng(1)
    first, count = a.twin_start[a.twin_class], np.diff(a.twin_start)[a.twin_class]
    random = [gain(a.twin[first + rng.integers(count)]) for _ in range(20)]
    assert gain(guessed) > max(random)


def test_a_window_is_a_share_of_all_and_windows_cover_everything() -> None:
    random = np.array([3], np.uint64)
    taken, begins = drawn(random, 0.1, 200, 300, 1_000)
    assert set(taken.ravel().tolist()) == set(range(1_000))
    assert len(set(begins.tolist())) == 200
    for row in taken:
        around = np.sort((row - row[0] + 500) % 1_000)
        assert around[-1] - around[0] <= 100  # a tenth, across the end if need be
    everything, begins = drawn(random, 1.0, 1, 20_000, 1_000)
    assert set(everything.ravel().tolist()) == set(range(1_000))
    assert begins[0] == 0.0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_few_guided_changes_find_more_than_as_many_at_random(seed: int) -> None:
    problem = made("standard", datasets=300, workloads=450, regions=20, seed=seed)
    a = arrays_of(problem, dict(problem.objective.weights))
    found = {}
    for guided in (False, True):
        s = first_state(a, False, seed)
        hot = 0.1 * cost(a, s) / len(problem.workloads)
        mix = proposals_of(PARAMS, compound=False, guided=guided)
        anneal(undivided(a, s), 100 * len(problem.workloads), hot, hot / 40, False, annealing_workspace(a, PARAMS), mix)
        found[guided] = cost(a, s)
    assert found[True] < found[False]


def test_parts_share_what_may_come_and_go_of_a_dataset(begun: tuple[TetrisArrays, TetrisState]) -> None:
    a, s = begun
    place = np.random.default_rng(1).random(s.place.shape) < 0.3
    copies = np.array(place.sum(axis=1), np.int64)
    a = a._replace(copies_min=np.full_like(copies, 1), copies_max=np.full_like(copies, 4))
    parts = parts_of(a, s._replace(place=place, copies=copies), 3)
    more = sum(np.maximum(part.arrays.copies_max - copies, 0) for part in parts)
    fewer = sum(np.maximum(copies - part.arrays.copies_min, 0) for part in parts)
    np.testing.assert_array_equal(more, np.maximum(4 - copies, 0))
    np.testing.assert_array_equal(fewer, np.maximum(copies - 1, 0))
    short, over = copies < 1, copies > 4
    assert short.any()
    assert over.any()
    np.testing.assert_array_equal(sum(part.arrays.copies_min[short] == 1 for part in parts), 1)
    np.testing.assert_array_equal(sum(part.arrays.copies_max[over] == 4 for part in parts), 1)
