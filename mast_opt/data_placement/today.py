"""The state of today as a plan."""

from __future__ import annotations

import numpy as np

from mast_opt.data_placement.dependent import fill_remote
from mast_opt.data_placement.plan import Plan
from mast_opt.data_placement.problem import DataPlacement


def today(problem: DataPlacement) -> Plan | None:
    """Replicas and runs as they are, or None where the instance does not say where work runs.

    Work that states no GPU type takes the first that it accepts. What its region lacks is read from the first region
    that has it, if any does, whatever the links allow; so this may break rules, as today may.
    """
    p = problem
    if not len(p.current_workload):
        return None
    first = np.full(len(p.workloads), len(p.gpu_types))
    first[p.option_workload[::-1]] = p.option_type[::-1]
    kind = np.where(p.current_type < len(p.gpu_types), p.current_type, first[p.current_workload])
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
