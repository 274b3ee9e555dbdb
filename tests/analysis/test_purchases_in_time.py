"""What to order when: the price first, then as late as lead days allow, in one program or period by period."""

from __future__ import annotations

import pytest

import mast_opt
from mast_opt.core.solve_result import Status
from mast_opt.planner.report.result_sections import order_date_sections
from mast_opt.problems.data_placement import DataPlacement


def growing(lead_days: int = 20, most_steps: int = 5) -> DataPlacement:
    """Work of 8 GPUs in a region with 10. A step brings 4 GPUs for 100 USD, or 8 for 180 USD."""
    tables = {
        "regions": [{"region": "home", "storage_tb": 10, "cpu_cores": 100}],
        "gpu_supply": [{"region": "home", "gpu_type": "a100", "gpus": 10}],
        "datasets": [{"dataset": "logs", "size_tb": 1}],
        "replicas": [{"dataset": "logs", "region": "home"}],
        "workloads": [{"workload": name, "tier": 0, "cpu_cores": 1} for name in ("one", "two")],
        "gpu_demand": [{"workload": name, "gpu_type": "a100", "gpus": 4} for name in ("one", "two")],
        "reads": [{"workload": name, "dataset": "logs", "tb_per_day": 1} for name in ("one", "two")],
        "candidates": [
            {"candidate": name, "resource": "gpus", "region": "home", "gpu_type": "a100", "step": step}
            | {"most_steps": most_steps, "usd_per_step": usd, "lead_days": lead_days}
            for name, step, usd in (("four", 4, 100), ("eight", 8, 180))
        ],
    }
    return mast_opt.from_tables("data-placement", tables, name="growing")


def quarters(first: float = 1.0) -> tuple[mast_opt.Scenario, ...]:
    """Demand of 8 GPUs, then 12, then 18; each period is 30 days."""
    return tuple(
        mast_opt.Scenario(name, {"days": 30, "grow_demand": {"all": factor}})
        for name, factor in (("q1", first), ("q2", 1.5), ("q3", 1.5))
    )


def test_the_cheapest_purchase_and_as_late_as_can_be() -> None:
    """18 GPUs need 8 more: 180 USD at once. Of that, 4 would do in q2, but two steps of four cost 200 USD."""
    answer = mast_opt.buy_in_time(growing(), quarters(), solver="highs", threads=1)
    assert answer.status is Status.OPTIMAL
    assert answer.usd == 180
    assert answer.bound_usd == pytest.approx(180)
    bought = {one.name: [(row.offer.name, row.steps) for row in one.bought] for one in answer.periods}
    assert bought == {"q1": [], "q2": [("eight", 1)], "q3": []}
    assert [one.begins_day for one in answer.periods] == [0, 30, 60]
    assert all(one.worst_after <= 1 for one in answer.periods)
    assert all(mast_opt.verify(one.instance, one.plan).ok for one in answer.periods)
    orders, periods = order_date_sections(answer)
    assert orders.rows == ((10, 30, "q2", "eight", "home", 8.0, "GPUs", 180.0),)
    assert [row[2] for row in periods.rows] == [0.8, pytest.approx(12 / 18), 1.0]


def test_what_is_not_needed_yet_is_ordered_later() -> None:
    answer = mast_opt.buy_in_time(growing(), (*quarters()[:1], *later()), solver="highs", threads=1)
    assert answer.usd == 100
    assert [len(one.bought) for one in answer.periods] == [0, 0, 1]


def later() -> tuple[mast_opt.Scenario, ...]:
    return (
        mast_opt.Scenario("idle", {"grow_demand": {"all": 1.1}}),
        mast_opt.Scenario("busy", {"grow_demand": {"all": 1.4}}),
    )


def test_a_period_that_comes_too_soon_is_named() -> None:
    answer = mast_opt.buy_in_time(growing(), quarters(first=2.0), solver="highs", threads=1)
    assert (answer.status, answer.periods) == (Status.INFEASIBLE, ())
    assert answer.message == "the target is out of reach, even with everything that may be bought by q1"


def test_a_heuristic_goes_from_period_to_period() -> None:
    answer = mast_opt.buy_in_time(growing(), quarters(), solver="tetris", threads=1, time_limit_s=30.0)
    assert answer.status is Status.FEASIBLE
    assert answer.usd is not None
    assert 180 <= answer.usd <= 280
    assert all(one.worst_after <= 1 for one in answer.periods)
