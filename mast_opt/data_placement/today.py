"""The state of today as a plan."""

from __future__ import annotations

import numpy as np

from mast_opt.data_placement.dependent import fill_remote
from mast_opt.data_placement.plan import Plan
from mast_opt.data_placement.problem import DataPlacement


def today(problem: DataPlacement) -> Plan | None:
    """Replicas and runs as they are, or None where the instance does not say where work runs.

    Work that states no GPU type takes the first that it accepts. What its region lacks is read from the first region
    that has it, whatever the links allow; so this may break rules, as today may.
    """
    p = problem
    if not len(p.current_workload):
        return None
    order = np.lexsort((p.current_type, p.current_region, p.current_workload))
    workload, region, share = p.current_workload[order], p.current_region[order], p.current_share[order]
    first = np.full(len(p.workloads), len(p.gpu_types))
    first[p.option_workload[::-1]] = p.option_type[::-1]
    stated = p.current_type[order]
    kind = np.where(stated < len(p.gpu_types), stated, first[workload])
    none = np.zeros(0, np.int64)
    reader, dataset, source, target, part = fill_remote(p, p.stored, workload, region, kind, share)
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
