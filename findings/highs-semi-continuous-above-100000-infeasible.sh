#!/usr/bin/env bash
# HiGHS 1.16 and SciPy: a semi-continuous amount above 100,000 makes a feasible program "infeasible".
#
# Versions: highspy 1.16.0, SciPy 1.17.1 (with the HiGHS it brings), Python 3.11.
# Program: an order is nothing, or between 50 and 1,000,000 units (minimum order), at 1 a unit. Needed are 150,000.
# Expected: order 150,000. With a binary column for the order, or an order that is merely continuous, that is the answer.
# What happens: run() gives a semi-continuous column the upper bound 100,000, with a warning in its log that callers of
# highspy and SciPy do not see. A need beyond that is "Infeasible" with status kOk, also where the bounds are 50 and
# 150,000. Where the column ends at 100,000 in the optimum, the answer is "Solve error".
# Seen: need 99,000 "kOptimal", need 150,000 "kInfeasible"; SciPy: status 2, "The problem is infeasible."
# Why a user cares: storage in GB, budgets in USD and bandwidth in MB pass 100,000 easily. "Infeasible" is taken as a
# proof that no plan exists. Scale the amounts, or state minimum orders with a binary column.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet highspy==1.16.0 scipy==1.17.1 numpy
"$folder/venv/bin/python" - <<'PYTHON'
import highspy
import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

CONTINUOUS, SEMI_CONTINUOUS = 0, 2


def by_highs(need, least=50.0, most=1e6):
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.addCol(1.0, least, most, 0, np.array([], np.int32), np.array([]))
    solver.changeColIntegrality(0, highspy.HighsVarType.kSemiContinuous)
    solver.addRow(need, highspy.kHighsInf, 1, np.array([0], np.int32), np.array([1.0]))
    status = solver.run()
    print("highspy", f"need {need:,.0f}, {least:,.0f} to {most:,.0f}:", status.name, solver.getModelStatus().name)
    return solver.getModelStatus()


def by_scipy(need, kind):
    row = LinearConstraint([[1.0]], need, np.inf)
    found = milp([1.0], integrality=[kind], bounds=Bounds([50.0], [1e6]), constraints=row)
    print("scipy", f"need {need:,.0f}:", found.status, found.message, found.x)
    return found.status


assert by_highs(99_000) == highspy.HighsModelStatus.kOptimal
assert by_highs(150_000) == highspy.HighsModelStatus.kInfeasible, "it is feasible now"
assert by_highs(150_000, most=150_000.0) == highspy.HighsModelStatus.kInfeasible
assert by_scipy(150_000, CONTINUOUS) == 0
assert by_scipy(150_000, SEMI_CONTINUOUS) == 2, "it is feasible now"
PYTHON
