"""Multilevel start of tetris: weights kept on every level, gains as recomputed, and plans near the known optimum."""

from __future__ import annotations

import numpy as np
import pytest

import mast_opt
from mast_opt.problems.data_placement.problem import Ints
from mast_opt.problems.data_placement.tetris.instance_arrays import arrays_of
from mast_opt.problems.data_placement.tetris.multilevel.coarsening import CLOSED, Graph, co_access_graph, coarsen
from mast_opt.problems.data_placement.tetris.multilevel.params import MultilevelParams
from mast_opt.problems.data_placement.tetris.multilevel.refinement import connection, kept_weight, refine
from mast_opt.problems.data_placement.tetris.multilevel.start import Partitioner, grow, state_with
from mast_opt.problems.data_placement.tetris.state import cost, excess
from tests.data_placement.tetris.multilevel.graphs import WEIGHTS, communities, problem_of, random_graph
from tests.narrowing import some

REGIONS = 4


def kept(graph: Graph, part: Ints) -> int:
    """Weight inside regions, edge by edge, and pulls."""
    tail = np.repeat(np.arange(len(part)), np.diff(graph.start))
    inside = int(graph.weight[part[tail] == part[graph.neighbour]].sum())
    return inside // 2 + int(graph.pull[np.arange(len(part)), part].sum())


@pytest.mark.parametrize("seed", range(12))
def test_gains_are_those_of_the_recomputed_partition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 40, REGIONS)
    part = rng.integers(REGIONS, size=40)
    room = np.full(REGIONS, int(graph.size.sum() * rng.choice((0.26, 0.3, 0.5))))
    conn, used = connection(graph, part), np.bincount(part, graph.size, REGIONS).astype(np.int64)
    before, excess = kept(graph, part), int(np.maximum(used - room, 0).sum())
    assert kept_weight(graph, part) == before
    group = int(rng.choice((1, 40)))
    gained = refine(graph, part, used, conn, room, int(graph.size.max()), rng.permutation(40), group, 30)
    assert kept(graph, part) == before + gained
    assert (conn == connection(graph, part)).all()
    assert (used == np.bincount(part, graph.size, REGIONS)).all()
    after = int(np.maximum(used - room, 0).sum())
    assert (after, -gained) <= (excess, 0)
    assert gained > 0 or after < excess


def test_exchanges_pass_through_regions_that_are_full() -> None:
    """Two pairs, one node of each in either region, and no room for a fifth node."""
    problem = problem_of(np.array([[0, 1], [2, 3]]), np.ones(4, np.int64), np.array([2, 2]))
    graph, part = co_access_graph(arrays_of(problem, WEIGHTS)), np.array([0, 1, 0, 1])
    conn, used, room = connection(graph, part), np.full(2, 2 * 10**6), np.full(2, 2 * 10**6)
    assert refine(graph, part, used, conn, room, 0, np.arange(4), 4, 9) == 0
    assert refine(graph, part, used, conn, room, 10**6, np.arange(4), 4, 9) == 2 * 10**6
    assert (part[0] == part[1], part[2] == part[3], part[0] == part[2]) == (True, True, False)


@pytest.mark.parametrize("pairs", [False, True])
def test_a_coarser_graph_values_partitions_as_the_finer_one_does(pairs: bool) -> None:
    rng = np.random.default_rng(5)
    graph = random_graph(rng, 60, REGIONS)
    label, largest = rng.integers(2, size=60), int(graph.size.sum() // 8)
    coarser, cluster = coarsen(graph, label, largest, pairs, rng)
    assert len(coarser.size) < 50
    part = rng.integers(REGIONS, size=len(coarser.size))
    tail = np.repeat(np.arange(60), np.diff(graph.start))
    inside = int(graph.weight[cluster[tail] == cluster[graph.neighbour]].sum()) // 2
    open_nodes = graph.pull[np.arange(60), part[cluster]].min() > CLOSED
    assert kept(coarser, part) == kept(graph, part[cluster]) - inside or not open_nodes
    assert (coarser.size == np.bincount(cluster, graph.size)).all()
    members = np.bincount(cluster)
    assert (coarser.size[members > 1] <= largest).all()
    assert members.max() == 2 or not pairs
    for one in range(len(members)):
        assert len(set(label[cluster == one])) == 1


def test_regions_grow_evenly_and_within_their_storage() -> None:
    rng = np.random.default_rng(2)
    graph = random_graph(rng, 60, REGIONS)
    room = np.array([5, 3, 3, 3]) * int(graph.size.sum()) // 12
    used = np.bincount(grow(graph, room, rng.permutation(60)), graph.size, REGIONS)
    assert (used <= room).all()
    assert (used > room // 2).all()


def test_planted_communities_are_found_however_tight_storage_is() -> None:
    """Eight cliques of ten in four regions of twenty: two cliques a region, and only the edges between are cut."""
    rng = np.random.default_rng(1)
    edges = communities(rng, 8, 10, 1.0, 0.01)
    problem = problem_of(edges, np.ones(80, np.int64), np.full(4, 20))
    graph = co_access_graph(arrays_of(problem, WEIGHTS))
    search = Partitioner(graph, np.full(4, 20 * 10**6), MultilevelParams(), np.random.default_rng(3))
    found = search.search(lambda cycles: cycles >= 10)
    assert found.excess == 0
    cliques = found.part.reshape(8, 10)
    assert (cliques == cliques[:, :1]).all()


def test_work_runs_where_most_of_its_data_is_as_far_as_cores_suffice() -> None:
    edges = np.array([[0, 1], [0, 2], [2, 3], [1, 3]])
    problem = problem_of(edges, np.ones(4, np.int64), np.full(2, 3))
    part, remote = np.array([0, 0, 1, 1]), arrays_of(problem, WEIGHTS).remote_price * 10**6
    a = arrays_of(problem, WEIGHTS)
    state = state_with(a, part, False)
    assert state.region[[0, 2]].tolist() == [0, 1]
    assert cost(a, state) == pytest.approx(2 * remote)
    tight = a._replace(cpu_need=np.full(4, 600))
    crowded = state_with(tight, part, False)
    assert excess(tight, crowded, False) > 0  # four of 600 do not fit in two regions of 1,000
    tight = a._replace(cpu_need=np.array([600, 600, 400, 400]))
    assert excess(tight, state_with(tight, part, False), False) == 0


def test_the_plan_of_a_solve_is_deterministic_and_at_the_planted_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    edges = communities(rng, 20, 10, 0.9, 0.001)
    problem = problem_of(edges, np.ones(200, np.int64), np.full(4, 51))
    group = np.repeat(np.arange(20), 10)
    across = int((group[edges[:, 0]] != group[edges[:, 1]]).sum())
    one, other = (mast_opt.solve(problem, "tetris", iterations=2, threads=1, seed=3) for _ in range(2))
    assert some(one.strategy)["search"] == "multilevel start, then parallel annealing"
    plan = some(one.plan)
    assert (plan.place == some(other.plan).place).all()
    assert some(one.verdict).terms["remote"] * 2 * len(edges) <= across
    monkeypatch.setattr(mast_opt.TetrisParams, "multilevel", MultilevelParams(share=0.0))
    without = mast_opt.solve(problem, "tetris", iterations=2, threads=1, seed=3)
    assert some(without.verdict).terms["remote"] > 1.5 * some(one.verdict).terms["remote"]
