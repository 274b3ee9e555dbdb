"""The published headline on family ``organisation``: what one data plan makes of the tier-0 ratio, and what it costs.

    python benchmarks/headline.py --method soft [--datasets 1000] [--workloads 5000] [--regions 12]
        [--storage_percent 225] [--first_time_percent 70] [--iterations 60] [--seed 1] [--default-objective]

Published for MAST: 2.63 before and 0.98 after, under 0.1% of the work away from its data, 75 to 125% more storage. The
ratio before is an input here. Methods, reconstructed from one sentence that compares three versions of the data plan:

    hard       V0: a GPU limit that no plan may exceed; work is refused instead, the low tiers first
    soft       V1: GPU limits are penalties; the regions' cores are those of the GPU work that runs there today
    derived    V2: as soft, and cores and storage of a region follow its GPUs
    cores      between V1 and V2: cores follow GPUs, storage does not
    storage    between V1 and V2: storage follows GPUs, cores do not

Solved by ``tetris`` on one thread, with the default weights and levels of 0, or the default levels. It ends after a
number of rounds, so that the load of the machine does not change the plan. Prints one JSON object of figures."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import replace

import numpy as np

import mast_opt
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.generate import FAMILIES
from mast_opt.problems.data_placement.generate import distributions as draws
from mast_opt.problems.data_placement.generate.organisation import CPU_FILL
from mast_opt.problems.data_placement.plan import today
from mast_opt.problems.data_placement.problem import SHARE
from mast_opt.problems.data_placement.verification.verifier import verify

METHODS = ("hard", "soft", "derived", "cores", "storage")
ITERATIONS = 60
"""Rounds of ``tetris``: about half a minute on one idle core at the default size."""
LIMIT_WEIGHT = 4e5
"""Weight of overload where a GPU limit is hard: a hundred times that of refusing all work."""
TIER_RATIO = 0.1
"""Weight of a tier over that of the tier above it, where work is refused."""


def counted_from_0(problem: DataPlacement) -> DataPlacement:
    """The instance with the worst ratio counted from 0, as it is published."""
    weights = {**problem.objective.weights, "retyped_work": 0.0}
    levels = dict.fromkeys(problem.tiers, 0.0)
    return replace(problem, objective=replace(problem.objective, weights=weights, peak_levels=levels))


def version(problem: DataPlacement, method: str) -> DataPlacement:
    """The instance as a version of the data plan sees it."""
    if method in ("derived", "storage"):
        problem = with_storage_by_gpus(problem)
    if method in ("derived", "cores"):
        return problem
    soft = with_cores_of_today(problem)
    if method != "hard":
        return soft
    objective = replace(
        soft.objective,
        weights={**soft.objective.weights, "overload": LIMIT_WEIGHT},
        tier_weights={tier: TIER_RATIO**tier for tier in soft.tiers},
    )
    return replace(soft, objective=objective, may_refuse=True)


def with_storage_by_gpus(problem: DataPlacement) -> DataPlacement:
    """The instance with what storage is free today given to the regions by their GPUs."""
    gpus = problem.regions.supply_mgpu.sum(axis=1)
    used_mb = problem.datasets.size_mb @ problem.datasets.stored
    free_mb = int(problem.regions.storage_mb.sum() - used_mb.sum())
    return problem.with_columns({"regions.storage_mb": used_mb + draws.shared_out(free_mb, gpus / gpus.sum())})


def with_cores_of_today(problem: DataPlacement) -> DataPlacement:
    """The instance with cores for the quotas and for the GPU work that runs in a region today (which generated
    instances have too, where they have not more for the work that its GPUs attract)."""
    regions = len(problem.regions)
    quotas = np.bincount(problem.cpu_quotas.region, weights=problem.cpu_quotas.cpu_mcores, minlength=regions)
    runs = problem.current_runs
    gpu_work = runs.gpu_type < len(problem.gpu_types)
    used = np.bincount(
        runs.region[gpu_work],
        weights=(problem.workloads.cpu_mcores[runs.workload] * runs.share / SHARE)[gpu_work],
        minlength=regions,
    )
    return problem.with_columns({"regions.cpu_mcores": np.ceil(quotas + used / CPU_FILL).astype(np.int64)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", choices=METHODS, required=True)
    sizes = FAMILIES["organisation"].sizes
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--default-objective", action="store_true")
    args = parser.parse_args()
    made = FAMILIES["organisation"].generate(
        np.random.default_rng(args.seed), **{name: getattr(args, name) for name in sizes}
    )
    problem = version(made if args.default_objective else counted_from_0(made), args.method)
    solution = mast_opt.solve(problem, "tetris", iterations=args.iterations, threads=1, seed=args.seed)
    now = today(problem)
    assert now is not None, "the family says where everything runs today"
    before = verify(problem, now).metrics
    if solution.verdict is None:
        raise SystemExit(f"no plan: {solution.status.value}, {solution.message}")
    metrics, terms = solution.verdict.metrics, solution.verdict.terms
    demand = problem.demand_mgpu.sum() / draws.GPU
    percent = {
        "away_from_data_%": metrics["non_collocation_rate"],
        "remote_volume_%": terms["remote"],
        "more_storage_%": metrics["storage_overhead"],
        "copied_%": terms["copy"],
        "moved_work_%": terms["moved_work"],
        "refused_%": metrics["unserved_gpus"] / demand,
        "gap_%": math.nan if solution.gap is None else solution.gap,
    }
    print(
        json.dumps(
            {
                "tier_0_before": round(before["peak_ratio_tier0"], 3),
                "tier_0_after": round(metrics["peak_ratio_tier0"], 3),
                **{name: None if math.isnan(share) else round(100 * share, 4) for name, share in percent.items()},
            }
        )
    )


if __name__ == "__main__":
    main()
