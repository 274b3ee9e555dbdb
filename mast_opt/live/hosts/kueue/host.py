"""Host over Kueue: workloads come in as jobs, and a start is a nomination.

A thread looks at the manager and its workers, at every change and every so often, and writes nominations. What it sees
is reported when the loop asks. The workers decide what stops for what is nominated; the loop learns what they did.
"""

import datetime
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace

from mast_opt.core.errors import UsageError
from mast_opt.core.wording import counted
from mast_opt.live.hosts.kueue import patches
from mast_opt.live.hosts.kueue.api import ApiError, KubeApi
from mast_opt.live.hosts.kueue.dispatcher import READY, text_of
from mast_opt.live.hosts.kueue.hooks import Choice, due, is_open, taken_back
from mast_opt.live.hosts.kueue.job_tracker import JobTracker
from mast_opt.live.hosts.kueue.manager_snapshot import (
    CHECK,
    PENDING,
    Managed,
    ManagerSnapshot,
    Reader,
    is_active,
    take_snapshot,
)
from mast_opt.live.hosts.kueue.nomination import DispatchParams, Hook, advise
from mast_opt.live.hosts.kueue.patches import Patch
from mast_opt.live.hosts.kueue.places import places_of
from mast_opt.live.hosts.kueue.watched import WatchedApi
from mast_opt.live.hosts.protocol import Attempt, Can
from mast_opt.live.hosts.tracking import Phase, SharedHost, Task
from mast_opt.live.loop.events import Event
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.problems.job_placement.live_fleet.types import Server

WRITERS = 4
"""Number of patches that are under way at the same time."""


@dataclass(frozen=True)
class _Nomination:
    attempt: int
    names: tuple[str, ...]
    since_s: float
    begun_s: float
    """Time of the first nomination of this attempt."""
    sent: tuple[str, tuple[str, ...]] = ("", ())
    """Version of the object that was last changed, and what to."""


