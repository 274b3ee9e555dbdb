"""What the tests of several questions share: instances with the answer in plain sight, and checks of conflicts."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

import mast_opt
from mast_opt.core.solve_limits import SolveLimits
from mast_opt.core.solve_result import Status
from mast_opt.planner.analysis.explain import Explanation
from mast_opt.planner.analysis.goals import PLAN, figures_of
from mast_opt.planner.analysis.infeasibility.elastic_program import Elastic
from mast_opt.planner.analysis.region_loss import RegionLoss
from mast_opt.problems.registry import kind_of
from tests.data_placement.support import proven


def worst_region_loss(problem: Any, plan: Any, **limits: Unpack[SolveLimits]) -> RegionLoss | None:
    """The worst loss of a region once a plan is carried out, where it is proven."""
    return figures_of(problem, {PLAN: plan}, with_steps=False, judging=limits)[PLAN].loss


def members(problem: Any, answer: Explanation) -> tuple[Elastic, list[int]]:
    """The limits of a conflict as numbers of an Elastic."""
    relief = kind_of(problem).analysis.hooks().relief
    assert relief is not None
    elastic = Elastic(relief(problem))
    assert answer.limits is not None
    names = [one.name for one in elastic.relief.limits]
    return elastic, [
        int(elastic.first[names.index(name)]) + at for name, positions in answer.limits.items() for at in positions
    ]


def check_conflict(problem: Any, answer: Explanation) -> None:
    """HiGHS proves that the limits contradict one another, and finds a plan without any one of them."""
    elastic, chosen = members(problem, answer)
    assert answer.status is Status.INFEASIBLE
    assert answer.minimal
    assert chosen
    assert answer.conflict
    active = np.zeros(elastic.count, np.bool_)
    active[chosen] = True
    assert proven(elastic.held(active)).status is Status.INFEASIBLE
    for member in chosen:
        rest = active.copy()
        rest[member] = False
        assert proven(elastic.held(rest)).status is Status.OPTIMAL, answer.conflict


def check_repairs(problem: Any, answer: Explanation) -> None:
    """Every repair's instance has a plan that the verifier accepts, and they come cheapest first."""
    for repair in answer.repairs:
        assert repair.changes
        assert all(repair.changes)
        assert mast_opt.verify(repair.problem, repair.plan).ok
        assert not kind_of(problem).analysis.conflicts(repair.problem)
    prices = [repair.price for repair in answer.repairs]
    assert prices == sorted(prices)
