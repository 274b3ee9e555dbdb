#!/usr/bin/env bash
# Pyomo: of a Disjunction and a LogicalConstraint nothing reaches HiGHS, Gurobi's direct interface or an MPS file, and nothing
# is said.
#
# Versions: pyomo 6.10.1, highspy 1.16.0, gurobipy 13.0.3 (its size-limited licence), SciPy 1.17.1, sympy 1.14.0, Python 3.11.
#
# A job takes up to 10 GPUs in the east and up to 10 in the west, 15 at most, and may not be in both: "east == 0 or west == 0".
# The other rule is "the east is not open", with east <= 10 * open.
#
# Expected: such a rule has to be transformed first (gdp.bigm, core.logical_to_linear). Where that was forgotten, an error, as
# from the LP, NL and GAMS writers and from gurobi_direct_v2 ("active components that ... does not know how to process").
# highs does refuse an SOSConstraint, which it cannot take either.
# Found: highs, appsi_highs, gurobi_direct, gurobi_persistent and appsi_gurobi solve the program without the rule and say
# "optimal", 15 GPUs; the MPS file is that of the program without the rule. Transformed, the answer is 10 from all of them.
#
# Output seen (for the disjunction and again for the logical constraint; a line for each of the five):
#   disjunction untransformed: highs optimal 15
#   MPS file same as without the rule: True
#   LP writer: ValueError, gurobi_direct_v2: ValueError
#   disjunction transformed: highs optimal 10
#
# Why a user cares: a model that was written for "glpk" or "cbc", which go through the LP file, is protected against a forgotten
# transformation; moved to "highs", the same script gives a plan that breaks the rule, with status optimal.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyomo==6.10.1 highspy==1.16.0 gurobipy==13.0.3 scipy==1.17.1 sympy==1.14.0
cat >"$folder/run.py" <<'END'
import pathlib
import sys

import pyomo.environ as pyomo
from pyomo.gdp import Disjunction

folder = pathlib.Path(sys.argv[1])
SILENT = ("highs", "appsi_highs", "gurobi_direct", "gurobi_persistent", "appsi_gurobi")
TRANSFORMATION = {"disjunction": "gdp.bigm", "logic": "core.logical_to_linear"}


def program(rule):
    job = pyomo.ConcreteModel()
    job.east, job.west = pyomo.Var(bounds=(0, 10)), pyomo.Var(bounds=(0, 10))
    job.open, job.east_is_open = pyomo.Var(domain=pyomo.Binary), pyomo.BooleanVar()
    job.east_is_open.associate_binary_var(job.open)
    job.most = pyomo.Constraint(expr=job.east + job.west <= 15)
    job.when_open = pyomo.Constraint(expr=job.east <= 10 * job.open)
    job.gpus = pyomo.Objective(expr=job.east + job.west, sense=pyomo.maximize)
    if rule == "disjunction":
        job.one_region = Disjunction(expr=[[job.east == 0], [job.west == 0]])
    if rule == "logic":
        job.closed = pyomo.LogicalConstraint(expr=~job.east_is_open)
    return job


def solved(name, job):
    solver = pyomo.SolverFactory(name)
    if name == "gurobi_persistent":
        solver.set_instance(job)
        results = solver.solve()
    else:
        results = solver.solve(job)
    return str(results.solver.termination_condition), round(pyomo.value(job.gpus), 6)


def refused(call):
    try:
        call()
    except ValueError as error:
        return "does not know how to process" in str(error)
    return False


def mps(job):
    job.write(str(folder / "job.mps"))
    return (folder / "job.mps").read_text()


for rule, transformation in TRANSFORMATION.items():
    for name in SILENT:
        status, gpus = solved(name, program(rule))
        print(f"{rule} untransformed: {name} {status} {gpus:g}")
        assert (status, gpus) == ("optimal", 15)
    print("MPS file same as without the rule:", mps(program(rule)) == mps(program(None)))
    assert mps(program(rule)) == mps(program(None))
    assert refused(lambda: program(rule).write(str(folder / "job.lp")))
    assert refused(lambda: solved("gurobi_direct_v2", program(rule)))
    print("LP writer: ValueError, gurobi_direct_v2: ValueError")
    for name in SILENT:
        job = program(rule)
        pyomo.TransformationFactory(transformation).apply_to(job)
        status, gpus = solved(name, job)
        print(f"{rule} transformed: {name} {status} {gpus:g}")
        assert (status, gpus) == ("optimal", 10)
END
"$folder/venv/bin/python" "$folder/run.py" "$folder" 2>&1 | grep -v "^Restricted license\|^Set parameter\|^Running HiGHS\|^Includes third"