class KueueHost(SharedHost[JobTracker]):
    """Host that runs jobs as workloads of Kueue, in clusters that a manager of MultiKueue knows.

    Args:
        manager: its API server.
        workers: cluster, as MultiKueueConfig calls it → its API server.
        replicas: dataset → clusters that hold it.
        shadow: look and let the loop decide, and change nothing.
        limit_grace_s: longest time from a workload's limit until Kueue has ended it; None: that of its pods.
        every_s: seconds between two looks in which nothing is said to have changed.
        on_problem: called with why the manager cannot be looked at, and with an empty text when it can be again.
        ticks: seconds that never go back.
    """

    name = "kueue"
    can = frozenset({Can.MAKE_ROOM})
    """Kueue resizes no job: with the feature gate ``ElasticJobsViaWorkloadSlices`` (on by default since 0.18) it
    follows the owner of a job who does; to begin a change of size is a non-goal of its KEP-77."""

    def __init__(
        self,
        manager: KubeApi,
        workers: Mapping[str, KubeApi],
        params: DispatchParams | None = None,
        *,
        replicas: Mapping[str, Collection[str]] | None = None,
        shadow: bool = False,
        limit_grace_s: float | None = None,
        every_s: float = 5.0,
        on_problem: Callable[[str], object] = lambda words: None,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._manager, self._workers = manager, dict(workers)
        self._params = params or DispatchParams()
        self._shadow, self._ticks = shadow, ticks
        self._replicas = {} if replicas is None else replicas
        tracker = JobTracker(self._replicas, self._params.priorities, limit_grace_s)
        super().__init__(tracker, "Kueue starts jobs and makes room for them", every_s, on_problem)
        self._reader = Reader()
        self._snapshot: ManagerSnapshot | None = None
        self._nominations: dict[str, _Nomination] = {}
        self._clears: bool | None = None
        self._changed = threading.Event()
        self._threads: list[threading.Thread] = []
        self._events: ThreadPoolExecutor | None = None
        """Writes what is for readers only; without it, it is written at once."""

    def servers(self) -> tuple[Server, ...]:
        """Servers that Kueue's workers offer now, for a new log. Raises ApiError, UsageError."""
        snapshot = self._looked()
        found = tuple(server for view in snapshot.clusters.values() if view.active for _, server, _ in places_of(view))
        if not found:
            why = "; ".join(f"{name}: {words}" for name, words in snapshot.lost.items()) or "none is connected"
            raise UsageError(f"no worker with a ClusterQueue can be reached ({why})")
        return found

    # --- Host ---

    def resume(self, jobs: Iterable[JobRecord]) -> None:
        """Take over the jobs of a log, which are workloads of Kueue. Raises ApiError."""
        if self._snapshot is None:
            self._looked()
        with self._lock:
            self._tracker.resume(jobs)
            self._fresh = True

    def begin(self) -> None:
        """Look at the clusters and act in threads from now on, until ``close``."""
        manager = WatchedApi(self._manager, self._note, self._every_s)
        workers = {name: WatchedApi(api, self._note, self._every_s) for name, api in self._workers.items()}
        self._manager, self._workers = manager, dict(workers)
        watches = (manager, *workers.values())
        self._threads = [threading.Thread(target=api.follow_on, daemon=True) for api in watches]
        self._events = ThreadPoolExecutor(1)
        self._threads.append(threading.Thread(target=self._run, name="mast-opt kueue", daemon=True))
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop the threads of the Kueue host, and close the connections; jobs go on."""
        self._stop.set()
        self._due.set()
        for thread in self._threads[-1:]:
            thread.join()
        if self._events is not None:
            self._events.shutdown(cancel_futures=True)
        for api in (self._manager, *self._workers.values()):
            api.close()

    def reports(self, now_ms: int) -> Sequence[Event]:
        """Events that the workloads have brought since the last call."""
        with self._lock:
            self._fresh = False
            found = self._tracker.reports(self._snapshot, now_ms) if self._snapshot is not None else []
        self._due.set()
        return found

    def unenforced(self) -> str:
        """Number of workloads whose job nobody ends at their limits, in words; empty if there are none."""
        snapshot = self._snapshot
        there = () if snapshot is None else (one.workload for one in snapshot.managed.values())
        count = sum(one.limit_s is not None and one.limit_grace_s is None for one in there)
        what = "activeDeadlineSeconds without maximumExecutionTimeSeconds, which ends pods and not jobs"
        return f"{counted(count, 'workload')} with {what}" if count else ""

    def observe(self) -> Collection[Attempt]:
        """Attempts of jobs that Kueue's workers run."""
        with self._lock:
            return self._tracker.running(self._snapshot) if self._snapshot is not None else set()

    # --- looking ---

    def _looked(self) -> ManagerSnapshot:
        """Read a new snapshot of the API servers."""
        snapshot = take_snapshot(self._manager, self._workers, self._reader)
        with self._lock:
            self._snapshot, self._fresh = snapshot, True
        self._note_problem("")
        return snapshot

    def step(self) -> None:
        """Look at the clusters once, and write what is due for their workloads. Raises ApiError if the manager cannot
        be reached.
        """
        self._changed.clear()
        self._looked()
        self.act()
        self._call()

    def _run(self) -> None:
        """Body of the Kueue host's thread that looks and writes until it is stopped."""
        looked_s, failures = self._ticks(), 0
        while not self._stop.is_set():
            self._due.wait(self._every_s)
            self._due.clear()
            if self._stop.is_set():
                return
            try:
                if self._changed.is_set() or self._ticks() - looked_s >= self._every_s:
                    self.step()
                    looked_s = self._ticks()
                else:
                    self.act()
                failures = 0
            except ApiError as error:
                failures += 1
                self._note_problem(str(error))
                self._wait_after(failures)
                self._changed.set()
                self._due.set()

    def _note(self) -> None:
        """Note that a workload has changed, and look again."""
        self._changed.set()
        self._due.set()

    # --- acting ---

    def act(self) -> None:
        """Write the nominations of clusters that the loop wants now."""
        with self._lock:
            snapshot = self._snapshot
            if snapshot is None or self._shadow:
                return
            tasks = {task.key: task for task in self._tracker.tasks.values() if not task.home}
            todo = [
                (task, managed, self._names(task, snapshot, managed))
                for key, managed in snapshot.managed.items()
                if managed.waits and (task := tasks.get(key)) is not None
            ]
            choices = [self._choice(task, managed, names) for task, managed, names in todo if names]
            gone = set(self._nominations) - {task.job for task in tasks.values()}
            for job in gone:
                del self._nominations[job]
        if self._clears is None:
            self._clears = self._manager.clears_nominations()
        for check in snapshot.ours.values():
            if not is_active(check):
                self._patch(patches.check_is_active(check, self._now(), controller=CHECK))
        self._hook(snapshot, choices)
        chosen = {one.workload.key: one for one in choices}
        writes = [work for one in todo for work in self._writes(snapshot, *one, chosen.get(one[0].key))]
        if not writes:
            return
        with ThreadPoolExecutor(WRITERS) as pool:
            for done in pool.map(lambda work: work(), writes):
                if not done:  # somebody was faster: look again
                    self._note()

    def _hook(self, snapshot: ManagerSnapshot, choices: Sequence[Choice]) -> None:
        """Write what Kueue's hooks need for the loop's choices, before anything is nominated for them."""
        for cluster, patch in due(snapshot, self._params.hooks, choices, self._replicas, self._now()):
            if not self._patch(patch, cluster):
                self._note()

    def _names(self, task: Task, snapshot: ManagerSnapshot, managed: Managed) -> tuple[str, ...]:
        """Clusters to nominate now: the one that the loop has chosen, and one more after every round."""
        if task.phase is not Phase.WANTED or task.stopping:
            self._nominations.pop(task.job, None)
            return ()
        now, known = self._ticks(), self._nominations.get(task.job)
        if known is None or known.attempt != task.attempt:
            names = (task.cluster, *(one for one in managed.workload.nominated if one != task.cluster))
            at_once = names[: self._params.most] if task.cluster in managed.workload.nominated else (task.cluster,)
            known = _Nomination(task.attempt, at_once, now, now)
        elif len(known.names) < self._params.most:
            opened = Hook.GATES in self._params.hooks and is_open(snapshot, task.key, task.cluster)
            if opened or now - known.since_s >= self._params.round_s:
                further = self._further(task, snapshot, managed, known.names)
                names = (*known.names, *further[: None if opened else 1])[: self._params.most]
                known = replace(known, names=names, since_s=now)
        active = tuple(name for name in known.names if name in snapshot.clusters and snapshot.clusters[name].active)
        self._nominations[task.job] = known
        return active

    def _further(
        self, task: Task, snapshot: ManagerSnapshot, managed: Managed, known: Collection[str]
    ) -> tuple[str, ...]:
        """Clusters where a workload could start too, the best first."""
        clusters, allowed = tuple(snapshot.clusters.values()), {task.key: managed.allowed}
        (advice,) = advise(clusters, [managed.workload], allowed, self._replicas)
        return tuple(name for name in advice.clusters if name not in known)

    def _choice(self, task: Task, managed: Managed, names: tuple[str, ...]) -> Choice:
        """The clusters that may stop others for a job now, one more after every round, and its victims."""
        known = self._nominations[task.job]
        rounds = 1 + int((self._ticks() - known.begun_s) // self._params.round_s)
        victims = (
            one.key
            for one in self._tracker.tasks.values()
            if one.phase is Phase.RUNNING and one.stopping and not one.cancelled and one.server == task.server
        )
        return Choice(managed.workload, names[:rounds], frozenset(victims))

    def _taken_back(self, snapshot: ManagerSnapshot, choice: Choice) -> str:
        """Workloads that stop where a job is nominated since they have borrowed, in words; empty if there are none."""
        if not choice.victims:
            return ""
        view, boosted = snapshot.clusters[choice.clusters[0]], Hook.BOOST in self._params.hooks
        found = taken_back(view, choice.workload, choice.victims, boosted=boosted)
        return f"; quota is taken back from {', '.join(found)}" if found else ""

    def _writes(
        self, snapshot: ManagerSnapshot, task: Task, managed: Managed, names: tuple[str, ...], choice: Choice | None
    ) -> Iterable[Callable[[], bool]]:
        """Writes that are due for one job: its nomination, and answers to checks."""
        one = managed.workload
        if any(one.checks.get(check) == PENDING for check in snapshot.multikueue) and names != one.nominated:
            known = self._nominations.get(task.job)
            if known is None or known.sent != (one.version, names):
                if known is not None:
                    self._nominations[task.job] = replace(known, sent=(one.version, names))
                words = "" if choice is None else self._taken_back(snapshot, choice)
                yield lambda: self._nominate(managed, names, words)
        for check in snapshot.ours if names else ():
            if one.checks.get(check) == PENDING:
                words = f"{names[0]} has room"
                patch = patches.check_state(managed.found, check, READY, words, self._now(), controller=CHECK)
                yield lambda patch=patch: self._patch(patch)  # type: ignore[misc]

    def _nominate(self, managed: Managed, names: tuple[str, ...], words: str) -> bool:
        """Write the nomination of a workload; False if the object has changed."""
        done = self._patch(patches.nomination(managed.found, names, clears=bool(self._clears)))
        if done and self._events is None:
            self._record(managed, names, words)
        elif done and self._events is not None and not self._stop.is_set():
            self._events.submit(self._record, managed, names, words)
        return done

    def _record(self, managed: Managed, names: tuple[str, ...], more: str) -> None:
        """Record an event about a nomination; failures are ignored."""
        with suppress(ApiError):  # an Event is for readers; the nomination stands without it
            words = f"nominated for {', '.join(names) or 'no cluster'}{more}"
            self._manager.record(managed.found, "Nominated", words, self._now())

    def _patch(self, patch: Patch, cluster: str = "") -> bool:
        """Apply a patch on a cluster (empty: the manager); False if the Kubernetes object has changed or gone since.
        Raises ApiError for other troubles.
        """
        try:
            (self._workers[cluster] if cluster else self._manager).patch(patch)
        except ApiError as error:
            if error.status in (404, 409):
                return False
            raise
        return True

    @staticmethod
    def _now() -> str:
        """Present time as Kubernetes writes it."""
        return text_of(datetime.datetime.now(datetime.UTC))
