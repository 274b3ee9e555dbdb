"""Limits on a whole plan in the verifier: what a plan has of each, worked out by hand, and the smallest excess."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from mast_opt.core.errors import InstanceError, UsageError
from mast_opt.problems.data_placement.limits import LIMITS
from mast_opt.problems.data_placement.verification.verifier import use_of_limits, verify
from tests.data_placement.edits import FREE, RUN, dropped
from tests.data_placement.workshop import PLAN, PROBLEM, TB

DEMAND = 8000 + 6667 + 4000
"""Size of the work: train and view by their GPUs, etl by its share of the cores."""
USED = {
    "copied_tb": Fraction(13),
    "copy": Fraction(13, 19),
    "stored_tb": Fraction(23),
    "storage": Fraction(23, 19),
    "remote_tb_per_day": Fraction(2, 5),
    "remote": Fraction(1, 25),
    "egress": Fraction(100),
    "running_cost": 730 * 96 + 630 + Fraction(2, 5) * 50 * 730 / 24,
    "migration_cost": Fraction(133),
    "moved_work": (8000 + Fraction(2, 5) * 6667) / DEMAND,
    "unserved": Fraction(0),
    "unserved_gpus": Fraction(0),
    "overload_gpus": Fraction(0),
    "new_replicas": Fraction(2),
    "moved_workloads": Fraction(7, 5),
    "moves": Fraction(17, 5),
}
SCALE = {
    **dict.fromkeys(("copied_tb", "stored_tb", "remote_tb_per_day"), TB),
    **dict.fromkeys(("copy", "storage"), 19 * TB),
    "remote": 10 * TB,
    "moved_work": DEMAND,
    **dict.fromkeys(("egress", "running_cost", "migration_cost"), 10**6),
}
"""Base units of one unit."""
TINY = Fraction(1, 10**9)


def test_what_a_plan_has_of_everything_that_may_be_limited() -> None:
    assert USED.keys() == LIMITS.keys()
    limited = replace(PROBLEM, limits=USED)
    assert use_of_limits(limited, PLAN) == USED
    assert verify(limited, PLAN).violations == ()
    without_links = replace(FREE, limits=USED)
    assert use_of_limits(without_links, PLAN) == USED | {
        "egress": Fraction(0),
        "running_cost": Fraction(730 * 96 + 630),
        "migration_cost": Fraction(8 + 45),
    }


@pytest.mark.parametrize("name", [name for name, used in USED.items() if used])
def test_the_smallest_excess_is_a_violation(name: str) -> None:
    (violation,) = verify(replace(PROBLEM, limits={name: USED[name] - TINY}), PLAN).violations
    assert violation.name == f"limit[{name}]"
    assert violation.amount == pytest.approx(float(violation.limit / USED[name]) * 1e-9)
    assert violation.limit == pytest.approx(float(USED[name]) * SCALE.get(name, 1))
    assert violation.unit == LIMITS[name].base


def test_refused_work_and_overload() -> None:
    limits = {name: Fraction(0) for name in ("unserved", "unserved_gpus", "overload_gpus")}
    crowded = PROBLEM.replace("regions", "c", supply_mgpu={"a100": 3500}).with_limits(limits)
    assert use_of_limits(crowded, PLAN)["overload_gpus"] == Fraction(1, 2)
    assert {violation.name for violation in verify(crowded, PLAN).violations} == {"limit[overload_gpus]"}
    refusing = replace(PROBLEM, limits=limits, may_refuse=True)
    idle = dropped(PLAN, RUN, 3)
    assert use_of_limits(refusing, idle) == {
        "unserved": Fraction(4000, DEMAND),
        "unserved_gpus": Fraction(4),
        "overload_gpus": Fraction(0),
    }
    assert {violation.name for violation in verify(refusing, idle).violations} == {
        "limit[unserved]",
        "limit[unserved_gpus]",
    }


def test_limits_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UsageError, match="no limit called 'copied'; expected some of: copied_tb"):
        PROBLEM.with_limits({"copied": 1})
    for value in (-1, float("nan"), float("inf"), "x", 1e30):
        with pytest.raises(UsageError, match=r"the limit copied_tb is .*; expected a number from 0 to 1e\+18 \(TB\)"):
            PROBLEM.with_limits({"copied_tb": value})
    with pytest.raises(InstanceError, match="some of the limits copied_tb"):
        replace(PROBLEM, limits={"copied": Fraction(1)})
    with pytest.raises(InstanceError, match="a Fraction from 0"):
        replace(PROBLEM, limits={"copied_tb": Fraction(-1)})
    with pytest.raises(InstanceError, match="a Fraction from 0"):
        replace(PROBLEM, limits={"copied_tb": 1.5})  # type: ignore[dict-item]


def test_limits_are_exact_and_merge() -> None:
    limited = PROBLEM.with_limits({"copied_tb": 0.1, "moves": "1/3"})
    assert limited.limits == {"copied_tb": Fraction(1, 10), "moves": Fraction(1, 3)}
    assert limited.with_limits({"moves": None, "egress": 5}).limits == {
        "copied_tb": Fraction(1, 10),
        "egress": Fraction(5),
    }
    assert limited.with_limits({}) == limited
