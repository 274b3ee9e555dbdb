"""Links: from an annealed plan that exceeds them to the best one that keeps them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import mast_opt
from mast_opt.core.solve_result import SolveParams, SolveResult
from mast_opt.problems import backends
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.tetris.stage_objective import StageObjective
from mast_opt.problems.data_placement.tetris.sub_mip.fix_and_optimise import NONE_LEFT, FixAndOptimise
from mast_opt.problems.data_placement.tetris.sub_mip.params import NeighbourhoodParams
from mast_opt.problems.data_placement.verification.verifier import verify
from mast_opt.problems.mip import Mip
from mast_opt.problems.search.interface import MipSolver, SearchContext, SearchMonitor, StoppingCriteria

HIGHS = backends.get("highs").solve
PARAMS = NeighbourhoodParams()
ANY = 1e9
"""Above any excess."""


@cache
def made(seed: int) -> DataPlacement:
    problem: DataPlacement = mast_opt.generate(
        "data-placement", "links", seed=seed, datasets=12, workloads=18, regions=3
    )
    return problem


@cache
def annealed(problem: DataPlacement) -> Plan:
    """A plan that takes links for wide."""
    plan: Plan | None = mast_opt.solve(replace(problem, links=None), "tetris", iterations=1, threads=1).plan
    assert plan is not None
    assert not verify(problem, plan).ok
    return plan


@cache
def optimum(problem: DataPlacement) -> float | None:
    return mast_opt.solve(problem, "highs", gap=0.0, threads=1).objective


def improved(problem: DataPlacement, solver: MipSolver, near: float = PARAMS.near_excess) -> Plan | None:
    tools = SearchContext(np.random.default_rng(1), SearchMonitor(StoppingCriteria(gap=0.0)), 1, lambda name: solver)
    objective = StageObjective(dict(problem.objective.weights), {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NeighbourhoodParams, "near_excess", near)
        return FixAndOptimise(problem, tools, objective, PARAMS).improve(annealed(problem))


class Spy:
    """HiGHS, and what it was asked and answered."""

    def __init__(self, problem: DataPlacement) -> None:
        assert problem.links is not None
        self.links = len(problem.links)
        self.asked: list[Mip] = []
        self.excess: list[float] = []

    def __call__(self, mip: Mip, params: SolveParams) -> SolveResult:
        result = HIGHS(mip, params)
        self.asked.append(mip)
        self.excess.append(np.inf if result.x is None else float(result.x[-self.links :].sum()))
        return result

    @property
    def only_excess(self) -> list[bool]:
        return [np.count_nonzero(mip.cost) == np.count_nonzero(mip.cost[-self.links :]) for mip in self.asked]


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
@pytest.mark.parametrize("near", [0.0, ANY], ids=["with today's replicas", "from the annealed plan"])
def test_small_programs_end_at_their_optimum(seed: int, near: float) -> None:
    """The neighbourhoods grow until nothing is held."""
    problem = made(seed)
    plan = improved(problem, HIGHS, near)
    assert plan is not None
    verdict = verify(problem, plan)
    assert verdict.ok
    assert verdict.objective == pytest.approx(optimum(problem), rel=1e-3)


@pytest.mark.parametrize(("near", "elsewhere"), [(0.0, True), (ANY, False)])
def test_a_plan_that_is_nearly_within_the_links_is_not_given_up(near: float, elsewhere: bool) -> None:
    problem = made(1)
    spy = Spy(problem)
    assert improved(problem, spy, near) is not None
    assert any(spy.only_excess) is elsewhere


def test_work_where_no_link_leads_is_placed_elsewhere() -> None:
    """The annealed plan reads what its regions cannot get, whatever the replicas."""
    problem = made(2)
    spy = Spy(problem)
    assert improved(problem, spy) is not None
    assert np.isinf(spy.excess[:2]).all()
    assert spy.only_excess[2]


@pytest.mark.parametrize(("near", "seed"), [(0.0, 1), (0.0, 2), (ANY, 4)])
def test_links_that_are_kept_are_not_exceeded_again(near: float, seed: int) -> None:
    problem = made(seed)
    spy = Spy(problem)
    improved(problem, spy, near)
    kept = next(at for at, excess in enumerate(spy.excess) if excess < NONE_LEFT)
    assert 0 < kept < len(spy.asked) - 1
    assert all(mip.col_upper[-spy.links :].any() for mip in spy.asked[: kept + 1])
    assert not any(mip.col_upper[-spy.links :].any() for mip in spy.asked[kept + 1 :])


def test_the_price_of_an_excess_that_stays_rises() -> None:
    """To a solver that finds nothing better; afterwards it costs what it did."""
    problem = made(1)
    spy = Spy(problem)

    def stubborn(mip: Mip, params: SolveParams) -> SolveResult:
        result = spy(mip, params)
        return result if params.start is None else replace(result, x=params.start)

    improved(problem, stubborn, ANY)
    prices = np.array([mip.cost[-1] for mip in spy.asked])
    assert prices[1 : 1 + PARAMS.patience] == pytest.approx(
        np.minimum(PARAMS.excess_price * PARAMS.excess_growth ** np.arange(PARAMS.patience), PARAMS.most_excess_price)
    )
    assert prices[-1] == PARAMS.excess_price
