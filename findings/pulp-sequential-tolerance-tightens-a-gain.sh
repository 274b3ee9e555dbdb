#!/usr/bin/env bash
# PuLP's sequentialSolve: the 10% that loosen a cost make the next goal infeasible where the goal is a gain.
#
# Versions: PuLP 3.3.2 with its bundled CBC, Python 3.11.
# Program: x and y whole in 0..10, x + y <= 10; first the gain x + 2 y (at most 20), then x.
# Expected: a relative tolerance of 1.1, or an absolute one of 2, gives some of the first goal up for the second, as it
# does for a cost of positive value.
# What happens: the next solve gets the row "goal <= value * relative + absolute" (>= where it maximises). Written as the
# cost -20, "10% worse" asks for -22, and maximised, an absolute 2 asks for 22: the second solve is infeasible. The call
# raises nothing: it returns [1, -1], the columns are those of the infeasible solve, outside their bounds, and the rows
# stay in the problem, so that solving it again, for anything, is infeasible too.
# Why a user cares: a sequence of goals with money earned, GPUs freed or work served among them drops to a plan that
# breaks its own limits. The factor has to be below 1 for such a goal, the absolute tolerance negative where it maximises,
# and every entry of the list has to be looked at.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pulp==3.3.2
"$folder/venv/bin/python" - <<'PYTHON' 2>/dev/null
import pulp


def goals(sense, sign, relative, absolute):
    problem = pulp.LpProblem("goals", sense)
    x, y = (pulp.LpVariable(name, 0, 10, cat="Integer") for name in "xy")
    problem += x + y <= 10
    solver = pulp.PULP_CBC_CMD(msg=False)
    found = problem.sequentialSolve([sign * (x + 2 * y), sign * x], absolute, relative, solver)
    again = problem.copy()
    again.setObjective(0 * x)
    again.solve(solver)
    print(f"sense {sense:2d}, goal times {sign:2d}, relative {relative}, absolute {absolute}: statuses {found}, "
          f"x {x.value():g}, y {y.value():g}; solved again: {pulp.LpStatus[again.status]}")
    return found, (x.value(), y.value()), pulp.LpStatus[again.status]


fits = [1, 1], (2.0, 8.0), "Optimal"
assert goals(pulp.LpMaximize, 1, [0.9, 1], [0, 0]) == fits
assert goals(pulp.LpMaximize, 1, [1, 1], [-2, 0]) == fits
for found, columns, again in (
    goals(pulp.LpMinimize, -1, [1.1, 1], [0, 0]),
    goals(pulp.LpMaximize, 1, [1, 1], [2, 0]),
):
    assert found == [1, -1] and again == "Infeasible", "the tolerance no longer tightens a gain"
    assert min(columns) < 0 or max(columns) > 10, "the columns are within their bounds now"
PYTHON
