"""A slow simulator of order-only policies that shares nothing with the kernels: lists, sorted at every instant."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Job:
    number: int
    submitted: int
    duration: int
    gpus: int
    checkpoint: int = 0
    restart: int = 0
    left: int = 0
    delay: int = 0
    attained: int = 0
    started: int = -1
    """When it began to run; -1 while it does not."""
    shares: list[tuple[int, int]] = field(default_factory=list)

    def end(self) -> int:
        return self.started + self.delay + self.left

    def service(self, now: int) -> int:
        return self.attained + ((now - self.started) * self.gpus if self.started >= 0 else 0)


Row = tuple[int, str, int, tuple[tuple[int, int], ...]]


def simulate(
    jobs: list[Job], servers: int, size: int, policy: str, thresholds: tuple[int, ...] = (), tick: int = 0
) -> list[Row]:
    """Rows of time, what happened, job, and its shares where it was placed."""
    free = [size] * servers
    rows: list[Row] = []
    coming: list[Job] = list(jobs)
    waiting: list[Job] = []
    running: list[Job] = []
    for job in jobs:
        job.left = job.duration

    def level(job: Job, now: int) -> int:
        return sum(job.service(now) >= threshold for threshold in thresholds)

    def change(shares: list[tuple[int, int]], sign: int) -> None:
        for server, gpus in shares:
            free[server] += sign * gpus

    def start(job: Job, shares: list[tuple[int, int]], now: int) -> None:
        job.shares, job.started = shares, now
        rows.append((now, "placed", job.number, tuple(shares)))

    def place(job: Job, now: int) -> bool:
        shares = places(free, size, job.gpus)
        if shares is not None:
            change(shares, -1)
            start(job, shares, now)
        return shares is not None

    now = -1
    while coming or running:
        times = [job.submitted for job in coming[:1]] + [job.end() + tick for job in running]
        if policy == "las":
            times += [falls(job, thresholds, now) for job in running]
        now = min(times)
        for job in [job for job in running if job.end() + tick == now]:
            running.remove(job)
            change(job.shares, 1)
            rows.append((now, "finished", job.number, ()))
        while coming and coming[0].submitted == now:
            waiting.append(coming.pop(0))
            rows.append((now, "submitted", waiting[-1].number, ()))
        if policy in ("fifo", "sjf"):
            if policy == "sjf":
                waiting.sort(key=lambda job: (job.duration, job.number))
            while waiting and place(waiting[0], now):
                running.append(waiting.pop(0))
            running.sort(key=lambda job: (job.end(), job.number))
            continue

        def key(job: Job, now: int = now) -> int:
            if policy == "las":
                return level(job, now) * len(jobs) + job.number
            return job.end() - now if job.started >= 0 else job.delay + job.left

        quota, refused, claims = servers * size, [], []
        in_order = sorted(running + waiting, key=key)
        for job in in_order:
            if job.gpus <= quota:
                quota -= job.gpus
                claims += [job] if job.started < 0 else []
            elif job.started >= 0:
                refused.append(job)
                change(job.shares, 1)
        placed: dict[int, list[tuple[int, int]]] = {}
        stopped = []
        for job in in_order:
            if job in refused and all(free[server] >= gpus for server, gpus in job.shares):
                change(job.shares, -1)
            elif job in refused:
                stopped.append(job)
            elif job in claims and (shares := places(free, size, job.gpus)) is not None:
                placed[job.number] = shares
                change(shares, -1)
        for job in stopped:
            held = now - job.started
            work = max(0, held - job.delay)
            job.left -= work if job.checkpoint == 0 else work // job.checkpoint * job.checkpoint
            job.attained, job.delay, job.started, job.shares = job.service(now), job.restart, -1, []
            running.remove(job)
            rows.append((now, "stopped", job.number, ()))
        for job in claims:
            if job.number in placed:
                start(job, placed[job.number], now)
                waiting.remove(job)
                running.append(job)
        waiting += stopped
        running.sort(key=lambda job: (key(job), order_of_start(rows, job)))
    return rows


def order_of_start(rows: list[Row], job: Job) -> int:
    return max(at for at, row in enumerate(rows) if row[1] == "placed" and row[2] == job.number)


def falls(job: Job, thresholds: tuple[int, ...], after: int) -> int:
    """When a running job passes its next threshold."""
    passes = [job.started - (job.attained - one) // job.gpus for one in thresholds if one > job.attained]
    return min([time for time in passes if time > after], default=2**62)


def places(free: list[int], size: int, gpus: int) -> list[tuple[int, int]] | None:
    if gpus <= size:
        fitting = [server for server in range(len(free)) if free[server] >= gpus]
        return [(min(fitting, key=lambda server: free[server]), gpus)] if fitting else None
    whole = [server for server in range(len(free)) if free[server] == size][: gpus // size]
    if len(whole) < gpus // size:
        return None
    rest = gpus % size
    others = [server for server in range(len(free)) if server not in whole and free[server] >= rest]
    if rest and not others:
        return None
    tail = [(max(others, key=lambda server: free[server]), rest)] if rest else []
    return [(server, size) for server in whole] + tail
