"""From which size on the search goes about it differently. Imports no kernel: ``kind`` says it without compiling any."""

MANY = 20_000
"""Workloads from which on sweeps come before the annealing."""
