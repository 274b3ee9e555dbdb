"""What to buy: against enumeration of all purchases, budgets, lead times, a heuristic and its bound."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mast_opt
from mast_opt.core.errors import InstanceError, UsageError
from mast_opt.core.solve_result import Limit, SolveParams, SolveResult, Status
from mast_opt.planner.analysis.purchase_question import Bill, Purchases
from mast_opt.planner.report.result_sections import purchase_sections
from mast_opt.problems.backends.highs import Highs
from mast_opt.problems.data_placement.entities import GPUS, LINK, STORAGE, Candidates
from mast_opt.problems.data_placement.formulation.expansion import bought
from mast_opt.problems.mip import Mip
from tests.data_placement.brute import Brute
from tests.data_placement.strategies import problems
from tests.data_placement.workshop import LINKS, PROBLEM, TB, ints
from tests.examples import examples


def offered(*rows: tuple[str, int, int, int, int, int, int, int, int]) -> Candidates:
    """(name, resource, region, type, target, step, most, USD a step, days)."""
    columns = [ints(*column) for column in list(zip(*rows, strict=True))[1:]]
    columns[6] = columns[6] * 1_000_000
    return Candidates(tuple(row[0] for row in rows), *columns)


NOT = 2  # type of what is no GPU, in instances with two types


def cheapest(problem: Any, ratio: Fraction, parts: int) -> Fraction | None:
    """Price of the cheapest purchase that works, by trying every purchase and every plan."""
    c = problem.candidates
    found: list[Fraction] = []
    for steps in product(*(range(int(most) + 1) for most in c.most_steps)):
        after = replace(bought(problem, np.array(steps, np.int64)), may_refuse=False, candidates=None)
        scaled = after.regions.supply_mgpu * ratio.numerator
        stressed = after.with_columns(
            {
                "regions.supply_mgpu": scaled,
                "options.mgpu": after.options.mgpu * ratio.denominator,
                "limits": {"overload_gpus": Fraction(0)},
            }
        )
        if Brute(stressed, parts).optimum() is not None:
            found.append(
                sum((Fraction(int(p), 10**6) * n for p, n in zip(c.price_micro, steps, strict=True)), Fraction(0))
            )
    return min(found, default=None)


@examples(25)
@given(
    problem=problems(parts=2, limited=False),
    ratio=st.sampled_from((Fraction(1), Fraction(1, 2), Fraction(3, 2))),
    data=st.data(),
)
def test_nothing_cheaper_will_do(problem: Any, ratio: Fraction, data: st.DataObject) -> None:
    regions, types = len(problem.regions), len(problem.gpu_types)
    unit = 1 if problem.datasets.size_mb.max(initial=0) < TB // 1000 else TB
    rows = []
    for number in range(2):
        region = data.draw(st.integers(0, regions - 1))
        gpus = types > 0 and data.draw(st.booleans())
        kind = data.draw(st.integers(0, types - 1)) if gpus else types
        step = data.draw(st.sampled_from((4000, 9000))) if gpus else 10 * unit
        price = data.draw(st.sampled_from((1, 3, 7)))
        rows.append((f"c{number}", GPUS if gpus else STORAGE, region, kind, regions, step, 2, price, 0))
    problem = replace(problem, candidates=offered(*rows), limits={})
    expected = cheapest(problem, ratio, 2)
    answer = mast_opt.buy(problem, target=ratio)
    if expected is None:
        assert answer.status is Status.INFEASIBLE
        return
    whole = not problem.workloads.splittable.any() and problem.links is None
    assert answer.usd is not None
    assert answer.usd <= expected  # with shares in halves there are fewer plans than with thousandths
    assert answer.usd == expected or not whole
    _check(problem, answer, ratio)


def _check(problem: Any, answer: Purchases[Any], ratio: Fraction) -> None:
    assert answer.instance is not None
    assert answer.worst_after is not None
    verdict = mast_opt.verify(answer.instance, answer.plan)
    assert verdict.ok
    assert verdict.terms["unserved"] == 0
    assert answer.worst_after <= ratio
    assert verdict.metrics["peak_ratio"] == pytest.approx(float(answer.worst_after))
    assert answer.usd == sum(row.usd for row in answer.bought)
    assert answer.bound_usd is not None
    assert answer.bound_usd <= float(answer.usd or 0) + 1e-6


GPU_SHORT = replace(
    PROBLEM,
    candidates=offered(
        ("h100 in a", GPUS, 0, 0, 3, 4000, 5, 100, 30),
        ("h100 in b", GPUS, 1, 0, 3, 4000, 5, 80, 90),
        ("a100 in c", GPUS, 2, 1, 3, 2000, 9, 10, 10),
        ("a100 in a", GPUS, 0, 1, 3, 40_000, 1, 7, 10),
        ("disks in a", STORAGE, 0, NOT, 3, TB, 9, 1, 10),
        ("a to b", LINK, 0, NOT, 1, TB, 9, 2, 10),
    ),
)
"""train needs 8 h100 or 20 a100, view 4 a100 in c of 8 there; a has 8 h100, b 8 h100 and 16 a100."""


def test_the_cheapest_of_several_ways() -> None:
    answer = mast_opt.buy(GPU_SHORT, target=0.5)
    assert answer.status is Status.OPTIMAL
    # train: a type that a has not yet, 40 a100 for 7; or 2 steps of h100 in a or b, 200 and 160
    assert [(row.offer.name, row.steps) for row in answer.bought] == [("a100 in a", 1)]
    assert answer.usd == 7
    assert answer.worst_after == Fraction(1, 2)
    _check(GPU_SHORT, answer, Fraction(1, 2))


def test_a_budget_that_is_too_small_comes_with_the_least_that_works() -> None:
    answer = mast_opt.buy(GPU_SHORT, target=0.5, budget_usd=6.5)
    assert answer.status is Status.INFEASIBLE
    assert answer.least_usd == 7
    assert answer.least_proven
    assert "the budget of 6.5 USD is too small: 7 USD is the least that works" in answer.message
    assert mast_opt.buy(GPU_SHORT, target=0.5, budget_usd=7).status is Status.OPTIMAL
    out_of_reach = mast_opt.buy(GPU_SHORT, target=0.01)
    assert out_of_reach.status is Status.INFEASIBLE
    assert out_of_reach.least_usd is None


def test_tiers_and_lead_times() -> None:
    late = replace(GPU_SHORT, candidates=GPU_SHORT.candidates.rows(ints(0, 1)))  # type: ignore[union-attr]
    assert mast_opt.buy(late, target=0.5).usd == 160
    assert mast_opt.buy(late, target=0.5, within_days=30).usd == 200
    assert mast_opt.buy(late, target=0.5, within_days=29).status is Status.INFEASIBLE
    assert mast_opt.buy(late, target=0.45, tier=0).status is not Status.INFEASIBLE
    assert mast_opt.buy(late, target=0.45).status is Status.INFEASIBLE  # view, tier 1, asks half of the a100 in c


def test_storage_and_links_make_room_for_the_plan() -> None:
    assert PROBLEM.links is not None
    tight = GPU_SHORT.with_columns(
        {
            "regions.storage_mb": ints(3, 20, 20) * TB,  # logs (4 TB) are in a today and may not be in c
            "links": replace(LINKS, capacity_mb_per_day=ints(TB, TB, 10 * TB, 10 * TB)),
            "datasets.pinned": np.array([[True, False, False], [False, True, False], [False, False, False]]),
        }
    )
    assert mast_opt.solve(tight).plan is None
    answer = mast_opt.buy(tight)
    names = {row.offer.name for row in answer.bought}
    assert "disks in a" in names
    _check(tight, answer, Fraction(1))
    fewer = next(row for row in answer.bought if row.offer.name == "disks in a").steps - 1
    steps = np.zeros(6, np.int64)
    steps[4] = fewer
    assert mast_opt.solve(replace(bought(tight, steps), candidates=None)).plan is None


@pytest.mark.parametrize("target", [0.8, 1.0, 1.25])
def test_the_plan_of_a_heuristic_is_one_of_the_instance_after_the_purchase(target: float) -> None:
    problem = mast_opt.generate("data-placement", seed=3, datasets=12, workloads=16, regions=3)
    regions, types = np.nonzero(problem.regions.supply_mgpu)
    rows = [(f"{r} {k}", GPUS, int(r), int(k), 3, 8000, 20, 10, 0) for r, k in zip(regions, types, strict=True)]
    problem = replace(problem, candidates=offered(*rows))
    found = mast_opt.buy(problem, target=target, solver="tetris", time_limit_s=1.5, threads=1, params={"rounds": 1})
    _check(problem, found, Fraction(str(target)))


def test_a_heuristic_buys_enough_and_proves_a_bound() -> None:
    problem = mast_opt.generate("data-placement", seed=3, datasets=12, workloads=16, regions=3)
    regions, types = np.nonzero(problem.regions.supply_mgpu)
    rows = [
        (f"{r} {k}", GPUS, int(r), int(k), 3, 8000, 20, 10 + int(r), 0) for r, k in zip(regions, types, strict=True)
    ]
    problem = replace(problem, candidates=offered(*rows))
    exact = mast_opt.buy(problem, time_limit_s=30, gap=0.02)
    found = mast_opt.buy(problem, solver="tetris", time_limit_s=4, threads=1)
    _check(problem, found, Fraction(1))
    assert exact.usd is not None
    assert found.bound_usd is not None
    assert found.bound_usd <= float(exact.usd) + 1e-6
    assert found.usd is not None
    assert exact.bound_usd is not None
    assert float(found.usd) >= exact.bound_usd - 1e-6
    assert found.usd <= 2 * exact.usd + 30
    assert found.params == mast_opt.BuyParams()
    once = mast_opt.buy(problem, solver="tetris", time_limit_s=2, threads=1, params={"rounds": 1})
    assert once.params.rounds == 1
    assert once.usd is not None  # everything that there is, less what a plan does without
    _check(problem, once, Fraction(1))


def test_an_easier_target_is_never_answered_worse() -> None:
    problem = mast_opt.generate("data-placement", seed=5, datasets=5, workloads=7, regions=2)
    regions, types = np.nonzero(problem.regions.supply_mgpu)
    rows = [(f"{r} {k}", GPUS, int(r), int(k), 2, 8000, 9, 10 + int(k), 0) for r, k in zip(regions, types, strict=True)]
    problem = replace(problem, candidates=offered(*rows))
    paid = [mast_opt.buy(problem, target=target, threads=1).usd for target in (0.6, 0.8, 1, 1.5, 9)]
    known = [float("inf") if usd is None else float(usd) for usd in paid]
    assert known == sorted(known, reverse=True)
    assert known[-1] == 0 < known[1]


@pytest.mark.parametrize("status", [Status.NO_SOLUTION, Status.OPTIMAL])
def test_where_no_purchase_is_found_in_time_what_is_not_needed_is_given_back(
    status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program of the purchases ends without an answer, or with one for which there is no plan."""
    solve = Highs.solve

    def lame(self: Highs, mip: Mip, params: SolveParams) -> SolveResult:
        if not mip.terms or "purchase" not in mip.terms or not mip.col_upper[-len(GPU_SHORT.candidates or ()) :].any():
            return solve(self, mip, params)
        if status is Status.NO_SOLUTION:
            return SolveResult(status, None, None, 3.0, Limit.TIME, "")
        return SolveResult(status, mip.col_lower.copy(), 0.0, 0.0, None, "")

    monkeypatch.setattr(Highs, "solve", lame)
    answer = mast_opt.buy(GPU_SHORT, target=0.5, solver="highs")
    assert answer.status is Status.FEASIBLE
    _check(GPU_SHORT, answer, Fraction(1, 2))
    assert answer.usd == 160  # everything costs 400
    assert answer.bound_usd == (3.0 if status is Status.NO_SOLUTION else 0.0)


