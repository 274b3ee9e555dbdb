"""The order of a job placement, carried out wave by wave: nothing starts before there is room for it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import mast_opt
from mast_opt.problems.job_placement.migration.plan_rows import migration_plan
from mast_opt.problems.job_placement.plan import empty
from mast_opt.problems.job_placement.verification.measures import task_needs
from tests.examples import examples
from tests.narrowing import some


@examples(15)
@given(st.integers(0, 10_000), st.sampled_from(("exhaustive", "federated", "random")))
def test_starts_find_room(seed: int, solver: str) -> None:
    problem = mast_opt.generate("job-placement", seed=seed, jobs=12)
    plan = mast_opt.solve(problem, solver, threads=1, seed=seed).plan
    found = migration_plan(problem, some(plan))
    assert not found.stuck
    free = problem.free.copy()
    needs = task_needs(problem, some(plan)) * some(plan).tasks[:, None]
    started: set[str] = set()
    for wave in range(found.waves):
        for move in (move for move in found.moves if move.wave == wave):
            if move.action == "stop":
                held = problem.allocations.running == problem.running.labels.index(move.what)
                np.add.at(free, problem.allocations.server[held], problem.held[held])
            else:
                rows = some(plan).job == problem.jobs.labels.index(move.what)
                np.subtract.at(free, some(plan).server[rows], needs[rows])
                started.add(move.what)
                assert (free >= 0).all()
    assert started == {problem.jobs.labels[j] for j in some(plan).job.tolist()}
    stopped = {move.what for move in found.moves if move.action == "stop"}
    assert stopped == {problem.running.labels[v] for v in np.flatnonzero(some(plan).preempt).tolist()}


def test_nothing_to_do() -> None:
    problem = mast_opt.generate("job-placement", seed=0)
    found = migration_plan(problem, empty(problem))
    assert (found.moves, found.waves) == ((), 0)
