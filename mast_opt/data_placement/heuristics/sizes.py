"""From which size on the search goes about it differently. Imports no kernel, so that ``kind`` can say it."""

MANY = 20_000
"""Workloads from which on sweeps come before the annealing."""
