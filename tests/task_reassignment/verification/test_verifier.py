"""The verifier against figures worked out by hand; each broken limit is named with its index."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mast_opt.problems.task_reassignment.analysis.static_conflicts import conflicts
from mast_opt.problems.task_reassignment.generate import challenge
from mast_opt.problems.task_reassignment.verification.verifier import verify
from tests.task_reassignment.hand import hand, plan


def test_the_cost_of_today(tmp_path: Path) -> None:
    """Use is 7 5, 2 4, 5 3. Load: 1 unit of r0 over on m0. Balance 2·free(r0) − free(r1): 3 + 12 + 0."""
    verdict = verify(hand(tmp_path), plan(0, 2, 0, 1, 2))
    assert verdict.ok
    assert verdict.terms == {"load": 10, "balance": 75, "process_move": 0, "service_move": 0, "machine_move": 0}
    assert verdict.objective == 85


def test_the_cost_of_a_move(tmp_path: Path) -> None:
    """p1 from m2 to m1: use is 7 5, 5 6, 2 1; balance 3 + 8 + 3."""
    verdict = verify(hand(tmp_path), plan(0, 1, 0, 1, 2))
    assert verdict.ok
    assert verdict.terms == {"load": 10, "balance": 70, "process_move": 1, "service_move": 1, "machine_move": 1}
    assert verdict.objective == 10 + 70 + 3 * 1 + 2 * 1 + 5 * 1
    assert verdict.metrics["moved_processes"] == 1


def test_a_move_costs_what_its_direction_costs(tmp_path: Path) -> None:
    problem = hand(tmp_path)
    cost, group = problem.move_groups.move_cost.copy(), problem.machines.move_group
    cost[group[2], group[1]], cost[group[1], group[2]] = 7, 2
    problem = replace(problem, move_groups=replace(problem.move_groups, move_cost=cost))
    assert group[1] != group[2]
    assert verify(problem, plan(0, 1, 0, 1, 2)).terms["machine_move"] == 7


def test_the_service_that_moves_most_counts(tmp_path: Path) -> None:
    """Both of s2 and one of s0 move: 2, not 3."""
    assert verify(hand(tmp_path), plan(0, 1, 0, 2, 1)).terms["service_move"] == 2


@pytest.mark.parametrize(
    ("machine", "name", "amount", "limit"),
    [
        ((0, 2, 2, 1, 2), "capacity[m2,r0]", 1, 7),
        ((0, 2, 1, 0, 2), "capacity[m0,r1]", 1, 8),
        ((0, 2, 0, 1, 1), "conflict[s2,m1]", 1, 1),
        ((1, 2, 0, 1, 2), "spread[s0]", 1, 2),
        ((0, 1, 2, 1, 2), "dependency[p2,s0,n1]", 1, 0),
        ((0, 2, 0, 1, -1), "assigned[p4]", 1, 1),
        ((0, 2, 0, 1, 3), "assigned[p4]", 1, 1),
    ],
)
def test_a_broken_limit_is_named(tmp_path: Path, machine: tuple[int, ...], name: str, amount: int, limit: int) -> None:
    (violation,) = verify(hand(tmp_path), plan(*machine)).violations
    assert (violation.name, violation.amount, violation.limit) == (name, amount, limit)


def test_a_machine_may_be_full(tmp_path: Path) -> None:
    """Today m0 holds 7 of r0 and 5 of r1."""
    problem = hand(tmp_path)
    full = problem.machines.capacity.copy()
    full[0] = [7, 5]
    assert verify(replace(problem, machines=replace(problem.machines, capacity=full)), plan(0, 2, 0, 1, 2)).ok


def test_a_service_without_processes_has_nothing_to_spread(tmp_path: Path) -> None:
    problem = hand(tmp_path)
    more = replace(
        problem,
        services=replace(
            problem.services,
            labels=(*problem.services.labels, "s3"),
            spread_min=np.append(problem.services.spread_min, 2),
        ),
    )
    assert verify(more, plan(0, 2, 0, 1, 2)).ok


@pytest.mark.parametrize("needed", [(0, 2), (2, 0)])
def test_every_dependency_of_a_service_counts(tmp_path: Path, needed: tuple[int, int]) -> None:
    """s1, which is p2 on m0, needs s0 and s2 near; of s2 only p3 is. s2 needs s0."""
    problem = hand(tmp_path).with_columns(
        {"dependencies.service": np.array([1, 1, 2]), "dependencies.needs": np.array([*needed, 0])}
    )
    assert verify(problem, plan(0, 2, 0, 1, 2)).ok
    found = verify(problem, plan(0, 2, 0, -1, 2)).violations
    assert {one.name for one in found} == {"assigned[p3]", "dependency[p2,s2,n0]"}


def test_a_resource_that_is_not_transient_is_free_at_once(tmp_path: Path) -> None:
    """The swap that breaks capacity[m0,r1] above does so only by what p2 still holds there."""
    problem = hand(tmp_path)
    assert verify(
        replace(problem, resources=replace(problem.resources, transient=np.zeros(2, np.bool_))), plan(0, 2, 1, 0, 2)
    ).ok


@pytest.mark.parametrize("seed", range(6))
def test_metrics_are_what_the_documentation_says(seed: int) -> None:
    """Plain loops, on plans that break limits too; some capacities are 0, and some machines exceed one safety only."""
    rng = np.random.default_rng(seed)
    problem = challenge(rng, processes=9, machines=4, resources=2)
    capacity, need = problem.machines.capacity.copy(), problem.processes.need
    capacity[0, 0], capacity[1, 1] = 0, 1
    problem = replace(
        problem,
        machines=replace(problem.machines, capacity=capacity, safety=rng.integers(0, need.sum(axis=0), capacity.shape)),
    )
    machine = rng.integers(0, 4, 9)
    use = [[sum(int(need[p, k]) for p in range(9) if machine[p] == m) for k in range(2)] for m in range(4)]
    cells = [(m, k, capacity[m, k]) for m in range(4) for k in range(2)]
    over = {(m, k): max(0, use[m][k] - int(problem.machines.safety[m, k])) for m, k, _ in cells}
    moved = sum(machine[p] != problem.processes.initial[p] for p in range(9))
    assert verify(problem, plan(*machine.tolist())).metrics == pytest.approx(
        {
            "moved_processes": moved,
            "moved_share": moved / 9,
            "machines_over_safety": sum(any(over[m, k] for k in range(2)) for m in range(4)),
            "peak_utilisation": max(use[m][k] / size for m, k, size in cells if size),
            "mean_excess": sum(over[m, k] / size / 4 for m, k, size in cells if size),
        }
    )


def test_a_plan_of_another_length_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="shape"):
        verify(hand(tmp_path), plan(0, 1))


@pytest.mark.parametrize(
    ("change", "name", "index"),
    [
        ({"machines.capacity": np.full((3, 2), 3)}, "capacity", ("r0",)),
        ({"machines.capacity": np.full((3, 2), 3)}, "capacity", ("p0",)),
        ({"machines.capacity": np.full((3, 2), 3)}, "capacity", ("m0", "r1")),
        ({"services.spread_min": np.array([3, 1, 1])}, "spread", ("s0",)),
        ({"processes.service": np.array([0, 0, 0, 0, 2])}, "conflict", ("s0",)),
        ({"processes.service": np.array([1, 1, 1, 2, 2])}, "dependency", ("s1", "s0")),
    ],
)
def test_what_no_plan_can_meet_is_seen_before_solving(
    tmp_path: Path, change: dict[str, Any], name: str, index: tuple[str, ...]
) -> None:
    problem = hand(tmp_path)
    assert conflicts(problem) == ()
    assert (name, index) in [(found.constraint, found.index) for found in conflicts(problem.with_columns(change))]
