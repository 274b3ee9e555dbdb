"""Tables of worked plans: every figure that a report shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mast_opt.problems.data_placement.presentation.sections import sections
from mast_opt.problems.kind.presentation import Section
from tests.data_placement.migration.handmade import two_regions
from tests.data_placement.presentation.busy import BUSY, MOVED
from tests.data_placement.workshop import PLAN, PROBLEM, ints


def rows(section: Section) -> Any:
    return section.rows


def titles(section: Section) -> list[str]:
    return [head.title for head in section.heads]


def test_gpus() -> None:
    shown = sections(BUSY, MOVED)[0]
    assert titles(shown)[2:] == ["supply", "demand before", "ratio before", "demand", "ratio", "ratio tier 0"]
    assert rows(shown) == (
        ("b", "h100", 5, 0, 0, 8, 8 / 5, 8 / 5),
        ("c", "a100", 3, 4, 4 / 3, 4, 4 / 3, 0),
        ("a", "h100", 8, 8, 1, 0, 0, 0),
        ("b", "a100", 16, 0, 0, 0, 0, 0),
    )
    assert shown.note == "Demand exceeds supply in 2 of 4 region/GPU-type pairs."


def test_a_full_region_is_not_asked_for_too_much() -> None:
    shown = sections(PROBLEM, PLAN)[0]
    assert shown.rows[0] == ("b", "h100", 8, 0, 0, 8, 1, 1)
    assert shown.note.startswith("Demand exceeds supply in 0 of 4")


def test_demand_with_a_single_tier() -> None:
    gpus = sections(*two_regions())[0]
    assert rows(gpus) == (("west", "h100", 8, 0, 0, 8, 1, 1), ("east", "h100", 8, 8, 1, 0, 0, 0))


def test_fill() -> None:
    """a: logs, images and both outputs today, then logs, video and 0.6 of etl's; its cores: etl's 50 and train's 10."""
    shown = sections(BUSY, MOVED)[1]
    assert titles(shown)[1:] == ["usable TB", "filled before", "filled", "cores", "in use before", "in use"]
    assert rows(shown) == (
        ("c", 0, None, None, 0, None, None),
        ("b", 27, pytest.approx(6 / 27), pytest.approx((4 + 6 + 3) / 27), 40, 0, pytest.approx(10 / 40)),
        (
            "a",
            20,
            pytest.approx((4 + 6 + 3 + 1) / 20),
            pytest.approx((4 + 5 + 0.6) / 20),
            100,
            pytest.approx((50 + 10) / 100),
            pytest.approx(30 / 100),
        ),
    )


def test_what_is_known_of_today() -> None:
    """Of the workshop it is not stated where view runs; without any run there is nothing to compare with."""
    gpus, fill = sections(PROBLEM, PLAN)[:2]
    assert titles(gpus)[3:5] == ["known demand before", "known ratio before"]
    assert [titles(fill)[at] for at in (2, 5, 6)] == ["known filled before", "known in use before", "in use"]
    blank = PROBLEM.with_columns({f"current_runs.{n}": ints() for n in ("workload", "region", "gpu_type", "share")})
    gpus, fill = sections(blank, PLAN)[:2]
    assert titles(gpus) == ["region", "GPU type", "supply", "demand", "ratio", "ratio tier 0"]
    assert titles(fill)[4:] == ["cores", "in use"]


def test_copies() -> None:
    shown = sections(BUSY, MOVED)[2]
    assert rows(shown) == (("b", "c", 4.5, 1), ("c", "b", 4, 1), ("a", "c", 1.5, 1))
    assert shown.note == (
        "4 new replicas: 10.0 TB copied between regions, 10.0 TB uploaded from outside; 10.0 TB deleted."
    )


def test_copies_of_a_pair_of_regions_are_one_row() -> None:
    plan = replace(MOVED, copy_source=ints(2, 1, 1))
    assert sections(BUSY, plan)[2].rows == (("b", "c", 6, 2), ("c", "b", 4, 1))


def test_remote_reads() -> None:
    """train reads 2 TB of logs a day and etl 1 TB of logs; all reads are 10 TB a day."""
    shown = sections(BUSY, MOVED)[3]
    assert rows(shown) == (("a", "b", 2, 1), ("a", "c", pytest.approx(0.2), 1), ("b", "c", pytest.approx(0.1), 1))
    assert shown.note == ("2 of 3 workloads read something from another region: 2.3 TB a day, 23.00% of all reads.")


def test_the_share_of_tiny_reads() -> None:
    """etl reads 1 MB a day or nothing, 0.4 of it from another region."""
    for mb, share in ((1, "40.00%"), (0, "0.00%")):
        problem = PROBLEM.with_columns({"reads.mb_per_day": ints(0, 0, mb, 0)})
        assert sections(problem, PLAN)[3].note.endswith(f"0.0 TB a day, {share} of all reads.")


def test_work_left_out() -> None:
    """etl needs 50 of 140 cores, which counts as so much of 32 GPUs; a tenth of it is left out."""
    (shown,) = sections(BUSY, MOVED)[4:]
    assert rows(shown) == (("0", 0, 0), ("1", 1, pytest.approx(0.1 * 50 / 140 * 32, abs=1e-3)))
    assert len(sections(PROBLEM, PLAN)) == 4
