"""The bids for each workload that waits, and which clusters to nominate."""

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mast_opt.core.errors import UsageError
from mast_opt.core.wording import counted, listed
from mast_opt.live.hosts.kueue.admission import Admission, Offer
from mast_opt.live.hosts.kueue.objects import ClusterView, Workload

MOST_NAMES = 20
"""Clusters that Kueue lets a workload be nominated for."""
PRIORITIES = (1_000_000, 100_000, 10_000, 1_000, 100, 10, 1, 0, -1_000)
"""Priorities that separate tiers: as many as a live loop has tiers, less one."""
MOST_PRIORITIES = len(PRIORITIES)


class Hook(enum.Enum):
    """Hooks of Kueue 0.17 and later."""

    BOOST = "boost"
    """Workers stop whom the loop chose (``kueue.x-k8s.io/priority-boost``)."""
    GATES = "gates"
    """Several clusters try at once, and one of them may stop others (``spec.preemptionGates``)."""
    DATA = "data"
    """Jobs wait until their data has arrived (``kueue.x-k8s.io/admission-gated-by``)."""


@dataclass(frozen=True)
class DispatchParams:
    """Parameters of the dispatcher.

    Args:
        round_s: seconds after which a workload that its clusters have not admitted is nominated for one cluster more,
            the next best. Kueue itself has no such limit for a dispatcher of others.
        most: clusters that a workload is nominated for at the same time; the worker of each tries to admit it, and may
            stop others for it.
        priorities: of a live loop, the least priority of each tier but the last, the most important tier first.
        hooks: those that Kueue's feature gates have switched on, and that are to be used.
    """

    round_s: float = 300.0
    most: int = 3
    priorities: tuple[int, ...] = PRIORITIES
    hooks: frozenset[Hook] = frozenset()

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
    """Advice on a workload that waits."""

    workload: Workload
    clusters: tuple[str, ...]
    """Those where it can start, the best first."""
    reasons: Mapping[str, str]
    """Cluster → what starting there takes, or why it cannot."""
    victims: tuple[str, ...] = ()
    """Workloads that the best cluster has to stop."""

    @property
    def words(self) -> str:
        """The advice on a waiting workload in one line, the best cluster first."""
        rest = [name for name in self.reasons if name not in self.clusters]
        parts = [f"{name}: {self.reasons[name]}" for name in (*self.clusters, *rest)]
        return ("" if self.clusters else "fits nowhere now; ") + ("; ".join(parts) or "it asks for no pods")


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
    admissions = {one.name: Admission(one) for one in clusters}
    names = tuple(admissions)
    return [_advice(admissions, one, tuple((candidates or {}).get(one.key, names)), replicas or {}) for one in order]


def _advice(
    admissions: Mapping[str, Admission],
    one: Workload,
    allowed: tuple[str, ...],
    replicas: Mapping[str, Collection[str]],
) -> Advice:
    """Advice on one workload: its clusters ranked by their offers, and the reasons; the best one counts it
    as admitted.
    """
    reasons: dict[str, str] = {}
    offers: dict[str, Offer] = {}
    if not any(pods.count for pods in one.pod_sets):  # there is nothing to start
        return Advice(one, (), {})
    for name in allowed:
        lacking = [data for data in one.datasets if name not in replicas.get(data, ())]
        found = admissions[name].offer(one) if name in admissions else "not known"
        if isinstance(found, Offer) and lacking:
            found = f"{name} does not hold {listed(lacking)}"
        if isinstance(found, Offer):
            offers[name] = found
        reasons[name] = _words(found) if isinstance(found, Offer) else found

    def rank(name: str) -> tuple[object, ...]:
        """Clusters that try already, then those where what stops matters least, then the least loaded."""
        found = offers[name]
        matters = max((victim.priority for victim in found.victims), default=0)
        fewer = sum(full - count for count, full in (found.pods or {}).values())
        stops = bool(found.victims), matters, len(found.victims)
        return name not in one.nominated, *stops, fewer, admissions[name].load(one, found), names.index(name)

    names = list(allowed)
    ranked = tuple(sorted(offers, key=rank))
    if not ranked:
        return Advice(one, (), reasons)
    best = ranked[0]
    admissions[best].commit(one, offers[best])
    return Advice(one, ranked, reasons, tuple(f"{best}: {victim.key}" for victim in offers[best].victims))


def _words(found: Offer) -> str:
    """An offer of a Kueue cluster in words: its flavors, how many pods, and which workloads stop."""
    words = f"fits on {listed(sorted(found.flavors))}" if found.flavors else "fits"
    if found.pods:
        words += "".join(f" with {count} of {full} pods of {name}" for name, (count, full) in found.pods.items())
    if not found.victims:
        return words
    return f"{words} if {counted(len(found.victims), 'workload')} stop: {listed([one.key for one in found.victims])}"
