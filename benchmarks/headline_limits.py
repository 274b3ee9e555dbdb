"""What GPUs and cores alone permit of the headline: the least worst tier-0 ratio of family ``organisation``.

    python -m benchmarks.headline_limits --method soft [--first_time_percent 70] [--whole] [--seconds 60] [--seed 1]

A program without data: gangs of one size, tier and choice of types are counted by region and type, forecasts are split
at will (not with ``--whole``), and the cores of a region hold what runs there, each application within its quotas. It
minimises the worst ratio of tier-0 demand over supply. HiGHS proves a bound, which holds for every plan of the version
of the data plan, whatever data it places. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json

import highspy
import numpy as np

from benchmarks.headline import METHODS, version
from mast_opt.data_placement import DataPlacement
from mast_opt.data_placement.generate import FAMILIES


def least_ratio(problem: DataPlacement, seconds: float, cores: bool) -> tuple[float, float]:
    """(a ratio that can be reached, one that no plan is below), by whole gangs and what is splittable at will."""
    p = problem
    regions, kinds = p.regions.supply_mgpu.shape
    types = np.zeros((len(p.workloads), kinds), np.int64)
    gpu = p.options.gpu_type < kinds
    types[p.options.workload[gpu], p.options.gpu_type[gpu]] = p.options.mgpu[gpu]
    tier0 = p.tiers.index(0)
    work = np.flatnonzero(types.any(axis=1) & (cores | (p.workloads.tier == tier0)))
    key = np.column_stack(
        [types[work], p.workloads.tier[work] == tier0, p.workloads.splittable[work], p.workloads.cpu_mcores[work]]
    )
    alike, count = np.unique(key, axis=0, return_counts=True)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("time_limit", seconds)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("mip_rel_gap", 1e-3)
    ratio = solver.addVariable(0.0, highspy.kHighsInf, 1.0)
    load: dict[tuple[int, int], list[tuple[object, float]]] = {}
    used: dict[int, list[tuple[object, float]]] = {r: [] for r in range(regions)}
    for row, number in zip(alike.tolist(), count.tolist()):
        sizes, urgent, split, cpu = row[:kinds], row[kinds], row[kinds + 1], row[kinds + 2]
        cells = []
        for k, size in enumerate(sizes):
            for r in np.flatnonzero(p.regions.supply_mgpu[:, k]).tolist() if size else []:
                x = solver.addVariable(0.0, number)
                if not split:
                    solver.changeColIntegrality(x.index, highspy.HighsVarType.kInteger)
                cells.append(x)
                if urgent:
                    load.setdefault((r, k), []).append((x, size / 1000))
                used[r].append((x, cpu / 1000))
        solver.addConstr(sum(cells) == number)
    for (r, k), entries in load.items():
        supply = p.regions.supply_mgpu[r, k] / 1000
        solver.addConstr(sum(x * size for x, size in entries) <= supply * ratio)
    if cores:
        quotas = np.bincount(p.cpu_quotas.region, weights=p.cpu_quotas.cpu_mcores, minlength=regions)
        others = float(p.workloads.cpu_mcores[~types.any(axis=1)].sum())
        apps = [solver.addVariable(0.0, float(quota) / 1000) for quota in quotas]  # what work without GPUs takes
        solver.addConstr(sum(apps) == others / 1000)
        for r, entries in used.items():
            solver.addConstr(sum(x * cpu for x, cpu in entries) + apps[r] <= int(p.regions.cpu_mcores[r]) / 1000)
    solver.minimize()
    info = solver.getInfo()
    return info.objective_function_value, info.mip_dual_bound


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = FAMILIES["organisation"].sizes
    parser.add_argument("--method", choices=METHODS, required=True)
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--whole", action="store_true", help="forecasts are whole too")
    parser.add_argument("--without_cores", action="store_true", help="tier-0 gangs and GPUs alone")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    made = FAMILIES["organisation"].generate(
        np.random.default_rng(args.seed), **{name: getattr(args, name) for name in sizes}
    )
    problem = version(made, args.method)
    if args.whole:
        problem = problem.with_columns({"workloads.splittable": np.zeros(len(problem.workloads), np.bool_)})
    reached, proven = least_ratio(problem, args.seconds, cores=not args.without_cores)
    print(json.dumps({"reached": round(reached, 4), "no plan below": round(proven, 4)}))


if __name__ == "__main__":
    main()
