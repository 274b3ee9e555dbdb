"""How far the bound of ``tetris`` is below what collocation costs, where an exact solver can say so.

    python benchmarks/tetris_collocation.py --datasets 50 --workloads 80 --regions 6 --seeds 3 --seconds 40

Instances of family ``standard`` without weight on GPUs, so that only remote reads, copies and storage cost anything.
One line a seed: the bound of tetris, the lower bound that HiGHS proves from tetris's plan on, and its plan.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import mast_opt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("datasets", 50), ("workloads", 80), ("regions", 6), ("seeds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seconds", type=float, default=40.0)
    options = parser.parse_args()
    sizes = {"datasets": options.datasets, "workloads": options.workloads, "regions": options.regions}
    print(f"{'seed':>4} {'tetris bound':>13} {'proven':>9} {'plan':>9}  proven above tetris's bound")
    for seed in range(1, options.seeds + 1):
        problem = mast_opt.generate("data-placement", "standard", seed=seed, **sizes)
        weights = dict(problem.objective.weights) | {"peak": 0.0, "overload": 0.0}
        problem = replace(problem, objective=replace(problem.objective, weights=weights))
        found = mast_opt.solve(problem, "tetris", iterations=150, threads=1)
        exact = mast_opt.solve(problem, "highs", time_limit_s=options.seconds, threads=1, start=found.plan)
        assert found.bound is not None
        assert exact.bound is not None
        assert exact.objective is not None
        above = exact.bound / found.bound - 1
        print(f"{seed:4} {found.bound:13.4f} {exact.bound:9.4f} {exact.objective:9.4f}  {above:+.1%}", flush=True)


if __name__ == "__main__":
    main()
