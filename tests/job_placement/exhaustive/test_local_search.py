"""What an insertion is said to cost is what it costs, by the ledger and by the verifier."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.state import VICTIM
from mast_opt.problems.job_placement.engine.state_allocation import copied
from mast_opt.problems.job_placement.exhaustive.batch import admit_in_order, exhaustively
from mast_opt.problems.job_placement.exhaustive.batch_state import BatchState, batch_state_of
from mast_opt.problems.job_placement.exhaustive.objective import term_prices_of
from mast_opt.problems.job_placement.exhaustive.params import ExhaustiveRepairParams
from mast_opt.problems.job_placement.exhaustive.ruin_and_recreate import SCALE, EvictionLocalSearch
from mast_opt.problems.job_placement.generate import FAMILIES
from mast_opt.problems.job_placement.verification.verifier import verify
from mast_opt.problems.search.interface import SearchMonitor, StoppingCriteria
from tests.job_placement.strategies import problems


def lost(problem: JobPlacement, batch: BatchState) -> float:
    """Weighted rejection and preemption, by the verifier."""
    verdict = verify(problem, batch.plan())
    assert verdict.ok, verdict.violations
    weights = problem.objective.weights
    return float(sum(weights[term] * verdict.terms[term] for term in ("rejected", "preemption")))


def assert_ledger_is_that_of_the_plan(problem: JobPlacement, batch: BatchState) -> None:
    """Slacks and totals are those of a ledger into which the plan is booked from the start; which whole GPUs a task
    holds is not part of a plan, so those of a server are added up."""
    again = batch_state_of(problem)
    again.replay(batch.plan())
    assert np.array_equal(batch.state.slack, again.state.slack)
    assert np.array_equal(batch.state.slack_device.sum(axis=1), again.state.slack_device.sum(axis=1))


def check_insertions(problem: JobPlacement) -> int:
    """Fill the fleet in the opposite order of the queue, and try the cheapest insertion of every waiting job; returns
    how many evict something."""
    batch, monitor = batch_state_of(problem), SearchMonitor(StoppingCriteria())
    prices = term_prices_of(problem, batch.layout)
    search = EvictionLocalSearch(problem, prices, ExhaustiveRepairParams())
    unit = float(prices.rejected.sum() + prices.stopped.sum()) / (SCALE * VICTIM)
    admit_in_order(batch, problem.order[::-1], monitor, exhaustively())
    search.set_costs(batch)
    before, evicting = lost(problem, batch), 0
    for j in batch.waiting().tolist():
        before_it = copied(batch.state)
        way = search.evaluate(batch, j)
        fields = batch.state._fields
        assert all(np.array_equal(getattr(batch.state, name), getattr(before_it, name)) for name in fields)
        if way is None:
            continue
        trial = batch.copy()
        evicted = search.apply(trial, way)
        assert evicted is not None
        assert j in trial.placed
        assert len(evicted) + len(trial.stopped - batch.stopped) == len(way.victims)
        assert way.cost == int(batch.state.job[col.J_COST, way.victims].sum())
        by_price = sum(prices.rejected[evicted]) + sum(prices.stopped[v] for v in trial.stopped - batch.stopped)
        rounding = unit * VICTIM * (len(way.victims) + 1)
        assert way.cost * unit == pytest.approx(by_price, abs=2 * rounding)
        assert lost(problem, trial) - before == pytest.approx(by_price - prices.rejected[j], rel=1e-9, abs=1e-9)
        assert trial.value(prices) == pytest.approx(verify(problem, trial.plan()).objective, rel=1e-9, abs=1e-9)
        assert_ledger_is_that_of_the_plan(problem, trial)
        evicting += bool(len(way.victims))
    return evicting


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems())
def test_an_insertion_costs_what_it_is_said_to_cost(problem: JobPlacement) -> None:
    check_insertions(problem)


@pytest.mark.parametrize("family", ["study", "shared-gpus", "features"])
def test_insertions_that_evict_cost_what_they_are_said_to_cost(family: str) -> None:
    assert sum(check_insertions(FAMILIES[family].generate(np.random.default_rng(seed), servers=3)) for seed in (1, 2))
