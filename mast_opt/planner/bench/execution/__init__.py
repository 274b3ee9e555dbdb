"""Runs of a benchmark: one process each, with limits of time and memory."""