def test_marginal_values_agree() -> None:
    """A purchase is made only where one more GPU is worth something, once overload is all that counts."""
    weights = dict.fromkeys(PROBLEM.objective.weights, 0.0) | {"overload": 1.0}
    crowded = GPU_SHORT.with_columns(
        {
            "regions.supply_mgpu": ints((6, 0), (6, 0), (0, 8)) * 1000,
            "objective": replace(PROBLEM.objective, weights=weights),
            "candidates": GPU_SHORT.candidates.rows(ints(0, 1, 2)),  # type: ignore[union-attr]
        }
    )
    answer = mast_opt.buy(crowded)
    assert [(row.offer.name, row.steps) for row in answer.bought] == [("h100 in b", 1)]
    worth = mast_opt.marginal_values(crowded, integers="free", resources=["gpus"])
    values = {one.place: one.value for one in worth.values}
    assert values["b h100"]
    assert values["a h100"]
    assert values["c a100"] == 0
    assert answer.instance is not None
    after = mast_opt.marginal_values(answer.instance, integers="free", resources=["gpus"])
    assert {one.value for one in after.values} == {0}


def test_what_cannot_be_asked() -> None:
    with pytest.raises(UsageError, match="offers nothing to buy; add a table 'candidates'"):
        mast_opt.buy(PROBLEM)
    for wrong in ({"target": 0}, {"target": -1.0}, {"budget_usd": -5}):
        with pytest.raises(UsageError, match="expected a number"):
            mast_opt.buy(GPU_SHORT, **wrong)
    with pytest.raises(UsageError, match="no work has tier 7; expected one of: 0 and 1"):
        mast_opt.buy(GPU_SHORT, tier=7)
    with pytest.raises(UsageError, match=r"BuyParams has no parameter 'round'.*rounds"):
        mast_opt.buy(GPU_SHORT, params={"round": 2})
    with pytest.raises(UsageError, match="task-reassignment has nothing to buy"):
        mast_opt.buy(mast_opt.generate("task-reassignment"))
    with pytest.raises(InstanceError, match="a GPU type for the candidate x"):
        replace(PROBLEM, candidates=offered(("x", GPUS, 0, NOT, 3, 1000, 1, 1, 0)))
    with pytest.raises(InstanceError, match="two regions that a row of links joins for the candidate x"):
        replace(PROBLEM, candidates=offered(("x", LINK, 2, NOT, 0, 1000, 1, 1, 0)))
    with pytest.raises(InstanceError, match="more than 0"):
        offered(("x", STORAGE, 0, NOT, 3, 0, 1, 1, 0))


