"""Tables and charts of a worked plan: the figures that a report shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mast_opt.problems.task_reassignment.presentation.sections import charts, sections
from tests.task_reassignment.hand import hand, plan

PLAN = plan(2, 1, 1, 1, 2)
"""m1 uses 8 of r0 and 8 of r1, m2 6 of r0 and 4 of r1; m0 is empty."""


def test_sections(tmp_path: Path) -> None:
    """Above the safety capacities: 2 + 1 of r0 (m1 and m2), 2 of r1 (m1). A unit costs 10 on r0 and 1 on r1."""
    resources, machines, moves, services = sections(hand(tmp_path), PLAN)
    assert resources.rows == (("r0", 27, 14 / 27, 1, 3, 2), ("r1", 24, 12 / 24, 0, 2, 1))
    assert resources.note == "2 of 3 machines are above a safety capacity."
    assert machines.rows == (
        ("m1", "l1", "r1", 4 / 8, 8 / 8, 0, 22),
        ("m2", "l1", "r0", 5 / 7, 6 / 7, 0, 10),
        ("m0", "l0", "r0", 7 / 10, 0, 10, 0),
    )
    assert moves.rows == (("l0", "l1", 2), ("l1", "l1", 1))
    assert moves.note == "3 of 5 processes move."
    assert services.rows == (("s0", 2, 2), ("s1", 1, 1))


def test_charts(tmp_path: Path) -> None:
    shown: Any = charts(hand(tmp_path), PLAN)
    heat, fullest, over, moves = shown
    assert heat.before == ((7 / 10, 5 / 8), (7 / 17, 7 / 16))
    assert heat.after == ((0, 0), (14 / 17, 12 / 16))
    assert fullest.categories == ("m1", "m2", "m0")
    assert fullest.series == (("before", (4 / 8, 5 / 7, 7 / 10)), ("after", (1, 6 / 7, 0)))
    assert over.series == (("before", (1 / 27, 0)), ("after", (3 / 27, 2 / 24)))
    assert moves.flows == (("l0", "l1", 2), ("l1", "l1", 1))
    assert moves.note == "3 of 5 processes move; to the same name means within the location."


def test_a_machine_without_a_resource_is_empty(tmp_path: Path) -> None:
    """m0 has nothing of r1, and no need of it: its fill counts as 0."""
    problem = hand(tmp_path)
    capacity, need = problem.machines.capacity.copy(), problem.processes.need.copy()
    capacity[0, 1], need[:, 1] = 0, 0
    safety = np.minimum(problem.machines.safety, capacity)
    bare = problem.with_columns({"machines.capacity": capacity, "machines.safety": safety, "processes.need": need})
    shown: Any = charts(bare, PLAN)
    assert shown[1].series == (("before", (5 / 7, 2 / 10, 7 / 10)), ("after", (6 / 7, 8 / 10, 0)))
