"""The committed proofs: their instances can be made again, both checkers accept them, and no changed one."""

from __future__ import annotations

import json
from typing import Any

import pytest

import mast_opt
from benchmarks.proofs import EACH, MADE, ROWS, WHOLE, lines
from mast_opt.planner.io import checksum

COMMITTED: list[dict[str, Any]] = [json.loads(line) for line in ROWS.read_text().splitlines()]


@pytest.mark.parametrize("kind", MADE)
def test_rows_of_a_problem(kind: str) -> None:
    mine = [row for row in COMMITTED if row["problem"] == kind]
    assert len({row["instance"] for row in mine}) == len(mine) >= EACH
    assert all(row["check"] and row["viprchk"] for row in mine)
    assert sum(row["ours"] + row["theirs"] for row in mine) == 0
    family, sizes, *_ = MADE[kind]
    made = next(row for row in mine if row["instance"].startswith("seed "))
    seed = int(made["instance"].split()[1])
    assert checksum(mast_opt.generate(kind, family, seed=seed, **sizes)) == made["checksum"]


def test_a_row_of_the_page() -> None:
    row = {
        "problem": "job-placement",
        "check": True,
        "viprchk": True,
        "ours": 0,
        "mutants": 10,
        "theirs": 0,
        "asked": 7,
    }
    sizes = {"proof_bytes": 3000, "prove_cpu_s": 1.0, "solve_cpu_s": 2.0, "certificate_bytes": None}
    rows = [row | sizes | {"instance": "a", "missing": 0.0}]
    rows.append(
        row | sizes | {"instance": "seed 1", "missing": 2 * WHOLE, "proof_bytes": 5000, "certificate_bytes": 2000}
    )
    assert lines(rows) == [
        ("job-placement", "2 (1)", "1", "2, 2", "0 of 20, 0 of 14", "4 kB; 5 kB", "2.5", "0.5"),
    ]
