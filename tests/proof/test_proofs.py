"""Proofs of committed instances reach the stated bound and are accepted; changed ones are refused."""

from __future__ import annotations

import ast
import random
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from mast_opt.core.arrays import FloatArray
from mast_opt.planner.proof import checker
from mast_opt.planner.proof.checker import Refused, check_folder
from mast_opt.planner.proof.write_proof import PROGRAM, PROOF, Proven, write_proof
from mast_opt.problems.mip import Mip, MipBuilder
from tests.proof.mutants import accepted, lines_of, mutant, prove, small_instances


@pytest.mark.parametrize("path", small_instances(), ids=lambda path: path.stem)
def test_the_bound_of_the_best_plan_is_proven(path: Path, tmp_path: Path) -> None:
    found, wanted = prove(path, tmp_path / "proof")
    checked = check_folder(tmp_path / "proof")
    assert (checked.bound, checked.objective) == (found.bound, found.objective)
    assert found.bound is not None
    assert float(found.bound) >= wanted - 1e-9 * max(1.0, abs(wanted))


def test_every_kind_has_a_proof() -> None:
    assert {path.parent.name for path in small_instances()} == {
        "data_placement",
        "job_placement",
        "resource_allocation",
        "server_assignment",
        "task_reassignment",
    }


def test_changed_proofs_are_refused(tmp_path: Path) -> None:
    rng, drawn = random.Random(57), set()
    for number, path in enumerate(small_instances()[::4]):
        folder = tmp_path / str(number)
        prove(path, folder)
        program, proof = lines_of(folder)
        assert accepted(folder, ("nothing", program, proof))
        for _ in range(20):
            changed = mutant(program, proof, rng)
            drawn.add(changed[0])
            assert not accepted(folder, changed), (path, changed[0])
    assert len(drawn) == 6


def test_the_checker_needs_python_alone() -> None:
    tree = ast.parse(Path(checker.__file__).read_text(encoding="utf-8"))
    used = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    used |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert {str(name).split(".")[0] for name in used} <= sys.stdlib_module_names


def proof_of(mip: Mip, x: FloatArray, folder: Path) -> tuple[Proven, str]:
    """A proof that is accepted, and its text."""
    found = write_proof(mip, x, None, folder, time_limit_s=60.0, most_leaves=100)
    assert check_folder(folder).bound == found.bound
    return found, (folder / PROOF).read_text(encoding="utf-8")


def test_free_columns_ranges_and_a_constant(tmp_path: Path) -> None:
    m = MipBuilder("odd")
    free = m.columns("free", [], lower=-np.inf)
    down = m.columns("down", [], lower=-np.inf, upper=0.7)
    m.rows("range", [], lower=-0.3, upper=0.9).add(0, free, 3.0).add(0, down, 0.1)
    m.equals("tie", [], value=0.1).add(0, free, 1.0).add(0, down, -0.3)
    m.term("all", free, 7.0, constant=11.0)
    m.term("all", down, -1.0)
    mip = m.build({"all": 1.0})
    # free = 0.1 + 0.3·down, so the objective 11.7 + 1.1·down is least where the range ends: down = −0.6
    found, text = proof_of(mip, np.array([-0.08, -0.6]), tmp_path / "proof")
    assert found.bound is not None
    assert float(found.bound) == pytest.approx(11.04, rel=1e-12)
    assert found.objective == Fraction(1104, 100)
    assert "constant" in text


def test_a_part_without_plans_is_proven_empty(tmp_path: Path) -> None:
    m = MipBuilder("coins")
    take = m.columns("take", [["6", "10", "15"]], upper=5.0, integral=True)
    note = m.columns("note", [], upper=1.0, integral=True)
    m.equals("paid", [], value=59.0).add(0, take, np.array([6.0, 10.0, 15.0])).add(0, note, 30.0)
    m.term("all", take)
    m.term("all", note, -100.0)
    # coins of 6, 10 and 15 do not pay 29, so the note of 30 is no use
    found, text = proof_of(m.build({"all": 1.0}), np.array([4.0, 2.0, 1.0, 0.0]), tmp_path / "proof")
    assert found.objective == 7
    assert found.bound is not None
    assert float(found.bound) == pytest.approx(7.0, rel=1e-9)
    assert found.leaves > 1
    assert " 0 { lin " in text


