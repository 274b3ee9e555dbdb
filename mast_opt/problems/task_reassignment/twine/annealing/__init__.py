"""Simulated annealing of twine: the kernel, cooling runs, and their race."""
