"""Questions of server assignment, which always has a plan: changing nothing is one."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mast_opt
from mast_opt import Scenario
from mast_opt.planner.analysis.scenario_files import happened
from mast_opt.problems.registry import kind_of
from mast_opt.problems.server_assignment import Plan, ServerAssignment
from mast_opt.problems.server_assignment.problem import TERMS
from tests.examples import examples
from tests.narrowing import some
from tests.server_assignment.brute import Brute
from tests.server_assignment.strategies import plans, problems

FOLDER = Path(__file__).parents[3] / "instances" / "server_assignment"
REPAIR, POOL, SPREAD = (mast_opt.read(FOLDER / name) for name in ("repair-first", "shared-pool", "spread-out"))


def after(problem: Any, changes: dict[str, Any]) -> Any:
    """The instance after a scenario."""
    return happened(kind_of(problem), problem, Scenario("it", changes))


def today(problem: Any) -> Plan:
    return Plan(problem.servers.owner.copy())


def test_a_lost_switchboard_takes_its_servers_and_no_others() -> None:
    board = REPAIR.switchboards.labels.index("sb-2")
    lost = REPAIR.server_switchboard == board
    assert REPAIR.servers.in_use[~lost].any()
    assert not REPAIR.servers.in_use[~lost].all()
    left = after(REPAIR, {"lose_switchboards": ["sb-2"]})
    assert left.servers.in_use.tolist() == [bool(used) and not gone for used, gone in zip(REPAIR.servers.in_use, lost)]
    nobody = len(REPAIR.reservations)
    assert left.servers.owner.tolist() == [
        nobody if gone else who for who, gone in zip(REPAIR.servers.owner.tolist(), lost)
    ]
    assert (left.servers.type[lost] == len(REPAIR.types)).all()
    assert (left.servers.type[~lost] == REPAIR.servers.type[~lost]).all()
    assert not left.reservations.value_mrru[:, -1].any()


def test_there_is_always_a_plan() -> None:
    with pytest.raises(mast_opt.UsageError, match="always has a plan"):
        mast_opt.explain(REPAIR)


@pytest.mark.parametrize("problem", [REPAIR, POOL, SPREAD], ids=lambda problem: str(problem.name))
def test_no_single_server_betters_the_optimum(problem: Any) -> None:
    solution = mast_opt.solve(problem, gap=0.0)
    for one in mast_opt.explain(problem, solution.plan, problem.reservations.labels).reasons:
        assert one.now.startswith("holds ")
        for option in one.options:
            assert option.change is not None
            if not option.forbidden:
                assert option.change >= -1e-6


def test_one_server_more_or_less_is_measured_exactly() -> None:
    plan = mast_opt.solve(REPAIR).plan
    (web,) = mast_opt.explain(REPAIR, plan, ["web"]).reasons
    less = next(option for option in web.options if option.words == "without one compute (nobody has it today) at sb-2")
    board = REPAIR.switchboards.labels.index("sb-2")
    idle_there = (REPAIR.server_switchboard == board) & ~REPAIR.servers.in_use
    at = np.flatnonzero((some(plan).reservation == 0) & idle_there)[0]
    fewer = some(plan).reservation.copy()
    fewer[at] = len(REPAIR.reservations)
    before = mast_opt.verify(REPAIR, plan).objective
    after = mast_opt.verify(REPAIR, Plan(fewer)).objective
    assert less.change == pytest.approx(after - before)


@examples(60)
@given(data=st.data(), problem=problems(servers=7))
def test_every_change_of_one_server_is_covered(data: st.DataObject, problem: ServerAssignment) -> None:
    """The cheapest, and whether there is one at all, by trying every server with every other holder."""
    plan: Plan = data.draw(plans(problem))
    width, brute = len(problem.reservations), Brute(problem)
    assigned = plan.reservation.tolist()
    before, broken = brute.objective(assigned), brute.broken(assigned)
    answers = mast_opt.explain(problem, plan, problem.reservations.labels).reasons
    for q, answer in enumerate(answers):
        changes = []
        for server, to in itertools.product(range(len(assigned)), range(width + 1)):
            changed = [*assigned]
            changed[server] = to
            if to == assigned[server] or q not in (to, assigned[server]):
                continue
            if all(amount <= broken.get(name, 0) for name, amount in brute.broken(changed).items()):
                changes.append(brute.objective(changed) - before)
        possible = [option.change for option in answer.options if not option.forbidden]
        assert bool(possible) == bool(changes)
        if changes:
            assert possible[0] == pytest.approx(min(changes), abs=1e-9)
            assert {round(change, 7) for change in changes} == {round(change or 0, 7) for change in possible}
        assert len({option.words for option in answer.options}) == len(answer.options)


def test_what_is_forbidden_is_told() -> None:
    """Today's assignment is short, so nothing may make it shorter."""
    short = replace(REPAIR, reservations=replace(REPAIR.reservations, asked_mrru=REPAIR.reservations.asked_mrru * 3))
    today = Plan(short.servers.owner.copy())
    (web,) = mast_opt.explain(short, today, ["web"]).reasons
    barred = [words for option in web.options for words in option.forbidden]
    assert any("lacks capacity today and would lack" in words for words in barred)


