"""Figures of demand, data and servers: the worst ratio against Hall's formula, and small logs by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain, combinations

import numpy as np
import pytest

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.fragmentation import TaskShape, fragmented_mgpu
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.log_fold import PastServer
from mast_opt.live.loop.past_state import PastState
from mast_opt.live.loop.place_metrics import PlaceMetrics, _Sweep, place_metrics
from mast_opt.live.loop.worst_ratio import worst_ratio
from mast_opt.live.simulation.run import run_trace
from mast_opt.problems.job_placement.live_fleet.types import Share
from tests.store.logs import log, trace

HOUR_MS = 3_600_000


@pytest.mark.parametrize("events", [log, lambda: run_trace(trace(), "mast", {"bind": "share"}).events()])
def test_what_is_asked_for_follows_the_log(events: Callable[[], Iterable[ev.Stored]]) -> None:
    """What is kept by changes is what all jobs of the moment say."""
    sweep = _Sweep(0, HOUR_MS)
    for at, stored in enumerate(events()):
        sweep.take(stored)
        if at % 20:
            continue
        jobs = sweep.past.jobs.values()
        asked = Counter[tuple[object, ...]]()
        for one in jobs:
            kinds = None if one.spec.gpu_types is None else frozenset(one.spec.gpu_types)
            asked[one.spec.tier, one.spec.datasets, one.bound, kinds] += one.spec.asked_mgpu
        assert {key: mgpu for key, (_, mgpu) in sweep.asked.items()} == asked
        assert sum(count for count, _ in sweep.asked.values()) == len(jobs)
        waiting = {one.name for one in jobs if one.placed is None and one.spec.datasets}
        assert sweep.may_wait.keys() == waiting - sweep.for_data


class TestWorstRatio:
    @pytest.mark.parametrize("seed", range(12))
    def test_it_is_the_largest_confined_demand_over_supply(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        places = int(rng.integers(1, 6))
        supply = rng.integers(0, 20, places).tolist()
        demand = {
            frozenset(np.flatnonzero(rng.random(places) < 0.5).tolist()): int(rng.integers(0, 30)) for _ in range(6)
        }
        found = worst_ratio(demand, supply)
        usable = [c for c in range(places) if supply[c]]
        served = {mask: amount for mask, amount in demand.items() if mask & set(usable)}
        sets = chain.from_iterable(combinations(usable, size) for size in range(1, len(usable) + 1))
        expected = max(
            (
                sum(amount for mask, amount in served.items() if mask & set(usable) <= set(chosen))
                / sum(supply[c] for c in chosen)
                for chosen in sets
            ),
            default=0.0,
        )
        assert found.ratio == pytest.approx(expected, abs=1e-9)
        for guess in (frozenset({0}), frozenset(range(places + 3)), frozenset({99})):
            assert worst_ratio(demand, supply, guess).ratio == found.ratio
        assert found.stranded == sum(demand.values()) - sum(served.values())
        if found.ratio:
            assert sum(price * amount for price, amount in zip(found.prices, supply)) == pytest.approx(1)
            value = sum(
                amount * min(found.prices[c] for c in mask & set(usable)) for mask, amount in served.items() if amount
            )
            assert value == pytest.approx(found.ratio)  # weak duality holds with equality

    def test_more_demand_than_a_flow_has_units(self) -> None:
        demand = {frozenset({0}): 3 * 2**40, frozenset({0, 1}): 2**40, frozenset({1}): 2**40}
        found = worst_ratio(demand, [2**40, 2**40])
        assert (found.ratio, found.prices) == (3, (2**-40, 0))

    def test_nothing_asked_for(self) -> None:
        assert worst_ratio({}, [1, 2]).ratio == 0
        assert worst_ratio({frozenset({0}): 5}, [0]).stranded == 5


def up(name: str, region: str, gpus: int = 8) -> ev.ServerUp:
    return ev.ServerUp(name, region, f"{region}-c", "r", "h100", gpus)


def figures(*timed: tuple[int, ev.Event], until_ms: int | None = None) -> PlaceMetrics:
    log = [ev.Stored(at + 1, time, event) for at, (time, event) in enumerate(timed)]
    return place_metrics(log, until_ms=until_ms)


WORLD = (
    (0, up("s", "east")),
    (0, up("t", "west")),
    (0, ev.DatasetCreated("d", 10, ("east",))),
)


def job(name: str, at_ms: int, mgpu: int = 8000, tier: int = 0, **rest: object) -> tuple[int, ev.Event]:
    spec = JobSpec(tier=tier, mgpu=mgpu, datasets=("d",), duration_ms=HOUR_MS, **rest)  # type: ignore[arg-type]
    return at_ms, ev.Submitted(name, spec)


def placed(name: str, at_ms: int, server: str, region: str, *victims: str) -> tuple[int, ev.Event]:
    share = Share(server, 1, dict.fromkeys(range(8), 1000))
    return at_ms, ev.Placed(name, 1, region, f"{region}-c", (share,), victims)


def test_a_job_that_waits_for_data_while_there_is_room() -> None:
    head = (*WORLD, job("a", 0), placed("a", 0, "s", "east"), (0, ev.Started("a", 1)), job("b", 1))
    found = figures(*head, until_ms=2 * HOUR_MS)
    assert (found.waited_for_data, found.started_without_data, found.not_collocated) == (1, 0, 0.5)
    assert found.first_time == 0.5
    assert found.worst_ratio[0].p95 == 2  # 16 GPUs are asked for in east, which has 8
    copied = (*WORLD, (0, ev.CopyAsked("d", "east", "west", 10)), *head[3:], (2 * HOUR_MS, ev.CopyEnded("d", "west")))
    found = figures(*copied, until_ms=4 * HOUR_MS)
    assert found.storage_overhead == 1
    assert found.worst_ratio[0].mean == pytest.approx((1 + 2 + 1 + 1 + 1) / 5)


def test_what_runs_without_data_is_counted() -> None:
    found = figures(*WORLD, job("a", 0), placed("a", 0, "t", "west"), (0, ev.Started("a", 1)))
    assert found.started_without_data == 1


def test_gaps_of_plans() -> None:
    def ended(path: str, *outcome: object) -> tuple[int, ev.Event]:
        return 0, ev.SolveEnded(path, "sum", *outcome)  # type: ignore[arg-type]

    found = figures(
        ended("data", "FEASIBLE", "plan", 1.5, 2.0),
        ended("data", "FEASIBLE", "plan", 1.0, 2.0),
        ended("data", "NO_SOLUTION", "", 1.0),
        ended("servers", "FEASIBLE", "of a log without objectives", 1.0),
    )
    assert found.to_dict()["plan_gap"] == {"data": {"mean": 0.375, "worst": 0.5}}


def test_stranded_work() -> None:
    found = figures(*WORLD, (0, ev.Submitted("a", JobSpec(mgpu=8000, datasets=("x",)))), until_ms=HOUR_MS)
    assert found.stranded_gpus == 8
    assert found.worst_ratio[0].mean == 0


def test_a_stop_that_was_not_needed() -> None:
    world = (*WORLD, (0, ev.CopyEnded("d", "west")))
    head = (*world, job("a", 0, tier=1), placed("a", 0, "s", "east"), job("b", 5))
    assert figures(*head, placed("b", 5, "s", "east", "a")).needless == 1
    assert figures(*head[:3], *head[4:], placed("b", 5, "s", "east", "a")).needless == 0


def test_fairness() -> None:
    alone = (*WORLD, job("a", 0), placed("a", 0, "s", "east"), (HOUR_MS, ev.Finished("a", 1)))
    assert figures(*alone).rho.mean == pytest.approx(1)
    other = (*WORLD, job("a", 0), job("b", 0, mgpu=1000), placed("a", HOUR_MS, "s", "east"))
    assert figures(*other, (2 * HOUR_MS, ev.Finished("a", 1))).rho.mean == pytest.approx(2)


def test_fragmentation_as_in_fgd() -> None:
    server = PastServer(up("s", "east", 4), free=[2700, 1000, 0], idle=[200, 1000, 1000, 500])
    shape = TaskShape(465, 6000, 0, None)
    assert fragmented_mgpu([server], {shape: 1}) == 2700
    server.free[1] = 8000
    assert fragmented_mgpu([server], {shape: 1}) == 200
    assert fragmented_mgpu([server], {shape: 1, TaskShape(2000, 0, 0, None): 1}) == (200 + 700) / 2
    assert fragmented_mgpu([server], {TaskShape(4000, 0, 0, None): 1}) == 2700
    assert fragmented_mgpu([server], {TaskShape(1000, 0, 0, frozenset({"a100"})): 1}) == 2700


def test_room_is_looked_for_again_when_servers_change() -> None:
    past = PastState()
    first, second = (event for name in ("1", "2") for _, event in [job(name, 0)])
    events = [up("s", "a"), first, second]
    for event in events:
        past.take(0, event)
    asked = past.jobs["2"]
    assert past.regions_with_room(asked) == ("a",)
    past.take(0, placed("1", 0, "s", "a")[1])
    assert past.regions_with_room(asked) == ()
    past.take(0, up("t", "b"))
    assert past.regions_with_room(asked) == ("b",)
    past.take(0, ev.Finished("1", 1))
    assert past.regions_with_room(asked) == ("a", "b")
    past.take(0, ev.ServerDown("t"))
    assert past.regions_with_room(asked) == ("a",)
