"""Published scores against values of the authors' own tests."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt import solve
from mast_opt.problems.job_placement.entities import Clusters, Racks, Servers
from mast_opt.problems.job_placement.exhaustive.baselines import (
    FreeServers,
    TaskClasses,
    dot_product,
    fgd_score,
    fragmentation,
    gpu_clustering_score,
    gpu_packing_score,
)
from mast_opt.problems.job_placement.generate.blank import GeneratedFleet, Pending, Running, assemble
from mast_opt.problems.job_placement.problem import JobPlacement
from tests.narrowing import some

NODE = [200, 1000, 1000, 500]


def free(device: list[int], cpu: int) -> FreeServers:
    return FreeServers(np.array([device]), np.array([cpu]), np.zeros(1, np.int64))


def one_class(mgpu: int, gpus: int, cpu: int, share: float) -> TaskClasses:
    accepts = np.ones((1, 1), np.bool_)
    return TaskClasses(np.array([mgpu]), np.array([gpus]), np.array([cpu]), accepts, np.array([share]))


@pytest.mark.parametrize(
    ("device", "cpu", "task", "wasted"),
    [
        (NODE, 1000, (465, 1, 6000, 0.0933), 251.91),
        (NODE, 8000, (465, 1, 6000, 0.0933), 18.66),
        (NODE, 1000, (1000, 1, 1001, 0.9506), 2566.62),
        ([1000] * 4, 1000, (1000, 1, 1001, 0.9506), 3802.40),
        ([1000] * 8, 1000, (1000, 1, 1001, 0.9506), 7604.80),
        (NODE, 8000, (200, 2, 0, 1.0), 0.0),
    ],
)
def test_fragmentation_of_fgd(device: list[int], cpu: int, task: tuple[int, int, int, float], wasted: float) -> None:
    assert fragmentation(free(device, cpu), one_class(*task)) == pytest.approx([wasted])


@pytest.mark.parametrize(
    ("device", "mgpu", "gpus", "score"),
    [(NODE, 1000, 2, 48), ([1000] * 4, 1000, 2, 29), ([1000] * 8, 1000, 2, 25), (NODE, 200, 2, 93)],
)
def test_gpu_packing(device: list[int], mgpu: int, gpus: int, score: int) -> None:
    table = np.array([device])
    assert gpu_packing_score(table, np.ones_like(table, np.bool_), mgpu, gpus).tolist() == [score]


@pytest.mark.parametrize(
    ("device", "same", "requests", "score"),
    [
        (NODE, True, 1, 91),
        (NODE, True, 2, 66),
        ([1000] * 4, False, 0, 37),
        ([1000] * 8, False, 0, 25),
        (NODE, False, 1, 16),
        ([0] * 8, True, 1, 100),
        ([0] * 8, False, 3, 25),
    ],
)
def test_gpu_clustering(device: list[int], same: bool, requests: int, score: int) -> None:
    """By hand from the authors' rule: a quarter of the scale for each class of servers, filled by 8 - free GPUs."""
    assert gpu_clustering_score(np.array([sum(device)]), np.array([same]), np.array([requests])).tolist() == [score]


def test_dot_product_of_shares() -> None:
    need, left, capacity = np.array([1000.0, 1150]), np.array([[500.0, 500]]), np.array([[2000.0, 4000]])
    assert dot_product(need, left, capacity) == pytest.approx([0.1609375])


def test_fgd_prefers_what_fragments_less_in_whole_percent() -> None:
    classes = one_class(1000, 1, 0, 1.0)
    spoils, uses = (
        fgd_score(free(NODE, 9), free(then, 9), classes) for then in ([200, 500, 1000, 500], [200, 1000, 1000, 0])
    )
    assert (spoils.tolist(), uses.tolist()) == ([37], [62])
    assert fgd_score(free(NODE, 9), free(NODE, 9), classes).tolist() == [50]


def two_servers(sizes: tuple[int, int], mgpu: list[int], running: Running) -> JobPlacement:
    """Servers of a type each, which all jobs accept; equal jobs but for the GPUs."""
    count = len(mgpu)
    fleet = GeneratedFleet(
        regions=("r",),
        gpu_types=("v100", "t4"),
        clusters=Clusters(("c",), region=np.zeros(1, np.int64)),
        racks=Racks(("b",), cluster=np.zeros(1, np.int64)),
        servers=Servers(
            ("large", "small"),
            rack=np.zeros(2, np.int64),
            gpu_type=np.arange(2),
            supply=np.array([[sizes[0], 99, 99], [sizes[1], 99, 99]]),
        ),
    )
    waiting = Pending(
        tier=np.zeros(count, np.int64),
        tasks=np.ones(count, np.int64),
        mgpu=np.array(mgpu),
        mcores=np.zeros(count, np.int64),
        mib=np.zeros(count, np.int64),
        value_milli=np.full(count, 1000),
        options=(np.repeat(np.arange(count), 2), np.tile(np.arange(2), count)),
    )
    return assemble("pai", fleet, running, waiting)


def test_clustering_puts_tasks_of_the_same_request_together() -> None:
    """A fraction goes where a fraction runs; whole GPUs go to the free server, and one stays with its like."""
    running = Running(tier=[0], preemptible=[False], at_risk=[0], held=[(0, 1, 1, 300, 0, 0)])
    problem = two_servers((4000, 4000), [1000, 500, 1000, 200, 2000, 1000], running)
    plan = some(solve(problem, "gpu-clustering").plan)
    assert dict(zip(plan.job.tolist(), plan.server.tolist())) == {0: 0, 1: 1, 2: 0, 3: 1, 4: 0, 5: 1}


def test_clustering_forgets_what_was_stopped() -> None:
    """The victim's tasks took one GPU each; without them nothing calls the third job to the large server."""
    running = Running(tier=[1], preemptible=[True], at_risk=[0], held=[(0, 0, 4, 1000, 0, 0)])
    problem = two_servers((4000, 1000), [2000, 1000], running)
    plan = some(solve(problem, "gpu-clustering").plan)
    assert plan.preempt.tolist() == [True]
    assert dict(zip(plan.job.tolist(), plan.server.tolist())) == {0: 0, 1: 1}


def test_reserve_and_pack_leaves_the_large_server_to_the_large_task() -> None:
    """PAI: one server of eight V100, one of four T4; six halves of a GPU, then a task of eight V100."""
    problem = two_servers((8000, 4000), [500] * 6 + [8000], Running())
    placed = {}
    for solver in ("reserve-and-pack", "least-loaded", "fgd", "gpu-packing", "gpu-clustering", "dot-product"):
        plan = some(solve(problem, solver).plan)
        placed[solver] = len(np.unique(plan.job))
    assert (placed["reserve-and-pack"], placed["least-loaded"]) == (7, 6)
    assert placed["fgd"] == 7
