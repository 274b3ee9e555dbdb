"""What each independent change between two plans buys, and plans with some of the changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import UsageError
from mast_opt.core.wording import gpus, plain
from mast_opt.planner.analysis.migration_plan import _over_after, first_steps
from mast_opt.planner.analysis.plan_diff import Worth, first_changes
from mast_opt.planner.report.change_sections import ONE_BY_ONE, _of_which, kept_sections, over_sections, worth_sections
from mast_opt.planner.report.result_sections import shown
from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.analysis.hooks import change_groups
from mast_opt.problems.data_placement.entities import Links
from mast_opt.problems.data_placement.migration.partial_plan import partial_plan
from mast_opt.problems.data_placement.plan import gpu_demand, today


@pytest.fixture(scope="module", params=["free", "over links"])
def company(request: pytest.FixtureRequest) -> DataPlacement:
    found = mast_opt.generate("data-placement", "organisation", seed=1, datasets=10, workloads=14, regions=3)
    if request.param == "free":
        return found
    source, target = np.nonzero(~np.eye(3, dtype=np.bool_))
    price = np.array([5.0, 20.0, 60.0, 8.0, 20.0, 60.0])
    links = Links(source, target, np.full(6, 500_000_000, np.int64), price)
    return replace(found, links=links).with_objective({"egress": 1e-4, "remote": 5.0})


@pytest.fixture(scope="module")
def plan(company: DataPlacement) -> Plan:
    found = mast_opt.solve(company, "highs", threads=1, gap=0.01).plan
    assert found is not None
    return found


def test_all_changes_together_are_the_second_plan(company: DataPlacement, plan: Plan) -> None:
    now = today(company)
    assert now is not None
    changes = change_groups(company, now, plan)
    assert len(changes.words) > 1
    none, every = changes.only(frozenset()), changes.only(frozenset(range(len(changes.words))))
    for made, wanted in ((none, now), (every, plan)):
        verdict, expected = mast_opt.verify(company, made), mast_opt.verify(company, wanted)
        assert verdict.objective == pytest.approx(expected.objective)
        assert verdict.violations == expected.violations


def test_a_difference_says_what_each_change_buys(company: DataPlacement, plan: Plan) -> None:
    found = mast_opt.diff(company, None, plan)
    assert len(found.changes) > 1
    assert found.objective.after is not None
    for one in found.changes:
        assert one.buys == pytest.approx(sum(one.terms.values()), abs=1e-6)
        assert one.keeps or one.buys >= -0.02 * found.objective.after  # within the gap, undoing it gains nothing
    buys = [one.buys for one in found.changes if not one.keeps]
    assert buys == sorted(buys, reverse=True)
    assert found.together is not None
    assert found.objective.before is not None
    assert found.together.buys == pytest.approx(found.objective.before - found.objective.after)
    section = worth_sections(found)[0]
    assert section.rows[0][:2] == ("all of these together", found.together.buys)
    added = sum(one.buys for one in found.changes)
    apart = added != pytest.approx(found.together.buys, rel=1e-6)
    assert ("do not add up" in section.note) is apart
    assert [row[:2] for row in section.rows if row[0] == ONE_BY_ONE] == ([(ONE_BY_ONE, added)] if apart else [])
    assert len(section.rows) == 1 + apart + len(found.changes)
    every = replace(found, together=replace(found.together, buys=2 * added))
    assert worth_sections(every)[0].rows[1][:2] == (ONE_BY_ONE, added)
    least = Worth("a thousandth of a job", 1e-8 * max(buys), {}, (), {})
    more = worth_sections(replace(found, changes=(*found.changes, least)))[0]
    assert least.change not in [row[0] for row in more.rows]
    assert " 1 more buys and keeps nothing." in more.note


def test_gpus_over_the_supply_after_each_day_are_those_of_the_plans_reached(company: DataPlacement, plan: Plan) -> None:
    now = today(company)
    assert now is not None
    order = mast_opt.steps(company, plan)
    over = [round(mast_opt.verify(company, now).metrics["overload_gpus"], 3)]
    for row in order.over_after[1:]:
        made = [one for one in order.moves if one.day is not None and row.day is not None and one.day <= row.day]
        reached = partial_plan(company, plan, order.moves, len(made))
        over.append(round(mast_opt.verify(company, reached).metrics["overload_gpus"], 3))
    sliver = 1e-3 * len(company.regions.supply_mgpu.ravel())  # what rounds to nothing in a region and type is left out
    assert [row.gpus for row in order.over_after] == pytest.approx(over, abs=sliver)
    assert over[0] > over[-1]
    assert sum(row.steps for row in order.over_after) == len(order.moves)
    (section,) = over_sections(order)
    assert [row[0] for row in section.rows] == [None, *(n + 1 for n in sorted({one.day or 0 for one in order.moves}))]
    twice = mast_opt.steps(company, plan, then=[plan])
    assert twice.over_after == order.over_after
    later = _over_after(order, order, 0)
    assert [(one.day, one.gpus) for one in later] == [(one.day, one.gpus) for one in order.over_after]
    assert sum(one.steps for one in later) == 2 * len(order.moves)
    cut, _ = first_steps(company, plan, len(order.moves) - 1)
    assert cut.over_after == order.over_after[:-1]


def test_money_is_shown_in_dollars_next_to_its_weighted_change() -> None:
    worth = Worth("a to b", 0.02, {"running_cost": 0.0187, "peak": 0.0013}, (), {"running_cost": 18_700.4})
    assert _of_which(worth) == "running_cost +0.0187 (+18,700 USD), peak +0.0013"


def test_dollars_are_the_change_of_the_term(company: DataPlacement, plan: Plan) -> None:
    weighed = company.with_objective({"migration_cost": 0.5, "running_cost": 0.001})
    for one in mast_opt.diff(weighed, None, plan).changes:
        weights = weighed.objective.weights
        assert set(one.usd) == {"egress", "migration_cost", "running_cost"} & set(one.terms)
        assert all(one.terms[name] == pytest.approx(weights[name] * usd) for name, usd in one.usd.items())


def test_a_difference_says_what_keeping_the_first_plan_comes_to(company: DataPlacement, plan: Plan) -> None:
    grown = company.with_columns({"options.mgpu": 4 * company.options.mgpu})
    later = today(grown)
    assert later is not None
    found = mast_opt.diff(grown, plan, later, problem_before=company)
    assert found.kept is not None
    assert found.kept.metrics["overload_gpus"] > mast_opt.verify(company, plan).metrics["overload_gpus"]
    assert found.objective.before == mast_opt.verify(company, plan).objective
    section = kept_sections(found)[0]
    assert section.rows[0][1:] == (plain(found.kept.objective), plain(found.objective.after))
    assert {row[0]: row[1] for row in section.rows}["GPUs over the supply"] == shown(
        found.kept.metrics["overload_gpus"], "gpus"
    )
    over = gpu_demand(grown, plan)[:, :, -1] - grown.regions.supply_mgpu
    r, k = np.unravel_index(int(over.argmax()), over.shape)
    worst = f"{gpus(over[r, k] / 1000)} {grown.gpu_types[k]} in {grown.regions.labels[r]}"
    assert f" The first plan lacks {worst}" in section.note
    assert not kept_sections(mast_opt.diff(company, plan, plan)), "the figures before and after say it"


def test_equal_plans_have_no_changes(company: DataPlacement, plan: Plan) -> None:
    same = mast_opt.diff(company, plan, plan)
    assert (same.changes, same.together) == ((), None)


def test_some_changes_are_a_plan_of_their_own(company: DataPlacement, plan: Plan) -> None:
    count = len(mast_opt.diff(company, None, plan).changes)
    every = first_changes(company, plan, count)
    assert mast_opt.verify(company, every).objective == pytest.approx(mast_opt.verify(company, plan).objective)
    now = today(company)
    assert now is not None
    if mast_opt.verify(company, now).ok:
        assert mast_opt.verify(company, first_changes(company, plan, 0)).ok
    else:
        with pytest.raises(UsageError, match="the first 0 changes alone break a limit; the first"):
            first_changes(company, plan, 0)


def test_a_replica_that_waits_leaves_the_sources_of_others(company: DataPlacement, plan: Plan) -> None:
    now = today(company)
    assert now is not None
    changes = change_groups(company, now, plan)
    for at in range(len(changes.words)):
        for chosen in (frozenset({at}), frozenset(range(len(changes.words))) - {at}):
            names = {one.name for one in mast_opt.verify(company, changes.only(chosen)).violations}
            assert not names & {"run", "served", "copy", "copied", "remote", "local", "sourced"}
