"""Independent check of a log: what must hold of any log, whatever policy decided and whatever engine wrote it.

It shares nothing with the engine, the live fleet and the kernels: it keeps a count of what every server has and what
every job holds, by the events alone, and compares in whole milli-GPUs, millicores and MiB.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.checked_jobs import CheckedJob, ShareCheck
from mast_opt.live.loop.data_checker import DataCheck
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.promise_checker import PromiseCheck
from mast_opt.live.loop.server_checker import ServerCheck, gang_of, need_of
from mast_opt.live.loop.work_checker import Hold, WorkChecker
from mast_opt.problems.job_placement.live_fleet.types import Share


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must not be in a log."""

    seq: int
    """The event; 0 where it is about the end of the log."""
    what: str
    """``order``, ``job``, ``attempt``, ``server``, ``gang``, ``level``, ``capacity``, ``gpu``, ``data``, ``storage``,
    ``plan``, ``region``, ``share``, ``promise``, ``victim``, ``work`` or ``lost``."""
    words: str

    def __str__(self) -> str:
        where = f"event {self.seq}" if self.seq else "the end of the log"
        return f"{where}, {self.what}: {self.words}"


def check_log(
    log: Iterable[ev.Stored],
    *,
    replicas: Mapping[str, Collection[str]] | None = None,
    limited: Collection[str] = (),
    all_end: bool = False,
    durations: bool = False,
    speeds: Mapping[tuple[str, str, int], int] | None = None,
    packed: Mapping[tuple[str, str, str, int], int] | None = None,
) -> tuple[Violation, ...]:
    """Everything that is wrong with a log, in order; empty if nothing is.

    Args:
        log: from its first event on.
        replicas: dataset → regions that hold it when the log begins; None: data is not checked.
        limited: tenants that have a quota when the log begins. Work over it may be stopped, whatever its job says.
        all_end: every job has to end before the log does.
        durations: ``JobSpec.duration_ms`` is the truth: no job ends before it has worked that long at its reference
            speed.
        speeds: (model, GPU type, tasks) → speed, in any unit, of jobs with a model; the fastest type is the one of the
            reference speed.
        packed: (model, other model, GPU type, tasks) → speed of the first while the other has the same GPUs.
    """
    checker = _Checker(replicas, limited, WorkChecker(durations, speeds or {}, packed or {}))
    for stored in log:
        checker.take(stored)
    checker.promises.check_end(checker.now)
    if all_end:
        checker.check_end()
    return tuple(checker.found)


