"""Family ``organisation`` solved by ``tetris``: plan, proven gap and time by size.

    python benchmarks/organisation.py [--datasets 1000] [--workloads 5000] [--regions 10] [--storage_percent 225]
        [--first_time_percent 70] [--seconds 60] [--threads 2] [--seed 1]

Prints one JSON object: the verified plan's objective and terms, the proven bound and gap, seconds by phase, processor
time and peak memory. The time limit covers everything after compiling; generating the instance comes before it.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import numpy as np

import mast_opt
from mast_opt.problems.data_placement.generate import FAMILIES

MB = 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = {**FAMILIES["organisation"].sizes, "regions": 10}
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    began = time.perf_counter()
    asked = {name: getattr(args, name) for name in sizes}
    problem = FAMILIES["organisation"].generate(np.random.default_rng(args.seed), **asked)
    made_s, cpu_s = time.perf_counter() - began, time.process_time()
    solution = mast_opt.solve(problem, "tetris", time_limit_s=args.seconds, threads=args.threads, seed=args.seed)
    print(
        json.dumps(
            {
                **asked,
                "seed": args.seed,
                "threads": args.threads,
                "limit_s": args.seconds,
                "status": solution.status.value,
                "objective": solution.objective,
                "bound": solution.bound,
                "gap_%": None if solution.gap is None else round(100 * solution.gap, 3),
                "terms": None if solution.verdict is None else dict(solution.verdict.terms),
                "generate_s": round(made_s, 1),
                "runtime_s": {name: round(seconds, 1) for name, seconds in solution.runtime_s.items()},
                "solve_cpu_s": round(time.process_time() - cpu_s, 1),
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // MB,
                "message": solution.message,
            }
        )
    )


if __name__ == "__main__":
    main()
