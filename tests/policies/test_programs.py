"""Policies that solve a program: the known answers of the papers and their code, on two backends."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import Status
from mast_opt.live.policies import allox, gandiva, gandiva_fair, gavel, pollux, sia, singularity, synergy, themis
from mast_opt.live.policies.goodput import Goodput
from tests.narrowing import some
from tests.policies.inputs import FAIR, JOB, POINTS, RATES, T0, T1
from tests.policies.test_matchings import GAVEL, TWO_MACHINES, four_jobs

SOLVERS = pytest.mark.parametrize("solver", ["highs", "scip"])
TWO = gavel.Jobs(np.array([T0, T1]), steps=np.array([300.0, 500.0]))


@SOLVERS
def test_gavel_max_min(solver: str) -> None:
    one_each = gavel.solve(TWO, [1, 1, 1], "las", solver=solver)
    assert one_each.status is Status.OPTIMAL
    assert one_each.objective == pytest.approx(24 / 19)
    assert one_each.rate == pytest.approx([28 / 19, 48 / 19])
    more = gavel.solve(TWO, [1, 2, 3], "las", solver=solver)
    assert more.objective == pytest.approx(48 / 31)
    assert more.rate == pytest.approx([44 / 31, 80 / 31])
    share = some(more.share)
    assert share.sum(axis=1).max() <= 1 + 1e-9
    assert (share.sum(axis=0) <= np.array([1, 2, 3]) + 1e-9).all()
    assert (share * TWO.rate).sum(axis=1) == pytest.approx(more.rate)


@SOLVERS
def test_gavel_finish_time_fairness_in_two_rounds(solver: str) -> None:
    first = gavel.solve(TWO, [1, 2, 3], "ftf", solver=solver)
    assert first.rate == pytest.approx([44 / 31, 80 / 31], rel=1e-5)
    later = gavel.Jobs(TWO.rate, steps=np.array([200.0, 300.0]), fair_elapsed_s=np.array([1200 / 11, 120.0]))
    assert gavel.solve(later, [1, 2, 3], "ftf", solver=solver).rate == pytest.approx([1.517241, 2.482759], rel=1e-5)


@SOLVERS
@pytest.mark.parametrize("gpus", [[1, 1, 1], [1, 2, 3]])
def test_gavel_makespan_is_exact(solver: str, gpus: list[int]) -> None:
    found = gavel.solve(TWO, gpus, "makespan", solver=solver)
    assert found.objective == pytest.approx(200)
    assert found.rate == pytest.approx([1.5, 2.5])


@SOLVERS
@pytest.mark.parametrize("deadline", [None, [1000.0, np.inf]])
def test_gavel_rate_per_cost(solver: str, deadline: list[float] | None) -> None:
    limit = None if deadline is None else np.array(deadline)
    jobs = gavel.Jobs(TWO.rate, steps=np.array([100.0, 500.0]), deadline_s=limit)
    found = gavel.solve(jobs, [1, 1, 1], "cost", price=[3.1, 2, 0.8], solver=solver)
    assert found.objective == pytest.approx(1.8951613)
    assert found.share == pytest.approx(np.array([[1, 0, 0], [0, 0, 1]]), abs=1e-9)


@SOLVERS
def test_gavel_throughput_and_packing(solver: str) -> None:
    assert gavel.solve(TWO, [1, 1, 1], "throughput", solver=solver).objective == pytest.approx(4)
    pair = gavel.Pairs(np.array([[0, 1]]), np.array([[T0, T1]]))
    found = gavel.solve(gavel.Jobs(TWO.rate, pairs=pair), [1, 1, 1], "las", solver=solver)
    assert found.objective == pytest.approx(1.5)
    assert some(found.pair_share).sum() > 0.9
    assert some(found.rate)[1] == pytest.approx(3)


@SOLVERS
def test_gavel_hierarchy_shares_by_entity(solver: str) -> None:
    """Entities of weights 1 and 2 on three equal GPUs; the second has one job, and can use no more than its GPU."""
    jobs = gavel.Jobs(np.ones((4, 1)), entity=np.array([0, 0, 0, 1]), entity_weight=np.array([1.0, 2.0]))
    found = gavel.solve(jobs, [3], "hierarchical", solver=solver)
    assert found.rate == pytest.approx([2 / 3, 2 / 3, 2 / 3, 1], abs=1e-6)
    fifo = gavel.Jobs(
        np.ones((3, 1)), entity=np.zeros(3, np.int64), entity_weight=np.ones(1), submitted_s=np.array([5.0, 1.0, 3.0])
    )
    assert gavel.solve(fifo, [2], "hierarchical", inside="fifo", solver=solver).rate == pytest.approx(
        [0, 1, 1], abs=1e-6
    )


@SOLVERS
@pytest.mark.parametrize(
    ("rate", "fair", "proof"),
    [
        ([[3, 1, 1], [3, 2, 1], [3, 2, 1]], (1.765, 2.118, 2.118), (1.280, 1.333, 1.333)),
        ([[3, 2, 0.9], [3, 2, 1.1], [3, 2, 1.1]], (1.988, 2.055, 2.055), (1.345, 1.345, 1.345)),
        ([[2.5, 2, 1], [3, 2, 1], [3, 2, 1]], (1.886, 2.057, 2.057), (1.28, 1.333, 1.333)),
        (
            [[0.65, 0.199, 0.027], [0.589, 0.545, 0.22], [0.809, 0.806, 0.006]],
            (0.322, 0.499, 0.597),
            (0.263, 0.238, 0.353),
        ),
    ],
)
def test_gavel_strategy_proof_table(
    solver: str, rate: list[list[float]], fair: tuple[float, ...], proof: tuple[float, ...]
) -> None:
    """The published figures are three digits of an inexact solution."""
    jobs = gavel.Jobs(np.array(rate))
    assert gavel.solve(jobs, [1, 1, 1], "las", solver=solver).rate == pytest.approx(fair, abs=1e-3)
    assert gavel.solve(jobs, [1, 1, 1], "strategy-proof", solver=solver).rate == pytest.approx(proof, abs=1e-3)


@SOLVERS
def test_allox_as_a_program(solver: str) -> None:
    assert allox.tables(TWO_MACHINES).solve(solver).objective == pytest.approx(38)
    assert allox.tables(GAVEL).solve(solver).objective == pytest.approx(1150)


@SOLVERS
def test_gandiva_as_a_program(solver: str) -> None:
    found = gandiva.tables(four_jobs(), 2).solve(solver)
    assert found.objective == pytest.approx(3.0)
    assert some(found.rate).sum() == pytest.approx(gandiva.solve(four_jobs(), 2).worth)


@SOLVERS
def test_gandiva_fair_trades_fast_for_slow(solver: str) -> None:
    trade = gandiva_fair.solve([[2, 1], [5, 1]], [4, 4], solver=solver)
    assert some(trade.fair_value) == pytest.approx([6, 12])
    assert some(trade.gpus) == pytest.approx(np.array([[1, 4], [3, 0]]), abs=1e-6)
    assert trade.total == pytest.approx(21)
    price = some(trade.gpu_price)
    assert price[0] / price[1] == pytest.approx(2)
    assert trade.share_price == pytest.approx([1.5, 0], abs=1e-6)


@SOLVERS
def test_themis_has_the_known_auction(solver: str) -> None:
    found = themis.solve([[0, 0.25, 0.5, 0.75, 1], [0, 0.5, 0.6, 0.65, 0.7]], 4, solver=solver)
    assert some(found.gpus).tolist() == [3, 1]
    assert found.product == pytest.approx(0.375)
    assert found.kept == pytest.approx([0.5 / 0.7, 0.75], abs=1e-6)
    assert found.entitled == pytest.approx([2.142857, 0.75], abs=1e-5)


@SOLVERS
@pytest.mark.parametrize(
    ("copies", "whole", "total"), [(1, True, 1.6), (1, False, 1.7), (4, True, 6.6), (4, False, 6.8)]
)
def test_synergy_points(solver: str, copies: int, whole: bool, total: float) -> None:
    rate = np.repeat(RATES, copies, axis=0)
    found = synergy.solve(rate, POINTS, [FAIR] * 2 * copies, [6 * copies], whole=whole, solver=solver)
    assert found.total_rate == pytest.approx(total)
    assert (some(found.rate) >= rate[:, FAIR] - 1e-9).all()
    assert found.split == 0 if whole else some(found.split) >= 1


@SOLVERS
def test_synergy_spreads_jobs_and_rounds(solver: str) -> None:
    need = np.array([[2.0, 3.0]] * 3 + [[1.0, 5.0]] * 3)
    room = np.array([[4.0, 8.0], [5.0, 16.0]])
    found = synergy.place(need, room, solver=solver)
    assert some(found.split) <= 3 * len(room)
    used = np.zeros(room.shape)
    np.add.at(used, some(found.server), need)
    assert np.clip(used - room, 0, None) == pytest.approx(some(found.overuse), abs=1e-6)
    assert synergy.place(need * 2, room, solver=solver).server is None


@SOLVERS
@pytest.mark.parametrize(
    ("jobs", "total", "harmonic"), [(2, 3.456677, 1.728339), (3, 3.728339, 1.163426), (4, 4.0, 1.0)]
)
def test_pollux_on_two_nodes_of_two(solver: str, jobs: int, total: float, harmonic: float) -> None:
    speedup = pollux.speedups([JOB] * jobs, 2, 2)
    found = pollux.solve(speedup, 2, 2, solver=solver)
    assert found.objective == pytest.approx(total, abs=1e-6)
    assert some(found.speedup).sum() == pytest.approx(total, abs=1e-6)
    assert some(found.on_node).sum(axis=0).tolist() == [2, 2]
    fair = pollux.solve(speedup, 2, 2, objective="harmonic", solver=solver)
    assert fair.objective == pytest.approx(harmonic, abs=1e-6)
    assert some(fair.bound) >= some(fair.objective) - 1e-9


def test_pollux_does_not_restart_jobs_for_little() -> None:
    speedup = np.array([[1, 1.9, 2.0], [1, 1.8, 2.5]])
    assert some(pollux.solve(speedup, 2, 2).gpus).tolist() == [2, 2]
    kept = pollux.solve(speedup, 2, 2, current=[1, 1], factor=0.5)
    assert some(kept.gpus).tolist() == [1, 1]
    assert kept.objective == pytest.approx(2)


@SOLVERS
@pytest.mark.parametrize("power", [-0.5, -1.0, 0.5])
def test_sia_agrees_with_brute_force(solver: str, power: float) -> None:
    rng = np.random.default_rng(4)
    size, kind, supply = np.array([1, 2, 1, 2]), np.array([0, 0, 1, 1]), np.array([3, 2])
    goodput = rng.uniform(1, 4, (3, 4))
    goodput[0, 2:] = 0
    worth = sia.normalised(goodput, size)
    current, factor = np.array([1, -1, 0]), 0.8
    values = []
    for choice in np.ndindex(5, 5, 5):
        used, total = np.zeros(2), 0.0
        for job, at in enumerate(choice):
            if at == 4:
                total += 1.1 if power < 0 else -1.1
                continue
            used[kind[at]] += size[at]
            moved = current[job] >= 0 and current[job] != at
            value = worth[job, at] * (factor if moved else 1)
            total += value**power if value else np.nan
        if (used <= supply).all() and not np.isnan(total):
            values.append(total)
    best = min(values) if power < 0 else max(values)
    found = sia.solve(goodput, size, kind, supply, power=power, current=current, factor=factor, solver=solver)
    assert found.objective == pytest.approx(best, abs=1e-6)
    assert len(some(found.configuration)) == 3


@SOLVERS
def test_singularity_keeps_service_levels(solver: str) -> None:
    asked = {"weight": [3, 2, 1], "guaranteed": [0.95, 0.7, 0.0], "solver": solver}
    found = singularity.solve([8, 8, 4], 14, **asked)  # type: ignore[arg-type]
    assert found.objective == pytest.approx(36)
    assert found.gpus == pytest.approx([8, 6, 0], abs=1e-6)
    assert sum(gpus * part for gpus, part in some(found.share)[1]) == pytest.approx(6)
    none = singularity.solve([8, 8, 4], 12, **asked)  # type: ignore[arg-type]
    assert none.status is Status.INFEASIBLE
    assert none.gpus is None


def test_singularity_with_one_size_each() -> None:
    found = singularity.solve([8, 8, 4], 14, weight=[3, 2, 1], whole=True)
    assert found.gpus == pytest.approx([8, 4, 2])
    taking_turns = singularity.solve([8], 4, overhead=0.1, whole=True)
    assert taking_turns.gpus == pytest.approx([4 * 0.9])


@pytest.mark.parametrize(
    ("capacity", "guaranteed", "gpus"),
    [
        (16, 0.7, [4, 4, 4, 4]),  # what they ask for
        (15, 0.7, [4, 4, 4, 2]),  # the later one of the least important tier shrinks first
        (11, 0.7, [4, 4, 2, 1]),
        (10, 0.7, [4, 4, 1, 1]),
        (4, 0.7, [4, 4, 1, 1]),  # tier 1 would be below its guarantee with half of its GPUs
        (4, 0.5, [4, 2, 1, 1]),
        (23, 0.7, [8, 4, 4, 4]),  # the most important tier grows first
        (28, 0.7, [8, 8, 8, 4]),  # the smallest job of a tier, the earlier one first
        (99, 0.7, [8, 8, 8, 8]),
    ],
)
def test_singularity_shrinks_the_least_important_first(capacity: int, guaranteed: float, gpus: list[int]) -> None:
    need = np.tile([1.0, 2.0, 4.0, 8.0, 16.0], 4)
    rate = np.tile([1.0, 2.0, 4.0, 6.0, 6.0], 4)  # with 16 GPUs a job is no faster than with 8
    job, asked = np.repeat(np.arange(4), 5), np.arange(4) * 5 + 2
    floor = np.array([0.95, guaranteed, 0.0, 0.0])
    size = singularity.fitted(job, need, rate, asked, np.array([0, 1, 2, 2]), floor, capacity)
    assert need[size].tolist() == gpus


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: gavel.solve(TWO, [1, 1, 1], "best"), UsageError, "las, ftf, makespan"),
        (lambda: gavel.solve(gavel.Jobs(TWO.rate), [1, 1, 1], "makespan"), UsageError, "needs the steps"),
        (lambda: gavel.solve(TWO, [1, 1, 1], "cost"), UsageError, "expected a price"),
        (lambda: gavel.solve(TWO, [1, 1]), UsageError, "gpus has shape"),
        (lambda: gavel.solve(gavel.Jobs(np.array([[1.0], [0.0]])), [1]), UsageError, r"rate\[1\] is 0 on every type"),
        (lambda: gavel.Jobs(TWO.rate, entity=np.array([0, 2]), entity_weight=np.ones(2)), UsageError, "entity is"),
        (
            lambda: gavel.Jobs(TWO.rate, gang=np.array([1.0, 2.0]), pairs=gavel.Pairs([[0, 1]], [[T0, T1]])),  # type: ignore[arg-type]
            UsageError,
            "equal gangs",
        ),
        (lambda: pollux.solve([[1, 1, 1]], 2, 2, objective="mean"), UsageError, "sum, harmonic"),
        (lambda: sia.solve([[0, 0]], [1, 1], [0, 0], [1]), UsageError, r"goodput\[0\] is 0 everywhere"),
        (lambda: sia.solve([[1]], [1], [1], [1]), UsageError, "position of a GPU type"),
        (lambda: sia.solve([[1]], [1], [0], [1], power=0), UsageError, "power is 0"),
        (lambda: singularity.solve([1.5], 4), UsageError, "whole numbers of GPUs"),
        (lambda: singularity.solve([2], 4, guaranteed=[1.5]), UsageError, "fractions from 0 to 1"),
        (lambda: themis.worst_off([1.0], 1.0), UsageError, "fairness is 1"),
        (lambda: Goodput(1, 1, (0, 0), (0, 0), 1, 1, 1, 4, 2), UsageError, "batches go from"),
    ],
)
def test_wrong_input_is_named(call: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()  # type: ignore[operator]
