"""What GPUs and cores alone permit of the headline: the least worst tier-0 ratio of family ``organisation``.

    python -m benchmarks.headline_limits --method soft [--first_time_percent 70] [--without_cores] [--seconds 60]
        [--seed 1]

A program without data: gangs of one size, tier and choice of types are counted by region and type, forecasts are split
at will, and the cores of a region hold what runs there, each application within its quotas. It
minimises the worst ratio of tier-0 demand over supply. HiGHS proves a bound, which holds for every plan of the version
of the data plan, whatever data it places. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import highspy
import numpy as np

from benchmarks.headline import METHODS, counted_from_0, version
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.generate import FAMILIES


def least_ratio(p: DataPlacement, seconds: float, cores: bool) -> tuple[float, float]:
    """(a ratio that can be reached, one that no plan is below), where only GPUs count, or ``cores`` too."""
    kinds = len(p.gpu_types)
    types = np.zeros((len(p.workloads), kinds), np.int64)
    gpu = p.options.gpu_type < kinds
    types[p.options.workload[gpu], p.options.gpu_type[gpu]] = p.options.mgpu[gpu]
    urgent = p.workloads.tier == p.tiers.index(0)
    work = np.flatnonzero(types.any(axis=1) & (cores | urgent))
    columns = (types[work], urgent[work], p.workloads.splittable[work], p.workloads.cpu_mcores[work])
    alike, count = np.unique(np.column_stack(columns), axis=0, return_counts=True)
    solver = _solver(seconds)
    ratio = solver.addVariable(0.0, highspy.kHighsInf, 1.0)
    asked: dict[tuple[int, int], Any] = {}
    used: dict[int, Any] = {}
    for row, number in zip(alike.tolist(), count.tolist()):
        cells = []
        for k, size in enumerate(row[:kinds]):
            for r in np.flatnonzero(p.regions.supply_mgpu[:, k]).tolist() if size else []:
                x = solver.addVariable(0.0, number)
                if not row[kinds + 1]:
                    solver.changeColIntegrality(x.index, highspy.HighsVarType.kInteger)
                cells.append(x)
                if row[kinds]:
                    asked.setdefault((r, k), []).append(x * (size / 1000))
                used.setdefault(r, []).append(x * (row[kinds + 2] / 1000))
        solver.addConstr(sum(cells) == number)
    for (r, k), demand in asked.items():
        solver.addConstr(sum(demand) <= p.regions.supply_mgpu[r, k] / 1000 * ratio)
    if cores:
        _limit_cores(solver, p, used, float(p.workloads.cpu_mcores[~types.any(axis=1)].sum()))
    solver.minimize()
    info = solver.getInfo()
    return info.objective_function_value, info.mip_dual_bound


def _solver(seconds: float) -> highspy.Highs:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("time_limit", seconds)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("mip_rel_gap", 1e-3)
    return solver


def _limit_cores(solver: highspy.Highs, p: DataPlacement, used: dict[int, Any], others_mcores: float) -> None:
    """Rows of the regions' cores; work without GPUs takes what the quotas let it."""
    quotas = np.bincount(p.cpu_quotas.region, weights=p.cpu_quotas.cpu_mcores, minlength=len(p.regions))
    apps = [solver.addVariable(0.0, float(quota) / 1000) for quota in quotas]
    solver.addConstr(sum(apps) == others_mcores / 1000)
    for r, cores in used.items():
        solver.addConstr(sum(cores) + apps[r] <= int(p.regions.cpu_mcores[r]) / 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = FAMILIES["organisation"].sizes
    parser.add_argument("--method", choices=METHODS, required=True)
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--without_cores", action="store_true", help="tier-0 gangs and GPUs alone")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    made = FAMILIES["organisation"].generate(
        np.random.default_rng(args.seed), **{name: getattr(args, name) for name in sizes}
    )
    problem = version(counted_from_0(made), args.method)
    reached, proven = least_ratio(problem, args.seconds, cores=not args.without_cores)
    print(json.dumps({"reached": round(reached, 4), "no plan below": round(proven, 4)}))


if __name__ == "__main__":
    main()
