"""Cluster-level rows of the job-placement MIP: who runs where, who is stopped, what that costs; no servers."""

from typing import NamedTuple

import numpy as np

from mast_opt.core.arrays import IntArray
from mast_opt.core.units import MICRO
from mast_opt.problems.job_placement.formulation.index_sets import JobOptions, options_of
from mast_opt.problems.job_placement.formulation.part_rows import same_place
from mast_opt.problems.job_placement.movable_jobs import movable_jobs
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import GPU, MOVE_LIMITS, MOVES, Ints
from mast_opt.problems.mip import MipBuilder


class Freed(NamedTuple):
    """Capacity that columns free where they are 1: of a job that is stopped, or moved away."""

    row: Ints
    """[·] allocation."""
    server: Ints
    column: IntArray
    held: Ints
    """[·, 3]"""
    below: Ints
    """[·] it serves the tiers before this one."""


class ClusterRows:
    """The columns, then one method per group of rows or terms. Movable jobs stand behind the pending ones."""

    def __init__(self, problem: JobPlacement) -> None:
        self.movers = movable_jobs(problem)
        self.p = p = self.movers.problem
        self.waiting = self.movers.first
        """J; the jobs from there on run now and may be moved."""
        self.options: JobOptions = options_of(p)
        o = self.options
        self.m = m = MipBuilder("job_placement")
        self.tiers = tuple(str(tier) for tier in p.tiers)
        self.victims = np.flatnonzero(p.running.preemptible)
        """[·] running jobs that may be stopped."""

        self.assign = m.columns(
            "assign",
            [p.jobs.labels, p.clusters.labels, p.gpu_types],
            [o.job, o.cluster, o.type],
            upper=1,
            integral=True,
        )
        self.preempt = m.columns("preempt", [p.running.labels], [self.victims], upper=1, integral=True)
        self.move = m.columns("move", [p.running.labels], [self.movers.running], upper=1, integral=True)
        self.preempt_of, self.move_of = np.full(len(p.running), -1), np.full(len(p.running), -1)
        """[V] columns, −1 for jobs that may not be stopped or moved."""
        self.preempt_of[self.victims] = self.preempt
        self.move_of[self.movers.running] = self.move

    def freed(self) -> Freed:
        """Capacity that victims free for more important tiers, and moved jobs for all."""
        p = self.p
        running = p.allocations.running
        every = np.full(len(p.running), len(p.tiers))
        parts = []
        for columns, below in ((self.preempt_of, p.running.tier), (self.move_of, every)):
            row = np.flatnonzero(columns[running] >= 0)
            v = running[row]
            parts.append(Freed(row, p.allocations.server[row], columns[v], p.held[row], below[v]))
        return Freed(*map(np.concatenate, zip(*parts)))

    def admitted(self) -> None:
        """admitted: Σ_{c,k} assign[j,c,k] ≤ 1; moved: Σ_{c,k} assign[v,c,k] = move[v]; interrupted: a job is moved, or
        stopped, or neither; move_limit: what all moves together are; same_region, same_cluster: parts of one job."""
        p, m, movers = self.p, self.m, self.movers
        starts = self.options.job < self.waiting
        m.rows("admitted", [movers.stated.jobs.labels], upper=1).add(self.options.job[starts], self.assign[starts])
        moved = m.equals("moved", [p.running.labels], [movers.running])
        moved.add(self.options.job[~starts] - self.waiting, self.assign[~starts], 1)
        moved.add(np.arange(len(self.move)), self.move, -1)
        both = np.flatnonzero(p.running.preemptible[movers.running])
        interrupted = m.rows("interrupted", [p.running.labels], [movers.running[both]], upper=1)
        interrupted.add(np.arange(len(both)), self.move[both], 1)
        interrupted.add(np.arange(len(both)), self.preempt_of[movers.running[both]], 1)
        limits = movers.stated.move_limits
        rows = m.rows("move_limit", [MOVE_LIMITS], [limits.limit], upper=limits.most_milli)
        for at, limit in enumerate(limits.limit.tolist()):
            each = np.full(len(self.move), 1000) if limit == MOVES else movers.restart_mgpu_hours
            rows.add(np.full(len(self.move), at), self.move, each)
        same_place(p, self.options, self.assign, m)

    def admission(self) -> None:
        """Add the terms ``rejected``, ``remote`` and ``cost`` to the job-placement program."""
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
        """Add the term ``preemption`` to the job-placement program."""
        p, m = self.p, self.m
        held = np.zeros(len(p.running), np.int64)
        np.add.at(held, p.allocations.running, p.held[:, GPU])
        price = p.tier_weight[p.running.tier] * (p.running.at_risk_mgpu_hours + held) / max(p.all_mgpu, 1)
        restart = (
            p.tier_weight[p.running.tier[self.movers.running]] * self.movers.restart_mgpu_hours / max(p.all_mgpu, 1)
        )
        for columns, amount in ((self.preempt, price[self.victims]), (self.move, restart)):
            m.term("preemption", columns, amount if p.all_mgpu else np.zeros_like(amount))

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
        freed = self.freed()
        row = row_of[at_held[0][freed.row], at_held[1][freed.row]]
        gives = np.flatnonzero((row >= 0) & (freed.held[:, GPU] > 0))
        used.add(row[gives], freed.column[gives], freed.held[gives, GPU])
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
