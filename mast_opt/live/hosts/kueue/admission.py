"""Rules of Kueue for a workload in one cluster: admit it, stop others for it, or let it wait.

Quota, borrowing and lending are one tree (``core.quota_tree``). Whom a workload may stop is Kueue's classic preemption;
fair sharing, topology and nodes are not looked at.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from mast_opt.core.quota_tree import QuotaTree
from mast_opt.live.hosts.kueue.cohorts import circles, nodes
from mast_opt.live.hosts.kueue.eligibility import holds_quota, selects, tolerated
from mast_opt.live.hosts.kueue.objects import ClusterQueue, ClusterView, Group, Key, PodSet, Preemption, Workload

Use = Mapping[Key, int]


@dataclass(frozen=True)
class Offer:
    """How a workload would start in a cluster."""

    use: Use
    flavors: tuple[str, ...]
    victims: tuple[Workload, ...] = ()
    pods: Mapping[str, tuple[int, int]] | None = None
    """Pod set → how many of how many pods, where only some fit (``minCount``)."""


@dataclass(frozen=True)
class _Admitted:
    workload: Workload
    queue: str
    use: Use
    fresh: bool = False
    """True if the workload has only reserved its room, since others have to stop first."""


@dataclass(frozen=True)
class _Fit:
    """Fit of an amount on a flavor, by which flavors are compared."""

    free: bool
    """True if the amount fits without stopping anything."""
    borrows: bool


class Admission:
    """A cluster's quota, with what holds it. Raises InputError for cohorts that are above themselves."""

    def __init__(self, cluster: ClusterView) -> None:
        self.cluster = cluster
        self._circles = circles(cluster)
        self.tree: QuotaTree[Key] = QuotaTree(*nodes(cluster, self._circles))
        self._admitted: dict[str, _Admitted] = {}
        for one in cluster.workloads:
            if holds_quota(one) and one.admitted_by in cluster.queues:
                self._admit(_Admitted(one, one.admitted_by, one.held))

    def queue_of(self, one: Workload) -> ClusterQueue | None:
        """The ClusterQueue of a workload."""
        return self.cluster.queues.get(self.cluster.local_queues.get(f"{one.namespace}/{one.queue}", ""))

    def offer(self, one: Workload) -> Offer | str:
        """Offer for a workload now, or the reason why it cannot start."""
        queue, local = self.queue_of(one), f"{one.namespace}/{one.queue}"
        if not self.cluster.active:
            return "not connected"
        if queue is None:
            return f"no LocalQueue {local} with a ClusterQueue"
        if queue.stopped:
            return f"ClusterQueue {queue.name} {queue.stopped}"
        if queue.name in self._circles:
            return f"the cohorts above ClusterQueue {queue.name} are above themselves"
        if local in self.cluster.held:
            return f"LocalQueue {local} is on hold"
        found = self._offer(one, queue)
        if isinstance(found, Offer):
            return found
        at = next((at for at, pods in enumerate(one.pod_sets) if pods.least is not None), None)
        return found if at is None else self._with_fewer(one, queue, at) or found

    def commit(self, one: Workload, found: Offer) -> None:
        """Count a workload as admitted, and those that are stopped for it as gone."""
        queue = self.queue_of(one)
        assert queue is not None
        for victim in found.victims:
            self._remove(self._admitted[victim.key])
        self._admit(_Admitted(one, queue.name, found.use, fresh=True))

    def load(self, one: Workload, found: Offer) -> float:
        """Largest share of its quota that is in use, over the flavors of an offer."""
        queue = self.queue_of(one)
        assert queue is not None
        parts = [self.tree.use(queue.name, key) / max(1, self.tree.most(queue.name, key)) for key in found.use]
        return max(parts, default=0.0)

    # --- where ---

    def _offer(self, one: Workload, queue: ClusterQueue) -> Offer | str:
        """Kueue's flavors for all pod sets of a workload, and the workloads that they stop."""
        use: dict[Key, int] = {}
        for pods in one.pod_sets:
            if not pods.count:
                continue
            why = self._assign(queue, pods, use)
            if why:
                return f"pod set {pods.name}: {why}"
        flavors = tuple(dict.fromkeys(flavor for flavor, _ in use))
        short = {key for key, amount in use.items() if amount > self.tree.available(queue.name, key)}
        if not short:
            return Offer(use, flavors)
        victims = self._victims(one, queue, use, short)
        if victims:
            return Offer(use, flavors, victims)
        return self._words(queue, use, min(short))

    def _with_fewer(self, one: Workload, queue: ClusterQueue, at: int) -> Offer | None:
        """Offer for as many pods as fit, at least ``minCount``; Kueue lets one pod set of a workload shrink."""
        pods = one.pod_sets[at]
        low, high, best = pods.least or 0, pods.count - 1, None
        while low <= high:
            count = (low + high) // 2
            fewer = replace(pods, count=count)
            sets = (*one.pod_sets[:at], fewer, *one.pod_sets[at + 1 :])
            found = self._offer(replace(one, pod_sets=sets), queue)
            if isinstance(found, Offer):
                best, low = replace(found, pods={pods.name: (count, pods.count)}), count + 1
            else:
                high = count - 1
        return best

    def _assign(self, queue: ClusterQueue, pods: PodSet, use: dict[Key, int]) -> str:
        """Add the needs of a pod set on the flavors that Kueue would choose; returns why there are none, or an empty
        text."""
        excluded = self._excluded(queue)
        needs = {name: each * pods.count for name, each in pods.requests.items() if each and name not in excluded}
        covered = self._covered(queue)
        unknown = [*pods.unknown, *sorted(set(needs) - covered)]
        if unknown:
            where = f", which ClusterQueue {queue.name} does not cover" if set(needs) - covered else ""
            return f"not looked at: {', '.join(unknown)}{where}"
        for group in queue.groups:
            asked = {name: amount for name, amount in needs.items() if name in group.resources}
            if not asked:
                continue
            flavor, why = self._flavor(queue, group, pods, asked, use)
            if why:
                return why
            for name, amount in asked.items():
                use[flavor, name] = use.get((flavor, name), 0) + amount
        return ""

    def _excluded(self, queue: ClusterQueue) -> set[str]:
        """Resources that Kueue's configuration excludes: admissions of the queue asked for them and got no flavor."""
        admitted = [one.workload for one in self._admitted.values() if one.queue == queue.name and not one.fresh]
        asked = {name for one in admitted for pods in one.pod_sets if pods.count for name in pods.requests}
        return asked - {resource for one in admitted for _, resource in one.held} - self._covered(queue)

    @staticmethod
    def _covered(queue: ClusterQueue) -> set[str]:
        """Resources that a queue covers."""
        return {name for group in queue.groups for name in group.resources}

    def _flavor(
        self, queue: ClusterQueue, group: Group, pods: PodSet, asked: Mapping[str, int], use: Use
    ) -> tuple[str, str]:
        """Flavor of a group that Kueue would choose, or the reason why none will do."""
        labels = {label for name in group.flavors if name in self.cluster.flavors for label in self._labels(name)}
        best: tuple[tuple[bool, bool], str] | None = None
        reasons: list[str] = []
        for name in group.flavors:
            known = self.cluster.flavors.get(name)
            if known is None or not selects(pods, known.labels, labels):
                continue
            if not all(tolerated(taint, pods) for taint in known.taints):
                continue
            wanted = {(name, resource): amount + use.get((name, resource), 0) for resource, amount in asked.items()}
            never = next((key for key, amount in wanted.items() if amount > self.tree.most(queue.name, key)), None)
            fits = [self._fit(queue, key, amount) for key, amount in wanted.items()]
            if never is not None or None in fits:
                short = never or next(key for key, fit in zip(wanted, fits, strict=True) if fit is None)
                reasons.append(self._words(queue, wanted, short))
                continue
            free = all(fit.free for fit in fits if fit is not None)
            borrows = any(fit.borrows for fit in fits if fit is not None)
            if best is None or (free, not borrows) > best[0]:
                best = (free, not borrows), name
            if (free and (queue.borrows_first or not borrows)) or (not free and queue.preempts_first):
                break
        if best is not None:
            return best[1], ""
        return "", "; ".join(dict.fromkeys(reasons)) or "no flavor takes these pods"

    def _labels(self, flavor: str) -> Iterable[str]:
        """Node labels of Kueue's flavor."""
        return self.cluster.flavors[flavor].labels

    def _fit(self, queue: ClusterQueue, key: Key, amount: int) -> _Fit | None:
        """Fit of an amount; None where it does not fit, and nothing may be stopped for it."""
        borrows = self.tree.use(queue.name, key) + amount > self.tree.owned(queue.name, key)
        if amount <= self.tree.available(queue.name, key):
            return _Fit(True, borrows)
        policy = queue.preemption
        stops = policy.within != "Never" or policy.reclaim != "Never"
        if stops and (amount <= self.tree.quota(queue.name, key).nominal or policy.borrows):
            return _Fit(False, amount > self.tree.quota(queue.name, key).nominal)
        return None

    def _words(self, queue: ClusterQueue, wanted: Use, key: Key) -> str:
        """Reason why a flavor has too little of a resource, in words."""
        flavor, resource = key
        amount, free, most = wanted[key], self.tree.available(queue.name, key), self.tree.most(queue.name, key)
        ever = f", {_shown(resource, most)} if nothing else ran" if amount > most else ""
        needed = f"needs {_shown(resource, amount)} {resource} of {flavor}"
        return f"{needed}; free: {_shown(resource, max(0, free))}{ever}"

    # --- whom it stops ---

    def _victims(self, one: Workload, queue: ClusterQueue, use: Use, short: set[Key]) -> tuple[Workload, ...]:
        """Workloads whose end makes room, by Kueue's classic preemption; none if there is no such set."""
        own, others = self._candidates(one, queue, short)
        policy, path = queue.preemption, self.tree.path(queue.name)
        within = next((at for at, node in enumerate(path) if self._fits_quota(node, use)), len(path))
        ahead = {
            other.workload.key for other in others if not set(self.tree.path(other.queue)) & set(path[: within + 1])
        }
        reclaimed = [other for other in others if other.workload.key in ahead]
        rest = [other for other in others if other.workload.key not in ahead]
        lending = [other for other in rest if _while_borrowing(other, one, policy)]
        under = all(self.tree.use(queue.name, key) < self.tree.owned(queue.name, key) for key in short)
        with_borrowing = True, sorted([*reclaimed, *lending, *own], key=_stays)
        without = False, sorted([*reclaimed, *rest, *own], key=_stays)
        if not others or (not policy.borrows and not under):
            attempts = [with_borrowing]
        elif not policy.borrows and not reclaimed:
            attempts = [without, with_borrowing]
        else:
            attempts = [with_borrowing, without]
        for borrowing, candidates in attempts:
            found = self._stop(queue, use, short, candidates, borrowing=borrowing)
            if found:
                return found
        return ()

    def _candidates(
        self, one: Workload, queue: ClusterQueue, short: set[Key]
    ) -> tuple[list[_Admitted], list[_Admitted]]:
        """Candidates for preemption: of the queue, and of others that use more than their quota, each in the order in
        which Kueue would stop them: evicted ones, low priority, recently admitted."""
        own, others = [], []
        cohort = set(self.tree.path(queue.name))
        for other in self._admitted.values():
            if other.fresh or short.isdisjoint(other.use):
                continue
            if other.queue == queue.name:
                own += [other] * _may_stop(one, other.workload, queue.preemption.within)
            elif cohort & set(self.tree.path(other.queue)) and self._over(other.queue, short):
                others += [other] * _may_stop(one, other.workload, queue.preemption.reclaim)

        def rank(found: _Admitted) -> tuple[object, ...]:
            one = found.workload
            return _stays(found), one.priority, _later(one.reserved_at), one.uid, one.key

        return sorted(own, key=rank), sorted(others, key=rank)

    def _fits_quota(self, node: str, use: Use) -> bool:
        """Whether an amount more is within the quota of a node of Kueue's cohorts: what others have borrowed of it is
        taken back first."""
        return all(self.tree.use(node, key) + amount <= self.tree.owned(node, key) for key, amount in use.items())

    def _over(self, node: str, keys: Iterable[Key]) -> bool:
        """Whether a node of Kueue's cohorts uses more than its quota."""
        return any(self.tree.use(node, key) > self.tree.owned(node, key) for key in keys)

    def _stop(
        self, queue: ClusterQueue, use: Use, short: set[Key], candidates: Iterable[_Admitted], *, borrowing: bool
    ) -> tuple[Workload, ...]:
        """First candidates that make room together, without those that need not stop after all."""

        def fits() -> bool:
            return all(
                amount <= self.tree.available(queue.name, key)
                and (borrowing or self.tree.use(queue.name, key) + amount <= self.tree.owned(queue.name, key))
                for key, amount in use.items()
            )

        stopped: list[_Admitted] = []
        try:
            for other in candidates:
                shared = [node for node in self.tree.path(other.queue) if node in set(self.tree.path(queue.name))]
                below = self.tree.path(other.queue)[: self.tree.path(other.queue).index(shared[0])] if shared else []
                if other.queue != queue.name and not all(self._over(node, short) for node in (other.queue, *below)):
                    continue
                self._remove(other)
                stopped.append(other)
                if fits():
                    break
            else:
                return ()
            for other in stopped[-2::-1]:
                self._admit(other)
                if fits():
                    stopped.remove(other)
                else:
                    self._remove(other)
            return tuple(other.workload for other in stopped)
        finally:
            for other in stopped:
                self._admit(other)

    # --- the book ---

    def _admit(self, one: _Admitted) -> None:
        """Count an admitted workload against its quotas."""
        if one.workload.key not in self._admitted:
            self._admitted[one.workload.key] = one
            for key, amount in one.use.items():
                self.tree.add(one.queue, key, amount)

    def _remove(self, one: _Admitted) -> None:
        """Take a workload's amounts off its quotas."""
        del self._admitted[one.workload.key]
        for key, amount in one.use.items():
            self.tree.add(one.queue, key, -amount)


def _may_stop(one: Workload, other: Workload, policy: str) -> bool:
    """Whether a preemption policy of Kueue lets one workload stop another."""
    newer = other.priority == one.priority and one.created < other.created
    return {
        "Any": True,
        "LowerPriority": other.priority < one.priority,
        "LowerOrNewerEqualPriority": other.priority < one.priority or newer,
    }.get(policy, False)


def _while_borrowing(other: _Admitted, one: Workload, policy: Preemption) -> bool:
    """Whether a workload of another queue may be stopped for one that borrows then."""
    priority = other.workload.priority
    return policy.borrows and priority < one.priority and (policy.threshold is None or priority <= policy.threshold)


def _stays(one: _Admitted) -> bool:
    """Whether an admitted workload of Kueue is not being evicted already."""
    return "Evicted" not in one.workload.conditions


def _later(time: str) -> tuple[int, ...]:
    """Key that sorts the times of Kueue's workloads, later ones first."""
    return tuple(-ord(letter) for letter in time)


def _shown(resource: str, amount: int) -> str:
    """Amount of a Kubernetes resource for messages; that of ``cpu`` in cores."""
    return f"{amount / 1000:g}" if resource == "cpu" else f"{amount:,}"
