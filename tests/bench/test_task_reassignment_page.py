"""The page of the machine reassignment challenge: gaps follow from its costs, and words from its table."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "benchmarks" / "task-reassignment.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if re.match(r"\| [ab]\d?_\d+ \|", line)
]


def _number(cell: str) -> float:
    return float(cell.replace(",", "").rstrip("%"))


def test_gaps_are_those_of_the_costs() -> None:
    assert len(ROWS) == 16
    for name, _, _, _, cost, best, gap, _, _, bound, to_bound, _ in ROWS:
        assert f"{100 * (_number(cost) / _number(best) - 1):.4f}%" == gap, name
        assert f"{100 * (1 - _number(bound) / _number(cost)):.3f}%" == to_bound, name


def test_what_ends_below_every_reported_cost_and_near_it() -> None:
    gaps = {row[0]: _number(row[6]) for row in ROWS}
    assert sum(gap < 0 for gap in gaps.values()) == 6
    assert "Six instances end below every cost ever reported" in PAGE
    for names, most in ((("a1_1", "a1_2", "a1_3", "a1_5"), 0.001), (("b_2", "b_4", "b_5", "b_6"), 0.03)):
        assert all(0 <= gaps[name] <= most for name in names)
        assert f"{', '.join(names[:-1])} and {names[-1]}" in PAGE
    assert all(row[7].startswith(("−", "<")) for row in ROWS if row[0] in ("a2_4", "b_1", "b_3"))
