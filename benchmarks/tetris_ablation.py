"""What each idea of ``tetris`` buys: the same number of changes without one kind of change, and greedily.

    python benchmarks/tetris_ablation.py --datasets 1000 --workloads 1500 --regions 10 --changes 4e6 --seeds 3

One line a variant: the mean objective over instances, and processor seconds, both also relative to the whole.
"""

from __future__ import annotations

import argparse
import statistics
import time

import mast_opt
from mast_opt.data_placement import DataPlacement
from mast_opt.data_placement.heuristics.anneal import SHARES, anneal, mix_of, shares_for
from mast_opt.data_placement.heuristics.arrays import arrays_of
from mast_opt.data_placement.heuristics.construct import first_state
from mast_opt.data_placement.heuristics.cooling import COLD, FINISH, HOT
from mast_opt.data_placement.heuristics.parts import scratch_for, whole
from mast_opt.data_placement.heuristics.state import cost, forbidden


def anneal_once(problem: DataPlacement, shares: dict[str, float], changes: int, hot: float) -> tuple[float, float]:
    """(objective, processor seconds) of one cooling from the first plan."""
    a, refuse = arrays_of(problem, dict(problem.objective.weights)), problem.may_refuse
    state = first_state(a, refuse, 1)
    unit = (cost(a, state) - forbidden(a, state)) / len(problem.workloads)
    part, scratch, mix = whole(a, state), scratch_for(a), mix_of(shares)
    anneal(part, 1, 0.0, 0.0, refuse, scratch, mix)  # compiles
    began = time.thread_time()
    anneal(part, round(changes * (1 - FINISH)), hot * unit, COLD * unit if hot else 0.0, refuse, scratch, mix)
    anneal(part, round(changes * FINISH), 0.0, 0.0, refuse, scratch, mix)
    return cost(a, state), time.thread_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("datasets", 1000), ("workloads", 1500), ("regions", 10), ("seeds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--changes", type=float, default=4e6)
    parser.add_argument("--family", default="standard")
    options = parser.parse_args()
    sizes = {"datasets": options.datasets, "workloads": options.workloads, "regions": options.regions}
    problems = [
        mast_opt.generate("data-placement", options.family, seed=seed, **sizes) for seed in range(1, options.seeds + 1)
    ]
    shares = shares_for(problems[0].remote_reads)
    variants = {"everything": (shares, HOT), "greedy (no temperature)": (shares, 0.0)}
    variants |= {f"without {name}": (shares | {name: 0.0}, HOT) for name in SHARES if shares[name]}
    whole_cost = 0.0
    for name, (shares, hot) in variants.items():
        runs = [anneal_once(problem, shares, int(options.changes), hot) for problem in problems]
        objective = statistics.fmean(value for value, _ in runs)
        whole_cost = whole_cost or objective
        seconds = statistics.fmean(spent for _, spent in runs)
        print(f"{name:26} {objective:9.4f}  {objective / whole_cost - 1:+7.2%}  {seconds:7.2f} s", flush=True)


if __name__ == "__main__":
    main()
