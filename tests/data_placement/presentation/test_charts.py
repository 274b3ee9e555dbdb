"""Charts of worked plans: every figure and unit that they draw."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mast_opt.problems.data_placement.plan import today
from mast_opt.problems.data_placement.presentation.charts import charts
from mast_opt.problems.kind.presentation import Scale
from tests.data_placement.migration.handmade import two_regions
from tests.data_placement.presentation.busy import BUSY, MOVED
from tests.data_placement.workshop import LOGS, PLAN, PROBLEM, ints


def drawn(problem: Any = BUSY, plan: Any = MOVED) -> dict[str, Any]:
    return {chart.title: chart for chart in charts(problem, plan)}


def test_order() -> None:
    assert list(drawn()) == [
        "GPU demand over supply",
        "GPU demand and supply by tier",
        "Storage in use",
        "CPU cores in use",
        "Copies to make",
        "Reads that stay remote",
    ]


def test_gpus_by_region() -> None:
    heat = drawn()["GPU demand over supply"]
    assert (heat.rows, heat.columns, heat.scale) == (("a", "b", "c"), ("h100", "a100"), Scale.RATIO)
    assert heat.before == ((1, None), (0, 0), (None, 4 / 3))
    assert heat.after == ((0, None), (8 / 5, 0), (None, 4 / 3))
    assert heat.note == "Work of all tiers. Demand exceeds supply in 2 of 4 region/GPU-type pairs."


def test_a_full_region_is_not_asked_for_too_much() -> None:
    heat = drawn(PROBLEM, PLAN)["GPU demand over supply"]
    assert heat.after == ((0, None), (1, 0), (None, 4 / 8))
    assert " 0 of 4 region" in heat.note


def test_a_thousandth_of_a_gpu_counts_as_supply() -> None:
    tiny = BUSY.with_columns({"regions.supply_mgpu": ints((8000, 1), (5000, 16_000), (0, 3000))})
    assert " 2 of 5 region" in drawn(tiny)["GPU demand over supply"].note


def test_gpus_by_tier() -> None:
    bars = drawn()["GPU demand and supply by tier"]
    assert (bars.categories, bars.unit, bars.scale) == (("h100", "a100"), "GPUs", Scale.AMOUNT)
    assert bars.series == (
        ("supply", (8 + 5, 16 + 3)),
        ("demand of tier 0", (8, 0)),
        ("demand of tiers up to 1", (8, 4)),
    )


def test_storage() -> None:
    """Replicas and outputs; c has no storage."""
    bars = drawn()["Storage in use"]
    assert (bars.categories, bars.scale) == (("a", "b", "c"), Scale.FILL)
    assert bars.series == (
        ("before", (pytest.approx((4 + 6 + 3 + 1) / 20), pytest.approx(6 / 27), None)),
        ("after", (pytest.approx((4 + 5 + 0.6) / 20), pytest.approx((4 + 6 + 3) / 27), None)),
    )


def test_cpu() -> None:
    bars = drawn()["CPU cores in use"]
    assert bars.scale is Scale.FILL
    assert bars.series == (("before", (0.6, 0, None)), ("after", (0.3, 0.25, None)))


def test_nothing_is_compared_with_a_state_that_is_not_known_in_full() -> None:
    """The workshop does not state where view runs."""
    shown = drawn(PROBLEM, PLAN)
    assert shown["GPU demand over supply"].before is None
    assert [name for name, _ in shown["CPU cores in use"].series] == ["after"]
    assert shown["Storage in use"].note.endswith("; before: replicas only.")


def test_copies() -> None:
    """Between regions first, by position; video is uploaded to a and c."""
    flows = drawn()["Copies to make"]
    uploads = (("outside", "a", 5), ("outside", "c", 5))
    assert flows.flows == (("a", "c", 1.5), ("b", "c", 4.5), ("c", "b", 4), *uploads)
    assert (flows.unit, flows.note) == ("TB", "20.0 TB; outside stands for data that no region holds today.")


def test_copies_without_uploads() -> None:
    problem, plan = two_regions()
    shown = drawn(problem, plan)
    assert shown["Copies to make"].flows == (("east", "west", 101),)
    assert shown["Copies to make"].note == "101.0 TB."
    assert "Reads that stay remote" not in shown


def test_no_chart_of_copies_that_are_not_made() -> None:
    problem, _ = two_regions()
    plan = today(problem)
    assert plan is not None
    assert "Copies to make" not in drawn(problem, plan)


def test_remote_reads() -> None:
    flows = drawn()["Reads that stay remote"]
    assert flows.flows == (("a", "b", 2), ("a", "c", pytest.approx(0.2)), ("b", "c", pytest.approx(0.1)))
    assert (flows.unit, flows.note) == ("TB a day", "2.30 TB a day.")


def test_a_thousandth_of_a_megabyte_is_drawn() -> None:
    sizes = PROBLEM.datasets.size_mb.copy()
    sizes[LOGS] = 1
    problem = PROBLEM.with_columns({"reads.mb_per_day": ints(0, 0, 1, 0), "datasets.size_mb": sizes})
    shown = drawn(problem, replace(PLAN, copy_share=ints(1), remote_share=ints(1)))
    assert shown["Reads that stay remote"].flows == (("a", "c", pytest.approx(1e-9)),)
    assert shown["Copies to make"].flows[0] == ("a", "b", pytest.approx(1e-9))
