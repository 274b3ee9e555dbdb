"""What each kind of row buys the bound of ``tetris``: its own rows, rounded for gangs, and trees of reads.

    python benchmarks/tetris_bound.py --datasets 50 --workloads 80 --regions 6 --seeds 5 --seconds 20

Instances of family ``standard``, the relaxation alone on one thread. One line a seed: the bound of the rows as they
are, with roundings, and with trees after so many seconds in all.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.standard import asked, instances
from mast_opt.problems.data_placement.tetris.instance_arrays import arrays_of
from mast_opt.problems.data_placement.tetris.lagrangian.params import RelaxationParams
from mast_opt.problems.data_placement.tetris.lagrangian.relaxation import Relaxation
from mast_opt.problems.data_placement.tetris.lagrangian.tree_cut_relaxation import TreeCutRelaxation
from mast_opt.problems.data_placement.verification.peak_bound import bin_packing_peak_bound


def converged(relaxation: Relaxation, seconds: float) -> float:
    """The bound when it stands still, or when the time is over."""
    began = time.perf_counter()
    while not relaxation.converged and time.perf_counter() - began < seconds:
        relaxation.step(1)
    return relaxation.bound


def main() -> None:
    options = asked(__doc__, seeds=5, seconds=20.0)
    print(f"{'seed':>4} {'plain':>8} {'gangs':>8} {'trees':>8}")
    shares = []
    for seed, problem in instances(options):
        a, floor = arrays_of(problem, dict(problem.objective.weights)), bin_packing_peak_bound(problem)
        plain = converged(
            Relaxation(a, floor, problem.workloads.splittable, RelaxationParams(roundings=0)), options.seconds
        )
        rounded = converged(Relaxation(a, floor, problem.workloads.splittable), options.seconds)
        trees = TreeCutRelaxation(a, floor, problem.workloads.splittable, np.random.default_rng(seed))
        treed = converged(trees, options.seconds)
        shares.append((rounded / plain - 1, treed / rounded - 1))
        gain = "{:+.1%} {:+.1%}".format(*shares[-1])
        print(f"{seed:4} {plain:8.4f} {rounded:8.4f} {treed:8.4f}  {gain}", flush=True)
    gang, tree = np.median(np.array(shares), axis=0)
    print(f"median: roundings {gang:+.2%}, trees {tree:+.2%}")


if __name__ == "__main__":
    main()
