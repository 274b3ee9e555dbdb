"""Current state of a job-placement instance: which running jobs hold what, and which limits that breaks."""

import numpy as np

from mast_opt.core.ledger import Ledger
from mast_opt.core.wording import counted
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import CPU, GPU, MEMORY
from mast_opt.problems.kind.current_state import BrokenLimit, CurrentState, Known

_RESOURCES = ((GPU, "GPUs", 1000), (CPU, "cores", 1000), (MEMORY, "GiB", 1024))


def current_state(problem: JobPlacement) -> CurrentState:
    """A running job is known if it has allocations. Servers that hold more than they have, gangs in several clusters
    and tenants over their quotas are listed."""
    p = problem
    used = np.zeros_like(p.servers.supply)
    np.add.at(used, p.allocations.server, p.held)
    broken = []
    for s, resource in np.argwhere(used > p.servers.supply).tolist():
        _, unit, per = next(one for one in _RESOURCES if one[0] == resource)
        over = (int(used[s, resource]) - int(p.servers.supply[s, resource])) / per
        words = f"server {p.servers.labels[s]} is over its {unit} by {over:,.12g}"
        broken.append(BrokenLimit("capacity", (p.servers.labels[s], unit), words))
    cells = np.unique(np.stack([p.allocations.running, p.server_cluster[p.allocations.server]], axis=1), axis=0)
    for v in np.flatnonzero(np.bincount(cells[:, 0].astype(np.int64), minlength=len(p.running)) > 1).tolist():
        number = counted(int((cells[:, 0] == v).sum()), "cluster")
        broken.append(
            BrokenLimit("gang", (p.running.labels[v],), f"running job {p.running.labels[v]} holds servers in {number}")
        )
    ledger, kind = Ledger(p.rights), p.servers.gpu_type[p.allocations.server]
    owners = [(*p.tenants, "")[t] for t in p.running.tenant[p.allocations.running].tolist()]
    for row, (owner, k, mgpu) in enumerate(zip(owners, kind.tolist(), p.held[:, GPU].tolist())):
        ledger.add(str(row), owner, 0, row, {p.gpu_types[k]: mgpu})
    for name, key, _, _ in ledger.quotas.rows():
        over = ledger.excess(name, key)
        if over > 0:
            on = f" on {key}" if key else ""
            words = f"tenant {name} is over its quota{on} by {over / 1000:,.12g} GPUs"
            broken.append(BrokenLimit("quota", (name, key) if key else (name,), words))
    known = float(len(np.unique(p.allocations.running)))
    return CurrentState((Known("running jobs", known, float(len(p.running))),), tuple(broken))
