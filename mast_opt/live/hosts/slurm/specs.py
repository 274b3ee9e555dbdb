"""Jobs and nodes of Slurm as the loop knows them: specifications and servers."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mast_opt.core.errors import InputError
from mast_opt.core.units import MILLI
from mast_opt.live.hosts.slurm.placement import Need, held_by, need_of, tasks_on
from mast_opt.live.hosts.slurm.reading import Cluster, Running, kill_wait_s
from mast_opt.live.hosts.slurm.request import ask_in, number
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.problems.job_placement.live_fleet.types import Server
from mast_opt.problems.job_placement.units import WHOLE

LEAST_TIER = 9
"""Tier of a job whose comment states none, and of work that is not ours."""
CHECK_S = 60
"""Longest time from the end of a job's limit until Slurm sees it: it looks every 30 s, and needs a moment to end it."""
_TIER = re.compile(r"\stier=(\d)(?:$|\s)")


def state_of(job: Mapping[str, Any] | None) -> str:
    """State of a job of Slurm; empty if there is none."""
    stated = "" if job is None else job["job_state"]
    return str(stated if isinstance(stated, str) else stated[0])


def types_of(cluster: Cluster) -> list[str]:
    """Type of each node: nodes of one type have the same GPUs, partitions and features, so that a job may run on all of
    them or on none."""
    found = []
    for at, has in enumerate(cluster.features):
        kinds = [kind for kind, count in zip(cluster.kinds, cluster.capacity[at, 2:], strict=True) if count]
        inside = [name for name, one in cluster.partitions.items() if one.nodes[at]]
        found.append(" ".join(("+".join(kinds) or "cpu", ",".join(inside), *sorted(has))).strip())
    return found


def servers_of(cluster: Cluster) -> dict[str, Server]:
    """Nodes of Slurm that take jobs, as servers by name: the smallest switch or block is the rack, the largest the
    cluster."""
    region = cluster.settings.get("ClusterName", "slurm")
    found = {}
    for at, (name, kind) in enumerate(zip(cluster.names, types_of(cluster), strict=True)):
        levels = [group for group, nodes in cluster.groups if nodes[at]] or [region]
        cpus, memory, *gpus = cluster.capacity[at].tolist()
        if cluster.usable[at]:
            top = f"{region}/{levels[-1]}"
            found[name] = Server(name, region, top, f"{top}/{levels[0]}", kind, sum(gpus), cpus * MILLI, memory)
    return found


def spec_of(cluster: Cluster, job: Mapping[str, Any], limit_grace_s: float | None = None) -> JobSpec | None:
    """Specification of a job of Slurm, as a gang of equal tasks, one for each node; None where no node can serve it, or
    it names nodes. ``limit_grace_s`` as in ``SlurmHost``.

    Tasks of one gang may not share a node, so each counts more than half of the processors of the largest one.
    """
    found: dict[int, Need] = {}
    count = 1
    try:
        ask = ask_in(job)
        needs = [need_of(cluster, ask, cluster.partitions[one]) for one in ask.partitions if one in cluster.partitions]
    except (InputError, ValueError):  # Slurm will not start it either
        return None
    for need in needs:
        tasks = tasks_on(cluster, need, cluster.capacity)
        count = max(count, need.least_nodes, -(-ask.tasks // max(1, int(tasks.max()))))
        found |= {int(at): need for at in np.flatnonzero(tasks * count >= ask.tasks) if int(at) not in found}
    names_nodes = bool(ask.on or ask.not_on) and state_of(job) != "RUNNING"
    if not found or names_nodes or (ask.most_nodes is not None and count > ask.most_nodes):
        return None
    places = np.array([*found])
    spread = replace(ask, tasks=-(-ask.tasks // count))
    held = np.array(
        [held_by(cluster, replace(need, ask=spread), places[at : at + 1])[0] for at, need in enumerate(found.values())]
    )
    cpus = int(held[:, 0].max())
    if count > 1:
        cpus = max(cpus, int(cluster.capacity[places, 0].max()) // 2 + 1)
    tier = _TIER.search(str(job.get("comment")))
    kinds = types_of(cluster)
    gpus = {kinds[at]: int(row[2:].sum()) * WHOLE for at, row in zip(places, held, strict=True)}
    return JobSpec(
        tier=LEAST_TIER if tier is None else int(tier[1]),
        tasks=count,
        mgpu=max(gpus.values()),
        cpu_mcores=cpus * MILLI,
        memory_mib=int(held[:, 1].max()),
        gpu_types=gpus,
        prefer="rack",
        preemptible=bool(job.get("requeue")),
        **_limit_of(cluster, job, ask.partitions, limit_grace_s),
    )


def running_spec_of(cluster: Cluster, job: Mapping[str, Any], runs: Running, limit_grace_s: float | None) -> JobSpec:
    """Specification of a job that runs and is not ours, by what it holds. ``limit_grace_s`` as in ``SlurmHost``."""
    amounts, kinds = runs.amounts.max(0), types_of(cluster)
    gpus = {kinds[at]: int(amounts[2:].sum()) * WHOLE for at in runs.nodes}
    size = max(gpus.values()), int(amounts[0]) * MILLI, int(amounts[1])
    limit = _limit_of(cluster, job, [runs.partition], limit_grace_s)
    return JobSpec(LEAST_TIER, len(runs.nodes), *size, gpus, **limit)


def _limit_of(
    cluster: Cluster, job: Mapping[str, Any], partitions: Iterable[str], limit_grace_s: float | None
) -> dict[str, Any]:
    """Time limit of a job in one of these partitions, and the grace: ``OverTimeLimit``, ``KillWait`` and the time until
    Slurm looks, but ``limit_grace_s`` if stated; None where Slurm does not end it."""
    limit = number(job.get("time_limit"))
    if limit is None:
        return {}
    over = [cluster.partitions[one].over_s for one in partitions if one in cluster.partitions]
    known = [one for one in over if one is not None]
    if limit_grace_s is None:
        limit_grace_s = max(known, default=0) + kill_wait_s(cluster.settings) + CHECK_S
    grace_ms = round(limit_grace_s * MILLI) if len(known) == len(over) else None
    return {"limit_ms": limit * 60 * MILLI, "limit_grace_ms": grace_ms}
