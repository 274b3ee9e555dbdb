"""From which size on the search goes about it differently. Imports no kernel, so that ``kind`` can say it."""

MANY = 2_000
"""Workloads from which on sweeps come before the annealing."""
FINE = 0.1
"""Share of a region's GPUs that a gang may take for sweeps to come first: larger ones stay where they are at prices."""
