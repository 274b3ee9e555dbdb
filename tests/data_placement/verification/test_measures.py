"""Terms and metrics of worked plans, with the arithmetic next to them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from mast_opt.core.errors import InstanceError
from mast_opt.problems.data_placement.problem import OBJECTIVE
from mast_opt.problems.data_placement.tables.problem_tables import problem_from_tables, problem_to_tables
from mast_opt.problems.data_placement.verification.verifier import verify
from mast_opt.problems.kind.header import Objective
from tests.data_placement.edits import DERIVED, FREE, REMOTE, RUN, dropped
from tests.data_placement.workshop import PLAN, PROBLEM, ints


def test_terms_and_metrics_of_the_plan() -> None:
    verdict = verify(PROBLEM, PLAN)
    cpu_share = 50_000 * 40_000 // 300_000 + 1  # etl counts 50 of 300 cores' share of 40 GPUs, rounded to milli-GPUs
    assert cpu_share == 6667
    demand = 8000 + cpu_share + 4000
    assert verdict.terms == pytest.approx(
        {
            "peak": 8 / 8 + 8 / 8 + 0 + 4 / 8,  # h100 and a100 for tier 0, then for both tiers
            "overload": 0,
            "idle": 8 / 16 + (16 + 4) / 24,
            "remote": 0.4 * 1 / 10,
            "egress": 0.4 * 50 + 4 * 20,
            "copy": (4 + 9) / 19,
            "storage": (8 + 6 + 9) / 19,
            "moved_work": (8000 + 0.4 * cpu_share) / demand,
            "unserved": 0,
            "running_cost": 730 * (8 * 11 + 4 * 2)  # train in b, view in c
            + (4 * 20 + (4 + 6) * 30 + (9 + 1) * 25)  # replicas, and what view writes
            + 0.4 * 50 * 730 / 24,  # etl reads logs over a link
            "migration_cost": 4 * (2 + 20) + 9 * 5,  # logs over a link, video from outside
            "retyped_work": 0,  # train stays on h100
            "moved_items": (2 + 1 + 0.4) / (3 + 3),  # logs and video, train and a part of etl
        }
    )
    assert verdict.objective == pytest.approx(2.5 + 5 * 0.04 + 0.5 * 13 / 19 + 0.1 * 23 / 19)
    assert verdict.metrics == pytest.approx(
        {
            "peak_ratio": 1,
            "peak_ratio_tier0": 1,
            "overload_gpus": 0,
            "stored_tb": 23,
            "copied_tb": 13,
            "new_replicas": 2,
            "moved_shares": 1.4,
            "remote_tb_per_day": 0.4,
            "non_collocation_rate": 1 / 3,
            "storage_overhead": 4 / 19,
            "unserved_gpus": 0,
            "billed_usd_a_month": verdict.terms["running_cost"],
            "overload_usd_a_month": 0,
        }
    )


def test_overload_refusals_and_slow_copies_are_measured() -> None:
    crowded = PROBLEM.with_columns(
        {
            "regions.supply_mgpu": ints((8, 0), (5, 16), (0, 3)) * 1000,
            "may_refuse": True,
            "days": Fraction(4),
            "objective": replace(PROBLEM.objective, tier_weights={0: 3.0, 1: 0.5}),
        }
    )
    verdict = verify(crowded, dropped(dropped(PLAN, RUN, 2), REMOTE, 0))  # 400 of etl are not served
    per_core = 32_000 / 300_000
    etl = round(50_000 * per_core)
    assert verdict.terms["peak"] == pytest.approx(3 * 8 / 5 + 0.5 * 8 / 5 + 0.5 * 4 / 3)
    assert verdict.terms["overload"] == pytest.approx(3 * 3 / 13 + 0.5 * 3 / 13 + 0.5 * 1 / 19)
    assert verdict.terms["unserved"] == pytest.approx(0.5 * 0.4 * etl / (3 * 8000 + 0.5 * (etl + 4000)))
    assert verdict.terms["egress"] == pytest.approx(4 * 20 / 4)
    assert verdict.metrics["overload_gpus"] == pytest.approx(3 + 1)
    assert verdict.metrics["unserved_gpus"] == 0
    assert verdict.metrics["peak_ratio"] == pytest.approx(8 / 5)
    refused = verify(crowded, dropped(PLAN, RUN, 0))
    assert refused.metrics["unserved_gpus"] == 8
    assert refused.metrics["peak_ratio_tier0"] == 0


def test_a_ratio_within_its_level_costs_nothing() -> None:
    """The worst ratios of the plan are 1 on h100 and, for both tiers together, 0.5 on a100."""
    levels = PROBLEM.with_columns({"objective": replace(PROBLEM.objective, peak_levels={0: 0.9, 1: 0.25})})
    assert verify(levels, PLAN).terms["peak"] == pytest.approx((1 - 0.9) + (1 - 0.25) + (0.5 - 0.25))
    unstated = PROBLEM.with_columns({"objective": Objective(PROBLEM.objective.weights)})
    assert unstated.objective.peak_levels == {0: 0.9, 1: 1.0}


def test_only_the_share_that_leaves_its_known_type_is_retyped() -> None:
    """Train runs on h100 under the plan: today for 0.3 on a100, for 0.2 on h100, and for 0.5 it is not known."""
    today = PROBLEM.with_columns(
        {
            "current_runs.workload": ints(0, 0, 0),
            "current_runs.region": ints(1, 1, 1),
            "current_runs.gpu_type": ints(0, 1, 2),
            "current_runs.share": ints(200, 300, 500),
        }
    )
    assert verify(today, PLAN).terms["retyped_work"] == pytest.approx(0.3 * 8000 / (8000 + 6667 + 4000))


def test_only_the_share_that_leaves_its_region_is_moved() -> None:
    """Today etl runs for 0.3 in a and 0.7 in c; the plan runs 0.6 of it in a and 0.4 in c, so 0.3 of it moves."""
    today = PROBLEM.with_columns(
        {
            "current_runs.workload": ints(0, 1, 1),
            "current_runs.region": ints(1, 0, 2),
            "current_runs.gpu_type": ints(0, 2, 2),
            "current_runs.share": ints(1000, 300, 700),
        }
    )
    demand = 8000 + 6667 + 4000
    verdict = verify(today, PLAN)
    assert verdict.terms["moved_work"] == pytest.approx(0.3 * 6667 / demand)
    assert verdict.metrics["moved_shares"] == pytest.approx(0.3)


def test_a_share_that_stops_is_not_moved() -> None:
    """The plan runs 0.1 of etl nowhere, and 0.3 in another region."""
    stopping = PROBLEM.with_columns({"may_refuse": True})
    plan = replace(PLAN, run_share=PLAN.run_share - ints(0, 0, 100, 0))
    verdict = verify(stopping, plan)
    assert verdict.metrics["moved_shares"] == pytest.approx(1.3)
    assert verdict.terms["moved_items"] == pytest.approx((2 + 1 + 0.4) / (3 + 3))


def test_a_plan_for_nothing_has_no_denominators() -> None:
    empty = FREE.with_columns(
        {
            "datasets.size_mb": ints(0, 0, 0),
            "reads.mb_per_day": ints(0, 0, 0, 0),
            "objective": replace(PROBLEM.objective, tier_weights={0: 0.0, 1: 0.0}),
            "may_refuse": True,
        }
    )
    idle = {name: ints() for name in RUN}
    verdict = verify(empty, replace(DERIVED, **idle))
    moved, retyped = (pytest.approx(mgpu / (8000 + 6667 + 4000)) for mgpu in (8000 + 6667, 8000))
    left = {"moved_work": moved, "retyped_work": retyped, "moved_items": pytest.approx(4 / 6)}
    assert verdict.terms == dict.fromkeys(verdict.terms, 0) | {"idle": pytest.approx(2)} | left
    assert OBJECTIVE["idle"].unit == "sum over GPU types of the share that is idle"
    assert verdict.metrics["storage_overhead"] == 0


def test_work_whose_size_does_not_fit_in_64_bits_is_refused() -> None:
    """Cores count as the GPUs that come with them: next to no cores make each worth all GPUs."""
    no_cores = replace(PROBLEM, regions=replace(PROBLEM.regions, cpu_mcores=ints(0, 0, 0)), may_refuse=True)
    most = 2**63 // 40_000
    fits = no_cores.with_columns(
        {"workloads.cpu_mcores": ints(2**62, most // 2, 0)}
    )  # that of train, which needs GPUs, counts not
    assert problem_from_tables(*problem_to_tables(fits)).demand_mgpu.tolist() == pytest.approx([8000, 2**62, 4000])
    with pytest.raises(InstanceError, match=r"workloads, column cpu_cores: found '9\.22e\+15 GPUs'; expected work"):
        problem_from_tables(*problem_to_tables(fits.with_columns({"workloads.cpu_mcores": ints(0, most + 1, 0)})))
