"""Scenarios of job placement: what can happen to a fleet and its queue, as keys of a scenario.

Labels keep their positions, so that a plan of the instance can be checked against what has become of it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.core.wording import unused, unused_labels
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import Bools
from mast_opt.problems.kind.analysis_hooks import PLAUSIBLE_GROWTH, Change
from mast_opt.problems.kind.scenario_values import grown, positions, records, reweighted, tier_factors, whole


def lose_regions(problem: JobPlacement, value: object) -> JobPlacement:
    """Their servers are empty shells, and the datasets there are gone."""
    lost = positions("lose_regions", "region", problem.regions, value)
    stored = problem.datasets.stored.copy()
    stored[:, lost] = False
    return _lose(
        replace(problem, datasets=replace(problem.datasets, stored=stored)), np.isin(problem.server_region, lost)
    )


def lose_clusters(problem: JobPlacement, value: object) -> JobPlacement:
    """The instance whose servers in these clusters have nothing to give; jobs that ran there have ended."""
    lost = positions("lose_clusters", "cluster", problem.clusters.labels, value)
    return _lose(problem, np.isin(problem.server_cluster, lost))


def _lose(problem: JobPlacement, lost: Bools) -> JobPlacement:
    """The servers have nothing to give; running jobs that held something there run no more."""
    p = problem
    ended = np.zeros(len(p.running), np.bool_)
    ended[p.allocations.running[lost[p.allocations.server]]] = True
    stays = ~ended[p.allocations.running]
    place = np.cumsum(stays) - 1
    parts = p.running_parts.rows(stays[p.running_parts.allocation])
    return replace(
        p,
        servers=replace(p.servers, supply=np.where(lost[:, None], 0, p.servers.supply)),
        running=replace(
            p.running,
            preemptible=p.running.preemptible & ~ended,
            at_risk_mgpu_hours=np.where(ended, 0, p.running.at_risk_mgpu_hours),
        ),
        allocations=p.allocations.rows(stays),
        running_parts=replace(parts, allocation=place[parts.allocation]),
        movable=p.movable.rows(~ended[p.movable.running]),
    )


def adapted(scenario: JobPlacement, plan: Plan) -> Plan:
    """A plan for the instance before the scenario, without the stops and moves of jobs that have ended with their
    servers."""
    moves = np.isin(plan.moved, scenario.movable.running)
    columns = ("moved", "moved_server", "moved_tasks", "moved_gpu_index", "moved_indexed")
    return replace(
        plan,
        preempt=plan.preempt & scenario.running.preemptible,
        **{name: getattr(plan, name)[moves] for name in columns},
    )


def grow_demand(problem: JobPlacement, value: object) -> JobPlacement:
    """Tasks and value of all pending jobs times a factor, or another one for some tiers; tasks are rounded up."""
    p = problem
    each = tier_factors("grow_demand", p.tiers, value)[p.jobs.tier]
    tasks = np.maximum(grown("grow_demand", p.jobs.tasks, each), 1)
    return replace(
        p, jobs=replace(p.jobs, tasks=tasks, value_milli=np.rint(p.jobs.value_milli * each).astype(np.int64))
    )


def add_servers(problem: JobPlacement, value: object) -> JobPlacement:
    """New servers in a rack of their own, equal to one of that type that is there and not lost.

    Raises:
        UsageError: there is none.
    """
    p = problem
    for record in records("add_servers", {"cluster": p.clusters.labels, "gpu_type": p.gpu_types}, "servers", value):
        count = whole("add_servers.servers", record.amount, 1)
        cluster, kind = record.at["cluster"], record.at["gpu_type"]
        alike = np.flatnonzero((p.servers.gpu_type == kind) & p.servers.supply.any(axis=1))
        if not len(alike):
            name = p.gpu_types[kind]
            raise UsageError(f"add_servers: no server of type {name} is left that new ones could be equal to")
        near = alike[p.server_cluster[alike] == cluster]
        like = int((near if len(near) else alike)[0])
        rack = unused("new-rack", p.racks.labels)
        p = replace(
            p,
            racks=replace(p.racks, labels=(*p.racks.labels, rack), cluster=np.append(p.racks.cluster, cluster)),
            servers=replace(
                p.servers,
                labels=(*p.servers.labels, *unused_labels("new-server", p.servers.labels, count)),
                rack=np.append(p.servers.rack, np.full(count, len(p.racks))),
                gpu_type=np.append(p.servers.gpu_type, np.full(count, kind)),
                supply=np.concatenate([p.servers.supply, np.repeat(p.servers.supply[like][None], count, axis=0)]),
            ),
        )
    return p


def replicate(problem: JobPlacement, value: object) -> JobPlacement:
    """The instance with further replicas of datasets."""
    stored = problem.datasets.stored.copy()
    for record in records("replicate", {"dataset": problem.datasets.labels, "region": problem.regions}, None, value):
        stored[record.at["dataset"], record.at["region"]] = True
    return replace(problem, datasets=replace(problem.datasets, stored=stored))


CHANGES = {
    "lose_regions": Change(lose_regions, 'lose_regions = ["east"]', "regions that are gone, with servers and data"),
    "lose_clusters": Change(lose_clusters, 'lose_clusters = ["east-1"]', "clusters that are gone"),
    "grow_demand": Change(
        grow_demand,
        "grow_demand = { all = 1.2, 0 = 1.5 }",
        "tasks times a factor, all or by tier",
        plausible=PLAUSIBLE_GROWTH,
    ),
    "add_servers": Change(
        add_servers, 'add_servers = [{ cluster = "east-1", gpu_type = "H100", servers = 8 }]', "new servers"
    ),
    "replicate": Change(replicate, 'replicate = [{ dataset = "logs", region = "east" }]', "further replicas of data"),
    "weights": Change(reweighted, "weights = { preemption = 1 }", "other weights of terms of the objective"),
}
