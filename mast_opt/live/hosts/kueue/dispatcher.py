"""The loop of a dispatcher: look, decide, act, or only say what it would do (shadow).

It keeps nothing that the API servers do not have, except since when clusters have been nominated: after a restart that
begins again. Every turn looks at everything, so that what a watch has missed does no harm.
"""

import datetime
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from mast_opt.live.hosts.kueue import patches
from mast_opt.live.hosts.kueue.api import ApiError, KubeApi
from mast_opt.live.hosts.kueue.hooks import due
from mast_opt.live.hosts.kueue.manager_snapshot import CHECK, PENDING, ManagerSnapshot, is_active, take_snapshot
from mast_opt.live.hosts.kueue.nomination import Advice, DispatchParams, advise
from mast_opt.live.hosts.kueue.patches import Patch
from mast_opt.live.hosts.kueue.reading import Object
from mast_opt.live.hosts.kueue.watched import WatchedApi

DISPATCHER = "mast-opt.io/dispatcher"
"""Value of ``multiKueue.dispatcherName`` in Kueue's configuration."""
READY = "Ready"


@dataclass(frozen=True)
class Decision:
    """Decision of a turn about a workload."""

    workload: str
    does: str
    """``nominate``, ``wait``, ``ready``."""
    clusters: tuple[str, ...]
    words: str
    done: bool = False
    """Whether it has been carried out now; False in shadow mode, and where nothing was to be done."""
    error: str = ""


