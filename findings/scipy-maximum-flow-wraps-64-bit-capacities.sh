#!/usr/bin/env bash
# SciPy: maximum_flow takes capacities of 64 bits, and uses the lower 32 of them.
#
# Versions: scipy 1.17.1, numpy 2.4.6, networkx 3.6.1, Python 3.11.
#
# A region sends data to another one over a hub; both links carry so many bytes a second.
#
# Expected: the flow is the capacity, as networkx says, or a ValueError, as SciPy raises for capacities that are no integers.
# Found: the capacities become signed numbers of 32 bits, and neither an error nor a warning says so. Links of 3 GB/s carry nothing,
# since they have become negative; those of 5 GB/s carry 0.7, and those of 2**32 + 5 B/s carry 5. The sum of flows has more than
# 32 bits without harm: two paths of 2**31 - 1 carry twice as much.
#
# Output seen:
#   capacity     2147483647: SciPy 2147483647, networkx 2147483647, 0 warnings
#   capacity     3000000000: SciPy 0, networkx 3000000000, 0 warnings
#   capacity     4294967301: SciPy 5, networkx 4294967301, 0 warnings
#   capacity     5000000000: SciPy 705032704, networkx 5000000000, 0 warnings
#   two paths of 2147483647: SciPy 4294967294
#   capacity 2.5: ValueError
#
# Why a user cares: bytes, bytes a second and milli-GPUs of a fleet are integers beyond 32 bits, and 64 bits are NumPy's default.
# The answer is a feasible flow, so a check of capacities and of balance at each node finds nothing wrong with it; only its
# size is wrong, and a cut derived from it proves a bottleneck that is not there.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scipy==1.17.1 numpy==2.4.6 networkx==3.6.1
cat >"$folder/run.py" <<'END'
import warnings

import networkx as nx
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow


def chain(capacity, dtype=np.int64):
    return csr_array(np.array([[0, capacity, 0], [0, 0, capacity], [0, 0, 0]], dtype))


seen = {}
for capacity in (2**31 - 1, 3 * 10**9, 2**32 + 5, 5 * 10**9):
    graph = nx.DiGraph()
    graph.add_edge(0, 1, capacity=capacity)
    graph.add_edge(1, 2, capacity=capacity)
    exact = nx.maximum_flow_value(graph, 0, 2)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        seen[capacity] = int(maximum_flow(chain(capacity), 0, 2).flow_value)
    print(f"capacity {capacity:>14}: SciPy {seen[capacity]}, networkx {exact}, {len(said)} warnings")
    assert exact == capacity and not said
assert list(seen.values()) == [2**31 - 1, 0, 5, 5 * 10**9 - 2**32]

most = 2**31 - 1
paths = csr_array(np.array([[0, most, most, 0], [0, 0, 0, most], [0, 0, 0, most], [0, 0, 0, 0]], np.int64))
together = int(maximum_flow(paths, 0, 3).flow_value)
print(f"two paths of {most}: SciPy {together}")
assert together == 2 * most
try:
    maximum_flow(chain(2.5, np.float64), 0, 2)
except ValueError as error:
    print("capacity 2.5:", type(error).__name__)
else:
    raise AssertionError("a capacity of 2.5 is taken")
END
"$folder/venv/bin/python" "$folder/run.py"