def test_scenarios() -> None:
    board, kind = SPREAD.switchboards.labels[0], SPREAD.types[0]
    scenarios = [
        Scenario("board lost", {"lose_switchboards": [board]}),
        Scenario("all lost", {"lose_datacenters": list(SPREAD.datacenters)}),
        Scenario("more asked", {"grow_demand": {"ads": 2}}),
        Scenario("new rack", {"add_servers": [{"switchboard": board, "type": kind, "servers": 2}]}),
    ]
    answer = mast_opt.whatif(SPREAD, scenarios, gap=0.0)
    lost, gone, more, new = answer.outcomes
    away = np.flatnonzero(SPREAD.server_switchboard == 0)
    assert (some(lost.solution.plan).reservation[away] == len(SPREAD.reservations)).all()
    assert lost.base_verdict is not None
    assert not lost.base_verdict.ok
    assert gone.solution.verdict is not None
    assert gone.solution.verdict.terms["shortfall"] == 1
    assert more.problem.reservations.asked_mrru.tolist() == (2 * SPREAD.reservations.asked_mrru).tolist()
    assert len(new.problem.servers) == len(SPREAD.servers) + 2
    assert new.base_verdict is not None
    assert new.base_verdict.ok
    for one in answer.outcomes:
        assert mast_opt.verify(one.problem, one.solution.plan).ok


def test_a_type_called_lost_is_not_the_type_of_lost_servers() -> None:
    named = replace(SPREAD, types=("lost", *SPREAD.types[1:]))
    for problem in (SPREAD, named):
        gone = after(problem, {"lose_datacenters": list(problem.datacenters)})
        assert len(set(gone.types)) == len(gone.types)
        assert not gone.reservations.value_mrru[:, gone.servers.type].any()
        known = gone.reservations.value_mrru[:, : len(problem.types)]
        assert known.tolist() == problem.reservations.value_mrru.tolist()


def test_servers_can_be_lost_twice() -> None:
    boards = list(SPREAD.switchboards.labels)
    both = after(SPREAD, {"lose_switchboards": boards[:2]})
    again = after(both, {"lose_switchboards": boards[1]})
    assert not again.reservations.value_mrru[:, again.servers.type[np.isin(SPREAD.server_switchboard, [0, 1])]].any()
    assert len(set(again.types)) == len(again.types)


def test_labels_of_new_servers_and_racks_are_new() -> None:
    add = {"add_servers": [{"switchboard": SPREAD.switchboards.labels[0], "type": SPREAD.types[0], "servers": 2}]}
    taken = after(SPREAD, add)
    twice = after(taken, add)
    assert len(set(twice.servers.labels)) == len(twice.servers) == len(SPREAD.servers) + 4
    assert len(set(twice.racks.labels[len(SPREAD.racks) :])) == 2
    assert not set(twice.racks.labels[len(SPREAD.racks) :]) & set(SPREAD.racks.labels)


def test_lost_servers_do_not_move() -> None:
    """Nothing else changes hands: nobody asks for anything."""
    quiet = replace(
        SPREAD,
        reservations=replace(
            SPREAD.reservations,
            asked_mrru=np.zeros_like(SPREAD.reservations.asked_mrru),
            spread_limited=np.zeros(1, np.bool_),
        ),
    )
    quiet = replace(quiet, objective=replace(quiet.objective, weights={**quiet.objective.weights, "use": 0.0}))
    lost = mast_opt.whatif(
        quiet, [Scenario("it", {"lose_switchboards": list(quiet.switchboards.labels[:1])})], today(quiet)
    )
    assert lost.outcomes[0].moved == {"reassigned_servers": 0}


def test_reassigned_servers_are_those_left_that_change_hands_and_the_new_ones_that_are_used() -> None:
    add = [{"switchboard": SPREAD.switchboards.labels[1], "type": SPREAD.types[0], "servers": 2}]
    scenario = after(SPREAD, {"lose_switchboards": SPREAD.switchboards.labels[0], "add_servers": add})
    before = today(SPREAD)
    there = np.flatnonzero(SPREAD.server_switchboard != 0)
    reservation = np.append(
        np.where(scenario.servers.type[:-2] == SPREAD.servers.type, SPREAD.servers.owner, 1), [0, 1]
    )
    held = there[SPREAD.servers.owner[there] == 0]
    reservation[held[:1]] = 1
    after_plan = type(before)(reservation)
    assert kind_of(SPREAD).analysis.hooks().moved(SPREAD, scenario, before, after_plan) == {"reassigned_servers": 2}


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
    weights = dict.fromkeys(TERMS, 0.0) | {"shortfall": 1000.0, "moves_in_use": 1.0}
    fewest = mast_opt.solve(
        replace(REPAIR, objective=replace(REPAIR.objective, weights=weights)),
        gap=0.0,
    )
    for point in frontier.points:
        assert mast_opt.verify(REPAIR, point.plan).ok
        assert point.terms["moves_in_use"] <= some(fewest.verdict).terms["moves_in_use"] + 1e-6
    with pytest.raises(mast_opt.UsageError, match="always comes first"):
        mast_opt.pareto(REPAIR, ("moves_in_use", "moves_idle"))
