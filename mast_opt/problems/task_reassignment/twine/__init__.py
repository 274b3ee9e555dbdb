"""Twine: the task-reassignment solver of our own: compiled annealing, sub-MIPs of a few machines, a lower bound."""
