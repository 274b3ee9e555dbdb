"""Lagrangian relaxation of tetris: the lower bound and its cutting planes."""
