"""Aggregated relaxation of job placement: the servers of a group are added up, so size is not tasks times servers.

It decides which job goes to which cluster and type and which running job is stopped, as the formulation does, but
not on which servers. What is added up is a relaxation (two servers with four free GPUs do not hold tasks of 3, 3 and
2), so its optimum is a lower bound; where GPUs are what is scarce and widths are powers of two it is close to the
truth, because the tasks at least w GPUs wide are held to the whole slots of that width that servers have.
"""

from dataclasses import dataclass, replace

import numpy as np

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.problems.job_placement.formulation.cluster_rows import ClusterRows
from mast_opt.problems.job_placement.formulation.domain_reduction import possible_options
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import GPU, RESOURCES, WHOLE, Bools, Ints
from mast_opt.problems.mip import Mip, frozen


@dataclass(frozen=True, eq=False)
class AggregatedRelaxation:
    """The program, and what a solution of it says."""

    mip: Mip
    assign: IntArray
    option_job: Ints
    option_cluster: Ints
    option_type: Ints
    preempt: IntArray
    victims: Ints

    def choices(self, x: FloatArray) -> tuple[dict[int, tuple[int, int]], Ints]:
        """Job → (cluster, type) for the jobs that it admits, and the running jobs that it stops."""
        chosen = np.flatnonzero(x[self.assign] > 0.5).tolist()
        where = {int(self.option_job[at]): (int(self.option_cluster[at]), int(self.option_type[at])) for at in chosen}
        return where, self.victims[x[self.preempt] > 0.5]


def relaxation(problem: JobPlacement) -> AggregatedRelaxation:
    """The program with the problem's weights; terms that need servers (spread, fragmentation) count nothing."""
    statement = _Totals(problem)
    p = statement.p
    statement.admitted()
    statement.admission()
    statement.preemption()
    statement.balance()
    statement.amounts()
    statement.slots()
    for term in ("spread", "fragmentation"):
        statement.m.term(term)
    o = statement.options
    mip = statement.m.build(p.objective.weights)
    upper = mip.col_upper.copy()
    upper[statement.assign] = possible_options(statement.movers, o)
    return AggregatedRelaxation(
        replace(mip, col_upper=frozen(upper)),
        statement.assign,
        o.job,
        o.cluster,
        o.type,
        statement.preempt,
        statement.victims,
    )


class _Totals(ClusterRows):
    """The formulation's columns and terms of clusters, without those of servers."""

    def __init__(self, problem: JobPlacement) -> None:
        super().__init__(problem)
        o = self.options
        self.option_tier = self.p.queue_tier[o.job]
        """Tier of each option's job, [o]."""
        pairs = np.stack([self.p.server_cluster, self.p.servers.gpu_type], axis=1)
        self.groups, group = np.unique(pairs, axis=0, return_inverse=True)
        self.group_of: Ints = group.reshape(-1)
        """Group of each server, [S]."""
        key = self.groups[:, 0] * len(self.p.gpu_types) + self.groups[:, 1]
        self.option_group: Ints = np.searchsorted(key, o.cluster * len(self.p.gpu_types) + o.type)
        """Group of each option, [o]."""
        self.group_names = tuple(f"{self.p.clusters.labels[a]}/{self.p.gpu_types[k]}" for a, k in self.groups.tolist())

    def amounts(self) -> None:
        """total: Σ_{j: tier ≥ p} tasks[j]·need[j]·assign[j,c,k] ≤ what the group has free + what victims of tier > p
        hold there, for every tier and resource."""
        p, o, m = self.p, self.options, self.m
        tiers, groups = len(p.tiers), len(self.groups)
        free = np.zeros((groups, 3), np.int64)
        np.add.at(free, self.group_of, p.free)
        total = m.rows(
            "total", [self.group_names, self.tiers, RESOURCES], upper=np.repeat(free[:, None, :], tiers, axis=1)
        )
        freed = self.freed()
        for tier in range(tiers):
            mine = np.flatnonzero(self.option_tier >= tier)
            gives = np.flatnonzero(freed.below > tier)
            for resource in range(3):
                row = (self.option_group[mine] * tiers + tier) * 3 + resource
                total.add(row, self.assign[mine], o.need[mine, resource] * p.jobs.tasks[o.job[mine]])
                row = (self.group_of[freed.server[gives]] * tiers + tier) * 3 + resource
                total.add(row, freed.column[gives], -freed.held[gives, resource])

    def slots(self) -> None:
        """wide: Σ_{j: tier ≥ p, gpus ≥ w} tasks[j]·floor(gpus[j] / w)·assign[j,c,k] ≤ slots of w whole GPUs that the
        servers of the group have; slot: on a server with victims of tier > p, w·slots ≤ free GPUs + what they free."""
        p, o = self.p, self.options
        widths = np.unique(o.need[:, GPU] // WHOLE)
        freed = self.freed()
        for tier in range(len(p.tiers)):
            gives = (freed.below > tier) & (freed.held[:, GPU] > 0)
            for width in widths[widths > 1].tolist():
                wide = (self.option_tier >= tier) & (o.need[:, GPU] >= width * WHOLE)
                if wide.any():
                    self._slots_of(tier, width, wide, freed.server[gives], freed.column[gives], freed.held[gives, GPU])

    def _slots_of(self, tier: int, width: int, wide: Bools, server: Ints, column: IntArray, mgpu: Ints) -> None:
        """Slots of wide tasks, of so many GPUs each, in every group of servers for a tier."""
        p, o, m = self.p, self.options, self.m
        groups = np.unique(self.option_group[wide])
        asked = np.zeros(len(self.groups), np.bool_)
        asked[groups] = True
        kept = asked[self.group_of[server]]
        server, column, mgpu = server[kept], column[kept], mgpu[kept]
        unsure = np.unique(server)
        sure = np.where(np.isin(np.arange(len(p.servers)), unsure), 0, p.free[:, GPU] // WHOLE // width)
        there = np.zeros(len(self.groups), np.int64)
        np.add.at(there, self.group_of, sure)
        name = f"{p.tiers[tier]},{width}"
        most = p.servers.supply[unsure, GPU] // WHOLE // width
        slots = m.columns(f"slots_{name}", [p.servers.labels], [unsure], upper=most, integral=True)
        slot = m.rows(f"slot_{name}", [p.servers.labels], [unsure], upper=p.free[unsure, GPU])
        slot.add(np.arange(len(unsure)), slots, width * WHOLE)
        slot.add(np.searchsorted(unsure, server), column, -mgpu)
        rows = m.rows(f"wide_{name}", [self.group_names], [groups], upper=there[groups])
        options = np.flatnonzero(wide)
        number = p.jobs.tasks[o.job[options]] * (o.need[options, GPU] // WHOLE // width)
        rows.add(np.searchsorted(groups, self.option_group[options]), self.assign[options], number)
        rows.add(np.searchsorted(groups, self.group_of[unsure]), slots, -1)
