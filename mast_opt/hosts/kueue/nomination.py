"""The bids for each workload that waits, and which clusters to nominate."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mast_opt.core.errors import UsageError
from mast_opt.core.wording import counted, listed
from mast_opt.hosts.kueue.fleet import WorkerFleet
from mast_opt.hosts.kueue.objects import ClusterView, Workload
from mast_opt.job_placement.live_fleet.answers import Bid
from mast_opt.job_placement.live_fleet.types import Job

MOST_NAMES = 20
"""Clusters that Kueue lets a workload be nominated for."""
PRIORITIES = (1_000_000, 100_000, 10_000, 1_000, 100, 10, 1, 0, -1_000)
"""As many as a live loop has tiers, less one."""
MOST_PRIORITIES = len(PRIORITIES)


@dataclass(frozen=True)
class DispatchParams:
    """Parameters of the dispatcher.

    Args:
        round_s: seconds after which a workload that its clusters have not admitted is nominated for one cluster more,
            the next best. Kueue itself has no such limit for a dispatcher of others.
        most: clusters that a workload is nominated for at the same time; the worker of each tries to admit it, and may
            stop others for it.
        priorities: of a live loop, the least priority of each tier but the last, the most important tier first.
    """

    round_s: float = 300.0
    most: int = 3
    priorities: tuple[int, ...] = PRIORITIES

    def __post_init__(self) -> None:
        if not self.round_s > 0:
            raise UsageError(f"round_s is {self.round_s}; expected more than 0")
        if not 1 <= self.most <= MOST_NAMES:
            raise UsageError(f"most is {self.most}; expected 1 to {MOST_NAMES}")
        falling = all(before > after for before, after in pairwise(self.priorities))
        if not falling or len(self.priorities) > MOST_PRIORITIES:
            words = f"expected up to {MOST_PRIORITIES} numbers, each less than the one before"
            raise UsageError(f"priorities are {', '.join(map(str, self.priorities)) or 'none'}; {words}")


@dataclass(frozen=True)
class Advice:
    """What is to become of a workload that waits."""

    workload: Workload
    clusters: tuple[str, ...]
    """Those where it can start, the best first."""
    reasons: Mapping[str, str]
    """Cluster → what starting there takes, or why it cannot."""
    victims: tuple[str, ...] = ()
    """Workloads that the best cluster has to stop."""

    @property
    def words(self) -> str:
        """All of it in one line, the best cluster first."""
        rest = [name for name in self.reasons if name not in self.clusters]
        parts = [f"{name}: {self.reasons[name]}" for name in (*self.clusters, *rest)]
        return ("" if self.clusters else "fits nowhere now; ") + "; ".join(parts)


def advise(
    clusters: Sequence[ClusterView],
    waiting: Iterable[Workload],
    candidates: Mapping[str, Collection[str]] | None = None,
    replicas: Mapping[str, Collection[str]] | None = None,
) -> list[Advice]:
    """Advice for every workload that waits, in the order in which they are served: priority, then age. Each one sees
    the room that those before it leave.

    Args:
        candidates: key of a workload → clusters that it may be sent to; all where it is not listed.
        replicas: dataset → clusters that hold it; workloads that read it run only there.
    """
    order = sorted(waiting, key=lambda one: (-one.priority, one.created, one.key))
    workers = WorkerFleet(clusters, replicas, order)
    names = tuple(one.name for one in clusters)
    return [_advice(workers, one, tuple((candidates or {}).get(one.key, names))) for one in order]


def _advice(workers: WorkerFleet, one: Workload, allowed: tuple[str, ...]) -> Advice:
    known = tuple(name for name in allowed if name in workers.clusters)
    reasons = {name: "not known" for name in allowed if name not in workers.clusters}
    job, why = workers.job(one, known)
    reasons |= why
    if job is None:
        return Advice(one, (), reasons)
    bids = {bid.region: bid for bid in workers.fleet.bids(job)}
    _explain(workers, job, [name for name in known if name not in bids and name not in why], one, reasons)
    for name, bid in bids.items():
        reasons[name] = _offer(bid)
    ranked = tuple(name for name in bids if name not in why)
    held = tuple(name for name in one.nominated if name in ranked)  # a cluster that tries already goes first
    ranked = (*held, *(name for name in ranked if name not in held))
    if not ranked:
        return Advice(one, (), reasons)
    best = bids[ranked[0]]
    workers.fleet.commit(best)
    return Advice(one, ranked, reasons, best.victims)


def _offer(bid: Bid) -> str:
    places = sorted({part.gpu_type.rpartition("/")[2] for part in bid.parts})
    if not bid.victims:
        return f"fits on {listed(places)}"
    names = [name.partition(": ")[2] for name in bid.victims]
    return f"fits on {listed(places)} if {counted(len(names), 'workload')} stop: {listed(names)}"


def _explain(workers: WorkerFleet, job: Job, names: Collection[str], one: Workload, reasons: dict[str, str]) -> None:
    """Why clusters make no bid."""
    if not names:
        return
    found: dict[str, list[str]] = {}
    for report in workers.fleet.explain(job):
        region, _, queue = report.cluster.partition("/")
        cluster = workers.clusters.get(region)
        if (
            cluster is not None
            and queue == cluster.local_queues.get(f"{one.namespace}/{one.queue}")
            and not report.fits
        ):
            found.setdefault(region, []).append(
                f"pod set {report.part}: {report.words}" if report.part else report.words
            )
    for name in names:
        reasons[name] = "; ".join(dict.fromkeys(found.get(name, ["not all pod sets fit together"])))
