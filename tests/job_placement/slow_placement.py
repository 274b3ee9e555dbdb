"""A slow choice of servers by loss of value, as servers are listed, to hold the live fleet against."""

from __future__ import annotations

import bisect

from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job, Server
from mast_opt.problems.job_placement.units import LEVELS, WHOLE
from tests.job_placement.reference import amounts

Free = tuple[list[int], int, int]
"""Room of each GPU, millicores, MiB."""
Chosen = tuple[str, str, str, dict[str, int]]
"""Level, cluster, GPU type, server → tasks."""


def free_on(fleet: Fleet, server: Server) -> Free:
    rooms, cpu, memory = [WHOLE] * server.gpus, server.cpu_mcores, server.memory_mib
    for name in fleet.running():
        job = fleet._books.running[name].job
        for share in fleet.shares(name):
            if share.server == server.name:
                for d, mgpu in share.gpus.items():
                    rooms[d] -= mgpu
                cores, mib = amounts(job, share)
                cpu, memory = cpu - cores, memory - mib
    return rooms, cpu, memory


def put(free: Free, mgpu: int, cpu: int, memory: int) -> Free | None:
    """What is left after one task; None if it does not fit."""
    rooms, cores, mib = sorted(free[0]), free[1] - cpu, free[2] - memory
    if cores < 0 or mib < 0:
        return None
    if mgpu >= WHOLE:
        if rooms.count(WHOLE) * WHOLE < mgpu:
            return None
        rooms = rooms[: len(rooms) - mgpu // WHOLE] + [0] * (mgpu // WHOLE)
    elif mgpu:
        at = bisect.bisect_left(rooms, mgpu)
        if at == len(rooms):
            return None
        rooms[at] -= mgpu
    return rooms, cores, mib


def put_all(free: Free, tasks: int, mgpu: int, cpu: int, memory: int) -> Free | None:
    now: Free | None = free
    for _ in range(tasks):
        if now is None:
            return None
        now = put(now, mgpu, cpu, memory)
    return now


def value(sample: list[list[list[int]]], demand: list[list[int]], kind: int, free: Free) -> int:
    """Milli-GPUs that the arrivals of all samples take, and what each shape would take by itself, at its price."""
    total = 0
    for *needs, cpu, memory, tasks, price in demand:
        more = put_all(free, tasks, needs[kind], cpu, memory) if needs[kind] > 0 else None
        while more is not None:
            total += needs[kind] * tasks * price
            more = put_all(more, tasks, needs[kind], cpu, memory)
    total //= 1000
    for sequence in sample:
        now = free
        for *needs, cpu, memory, tasks in sequence:
            then = put_all(now, tasks, needs[kind], cpu, memory) if needs[kind] >= 0 else None
            now = then if then is not None else now
        total += sum(free[0]) - sum(now[0])
    return total


class SlowPlacement:
    """One question to a fleet, answered without its ledger. Only for jobs that find free capacity."""

    def __init__(self, fleet: Fleet, job: Job) -> None:
        self.fleet, self.job, self.books = fleet, job, fleet._books
        self.arrivals = self.books.state.sample.tolist(), self.books.state.demand.tolist()
        self.free = {
            name: free_on(fleet, server)
            for name, server in self.books.servers.items()
            if name not in self.books.blocked | self.books.over_booked
        }

    def best(self) -> Chosen | None:
        """The best bid without victims."""
        found = []
        for cluster, kind in {(server.cluster, server.gpu_type) for server in self.books.servers.values()}:
            bid = self._in_group(cluster, kind)
            if bid is not None:
                found.append(bid)
        return min(found, key=lambda pair: pair[0])[1] if found else None

    def _in_group(self, cluster: str, kind: str) -> tuple[tuple[object, ...], Chosen] | None:
        job, books = self.job, self.books
        needs = {kind: job.mgpu} if job.gpu_types is None else job.gpu_types
        servers = [s for s in books.servers.values() if (s.cluster, s.gpu_type) == (cluster, kind)]
        region = servers[0].region
        if kind not in needs or not all(region in books.replicas.get(name, ()) for name in job.datasets):
            return None
        first = {s.rack: n for n, s in reversed(list(enumerate(books.servers.values()))) if s.cluster == cluster}
        order = {name: n for n, name in enumerate(books.servers)}
        names = [s.name for s in sorted(servers, key=lambda s: (first[s.rack], order[s.name])) if s.name in self.free]
        fit = {name: self._fit(name, needs[kind]) for name in names}
        racks: dict[str, list[str]] = {}
        for name in names:
            racks.setdefault(books.servers[name].rack, []).append(name)
        widest = (max(fit.values(), default=0), max((sum(fit[n] for n in r) for r in racks.values()), default=0))
        level = next((at for at, most in enumerate((*widest, sum(fit.values()))) if most >= job.tasks), 3)
        if level > LEVELS.index(job.within):
            return None
        parts = [names] if level == 0 else list(racks.values())
        lost, taken = self._pack(parts, fit, needs[kind])
        regional = [s for s in books.servers.values() if s.region == region]
        used = sum(
            sum(share.gpus.values())
            for name in self.fleet.running()
            for share in self.fleet.shares(name)
            if books.servers[share.server].region == region
        )
        over = max(0, level - LEVELS.index(job.prefer))
        load = used / (sum(s.gpus for s in regional) * WHOLE)
        listed = list(books.servers.values())
        return (over, lost, load, listed.index(regional[0]), listed.index(servers[0])), (
            LEVELS[level],
            cluster,
            kind,
            taken,
        )

    def _fit(self, name: str, mgpu: int) -> int:
        count, now = 0, self._after(name, mgpu, 1)
        while now is not None and count < self.job.tasks:
            count += 1
            now = put(now, mgpu, self.job.cpu_mcores, self.job.memory_mib)
        return count

    def _after(self, name: str, mgpu: int, tasks: int) -> Free | None:
        return put_all(self.free[name], tasks, mgpu, self.job.cpu_mcores, self.job.memory_mib)

    def _loss(self, name: str, mgpu: int, tasks: int) -> int:
        kind = self.books.types[self.books.servers[name].gpu_type]
        after = self._after(name, mgpu, tasks)
        assert after is not None
        return max(0, value(*self.arrivals, kind, self.free[name]) - value(*self.arrivals, kind, after))

    def _pack(self, parts: list[list[str]], fit: dict[str, int], mgpu: int) -> tuple[int, dict[str, int]]:
        """Part by part, the largest until one holds the rest, of those the smallest; servers within one likewise, the
        loss of value between equal ones."""
        fit, lost, taken, left = dict(fit), 0, dict[str, int](), self.job.tasks
        while left:
            sizes = [sum(fit[name] for name in part) for part in parts]
            holding = [at for at, size in enumerate(sizes) if size >= left]
            part = min(holding, key=sizes.__getitem__) if holding else sizes.index(max(sizes))
            while left and (able := [name for name in parts[part] if fit[name]]):
                take = max(min(fit[name], left) for name in able)
                name = min(
                    (name for name in able if min(fit[name], left) == take),
                    key=lambda name: (self._loss(name, mgpu, take), sum(self.free[name][0])),
                )
                lost += self._loss(name, mgpu, take)
                taken[name], fit[name], left = take, 0, left - take
        return lost, taken
