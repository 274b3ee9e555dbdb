"""Rounded limits and rows hold for every whole solution, cut off solutions of the relaxation, and are proven."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from mast_opt.planner.proof.checker import check_folder
from mast_opt.planner.proof.cuts import Base, mir, strengthened, tightened
from mast_opt.planner.proof.exact_program import ExactProgram
from mast_opt.planner.proof.write_proof import PROOF, write_proof
from mast_opt.problems.mip import Mip, MipBuilder


def random_program(seed: int) -> Mip:
    """Four whole columns from 0 to 2, and a continuous one that relaxes both rows."""
    rng = np.random.default_rng(seed)
    m = MipBuilder("random")
    whole = m.columns("whole", [list("abcd")], upper=2.0, integral=True)
    rest = m.columns("rest", [], upper=3.5)
    for row in range(2):
        size = rng.choice([-4.0, 2.5, 3.0, 7.0, 9.0], 4)
        rows = m.rows(f"row{row}", [], lower=-3.0, upper=float(rng.integers(4, 20)) + 0.5)
        rows.add(0, whole, size).add(0, rest, -1.0)
    m.term("all", whole, rng.integers(-9, 3, 4).astype(float))
    m.term("all", rest, 1.5)
    return m.build({"all": 1.0})


def whole_points(mip: Mip) -> list[np.ndarray]:
    """The feasible points with the least and the largest value of the continuous column."""
    found = []
    for whole in product(range(3), repeat=4):
        activity = np.array([mip.value[start : start + 4] @ whole for start in mip.row_start[:-1].tolist()])
        low, high = max(0.0, (activity - mip.row_upper).max()), min(3.5, (activity - mip.row_lower).min())
        if low <= high:
            found += [np.array([*whole, low]), np.array([*whole, high])]
    return found


@pytest.mark.parametrize("seed", range(40))
def test_roundings_hold_for_every_whole_solution(seed: int) -> None:
    mip = random_program(seed)
    program, points = ExactProgram.of(mip), whole_points(mip)
    x = np.random.default_rng(seed).uniform(0, 2, 5)
    for side, size in product(range(2), (Fraction(2), Fraction(5, 2), Fraction(7))):
        step = mir(program, Base({("row", 0, side): Fraction(1 if side else -1)}), size, x)
        if step is not None and step.entries:
            for point in points:
                assert sum(float(number) * point[at] for at, number in step.entries.items()) <= float(step.rhs) + 1e-9


def test_a_limit_of_a_column_is_rounded_from_a_row(tmp_path: Path) -> None:
    m = MipBuilder("wide")
    take = m.columns("take", [["a", "b"]], upper=5.0, integral=True)
    m.rows("room", [], upper=7.0).add(0, take, np.array([4.0, 2.0]))
    m.term("all", take, np.array([-1.0, -0.1]))
    mip = m.build({"all": 1.0})
    assert tightened(ExactProgram.of(mip)).column_limits == [(Fraction(0), Fraction(1)), (Fraction(0), Fraction(3))]
    found = write_proof(mip, np.array([1.0, 1.0]), None, tmp_path / "proof", time_limit_s=60.0, most_leaves=1)
    assert found.bound == Fraction(-11, 10)
    assert check_folder(tmp_path / "proof").bound == found.bound
    assert " { rnd " in (tmp_path / "proof" / PROOF).read_text(encoding="utf-8")


def test_rows_bring_the_relaxation_closer_and_never_past_the_optimum() -> None:
    closer = 0
    for seed in range(10):
        mip = random_program(seed)
        points = whole_points(mip)
        if not points:
            continue
        best = min(mip.objective(point) for point in points)
        program = tightened(ExactProgram.of(mip))
        _, plain = strengthened(program, (), Fraction(10**6), time_limit_s=-1.0)
        _, root = strengthened(program, (), Fraction(10**6), time_limit_s=10.0)
        assert plain.proof is not None
        assert root.proof is not None
        assert plain.proof.bound <= root.proof.bound <= best + 1e-9
        closer += root.proof.bound > plain.proof.bound + Fraction(1, 1000)
    assert closer >= 5
