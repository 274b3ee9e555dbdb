"""Comparison of a loop's jobs with the workloads of the clusters, and the events that make them agree.

The clusters are right. Where work goes on that the loop wants to stop, or runs in another place, the loop follows: its
attempt is reported as stopped, and the next attempt as running where the work is.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mast_opt.live.hosts.kueue.eligibility import holds_quota
from mast_opt.live.hosts.kueue.jobs import is_loan, job_name, place_of, places_for, shares_at, spec_of
from mast_opt.live.hosts.kueue.manager_snapshot import Managed, ManagerSnapshot
from mast_opt.live.hosts.kueue.nomination import PRIORITIES
from mast_opt.live.hosts.kueue.objects import Workload
from mast_opt.live.hosts.kueue.places import places_of
from mast_opt.live.hosts.protocol import Attempt
from mast_opt.live.hosts.tracking import Phase, Task, Tracker, taken_over
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.problems.job_placement.units import WHOLE

SUFFIX = 4
"""Number of letters of a job's name that depend on what it asks for."""


@dataclass
class JobTracker(Tracker):
    """The jobs of a loop over Kueue, and the servers that it knows: what Kueue was asked for and has said of each,
    which the loop learns of only with the next report.

    Args:
        replicas: dataset → clusters that hold it.
        priorities: as in ``DispatchParams``.
        limit_grace_s: as in ``KueueHost``.
    """

    replicas: Mapping[str, Collection[str]] = field(default_factory=dict)
    priorities: tuple[int, ...] = PRIORITIES
    limit_grace_s: float | None = None
    _reported: dict[str, frozenset[str]] = field(default_factory=dict)
    """Replicas that the loop knows."""

    # --- what the loop says ---

    def resume(self, records: Iterable[JobRecord]) -> None:
        """Take over the jobs, as Kueue's workloads, that a log leads to."""
        self.tasks.clear()
        self._answers.clear()
        self._reported = {}
        for one in records:
            home, _, key = one.name.rpartition(":")
            key = (key or one.name).rpartition(".")[0]
            self.tasks[one.name] = taken_over(one, key, home)

    def running(self, snapshot: ManagerSnapshot) -> set[Attempt]:
        """Attempts that clusters have admitted."""
        return {
            (task.job, task.attempt)
            for task in self.tasks.values()
            if task.phase is Phase.RUNNING and (is_loan(task.key) or self._real(task, snapshot) is not None)
        }

    # --- what the clusters say ---

    def reports(self, snapshot: ManagerSnapshot, now_ms: int) -> list[ev.Event]:
        """Events that the loop has to learn from the clusters."""
        events = [*self._answers]
        self._answers.clear()
        lent = self._server_reports(snapshot, events)
        for task in [one for one in self.tasks.values() if is_loan(one.key)]:
            events += self._follow_loan(task, lent.get(task.key, 0))
        for name in sorted({*self.replicas, *self._reported}):
            of = frozenset(self.replicas.get(name, ()))
            if self._reported.get(name) != of:
                self._reported[name] = of
                events.append(ev.DatasetCreated(name, 0, tuple(sorted(of))))
        for phase in (Phase.RUNNING, Phase.WANTED, Phase.WAITING):  # room is given before it is taken
            for task in [one for one in self.tasks.values() if one.phase is phase and not is_loan(one.key)]:
                events += self._follow(task, snapshot)
        events += self._arrivals(snapshot)
        for server, gpus in lent.items():  # last, when all that has ended has given its room
            events += self._lend(server, gpus, now_ms)
        return events

    def _server_reports(self, snapshot: ManagerSnapshot, events: list[ev.Event]) -> dict[str, int]:
        """Report servers (flavors of queues) that have come, gone or changed in the clusters; returns what is lent:
        server → GPUs that the queue takes back from whoever holds them."""
        found = {
            server.name: (server, lent)
            for view in snapshot.clusters.values()
            if view.active
            for _, server, lent in places_of(view)
        }
        lost = {name: snapshot.lost.get(name.partition("/")[0], "") for name in self.servers}
        events += self.changed_servers({name: server for name, (server, _) in found.items()}, lost)
        return {name: lent for name, (_, lent) in found.items() if lent}

    def _follow_loan(self, task: Task, gpus: int) -> Iterator[ev.Event]:
        """Report that less is lent than before, or that it stays lent as nobody needs it after all."""
        if gpus < task.spec.tasks:
            del self.tasks[task.job]
            yield ev.Finished(task.job, task.attempt)
        elif task.stopping and not task.cancelled and not self._is_wanted(task.server):
            yield from self.stopped(task)
            yield from self._adopted(task, task.key)

    def _lend(self, server: str, gpus: int, now_ms: int) -> Iterator[ev.Event]:
        """Report quota that others have borrowed as work of the least tier: Kueue stops them before work of the queue.
        It is no more than the room that the loop knows of."""
        old = next((one for one in self.tasks.values() if one.key == server), None)
        held = sum(sum(x.gpus.values()) for one in self.tasks.values() for x in one.shares if x.server == server)
        room, had = self.servers[server].gpus + -held // WHOLE, 0 if old is None else old.spec.tasks
        gpus = min(gpus, room + had)
        if gpus <= had:
            return
        if old is not None:
            del self.tasks[old.job]
            yield ev.Finished(old.job, old.attempt)
        kinds, cluster = {server: WHOLE}, self.servers[server].region
        spec = JobSpec(len(self.priorities), gpus, gpu_types=kinds, within="server", preemptible=True)
        task = Task(f"{cluster}:{server}.{now_ms}", server, spec, cluster)
        self.tasks[task.job] = task
        yield ev.Submitted(task.job, spec)
        yield from self._adopted(task, server)

    def _workload(self, task: Task, snapshot: ManagerSnapshot) -> Workload | None:
        """The workload of a job; None if it is not there, or ended."""
        if task.home:
            cluster = snapshot.clusters.get(task.home)
            found = (one for one in cluster.workloads if one.key == task.key) if cluster is not None else iter(())
            one = next(found, None)
        else:
            managed = snapshot.managed.get(task.key)
            one = managed.workload if managed is not None else None
        return one if one is not None and _bare(task.job).endswith(job_name(one)) else None

    def _real(self, task: Task, snapshot: ManagerSnapshot) -> str | None:
        """Server where a job has been admitted; empty while it cannot be seen, None if no cluster has admitted it."""
        one = self._workload(task, snapshot)
        if one is None or (one.ended and not task.home):
            return None
        if task.home:
            return place_of(one, snapshot.clusters[task.home]) if holds_quota(one) else None
        if not one.cluster:
            return None
        view = snapshot.clusters.get(one.cluster)
        copies = (copy for copy in view.workloads if copy.key == task.key and holds_quota(copy)) if view else iter(())
        copy = next(copies, None)
        if view is not None and copy is not None:
            return place_of(copy, view)
        return task.server if task.cluster == one.cluster else ""

    def _follow(self, task: Task, snapshot: ManagerSnapshot) -> Iterator[ev.Event]:
        """Report what has become of a job's workload."""
        if task.home in snapshot.lost:
            return
        one = self._workload(task, snapshot)
        if one is None or (not holds_quota(one) if task.home else one.ended):
            yield from self._end(task, one)
            return
        real = self._real(task, snapshot)
        if real is None and (task.phase is Phase.RUNNING or (task.phase is Phase.WANTED and task.stopping)):
            yield from self.stopped(task)
        elif real and real in self.servers:
            yield from self._follow_real(task, real)
        elif task.phase is Phase.WAITING and not task.attempt:
            yield from self._changed(task, one, snapshot)

    def _follow_real(self, task: Task, real: str) -> Iterator[ev.Event]:
        """Report that a cluster has admitted the workload."""
        if task.phase is Phase.WANTED:
            yield from self._admitted(task, real)
        elif task.phase is Phase.WAITING:
            yield from self._adopted(task, real)
        elif not task.cancelled and (real != task.server or (task.stopping and not self._is_wanted(task.server))):
            yield from self.stopped(task)
            yield from self._adopted(task, real)

    def _end(self, task: Task, one: Workload | None) -> Iterator[ev.Event]:
        """Report that the workload has ended or is gone; one that ends while it waits is cancelled."""
        del self.tasks[task.job]
        if task.phase is Phase.WANTED:
            yield from self._make_room(task.server)
        if task.phase is not Phase.WAITING:
            if one is not None and "Finished" in one.conditions and one.outcome != "Failed":
                yield ev.Finished(task.job, task.attempt)
            elif one is not None and "Finished" in one.conditions:
                yield ev.Failed(task.job, task.attempt, "its job has failed")
            else:
                yield ev.Failed(task.job, task.attempt, "its workload is no longer there, or not active")
        yield ev.Cancelled(task.job)

    def _is_wanted(self, server: str) -> bool:
        """Whether a job is to start at a server of a Kueue cluster for which others may still be stopped."""
        return any(
            one.phase is Phase.WANTED and one.server == server and not one.stopping for one in self.tasks.values()
        )

    def _admitted(self, task: Task, real: str) -> Iterator[ev.Event]:
        """Report that a job runs on a server, whether or not the loop chose it."""
        yield from self._make_room(task.server)
        if task.stopping or real != task.server:
            yield from self.stopped(task)
            yield from self._adopted(task, real)
        else:
            task.phase = Phase.RUNNING
            yield ev.Started(task.job, task.attempt)

    def _make_room(self, server: str) -> Iterator[ev.Event]:
        """Take back stops on a server of work that goes on all the same: the cluster has found room otherwise."""
        for one in list(self.tasks.values()):
            if one.phase is Phase.RUNNING and one.stopping and not one.cancelled and one.server == server:
                yield from self.stopped(one)
                yield from self._adopted(one, server)

    def _adopted(self, task: Task, real: str) -> Iterator[ev.Event]:
        """Report that a job runs on a server as its next attempt."""
        server = self.servers[real]
        held: dict[int, int] = {}
        for one in self.tasks.values():
            for share in one.shares if one.server == real and one is not task else ():
                for gpu, amount in share.gpus.items():
                    held[gpu] = held.get(gpu, 0) + amount
        task.shares = shares_at(task.spec, real, server.gpus, held)
        task.phase, task.attempt, task.stopping = Phase.RUNNING, task.attempt + 1, False
        yield ev.Adopted(task.job, task.attempt, server.region, server.cluster, task.shares)

    def _changed(self, task: Task, one: Workload, snapshot: ManagerSnapshot) -> Iterator[ev.Event]:
        """Cancel a waiting job whose workload no longer asks for what the loop knows, or may run elsewhere."""
        managed = snapshot.managed[task.key]
        spec = self._asked(managed, snapshot)
        if managed.waits and spec is not None and spec != task.spec:
            del self.tasks[task.job]
            yield ev.Cancelled(task.job)

    # --- new work ---

    def _arrivals(self, snapshot: ManagerSnapshot) -> Iterator[ev.Event]:
        """Report workloads that the loop does not know yet."""
        known = {_bare(task.job) for task in self.tasks.values()}
        for managed in sorted(snapshot.managed.values(), key=lambda one: (one.workload.created, one.workload.key)):
            one = managed.workload
            if job_name(one) in known or one.ended or not (managed.waits or one.cluster):
                continue
            spec = self._asked(managed, snapshot)
            if spec is not None:
                yield from self._new(Task(job_name(one, spec), one.key, spec), snapshot)
        for cluster in snapshot.clusters.values():
            for one in cluster.workloads:
                of_manager = snapshot.managed.get(one.key)
                ours = of_manager is not None and not of_manager.workload.ended
                if ours or not holds_quota(one) or f"{cluster.name}:{job_name(one)}" in known:
                    continue
                place = place_of(one, cluster)
                spec = self._spec(one, places_for(one, (cluster,)) | ({place: False} if place else {}))
                if spec is not None and place in self.servers:
                    name = f"{cluster.name}:{job_name(one, spec)}"
                    yield from self._new(Task(name, one.key, spec, cluster.name), snapshot)

    def _new(self, task: Task, snapshot: ManagerSnapshot) -> Iterator[ev.Event]:
        """Submit a job of a new workload, and adopt it if it runs already."""
        self.tasks[task.job] = task
        yield ev.Submitted(task.job, task.spec)
        real = self._real(task, snapshot)
        if real and real in self.servers:
            yield from self._adopted(task, real)

    def _asked(self, managed: Managed, snapshot: ManagerSnapshot) -> JobSpec | None:
        """Specification of a managed workload's job in the clusters where it may run."""
        one = managed.workload
        clusters = [snapshot.clusters[name] for name in managed.allowed if name in snapshot.clusters]
        places = places_for(one, clusters)
        if one.cluster in snapshot.clusters and not places:  # it runs already
            places = places_for(one, (snapshot.clusters[one.cluster],))
        return self._spec(one, places)

    def _spec(self, one: Workload, places: Mapping[str, bool]) -> JobSpec | None:
        """Specification of a workload's job with the priorities of this loop."""
        return spec_of(one, places, self.priorities, self.limit_grace_s)


def _bare(job: str) -> str:
    """The name of a workload's job without what depends on what it asks for."""
    return job[:-SUFFIX]