@pytest.mark.parametrize("solver", ["auto", "highs"])
def test_a_share_that_rounds_past_the_target_buys_nothing(solver: str) -> None:
    """At both ends of what fits, shares round past a supply; 334 and 666 thousandths of the work fit."""
    problem = mast_opt.from_tables(
        "data-placement",
        {
            "regions": {"region": ["a", "b"], "storage_tb": [10, 10], "cpu_cores": [1000, 1000]},
            "gpu_supply": {"region": ["a", "b"], "gpu_type": ["h100", "h100"], "gpus": [10.041, 20.001]},
            "datasets": {"dataset": ["logs"], "size_tb": [1]},
            "replicas": {"dataset": ["logs"], "region": ["a"]},
            "workloads": {"workload": ["train"], "tier": [0], "cpu_cores": [30], "splittable": [True]},
            "gpu_demand": {"workload": ["train"], "gpu_type": ["h100"], "gpus": [30]},
            "reads": {"workload": ["train"], "dataset": ["logs"], "tb_per_day": [1]},
        },
    )
    problem = replace(problem, candidates=offered(("h100 in a", GPUS, 0, 0, 1, 4000, 5, 100, 30)))
    answer = mast_opt.buy(problem, solver=solver, threads=1)
    _check(problem, answer, Fraction(1))
    assert answer.usd == 0


