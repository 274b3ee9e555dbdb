"""Start of a job in each partition, and the jobs that it would stop, by the rules of Slurm's backfill scheduler.

Jobs that wait get their turn first, in Slurm's order: by tier of the partition, priority and number. Each takes the
first moment at which it fits, and from then on keeps its nodes whole from those behind it. What runs ends at its time
limit. A job that may stop others starts at once where that makes room.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import InputError
from mast_opt.live.hosts.slurm.placement import Amounts, Need, held_by, need_of, nodes_for, tasks_on
from mast_opt.live.hosts.slurm.reading import Cluster, Partition, Running
from mast_opt.live.hosts.slurm.request import Ask, limit_s

YEAR_S = 365 * 86400
EARLY = 2**60
"""Number of a job that waits and would start now."""


@dataclass(frozen=True)
class Start:
    """Start of a job in a partition."""

    partition: str
    at_s: int
    nodes: tuple[str, ...]
    stops: tuple[int, ...]
    """Numbers of the jobs that it stops."""
    within: str
    """The smallest switch or block that holds its nodes; empty where the cluster has no topology."""


@dataclass(frozen=True)
class Forecast:
    """Starts of a job, the best first, and why there is none in other partitions."""

    starts: tuple[Start, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class _Kept:
    """Nodes that are kept for a job that waits."""

    nodes: NDArray[np.intp]
    start_s: int
    end_s: int


@dataclass(frozen=True)
class _Place:
    """A place for a job."""

    at_s: int
    nodes: NDArray[np.intp]
    stops: tuple[Running, ...]


def forecast(cluster: Cluster, ask: Ask, priority: int | None = None) -> Forecast:
    """Starts of a job in the partitions that it names, or in all of them; the default one is first among equals.

    Args:
        cluster: the cluster.
        ask: what the job asks for.
        priority: its priority; None for behind all others of its tier.

    Raises:
        InputError: a partition, node, GPU type, feature or quality of service that the cluster does not have.
    """
    unknown = [name for name in ask.partitions if name not in cluster.partitions]
    if unknown:
        raise InputError(f"partition {unknown[0]}: expected one of {', '.join(cluster.partitions)}")
    if ask.qos and cluster.qos and ask.qos not in cluster.qos:
        raise InputError(f"qos {ask.qos}: expected one of {', '.join(cluster.qos)}")
    starts, reasons = [], []
    for name in ask.partitions or tuple(cluster.partitions):
        partition = cluster.partitions[name]
        found = _in_partition(cluster, ask, partition, priority)
        if isinstance(found, str):
            reasons.append(f"{name}: {found}")
        else:
            starts.append(_shown(cluster, partition, found))
    starts.sort(key=lambda one: (one.at_s, len(one.stops), not cluster.partitions[one.partition].default))
    return Forecast(tuple(starts), tuple(reasons))


def _shown(cluster: Cluster, partition: Partition, found: _Place) -> Start:
    """A place in the names of Slurm."""
    names = tuple(cluster.names[node] for node in found.nodes)
    within = next((name for name, inside in cluster.groups if inside[found.nodes].all()), "")
    return Start(partition.name, found.at_s, names, tuple(sorted(one.number for one in found.stops)), within)


def _in_partition(cluster: Cluster, ask: Ask, partition: Partition, priority: int | None) -> _Place | str:
    """Place of a job in a partition, or why there is none."""
    qos = cluster.qos.get(ask.qos)
    for what, most in (
        (f"partition {partition.name}", partition.most_s),
        (f"qos {ask.qos}", qos.most_s if qos else None),
    ):
        if ask.limit_s is not None and most is not None and ask.limit_s > most:
            return f"{ask.limit_s // 60:,} minutes asked for, {what} allows {most // 60:,}"
    if not partition.up:
        return "the partition starts no jobs"
    need = need_of(cluster, ask, partition)
    if partition.most_nodes is not None and need.least_nodes > partition.most_nodes:
        return f"{need.least_nodes} nodes asked for, it allows {partition.most_nodes}"
    able = tasks_on(cluster, need, cluster.capacity)
    if nodes_for(cluster, need, able) is None:
        return f"{np.count_nonzero(able)} of its nodes that take jobs are large enough; {need.least_nodes} asked for"
    schedule = _Schedule(cluster)
    ahead = [(tier, rank, number, one) for tier, rank, number, one in _turns(cluster) if _first(
        (tier, rank), (partition.tier, priority)
    )]  # fmt: skip
    for *_, waiting in ahead[: cluster.parameter("bf_max_job_test", 500)]:
        schedule.add(waiting)
    return schedule.place(need, partition) or "it cannot start within a year"


def _first(other: tuple[int, int], own: tuple[int, int | None]) -> bool:
    """Whether another job's turn, by tier and priority, is before one's own."""
    return other[0] > own[0] or (other[0] == own[0] and (own[1] is None or other[1] >= own[1]))


def _turns(cluster: Cluster) -> list[tuple[int, int, int, Ask]]:
    """Tier, priority, number and request of jobs that wait, in the order of their turns."""
    known = ((one, [name for name in one.ask.partitions if name in cluster.partitions]) for one in cluster.waiting)
    turns = [
        (max(cluster.partitions[name].tier for name in names), one.priority, one.number, one.ask)
        for one, names in known
        if names
    ]
    return sorted(turns, key=lambda one: (-one[0], -one[1], one[2]))


class _Schedule:
    """Running jobs, and nodes that are kept for jobs that wait."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._running: list[Running] = list(cluster.running)
        self._kept: list[_Kept] = []

    def add(self, ask: Ask) -> None:
        """Give a job that waits its place in the first of its partitions in which it starts."""
        cluster = self._cluster
        found: list[tuple[int, int, _Place, Need, Partition]] = []
        for name in ask.partitions:
            partition = cluster.partitions.get(name)
            if partition is not None and partition.up:
                need = need_of(cluster, ask, partition)
                if (place := self.place(need, partition)) is not None:
                    found.append((place.at_s, len(found), place, need, partition))
        if not found:
            return
        at_s, _, place, need, partition = min(found, key=lambda one: one[:2])
        end_s = at_s + _length_s(need, partition)
        if at_s > cluster.now_s:
            self._kept.append(_Kept(place.nodes, at_s, end_s))
            return
        self._running = [one for one in self._running if one not in place.stops]
        held = held_by(cluster, need, place.nodes)
        self._running.append(Running(EARLY, partition.name, ask.qos, place.nodes, held, at_s, end_s))

    def place(self, need: Need, partition: Partition) -> _Place | None:
        """The first place of a job; None if there is none within a year."""
        now_s, length_s = self._cluster.now_s, _length_s(need, partition)
        free = self._cluster.capacity.copy()
        for one in self._running:
            free[one.nodes] -= one.amounts
        ends = sorted(self._running, key=lambda one: one.end_s)
        moments = sorted({now_s, *(one.end_s for one in ends), *(one.end_s for one in self._kept)})
        for at_s in moments:
            if at_s > now_s + YEAR_S:
                break
            while ends and ends[0].end_s <= at_s:
                free[ends[0].nodes] += ends[0].amounts
                ends.pop(0)
            open_need = self._unkept(need, at_s, at_s + length_s)
            nodes = nodes_for(self._cluster, need, tasks_on(self._cluster, open_need, free))
            if nodes is not None:
                return _Place(at_s, nodes, ())
            if at_s == now_s and (place := self._preempting(open_need, partition, free)) is not None:
                return place
        return None

    def _unkept(self, need: Need, start_s: int, end_s: int) -> Need:
        """The need without nodes that are kept for others at some time of an interval."""
        allowed = need.allowed.copy()
        for one in self._kept:
            if one.start_s < end_s and start_s < one.end_s:
                allowed[one.nodes] = False
        return replace(need, allowed=allowed)

    def _preempting(self, need: Need, partition: Partition, free: Amounts) -> _Place | None:
        """A place now that other jobs leave: Slurm takes away the least of them until the job fits, then once more
        with the one that made room first, and stops those whose nodes it uses."""
        order = list(self._candidates(need, partition))
        found: _Place | None = None
        for _ in range(1 + self._cluster.parameter("preempt_reorder_count", 1)):
            left, removed = free.copy(), []
            for one in order:
                left[one.nodes] += self._freed(one)
                removed.append(one)
                nodes = nodes_for(self._cluster, need, tasks_on(self._cluster, need, left))
                if nodes is not None:
                    found = _Place(
                        self._cluster.now_s, nodes, tuple(v for v in removed if np.isin(v.nodes, nodes).any())
                    )
                    break
            else:
                break
            last, used = removed[-1], found.nodes
            order = [last, *sorted(removed[:-1], key=lambda one: -int(np.isin(one.nodes, used).sum()))]
        return found

    def _freed(self, victim: Running) -> Amounts:
        """Amounts that a victim leaves; of one that is suspended, its CPUs."""
        mode = self._cluster.partitions[victim.partition].preempt_mode
        return victim.amounts * (np.arange(victim.amounts.shape[1]) == 0) if "SUSPEND" in mode else victim.amounts

    def _candidates(self, need: Need, partition: Partition) -> Sequence[Running]:
        """Jobs that a job may stop, in the order in which Slurm considers them."""
        kind = self._cluster.settings.get("PreemptType", "")
        exempt_s = limit_s(self._cluster.settings.get("PreemptExemptTime", "") or "0") or 0
        able = [
            one
            for one in self._running
            if one.number != EARLY
            and one.partition in self._cluster.partitions
            and self._cluster.now_s - one.started_s >= exempt_s
            and need.allowed[one.nodes].any()
            and self._may_stop(kind, need.ask.qos, partition, one)
        ]
        if "preempt_youngest_first" in self._cluster.settings.get("SchedulerParameters", ""):
            return sorted(able, key=lambda one: -one.started_s)
        return sorted(able, key=lambda one: (self._rank(kind, one), one.number))

    def _may_stop(self, kind: str, qos: str, partition: Partition, other: Running) -> bool:
        """Whether a job of a partition and quality of service may stop another one."""
        home = self._cluster.partitions[other.partition]
        if kind == "preempt/qos":
            return qos in self._cluster.qos and other.qos in self._cluster.qos[qos].preempts
        return kind == "preempt/partition_prio" and home.tier < partition.tier and home.preempt_mode != "OFF"

    def _rank(self, kind: str, one: Running) -> tuple[int, int]:
        """Rank of a victim, the least first: tier of its partition or priority of its quality of service, then
        nodes."""
        if kind == "preempt/qos":
            return self._cluster.qos[one.qos].priority, len(one.nodes)
        return self._cluster.partitions[one.partition].tier, len(one.nodes)


def _length_s(need: Need, partition: Partition) -> int:
    """Time limit of a job in a partition; a year where there is none."""
    limit = need.ask.limit_s if need.ask.limit_s is not None else partition.default_s or partition.most_s
    return YEAR_S if limit is None else limit
