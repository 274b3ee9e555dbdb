"""Hooks that Kueue has had since 0.17, none of which is used unless it is asked for: whom a worker stops, which cluster
may stop others, and who waits for data.

A worker stops those with the lowest priority first. So the loop's victims get a lower one for a while, and where that
is not enough, others a higher one; what was there before comes back. MultiKueue makes every copy of a workload with a
closed gate, and while one gate is open it opens no other for five minutes. So a workload is nominated for the chosen
cluster alone until the gate there is open, and then for further ones, which may only use what is free.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mast_opt.live.hosts.kueue import patches
from mast_opt.live.hosts.kueue.admission import Admission, Offer
from mast_opt.live.hosts.kueue.manager_snapshot import ManagerSnapshot
from mast_opt.live.hosts.kueue.nomination import Hook
from mast_opt.live.hosts.kueue.objects import ClusterView, Workload
from mast_opt.live.hosts.kueue.patches import Patch
from mast_opt.live.hosts.kueue.reading import BOOST, BOOST_BEFORE, GATED_BY, at

DATA_GATE = "mast-opt.io/data"
"""Name that a job has in ``kueue.x-k8s.io/admission-gated-by`` to wait for its data."""
PREEMPTION_GATE = "kueue.x-k8s.io/multikueue"
"""The gate with which MultiKueue makes copies."""
LEAST_BOOST = -(2**31)
"""Kueue reads a boost as 32 bits."""
PASSES = 8
"""Times that further workloads are kept from being stopped."""


@dataclass(frozen=True)
class Choice:
    """Choice of a loop for a workload that is nominated."""

    workload: Workload
    clusters: tuple[str, ...]
    """Clusters that may stop others for it; the first is where its victims are."""
    victims: frozenset[str] = frozenset()
    """Keys of the workloads that are to stop there."""


def due(
    snapshot: ManagerSnapshot,
    hooks: Collection[Hook],
    choices: Sequence[Choice],
    replicas: Mapping[str, Collection[str]],
    now: str,
) -> Iterator[tuple[str, Patch]]:
    """Patches that are due now, each with the cluster whose API server it is for (empty: the manager)."""
    if Hook.DATA in hooks:
        yield from (("", patch) for patch in _arrived(snapshot, replicas))
    if Hook.GATES in hooks:
        yield from _opened(snapshot, choices, now)
    if Hook.BOOST in hooks:
        for name, view in snapshot.clusters.items():
            here = [one for one in choices if one.clusters[0] == name and one.victims]
            yield from ((name, patch) for patch in _boosted(view, here))


def _arrived(snapshot: ManagerSnapshot, replicas: Mapping[str, Collection[str]]) -> Iterator[Patch]:
    """Take our gate away from jobs whose data a connected cluster holds."""
    for managed in snapshot.managed.values():
        one, found = managed.workload, managed.found
        gates = [name.strip() for name in at(found, "metadata", "annotations", GATED_BY, kind=str).split(",")]
        if DATA_GATE not in gates or one.ended:
            continue
        active = [name for name in managed.allowed or snapshot.clusters if snapshot.clusters[name].active]
        if any(all(name in replicas.get(data, ()) for data in one.datasets) for name in active):
            rest = ",".join(name for name in gates if name != DATA_GATE)
            owners = at(found, "metadata", "ownerReferences", kind=list)
            owner = next((ref for ref in owners if ref.get("controller")), None)
            # Kueue copies the annotation from the job to its workload
            kind = (found if owner is None else owner)["kind"]
            name = one.name if owner is None else owner["name"]
            version = None if owner is None else owner["apiVersion"]
            yield patches.annotated(kind, one.namespace, name, {GATED_BY: rest or None}, version)


def _opened(snapshot: ManagerSnapshot, choices: Sequence[Choice], now: str) -> Iterator[tuple[str, Patch]]:
    """Open the gates of copies in the clusters that may stop others for them."""
    for choice in choices:
        for name in choice.clusters:
            for copy in snapshot.clusters[name].workloads if name in snapshot.clusters else ():
                if copy.key == choice.workload.key and copy.gates.get(PREEMPTION_GATE) == "Closed":
                    yield name, patches.gate(copy.namespace, copy.name, PREEMPTION_GATE, "Open", now)


def is_open(snapshot: ManagerSnapshot, key: str, cluster: str) -> bool:
    """Whether the copy of a workload in a cluster may stop others, which its gate has kept it from."""
    copies = snapshot.clusters[cluster].workloads if cluster in snapshot.clusters else ()
    return any(one.key == key and one.gates.get(PREEMPTION_GATE) == "Open" for one in copies)


def _boosted(view: ClusterView, choices: Sequence[Choice]) -> Iterator[Patch]:
    """Set boosts that make a worker stop the chosen ones, and put back those that are not needed any more."""
    wanted = boosts(view, [one.workload for one in choices], frozenset().union(*(one.victims for one in choices)))
    for one in view.workloads:
        if one.key in wanted:
            value = str(wanted[one.key])
            if one.boost != value:
                before = one.boost if one.boost_before is None else one.boost_before
                yield patches.annotated("Workload", one.namespace, one.name, {BOOST: value, BOOST_BEFORE: before})
        elif one.boost_before is not None:
            old = {BOOST: one.boost_before or None, BOOST_BEFORE: None}
            yield patches.annotated("Workload", one.namespace, one.name, old)


def boosts(view: ClusterView, wanted: Sequence[Workload], chosen: frozenset[str]) -> dict[str, int]:
    """Boosts with which a cluster stops the chosen workloads for the wanted ones: key → boost. Empty where it would
    without any."""
    present = {one.key: one for one in view.workloads}
    chosen = chosen & present.keys()
    order = sorted(wanted, key=lambda one: (-one.priority, one.created, one.key))
    if not chosen or _stopped(view, order, {}) == chosen:
        return {}
    lowest = min(one.priority + _others_boost(one) for one in present.values())
    lowered = {key: max(LEAST_BOOST, lowest - 1 - present[key].priority) for key in chosen}
    top, found = max(one.priority for one in order), dict(lowered)
    for _ in range(PASSES):
        stopped = _stopped(view, order, found)
        if stopped == chosen:
            return found
        found |= {key: top + 1 - present[key].priority for key in stopped - chosen}
    return lowered


def taken_back(view: ClusterView, one: Workload, chosen: frozenset[str], *, boosted: bool) -> tuple[str, ...]:
    """Workloads that have borrowed quota, and that a cluster stops for another one as it takes that back.

    Args:
        chosen: as for ``boosts``, which are written first if ``boosted``.
    """
    found = boosts(view, [one], chosen) if boosted else {}
    return tuple(sorted(victim for victim, back in _foretold(view, [one], found) if back))


def _stopped(view: ClusterView, order: Sequence[Workload], found: Mapping[str, int]) -> set[str]:
    """Workloads that a cluster stops for others, with boosts, except those that it takes quota back from whatever
    their boosts are."""
    return {victim for victim, back in _foretold(view, order, found) if not back}


def _foretold(view: ClusterView, order: Sequence[Workload], found: Mapping[str, int]) -> Iterator[tuple[str, bool]]:
    """Workloads that a cluster stops for others, by Kueue's rules, with boosts; and whether it takes quota back from
    them, whatever their boosts are."""
    workloads = (replace(one, priority=one.priority + found.get(one.key, _others_boost(one))) for one in view.workloads)
    admission = Admission(replace(view, workloads=tuple(workloads)))
    for one in order:
        offer, queue = admission.offer(one), admission.queue_of(one)
        if isinstance(offer, Offer) and queue is not None:
            takes_back = queue.preemption.reclaim == "Any"
            yield from ((one.key, takes_back and one.admitted_by != queue.name) for one in offer.victims)
            admission.commit(one, offer)


def _others_boost(one: Workload) -> int:
    """Boost that others have given a workload."""
    text = one.boost if one.boost_before is None else one.boost_before
    return int(text) if text.lstrip("+-").isdigit() else 0
