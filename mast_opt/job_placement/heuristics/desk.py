"""A batch in progress: the ledger of a problem, its jobs as requests, and what has been decided so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mast_opt.job_placement.heuristics.fit import Request
from mast_opt.job_placement.heuristics.layout import Layout, lay_out
from mast_opt.job_placement.heuristics.ledger import new_job, new_row, start
from mast_opt.job_placement.heuristics.opening import empty_state
from mast_opt.job_placement.heuristics.state import J_ROW, L_CPU, L_MEMORY, L_NEXT, L_SERVER, VICTIM, State
from mast_opt.job_placement.plan import Plan
from mast_opt.job_placement.problem import JobPlacement
from mast_opt.job_placement.units import CPU, GPU, MEMORY, WHOLE, Bools, Ints


@dataclass
class Desk:
    """Positions in ``state`` on one side, those of the problem on the other."""

    problem: JobPlacement
    layout: Layout
    state: State
    running: Ints
    """[V] place in the state of each running job of the problem."""
    victim: dict[int, int]
    """Place in the state → running job of the problem."""
    placed: dict[int, int] = field(default_factory=dict)
    """Pending job of the problem → place in the state."""
    stopped: set[int] = field(default_factory=set)
    """Running jobs of the problem that were stopped."""

    @cached_property
    def everywhere(self) -> Bools:
        """[G] all groups."""
        return np.ones(len(self.layout.group_cluster), np.bool_)

    def request(self, j: int) -> Request:
        """A pending job as the kernels see it."""
        p = self.problem
        return Request(
            mgpu=np.where(p.accepts[j], p.need_mgpu[j], -1),
            open=p.open_region[j].copy(),
            cpu=int(p.cpu_mcores[j]),
            memory=int(p.memory_mib[j]),
            tasks=int(p.tasks[j]),
            within=int(p.within[j]),
            prefer=int(p.prefer[j]),
            tier=int(p.queue_tier[j]),
        )

    def plan(self) -> Plan:
        """What was decided, as a plan of the problem."""
        rows = [row for j in sorted(self.placed) for row in self._rows(j)]
        table = np.array(rows, np.int64).reshape(-1, 5)
        preempt = np.zeros(len(self.problem.running), np.bool_)
        preempt[list(self.stopped)] = True
        job, server, tasks, index, indexed = (table[:, at].copy() for at in range(5))
        return Plan(job, server, tasks, index, indexed.astype(np.bool_), preempt)

    def _rows(self, j: int) -> list[tuple[int, int, int, int, int]]:
        """(job, server, tasks, GPU, whether the GPU is named), sorted."""
        p, state = self.problem, self.state
        rows = []
        row = int(state.job[J_ROW, self.placed[j]])
        while row >= 0:
            s = int(self.layout.server[state.row[L_SERVER, row]])
            mgpu = int(p.need_mgpu[j, p.server_type[s]])
            device = state.row_device[row]
            if 0 < mgpu < WHOLE:
                rows += [(j, s, int(device[d]) // mgpu, d, 1) for d in np.flatnonzero(device).tolist()]
            else:
                rows.append((j, s, self._tasks(j, row, mgpu), 0, 0))
            row = int(state.row[L_NEXT, row])
        return sorted(rows)

    def _tasks(self, j: int, row: int, mgpu: int) -> int:
        p, state = self.problem, self.state
        if mgpu:
            return int(state.row_device[row].sum()) // mgpu
        for need, held in ((p.cpu_mcores[j], state.row[L_CPU, row]), (p.memory_mib[j], state.row[L_MEMORY, row])):
            if need:
                return int(held // need)
        return int(p.tasks[j])


def open_desk(problem: JobPlacement) -> Desk:
    """The fleet of the problem with its running jobs, nothing decided yet."""
    p = problem
    layout = lay_out(
        p.server_cluster, p.server_type, p.server_rack, p.cluster_region, p.regions, p.clusters, p.gpu_types
    )
    held, where, device = allocations(p)
    jobs, rows = len(p.running) + len(p.jobs), len(where) + _most_rows(p)
    state = empty_state(layout, p.supply, len(p.tiers), jobs, rows)
    running = np.empty(len(p.running), np.int64)
    first = np.searchsorted(where[:, 0], np.arange(len(p.running) + 1))
    for v in range(len(p.running)):
        cost = int(p.at_risk[v]) * VICTIM + 1
        running[v] = new_job(state, int(p.running_tier[v]), cost, bool(p.preemptible[v]), False)
        for at in range(first[v], first[v + 1]):
            s = int(layout.position[where[at, 1]])
            new_row(state, int(running[v]), s, int(held[at, CPU]), int(held[at, MEMORY]), device[at])
        start(state, int(running[v]))
    return Desk(p, layout, state, running, {int(at): v for v, at in enumerate(running)})


def allocations(problem: JobPlacement) -> tuple[Ints, Ints, np.ndarray]:
    """What running jobs hold, one row per (job, server): [·, 3] amounts, [·, 2] job and server, [·, D] by GPU."""
    p = problem
    where, at = np.unique(np.stack([p.held_job, p.held_server], axis=1), axis=0, return_inverse=True)
    at = at.reshape(-1)
    held = np.zeros((len(where), 3), np.int64)
    np.add.at(held, at, p.held)
    most = max(int(p.supply[:, GPU].max(initial=0)) // WHOLE, 1)
    device = np.zeros((len(where), most), np.int32)
    entries = p.held_devices
    np.add.at(device, (at[entries.row], entries.device), entries.mgpu)
    return held, where, device


def _most_rows(problem: JobPlacement) -> int:
    """No more allocations than this can be held by pending jobs."""
    return int(np.minimum(problem.tasks, len(problem.servers)).sum())
