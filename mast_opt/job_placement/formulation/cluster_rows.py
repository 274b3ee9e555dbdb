"""Cluster-level rows of the job-placement MIP: who runs where, who is stopped, what that costs; no servers."""

from __future__ import annotations

import numpy as np

from mast_opt.core.units import MICRO
from mast_opt.job_placement.formulation.index_sets import JobOptions, options_of
from mast_opt.job_placement.problem import JobPlacement
from mast_opt.job_placement.units import GPU, Ints
from mast_opt.mip import MipBuilder


class ClusterRows:
    """The columns, then one method per group of rows or terms."""

    def __init__(self, problem: JobPlacement) -> None:
        self.p = p = problem
        self.options: JobOptions = options_of(p)
        o = self.options
        self.m = m = MipBuilder("job_placement")
        self.tiers = tuple(str(tier) for tier in p.tiers)
        self.victims = np.flatnonzero(p.running.preemptible)
        """[·] running jobs that may be stopped."""
        self.victim_of = np.full(len(p.running), -1)
        self.victim_of[self.victims] = np.arange(len(self.victims))

        self.assign = m.columns(
            "assign",
            [p.jobs.labels, p.clusters.labels, p.gpu_types],
            [o.job, o.cluster, o.type],
            upper=1,
            integral=True,
        )
        self.preempt = m.columns("preempt", [p.running.labels], [self.victims], upper=1, integral=True)

    def victims_held(self) -> tuple[Ints, Ints, Ints]:
        """(server, position among the victims, [·, 3] amount) of what victims hold."""
        p = self.p
        rows = np.flatnonzero(p.running.preemptible[p.allocations.running])
        return p.allocations.server[rows], self.victim_of[p.allocations.running[rows]], p.held[rows]

    def admitted(self) -> None:
        """admitted: Σ_{c,k} assign[j,c,k] ≤ 1."""
        self.m.rows("admitted", [self.p.jobs.labels], upper=1).add(self.options.job, self.assign)

    def admission(self) -> None:
        """Terms rejected, remote and cost."""
        p, o, m = self.p, self.options, self.m
        worth = p.tier_weight[p.queue_tier] * p.jobs.value_milli
        share = worth / worth.sum() if worth.any() else np.zeros(len(worth))
        m.term("rejected", self.assign, -share[o.job], constant=1.0 if worth.any() else 0.0)
        volume = max(int(p.reads.mb_per_day.sum()), 1)
        far = p.missing_mb[o.job, p.clusters.region[o.cluster]]
        reads = np.flatnonzero(far)
        m.term("remote", self.assign[reads], far[reads] / volume)
        price = np.zeros((len(p.jobs), len(p.clusters)))
        price[p.costs.job, p.costs.cluster] = p.costs.cost_micro / MICRO
        priced = np.flatnonzero(price[o.job, o.cluster])
        m.term("cost", self.assign[priced], price[o.job[priced], o.cluster[priced]])

    def preemption(self) -> None:
        """Term preemption."""
        p, m = self.p, self.m
        held = np.zeros(len(p.running), np.int64)
        np.add.at(held, p.allocations.running, p.held[:, GPU])
        price = p.tier_weight[p.running.tier] * (p.running.at_risk_mgpu_hours + held) / max(p.all_mgpu, 1)
        m.term("preemption", self.preempt, (price if p.all_mgpu else np.zeros_like(price))[self.victims])

    def balance(self) -> None:
        """used: use[r,k] is what is in use after the plan; above, below: off[r,k] ≥ |use − supply · mean use of k|.
        Stated for types that several regions have."""
        p, o, m = self.p, self.options, self.m
        supply = np.zeros((len(p.regions), len(p.gpu_types)), np.int64)
        np.add.at(supply, (p.server_region, p.servers.gpu_type), p.servers.supply[:, GPU])
        busy = np.zeros_like(supply)
        at_held = (p.server_region[p.allocations.server], p.servers.gpu_type[p.allocations.server])
        np.add.at(busy, at_held, p.held[:, GPU])
        several = (supply > 0).sum(axis=0) > 1
        region, kind = np.nonzero((supply > 0) & several)
        self.balanced = (region, kind)
        axes, at = [p.regions, p.gpu_types], [region, kind]
        self.use = m.columns("use", axes, at, upper=supply[region, kind])
        self.off = m.columns("off", axes, at, upper=supply[region, kind])

        row_of = np.full(supply.shape, -1)
        row_of[region, kind] = np.arange(len(region))
        used = m.equals("used", axes, at, value=busy[region, kind])
        used.add(np.arange(len(region)), self.use, 1)
        rows = np.flatnonzero(p.running.preemptible[p.allocations.running] & (p.held[:, GPU] > 0))
        row = row_of[at_held[0][rows], at_held[1][rows]]
        rows, row = rows[row >= 0], row[row >= 0]
        used.add(row, self.preempt[self.victim_of[p.allocations.running[rows]]], p.held[rows, GPU])
        row = row_of[p.clusters.region[o.cluster], o.type]
        asks = p.need_mgpu[o.job, o.type] * p.jobs.tasks[o.job]
        takes = np.flatnonzero((row >= 0) & (asks > 0))
        used.add(row[takes], self.assign[takes], -asks[takes])

        share = supply[region, kind] / supply.sum(axis=0)[kind]
        here, there = np.nonzero(kind[:, None] == kind[None, :])
        own = (here == there).astype(np.float64)
        for name, sign in (("above", -1.0), ("below", 1.0)):
            rows_off = m.rows(name, axes, at, lower=0)
            rows_off.add(np.arange(len(region)), self.off, 1)
            rows_off.add(here, self.use[there], sign * (own - share[here]))
        m.term("balance", self.off, 1 / max(p.all_mgpu, 1))
