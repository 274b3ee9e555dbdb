"""A release's row: primal integrals by hand, and the rows of a few runs."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.releases import figures, lines, primal_gap, primal_integral


def run(solver: str, objective: float | None, events: list[list[float | None]], seed: int = 0) -> dict[str, Any]:
    return {
        "source": {"kind": "data-placement", "family": "standard"},
        "instance": "a",
        "contestant": {"name": solver},
        "seed": seed,
        "time_limit_s": 10.0,
        "status": "FEASIBLE",
        "objective": objective,
        "bound": 8.0,
        "gap": None if objective is None else (objective - 8.0) / objective,
        "runtime_s": {"formulate": 1.0, "solve": 7.0, "verify": 0.0},
        "events": events,
    }


@pytest.mark.parametrize(
    ("value", "best", "gap"),
    [(None, 10.0, 1.0), (10.0, 10.0, 0.0), (20.0, 10.0, 0.5), (-1.0, 10.0, 1.0), (0.0, 0.0, 0.0)],
)
def test_primal_gaps(value: float | None, best: float, gap: float) -> None:
    assert primal_gap(value, best) == gap


def test_the_integral_is_the_mean_of_the_gap_over_the_limit() -> None:
    """No plan for 2 s, twice the best for 4 s, and what is confirmed at the end, 8 s, holds until the limit."""
    found = run("tetris", 10.0, [[1.0, None, 5.0], [2.0, 20.0, None], [6.0, 12.5, 8.0]])
    assert primal_integral(found, 10.0) == pytest.approx((2 * 1 + 4 * 0.5 + 2 * 0.2 + 2 * 0.0) / 10)
    assert primal_integral(run("tetris", None, []), 10.0) == 1.0


def test_a_row_is_the_mean_of_runs_and_the_best_is_anybodys() -> None:
    ours = run("tetris", 10.0, [[2.0, 10.0, None]])
    late = run("tetris", None, [], seed=1)
    (row,) = figures([ours, late, run("highs", 9.95, [[5.0, 9.95, 8.0]])])
    assert (row["problem"], row["solver"], row["runs"]) == ("data-placement", "tetris", 2)
    assert row["gap"] == pytest.approx((0.05 / 10 + 1) / 2)
    assert (row["near"], row["near_s"]) == (1, (2.0 + 10.0) / 2)
    assert row["proven"] == pytest.approx((0.2 + 1) / 2)
    old, new = ({"release": name, "date": "2026-11-28", **row} for name in ("0.1.0", "0.2.0"))
    assert [cells[1] for cells in lines([old, new])] == ["0.2.0 (2026-11-28)", "0.1.0 (2026-11-28)"]
