"""What a solve says when it ends between its stages: terms one after another, or shares in whole thousandths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import mast_opt
from mast_opt.core.errors import BackendError
from mast_opt.core.solve_result import Limit, SolveParams, SolveResult, Status
from mast_opt.planner.solving.clock import Clock
from mast_opt.planner.solving.mip_route import Answer, ExactSolve
from mast_opt.problems.backends.highs import Highs
from mast_opt.problems.mip import Mip
from mast_opt.problems.registry import kind_of
from tests.instance_rows import DataRows

VICTIMS = mast_opt.read(Path(__file__).parents[2] / "instances" / "job_placement" / "tiny-victims.json")
STAGED = replace(VICTIMS, objective=replace(VICTIMS.objective, order=("rejected", "preemption")))
NOTHING = SolveResult(Status.NO_SOLUTION, None, None, None, Limit.ITERATIONS, "enough")


class Twice(Highs):
    """HiGHS for the first solve, then something else."""

    def __init__(self, second: Callable[[], SolveResult], after_first: Callable[[], None] = lambda: None) -> None:
        self._solves = 0
        self._second = second
        self._after_first = after_first

    def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
        self._solves += 1
        if self._solves > 1:
            return self._second()
        result = super().solve(mip, params)
        self._after_first()
        return result


def answer_of(backend: Highs, params: SolveParams) -> Answer:
    kind = kind_of(STAGED)
    return ExactSolve(kind, STAGED, backend, params, Clock(None)).run(kind.formulate, None)


def test_the_limit_is_that_of_the_stage_without_a_plan() -> None:
    answer = answer_of(Twice(lambda: NOTHING), SolveParams())
    assert (answer.status, answer.limit) == (Status.FEASIBLE, Limit.ITERATIONS)
    assert answer.verdict is not None
    assert [stage.objective for stage in answer.stages] == [
        answer.verdict.terms[name] for name in STAGED.objective.order
    ]


def test_terms_after_one_for_which_no_plan_was_found_are_minimised() -> None:
    """The second of three solves comes to nothing in its time; the third begins with the plan of the first."""
    found = iter([None, NOTHING, None])

    class Slow(Highs):
        def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
            return next(found) or super().solve(mip, params)

    problem = replace(VICTIMS, objective=replace(VICTIMS.objective, order=("rejected", "remote", "preemption")))
    kind = kind_of(problem)
    answer = ExactSolve(kind, problem, Slow(), SolveParams(), Clock(None)).run(kind.formulate, None)
    assert [stage.term for stage in answer.stages if stage.bound is not None] == ["rejected", "preemption"]
    assert (answer.status, answer.term) == (Status.FEASIBLE, "remote")


@pytest.mark.parametrize("failure", [BackendError("killed"), MemoryError()])
def test_a_failure_in_a_later_stage_costs_no_plan(failure: Exception) -> None:
    def fail() -> SolveResult:
        raise failure

    answer = answer_of(Twice(fail), SolveParams())
    assert (answer.status, answer.limit) == (Status.FEASIBLE, Limit.OTHER)
    assert answer.plan is not None
    assert [stage.objective is None for stage in answer.stages] == [False, True]
    assert answer.message == f"preemption was given up: {str(failure) or 'MemoryError'}"


def test_a_failure_in_the_first_stage_is_told() -> None:
    class Broken(Highs):
        def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
            raise BackendError("killed")

    with pytest.raises(BackendError, match="killed"):
        answer_of(Broken(), SolveParams())


def test_a_cancelled_solve_was_interrupted() -> None:
    params = SolveParams()
    answer = answer_of(Twice(lambda: NOTHING, params.cancel.set), params)
    assert (answer.status, answer.limit) == (Status.FEASIBLE, Limit.INTERRUPT)
    assert len(answer.stages) == 1


def test_a_proof_of_whole_shares_that_ran_out_of_time_says_so() -> None:
    """A third of 30 GPUs is no whole number of thousandths: the first program has no overload, any plan has some."""
    builder = DataRows("thirds")
    for name, gpus in (("small", 10), ("large", 20)):
        builder.add_region(name, storage_tb=10, cpu_cores=100, gpus={"a100": gpus})
    builder.add_dataset("logs", size_tb=1, replicas=["small", "large"])
    builder.add_workload("all", tier=0, cpu_cores=1, gpus={"a100": 30}, reads={"logs": 1}, splittable=True)
    problem = builder.build()
    kind = kind_of(problem)
    ends = iter([None, None, Limit.TIME])

    class Slow(Highs):
        def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
            limit = next(ends)
            return super().solve(mip, params) if limit is None else replace(NOTHING, limit=limit)

    answer = ExactSolve(kind, problem, Slow(), SolveParams(gap=0.0), Clock(None)).run(kind.formulate, None)
    assert (answer.status, answer.limit) == (Status.FEASIBLE, Limit.TIME)
    assert answer.verdict is not None
    assert answer.verdict.metrics["overload_gpus"] > 0
