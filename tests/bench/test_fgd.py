"""FGD's experiment: a generated list, and two of the published ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.fgd import LIVE, MARKS, MOVED, NODES, Replay, arrivals, asked, bound, generated, published, replay, rows

DATA = Path(__file__).parents[2] / "benchmarks/data/fgd"
RULES = ("fgd", "gpu-packing", "gpu-clustering", "dot-product", "reserve-and-pack")


@pytest.mark.parametrize("method", [*LIVE, *RULES])
def test_a_generated_list_is_replayed(method: str) -> None:
    nodes, pods = generated(12)
    values = replay(nodes, pods, method, 42).curve()
    assert values == sorted(values)
    assert all(value <= min(mark, 100) for mark, value in zip(MARKS, values))
    assert values[-1] > 85


def test_pods_arrive_until_too_much_is_asked_for() -> None:
    nodes, pods = generated(24)
    capacity = 1000 * sum(int(node["gpu"]) for node in nodes)
    queue = arrivals(pods, capacity, 42)
    largest = max(map(asked, pods))
    assert 1.3 * capacity - largest < sum(map(asked, queue)) <= 1.3 * capacity
    assert {id(pod) for pod in queue} == {id(pod) for pod in pods}
    assert queue != arrivals(pods, capacity, 43)


def test_a_pod_that_insists_on_a_type_gets_no_other() -> None:
    nodes = [{"sn": "a", "cpu_milli": "8000", "memory_mib": "8", "gpu": "2", "model": "T4"}]
    pod = {"cpu_milli": "1000", "memory_mib": "1", "num_gpu": "1", "gpu_milli": "500", "gpu_spec": "G2"}
    nodes.append(nodes[0] | {"sn": "b", "gpu": "1", "model": "G2"})
    for method in (*LIVE, *RULES):
        assert replay(nodes, [pod], method, 1).curve()[-1] == pytest.approx(100 / 3)


def test_the_usual_weight_of_scarce_room_is_twenty_percent() -> None:
    nodes, pods = generated(24)
    usual, none, more = (
        replay(nodes, pods, method, 42).taken.tolist()
        for method in ("fleet", "fleet, scarcity 0%", "fleet, scarcity 60%")
    )
    assert usual == replay(nodes, pods, "fleet, scarcity 20%", 42).taken.tolist()
    assert none != more


@pytest.mark.parametrize("method", MOVED)
def test_moves_keep_to_their_share_and_stay_below_the_bound(method: str) -> None:
    nodes, pods = generated(24)
    run = replay(nodes, pods, method, 42)
    assert run.moved <= MOVED[method] / 100 * run.taken.sum()
    assert (run.moved > 0) == (MOVED[method] > 0.5)
    assert run.curve()[-1] <= run.bound() <= 100
    if method == "fleet, 0% moved":
        assert run.curve() == replay(nodes, pods, "fleet", 42).curve()


@pytest.mark.parametrize(
    ("sizes", "required", "best"),
    [
        ([810, 470, 470], [True, True, True], 1750),  # on two GPUs
        ([810, 2000], [True, False], 1810),
        ([500, 500, 700, 700, 300], [True, True, False, False, False], 2000),
        ([810, 810, 1000], [True, True, False], 1620),
        ([0, 190, 810, 1000], [True, False, True, True], 2000),
    ],
)
def test_the_bound_is_the_best_packing_of_two_gpus(sizes: list[int], required: list[bool], best: int) -> None:
    assert bound(sizes, required, 2) == pytest.approx(best)


def test_what_cannot_all_be_placed_has_no_bound() -> None:
    size = np.full(3, 810)
    assert Replay(3000, size, np.ones(3, np.bool_), 0).bound() == pytest.approx(81)
    with pytest.raises(ValueError, match="do not hold"):
        bound(size.tolist(), [True] * 3, 2)


@pytest.mark.parametrize("name", ["default", "multigpu20"])
def test_two_published_lists_are_replayed(name: str) -> None:
    pods = rows(next(DATA.glob(f"openb_pod_list_{name}.csv*")))
    nodes = rows(DATA / NODES)
    assert replay(nodes, pods, "fleet", 42).curve()[-1] > published(name)["fgd"] - 0.1
