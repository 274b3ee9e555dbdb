"""A trace replayed under a policy that decides only on an order: a queue for each region.

Servers of a region are equal, and a job needs nothing but GPUs of them. A job that fits on one server goes to the
fullest one that holds it; a larger one takes whole servers, and what is left over of one more.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mast_opt.core.errors import Fault, InstanceError, UsageError
from mast_opt.core.wording import did_you_mean
from mast_opt.live.loop.events import Event, Finished, Placed, ServerUp, Stopped, Stored, Submitted
from mast_opt.live.loop.job_log import PLACED, STOPPED, SUBMITTED, JobLog
from mast_opt.live.simulation import kernel
from mast_opt.live.simulation.replay_state import QueueJobs
from mast_opt.live.simulation.traces.trace import JobTrace, Submissions
from mast_opt.problems.job_placement.live_fleet.types import Share
from mast_opt.problems.job_placement.units import LEVELS, MOST_GPUS, SERVER, WHOLE, Ints

REFUSED = frozenset({"cpu_cores", "memory_gb", "model"})
"""Optional columns of submissions that may say nothing here."""
READS = REFUSED | {"home_region", "duration_s", "steps", "limit_s", "checkpoint_s", "restart_s"}
"""Optional columns of submissions that are looked at, the last two where jobs are stopped."""
MOST_LISTED = 20
"""Jobs with the same fault that are listed."""


@dataclass(frozen=True, eq=False)
class OrderOnlyLog:
    """The log of a trace under an order-only policy."""

    trace: JobTrace
    rows: JobLog
    """Jobs are numbered as in the trace. Of rows at the same time those of the first region come first."""
    share_end: Ints
    """[row PLACED]: where its shares end; they begin where those of the one before end."""
    share_server: Ints
    """Position in the trace of each share's server, for all placements."""
    share_gpus: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def events(self) -> Iterator[Stored]:
        """The replayed log as events: first the servers, at the time of the first row, then its rows."""
        seq, at = 0, int(self.rows.at_ms[0]) if len(self.rows) else 0
        for server in self.trace.servers:
            seq += 1
            yield Stored(seq, at, ServerUp.of(server))
        for time, event in self._rows():
            seq += 1
            yield Stored(seq, time, event)

    def _rows(self) -> Iterator[tuple[int, Event]]:
        """Events of the log, from the rows of the replay."""
        jobs, rows = self.trace.submissions, self.rows
        attempts = [0] * len(jobs)
        placement, stop, begin = 0, 0, 0
        for at, kind, job in zip(rows.at_ms.tolist(), rows.kind.tolist(), rows.job.tolist()):
            name = jobs.labels[job]
            if kind == SUBMITTED:
                yield at, Submitted(name, jobs.spec(job))
            elif kind == PLACED:
                attempts[job] += 1
                end = int(self.share_end[placement])
                yield at, self._placed(job, attempts[job], begin, end)
                placement, begin = placement + 1, end
            elif kind == STOPPED:
                work, lost = int(rows.stop_work_ms[stop]), int(rows.stop_lost_ms[stop])
                yield at, Stopped(name, attempts[job], work, lost)
                stop += 1
            else:
                yield at, Finished(name, attempts[job])

    def _placed(self, job: int, attempt: int, begin: int, end: int) -> Placed:
        """Event of a replayed placement, with the servers and GPUs of its shares."""
        task = int(self.trace.submissions.mgpu[job])
        held = zip(self.share_server[begin:end].tolist(), self.share_gpus[begin:end].tolist())
        shares = tuple(Share(self.trace.servers[at].name, gpus * WHOLE // task, {}) for at, gpus in held)
        first = self.trace.servers[self.share_server[begin]]
        return Placed(self.trace.submissions.labels[job], attempt, first.region, first.cluster, shares, at_once=True)


def replay_trace(
    trace: JobTrace,
    policy: str,
    *,
    thresholds_gpu_s: tuple[int, ...] | None = None,
    habits: kernel.Habits = kernel.OURS,
    until_ms: int = kernel.FOREVER,
    on_progress: Callable[[int, int], None] | None = None,
) -> OrderOnlyLog:
    """The log of a trace under an order-only policy.

    Args:
        policy: one of ``POLICIES``.
        thresholds_gpu_s: for ``las``, ascending GPU-seconds after which a job falls to the next level; 8 GPU-hours
            unless given.
        habits: of other simulators, to compare with them.
        until_ms: the last ms that is replayed.
        on_progress: called with rows and time of the log of the region that is replayed; it may raise, which ends
            the replay.

    Raises:
        UsageError: there is no such policy, or thresholds are not ascending, or the policy has none.
        InstanceError: what the trace asks for that these policies cannot do, such as cores, data, or unequal servers,
            and jobs that fit on no region's empty servers.
    """
    if policy not in kernel.POLICIES:
        hint = did_you_mean(policy, kernel.POLICIES)
        raise UsageError(f"there is no policy called {policy!r}; expected one of: {', '.join(kernel.POLICIES)}{hint}")
    thresholds = _thresholds(policy, thresholds_gpu_s)
    jobs = trace.submissions
    home = home_regions(trace)
    check_order_only(trace, home)
    parts: list[tuple[kernel.Replayed, Ints, Ints]] = []
    position = {server.name: at for at, server in enumerate(trace.servers)}
    for at, region in enumerate(trace.regions):
        mine, servers = np.flatnonzero(home == at), trace.servers_of[region]
        if not len(mine):
            continue
        queue = QueueJobs(
            submitted=jobs.submitted_ms[mine],
            duration=jobs.duration_ms[mine],
            need=jobs.gang_mgpu[mine] // WHOLE,
            checkpoint=jobs.checkpoint_ms[mine],
            restart=jobs.restart_ms[mine],
        )
        done = kernel.replay(
            queue,
            len(servers),
            servers[0].gpus,
            policy,
            thresholds=thresholds,
            habits=habits,
            until_ms=until_ms,
            on_progress=on_progress,
        )
        parts.append((done, mine, np.array([position[server.name] for server in servers])))
    return _joined(trace, parts)


def _thresholds(policy: str, given: tuple[int, ...] | None) -> tuple[int, ...]:
    """Thresholds of the policy ``las``, GPU-ms: those given, or those of Tiresias. Raises UsageError."""
    if given is None:
        return kernel.TIRESIAS_THRESHOLDS_GPU_MS
    if policy != "las":
        raise UsageError(f"{policy} has no thresholds; las has")
    if any(not 0 < one < 2**40 for one in given) or list(given) != sorted(set(given)):
        raise UsageError(f"thresholds are {list(given)}; expected ascending whole numbers of GPU-seconds above 0")
    return tuple(one * 1000 for one in given)


def home_regions(trace: JobTrace) -> Ints:
    """[J] the region whose queue each job is in: its home region, or the only one; -1 where neither is."""
    place = {region: at for at, region in enumerate(trace.regions)}
    only = 0 if len(trace.regions) == 1 else -1
    return np.array([place.get(region, only) for region in trace.submissions.home_region], np.int64)


def check_order_only(trace: JobTrace, home: Ints) -> None:
    """Raises InstanceError where a trace asks for what order-only policies cannot do."""
    faults = [*_server_faults(trace), *_job_faults(trace, home)]
    if faults:
        raise InstanceError(faults, "order-only policies (fifo, sjf, srtf, las) cannot run this trace")


def _server_faults(trace: JobTrace) -> Iterator[Fault]:
    """Faults of a trace's servers under order-only policies: unequal ones in a region, quotas, failures."""
    for region, servers in trace.servers_of.items():
        for what in ("cluster", "gpu_type", "gpus"):
            found = sorted({str(getattr(server, what)) for server in servers})
            if len(found) > 1:
                yield Fault("servers", f"one {what} in all of region {region}", column=what, value=", ".join(found[:4]))
        if servers and servers[0].gpus == 0:
            yield Fault("servers", f"servers with GPUs in region {region}", column="gpus", value="0")
    if trace.quotas:
        yield Fault("quotas", "no quotas")
    if trace.submissions.parts:
        yield Fault("job_parts", "no jobs of several parts: servers are equal here")
    if trace.surroundings.happenings:
        yield Fault("happenings", "nothing that happens: servers do not fail here")


def _job_faults(trace: JobTrace, home: Ints) -> Iterator[Fault]:
    """Faults of a trace's jobs under order-only policies, which look at whole GPUs of equal servers alone."""
    jobs = trace.submissions
    count, size = _sizes(trace, home)
    gang, task = jobs.gang_mgpu, jobs.mgpu
    whole = (task > 0) & (task % WHOLE == 0)
    gpus, each = gang // WHOLE, np.maximum(task // WHOLE, 1)
    large = whole & (gpus > size)
    split = large & (np.maximum(size, 1) % each != 0)
    fits = gpus <= count * size
    everywhere = np.zeros(len(jobs), np.bool_)
    typed, reading = everywhere.copy(), everywhere.copy()
    named = np.array([model != "" for model in jobs.model or [""] * len(jobs)], np.bool_)
    typed[list(jobs.gpu_types)] = True
    reading[list(jobs.datasets)] = True
    types: Mapping[str, set[str]] = {
        region: {server.gpu_type for server in servers} for region, servers in trace.servers_of.items()
    }
    for job, needs in jobs.gpu_types.items():
        at = int(home[job])
        here = types[trace.regions[at]] if at >= 0 else set()
        typed[job] = any(needs.get(kind) != int(task[job]) for kind in here)
    checks = (
        (home < 0, "home_region", "a region, since the trace has several"),
        (jobs.duration_ms < 0, "duration_s", "how long the job runs"),
        ((jobs.limit_ms > 0) & (jobs.limit_ms < jobs.duration_ms), "limit_s", "a limit that the job keeps"),
        (~whole, "gpus", "whole GPUs, at least one"),
        ((home >= 0) & ~fits, "gpus", "no more GPUs in all tasks than its region has"),
        ((home >= 0) & fits & split, "gpus", "tasks that fill a server, for a job of several servers"),
        ((home >= 0) & large & (jobs.within == SERVER), "within", f"{LEVELS[-1]}: the job is larger than a server"),
        (jobs.cpu_mcores > 0, "cpu_cores", "0: only GPUs are looked at"),
        (jobs.memory_mib > 0, "memory_gb", "0: only GPUs are looked at"),
        (typed, "gpu_types", "the type of its home region, and no other number of GPUs on it"),
        (named, "model", "no model: servers are equal"),
        (reading, "datasets", "no datasets: only GPUs are looked at"),
    )
    for mask, column, expected in checks:
        found = np.flatnonzero(mask)
        for job in found[:MOST_LISTED].tolist():
            yield Fault("submissions", f"{expected} (job {jobs.labels[job]})", column=column)
        if len(found) > MOST_LISTED:
            yield Fault("submissions", expected, column=column, count=len(found) - MOST_LISTED)


def _sizes(trace: JobTrace, home: Ints) -> tuple[Ints, Ints]:
    """[J] servers of each job's region, and GPUs of one."""
    servers = [trace.servers_of[region] for region in trace.regions]
    count = np.array([*(len(one) for one in servers), 0], np.int64)
    size = np.array([*(one[0].gpus if one else 0 for one in servers), MOST_GPUS], np.int64)
    return count[home], size[home]


def _joined(trace: JobTrace, parts: list[tuple[kernel.Replayed, Ints, Ints]]) -> OrderOnlyLog:
    """The logs of all regions as one."""
    jobs: Submissions = trace.submissions
    at_ms = np.concatenate([part.at_ms for part, _, _ in parts])
    kind = np.concatenate([part.kind for part, _, _ in parts])
    job = np.concatenate([mine[part.job] for part, mine, _ in parts]).astype(np.int32)
    order = np.argsort(at_ms, kind="stable")
    placed, stopped = order[kind[order] == PLACED], order[kind[order] == STOPPED]
    placement = (np.cumsum(kind == PLACED) - 1)[placed]
    counts = np.concatenate([part.placed_shares for part, _, _ in parts]).astype(np.int64)
    begins = np.cumsum(counts) - counts
    ends = np.cumsum(counts[placement])
    share = np.arange(int(counts.sum())) + np.repeat(begins[placement] - ends + counts[placement], counts[placement])
    stop = (np.cumsum(kind == STOPPED) - 1)[stopped]
    supply = sum(server.gpus for server in trace.servers) * WHOLE
    rows = JobLog(
        jobs=jobs.labels,
        tier=jobs.tier,
        mgpu=jobs.gang_mgpu,
        duration_ms=jobs.duration_ms,
        at_ms=at_ms[order],
        kind=kind[order],
        job=job[order],
        at_once=True,
        stop_work_ms=np.concatenate([part.stop_work for part, _, _ in parts])[stop],
        stop_lost_ms=np.concatenate([part.stop_lost for part, _, _ in parts])[stop],
        supply_at_ms=at_ms[order][:1],
        supply_mgpu=np.full(min(1, len(order)), supply, np.int64),
    )
    servers = np.concatenate([servers[part.share_server] for part, _, servers in parts])
    gpus = np.concatenate([part.share_gpus for part, _, _ in parts]).astype(np.int64)
    return OrderOnlyLog(trace, rows, ends, servers[share], gpus[share])
