"""Yugong: project placement, lifespans of replicas, outsourcing of jobs; known answers on two solvers, brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import Status
from mast_opt.live.policies import yugong
from tests.narrowing import some

SOLVERS = pytest.mark.parametrize("solver", ["highs", "scip"])
PLACERS = pytest.mark.parametrize("solver", ["highs", "scip", "cpsat"])
YUG_1 = ([5, 4, 3], [8, 8], [0, 0, 1], [1, 2, 2], [10, 4, 6])
YUG_2 = (np.array([[4], [3], [3]]), np.array([[7], [4], [4.5]]), 6)


@PLACERS
def test_projects_that_read_each_other_stay_together(solver: str) -> None:
    found = yugong.solve(yugong.tables(*YUG_1), solver=solver)
    assert found.status is Status.OPTIMAL
    assert found.traffic_tb == pytest.approx(14)
    assert some(found.bound_tb) <= 14 + 1e-6
    one, two, three = some(found.datacenter).tolist()
    assert one != two == three


def test_sizes_are_rounded_up_and_limits_down_but_not_for_the_last_bit() -> None:
    problem = yugong.tables([0.403, 1e-7], [0.403, 1.9999999], [0], [1], [1], cores=0.0001, core_limit=[0.0019, 2])
    assert problem.datasets.size_mb.tolist() == [403_000, 1]
    assert problem.regions.storage_mb.tolist() == [403_000, 1_999_999]
    assert problem.regions.cpu_mcores.tolist() == [1, 2000]
    assert problem.workloads.cpu_mcores.tolist() == [0, 1, 1]


@pytest.mark.parametrize("limits", ["storage", "cores", "migration", "immovable"])
def test_placement_equals_brute_force(limits: str) -> None:
    rng = np.random.default_rng(len(limits))
    for _ in range(4):
        size, cores = rng.integers(1, 6, 6), rng.integers(1, 6, 6).astype(float)
        reader, owner = rng.integers(6, size=(2, 12))
        volume = rng.integers(1, 9, 12).astype(float)
        home, storage = rng.integers(3, size=6), np.full(3, int(size.sum()))
        room = np.ceil(cores.sum() / 3 + 2) if limits == "cores" else cores.sum()
        budget = 6.0 if limits == "migration" else float(size.sum())
        if limits == "storage":
            storage = np.full(3, -(-int(size.sum()) // 3) + 2)
        moves = np.arange(6) != 2 if limits == "immovable" else np.ones(6, bool)
        best = np.inf
        for at in itertools.product(range(3), repeat=6):
            place = np.array(at)
            fits = (np.bincount(place, size, 3) <= storage).all() and (np.bincount(place, cores, 3) <= room).all()
            if fits and size[place != home].sum() <= budget and (place == home)[~moves].all():
                best = min(best, volume[place[reader] != place[owner]].sum())
        problem = yugong.tables(
            size, storage, reader, owner, volume, cores=cores, core_limit=room, home=home,
            migration_tb=budget, movable=moves,
        )  # fmt: skip
        found = yugong.solve(problem)
        if best == np.inf:
            assert found.status.is_infeasible
            continue
        assert found.traffic_tb == pytest.approx(best)
        place = some(found.datacenter)
        assert volume[place[reader] != place[owner]].sum() == pytest.approx(best)
        assert found.moved_tb == pytest.approx(size[place != home].sum())


def test_no_datacenter_has_the_cores_of_a_project() -> None:
    problem = yugong.tables(*YUG_1, cores=[9, 9, 9], core_limit=[9, 9])
    assert yugong.solve(problem).status is Status.INFEASIBLE


def test_tetris_finds_communities_of_projects() -> None:
    """Twelve groups of eight projects that read within the group, three groups to a datacenter."""
    group = np.repeat(np.arange(12), 8)
    reader, owner = (axis.ravel() for axis in np.indices((96, 96)))
    near = (group[reader] == group[owner]) & (reader < owner)
    far = (reader + 1) % 96 == owner
    reader, owner = np.concatenate([reader[near], reader[far]]), np.concatenate([owner[near], owner[far]])
    problem = yugong.tables(np.ones(96), np.full(4, 26), reader, owner, np.ones(len(reader)))
    found = mast_opt.solve(problem, "tetris", iterations=1, threads=1)
    assert found.objective == pytest.approx(4)


@SOLVERS
def test_greedy_misses_the_optimum_of_the_paper_s_knapsack(solver: str) -> None:
    assert yugong.replicate_greedily(*YUG_2).net == 7
    found = yugong.replicate(*YUG_2, solver=solver)
    assert found.status is Status.OPTIMAL
    assert found.net == pytest.approx(8.5)
    assert found.choice.tolist() == [-1, 0, 0]
    assert found.size == pytest.approx(6)


def test_lifespans_equal_brute_force() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        read = np.sort(rng.exponential(3, (4, 3)), axis=1)[:, ::-1]
        size, net = yugong.lifespans(read, rng.integers(1, 5, 4))
        storage = int(rng.integers(2, 20))
        best = 0.0
        for pick in itertools.product(range(-1, 3), repeat=4):
            kept = [(t, at) for t, at in enumerate(pick) if at >= 0]
            if sum(size[cell] for cell in kept) <= storage:
                best = max(best, sum(net[cell] for cell in kept))
        solved, greedy = yugong.replicate(size, net, storage), yugong.replicate_greedily(size, net, storage)
        assert solved.net == pytest.approx(best)
        assert solved.size <= storage + 1e-6
        assert greedy.size <= storage
        assert greedy.net <= best + 1e-9 <= some(greedy.bound) + 2e-9


def test_a_lifespan_saves_what_is_read_of_its_partitions_less_one_copy_a_day() -> None:
    size, net = yugong.lifespans([[5, 2, 1]], [2])
    assert size.tolist() == [[2, 4, 6]]
    assert net.tolist() == [[3, 5, 6]]


def test_a_job_goes_where_waiting_less_is_worth_the_traffic() -> None:
    wait = np.array([[100, 10, 40], [100, 10, np.inf], [100, 90, 90]])
    remote = [[0, 2, 1], [1, 0, 0], [0, 1, 1]]
    assert yugong.outsource(wait, remote, [0, 0, 0], seconds_per_tb=30).tolist() == [1, 1, 0]
    assert yugong.outsource(wait, remote, [0, 0, 0], seconds_per_tb=40).tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: yugong.tables([1, 1], [2], [0], [2], [1]), "positions from 0 to 1"),
        (lambda: yugong.tables([1, 1], [2], [0], [1], [1], migration_tb=1), "home is None"),
        (lambda: yugong.tables([1, 1], [2], [0], [1], [1], movable=[True, False]), "home is None"),
        (lambda: yugong.replicate([[1]], [[1, 2]], 3), "net has shape"),
    ],
)  # fmt: skip
def test_wrong_arguments(call: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        call()  # type: ignore[operator]
