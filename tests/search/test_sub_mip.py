"""The seam for sub-problems: which solver, and which limits it is given."""

from __future__ import annotations

import time

import numpy as np
import pytest

from mast_opt.core.solve_result import SolveParams, SolveResult, Status
from mast_opt.problems.mip import Mip
from mast_opt.problems.search.interface import MipSolver, SearchContext, SearchMonitor, StoppingCriteria
from mast_opt.problems.search.sub_mip import LEAST_S, SubMip, SubMipParams

NOTHING = SolveResult(Status.NO_SOLUTION, None, None, None, None, "")


def context(stop: StoppingCriteria, named: list[str] | None = None) -> SearchContext:
    """A search with three threads; the names of the solvers that it is asked for go to ``named``."""

    def solver(mip: Mip, params: SolveParams) -> SolveResult:
        return NOTHING

    def backend(name: str) -> MipSolver:
        if named is not None:
            named.append(name)
        return solver

    watch = SearchMonitor(stop)
    return SearchContext(np.random.default_rng(0), watch, 3, backend)


@pytest.mark.parametrize(
    ("stop", "at_most_s", "least", "most"),
    [
        (StoppingCriteria(time_limit_s=60), None, 7.0, 7.0),
        (StoppingCriteria(time_limit_s=60), 2.0, 2.0, 2.0),
        (StoppingCriteria(time_limit_s=5), None, 4.0, 5.0),
        (StoppingCriteria(time_limit_s=1e-9), None, LEAST_S, LEAST_S),
        (StoppingCriteria(time_limit_s=60, iterations=9), None, 50.0, 60.0),
        (StoppingCriteria(time_limit_s=60, iterations=9), 2.0, 2.0, 2.0),
    ],
)
def test_seconds_are_those_of_the_parameter_and_of_the_search(
    stop: StoppingCriteria, at_most_s: float | None, least: float, most: float
) -> None:
    tools = context(stop)
    time.sleep(0.001)
    limit = SubMip(tools, SubMipParams(time_limit_s=7.0)).limits(at_most_s=at_most_s).time_limit_s
    assert limit is not None
    assert least <= limit <= most


@pytest.mark.parametrize("stop", [StoppingCriteria(), StoppingCriteria(iterations=3)])
def test_without_a_time_limit_sub_problems_have_none(stop: StoppingCriteria) -> None:
    sub_mip = SubMip(context(stop), SubMipParams(time_limit_s=7.0))
    assert sub_mip.limits().time_limit_s is None
    assert sub_mip.limits(at_most_s=1.0).time_limit_s is None


def test_the_other_limits_are_those_of_the_parameters() -> None:
    stop, start = StoppingCriteria(), np.zeros(2)
    limits = SubMip(context(stop), SubMipParams(gap=0.25, node_limit=5, threads=2)).limits(seed=4, start=start)
    assert (limits.gap, limits.node_limit, limits.threads, limits.seed) == (0.25, 5, 2, 4)
    assert limits.start is start
    assert limits.cancel is stop.cancel
    assert [SubMip(context(stop), SubMipParams(gap=0.25)).limits(gap=gap).gap for gap in (0.1, 0.5)] == [0.1, 0.25]
    free = SubMip(context(stop), SubMipParams()).limits()
    assert (free.node_limit, free.threads, free.start) == (None, 3, None)


def test_the_solver_is_the_one_that_is_named() -> None:
    named: list[str] = []
    SubMip(context(StoppingCriteria(), named), SubMipParams(solver="scip"))
    assert named == ["scip"]
