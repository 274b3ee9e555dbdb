"""Current state of a job-placement instance: which running jobs hold what, and which limits that breaks."""

from __future__ import annotations

import numpy as np

from mast_opt.core.wording import counted
from mast_opt.job_placement.problem import JobPlacement
from mast_opt.job_placement.units import CPU, GPU, MEMORY
from mast_opt.kind.current_state import BrokenLimit, CurrentState, Known

_RESOURCES = ((GPU, "GPUs", 1000), (CPU, "cores", 1000), (MEMORY, "GiB", 1024))


def present(problem: JobPlacement) -> CurrentState:
    """A running job is known if it has allocations. Servers that hold more than they have, gangs in several clusters
    and tenants over their quotas are listed."""
    p = problem
    used = np.zeros_like(p.supply)
    np.add.at(used, p.held_server, p.held)
    broken = []
    for s, resource in np.argwhere(used > p.supply).tolist():
        _, unit, per = next(one for one in _RESOURCES if one[0] == resource)
        over = (int(used[s, resource]) - int(p.supply[s, resource])) / per
        words = f"server {p.servers[s]} is over its {unit} by {over:,.12g}"
        broken.append(BrokenLimit("capacity", (p.servers[s], unit), words))
    cells = np.unique(np.stack([p.held_job, p.server_cluster[p.held_server]], axis=1), axis=0)
    for v in np.flatnonzero(np.bincount(cells[:, 0].astype(np.int64), minlength=len(p.running)) > 1).tolist():
        number = counted(int((cells[:, 0] == v).sum()), "cluster")
        broken.append(BrokenLimit("gang", (p.running[v],), f"running job {p.running[v]} holds servers in {number}"))
    gpus, tenant = p.held[:, GPU], p.running_tenant[p.held_job]
    kind = p.server_type[p.held_server]
    for row, (t, k) in enumerate(zip(p.quota_tenant.tolist(), p.quota_type.tolist())):
        typed = bool(p.quota_typed[row])
        rows = (tenant == t) & ((kind == k) | (not typed))
        over = int(gpus[rows].sum()) - int(p.quota_mgpu[row])
        if over > 0:
            types = (p.gpu_types[k],) if typed else ()
            index = (p.tenants[t], *types)
            on = f" on {types[0]}" if types else ""
            words = f"tenant {index[0]} is over its quota{on} by {over / 1000:,.12g} GPUs"
            broken.append(BrokenLimit("quota", index, words))
    known = float(len(np.unique(p.held_job)))
    return CurrentState((Known("running jobs", known, float(len(p.running))),), tuple(broken))
