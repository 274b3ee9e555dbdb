"""Suites of benchmarks: which contestants solve which instances, under which limits."""
