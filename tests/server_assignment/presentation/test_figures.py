"""Tables and charts of a worked assignment: every figure that a report shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mast_opt.problems.server_assignment import Plan, ServerAssignment
from mast_opt.problems.server_assignment.presentation.sections import charts, sections
from tests.instance_rows import ServerRows

WEB, ML, NOBODY = 0, 1, 3
PLAN = Plan(np.array([NOBODY, NOBODY, ML, WEB, ML, WEB, NOBODY, WEB], np.int64))


def three_boards() -> ServerAssignment:
    """Switchboards b0 and b2 are in west, b1 in east; web has s0, s2 (both in use) and s6, ml has s4."""
    builder = ServerRows()
    builder.add_reservation("web", rru=3, values={"cpu": 1, "gpu": 2})
    builder.add_reservation("ml", rru=5, values={"gpu": 4}, buffer="none")
    builder.add_reservation("idle", rru=0, values={"cpu": 1})
    kinds = ("cpu", "cpu", "gpu", "cpu", "gpu", "cpu", "cpu", "cpu")
    boards = ("b0", "b0", "b0", "b1", "b1", "b2", "b2", "b2")
    owners = ("web", None, "web", None, "ml", None, "web", None)
    for at, (kind, board, owner) in enumerate(zip(kinds, boards, owners, strict=True)):
        place = "east" if board == "b1" else "west"
        builder.add_server(
            f"s{at}", type=kind, switchboard=board, datacenter=place, reservation=owner, in_use=at in (0, 2, 7)
        )
    return builder.build()


def test_sections() -> None:
    """After the plan web has 1 RRU in b1 and 2 in b2, ml 4 in b0 and 4 in b1; s7 is in use by no reservation."""
    reservations, moves, boards, types = sections(three_boards(), PLAN)
    assert reservations.rows == (
        ("web", "embedded", 3, 1, 1, 2, 3, 3, 2 / 3, 2 / 3, "b2"),
        ("ml", "none", 5, 4, 8, 0, 1, 0, None, 1 / 2, "b0"),
        ("idle", "embedded", 0, 0, 0, 0, 0, 0, None, None, None),
    )
    assert reservations.note == "1 of 3 reservations are short of what they ask, by 2.000 RRU together."
    assert moves.rows == (("(nobody)", "web", 3, 0), ("web", "(nobody)", 2, 1), ("web", "ml", 1, 1))
    assert moves.note == "3 of 8 servers are taken from a reservation, 2 of them in use."
    assert boards.rows == (
        ("b1", "east", 2, 1, 5, 5 / 11),
        ("b0", "west", 3, 1 / 3, 4, 4 / 11),
        ("b2", "west", 3, 2 / 3, 2, 2 / 11),
    )
    assert types.rows == (("gpu", 2, 1, 1), ("cpu", 6, 2 / 6, 3 / 6))


def test_charts() -> None:
    shown: Any = charts(three_boards(), PLAN)
    heat, guarantees, largest, changes = shown
    assert (heat.rows, heat.columns) == (("west", "east"), ("cpu", "gpu"))
    assert (heat.before, heat.after) == (((2 / 5, 1), (0, 1)), ((2 / 5, 1), (1, 1)))
    assert dict(guarantees.series) == {"asked": (3, 5, 0), "guaranteed before": (1, 4, 0), "guaranteed": (1, 8, 0)}
    assert guarantees.note == "What is left whichever switchboard is lost. 2 RRU are missing."
    assert largest.series == (("before", (3 / 4, 1, None)), ("after", (2 / 3, 1 / 2, None)))
    assert changes.flows == (("web", "ml", 1), ("web", "nobody", 2), ("nobody", "web", 3))
    assert changes.note == "6 of 8 servers change hands."
