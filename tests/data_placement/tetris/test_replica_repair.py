"""What a Gibbs sampler ends with is repaired: what saves least makes room, here or elsewhere, and room is used."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.problems.data_placement.tetris.initial_solution import first_state
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays, arrays_of
from mast_opt.problems.data_placement.tetris.replica_repair import repair_replicas
from mast_opt.problems.data_placement.tetris.state import TetrisState, cost, excess, state_of
from tests.data_placement.support import made

REGIONS = 6
FULL = 2


@pytest.fixture(scope="module")
def begun() -> tuple[TetrisArrays, TetrisState]:
    problem = made("standard", datasets=60, workloads=90, regions=REGIONS)
    a = arrays_of(problem, dict(problem.objective.weights))
    a = a._replace(copies_min=np.ones_like(a.copies_min), copies_max=np.full_like(a.copies_max, REGIONS))
    return a, first_state(a, False, 1)


def placed(a: TetrisArrays, s: TetrisState, place: np.ndarray) -> TetrisState:
    return state_of(a, s.option, s.region, place, 1)


def counted_right(a: TetrisArrays, s: TetrisState) -> bool:
    fresh = placed(a, s, s.place)
    return all(np.array_equal(getattr(s, name), getattr(fresh, name)) for name in ("storage", "ingress", "copies"))


def only(full: int, datasets: int) -> np.ndarray:
    """All datasets in one region, and nowhere else."""
    place = np.zeros((datasets, REGIONS), np.bool_)
    place[:, full] = True
    return place


def output(a: TetrisArrays, s: TetrisState) -> np.ndarray:
    """[R] what work puts out."""
    return s.storage - s.place.T @ a.size


def test_what_saves_least_for_its_size_is_dropped(begun: tuple[TetrisArrays, TetrisState]) -> None:
    a, s = begun
    place = only(FULL, len(a.size))
    place[:, 3] = True
    s = placed(a, s, place)
    limit = np.where(np.arange(REGIONS) == FULL, s.storage // 2, s.storage)
    a = a._replace(storage=limit, pinned=a.pinned.copy())
    saving = s.volume[:, FULL] * a.remote_price - a.replica_price[:, FULL]
    pinned = int(np.argmin(saving / a.size))
    a.pinned[pinned, FULL] = True
    repair_replicas(a, s)
    assert counted_right(a, s)
    assert s.storage[FULL] <= limit[FULL]
    assert s.place[pinned, FULL]
    assert s.place[:, 3].all()
    others = np.arange(len(a.size)) != pinned
    kept, dropped = (saving / a.size)[s.place[:, FULL] & others], (saving / a.size)[~s.place[:, FULL] & others]
    assert len(dropped)
    assert np.median(kept) > np.median(dropped)


def test_a_replica_that_must_be_moves_to_where_there_is_room(begun: tuple[TetrisArrays, TetrisState]) -> None:
    a, s = begun
    s = placed(a, s, only(FULL, len(a.size)))
    everything = int(a.size.sum())
    limit = output(a, s) + np.where(np.arange(REGIONS) == FULL, everything // 3, everything // 2)
    a = a._replace(storage=limit, ingress=np.full(REGIONS, everything), forbidden=a.forbidden.copy())
    a.forbidden[:, 0] = True
    repair_replicas(a, s)
    assert counted_right(a, s)
    assert excess(a, s, False) == 0
    assert (s.copies >= 1).all()
    assert not s.place[:, 0].any()


def test_what_is_large_and_worth_it_stays(begun: tuple[TetrisArrays, TetrisState]) -> None:
    a, s = begun
    size = a.size.copy()
    size[0] = size[1:].sum()
    a = a._replace(size=size, ingress=np.full(REGIONS, 10 * int(size.sum())))
    s = placed(a, s, only(FULL, len(a.size)))
    s.volume[0, FULL] = 1000 * int(s.volume.sum())
    a = a._replace(storage=output(a, s) + int(1.5 * size[0]))
    repair_replicas(a, s)
    assert s.place[0, FULL]
    assert excess(a, s, False) == 0


def test_regions_clear_what_others_cannot_hold(begun: tuple[TetrisArrays, TetrisState]) -> None:
    a, s = begun
    place = np.ones((len(a.size), REGIONS), np.bool_)
    half = len(a.size) // 2
    place[half:] = only(FULL, len(a.size) - half)
    s = placed(a, s, place)
    a = a._replace(storage=output(a, s) + int(a.size[:half].sum()), ingress=np.full(REGIONS, 10 * int(a.size.sum())))
    assert s.storage[FULL] > a.storage[FULL]
    repair_replicas(a, s)
    assert counted_right(a, s)
    assert excess(a, s, False) == 0


def test_room_that_is_left_is_used(begun: tuple[TetrisArrays, TetrisState]) -> None:
    a, s = begun
    s = placed(a, s, only(FULL, len(a.size)))
    everywhere = np.full(REGIONS, 10 * int(a.size.sum()))
    a = a._replace(storage=everywhere + s.storage, ingress=everywhere, forbidden=a.forbidden.copy())
    a.forbidden[5, :FULL] = True
    before = cost(a, s)
    repair_replicas(a, s)
    assert counted_right(a, s)
    price = a.replica_price
    pays = (s.volume * a.remote_price > price) & ~a.forbidden
    pays[:, FULL] = True
    np.testing.assert_array_equal(s.place, pays)
    assert cost(a, s) < before


def test_no_more_copies_than_there_may_be(begun: tuple[TetrisArrays, TetrisState]) -> None:
    a, s = begun
    s = placed(a, s, only(FULL, len(a.size)))
    everywhere = np.full(REGIONS, 10 * int(a.size.sum()))
    a = a._replace(storage=everywhere + s.storage, ingress=everywhere, copies_max=np.full(len(a.size), 2))
    repair_replicas(a, s)
    assert s.copies.max() == 2
    assert excess(a, s, False) == 0