def test_what_a_purchase_costs_to_run() -> None:
    """12 GPUs of work on 10 that cost 2 USD an hour, and 1 TB at 5 USD a month; a step brings 4 GPUs."""
    work = [{"workload": name, "tier": 0, "cpu_cores": 1} for name in ("one", "two")]
    tables = {
        "regions": [{"region": "home", "storage_tb": 10, "cpu_cores": 100, "usd_per_tb_month": 5}],
        "gpu_supply": [{"region": "home", "gpu_type": "a100", "gpus": 10, "usd_per_gpu_hour": 2}],
        "datasets": [{"dataset": "logs", "size_tb": 1}],
        "replicas": [{"dataset": "logs", "region": "home"}],
        "workloads": work,
        "gpu_demand": [{"workload": one["workload"], "gpu_type": "a100", "gpus": 6} for one in work],
        "current_runs": [{"workload": one["workload"], "region": "home", "gpu_type": "a100"} for one in work],
        "reads": [{"workload": one["workload"], "dataset": "logs", "tb_per_day": 1} for one in work],
        "candidates": [
            {"candidate": "four", "resource": "gpus", "region": "home", "gpu_type": "a100"}
            | {"step": 4, "usd_per_step": 9}
        ],
    }
    problem = mast_opt.from_tables("data-placement", tables, name="priced")
    answer = mast_opt.buy(problem, solver="highs", threads=1)
    assert answer.bill == Bill(today=10 * 2 * 730 + 5, after=12 * 2 * 730 + 5, bought=4 * 2 * 730)
    assert purchase_sections(answer)[1].rows == (
        ("today", 14_605),
        ("with this plan, after the purchase", 17_525),
        ("what is bought, while all of it is in use", 5_840),
    )
    (now,) = mast_opt.buy_in_time(problem, [mast_opt.Scenario("now", {"days": 1})], solver="highs", threads=1).periods
    assert now.bill == Bill(after=17_525, bought=5_840)
    assert len(purchase_sections(replace(answer, bill=Bill()))) == 1  # without prices
