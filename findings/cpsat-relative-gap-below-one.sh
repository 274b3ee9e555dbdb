#!/usr/bin/env bash
# CP-SAT: a relative gap of 5% is an absolute gap of 0.05 where the objective is below 1, and the status is OPTIMAL.
#
# Versions: ortools 9.15.6755, highspy 1.16.0, Python 3.11.
# Program: twelve jobs on twelve servers, one each; a cost of 0.0001 to 0.0099 USD a pair; best sum 0.0141 USD.
# Expected: with relative_gap_limit = 0.05, OPTIMAL means within 5% of the optimum, whether costs are in USD or in
# hundredths of a cent; HiGHS with mip_rel_gap = 0.05 keeps that in both.
# What happens: CP-SAT divides by max(1, |objective|). In USD it stops at its first plan, which costs more than twice the
# optimum; its own bound next to it says 60%, and the status is OPTIMAL. In hundredths of a cent it finds 141.
# Output seen:
#     CP-SAT, USD: OPTIMAL 0.0298 with bound 0.0118
#     CP-SAT, hundredths of a cent: OPTIMAL 141.0 with bound 141.0
#     HiGHS, USD: Optimal 0.0141
# Why a user cares: prices a second, shares of a fleet and normalised costs are below 1. Whoever compares solvers at one
# gap takes CP-SAT for the quickest, and a plan at twice the cost for proven; only the unit of money decides.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ortools==9.15.6755 highspy==1.16.0 numpy
"$folder/venv/bin/python" - <<'PYTHON'
import random

import highspy
from ortools.sat.python import cp_model

SIZE, GAP = 12, 0.05
PAIRS = [(job, server) for job in range(SIZE) for server in range(SIZE)]
drawn = random.Random(1)
price = {pair: drawn.randint(1, 99) for pair in PAIRS}


def by_cpsat(unit):
    model = cp_model.CpModel()
    at = {pair: model.new_bool_var(f"at{pair}") for pair in PAIRS}
    for one in range(SIZE):
        model.add_exactly_one(at[one, server] for server in range(SIZE))
        model.add_exactly_one(at[job, one] for job in range(SIZE))
    model.minimize(sum(price[pair] * unit * at[pair] for pair in PAIRS))
    solver = cp_model.CpSolver()
    solver.parameters.relative_gap_limit = GAP
    solver.parameters.num_workers = 1
    status = solver.status_name(solver.solve(model))
    return status, solver.objective_value, solver.best_objective_bound


def by_highs(unit):
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", GAP)
    at = {pair: solver.addBinary(obj=price[pair] * unit) for pair in PAIRS}
    for one in range(SIZE):
        solver.addConstr(sum(at[one, server] for server in range(SIZE)) == 1)
        solver.addConstr(sum(at[job, one] for job in range(SIZE)) == 1)
    solver.run()
    return solver.modelStatusToString(solver.getModelStatus()), solver.getInfo().objective_function_value


usd, units = by_cpsat(1e-4), by_cpsat(1)
words, least = by_highs(1e-4)
print(f"CP-SAT, USD: {usd[0]} {usd[1]:.4f} with bound {usd[2]:.4f}")
print(f"CP-SAT, hundredths of a cent: {units[0]} {units[1]} with bound {units[2]}")
print(f"HiGHS, USD: {words} {least:.4f}")
assert usd[0] == units[0] == "OPTIMAL"
assert words == "Optimal"
assert units[1] <= 1.05 * 141 and least <= 1.05 * 0.0141
assert usd[1] > 1.5 * 0.0141 and usd[1] - usd[2] < GAP
PYTHON
