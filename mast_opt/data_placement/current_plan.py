"""The state of today as a plan."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from mast_opt.data_placement.dependent_values import fill_remote
from mast_opt.data_placement.plan import Plan
from mast_opt.data_placement.problem import DataPlacement, Ints


def today(problem: DataPlacement) -> Plan | None:
    """Replicas and runs as they are, or None where the instance does not say where work runs.

    GPU types that are not stated are those of ``assumed_types``. What a region lacks is read from the first region
    that has it, if any does, whatever the links allow; so this may break rules, as today may.
    """
    p = problem
    if not len(p.current_workload):
        return None
    kind = assumed_types(p)
    grid = (len(p.workloads), len(p.regions), len(p.gpu_types) + 1)
    cell, at = np.unique(np.ravel_multi_index((p.current_workload, p.current_region, kind), grid), return_inverse=True)
    share = np.zeros(len(cell), np.int64)
    np.add.at(share, at, p.current_share)
    workload, region, kind = np.unravel_index(cell[share > 0], grid)
    share = share[share > 0]
    none = np.zeros(0, np.int64)
    remote = fill_remote(p, p.stored, workload, region, kind, share)
    reader, dataset, source, target, part = (column[remote[2] >= 0] for column in remote)
    return Plan(
        place=p.stored.copy(),
        run_workload=workload,
        run_region=region,
        run_type=kind,
        run_share=share,
        copy_dataset=none.copy(),
        copy_source=none.copy(),
        copy_target=none.copy(),
        copy_share=none.copy(),
        remote_workload=reader,
        remote_dataset=dataset,
        remote_source=source,
        remote_target=target,
        remote_share=part,
    )


def assumed_types(problem: DataPlacement, plan: Plan | None = None) -> Ints:
    """[runs of today] the GPU type of each, guessed where a run states none although its workload needs one.

    It is taken to be on the type that the plan (if one is given) uses in the same region; else on the first acceptable
    one that the region has; else on the first acceptable one.
    """
    p, none = problem, len(problem.gpu_types)
    accepted: dict[int, list[int]] = defaultdict(list)
    for w, k in zip(p.option_workload.tolist(), p.option_type.tolist(), strict=True):
        accepted[w].append(k)
    planned: dict[tuple[int, int], int] = {}
    if plan is not None:
        runs = (plan.run_workload.tolist(), plan.run_region.tolist(), plan.run_type.tolist())
        for w, r, k in zip(*runs, strict=True):
            planned.setdefault((w, r), k)
    kinds = p.current_type.copy()
    for at in np.flatnonzero(p.current_type == none).tolist():
        w, r = int(p.current_workload[at]), int(p.current_region[at])
        if none not in accepted[w]:
            there = [k for k in accepted[w] if p.supply_mgpu[r, k] > 0]
            kinds[at] = planned.get((w, r), [*there, *accepted[w]][0])
    return kinds
