"""Benchmarks that anyone can run again: suites in files, every run in a process of its own, results as JSON lines.

suite, suite_file   what a suite is, and how one is read from TOML
sources             where an instance comes from
worker, peer        one run, inside its own process; solvers that live in an environment of their own
child               that process as its parent sees it: pinned, timed, killed when it is late
machine             what ran, and on what
results, running    JSON lines that are kept, and the loop that adds to them
over_ray            the same loop spread over a Ray cluster
best_known          the best plans that are kept next to the instances
figures, plots      counts, means, profiles, and how they are drawn
page, entry_tables  all of it as a page
"""

from mast_opt.planner.bench.suites.suite import Contestant, KnownIssue, Suite, Trial
from mast_opt.planner.bench.suites.toml_reader import read_suite

__all__ = ["Contestant", "KnownIssue", "Suite", "Trial", "read_suite"]
