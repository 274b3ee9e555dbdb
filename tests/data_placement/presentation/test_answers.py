"""First screen of a report, and its long tables, against values worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

import mast_opt
from mast_opt.planner.analysis.goals import PLAN as THIS
from mast_opt.planner.analysis.goals import figures_of
from mast_opt.planner.report.change_sections import diff_sections
from mast_opt.planner.report.html.content import report
from mast_opt.planner.report.html.page import page
from mast_opt.planner.report.result_sections import goal_sections
from mast_opt.problems.data_placement.plan import gpu_demand
from mast_opt.problems.data_placement.presentation.answers import answers, usd
from mast_opt.problems.data_placement.presentation.details import BINDING, DATA, WORK, details
from mast_opt.problems.data_placement.presentation.sections import sections
from mast_opt.problems.data_placement.verification.verifier import verify
from tests.analysis.support import worst_region_loss
from tests.data_placement.workshop import PLAN, PROBLEM, ints
from tests.instance_rows import DataRows


def test_what_is_asked_first() -> None:
    found = {one.topic: one for one in answers(PROBLEM, PLAN)}
    assert list(found) == ["If nothing is done", "What to do", "Overload", "Cost", "Storage", "What to buy"]
    assert found["If nothing is done"].value == "not known"
    assert found["Overload"].value == "1.00"  # today is not known for view
    assert "exceeds supply in 0 of 4 region/GPU-type pairs" in found["Overload"].detail
    assert found["Cost"].value == "71,318 USD"
    assert found["Storage"].value == "10 → 23 TB"
    assert "b, 56% of its storage" in found["Storage"].detail  # 10 of 18 TB
    assert found["What to do"].value == "2 workloads, 2 datasets"
    assert found["What to buy"].value == "nothing for today's work"


def test_a_plan_without_gpus_speaks_of_none() -> None:
    builder = DataRows("warehouse")
    builder.add_region("home", storage_tb=10, cpu_cores=9, usd_per_tb_month=20)
    builder.add_region("away", storage_tb=10, cpu_cores=9, usd_per_tb_month=30)
    builder.add_dataset("logs", size_tb=1, replicas=["home"])
    builder.add_workload("etl", tier=0, cpu_cores=1, reads={"logs": 1}, current_region="home")
    problem = builder.build()
    plan = mast_opt.solve(problem, "highs").plan
    assert plan is not None
    found = {one.topic: one for one in answers(problem, plan)}
    assert list(found) == ["If nothing is done", "What to do", "Cost", "Storage", "What to buy"]
    assert not any("GPU" in f"{one.value} {one.detail}" for one in found.values())
    moved = replace(plan, run_region=np.full_like(plan.run_region, 1))
    (table,) = [one for one in details(problem, moved) if one.title == "Workloads that move"]
    assert table.rows == (("etl", 0, "home", "away", 1),)
    assert "GPU" not in table.note
    assert answers(problem, moved)[1].more == table.title
    found = {
        one.topic: one for one in answers(problem.with_objective({"running_cost": 0.0, "migration_cost": 0.0}), plan)
    }
    assert found["Cost"].detail.endswith("The objective of this plan counts no money; '--goal cheapest' does.")


def test_a_bill_that_grows_while_the_running_cost_falls_is_explained() -> None:
    """8 GPUs of work on 4 at 4 USD an hour; elsewhere there are 12 at 3 USD."""
    builder = DataRows("crowded")
    builder.add_region("home", storage_tb=10, cpu_cores=9, gpus={"a100": 4}, usd_per_gpu_hour={"a100": 4})
    builder.add_region("away", storage_tb=10, cpu_cores=9, gpus={"a100": 12}, usd_per_gpu_hour={"a100": 3})
    builder.add_dataset("logs", size_tb=1, replicas=["home", "away"])
    builder.add_workload("job", tier=0, cpu_cores=1, gpus={"a100": 8}, reads={"logs": 1}, current_region="home")
    problem = builder.build()
    plan = mast_opt.solve(problem, "highs", goal="least-change", threads=1).plan
    assert plan is not None
    found = mast_opt.diff(problem, None, plan)
    note, count = found.notes
    assert count.startswith(f"{found.rows} decisions are in only one of the plans, which 'solve' counts")
    assert "running_cost (-5,840) is the price of all work, as if GPUs over the supply existed" in note
    assert "billed_usd_a_month (+5,840)" in note
    assert "overload_usd_a_month (-11,680)" in note
    assert diff_sections(found)[0].note == f"{note} {count}"
    assert mast_opt.diff(problem, plan, plan).notes == ()


def test_overload_for_lack_of_days_is_called_so() -> None:
    """5 TB for each of two jobs of 8 GPUs; 4 TB arrive in 2 days, and 8 in 4."""
    builder = DataRows("hasty", days=2)
    builder.add_region("home", storage_tb=20, cpu_cores=9, gpus={"a100": 8})
    builder.add_region("away", storage_tb=20, cpu_cores=9, gpus={"a100": 8}, ingress_tb_per_day=2)
    builder.add_region("small", storage_tb=4, cpu_cores=9, gpus={"a100": 8}, ingress_tb_per_day=2)
    builder.add_region("other", storage_tb=20, cpu_cores=9, gpus={"h100": 8}, ingress_tb_per_day=2)
    for name in ("one", "two"):
        builder.add_dataset(name, size_tb=5, replicas=["home"])
        builder.add_workload(
            f"of-{name}", tier=0, cpu_cores=1, gpus={"a100": 8}, reads={name: 1}, current_region="home"
        )
    hasty = builder.build()
    words = "Within 2 days, data of overloaded work cannot be copied to away, where GPUs are idle"
    plan, patient = mast_opt.solve(hasty, "highs").plan, replace(hasty, days=Fraction(4))
    assert plan is not None
    assert words in answers(hasty, plan)[-1].detail
    assert words in sections(hasty, plan)[0].note
    assert "Within" not in answers(patient, plan)[-1].detail
    better = mast_opt.solve(patient, "highs").plan
    assert better is not None
    assert answers(patient, better)[-1].detail.startswith("This plan fits")


def test_what_doing_nothing_costs() -> None:
    builder = DataRows("crowded")
    builder.add_region("home", storage_tb=10, cpu_cores=9, gpus={"a100": 10}, usd_per_gpu_hour={"a100": 4})
    builder.add_region("away", storage_tb=10, cpu_cores=9, gpus={"a100": 12})
    builder.add_dataset("logs", size_tb=1, replicas=["away"], residency=["away"])
    builder.add_workload("train", tier=0, cpu_cores=1, gpus={"a100": 12}, reads={"logs": 1}, current_region="home")
    problem = builder.build()
    plan = mast_opt.solve(problem, "highs").plan
    assert plan is not None
    nothing = answers(problem, plan)[0]
    assert nothing.value == "2 GPUs missing"
    broken = "1 limit broken; train reads logs in home, outside the residency of the data"
    rest = "1.0 TB a day read from other regions; 29,200 USD a month for what fits"
    assert nothing.detail == f"Most of them a100 in home; {broken}; {rest}."
    cost = next(one for one in answers(problem, plan) if one.topic == "Cost")
    assert cost.value == "29,200 → 0 USD"
    assert cost.detail.endswith("those that work lacks would cost 5,840 → 0 USD more.")


def test_remainders_of_thousandths_are_nothing() -> None:
    demand = gpu_demand(PROBLEM, PLAN)[:, :, -1].astype(np.int64)
    for short_mgpu, lacking in ((50, "nothing for today's work"), (2000, "nothing for today's work")):
        tight = PROBLEM.with_columns({"regions.supply_mgpu": np.where(demand > 0, demand - short_mgpu, 4000)})
        assert verify(tight, PLAN).metrics["overload_gpus"] > 0
        assert {one.topic: one for one in answers(tight, PLAN)}["What to buy"].value == lacking


def test_what_is_missing_and_what_has_no_price() -> None:
    crowded = PROBLEM.with_columns(
        {
            "regions.supply_mgpu": ints((8, 0), (5, 16), (0, 3)) * 1000,
            "regions.gpu_price_micro": np.zeros((3, 2), np.int64),
            "regions.storage_price_micro": np.zeros(3, np.int64),
            "regions.copy_price_micro": np.zeros(3, np.int64),
            "links.price_usd_per_tb": np.zeros(4),
        }
    )
    found = {one.topic: one for one in answers(crowded, PLAN)}
    assert found["Cost"].value == "no prices"
    assert found["What to buy"].value == "nothing for today's work"
    words = (
        "This plan lacks 3 h100 in b, 1 a100 in c, while 8 h100, 16 a100 are idle elsewhere. '--limit overload_gpus=0'"
    )
    assert words in found["What to buy"].detail


def test_what_is_to_be_bought_is_what_no_region_has() -> None:
    short = PROBLEM.with_columns({"regions.supply_mgpu": ints((2, 0), (5, 16), (0, 3)) * 1000})
    answer = {one.topic: one for one in answers(short, PLAN)}["What to buy"]
    assert answer.value == "1 GPU"  # of the 3 that b lacks, 2 are idle in a
    assert "more than is idle elsewhere. 'mast-opt buy'" in answer.detail


def test_sums_of_money() -> None:
    assert [usd(amount) for amount in (12.4, 71_318, 16_068_961, 2.5e9)] == [
        "12 USD",
        "71,318 USD",
        "16.07 million USD",
        "2.50 billion USD",
    ]


def test_who_moves_and_what_binds() -> None:
    limited = replace(PROBLEM, limits={"copied_tb": Fraction(13)})
    tables = {section.title: section for section in details(limited, PLAN)}
    assert list(tables) == [WORK, DATA, BINDING]
    assert tables[WORK].rows == (
        ("train", 0, "a h100", "b h100", 8.0, 0.0, 2),
        ("etl", 1, "a", "c", 0.0, 0.0, 1),
    )
    assert tables[DATA].rows == (
        ("video", "nowhere", "c", "", 9.0, 9.0, 1),
        ("logs", "a", "b", "", 4.0, 4.0, 2),
    )
    assert [row[:2] for row in tables[BINDING].rows] == [
        ("GPUs", "b h100"),
        ("copies received", "b"),
        ("limit on the whole plan", "copied_tb"),
    ]
    assert all(row[5] == 1 for row in tables[BINDING].rows)


def test_changes_of_type_are_listed_and_add_up_with_the_steps() -> None:
    """One job changes region and type, the other only its type; 12 and 10.2 GPUs are in use afterwards."""
    builder = DataRows("retyped")
    for name in ("east", "west"):
        builder.add_region(name, storage_tb=9, cpu_cores=9, gpus={"a100": 40, "h100": 40})
    builder.add_dataset("logs", size_tb=1, replicas=["east", "west"])
    for name, gpus in (("goes", {"a100": 24, "h100": 12}), ("stays", {"a100": 34, "h100": 17})):
        builder.add_workload(
            name, tier=0, cpu_cores=1, gpus=gpus, reads={"logs": 1}, current_region="east", splittable=name == "stays"
        )
    now = builder.build().with_columns({"current_runs.gpu_type": ints(0, 0)})
    first = mast_opt.solve(now, "highs", threads=1).plan
    assert first is not None
    plan = first.with_rows(run=(ints(0, 1, 1), ints(1, 0, 0), ints(1, 0, 1), ints(1000, 400, 600)))
    table = details(now, plan)[0]
    assert table.rows == (
        ("goes", 0, "east a100", "west h100", 12.0, 0.0, 1),
        ("stays", 0, "east a100", "east h100", 0.0, 10.2, 1),
    )
    moves = [one.amount or 0.0 for one in mast_opt.steps(now, plan).moves if one.action == "move"]
    assert sum(moves) == 22.2
    answer = {one.topic: one for one in answers(now, plan)}["What to do"]
    assert answer.value == "2 workloads, 1 dataset"
    assert answer.detail.startswith(
        "12 GPUs of work change region and 10 GPUs of work change only their GPU type; 0.0 TB"
    )
    assert answer.detail.endswith(" 41.4% of the work leaves its region, by the fewest GPUs that each workload needs.")


def test_a_plan_without_gpus_has_no_table_of_them() -> None:
    bare = PROBLEM.with_columns({"regions.supply_mgpu": np.zeros_like(PROBLEM.regions.supply_mgpu)})
    assert "GPU demand against supply" in [one.title for one in sections(PROBLEM, PLAN)]
    assert "GPU demand against supply" not in [one.title for one in sections(bare, PLAN)]


def lost_home() -> mast_opt.DataPlacement:
    """``home`` is lost with the data of ``gone``; ``away`` has GPUs for ``small`` and none for ``large``."""
    builder = DataRows("lost", unserved="price")
    builder.add_region("home", storage_tb=0, cpu_cores=0, gpus={"a100": 0, "h100": 8})
    builder.add_region("away", storage_tb=9, cpu_cores=9, gpus={"a100": 4, "h100": 0})
    builder.add_dataset("logs", size_tb=1, replicas=["away"])
    types = {"gone": {"a100": 3}, "small": {"a100": 4}, "large": {"h100": 8}}
    for name, gpus in types.items():
        builder.add_workload(name, tier=0, cpu_cores=1, gpus=gpus, reads={"logs": 1}, current_region="home")
    problem = builder.build()
    forbidden = np.array([[True, True], [True, False], [True, False]])
    return problem.with_columns({"workloads.forbidden": forbidden, "regions.supply_mgpu": ints((0, 0), (4000, 0))})


def test_refused_work_is_stated_and_not_nothing_to_buy() -> None:
    problem = lost_home()
    plan = mast_opt.solve(problem, "highs", threads=1).plan
    assert plan is not None
    found = {one.topic: one for one in answers(problem, plan)}
    assert found["What to do"].value == "1 workload, 0 datasets"
    what = found["What to do"].detail
    assert what.startswith("4 GPUs of work change region and 11 GPUs of work are left out (as used today); ")
    assert " 26.7% of the work leaves its region, by" in what
    assert details(problem, plan)[0].note.startswith("1 workload of 3, and 2 that are left out, with the GPUs")
    assert found["Refused work"].value == "2 workloads, 11 GPUs"
    assert "No region may run 1 workload of these" in found["Refused work"].detail
    assert found["What to buy"].value == "for refused work of 8 GPUs"
    assert "No purchase lets 3 GPUs of refused work run" in found["What to buy"].detail
    assert "Refused work of 8 GPUs accepts h100: 'mast-opt buy'" in found["What to buy"].detail
    assert "The rest fits into what there is" in found["What to buy"].detail
    barred = problem.with_columns({"workloads.forbidden": np.array([[True, True], [True, False], [True, True]])})
    assert {one.topic: one.value for one in answers(barred, plan)}["What to buy"] == "no GPUs serve the refused work"
    page_text = page(report(problem, plan))
    assert "Verified: no limit is broken. Refused: 2 workloads, 11 GPUs." in page_text


def test_work_that_stands_still_has_not_moved() -> None:
    """``home`` is lost: without a plan all stands still, with it ``small`` moves."""
    problem = lost_home()
    plan = mast_opt.solve(problem, "highs", threads=1).plan
    assert plan is not None
    section = goal_sections(problem, figures_of(problem, {THIS: plan}))[0]
    rows = {row[0]: row[1:] for row in section.rows}
    assert rows["GPUs of work that stands still"] == ("15", "11")
    assert rows["workloads moved, by share"] == ("0", "1")
    assert rows["work that leaves its region"] == ("0.0%", "26.7%")
    assert "work that leaves its GPU type" not in rows


def test_a_region_that_is_lost_already_is_not_lost_again() -> None:
    problem = lost_home()
    plan = mast_opt.solve(problem, "highs", threads=1).plan
    assert plan is not None
    loss = worst_region_loss(problem, plan)
    assert loss is not None
    assert [one.region for one in loss.regions] == ["away"]
