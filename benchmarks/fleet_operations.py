"""A million random operations on live fleets, held against a slow fleet that recomputes everything.

    python -m benchmarks.fleet_operations [--operations 1000000] [--every 500] [--seed 0]

Places, commits, releases, failures, cordons, drains, servers that come, go and change, jobs that are adopted and
resized, trials, snapshots and restores. After every so many operations the whole ledger is compared, entry by entry,
with one made from the names alone.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

import numpy as np

from tests.job_placement.operations import random_operation, small_fleet
from tests.job_placement.reference import assert_exact


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--every", type=int, default=500, help="operations from one comparison to the next")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    fleet, seen = small_fleet(rng), Counter[str]()
    began = time.perf_counter()
    for number in range(asked.operations):
        seen[random_operation(rng, fleet, number)] += 1
        if number % asked.every == 0:
            assert_exact(fleet._books)
    assert_exact(fleet._books)
    spent = time.perf_counter() - began
    kinds = ", ".join(f"{count:,} {what}" for what, count in seen.most_common())
    print(f"{asked.operations:,} operations in {spent:.0f} s, exact: {kinds}")


if __name__ == "__main__":
    main()