class _Checker:
    def __init__(
        self,
        replicas: Mapping[str, Collection[str]] | None,
        limited: Collection[str],
        work: WorkChecker,
    ) -> None:
        self.found: list[Violation] = []
        self.seq, self.now = 0, 0
        self.jobs: dict[str, CheckedJob] = {}
        self.places = ServerCheck(self.wrong)
        self.servers = self.places.servers
        self.pairs = ShareCheck(self.wrong, self.jobs, self.servers)
        self.with_data = replicas is not None
        self.data = DataCheck(self.wrong, replicas or {})
        self.limited = set(limited)
        self.promises = PromiseCheck(self.wrong, self.jobs, self.servers, self.limited)
        self.work = work
        self.holders: dict[str, set[str]] = {}
        """Server → jobs that hold a part of it."""

    def wrong(self, what: str, words: str) -> None:
        """Note a fault of the log."""
        self.found.append(Violation(self.seq, what, words))

    def take(self, stored: ev.Stored) -> None:
        """Check the next event of the log."""
        before, was = self.seq, self.now
        self.seq = stored.seq
        if stored.seq != before + 1:
            self.wrong("order", f"it follows event {before}")
        if stored.at_ms < was:
            self.wrong("order", f"its time {stored.at_ms} ms lies before {was} ms")
        self.now = max(was, stored.at_ms)
        kind = type(stored.event)
        self.promises.take(stored.event, self.now)
        if kind in _HANDLERS:
            _HANDLERS[kind](self, stored.event)
        if kind in _SERVERS:
            _SERVERS[kind](self.places, stored.event)
        if kind in _DATA:
            _DATA[kind](self.data, stored.event)

    # --- data, quotas ---

    def _dropped(self, event: ev.ReplicaDropped) -> None:
        """Check that no job's data is deleted under it."""
        for name, job in self.jobs.items():
            if job.placed is not None and job.placed.region == event.region and event.dataset in job.spec.datasets:
                self.wrong("data", f"{event.dataset} is deleted in {event.region}, where job {name} reads it")

    def _quota_set(self, event: ev.QuotaSet) -> None:
        """Note that a tenant's quotas are limited, so that work beyond them may be stopped."""
        self.limited.add(event.tenant)

    # --- jobs ---

    def _submitted(self, event: ev.Submitted) -> None:
        """Check the submission of a job."""
        if event.job in self.jobs:
            self.wrong("job", f"job {event.job} was submitted before")
        else:
            self.jobs[event.job] = CheckedJob(event.spec)

    def _bound(self, event: ev.Bound) -> None:
        """Check the binding of a job to a region."""
        job = self._job(event.job)
        if job is not None:
            if job.phase != "waiting":
                self.wrong("job", f"job {event.job} is bound and is {job.phase}")
            job.bound = event.region

    def _cancelled(self, event: ev.Cancelled) -> None:
        """Check the cancellation of a job."""
        job = self._job(event.job)
        if job is not None:
            job.cancelled = True
            job.phase = "ended" if job.phase == "waiting" else job.phase

    def _job(self, name: str) -> CheckedJob | None:
        """Record of a job in the log; notes a fault if there is none, or if it has ended."""
        job = self.jobs.get(name)
        if job is None:
            self.wrong("job", f"job {name} was never submitted")
        elif job.phase == "ended":
            self.wrong("job", f"job {name} has ended")
            return None
        return job

    # --- attempts ---

    def _placed(self, event: ev.Placed) -> None:
        """Check the placement of a job, with its victims."""
        job = self._job(event.job)
        if job is None:
            return
        if job.phase != "waiting":
            self.wrong("job", f"job {event.job} is placed and is {job.phase}")
            return
        if event.attempt != job.attempt + 1:
            self.wrong("attempt", f"attempt {event.attempt} of job {event.job} follows attempt {job.attempt}")
        self._check_place(event, job)
        for words in self.data.outside_residency(event.job, job.spec.datasets, event.region):
            self.wrong("data", words)
        for name in event.victims:
            self._victim(name, event, job)
        job.phase, job.attempt, job.placed, job.ran = "placed", event.attempt, event, False
        elastic = job.spec.min_tasks is not None or job.spec.max_tasks is not None
        job.began_tasks = sum(share.tasks for share in event.shares) if elastic else None
        for share in event.shares:
            self.holders.setdefault(share.server, set()).add(event.job)
        if job.partner:
            self.pairs.check_guest(event, job)
        else:
            self.places.count(job.spec, event, "claimed", 1)
            self.places.check_capacity(event, "claimed")
        if event.at_once:
            self._start(job, event)

    def _adopted(self, event: ev.Adopted) -> None:
        """Check a job that its host says runs there, whether there is room or not."""
        job = self._job(event.job)
        if job is None:
            return
        if job.phase != "waiting" or event.attempt != job.attempt + 1:
            self.wrong("attempt", f"attempt {event.attempt} of job {event.job} is adopted after attempt {job.attempt}")
            return
        placed = ev.Placed(event.job, event.attempt, event.region, event.cluster, event.shares, at_once=True)
        self._check_tasks(event, job.spec, "adopted")
        job.phase, job.attempt, job.placed, job.ran, job.began_ms = "running", event.attempt, placed, True, self.now
        for share in event.shares:
            self.holders.setdefault(share.server, set()).add(event.job)
            if share.server not in self.servers:
                self.wrong("server", f"job {event.job} is adopted on {share.server}, which nobody knows")
        for what in ("claimed", "used"):
            self.places.count(job.spec, placed, what, 1)
        for share in event.shares:
            self.places.excuse(share.server)

    def _resized(self, event: ev.Resized) -> None:
        """Check that a job which runs has other tasks, all of them in its cluster and on GPUs that are free."""
        job = self._job(event.job)
        if job is None:
            return
        placed = job.placed
        if job.phase != "running" or placed is None or event.attempt != job.attempt or job.partner or job.mate:
            self.wrong("job", f"job {event.job} is resized and is {job.phase}, in another attempt, or shares its GPUs")
            return
        after = replace(placed, shares=event.shares)
        if sum(share.tasks for share in event.shares) != event.tasks:
            self.wrong("gang", f"job {event.job} is resized to {event.tasks} tasks; its shares have others")
        self._check_place(after, job, {share.server: share.tasks for share in placed.shares})
        for what in ("claimed", "used"):
            self.places.count(job.spec, placed, what, -1)
            self.places.count(job.spec, after, what, 1)
            self.places.check_capacity(after, what)
        for share in placed.shares:
            self.holders[share.server].discard(event.job)
        for share in after.shares:
            self.holders.setdefault(share.server, set()).add(event.job)
        job.placed = after
        job.sizes.append((self.now, event.tasks))

    def _victim(self, name: str, event: ev.Placed, by: CheckedJob) -> None:
        """Check that a placement may stop this victim."""
        victim = self._job(name)
        if victim is None:
            return
        if victim.phase not in ("placed", "running"):
            self.wrong("victim", f"job {name} stops for job {event.job} and is {victim.phase}")
            return
        if not victim.spec.preemptible and victim.spec.tenant not in self.limited:
            self.wrong("victim", f"job {name} stops for job {event.job}, but may not be stopped")
        self._release(victim)

    def _release(self, job: CheckedJob) -> None:
        """Take in that a job is asked to stop: others may claim its room."""
        if job.phase in ("placed", "running") and job.placed is not None:
            if not self.pairs.leaves(job):
                self.places.count(job.spec, job.placed, "claimed", -1)
            job.phase = "stopping"

    def _attempt(self, event: ev.Started | ev.Stopped | ev.Finished | ev.Failed | ev.StopAsked) -> None:
        """Check an event of a job's present attempt."""
        job = self._job(event.job)
        if job is None:
            return
        if job.placed is None:
            self.wrong("job", f"job {event.job} holds nothing; {type(event).__name__} cannot happen")
            return
        if event.attempt != job.attempt:
            self.wrong(
                "attempt", f"{type(event).__name__} of attempt {event.attempt}; job {event.job} has {job.attempt}"
            )
            return
        if isinstance(event, ev.StopAsked):
            self._release(job)
        elif isinstance(event, ev.Started):
            if job.ran:
                self.wrong("job", f"job {event.job} runs already")
            else:
                self._start(job, job.placed)
        else:
            self._end(job, event)

    def _start(self, job: CheckedJob, placed: ev.Placed) -> None:
        """Check the start of an attempt: its servers are up and free."""
        job.ran, job.began_ms = True, self.now
        job.phase = "running" if job.phase == "placed" else job.phase
        for share in placed.shares:
            if share.server in self.servers and not self.servers[share.server].in_service:
                self.wrong("server", f"job {placed.job} starts on {share.server}, which is out of service")
        if not placed.at_once:
            self._check_data(placed, job.spec)
        if not self.pairs.starts(placed.job, job, self.now):
            self.places.count(job.spec, placed, "used", 1)
            self.places.check_capacity(placed, "used")

    def _end(self, job: CheckedJob, event: ev.Stopped | ev.Finished | ev.Failed) -> None:
        """Check the end of an attempt, and free its servers."""
        placed = job.placed
        assert placed is not None
        self._release(job)
        if not self.pairs.ends(job, self.now) and job.ran:
            self.places.count(job.spec, placed, "used", -1)
        types = {self.servers[share.server].up.gpu_type for share in placed.shares if share.server in self.servers}
        began_ms = job.began_ms if job.ran else self.now
        held = Hold(began_ms, self.now, types, tuple(job.others), job.began_tasks, tuple(job.sizes))
        job.others.clear()
        job.sizes.clear()
        faults: Iterable[str] = ()
        if isinstance(event, ev.Stopped):
            faults = self.work.stopped(job.spec, event, held)
        elif isinstance(event, ev.Finished):
            without = f"job {event.job} has finished without a start"
            faults = self.work.finished(job.spec, event, held) if job.ran else iter([without])
        faults = (*faults, *self.work.within_limit(job.spec, event.job, held))
        for words in faults:
            self.wrong("work", words)
        for share in placed.shares:
            self.holders[share.server].discard(event.job)
        again = isinstance(event, ev.Stopped) and not job.cancelled
        job.phase, job.placed, job.ran = "waiting" if again else "ended", None, False

    def _server_down(self, event: ev.ServerDown) -> None:
        """End what ran on a server that went down, though its host may say so later."""
        for name in self.holders.get(event.server, ()):
            self._release(self.jobs[name])

    # --- places ---

    def _check_place(self, event: ev.Placed, job: CheckedJob, had: Mapping[str, int] | None = None) -> None:
        """Check where a job is placed: its gang, region, servers, GPU types and how close its tasks have to be. Tasks
        that it ``had`` on a server may stay there though it takes no others."""
        spec = job.spec
        self._check_tasks(event, spec, "placed")
        if len({(share.server, share.part) for share in event.shares}) < len(event.shares):
            self.wrong("gang", f"job {event.job} has a server twice")
        if job.bound and event.region != job.bound:
            self.wrong("region", f"job {event.job} is bound to {job.bound}, not {event.region}")
        for share in event.shares:
            self._check_share(event, spec, share, had)
        if spec.within != "cluster":  # that of the event, as was checked
            self._check_levels(event.job, spec.within, event.shares)
        for part in spec.parts:
            own = [share for share in event.shares if share.part == part.name]
            self._check_levels(f"{event.job}/{part.name}", part.within, own)
            types = {self.servers[share.server].up.gpu_type for share in own if share.server in self.servers}
            if len(types) > 1:
                self.wrong("gpu", f"part {part.name} of job {event.job} is on several GPU types: {sorted(types)}")
        self._check_data(event, spec)

    def _check_share(self, event: ev.Placed, spec: JobSpec, share: Share, had: Mapping[str, int] | None) -> None:
        """Check the server of a share of a log: it takes jobs, is where the job is, and is of a type that it takes."""
        server = self.servers.get(share.server)
        stays = had is not None and share.tasks <= had.get(share.server, 0)
        if server is None or not server.in_service or ((server.moves_to or server.closed) and not stays):
            self.wrong("server", f"job {event.job} is placed on {share.server}, which is not in service")
            return
        gang = gang_of(spec, share.part)
        cluster = server.up.cluster if spec.parts and spec.within == "region" else event.cluster
        if (server.up.region, server.up.cluster) != (event.region, cluster):
            self.wrong("region", f"{share.server} is not in cluster {event.cluster} of region {event.region}")
        if gang.gpu_types is not None and server.up.gpu_type not in gang.gpu_types:
            self.wrong("gpu", f"job {event.job} does not run on {server.up.gpu_type}")
        if share.gpus and sum(share.gpus.values()) != share.tasks * need_of(gang, server.up.gpu_type)[0]:
            self.wrong("gpu", f"GPUs of job {event.job} on {share.server} are not those of {share.tasks} tasks")

    def _check_tasks(self, event: ev.Placed | ev.Adopted, spec: JobSpec, words: str) -> None:
        """Check that an event of the log gives a job all tasks of each of its parts, or its own, and no others."""
        least = {part.name: part.tasks for part in spec.parts} or {
            "": spec.tasks if spec.min_tasks is None else spec.min_tasks
        }
        most = {part.name: part.tasks for part in spec.parts} or {
            "": spec.tasks if spec.max_tasks is None else spec.max_tasks
        }
        found = dict.fromkeys(least, 0)
        for share in event.shares:
            found[share.part] = found.get(share.part, 0) + share.tasks
        known = found.keys() == least.keys() and all(least[one] <= found[one] <= most[one] for one in least)
        if not known or any(share.tasks < 1 for share in event.shares):
            tasks = [(share.part, share.tasks) if spec.parts else share.tasks for share in event.shares]
            expected = least if spec.parts else least[""] if least == most else (least[""], most[""])
            self.wrong("gang", f"job {event.job} has {expected} tasks; {tasks} are {words}")

    def _check_levels(self, name: str, within: str, shares: Collection[Share]) -> None:
        """Check that what the log places together is on one server, in one rack or cluster, as it has to be."""
        ups = [self.servers[share.server].up for share in shares if share.server in self.servers]
        places: dict[str, set[Any]] = {
            "server": {share.server for share in shares},
            "rack": {(up.cluster, up.rack) for up in ups},
            "cluster": {up.cluster for up in ups},
        }
        if len(places.get(within, ())) > 1:
            self.wrong("level", f"job {name} has to stay within a {within}")

    def _check_data(self, event: ev.Placed, spec: JobSpec) -> None:
        """Check that the region where a job is placed holds its datasets."""
        for name in spec.datasets if self.with_data else ():
            if not self.data.holds(name, event.region):
                self.wrong("data", f"job {event.job} reads {name}, which is not in {event.region}")

    def check_end(self) -> None:
        """Check that every job has ended at the end of the log."""
        self.seq = 0
        for name, job in self.jobs.items():
            if job.phase != "ended":
                self.wrong("lost", f"job {name} has not ended; it is {job.phase}")


