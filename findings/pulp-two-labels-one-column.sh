#!/usr/bin/env bash
# PuLP: regions named "us-east" and "us_east" become two columns of one name; writeMPS writes them both, and reading the
# file gives one column and another optimum.
#
# Versions: PuLP 3.3.2 with its CBC 2.10.3, highspy 1.16.0, Python 3.11.
#
# Expected: columns made with LpVariable.dicts from three different keys are three columns everywhere, or the second
# equal name is refused when it is made or written.
# What happens: PuLP replaces "-", "+", "[", "]", " ", ">" and "/" in names by "_", so that the three keys give one name.
# HiGHS (through highspy, by position) solves the right model: 5. writeLP refuses it ("Repeated variable names").
# writeMPS does not, and LpProblem.fromMPS reads its file as a model of one column with the last cost: 3, optimal. The
# default solver CBC gets such a file too, and all that the user sees is "Error while executing" and CBC's path.
# Output seen:
#     names: x_us_east x_us_east x_us_east
#     HiGHS: Optimal 5
#     writeLP: PulpError
#     writeMPS and back: 1 column, Optimal 3
#     CBC: PulpSolverError, names the column: False
# Why a user cares: labels of datasets, regions and servers come from many tables, in which "-" and "_" are often used
# for the same thing. The MPS file is what gets archived, sent to another solver or put into a bug report, and its
# optimum is not the model's. Names made of positions ("x_0", "x_1") do not collide.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pulp==3.3.2 highspy==1.16.0
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON' | tee "$folder/seen"
import pulp

regions = ["us-east", "us_east", "us east"]
x = pulp.LpVariable.dicts("x", regions, 0, 1, cat="Binary")
model = pulp.LpProblem("regions", pulp.LpMaximize)
model += pulp.lpSum(worth * x[name] for worth, name in enumerate(regions, start=1))
model += pulp.lpSum(x.values()) <= 2, "two"
print("names:", *(column.name for column in model.variables()))

status = pulp.LpStatus[model.solve(pulp.HiGHS(msg=False))]
print(f"HiGHS: {status} {pulp.value(model.objective):.0f}")
try:
    model.writeLP("model.lp")
except pulp.constants.PulpError as error:
    print("writeLP:", type(error).__name__)
model.writeMPS("model.mps")
columns, again = pulp.LpProblem.fromMPS("model.mps", sense=pulp.LpMaximize)
status = pulp.LpStatus[again.solve(pulp.HiGHS(msg=False))]
print(f"writeMPS and back: {len(columns)} column, {status} {pulp.value(again.objective):.0f}")
try:
    model.solve(pulp.PULP_CBC_CMD(msg=False))
except pulp.PulpSolverError as error:
    print(f"CBC: {type(error).__name__}, names the column: {'us' in str(error).rsplit('/', 1)[-1]}")
PYTHON
grep -qx "names: x_us_east x_us_east x_us_east" "$folder/seen"
grep -qx "HiGHS: Optimal 5" "$folder/seen"
grep -qx "writeLP: PulpError" "$folder/seen"
grep -qx "writeMPS and back: 1 column, Optimal 3" "$folder/seen"
grep -qx "CBC: PulpSolverError, names the column: False" "$folder/seen"
