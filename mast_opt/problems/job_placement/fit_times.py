"""Times at which tasks of one size fit on servers if all work there ends at its limit: server by server, and group by
group of the servers on which a gang may run together.
"""

import bisect
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mast_opt.problems.job_placement.units import WHOLE

NOW = 0
"""Time of what fits already."""
FOREVER = 1 << 60
"""Time of what fits when work without a limit ends."""
Group = tuple[str, ...]
"""Cluster and GPU type of servers, and their rack where a gang stays in one."""


class Use(NamedTuple):
    """Capacity of a server that work holds."""

    mgpu_of: Mapping[int, int]
    """GPU → milli-GPUs; those of a pool under 0."""
    cpu_mcores: int
    memory_mib: int


class Task(NamedTuple):
    """Needs of one task."""

    mgpu: int
    cpu_mcores: int
    memory_mib: int


class Room:
    """Free capacity of an empty server. The GPUs of a ``pool`` have no numbers."""

    def __init__(self, gpus: int, cpu_mcores: int, memory_mib: int, *, pool: bool = False) -> None:
        self._pool = pool
        self._free = [gpus * WHOLE] if pool else [WHOLE] * gpus
        self._cpu_mcores, self._memory_mib = cpu_mcores, memory_mib

    def times(self, uses: Sequence[tuple[int, Use]], task: Task, most: int) -> list[int]:
        """Times from which the server has one place for a task, two, and so on, at most so many; ``NOW`` for those that
        it has already. ``uses``: (end, what it holds) of all work on it, ascending."""
        for _, use in uses:
            self._change(use, -1)
        times = [NOW] * self._tasks(task, most)
        for end_ms, use in uses:
            self._change(use, 1)
            times += [end_ms] * (self._tasks(task, most) - len(times))
        return times

    def _change(self, use: Use, sign: int) -> None:
        """Work gives back what it holds, or (sign −1) takes it."""
        for gpu, mgpu in use.mgpu_of.items():
            self._free[gpu] += sign * mgpu
        self._cpu_mcores += sign * use.cpu_mcores
        self._memory_mib += sign * use.memory_mib

    def _tasks(self, task: Task, most: int) -> int:
        """Tasks that fit, at most so many."""
        mgpu, found = task.mgpu, most
        if self._pool and mgpu:
            found = self._free[0] // mgpu
        elif mgpu >= WHOLE:
            found = sum(free == WHOLE for free in self._free) // (mgpu // WHOLE)
        elif mgpu:
            found = sum(free // mgpu for free in self._free if free > 0)
        if task.cpu_mcores:
            found = min(found, self._cpu_mcores // task.cpu_mcores)
        if task.memory_mib:
            found = min(found, self._memory_mib // task.memory_mib)
        return max(0, min(found, most))


def end_by_limit(started_ms: int | None, limit_ms: int | None, now_ms: int) -> int:
    """Time when running work of a fleet ends by its limit; past its limit, it is taken to run for another one."""
    if started_ms is None or limit_ms is None:
        return FOREVER
    past_ms = max(0, now_ms - started_ms - limit_ms)
    return started_ms + limit_ms + -(-past_ms // limit_ms) * limit_ms


class GroupTimes:
    """Times at which a gang fits into one of the groups of a region's servers.

    Args:
        slots: places that it needs in a group.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._times: dict[str, list[int]] = {}
        """Server → times from which it has one place, two, and so on."""
        self._group_of: dict[str, Group] = {}
        self._groups: dict[Group, list[int]] = {}
        """The times of all servers of a group, ascending."""

    def clear(self) -> None:
        """Forget all servers."""
        self._times, self._group_of, self._groups = {}, {}, {}

    def put(self, server: str, group: Group, times: list[int], *, last: bool = False) -> None:
        """Replace the times of a server. ``last``: it has none yet, and ``sort`` is called before anything is asked."""
        old = self._group_of.get(server)
        if old is not None:
            there = self._groups[old]
            for time in self._times.get(server, ()):
                del there[bisect.bisect_left(there, time)]
        self._times[server], self._group_of[server] = times, group
        there = self._groups.setdefault(group, [])
        if last:
            there += times
            return
        for time in times:
            bisect.insort(there, time)

    def sort(self) -> None:
        """Bring the times of all groups into order."""
        for times in self._groups.values():
            times.sort()

    def by(self) -> int:
        """The first time at which the gang fits into a group, ``NOW`` or ``FOREVER``."""
        needed = self._slots
        return min((times[needed - 1] for times in self._groups.values() if len(times) >= needed), default=FOREVER)

    @property
    def ever(self) -> bool:
        """Whether the gang fits when all work has ended."""
        return any(len(times) >= self._slots for times in self._groups.values())

    def fits(self, by_ms: int) -> bool:
        """Whether the gang fits at that time, if all work ends at its limit."""
        return any(bisect.bisect_right(times, by_ms) >= self._slots for times in self._groups.values())

    def fit_on(self, servers: tuple[str, ...], by_ms: int) -> bool:
        """Whether the gang fits on these servers of one group at that time."""
        return sum(bisect.bisect_right(self._times.get(name, ()), by_ms) for name in servers) >= self._slots

    def servers(self, by_ms: int) -> tuple[str, ...]:
        """Servers on which it fits at a time at which it does. Those that become free last are taken first, so that
        others may have what is free before."""
        groups = self._groups.items()
        group = next(group for group, times in groups if bisect.bisect_right(times, by_ms) >= self._slots)
        there = [
            (own[places - 1], places, name)
            for name, own in self._times.items()
            if self._group_of.get(name) == group and (places := bisect.bisect_right(own, by_ms))
        ]
        there.sort(key=lambda one: (one[0] if by_ms == FOREVER else -one[0], one[1]))
        found, needed = list[str](), self._slots
        for _, places, name in there:
            if needed > 0:
                found.append(name)
                needed -= places
        return tuple(found)