class Dispatcher:
    """Nominates clusters for the workloads of a MultiKueue manager, and answers admission checks of ours.

    Args:
        manager: its API server.
        workers: cluster, as MultiKueueConfig calls it → its API server.
        replicas: dataset → clusters that hold it.
        shadow: look and decide, and change nothing.
        now: the time of now, in UTC.
    """

    def __init__(
        self,
        manager: KubeApi,
        workers: Mapping[str, KubeApi],
        params: DispatchParams | None = None,
        *,
        replicas: Mapping[str, Collection[str]] | None = None,
        shadow: bool = False,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
    ) -> None:
        self._manager, self._workers = manager, dict(workers)
        self._params = params or DispatchParams()
        self._replicas = {} if replicas is None else replicas
        self._shadow = shadow
        self._now = now
        self._clears: bool | None = None
        self._since: dict[str, tuple[tuple[str, ...], datetime.datetime]] = {}
        """Workload → what it is nominated for, and since when."""
        self._said: dict[str, str] = {}
        """Workload → what its check says."""

    def turn(self) -> list[Decision]:
        """Look at the clusters and decide about workloads once, without workers that cannot be reached. Raises ApiError
        if the manager cannot be.
        """
        world = self.look()
        if self._clears is None:
            self._clears = self._manager.clears_nominations()
        self._answer_for_checks(world)
        if not self._shadow:
            for _, patch in due(world, self._params.hooks, (), self._replicas, text_of(self._now())):
                self._manager.patch(patch)
        waiting = {key: one for key, one in world.managed.items() if one.waits}
        allowed = {key: one.allowed for key, one in waiting.items()}
        found = advise(
            tuple(world.clusters.values()), [one.workload for one in waiting.values()], allowed, self._replicas
        )
        self._since = {key: since for key, since in self._since.items() if key in waiting}
        self._said = {key: words for key, words in self._said.items() if key in waiting}
        return [decision for one in found for decision in self._decide(world, one)]

    def run(self, stop: threading.Event, on_turn: Callable[[Sequence[Decision]], None], every_s: float = 5.0) -> None:
        """Take turns until ``stop`` is set: at every change of a workload of the manager, and every so often. Errors of
        the manager are waited out, twice as long each time, up to a minute. The manager is closed at the end."""
        changed = threading.Event()
        watch = WatchedApi(self._manager, changed.set, every_s)
        watcher = threading.Thread(target=watch.follow_on, daemon=True)
        watcher.start()
        failures = 0
        while not stop.is_set():
            changed.clear()
            try:
                on_turn(self.turn())
                failures = 0
            except ApiError as error:
                failures += 1
                on_turn([Decision("", "wait", (), "", error=str(error))])
            if failures:
                stop.wait(min(60.0, every_s * 2 ** (failures - 1)))
            else:
                changed.wait(every_s)
        watch.close()
        watcher.join(timeout=1)

    # --- looking ---

    def look(self) -> ManagerSnapshot:
        """Read the present state of the API servers."""
        snapshot = take_snapshot(self._manager, self._workers)
        waiting = {key for key, one in snapshot.managed.items() if one.waits}
        clusters = {  # copies of workloads that still wait count for nothing
            name: replace(view, workloads=tuple(one for one in view.workloads if one.key not in waiting))
            for name, view in snapshot.clusters.items()
        }
        return replace(snapshot, clusters=clusters)

    # --- deciding ---

    def _decide(self, world: ManagerSnapshot, advice: Advice) -> Iterator[Decision]:
        """Decide about one waiting workload: nominate it, or answer its checks."""
        one = advice.workload
        words = advice.words
        for name, why in world.lost.items():
            words = words.replace(f"{name}: not connected", f"{name}: {why}")
        if any(one.checks.get(name) == PENDING for name in world.multikueue):
            yield self._nominate(world, advice, words)
        for name in world.ours:
            if one.checks.get(name) == PENDING:
                yield self._check(world, advice, name, words)

    def _nominate(self, world: ManagerSnapshot, advice: Advice, words: str) -> Decision:
        """Nominate clusters for a workload, or leave its nomination as it is."""
        one, now = advice.workload, self._now()
        names = self._names(world, advice, now)
        if names == one.nominated:
            return Decision(one.key, "nominate" if names else "wait", names, words)
        decision = Decision(one.key, "nominate", names, words)
        found = world.managed[one.key].found
        decision = self._carry_out(decision, patches.nomination(found, names, clears=bool(self._clears)))
        if decision.done:
            self._since[one.key] = names, now
            self._record(found, "Nominated", f"nominated for {', '.join(names) or 'no cluster'}; {words}")
        return decision

    def _names(self, world: ManagerSnapshot, advice: Advice, now: datetime.datetime) -> tuple[str, ...]:
        """The clusters to nominate now: those that try already, and after a round one more."""
        one = advice.workload
        active = {name for name, cluster in world.clusters.items() if cluster.active}
        names = tuple(name for name in one.nominated if name in active)
        if names:
            known = self._since.setdefault(one.key, (names, now))
            if known[0] != names:
                known = self._since[one.key] = names, now
            if (now - known[1]).total_seconds() < self._params.round_s or len(names) >= self._params.most:
                return names
        following = next((name for name in advice.clusters if name not in names), None)
        return names if following is None else (*names, following)

    def _check(self, world: ManagerSnapshot, advice: Advice, check: str, words: str) -> Decision:
        """Answer one admission check of a workload."""
        one = advice.workload
        state = READY if advice.clusters else PENDING
        decision = Decision(one.key, "ready" if advice.clusters else "wait", advice.clusters[:1], words)
        message = words[: patches.MOST_MESSAGE]
        if state == PENDING and message in (one.messages.get(check), self._said.get(one.key)):
            return decision
        found, now = world.managed[one.key].found, text_of(self._now())
        decision = self._carry_out(decision, patches.check_state(found, check, state, message, now, controller=CHECK))
        if decision.done:
            self._said[one.key] = message
        return decision

    # --- acting ---

    def _carry_out(self, decision: Decision, patch: Patch) -> Decision:
        """Write a decision to Kueue's manager, unless the dispatcher only says what it would do; returns it with its
        outcome.
        """
        if self._shadow:
            return decision
        try:
            self._manager.patch(patch)
        except ApiError as error:
            return replace(decision, error="it has changed meanwhile" if error.status == 409 else str(error))
        return replace(decision, done=True)

    def _answer_for_checks(self, world: ManagerSnapshot) -> None:
        """Say in Kueue that our admission checks have a controller, where that is not said yet."""
        for found in world.ours.values():
            if not self._shadow and not is_active(found):
                self._manager.patch(patches.check_is_active(found, text_of(self._now()), controller=CHECK))

    def _record(self, about: Object, reason: str, message: str) -> None:
        """Record an event about an object; failures are ignored."""
        with suppress(ApiError):  # an Event is for readers; the nomination stands without it
            self._manager.record(about, reason, message, text_of(self._now()))


def text_of(time: datetime.datetime) -> str:
    """A time as Kubernetes writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