def test_what_was_not_reached_is_not_claimed(tmp_path: Path) -> None:
    m = MipBuilder("half")
    take = m.columns("take", [["a", "b", "c"]], upper=1.0, integral=True)
    m.rows("pairs", [["ab", "bc", "ca"]], lower=1.0).add([0, 0, 1, 1, 2, 2], take[[0, 1, 1, 2, 2, 0]])
    m.term("all", take)
    mip = m.build({"all": 1.0})
    found = write_proof(mip, np.array([1.0, 1.0, 0.0]), None, tmp_path / "proof", time_limit_s=60.0, most_leaves=1)
    assert found.bound == Fraction(3, 2)
    assert found.objective == 2
    assert check_folder(tmp_path / "proof").bound == Fraction(3, 2)


MPS = """NAME t FREE
ROWS
 N obj
 G r
COLUMNS
 M 'MARKER' 'INTORG'
 x obj 1
 x r 2
 N 'MARKER' 'INTEND'
RHS
 RHS r 1
ENDATA
"""
VIPR = "VER 1.0 VAR 1 x INT 1 0 OBJ min 1 0 1 CON 2 1 B G 0 1 0 1 r G 1 1 0 2 RTP range 1 1 SOL 1 s 1 0 1 DER {steps}"
"""A proof, less its steps, that the least integer x with 2·x ≥ 1 is 1."""


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ("1 d G 1 OBJ { rnd 1 1 1/2 } -1", None),
        ("1 d G 1 OBJ { lin 1 1 1/2 } -1", "does not follow by lin"),
        ("1 d G 1 OBJ { rnd 1 1 1/3 } -1", "not whole"),
        ("1 d G 1 OBJ { rnd 1 1 -1/2 } -1", "does not follow by rnd"),
        ("1 d G 1 OBJ { asm } -1", "no step proves"),
        ("1 d G 1 OBJ { lin 1 2 1 } -1", "does not exist"),
        ("1 d G 1 OBJ { sol } -1", "a rule called sol"),
        ("0", "no step proves"),
        ("1 d G 1 OBJ { rnd 1 1 1/2 } -1 more", "words follow"),
    ],
)
def test_rules(steps: str, reason: str | None, tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text(MPS, encoding="utf-8")
    (tmp_path / PROOF).write_text(VIPR.format(steps=steps), encoding="utf-8")
    if reason is None:
        assert check_folder(tmp_path).bound == 1
        return
    with pytest.raises(Refused, match=reason):
        check_folder(tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("VAR 1 x", "VAR 1 y"),
        ("INT 1 0", "INT 0"),
        ("OBJ min 1 0 1", "OBJ min 1 0 2"),
        ("OBJ min", "OBJ max"),
        ("CON 2 1 B G 0 1 0 1 r", "CON 1 0 r"),
        ("CON 2 1", "CON 3 1 Z L 9 1 0 1"),
        ("SOL 1 s 1 0 1", "SOL 1 s 1 0 3/2"),
        ("SOL 1 s 1 0 1", "SOL 1 s 2 0 1 1 5"),
        ("SOL 1 s 1 0 1", "SOL 0"),
        ("VER 1.0", "VER 2.0"),
    ],
)
def test_another_program_or_solution_is_refused(old: str, new: str, tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text(MPS, encoding="utf-8")
    text = VIPR.format(steps="1 d G 1 OBJ { rnd 1 1 1/2 } -1")
    assert text.count(old) == 1
    (tmp_path / PROOF).write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(Refused):
        check_folder(tmp_path)
