"""Gangs packed as if only GPUs counted: the cheapest of all packings where the beam is wide enough to hold them all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.problem import Bools, Ints
from mast_opt.problems.data_placement.tetris.annealing.beam_packing import largest_first, pack
from mast_opt.problems.data_placement.tetris.annealing.multistart import RestartGenerator
from mast_opt.problems.data_placement.tetris.annealing.params import MultistartParams
from mast_opt.problems.data_placement.tetris.incumbent import Assignment, decisions
from mast_opt.problems.data_placement.tetris.initial_solution import feasible_replicas, first_state
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays, arrays_of
from mast_opt.problems.data_placement.tetris.state import TetrisState, cost, state_of
from tests.data_placement.support import made

WIDE = 5_000
PARAMS = MultistartParams()
REPACKED = (None, 1.0, PARAMS.repacked, 0.0)
"""Share of the gangs that the coolings pack again, in turn; None: a cooling without packing."""


def gpus_alone(problem: DataPlacement, peak: float = 1.0, overload: float = 3.0, idle: float = 0.5) -> TetrisArrays:
    weights = dict.fromkeys(problem.objective.weights, 0.0)
    priced = arrays_of(problem, weights | {"peak": peak, "overload": overload, "idle": idle})
    return priced._replace(remote_price=0.0)  # has one where remote reads are forbidden


def without(a: TetrisArrays, gangs: Ints) -> TetrisState:
    """The first state with these gangs left out."""
    s = first_state(a, False, 1)
    region = s.region.copy()
    region[gangs] = len(a.cpu)
    return state_of(a, s.option, region, s.place, 1)


def packed(a: TetrisArrays, others: TetrisState, gangs: Ints, option: Ints, region: Ints) -> TetrisState:
    """The state with the gangs there."""
    options, regions = others.option.copy(), others.region.copy()
    options[gangs], regions[gangs] = option, region
    return state_of(a, options, regions, others.place, 1)


def costs_more(a: TetrisArrays, others: TetrisState, gangs: Ints, option: Ints, region: Ints) -> float:
    """What a packing adds to the cost, computed afresh."""
    return cost(a, packed(a, others, gangs, option, region)) - cost(a, others)


def ways_of(a: TetrisArrays, others: TetrisState, gangs: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Options and regions of each way of packing the gangs within cores."""
    options = [range(a.option_start[w], a.option_start[w + 1]) for w in gangs]
    choices = [[(o, r) for o in mine for r in range(len(a.cpu)) if a.option_region[o, r]] for mine in options]
    for packing in product(*choices):
        option, region = np.array(packing, np.int64).T
        if (packed(a, others, gangs, option, region).cpu <= a.cpu).all():
            yield option, region


@pytest.mark.parametrize("seed", [0, 1, 3, 4, 5])
@pytest.mark.parametrize("even", [0.0, 0.05])
def test_a_wide_beam_holds_the_cheapest_of_all_packings(seed: int, even: float) -> None:
    a = gpus_alone(made("standard", seed=seed, datasets=6, workloads=10, regions=3))
    gangs = largest_first(a)[:5]
    others = without(a, gangs)
    all_costs = [costs_more(a, others, gangs, *way) for way in ways_of(a, others, gangs)]
    assert len(set(np.round(all_costs, 9))) > 10
    packings = pack(a, others, gangs, WIDE, even, 0.0, np.array([seed + 1], np.uint64))
    assert packings.cost.min() == pytest.approx(min(all_costs), abs=1e-9)
    assert packings.cost.max() <= max(all_costs) + 1e-9


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("weights", [(1.0, 3.0, 0.5), (0.0, 3.0, 0.0), (0.0, 0.0, 1.0)])
def test_a_narrow_beam_holds_the_cheapest_even_where_many_cost_the_same(
    seed: int, weights: tuple[float, float, float]
) -> None:
    """All ways of the first gang fit into it, and then the cheapest of all ways of two, one for each demand."""
    a = gpus_alone(made("standard", seed=seed, datasets=6, workloads=14, regions=4), *weights)
    gangs = largest_first(a)[:2]
    others = without(a, gangs)
    cheapest: dict[bytes, float] = {}
    for option, region in ways_of(a, others, gangs):
        demand = packed(a, others, gangs, option, region).demand.tobytes()
        cheapest[demand] = costs_more(a, others, gangs, option, region)
    first = int(a.option_region[a.option_start[gangs[0]] : a.option_start[gangs[0] + 1], :-1].sum())
    for width in range(first, len(cheapest) + 1):
        packings = pack(a, others, gangs, width, 0.0, 0.0, np.array([1], np.uint64))
        assert np.sort(packings.cost) == pytest.approx(sorted(cheapest.values())[:width], abs=1e-9)


@pytest.mark.parametrize("family", ["standard", "weakly-coupled", "tight-storage"])
@pytest.mark.parametrize(("width", "noise"), [(1, 0.0), (40, 0.0), (40, 0.3)])
def test_packings_cost_what_they_say_and_differ_in_demand(family: str, width: int, noise: float) -> None:
    a = gpus_alone(made(family, seed=3, datasets=20, workloads=30, regions=4))
    gangs = largest_first(a)
    others = without(a, gangs)
    packings = pack(a, others, gangs, width, 0.01, noise, np.array([7], np.uint64))
    assert len(packings.cost) == width
    demands = set()
    for option, region, says in zip(packings.option, packings.region, packings.cost):
        assert costs_more(a, others, gangs, option, region) == pytest.approx(says, abs=1e-9)
        after = packed(a, others, gangs, option, region)
        assert (after.cpu <= a.cpu).all()
        assert a.option_region[option, region].all()
        demands.add(after.demand.tobytes())
    assert len(demands) == width


