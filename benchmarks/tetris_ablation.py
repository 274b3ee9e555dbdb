"""What each idea of ``tetris`` buys: the same number of changes without one kind of change, guided, and greedily.

    python benchmarks/tetris_ablation.py --datasets 1000 --workloads 1500 --regions 10 --changes 4e6 --seeds 3

One line a variant: the mean objective over instances, and processor seconds, both also relative to the whole.
"""

from __future__ import annotations

import argparse
import statistics
import time

import mast_opt
from mast_opt.data_placement import DataPlacement
from mast_opt.data_placement.tetris.annealing.cooling_schedule import COLD, FINISH, HOT
from mast_opt.data_placement.tetris.annealing.kernel import anneal
from mast_opt.data_placement.tetris.decomposition import undivided
from mast_opt.data_placement.tetris.initial_solution import first_state
from mast_opt.data_placement.tetris.instance_arrays import arrays_of
from mast_opt.data_placement.tetris.operators.workspace import workspace_for
from mast_opt.data_placement.tetris.params import SHARES, OperatorWeights, operator_weights, shares_for
from mast_opt.data_placement.tetris.state import cost, forbidden


def anneal_once(problem: DataPlacement, mix: OperatorWeights, changes: int, hot: float) -> tuple[float, float]:
    """(objective, processor seconds) of one cooling from the first plan."""
    a, refuse = arrays_of(problem, dict(problem.objective.weights)), problem.may_refuse
    state = first_state(a, refuse, 1)
    unit = (cost(a, state) - forbidden(a, state)) / len(problem.workloads)
    part, scratch = undivided(a, state), workspace_for(a)
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
    remote_reads = problems[0].remote_reads
    shares = shares_for(remote_reads)
    variants = {"everything": (operator_weights(shares), HOT)}
    if remote_reads:
        guided = shares_for(remote_reads, guided=True)
        variants |= {
            "guided": (operator_weights(guided, guided=True), HOT),
            "guided, exchanges no more often": (operator_weights(shares, guided=True), HOT),
            "exchanges more often": (operator_weights(guided), HOT),
        }
    variants |= {f"without {name}": (operator_weights(shares | {name: 0.0}), HOT) for name in SHARES if shares[name]}
    variants["greedy (no temperature)"] = (operator_weights(shares), 0.0)
    whole_cost = 0.0
    for name, (mix, hot) in variants.items():
        runs = [anneal_once(problem, mix, int(options.changes), hot) for problem in problems]
        objective = statistics.fmean(value for value, _ in runs)
        whole_cost = whole_cost or objective
        seconds = statistics.fmean(spent for _, spent in runs)
        print(f"{name:32} {objective:9.4f}  {objective / whole_cost - 1:+7.2%}  {seconds:7.2f} s", flush=True)


if __name__ == "__main__":
    main()
