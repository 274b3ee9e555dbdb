"""Placement by loss of value: against a slow reference, and what it is for."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import UsageError
from mast_opt.problems.job_placement.engine.arrival_mix import ArrivalMix, Shape, server_classes, shape_of
from mast_opt.problems.job_placement.engine.limits import DEFAULT_SAMPLING, SAMPLING_RANGES, FillSampling
from mast_opt.problems.job_placement.live_fleet.answers import Bid, Refused
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job, Server
from tests.job_placement.fleets import bid_for
from tests.job_placement.operations import new_job, new_server, random_operation, small_fleet
from tests.job_placement.slow_placement import SlowPlacement


def server(name: str, gpus: int, kind: str = "a100") -> Server:
    return Server(name, "r", "c", "b", kind, gpus, 64_000, 65_536)


def test_every_bid_on_free_capacity_is_that_of_the_slow_reference() -> None:
    levels: dict[str, int] = {}
    for seed in range(12):
        rng = np.random.default_rng([29, seed])
        fleet = small_fleet(rng)
        for number in range(60):
            random_operation(rng, fleet, number)
            job = new_job(rng, "asked")
            if number % 3 == 0:
                job = replace(job, tasks=int(rng.integers(3, 8)), within="cluster", gpu_types=None)
            answer, expected = fleet.place(job), SlowPlacement(fleet, job).best()
            if isinstance(answer, Refused) or answer.victims:
                assert expected is None
                continue
            shares = {share.server: share.tasks for share in answer.shares}
            assert (answer.level, answer.cluster, answer.gpu_type, shares) == expected, (seed, number)
            levels[answer.level] = levels.get(answer.level, 0) + 1
    assert min(levels.get(level, 0) for level in ("server", "rack", "cluster")) >= 5, levels


def test_a_job_leaves_the_server_alone_that_only_it_spoils() -> None:
    """Best fit takes the tighter server; jobs of two GPUs, which are expected, would find no room there then."""
    whole = Job("whole", 0, mgpu=2000)
    bids = {}
    for placement in ("fragmentation", "best-fit"):
        fleet = Fleet([server("pair", 2), server("three", 3)], tiers=(0,), placement=placement, expected=[whole])
        bids[placement] = bid_for(fleet, Job("one", 0, mgpu=1000)).shares[0].server
    assert bids == {"fragmentation": "three", "best-fit": "pair"}


def test_a_place_that_few_servers_have_is_left_to_jobs_that_need_it() -> None:
    """In the long run small jobs fill both servers, so that the tighter one is taken where only that counts."""
    roomy = replace(server("roomy", 4), memory_mib=131_072)
    expected = [Job("huge", 0, mgpu=4000, memory_mib=100_000), *(Job(f"j{n}", 0, mgpu=1000) for n in range(50))]
    taken = {}
    for percent in (0, DEFAULT_SAMPLING.scarcity_percent):
        sampling = FillSampling(scarcity_percent=percent)
        fleet = Fleet([roomy, server("plain", 8)], tiers=(0,), expected=expected, sampling=sampling)
        taken[percent] = bid_for(fleet, Job("one", 0, mgpu=1000)).shares[0].server
    assert taken == {0: "roomy", DEFAULT_SAMPLING.scarcity_percent: "plain"}


def test_a_shape_is_priced_by_the_gpus_on_servers_that_hold_it_when_empty() -> None:
    mix = ArrivalMix(FillSampling(samples=10, scarcity_percent=100))
    classes = server_classes(np.array([0, 1]), np.array([[8000, 8, 8], [2000, 2, 2]]))
    on_all, on_large, nowhere = 1.0, 0.8, 0.0
    held = {
        (400, 0, 0, 4): on_all,
        (400, 0, 0, 5): on_large,
        (500, 1, 1, 9): nowhere,
        (1000, 2, 2, 1): on_all,
        (1000, 1, 3, 1): on_large,
        (1000, 3, 1, 1): on_large,
        (0, 1, 1, 1): nowhere,
        (2000, 0, 0, 1): on_all,
        (2000, 0, 0, 2): on_large,
        (3000, 1, 1, 3): nowhere,
        (1000, 0, 3, 3): nowhere,
    }
    for mgpu, cpu, memory, tasks in held:
        mix.add(Shape(mgpu * tasks, cpu, memory, tasks, (("", mgpu),)), 1)
    demand = mix.draw({"a": 0, "b": 1}, classes).demand
    total = sum(key[0] * key[3] for key in held)
    expected = {key: round(10_000 * key[0] * key[3] / total / share**2) for key, share in held.items() if share}
    assert {tuple(row[[0, 2, 3, 4]].tolist()): int(row[5]) for row in demand} == expected


def test_the_mix_is_learned_from_what_starts_and_part_of_snapshots() -> None:
    fleet = Fleet([server("pair", 2), server("three", 3)], tiers=(0,))
    before = fleet.snapshot_bytes()
    fleet.commit(bid_for(fleet, Job("whole", 0, mgpu=2000)))
    fleet.release("whole")
    assert bid_for(fleet, Job("one", 0, mgpu=1000)).shares[0].server == "three"
    fleet = Fleet.from_bytes(before)
    assert bid_for(fleet, Job("one", 0, mgpu=1000)).shares[0].server == "pair"


def test_the_same_operations_give_the_same_places() -> None:
    seen = []
    for _ in range(2):
        rng, places = np.random.default_rng(5), []
        fleet = small_fleet(rng)
        for number in range(200):
            random_operation(rng, fleet, number)
            places.append({name: fleet.shares(name) for name in fleet.running()})
        seen.append(places)
    assert seen[0] == seen[1]


def test_losses_that_are_kept_are_those_that_are_computed() -> None:
    """With two slots for twenty requests, most are computed anew; with 62, hardly any."""
    answers = []
    for slots in (2, 62):
        rng = np.random.default_rng(11)
        fleet = Fleet([server(f"s{n}", 4) for n in range(12)], tiers=(0, 1), sampling=FillSampling(slots=slots))
        kinds = [replace(new_job(rng, f"k{n}"), tier=1, gpu_types=None, datasets=()) for n in range(20)]
        places: list[object] = []
        for number in range(300):
            answer = fleet.place(replace(kinds[int(rng.integers(20))], name=f"j{number}"))
            if isinstance(answer, Bid):
                fleet.commit(answer)
                places.append(answer.shares)
            if len(fleet.running()) > 15:
                fleet.release(str(rng.choice(fleet.running())))
        answers.append(places)
    assert answers[0] == answers[1]
    assert len(answers[0]) > 100


def test_in_a_round_a_job_sees_the_room_of_its_tier() -> None:
    fleet = Fleet([server("a", 2), server("b", 2)], tiers=(0, 1, 2), expected=[Job("x", 1, mgpu=1000)])
    for name in ("first", "second"):
        fleet.commit(bid_for(fleet, Job(name, 2, mgpu=2000, preemptible=True)))
    with fleet.round():
        assert fleet.commit(bid_for(fleet, Job("urgent", 0, mgpu=1000))) == ("first",)
        assert isinstance(fleet.place(Job("late", 2, mgpu=1000)), Refused)
        early = bid_for(fleet, Job("early", 1, mgpu=1000))
        assert (early.victims, early.shares[0].server) == ((), fleet.shares("urgent")[0].server)
    assert bid_for(fleet, Job("late", 2, mgpu=1000)).victims == ()


def test_counts_of_shapes_stay_within_their_bounds_and_fade() -> None:
    sampling = FillSampling(shapes=3, window=64)
    mix = ArrivalMix(sampling)
    for number in range(500):
        mix.add(*shape_of({"a100": 1000 if number % 2 else 1000 * (number % 32)}, 1000, 64, 1, True, 8000))
        assert len(mix.counts) <= sampling.shapes
        assert mix.total <= sampling.window
    frequent, _ = shape_of({"a100": 1000}, 1000, 64, 1, True, 8000)
    assert max(mix.counts, key=lambda shape: mix.counts[shape]) == frequent
    for _ in range(1000):
        mix.add(*shape_of({"h100": 2000}, 0, 0, 1, True, 8000))
    assert frequent not in mix.counts


def test_draws_are_in_proportion_to_gpus_and_a_gang_counts_as_its_servers() -> None:
    mix = ArrivalMix(FillSampling(samples=32, draws=8))
    shape, count = shape_of({"a100": 8000}, 0, 0, 5, True, 8000)
    assert (shape.tasks, count) == (1, 5)
    together, one = shape_of({"a100": 1000}, 0, 0, 4, True, 8000)
    assert (together.tasks, together.mgpu, one) == (4, 4000, 1)
    mix.add(shape, 1)
    mix.add(shape_of({"": 1000}, 7, 9, 1, True, 8000)[0], 8)
    classes = server_classes(np.array([0, 1, 1]), np.array([[4000, 7, 9], [8000, 90, 90], [8000, 90, 90]]))
    sample, demand = mix.draw({"t4": 0, "a100": 1}, classes)
    assert sample.shape == (32, 8, 5)
    large = sample[:, :, 1] == 8000
    assert (large.sum(axis=0) == 16).all()
    assert (sample[large] == [-1, 8000, 0, 0, 1]).all()
    assert (sample[~large] == [1000, 1000, 7, 9, 1]).all()
    half = 16 * 10 * DEFAULT_SAMPLING.scarcity_percent
    assert demand.tolist() == [[1000, 1000, 7, 9, 1, half], [-1, 8000, 0, 0, 1, round(half * (20 / 16) ** 2)]]


def test_another_placement_is_refused() -> None:
    with pytest.raises(UsageError, match="best-fit"):
        Fleet([server("s", 1)], placement="worst-fit")
    with pytest.raises(UsageError, match="collection of Job"):
        Fleet([server("s", 1)], expected=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"samples": 0}, "sampling.samples is 0; expected a whole number from 1 to 4096"),
        ({"slots": 63}, "sampling.slots is 63; expected a whole number from 0 to 62"),
        ({"memo": 0}, "sampling.memo is 0"),
        ({"growth_percent": 100}, "sampling.growth_percent is 100"),
        ({"window": 2.5}, "sampling.window is 2.5"),
    ],
)
def test_a_sampling_out_of_range_is_refused(changed: dict[str, Any], words: str) -> None:
    servers = [mast_opt.Server("s1", "eu", "c1", "r1", "a100", 8, 1000, 1000)]
    with pytest.raises(mast_opt.UsageError, match=re.escape(words)):
        mast_opt.Fleet(servers, sampling=mast_opt.FillSampling()._replace(**changed))


def test_every_field_of_a_sampling_has_a_range() -> None:
    assert SAMPLING_RANGES.keys() == set(mast_opt.FillSampling._fields)
    assert all(
        least <= value <= most for value, (least, most) in zip(mast_opt.FillSampling(), SAMPLING_RANGES.values())
    )


def spoilt_by_best_fit() -> dict[str, tuple[list[Server], list[Job], Job, Job]]:
    """What counts → servers, jobs that run already, the job that is expected, and one that comes; best fit gives the
    latter the only place of the former."""
    small, wide = server("a", 1), server("b", 3)
    part = replace(server("a", 1), cpu_mcores=1000)
    one = Job("one", 0, mgpu=1000)
    return {
        "cores": ([small, replace(wide, cpu_mcores=8000)], [], replace(one, cpu_mcores=64_000), one),
        "memory": ([small, replace(wide, memory_mib=8000)], [], replace(one, memory_mib=65_536), one),
        "types": ([small, replace(wide, gpu_type="t4")], [], replace(one, gpu_types={"a100": 1000}), one),
        "fractions": (
            [part, server("b", 1)],
            [Job("r", 0, mgpu=300, cpu_mcores=1000), Job("s", 0, mgpu=200, cpu_mcores=2000)],
            replace(one, mgpu=700),
            replace(one, mgpu=100),
        ),
        "gangs": ([server("a", 4), server("b", 6)], [], replace(one, tasks=4, within="server"), one),
        "racks": ([server("a", 4), server("b", 6)], [], replace(one, tasks=2, mgpu=4000, within="rack"), one),
    }


@pytest.mark.parametrize("what", spoilt_by_best_fit())
def test_all_that_a_job_needs_counts_in_the_mix(what: str) -> None:
    servers, running, expected, job = spoilt_by_best_fit()[what]
    taken = {}
    for placement in ("fragmentation", "best-fit"):
        fleet = Fleet(servers, tiers=(0,), placement=placement, expected=[expected])
        for one in running:
            fleet.commit(bid_for(fleet, one))
        taken[placement] = bid_for(fleet, job).shares[0].server
    assert taken == {"fragmentation": "b", "best-fit": "a"}


@pytest.mark.parametrize("placement", ["fragmentation", "best-fit"])
def test_the_first_of_all_bids_is_that_of_place(placement: str) -> None:
    """In random states, with losses of value that differ between regions."""
    rng, several = np.random.default_rng(6), 0
    fleet = small_fleet(rng) if placement == "fragmentation" else tight_fleet(rng)
    for number in range(250):
        random_operation(rng, fleet, number)
        job = new_job(rng, f"asked{number}")
        bids, answer = fleet.bids(job), fleet.place(job)
        assert bids[:1] == ((answer,) if isinstance(answer, Bid) else ())
        assert [bid.key for bid in bids[1:]] == sorted(bid.key for bid in bids[1:])
        assert len({bid.region for bid in bids}) == len(bids)
        several += len(bids) > 1
    assert several > 20


def tight_fleet(rng: np.random.Generator) -> Fleet:
    return Fleet((new_server(rng, f"s{n}") for n in range(12)), tiers=(0, 1, 2), placement="best-fit")
