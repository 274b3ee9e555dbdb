"""Nodes for a job, by the rules of Slurm's ``select/cons_tres``: nodes of low weight first, then the smallest switch,
block or row of neighbours that is large enough, then the order of the nodes."""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import InputError
from mast_opt.live.hosts.slurm.reading import BITS, Cluster, Partition
from mast_opt.live.hosts.slurm.request import Ask, Per
from mast_opt.planner.importers.slurm_nodes import UNTYPED

Amounts = NDArray[np.int64]


@dataclass(frozen=True)
class Need:
    """Needs of a job in a partition."""

    ask: Ask
    allowed: BITS
    """Nodes of the partition that it accepts."""
    of_node: Amounts
    """Amount of each resource on each node, and last of GPUs of any type."""
    of_task: Amounts
    whole: bool
    least_nodes: int
    most_nodes: int | None


def need_of(cluster: Cluster, ask: Ask, partition: Partition) -> Need:
    """Needs of a job in a partition. Raises InputError for a GPU type, node or feature that the cluster lacks."""
    resources = len(cluster.kinds) + 3
    gpus = np.zeros(resources, np.int64)
    for kind, count in ask.gpus:
        if kind not in (UNTYPED, *cluster.kinds):
            raise InputError(f"GPU type {kind}: expected one of {', '.join(cluster.kinds) or 'none'}")
        gpus[-1 if kind not in cluster.kinds else 2 + cluster.kinds.index(kind)] += count
    unknown = [name for name in (*ask.on, *ask.not_on) if name not in cluster.names]
    if unknown:
        raise InputError(f"node {unknown[0]}: the cluster has none of this name")
    allowed = partition.nodes & cluster.usable & _with_features(cluster, ask.features)
    allowed &= ~np.isin(cluster.names, ask.not_on)
    per_node, per_task = np.zeros(resources, np.int64), np.zeros(resources, np.int64)
    per_task[0] = ask.cpus_of_task
    least, most = ask.least_nodes, ask.most_nodes
    if ask.gpus_per is Per.JOB and ask.gpus:
        largest = max(1, int(np.append(cluster.capacity[allowed, 2:].sum(1), 1).max()))
        least = max(least, -(-int(gpus.sum()) // largest))
        most = max(least, most or least)
        gpus = -(-gpus // least)
    if ask.gpus_per is Per.TASK:
        per_task += gpus
    else:
        per_node += gpus
    _add_memory(cluster, ask, partition, (per_node, per_task), int(gpus.sum()))
    whole = ask.exclusive or partition.exclusive
    return Need(ask, allowed, per_node, per_task, whole, least, most)


def _add_memory(cluster: Cluster, ask: Ask, partition: Partition, per: tuple[Amounts, Amounts], gpus: int) -> None:
    """Add a job's memory to what it needs of each node and for each task."""
    if "MEMORY" not in cluster.settings.get("SelectTypeParameters", "").upper():
        return
    amount, unit = ask.memory_mib, ask.memory_per
    if amount is None:
        of_cpu = partition.memory_of_cpu_mib
        amount, unit = (of_cpu, Per.CPU) if of_cpu is not None else (partition.memory_of_node_mib or 0, Per.NODE)
    if not amount:
        per[0][1] = -1
    elif unit is Per.CPU:
        per[1][1] = amount * ask.cpus_of_task
    elif unit is Per.GPU and ask.gpus_per is Per.TASK:
        per[1][1] = amount * gpus
    else:
        per[0][1] = amount * (gpus if unit is Per.GPU else 1)


def _with_features(cluster: Cluster, text: str) -> BITS:
    """Nodes with features such as ``a&b`` or ``a|b``. Raises InputError for other forms."""
    if re.search(r"[^\w&|.:-]", text) or ("&" in text and "|" in text):
        raise InputError(f"--constraint={text}: expected features joined by & or by |")
    asked = set(re.split(r"[&|]", text)) - {""}
    match = any if "|" in text else all
    return np.array([match(one in has for one in asked) or not asked for has in cluster.features])


def tasks_on(cluster: Cluster, need: Need, free: Amounts) -> Amounts:
    """Number of tasks that each node can take; 0 where it cannot serve the job.

    Args:
        cluster: the cluster.
        need: what the job needs.
        free: what is free, [node, resource].
    """
    room = np.column_stack([free, free[:, 2:].sum(1)])
    total = np.column_stack([cluster.capacity, cluster.capacity[:, 2:].sum(1)])
    idle = (room == total).all(1)
    left = room - np.maximum(need.of_node, 0)
    fits = need.allowed & (left >= 0).all(1) & (idle | (not need.whole))
    if need.of_node[1] < 0:  # all memory of a node
        fits &= room[:, 1] == total[:, 1]
    asked = np.flatnonzero(need.of_task)
    tasks = (left[:, asked] // need.of_task[asked]).min(1)
    each = need.ask.tasks_of_node
    if each is not None:
        tasks = np.where(tasks >= each, each, 0)
    return np.where(fits, np.minimum(tasks, need.ask.tasks), 0)


def nodes_for(cluster: Cluster, need: Need, tasks: Amounts) -> NDArray[np.intp] | None:
    """Nodes for a job; None where there are not enough.

    Args:
        cluster: the cluster.
        need: what the job needs.
        tasks: number of tasks that each node can take.
    """
    must = np.isin(cluster.names, need.ask.on)
    if (must & (tasks == 0)).any() or not _enough(need, tasks):
        return None
    for weight in np.unique(cluster.weights[tasks > 0]):
        able = np.where((cluster.weights <= weight) | must, tasks, 0)
        if not _enough(need, able):
            continue
        order = np.lexsort((np.arange(len(able)), ~must))
        fitting = [
            (int((inside & (able > 0)).sum()), inside)
            for inside in _sets(cluster, able)
            if not (must & ~inside).any() and _enough(need, np.where(inside, able, 0))
        ]
        inside = min(fitting, key=lambda one: one[0])[1] if fitting else np.ones(len(able), bool)
        return _picked(need, np.where(inside, able, 0), order)
    return None


def _sets(cluster: Cluster, able: Amounts) -> list[BITS]:
    """Sets of nodes that a job should stay within: switches and blocks, else rows of neighbours."""
    if cluster.groups:
        return [nodes for _, nodes in cluster.groups]
    starts = np.cumsum(np.diff(able > 0, prepend=False))
    return [(starts == one) & (able > 0) for one in np.unique(starts[able > 0])]


def _enough(need: Need, able: Amounts) -> bool:
    """Whether nodes can take a job together."""
    if np.count_nonzero(able) < need.least_nodes:
        return False
    most = need.most_nodes
    return int((able if most is None else np.sort(able)[::-1][:most]).sum()) >= need.ask.tasks


def _picked(need: Need, able: Amounts, order: NDArray[np.intp]) -> NDArray[np.intp]:
    """The first nodes that take a job together; the roomiest ones where the first take too few tasks."""
    candidates = order[able[order] > 0]
    for ranked in (candidates, candidates[np.argsort(-able[candidates], kind="stable")]):
        count = max(need.least_nodes, 1 + int(np.searchsorted(np.cumsum(able[ranked]), need.ask.tasks)))
        if need.most_nodes is None or count <= need.most_nodes:
            break
    return np.sort(ranked[:count])


def held_by(cluster: Cluster, need: Need, nodes: NDArray[np.intp]) -> Amounts:
    """Amounts that a job would hold on each of its nodes, its tasks spread evenly; GPUs of any type are those of the
    type that a node has most."""
    if need.whole:
        return cluster.capacity[nodes]
    amounts = np.maximum(need.of_node, 0) + need.of_task * -(-need.ask.tasks // len(nodes))
    held = np.tile(amounts[:-1], (len(nodes), 1))
    if amounts[-1]:
        held[np.arange(len(nodes)), 2 + cluster.capacity[nodes, 2:].argmax(1)] += amounts[-1]
    if need.of_node[1] < 0:
        held[:, 1] = cluster.capacity[nodes, 1]
    return held
