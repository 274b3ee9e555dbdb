#!/usr/bin/env bash
# HiGHS 1.16: give a start, and "Optimal" comes with the start's columns, which are not optimal.
#
# Versions: highspy 1.16.0, Python 3.11.
# Program: min a - 5 b + 2 c, 2 a + 3 c >= 6, all whole in 0..2. The minimum is -6, at (0, 2, 2).
# Expected: setSolution((0, 0, 2)), a feasible start of objective 4, changes nothing but the time.
# What happens: presolve fixes b at 2; the start without b is worth -6 in what is left, nothing better is found, and
# the answer is "Optimal", objective -6, with the columns of the start: (0, 0, 2), worth 4.
# Seen: "Optimal -6.0 [0.0, 0.0, 2.0] worth 4.0"; without a start "Optimal -6.0 [0.0, 2.0, 2.0] worth -6.0".
# Why a user cares: the status, the objective and the gap say proven, and the plan that is carried out is worse. Whoever
# warm-starts has to value the columns again, or to hand the start over in the callback for user solutions.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet highspy==1.16.0 numpy
"$folder/venv/bin/python" - <<'PYTHON'
import highspy
import numpy as np

COST = np.array([1.0, -5.0, 2.0])


def answer(start):
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    for cost in COST:
        solver.addVariable(0, 2, cost, highspy.HighsVarType.kInteger)
    solver.addRow(6, highspy.kHighsInf, 2, np.array([0, 2], np.int32), np.array([2.0, 3.0]))
    if start is not None:
        given = highspy.HighsSolution()
        given.col_value = start
        solver.setSolution(given)
    solver.run()
    columns = list(solver.getSolution().col_value)
    stated = solver.getInfo().objective_function_value
    print(solver.modelStatusToString(solver.getModelStatus()), stated, columns, "worth", float(COST @ columns))
    return stated, float(COST @ columns)


assert answer(None) == (-6.0, -6.0)
assert answer([0.0, 0.0, 2.0]) == (-6.0, 4.0), "the start is no longer returned"
PYTHON
