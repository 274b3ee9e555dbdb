"""Benchmarks that anyone can run again: suites in files, every run in a process of its own, results as JSON lines."""
