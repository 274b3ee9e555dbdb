"""How much of what collocation costs the bound of ``tetris`` proves, compared with an exact solver.

    python benchmarks/tetris_collocation.py --datasets 50 --workloads 80 --regions 6 --seeds 3 --seconds 40

Instances of family ``standard`` without weight on GPUs, so that only remote reads, copies and storage cost anything.
One line a seed: the bound of tetris after so many seconds with two threads, that of HiGHS with one, from tetris's plan
on, and HiGHS's plan; the better bound is a share of that plan.
"""

from __future__ import annotations

from dataclasses import replace

import mast_opt
from benchmarks.standard import asked, instances


def main() -> None:
    options = asked(__doc__, seeds=3, seconds=40.0)
    print(f"{'seed':>4} {'tetris bound':>13} {'HiGHS':>9} {'plan':>9}  proven by tetris, by HiGHS")
    for seed, problem in instances(options):
        weights = dict(problem.objective.weights) | {"peak": 0.0, "overload": 0.0}
        problem = replace(problem, objective=replace(problem.objective, weights=weights))
        found = mast_opt.solve(problem, "tetris", time_limit_s=options.seconds, threads=2)
        exact = mast_opt.solve(problem, "highs", time_limit_s=options.seconds, threads=1, start=found.plan)
        assert found.bound is not None
        assert exact.bound is not None
        assert exact.objective is not None
        ours, theirs = found.bound / exact.objective, exact.bound / exact.objective
        bounds = f"{seed:4} {found.bound:13.4f} {exact.bound:9.4f} {exact.objective:9.4f}"
        print(f"{bounds}  {ours:.1%} {theirs:.1%}", flush=True)


if __name__ == "__main__":
    main()
