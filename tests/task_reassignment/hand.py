"""A tiny instance worked out by hand, in the text format of the ROADEF/EURO challenge 2012."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from mast_opt.problems.kind.header import Objective
from mast_opt.problems.task_reassignment import Plan, TaskReassignment
from mast_opt.problems.task_reassignment.problem import TERMS
from mast_opt.problems.task_reassignment.tables.roadef import read

MODEL = """\
2
0 10
1 1
3
0 0  10 8  6 5  0 1 2
0 1  10 8  6 6  1 0 1
1 1   7 8  5 8  2 1 0
3
2 0
1 1 0
1 0
5
0 4 3 2
0 3 2 1
1 3 2 3
2 2 4 1
2 2 1 1
1
0 1 2 5
3 2 5
"""
"""Resource r1 is transient; s0 runs in two locations; s1 needs s0 near; m0 and m1 are neighbours."""

TODAY = "0 2 0 1 2\n"


def hand(folder: Path, model: str = MODEL, today: str = TODAY) -> TaskReassignment:
    """The instance that the two texts state."""
    (folder / "model_hand.txt").write_text(model)
    (folder / "assignment_hand.txt").write_text(today)
    return read(folder / "model_hand.txt", folder / "assignment_hand.txt")


def plan(*machine: int) -> Plan:
    return Plan(np.array(machine, np.int64))


def every_term(problem: TaskReassignment) -> TaskReassignment:
    """The problem with a weight above 0, and another one, for every term there is: none is left out of a comparison."""
    weights = {term: 2.0 + 3 * position for position, term in enumerate(TERMS)}
    return replace(problem, objective=Objective(weights))
