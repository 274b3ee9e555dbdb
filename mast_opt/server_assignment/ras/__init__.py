"""Solvers of our own for server assignment."""