_HANDLERS: Mapping[type[ev.Event], Callable[[_Checker, Any], None]] = {
    ev.ReplicaDropped: _Checker._dropped,
    ev.ServerDown: _Checker._server_down,
    ev.QuotaSet: _Checker._quota_set,
    ev.Submitted: _Checker._submitted,
    ev.Bound: _Checker._bound,
    ev.Cancelled: _Checker._cancelled,
    ev.Placed: _Checker._placed,
    ev.Adopted: _Checker._adopted,
    ev.Shared: lambda checker, event: checker.pairs.shared(event),
    ev.Resized: _Checker._resized,
    ev.StopAsked: _Checker._attempt,
    ev.Started: _Checker._attempt,
    ev.Stopped: _Checker._attempt,
    ev.Finished: _Checker._attempt,
    ev.Failed: _Checker._attempt,
}
_SERVERS: Mapping[type[ev.Event], Callable[[ServerCheck, Any], None]] = {
    ev.ServerUp: ServerCheck.server_up,
    ev.ServerDown: ServerCheck.server_down,
    ev.CapacitySet: ServerCheck.capacity_set,
    ev.MoveAsked: ServerCheck.move_asked,
    ev.ServerClosed: ServerCheck.set_closed,
    ev.ServerOpened: ServerCheck.set_closed,
    ev.ServerMoved: ServerCheck.server_moved,
}
_DATA: Mapping[type[ev.Event], Callable[[DataCheck, Any], None]] = {
    ev.StorageSet: DataCheck.storage_set,
    ev.DatasetCreated: DataCheck.created,
    ev.CopyAsked: DataCheck.copy_asked,
    ev.CopyEnded: DataCheck.copy_ended,
    ev.ReplicaDropped: DataCheck.dropped,
    ev.SolveAsked: DataCheck.solve_asked,
    ev.SolveEnded: DataCheck.solve_ended,
    ev.PlanAdopted: DataCheck.adopted,
}
