#!/usr/bin/env bash
# PuLP and OR-Tools' pywraplp: of "2 <= x + y <= 3" only "x + y <= 3" is in the program, and nothing is said.
#
# Versions: PuLP 3.3.2 (CBC 2.10.3), ortools 9.15.6755, highspy 1.16.0, PySCIPOpt 6.3.0, pyomo 6.10.1, Python 3.11.
#
# Expected: one row with two bounds, as in highspy, or a refusal, as in CP-SAT, ModelBuilder, PySCIPOpt and pyomo. Python reads
# the chain as "(2 <= x + y) and (x + y <= 3)", so a library has to do the one or the other.
# Found: PuLP's constraint is true in that "and", and so is pywraplp's, so that its value is the second half. Minimising x + y
# over x, y >= 0 gives 0, status optimal; highspy gives 2. The other way round, "3 >= x + y >= 2", the upper bound is gone.
#
# Output seen:
#   PuLP: Optimal 0.0, rows ['x + y <= 3']
#   pywraplp: optimal 0.0, 1 row with bounds -inf and 3.0
#   highspy: 2.0
#   CP-SAT: NotImplementedError
#   ModelBuilder: NotImplementedError
#   PySCIPOpt: TypeError
#   pyomo: PyomoException
#
# Why a user cares: "copies_min <= sum of replicas <= copies_max" is how such a rule is written on paper. A planner who moves a
# program from highspy to PuLP loses the least number of replicas, and the cheaper plan looks like a success.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pulp==3.3.2 ortools==9.15.6755 highspy==1.16.0 pyscipopt==6.3.0 pyomo==6.10.1
cat >"$folder/run.py" <<'END'
import highspy
import pulp
import pyomo.environ as pyomo
from ortools.linear_solver import pywraplp
from ortools.linear_solver.python import model_builder
from ortools.sat.python import cp_model
from pyscipopt import Model

model = pulp.LpProblem("replicas", pulp.LpMinimize)
x, y = pulp.LpVariable("x", 0, 10), pulp.LpVariable("y", 0, 10)
model += x + y
model += 2 <= x + y <= 3
model.solve(pulp.PULP_CBC_CMD(msg=False))
listed = model.constraints() if callable(model.constraints) else model.constraints.values()
rows = [str(row) for row in listed]
least = pulp.value(model.objective)
print(f"PuLP: {pulp.LpStatus[model.status]} {least}, rows {rows}")
assert (least, rows) == (0, ["x + y <= 3"])

solver = pywraplp.Solver.CreateSolver("GLOP")
x, y = solver.NumVar(0, 10, "x"), solver.NumVar(0, 10, "y")
row = solver.Add(2 <= x + y <= 3)
solver.Minimize(x + y)
assert solver.Solve() == pywraplp.Solver.OPTIMAL
least = solver.Objective().Value()
print(f"pywraplp: optimal {least}, {solver.NumConstraints()} row with bounds {row.lb()} and {row.ub()}")
assert (least, solver.NumConstraints(), row.lb(), row.ub()) == (0, 1, -solver.infinity(), 3)

highs = highspy.Highs()
highs.silent()
x, y = highs.addVariable(0, 10), highs.addVariable(0, 10)
highs.addConstr(2 <= x + y <= 3)
highs.minimize(x + y)
print("highspy:", highs.getObjectiveValue())
assert highs.getObjectiveValue() == 2


def refusal(x, y):
    try:
        2 <= x + y <= 3
    except Exception as found:
        return type(found).__name__
    return "nothing"


sat, builder, scip, concrete = cp_model.CpModel(), model_builder.Model(), Model(), pyomo.ConcreteModel()
concrete.x, concrete.y = pyomo.Var(), pyomo.Var()
refused = {
    "CP-SAT": refusal(sat.new_int_var(0, 10, "x"), sat.new_int_var(0, 10, "y")),
    "ModelBuilder": refusal(builder.new_num_var(0, 10, "x"), builder.new_num_var(0, 10, "y")),
    "PySCIPOpt": refusal(scip.addVar("x", ub=10), scip.addVar("y", ub=10)),
    "pyomo": refusal(concrete.x, concrete.y),
}
for name, found in refused.items():
    print(f"{name}: {found}")
assert "nothing" not in refused.values()
END
"$folder/venv/bin/python" "$folder/run.py"
