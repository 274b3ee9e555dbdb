"""Second chances: nobody ahead in the queue loses a place, the objective never rises, and refused gangs do get in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.entities import Clusters, Racks, Servers
from mast_opt.problems.job_placement.exhaustive.batch import admit_in_order, exhaustively
from mast_opt.problems.job_placement.exhaustive.batch_state import BatchState, batch_state_of
from mast_opt.problems.job_placement.exhaustive.objective import term_prices_of
from mast_opt.problems.job_placement.exhaustive.params import ExhaustiveParams
from mast_opt.problems.job_placement.exhaustive.solver import ejection_chains
from mast_opt.problems.job_placement.generate import FAMILIES
from mast_opt.problems.job_placement.generate.blank import GeneratedFleet, Pending, Running, assemble, labels
from mast_opt.problems.job_placement.verification.verifier import verify
from mast_opt.problems.search.interface import SearchMonitor, StoppingCriteria
from tests.job_placement.strategies import problems


def twice(problem: JobPlacement, params: ExhaustiveParams | None = None) -> tuple[BatchState, BatchState]:
    """The batch after the first pass, and after second chances."""
    batch, watch = batch_state_of(problem), SearchMonitor(StoppingCriteria())
    admit_in_order(batch, problem.order, watch, exhaustively())
    return batch, ejection_chains(batch.copy(), problem.order, watch, params or ExhaustiveParams())


def in_queue(problem: JobPlacement, batch: BatchState) -> list[bool]:
    """For each place in the queue, whether that job is admitted."""
    return [j in batch.placed for j in problem.order.tolist()]


def value(problem: JobPlacement, batch: BatchState) -> float:
    return batch.value(term_prices_of(problem, batch.layout))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems())
def test_the_queue_is_respected_and_the_plan_is_sound(problem: JobPlacement) -> None:
    first, second = twice(problem)
    assert in_queue(problem, second) >= in_queue(problem, first)
    assert value(problem, second) <= value(problem, first) + 1e-9
    assert verify(problem, second.plan()).ok


@pytest.mark.parametrize("family", ["study", "shared-gpus", "features"])
def test_some_get_in_and_nobody_ahead_of_them_is_out(family: str) -> None:
    better = 0
    for seed in range(8):
        problem = FAMILIES[family].generate(np.random.default_rng(seed), servers=4)
        first, second = twice(problem)
        before, after = in_queue(problem, first), in_queue(problem, second)
        assert after >= before
        better += after > before
        assert value(problem, second) <= value(problem, first) + 1e-9
        verdict = verify(problem, second.plan())
        assert verdict.ok
        assert verdict.objective == pytest.approx(value(problem, second), rel=1e-9, abs=1e-9)
    assert better >= 2


def test_a_job_moves_so_that_one_that_fits_nowhere_else_gets_in() -> None:
    """The first job takes either type and gets the a100, by name; the second takes nothing else."""
    fleet = GeneratedFleet(
        regions=("r",),
        gpu_types=("a100", "h100"),
        clusters=Clusters(("a", "b"), np.array([0, 0])),
        racks=Racks(("a1", "b1"), np.array([0, 1])),
        servers=Servers(
            labels("s", 2), np.array([0, 1]), np.array([0, 1]), np.array([[1000, 8000, 8192], [1000, 8000, 8192]])
        ),
    )
    waiting = Pending(
        tier=np.array([0, 0]),
        tasks=np.array([1, 1]),
        mgpu=np.array([1000, 1000]),
        mcores=np.array([1000, 1000]),
        mib=np.array([1024, 1024]),
        value_milli=np.array([1000, 1000]),
        options=(np.array([0, 0, 1]), np.array([0, 1, 0])),
    )
    first, second = twice(assemble("two", fleet, Running(), waiting))
    assert sorted(first.placed) == [0]
    assert sorted(second.placed) == [0, 1]
    assert second.plan().server.tolist() == [1, 0]


def traps(count: int) -> JobPlacement:
    """A job of two GPUs is refused. On servers of two GPUs it would push out a job ahead of it, and one behind it that
    is worth more; the server after them has a large job, which may move to the other cluster."""
    gpus = [*[2] * count, 5, 4]
    fleet = GeneratedFleet(
        regions=("r",),
        gpu_types=("a100", "h100"),
        clusters=Clusters(("a", "b"), np.array([0, 0])),
        racks=Racks(("a1", "b1"), np.array([0, 1])),
        servers=Servers(
            labels("s", count + 2),
            np.array([*[0] * (count + 1), 1]),
            np.array([*[0] * (count + 1), 1]),
            np.array([[1000 * n, 8000, 8192] for n in gpus]),
        ),
    )
    jobs = 2 * count + 2
    waiting = Pending(
        tier=np.zeros(jobs, np.int64),
        tasks=np.ones(jobs, np.int64),
        mgpu=1000 * np.array([*[1] * count, 4, 2, *[1] * count]),
        mcores=np.full(jobs, 100),
        mib=np.array([*[5000] * count, *[64] * (count + 2)]),
        value_milli=1000 * np.array([*[1] * count, 4, 2, *[3] * count]),
        options=(np.insert(np.arange(jobs), count, count), np.insert(np.zeros(jobs, np.int64), count + 1, 1)),
    )
    return assemble("traps", fleet, Running(), waiting)


@pytest.mark.parametrize(("spare", "admitted"), [(0, False), (1, False), (2, True)])
def test_a_chain_without_gain_is_followed_by_one_that_leaves_the_loser_alone(spare: int, admitted: bool) -> None:
    """Three chains push out a job that is worth more; the fourth succeeds. Two of them are the job's own."""
    problem = traps(3)
    first, second = twice(problem, ExhaustiveParams(chain_tries=0, chain_spare=spare))
    assert problem.order.tolist() == list(range(8))
    assert sorted(first.placed) == [0, 1, 2, 3, 5, 6, 7]
    assert (4 in second.placed) == admitted
    assert len(second.placed) == 7 + admitted
    assert verify(problem, second.plan()).ok


def test_a_job_that_is_pushed_out_takes_the_cheapest_of_equal_places() -> None:
    """Second chances that ignore the price end with a worse objective on these batches."""
    cheaper = []
    for seed in range(6):
        problem = FAMILIES["features"].generate(np.random.default_rng(seed), **FAMILIES["features"].sizes)
        watch = SearchMonitor(StoppingCriteria())
        batch = batch_state_of(problem)
        admit_in_order(batch, problem.order, watch, exhaustively())
        blind = batch.copy()
        blind.group_prices = dict.fromkeys(range(len(problem.jobs)))
        prices = term_prices_of(problem, batch.layout)
        found = [ejection_chains(one, problem.order, watch, ExhaustiveParams()).value(prices) for one in (batch, blind)]
        cheaper.append(found[0] < found[1] - 1e-9)
        assert found[0] <= found[1] + 1e-9
    assert any(cheaper)
