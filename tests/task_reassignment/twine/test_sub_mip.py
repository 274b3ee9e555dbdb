"""Exact re-optimisation of a few machines: the sub-problem means what the whole problem means."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mast_opt import backends
from mast_opt.search.interface import SearchContext, SearchMonitor, StoppingCriteria
from mast_opt.task_reassignment.generate import FAMILIES
from mast_opt.task_reassignment.plan import Plan
from mast_opt.task_reassignment.problem import TaskReassignment
from mast_opt.task_reassignment.twine.sub_mip import MachineSubMip, subproblem
from mast_opt.task_reassignment.verification.verifier import verify

LOCAL = ("conflict", "capacity")


def drawn(seed: int) -> TaskReassignment:
    return FAMILIES["challenge"].generate(np.random.default_rng(seed), processes=30, machines=6, resources=3)


def shuffled(problem: TaskReassignment, rng: np.random.Generator) -> Plan:
    """Today's assignment with some processes elsewhere, so that homes lie inside and outside."""
    machine = problem.initial.copy()
    movers = rng.choice(len(machine), 8, replace=False)
    machine[movers] = rng.integers(len(problem.machines), size=8)
    return Plan(machine)


@pytest.mark.parametrize("seed", range(4))
def test_limits_and_costs_are_those_of_the_whole(seed: int) -> None:
    """For every way to place four processes on two machines: the same broken capacities and conflicts there, and
    costs that differ by the same constant, but for the service moves."""
    problem, rng = drawn(seed), np.random.default_rng(seed)
    plan = shuffled(problem, rng)
    chosen = np.sort(rng.choice(len(problem.machines), 2, replace=False))
    inside = np.sort(rng.permutation(np.flatnonzero(np.isin(plan.machine, chosen)))[:4])
    small = subproblem(problem, plan, chosen, inside)
    names = {problem.machines[m] for m in chosen.tolist()}
    constants = set()
    for way in itertools.product(range(2), repeat=len(inside)):
        machine = plan.machine.copy()
        machine[inside] = chosen[list(way)]
        whole, part = verify(problem, Plan(machine)), verify(small, Plan(np.array(way)))
        over = {(v.index, v.amount) for v in whole.violations if v.constraint == "capacity" and v.index[0] in names}
        assert {(v.index, v.amount) for v in part.violations if v.constraint == "capacity"} == over
        crowded = [v for v in part.violations if v.constraint == "conflict"]
        assert len(crowded) <= sum(v.constraint == "conflict" for v in whole.violations)
        weights = problem.objective.weights
        costs = [v.objective - weights["service_move"] * v.terms["service_move"] for v in (whole, part)]
        constants.add(costs[0] - costs[1])
    assert len(constants) == 1


def test_it_improves_and_never_breaks_a_rule() -> None:
    problem = drawn(0)
    tools = SearchContext(
        np.random.default_rng(0), SearchMonitor(StoppingCriteria(gap=0.0)), 1, backends.get("highs").solve
    )
    machine, cost = problem.initial.astype(np.int32), verify(problem, Plan(problem.initial.copy())).objective
    first = cost
    for _ in range(4):
        machine, better = MachineSubMip(problem, tools).improved(machine, cost, tools.rng)
        verdict = verify(problem, Plan(machine.astype(np.int64)))
        assert verdict.ok
        assert verdict.objective == better <= cost
        cost = better
    assert cost < first
