"""Operators of twine: moves of processes, their effects and costs."""
