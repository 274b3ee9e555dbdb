#!/usr/bin/env bash
# SCIP, CBC and GLPK put a load of 2,000,000 into a capacity of 1,999,999 and call it optimal: one variable, one row.
#
# Versions: PySCIPOpt 6.3.0 (SCIP 10.0), PuLP 3.3.2 (CBC 2.10.3), swiglpk 5.0.13 (GLPK 5.0), highspy 1.16.0, ortools
# 9.15.6755, Python 3.11.
# Program: maximise x, 2000000 x <= 1999999, x binary. The answer is 0.
# Expected: 0 from each. The row is missed by a whole unit, a million times the usual absolute tolerance of 1e-6.
# What happens: SCIP, CBC and GLPK accept x = 1, since they judge the row relative to its size; HiGHS and CP-SAT say 0.
# SCIP does so from 1,000,000 on, GLPK from 100,000 on.
# Seen: need 1000: all say 0. need 100000: glpk 1. need 1000000: glpk 1, scip 1. need 2000000: cbc 1, glpk 1, scip 1.
# Why a user cares: memory in MiB, bytes or milli-cores is in millions, and the machine does not start the last task.
# Whoever needs capacities that hold to the unit has to check plans in integers, or to state amounts in larger units.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet highspy==1.16.0 pyscipopt==6.3.0 pulp==3.3.2 swiglpk==5.0.13 ortools==9.15.6755
"$folder/venv/bin/python" - <<'PYTHON'
import highspy
import pulp
import swiglpk as glpk
from ortools.sat.python import cp_model
from pyscipopt import Model


def by_highs(need):
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    x = solver.addBinary()
    solver.addConstr(need * x <= need - 1)
    solver.maximize(x)
    return round(solver.getInfo().objective_function_value)


def by_cpsat(need):
    model = cp_model.CpModel()
    x = model.new_bool_var("x")
    model.add(need * x <= need - 1)
    model.maximize(x)
    solver = cp_model.CpSolver()
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value)


def by_scip(need):
    model = Model()
    model.hideOutput()
    x = model.addVar(vtype="B")
    model.addCons(need * x <= need - 1)
    model.setObjective(x, "maximize")
    model.optimize()
    assert model.getStatus() == "optimal"
    return round(model.getObjVal())


def by_cbc(need):
    program = pulp.LpProblem("one_row", pulp.LpMaximize)
    x = pulp.LpVariable("x", cat="Binary")
    program += x
    program += need * x <= need - 1
    assert program.solve(pulp.PULP_CBC_CMD(msg=False)) == pulp.LpStatusOptimal
    return round(pulp.value(program.objective))


def by_glpk(need):
    program = glpk.glp_create_prob()
    glpk.glp_set_obj_dir(program, glpk.GLP_MAX)
    glpk.glp_add_rows(program, 1)
    glpk.glp_set_row_bnds(program, 1, glpk.GLP_UP, 0, need - 1)
    glpk.glp_add_cols(program, 1)
    glpk.glp_set_col_kind(program, 1, glpk.GLP_BV)
    glpk.glp_set_obj_coef(program, 1, 1)
    rows, columns, values = glpk.intArray(2), glpk.intArray(2), glpk.doubleArray(2)
    rows[1], columns[1], values[1] = 1, 1, need
    glpk.glp_load_matrix(program, 1, rows, columns, values)
    asked = glpk.glp_iocp()
    glpk.glp_init_iocp(asked)
    asked.presolve, asked.msg_lev = glpk.GLP_ON, glpk.GLP_MSG_OFF
    assert glpk.glp_intopt(program, asked) == 0
    assert glpk.glp_mip_status(program) == glpk.GLP_OPT
    return round(glpk.glp_mip_obj_val(program))


BY = {"highs": by_highs, "cpsat": by_cpsat, "scip": by_scip, "cbc": by_cbc, "glpk": by_glpk}
ACCEPT = {1_000: [], 100_000: ["glpk"], 1_000_000: ["glpk", "scip"], 2_000_000: ["cbc", "glpk", "scip"]}
for need, names in ACCEPT.items():
    found = {name: solve(need) for name, solve in BY.items()}
    print(f"need {need}, capacity {need - 1}: {found}")
    assert sorted(name for name, value in found.items() if value) == names, "a solver has changed its mind"
PYTHON
