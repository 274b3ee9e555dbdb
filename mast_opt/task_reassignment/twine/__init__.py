"""The solver ``twine``: annealing in compiled kernels, exact re-optimisation of a few machines, a lower bound."""
