"""Questions of server assignment, which always has a plan: changing nothing is one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt import Scenario

FOLDER = Path(__file__).parents[2] / "instances" / "server_assignment"
REPAIR, POOL, SPREAD = (mast_opt.read(FOLDER / name) for name in ("repair-first", "shared-pool", "spread-out"))


def test_there_is_always_a_plan() -> None:
    with pytest.raises(mast_opt.UsageError, match="always has a plan"):
        mast_opt.explain(REPAIR)


@pytest.mark.parametrize("problem", [REPAIR, POOL, SPREAD], ids=lambda problem: str(problem.name))
def test_no_single_server_betters_the_optimum(problem: Any) -> None:
    solution = mast_opt.solve(problem, gap=0.0)
    for one in mast_opt.explain(problem, solution.plan, problem.reservations).reasons:
        assert one.now.startswith("holds ")
        for option in one.options:
            assert option.change is not None
            if not option.forbidden:
                assert option.change >= -1e-6


def test_one_server_more_or_less_is_measured_exactly() -> None:
    plan = mast_opt.solve(REPAIR).plan
    (web,) = mast_opt.explain(REPAIR, plan, ["web"]).reasons
    less = next(option for option in web.options if option.words == "without one compute at sb-2")
    board = REPAIR.switchboards.index("sb-2")
    at = np.flatnonzero((plan.reservation == 0) & (REPAIR.server_switchboard == board) & ~REPAIR.in_use)[0]
    fewer = plan.reservation.copy()
    fewer[at] = len(REPAIR.reservations)
    before = mast_opt.verify(REPAIR, plan).objective
    after = mast_opt.verify(REPAIR, type(plan)(fewer)).objective
    assert less.change == pytest.approx(after - before)


def test_what_is_forbidden_is_told() -> None:
    """Today's assignment is short, so nothing may make it shorter."""
    short = replace(REPAIR, asked_mrru=REPAIR.asked_mrru * 3)
    today = type(mast_opt.solve(REPAIR).plan)(short.owner.copy())
    (web,) = mast_opt.explain(short, today, ["web"]).reasons
    barred = [words for option in web.options for words in option.forbidden]
    assert any("lacks capacity today and would lack" in words for words in barred)


def test_scenarios() -> None:
    board, kind = SPREAD.switchboards[0], SPREAD.types[0]
    scenarios = [
        Scenario("board lost", {"lose_switchboards": [board]}),
        Scenario("all lost", {"lose_datacenters": list(SPREAD.datacenters)}),
        Scenario("more asked", {"grow_demand": {"ads": 2}}),
        Scenario("new rack", {"add_servers": [{"switchboard": board, "type": kind, "servers": 2}]}),
    ]
    answer = mast_opt.whatif(SPREAD, scenarios, gap=0.0)
    lost, gone, more, new = answer.outcomes
    away = np.flatnonzero(SPREAD.server_switchboard == 0)
    assert (lost.solution.plan.reservation[away] == len(SPREAD.reservations)).all()
    assert lost.kept is not None
    assert not lost.kept.ok
    assert gone.solution.verdict is not None
    assert gone.solution.verdict.terms["shortfall"] == 1
    assert more.problem.asked_mrru.tolist() == (2 * SPREAD.asked_mrru).tolist()
    assert len(new.problem.servers) == len(SPREAD.servers) + 2
    assert new.kept is not None
    assert new.kept.ok
    for one in answer.outcomes:
        assert mast_opt.verify(one.problem, one.solution.plan).ok


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lose_switchboards": ["moon"]}, "no switchboard called 'moon'"),
        ({"grow_demand": {"joy": 2}}, "no reservation called 'joy'"),
        ({"add_servers": [{"switchboard": "sb-1", "type": "compute", "servers": 0}]}, "at least 1"),
        ({"add_servers": [{"switchboard": "sb-1", "type": "compute", "servers": 1.5}]}, "is 1.5; expected a whole"),
    ],
)
def test_values_that_make_no_sense(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(mast_opt.UsageError, match=words):
        mast_opt.whatif(SPREAD, [Scenario("it", changes)])


def test_the_frontier_of_buffer_and_moves() -> None:
    answer = mast_opt.pareto(SPREAD, ("buffer", "moves_idle"), points=3)
    assert len(answer.points) == 3
    assert all(point.terms["shortfall"] == 0 and point.proven for point in answer.points)


def test_idle_servers_are_traded_after_those_in_use() -> None:
    frontier = mast_opt.pareto(REPAIR, ("buffer", "moves_idle"), points=3)
    assert frontier.points
    fewest = mast_opt.solve(
        replace(REPAIR, objective=replace(REPAIR.objective, weights={"shortfall": 1000.0, "moves_in_use": 1.0})),
        gap=0.0,
    )
    for point in frontier.points:
        assert mast_opt.verify(REPAIR, point.plan).ok
        assert point.terms["moves_in_use"] <= fewest.verdict.terms["moves_in_use"] + 1e-6
    with pytest.raises(mast_opt.UsageError, match="always comes first"):
        mast_opt.pareto(REPAIR, ("moves_in_use", "moves_idle"))