def test_noise_is_drawn_from_the_given_generator() -> None:
    a = gpus_alone(made("standard", seed=1, datasets=20, workloads=30, regions=4))
    gangs = largest_first(a)
    others = without(a, gangs)

    def regions(seed: int, noise: float) -> bytes:
        return pack(a, others, gangs, 20, 0.01, noise, np.array([seed], np.uint64)).region.tobytes()

    assert regions(1, 0.5) == regions(1, 0.5) != regions(2, 0.5)
    assert regions(1, 0.0) == regions(2, 0.0) != regions(1, 0.5)


def test_a_gang_without_room_is_packed_in_none() -> None:
    problem = made("standard", seed=1, datasets=6, workloads=10, regions=3)
    need = problem.workloads.cpu_mcores.copy()
    a = gpus_alone(problem)
    gangs = largest_first(a)
    need[gangs[1]] = problem.regions.cpu_mcores.max() + 1
    a = gpus_alone(replace(problem, workloads=replace(problem.workloads, cpu_mcores=need)))
    packings = pack(a, without(a, gangs), gangs, 10, 0.01, 0.0, np.array([1], np.uint64))
    assert (packings.region[:, 1] == -1).all()
    assert (np.delete(packings.region, 1, axis=1) >= 0).all()


def test_packings_keep_quotas() -> None:
    """All gangs are of one application, which may have cores for the largest of them only in the first region."""
    problem = made("standard", seed=2, datasets=6, workloads=10, regions=3)
    gangs = largest_first(gpus_alone(problem))
    need = np.full(len(problem.workloads), 1_000)
    limited = problem.with_columns(
        {
            "apps": ("a",),
            "workloads.app": np.zeros(len(need), np.int64),
            "workloads.cpu_mcores": need,
            "cpu_quotas.app": np.zeros(1, np.int64),
            "cpu_quotas.region": np.zeros(1, np.int64),
            "cpu_quotas.cpu_mcores": np.array([1_500]),
        }
    )
    a = gpus_alone(limited)
    empty = state_of(a, a.option_start[:-1].copy(), np.full(len(need), 3), feasible_replicas(a), 1)
    packings = pack(a, empty, gangs, 50, 0.01, 0.0, np.array([1], np.uint64))
    assert ((packings.region == 0).sum(axis=1) <= 1).all()
    assert ((packings.region == 0).sum(axis=1) == 1).any()


def moved(a: TetrisArrays, before: Assignment, after: Assignment) -> Bools:
    """[G] which gangs are elsewhere or on another option."""
    gangs = largest_first(a)
    changed: Bools = (before.region[gangs] != after.region[gangs]) | (before.option[gangs] != after.option[gangs])
    return changed


def test_restarts_hold_the_gangs_of_the_best_plan_that_are_not_packed_again() -> None:
    problem = made("standard", seed=4, datasets=30, workloads=45, regions=5)
    a = arrays_of(problem, dict(problem.objective.weights))
    best = decisions(first_state(a, False, 1))
    restarts = RestartGenerator(a, best, False, 0.2, 1.0, PARAMS)
    today = feasible_replicas(a)
    changed: dict[float | None, list[float]] = {share: [] for share in REPACKED}
    stays: dict[bool, list[float]] = {True: [], False: []}
    for number, share in enumerate(20 * REPACKED):
        begun, times = restarts.begin(number, best, np.random.default_rng(number))
        assert times in PARAMS.unpacked if share is None else times == PARAMS.packed
        assert (begun.region < 5).all()
        changed[share].append(float(moved(a, best, begun).mean()))
        stays[times == PARAMS.unpacked[PARAMS.scattered]].append(today[begun.place].mean())
    assert max(stays[True]) < min(stays[False])
    assert max(changed[0.0]) == 0.0
    assert 0.0 < np.mean(changed[0.2]) < np.mean(changed[1.0])
    unpacked = [number for number, share in enumerate(8 * REPACKED) if share is None]
    begun_from = [restarts.begin(number, best, np.random.default_rng(1))[0] for number in unpacked]
    assert sum(begun is best for begun in begun_from) == len(unpacked) * (len(PARAMS.unpacked) - 1) // len(
        PARAMS.unpacked
    )


def test_restarts_without_a_plan_yet_pack_all_gangs() -> None:
    problem = made("standard", seed=4, datasets=30, workloads=45, regions=5)
    a = arrays_of(problem, dict(problem.objective.weights))
    first = decisions(first_state(a, False, 1))
    restarts = RestartGenerator(a, first, False, 0.2, 1.0, PARAMS)
    for number, share in enumerate(REPACKED):
        begun, _ = restarts.begin(number, None, np.random.default_rng(1))
        again, _ = restarts.begin(number, None, np.random.default_rng(1))
        assert (begun.region == again.region).all()
        assert moved(a, first, begun).any() == (share is not None)


def test_restarts_without_gangs_take_turns_too() -> None:
    problem = made("standard", seed=4, datasets=12, workloads=18, regions=3)
    a = arrays_of(problem, dict(problem.objective.weights))
    a = a._replace(option_mgpu=np.zeros_like(a.option_mgpu))
    first = decisions(first_state(a, False, 1))
    restarts = RestartGenerator(a, first, False, 0.2, 1.0, PARAMS)
    assert [restarts.begin(number, first, np.random.default_rng(1))[1] for number in range(4)] == list(PARAMS.unpacked)
