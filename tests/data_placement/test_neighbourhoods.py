"""Large neighbourhoods keep the limits of links, and reach the optimum where they cover everything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mast_opt
from mast_opt import backends
from mast_opt.data_placement import DataPlacement
from mast_opt.data_placement.heuristics.neighbourhoods import FRUITLESS, Neighbourhoods, solved_whole, worthwhile
from mast_opt.data_placement.plan import Plan
from mast_opt.data_placement.verify import verify
from mast_opt.mip import Mip
from mast_opt.result import SolveParams, SolveResult, Status
from mast_opt.search import Stop, Tools, Watch

SIZES = {"datasets": 5, "workloads": 7, "regions": 3}


def made(family: str) -> DataPlacement:
    problem: DataPlacement = mast_opt.generate("data-placement", family, seed=3, **SIZES)
    return problem


def improved(problem: DataPlacement, plan: Plan) -> Plan:
    highs = backends.get("highs")
    tools = Tools(np.random.default_rng(1), Watch(Stop(gap=0.0, time_limit_s=60)), 1, highs.solve)
    found = Neighbourhoods(problem, tools).improve(plan)
    assert found is not None
    return found


def without_links(problem: DataPlacement) -> Plan:
    """The optimum if every link were wide."""
    plan: Plan | None = mast_opt.solve(replace(problem, links=None), "highs").plan
    assert plan is not None
    return plan


@pytest.mark.parametrize("family", ["weakly-coupled", "links", "tight-storage"])
def test_a_neighbourhood_of_everything_is_the_optimum(family: str) -> None:
    problem = made(family)
    exact = mast_opt.solve(problem, "highs", gap=0.0)
    assert exact.plan is not None
    found = improved(problem, without_links(problem) if family == "links" else exact.plan)
    verdict = verify(problem, found)
    assert verdict.ok, verdict.violations
    assert exact.objective is not None
    assert verdict.objective == pytest.approx(exact.objective, rel=1e-4)


def test_excess_over_links_is_brought_back() -> None:
    problem = made("links")
    start = without_links(problem)
    assert not verify(problem, start).ok
    assert verify(problem, improved(problem, start)).ok


@pytest.mark.parametrize("family", ["standard", "weakly-coupled"])
def test_without_a_time_limit_the_search_ends_when_nothing_improves(family: str) -> None:
    problem = made(family)
    assert solved_whole(problem) == (family == "weakly-coupled")
    start = mast_opt.solve(problem, "highs").plan
    assert start is not None
    first: list[SolveResult] = []
    limits: list[float | None] = []

    def as_before(mip: Mip, params: SolveParams) -> SolveResult:
        limits.append(params.time_limit_s)
        assert len(limits) <= FRUITLESS + 2
        if not first:
            first.append(replace(backends.get("highs").solve(mip, params), status=Status.FEASIBLE))
        return first[0]

    tools = Tools(np.random.default_rng(1), Watch(Stop(gap=0.0)), 1, as_before, as_before)
    assert Neighbourhoods(problem, tools).improve(start) is not None
    assert len(limits) > FRUITLESS
    assert None not in limits


def test_large_and_lexicographic_instances_are_annealed_only() -> None:
    assert worthwhile(made("standard"))
    assert not worthwhile(made("lexicographic"))
    large = mast_opt.generate("data-placement", "standard", seed=1, datasets=800, workloads=1200, regions=10)
    assert not worthwhile(large)


def test_a_small_program_of_whole_decisions_is_solved_as_one() -> None:
    problem = mast_opt.generate("data-placement", "weakly-coupled", seed=2, datasets=20, workloads=20, regions=5)
    assert solved_whole(problem)
    start = mast_opt.solve(problem, "tetris", iterations=1, threads=1).plan
    exact = mast_opt.solve(problem, "cpsat", gap=0.0, threads=1)
    assert start is not None
    assert exact.status is Status.OPTIMAL
    stop = Stop(gap=0.0, time_limit_s=60)
    tools = Tools(np.random.default_rng(1), Watch(stop), 1, backends.get("highs").solve, backends.get("cpsat").solve)
    found = Neighbourhoods(problem, tools).improve(start)
    assert found is not None
    assert verify(problem, start).objective > verify(problem, found).objective
    assert verify(problem, found).objective == pytest.approx(exact.objective, rel=1e-6)
    assert not solved_whole(made("standard"))
