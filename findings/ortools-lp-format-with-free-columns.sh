#!/usr/bin/env bash
# OR-Tools ModelBuilder: import_from_lp_string cannot read what export_to_lp_string writes, and in the format that it
# does read every column without a bound is free.
#
# Versions: ortools 9.15.6755, Python 3.11.
#
# Expected: a model that is written with export_to_lp_string comes back with import_from_lp_string, as with the MPS pair
# of functions. And in both formats that are called LP, CPLEX's and lp_solve's, a column without a stated bound is at
# least 0.
# What happens: the export is CPLEX LP; the import takes lp_solve's "max: 3 x;" and returns False for CPLEX LP, its own
# output included, with a line in the log that points at the comment in the first line. In what it reads, x and y
# without a lower bound lie between -infinity and infinity, so that a least cost of 0 is lost; Glop's answer to the
# unbounded model is INFEASIBLE.
# Output seen:
#     export comes back: False
#     lower bounds as read: -inf -inf
#     lp_solve's answer: 0; OR-Tools: INFEASIBLE
# Why a user cares: .lp is how models travel between solvers and into bug reports. Whoever ignores the returned False
# solves an empty model, and whoever brings a file of lp_solve solves another problem than the file states.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ortools==9.15.6755
"$folder/venv/bin/python" - 2> /dev/null <<'PYTHON' | tee "$folder/seen"
from ortools.linear_solver.python import model_builder

model = model_builder.Model()
x, y = model.new_int_var(0, 10, "x"), model.new_num_var(0, 10, "y")
model.add(2 * x + 3 * y <= 12)
model.maximize(3 * x + 2 * y)
again = model_builder.Model()
print("export comes back:", again.import_from_lp_string(model.export_to_lp_string()))

text = "min: x + y;\ncap: 2 x + 3 y <= 12;\n"
read = model_builder.Model()
assert read.import_from_lp_string(text)
print("lower bounds as read:", *(read.helper.var_lower_bound(column) for column in range(read.num_variables)))
solver = model_builder.Solver("glop")
print("lp_solve's answer: 0; OR-Tools:", solver.solve(read).name)
PYTHON
grep -qx "export comes back: False" "$folder/seen"
grep -qx "lower bounds as read: -inf -inf" "$folder/seen"
grep -qx "lp_solve's answer: 0; OR-Tools: INFEASIBLE" "$folder/seen"
