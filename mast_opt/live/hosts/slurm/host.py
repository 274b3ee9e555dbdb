"""Slurm behind the protocol of hosts: held jobs come in, and a start pins a job to nodes and releases it.

A job is ours if it was submitted with ``--hold`` and the comment ``mast-opt``. Every other job that runs is taken over
as work that cannot be stopped. Slurm is right: where a job runs on other nodes than the loop chose, the loop follows.
"""

import json
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mast_opt.core.errors import InputError
from mast_opt.live.hosts.kueue.jobs import shares_at
from mast_opt.live.hosts.protocol import Attempt, Can
from mast_opt.live.hosts.slurm.reading import Cluster, cluster_of, printed, texts_now
from mast_opt.live.hosts.slurm.request import number
from mast_opt.live.hosts.slurm.specs import running_spec_of, servers_of, spec_of, state_of
from mast_opt.live.hosts.tracking import Phase, SharedHost, Task, Tracker, taken_over
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.events import Event
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.problems.job_placement.live_fleet.types import Server, Share

OURS = re.compile(r"mast-opt(?:$|\s)")
ENDED = {"CANCELLED": "it was cancelled", "TIMEOUT": "it reached its time limit"}
"""State of a job that has ended → what is said of it; of other states, their name."""
ALIVE = ("PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "STOPPED", "REQUEUED", "REQUEUE_HOLD")


class Programs:
    """Slurm's programs on this machine. Every method raises InputError where one is missing, fails or is late.

    Args:
        limit_s: how long each of them may take.
    """

    def __init__(self, limit_s: float = 20.0) -> None:
        self._limit_s = limit_s

    def texts(self) -> tuple[Mapping[str, str], int]:
        """Texts that the programs of ``PROGRAMS`` print, and the time."""
        return texts_now(self._limit_s)

    def call(self, *words: str) -> None:
        """Call a program of Slurm that changes a job."""
        printed(words, self._limit_s)


class SlurmHost(SharedHost[Tracker]):
    """Host that runs the held jobs of a Slurm cluster.

    Args:
        programs: of Slurm.
        limit_grace_s: longest time from a job's limit until Slurm has ended it; None: as its configuration says.
        every_s: seconds between two looks.
        on_problem: called with why Slurm cannot be looked at, and with an empty text when it can be again.
    """

    name = "slurm"
    can = frozenset({Can.STOP})
    """Slurm resizes no job by itself: ``scontrol update NumNodes`` of a running one only takes nodes away (manual of
    22.05). It gets more only by merging with another job, where ``permit_job_expansion`` is set."""

    def __init__(
        self,
        programs: Programs,
        *,
        limit_grace_s: float | None = None,
        every_s: float = 5.0,
        on_problem: Callable[[str], object] = lambda words: None,
    ) -> None:
        super().__init__(Tracker(), "Slurm starts and stops jobs", every_s, on_problem)
        self._limit_grace_s = limit_grace_s
        self._programs = programs
        self._cluster: Cluster | None = None
        self._jobs: dict[str, Mapping[str, Any]] = {}
        self._thread: threading.Thread | None = None

    def servers(self) -> tuple[Server, ...]:
        """Nodes that take jobs now, for a new log. Raises InputError."""
        self._look()
        assert self._cluster is not None
        return tuple(servers_of(self._cluster).values())

    # --- Host ---

    def resume(self, jobs: Iterable[JobRecord]) -> None:
        """Take over the jobs of a log, which are jobs of Slurm. Raises InputError."""
        if self._cluster is None:
            self._look()
        with self._lock:
            self._tracker = Tracker()
            for one in jobs:
                home, _, key = one.name.rpartition(":")
                self._tracker.tasks[one.name] = taken_over(one, key, home)
            self._fresh = True

    def begin(self) -> None:
        """Look at Slurm and act in a thread from now on, until ``close``."""
        self._thread = threading.Thread(target=self._run, name="mast-opt slurm", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the thread of the Slurm host; jobs go on."""
        self._stop.set()
        self._due.set()
        if self._thread is not None:
            self._thread.join()

    def reports(self, now_ms: int) -> Sequence[Event]:
        """Events of Slurm's jobs and nodes since the last call."""
        with self._lock:
            self._fresh = False
            return [] if self._cluster is None else list(self._reports(self._cluster))

    def unenforced(self) -> str:
        """Partitions in which Slurm ends no job for its limit, in words; empty if there are none."""
        partitions = () if self._cluster is None else self._cluster.partitions.values()
        names = [one.name for one in partitions if one.over_s is None]
        return f"OverTimeLimit of partition {', '.join(names)} is UNLIMITED" if names else ""

    def observe(self) -> Collection[Attempt]:
        """Attempts of jobs that run in Slurm."""
        with self._lock:
            tasks = [one for one in self._tracker.tasks.values() if one.phase is Phase.RUNNING]
            return {(one.job, one.attempt) for one in tasks if state_of(self._jobs.get(one.key)) == "RUNNING"}

    # --- looking ---

    def _look(self) -> None:
        """Read what Slurm's programs print. Raises InputError."""
        texts, now_s = self._programs.texts()
        cluster = cluster_of(texts, now_s)
        with self._lock:
            self._cluster = cluster
            self._jobs = {str(one["job_id"]): one for one in json.loads(texts["squeue.json"])["jobs"]}
            self._fresh = True

    def step(self) -> None:
        """Look at Slurm once, and do what is due for its jobs. Raises InputError if it cannot be reached."""
        self._look()
        self._call()
        self.act()

    def _run(self) -> None:
        """Body of the Slurm host's thread."""
        failures = 0
        while not self._stop.is_set():
            self._due.wait(self._every_s)
            self._due.clear()
            if self._stop.is_set():
                return
            try:
                self.step()
                failures, words = 0, ""
            except InputError as error:
                failures, words = failures + 1, str(error)
            self._note_problem(words)
            if failures:
                self._wait_after(failures)

    # --- acting ---

    def act(self) -> None:
        """Hold, pin, release and stop jobs as the loop wants now. Raises InputError if a program is late or missing."""
        with self._lock:
            todo = [words for task in self._tracker.tasks.values() if not task.home for words in self._due_for(task)]
        for words in todo:
            self._programs.call(*words)
        if todo:
            self._due.set()  # look at what has come of it

    def _due_for(self, task: Task) -> Iterator[tuple[str, ...]]:
        """Calls of Slurm's programs that are due for a job."""
        job = self._jobs.get(task.key)
        state = state_of(job)
        if job is None or state not in ("PENDING", "RUNNING"):
            return
        held = state == "PENDING" and not number(job["priority"])
        if task.stopping and task.cancelled:
            yield "scancel", task.key
        elif state == "RUNNING":
            if task.stopping:
                yield "scontrol", "requeuehold", task.key
        elif task.phase is Phase.WANTED and not task.stopping:
            if held:
                yield self._pinned(task)
                yield "scontrol", "release", task.key
        elif not held:
            yield "scontrol", "hold", task.key
        elif job.get("required_nodes"):
            yield "scontrol", "update", f"jobid={task.key}", "reqnodelist="

    def _pinned(self, task: Task) -> tuple[str, ...]:
        """Call that pins a held job to the nodes that the loop has chosen."""
        assert self._cluster is not None
        chosen = {share.server for share in task.shares}
        names = [name for name in self._cluster.names if name in chosen]
        return "scontrol", "update", f"jobid={task.key}", f"reqnodelist={','.join(names)}", "starttime=now"

    # --- what Slurm says ---

    def _reports(self, cluster: Cluster) -> Iterator[Event]:
        """Events that the loop has to learn from Slurm."""
        tracker = self._tracker
        yield from tracker._answers
        tracker._answers.clear()
        yield from tracker.changed_servers(
            servers_of(cluster), dict.fromkeys(cluster.names, "Slurm starts no jobs on it")
        )
        running = {str(one.number): one for one in cluster.running}
        for phase in (Phase.RUNNING, Phase.WANTED, Phase.WAITING):  # room is given before it is taken
            for task in [one for one in tracker.tasks.values() if one.phase is phase]:
                yield from self._follow(task, cluster, running)
        known = {task.key for task in tracker.tasks.values()}
        for key, job in self._jobs.items():
            ours, state = OURS.match(str(job.get("comment") or "")), state_of(job)
            if key in known or state not in ("PENDING", "RUNNING"):
                continue
            if ours and (spec := spec_of(cluster, job, self._limit_grace_s)) is not None:
                tracker.tasks[key] = Task(key, key, spec)
                yield ev.Submitted(key, spec)
                yield from self._follow(tracker.tasks[key], cluster, running)
            elif not ours and key in running:
                name, spec = f"slurm:{key}", running_spec_of(cluster, job, running[key], self._limit_grace_s)
                tracker.tasks[name] = Task(name, key, spec, "slurm")
                yield ev.Submitted(name, spec)
                yield from self._follow(tracker.tasks[name], cluster, running)

    def _follow(self, task: Task, cluster: Cluster, running: Mapping[str, Any]) -> Iterator[Event]:
        """Report what has become of a job in Slurm."""
        job, tracker = self._jobs.get(task.key), self._tracker
        state = state_of(job)
        if state not in ALIVE:
            yield from self._end(task, state)
        elif task.key in running:
            names = [cluster.names[at] for at in running[task.key].nodes]
            there = {share.server for share in task.shares} == set(names)
            if task.phase is Phase.WANTED and there and not task.stopping:
                task.phase = Phase.RUNNING
                yield ev.Started(task.job, task.attempt)
            elif not there or task.phase is Phase.WAITING:
                if not all(name in tracker.servers for name in names):
                    return
                if task.phase is not Phase.WAITING:
                    yield from tracker.stopped(task)
                yield from self._adopted(task, names)
        elif state == "PENDING" and (task.phase is Phase.RUNNING or (task.phase is Phase.WANTED and task.stopping)):
            assert job is not None
            if not number(job["priority"]) or task.phase is Phase.RUNNING:
                yield from tracker.stopped(task)

    def _end(self, task: Task, state: str) -> Iterator[Event]:
        """Report that a job has ended in Slurm, or is not there any more."""
        del self._tracker.tasks[task.job]
        if task.phase is Phase.WAITING:
            yield ev.Cancelled(task.job)
        elif state == "COMPLETED" or (task.home and not state):
            yield ev.Finished(task.job, task.attempt)
        else:
            yield ev.Failed(
                task.job, task.attempt, ENDED.get(state, state.lower() or "Slurm does not know it any more")
            )

    def _adopted(self, task: Task, names: Sequence[str]) -> Iterator[Event]:
        """Report that a job runs on nodes as its next attempt."""
        tracker = self._tracker
        held: dict[str, dict[int, int]] = {name: {} for name in names}
        for one in tracker.tasks.values():
            for share in one.shares if one is not task else ():
                for gpu, amount in share.gpus.items() if share.server in held else ():
                    held[share.server][gpu] = held[share.server].get(gpu, 0) + amount
        each, more = divmod(task.spec.tasks, len(names))
        shares: list[Share] = []
        for at, name in enumerate(names):
            server, kinds = tracker.servers[name], task.spec.gpu_types or {}
            mgpu = kinds.get(server.gpu_type, task.spec.mgpu)
            spec = replace(task.spec, tasks=each + (at < more), gpu_types=None, mgpu=mgpu)
            shares += shares_at(spec, name, server.gpus, held[name])
        task.shares, task.phase, task.attempt, task.stopping = tuple(shares), Phase.RUNNING, task.attempt + 1, False
        first = tracker.servers[names[0]]
        yield ev.Adopted(task.job, task.attempt, first.region, first.cluster, task.shares)
