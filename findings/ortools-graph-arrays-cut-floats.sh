#!/usr/bin/env bash
# OR-Tools: the graph solvers refuse a cost of 0.9 one by one, and take arrays of such costs as 0.
#
# Versions: ortools 9.15.6755, numpy 2.4.6, Python 3.11.
#
# Two links carry a TB from one region to another, at 0.9 and at 0.2 USD.
#
# Expected: a TypeError as from add_arc_with_capacity_and_unit_cost(0, 1, 1, 0.9), since costs and capacities are integers.
# Found: add_arcs_with_capacity_and_unit_cost and the array methods of SimpleLinearSumAssignment and SimpleMaxFlow cut the
# decimals off. The flow goes over the link of 0.9, status optimal, cost 0; an assignment with costs of 1.1 and 1.9 is a tie, and
# the more expensive pairs are taken; a capacity of 2.9 is 2.
#
# Output seen:
#   one by one: TypeError
#   arrays: OPTIMAL, cost 0, flows [1, 0], unit costs [0, 0]
#   assignment: OPTIMAL, cost 2, pairs [0, 1] of real cost 3.8, the other pairs 2.2
#   maximum flow over a link of 2.9: 2
#
# Why a user cares: prices of egress are cents per GB. Whoever turns a loop into the faster array call keeps a program that runs,
# says optimal and no longer looks at prices.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ortools==9.15.6755 numpy==2.4.6
cat >"$folder/run.py" <<'END'
import numpy as np
from ortools.graph.python import linear_sum_assignment, max_flow, min_cost_flow

flow = min_cost_flow.SimpleMinCostFlow()
try:
    flow.add_arc_with_capacity_and_unit_cost(0, 1, 1, 0.9)
except TypeError as error:
    print("one by one:", type(error).__name__)
else:
    raise AssertionError("a cost of 0.9 is taken")
flow.add_arcs_with_capacity_and_unit_cost(np.array([0, 0]), np.array([1, 1]), np.array([1, 1]), np.array([0.9, 0.2]))
flow.set_nodes_supplies(np.array([0, 1]), np.array([1, -1]))
status = flow.solve()
flows, costs = [flow.flow(arc) for arc in (0, 1)], [flow.unit_cost(arc) for arc in (0, 1)]
print(f"arrays: {status.name}, cost {flow.optimal_cost()}, flows {flows}, unit costs {costs}")
assert (status.name, flow.optimal_cost(), flows, costs) == ("OPTIMAL", 0, [1, 0], [0, 0])

prices = np.array([1.9, 1.1, 1.1, 1.9])
pairs = linear_sum_assignment.SimpleLinearSumAssignment()
pairs.add_arcs_with_cost(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), prices)
status, chosen = pairs.solve(), [pairs.right_mate(left) for left in (0, 1)]
real = [prices[2 * left + right] for left, right in enumerate(chosen)]
print(f"assignment: {status.name}, cost {pairs.optimal_cost()}, pairs {chosen} of real cost {sum(real):.1f}, the other pairs 2.2")
assert (status.name, pairs.optimal_cost(), chosen) == ("OPTIMAL", 2, [0, 1])

most = max_flow.SimpleMaxFlow()
most.add_arcs_with_capacity(np.array([0]), np.array([1]), np.array([2.9]))
most.solve(0, 1)
print("maximum flow over a link of 2.9:", most.optimal_flow())
assert most.optimal_flow() == 2
END
"$folder/venv/bin/python" "$folder/run.py"
