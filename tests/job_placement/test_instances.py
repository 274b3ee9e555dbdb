"""The committed instances: answers worked out by hand, and a real fleet that reads as it was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mast_opt.planner.bench.results.store import latest, load
from mast_opt.planner.io import read
from mast_opt.planner.solving import Solution, solve
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.verification.verifier import verify
from tests.narrowing import some

FOLDER = Path(__file__).parents[2] / "instances" / "job_placement"

ANSWERS = {
    "tiny-cheapest": (10 * 0.25 * (3 + 4) / 12, {"urgent": {"s3": 1}}, {"small-a", "small-b"}),
    "tiny-fractions": (1000 * 0.6 / 1.7, None, set()),
    "tiny-packing": (1000 * 2 / 8, {"three-a": {"s1": 1}, "three-b": {"s2": 1}}, set()),
    "tiny-quota": (1000 * 1 / 5, {"first": {"s1": 1}, "second": {"s1": 1}}, set()),
    "tiny-regions": (0.0, {"gang": {"w1": 1, "w2": 1}, "single": None}, set()),
    "tiny-victims": (1000 * 1 / 5 + 10 * 0.25 * (3 + 8) / 8, {"urgent": {"s1": 1}}, {"old"}),
}
"""name → (objective, job → server → tasks, jobs stopped); None where several answers are as good."""
EXHAUSTIVE = {"tiny-cheapest", "tiny-packing", "tiny-quota", "tiny-regions", "tiny-victims", "tiny-fractions"}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("solver", ["highs", "exhaustive", "exhaustive+repair"])
def test_hand_made_instances_have_the_answers_worked_out_by_hand(name: str, solver: str) -> None:
    problem = read(FOLDER / f"{name}.json")
    objective, where, stopped = ANSWERS[name]
    solution = solve(problem, solver, iterations=3 if "repair" in solver else None)
    assert solution.objective == pytest.approx(objective, abs=1e-9)
    assert {problem.running.labels[v] for v in np.flatnonzero(some(solution.plan).preempt)} == stopped
    if where is not None:
        found = placements(problem, solution)
        assert found.keys() == where.keys()
        for job, servers in where.items():
            assert servers is None or by_symmetry(found[job]) == by_symmetry(servers)


def by_symmetry(servers: dict[str, int]) -> dict[str, int]:
    """s1 and s2 of tiny-packing are alike."""
    return {"s" if name in ("s1", "s2") else name: tasks for name, tasks in servers.items()}


def placements(problem: JobPlacement, solution: Solution[Any]) -> dict[str, dict[str, int]]:
    plan = some(solution.plan)
    found: dict[str, dict[str, int]] = {}
    for j, s, n in zip(plan.job.tolist(), plan.server.tolist(), plan.tasks.tolist()):
        found.setdefault(problem.jobs.labels[j], {})[problem.servers.labels[s]] = n
    return found


def test_the_real_fleet_is_solved_as_its_readme_says() -> None:
    problem = read(FOLDER / "alibaba-philly")
    assert (len(problem.servers), len(problem.jobs), len(problem.running)) == (120, 150, 591)
    text = (FOLDER / "alibaba-philly" / "README.md").read_text(encoding="utf-8")
    for words, solver, params in (
        ("`exhaustive`", "exhaustive", {}),
        ("`exhaustive`, `placement=best-fit`", "exhaustive", {"placement": "best-fit"}),
        ("`random`", "random", {}),
        ("`federated`", "federated", {}),
    ):
        solution = solve(problem, solver, params=params)
        plan = some(solution.plan)
        assert verify(problem, plan).ok
        figures = f"{solution.objective:.2f} | | {len(np.unique(plan.job))} | {int(plan.preempt.sum())}"
        assert f"| {words} | {figures} |" in text


def test_longer_runs_on_the_real_fleet_are_what_its_results_say() -> None:
    text = (FOLDER / "alibaba-philly" / "README.md").read_text(encoding="utf-8")
    file = FOLDER.parents[1] / "benchmarks" / "results" / "small.jsonl"
    rows = [one for one in latest(load(file)) if one["instance"] == "alibaba-philly"]
    for solver in ("highs", "exhaustive+repair"):
        runs = [one for one in rows if one["contestant"]["name"] == solver]
        found, bound = [one["objective"] for one in runs], max(one["bound"] for one in runs)
        assert f"| `{solver}`, 8 s | {min(found):.2f} to {max(found):.2f} | {bound:.2f} |" in text
