"""State at a time as a log tells it: jobs that wait and run, servers and what is claimed of them, and data. It is kept
by the events alone, for figures that need more than the times of jobs."""

from collections.abc import Collection

import numpy as np

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.datasets import Datasets
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.log_fold import GPU_MILLI, LogFold, PastJob, PastServer
from mast_opt.problems.job_placement.live_fleet.types import Part
from mast_opt.problems.job_placement.units import WHOLE_JOB_LEVELS, Ints

MGPU, CPU, MEMORY = range(3)
ANY_NUMBER = 1 << 62
"""Number of tasks that fit if they need nothing of a resource."""
_LEVEL = WHOLE_JOB_LEVELS.index
_MOVES_DATA = ev.DatasetCreated, ev.CopyEnded, ev.ReplicaDropped


class PastRoom:
    """Room on servers, of which some take no work now."""

    def __init__(self, servers: Collection[PastServer]) -> None:
        ups = [server.up for server in servers]
        self._rows = {up.server: (row, up) for row, up in enumerate(ups)}
        self._open = {server.up.server: server for server in servers if server.takes_work}
        self._free: Ints = np.zeros((len(ups), 3), np.int64)
        kinds = {kind: at for at, kind in enumerate(dict.fromkeys(up.gpu_type for up in ups))}
        self._kinds = list(kinds)
        self._kind: Ints = np.array([kinds[up.gpu_type] for up in ups], np.int64)
        self._near = {
            "server": _numbered([(up.region, up.cluster, up.rack, up.server) for up in ups]),
            "rack": _numbered([(up.region, up.cluster, up.rack) for up in ups]),
            "cluster": _numbered([(up.region, up.cluster) for up in ups]),
        }
        self._changed = set(self._open)

    def changed(self, server: str) -> None:
        """Note that another amount of a server is free in the past state."""
        self._changed.add(server)

    def follow(self, server: PastServer) -> bool:
        """Note whether a server takes work in the past state now; False where it is not the one that there was."""
        name = server.up.server
        row, up = self._rows.get(name, (0, None))
        if up != server.up:
            return False
        if server.takes_work:
            self._open[name] = server
            self._changed.add(name)
        elif self._open.pop(name, None) is not None:
            self._free[row] = 0
        return True

    def regions(self, job: PastJob) -> tuple[str, ...]:
        """Regions in which the job fits without a stop, wherever its data is; of several parts, each by itself."""
        for name in self._changed & self._open.keys():
            self._free[self._rows[name][0]] = self._open[name].free
        self._changed.clear()
        found = (self._regions_of(one, min(one.within, job.spec.within, key=_LEVEL)) for one in job.spec.gangs)
        return tuple(sorted(set[str].intersection(*found)))

    def _regions_of(self, gang: JobSpec | Part, within: str) -> set[str]:
        """Regions in which a gang fits without a stop."""
        types = gang.gpu_types
        needs = [gang.mgpu if types is None else types.get(kind, -1) for kind in self._kinds]
        rows = np.flatnonzero(self._free[:, MGPU] > 0) if all(needs) else np.arange(len(self._free))
        free = self._free[rows]
        mgpu = np.array(needs, np.int64)[self._kind[rows]]
        tasks: Ints = np.where(mgpu > 0, free[:, MGPU] // np.maximum(mgpu, 1), ANY_NUMBER)
        for at, need in ((CPU, gang.cpu_mcores), (MEMORY, gang.memory_mib)):
            if need:
                tasks = np.minimum(tasks, free[:, at] // need)
        tasks[(mgpu < 0) | (tasks < 0) | (tasks == ANY_NUMBER)] = 0
        group, region = self._near[within]
        room = np.bincount(group[rows], weights=tasks, minlength=len(region))
        return {region[at] for at in np.flatnonzero(room >= gang.tasks).tolist()}


def _numbered(groups: list[tuple[str, ...]]) -> tuple[Ints, list[str]]:
    """The number of each server's group, and the region of each group."""
    numbers = {group: at for at, group in enumerate(dict.fromkeys(groups))}
    return np.array([numbers[group] for group in groups], np.int64), [group[0] for group in numbers]


class PastState(LogFold):
    """The world after the events so far: jobs and servers, and data."""

    def __init__(self) -> None:
        super().__init__()
        self._datasets = Datasets({})
        self.all_mb = 0
        """Sizes of all datasets."""
        self._supply: dict[tuple[str, str], int] | None = None
        self._holders: dict[tuple[str, ...], frozenset[str]] = {}
        """Datasets → regions where jobs may read all of them, since data last changed."""
        self._room: dict[tuple[object, ...], tuple[str, ...]] = {}
        """Regions with room for a job, by what it asks for, since servers last changed."""
        self._servers_with_room: PastRoom | None = None

    def take(self, at_ms: int, event: ev.Event) -> tuple[PastJob, ...]:
        """Take in the next event of the log; see ``LogFold``."""
        if isinstance(event, ev.DatasetCreated):
            self.all_mb += event.size_mb - self._datasets.size_mb.get(event.dataset, 0)
            self._datasets.created(event)
        elif isinstance(event, ev.CopyAsked):
            self._datasets.copy_asked(event)
        elif isinstance(event, ev.CopyEnded):
            self._datasets.copy_ended(event)
        elif isinstance(event, ev.ReplicaDropped):
            self._datasets.dropped(event)
        if isinstance(event, _MOVES_DATA):
            self._holders.clear()
        return super().take(at_ms, event)

    def _server(self, event: ev.ServerUp | ev.ServerDown | ev.ServerMoved | ev.MoveAsked | ev.CapacitySet) -> None:
        self._supply = None
        self._room.clear()
        super()._server(event)
        server, room = self.servers.get(event.server), self._servers_with_room
        if server is not None and room is not None and not room.follow(server):
            self._servers_with_room = None

    def _claim(self, job: PastJob, sign: int) -> None:
        self._room.clear()
        for share in job.placed.shares if job.placed is not None else ():
            server = self.servers[share.server]
            if self._servers_with_room is not None:
                self._servers_with_room.changed(share.server)
            for at, need in enumerate(job.need(server.up.gpu_type, share.part)):
                server.free[at] += sign * share.tasks * need
            for gpu, mgpu in share.gpus.items():
                if gpu < len(server.idle):
                    server.idle[gpu] += sign * mgpu

    # --- what was so ---

    def supply_by_cell(self) -> dict[tuple[str, str], int]:
        """(region, GPU type) → the milli-GPUs of its servers in service."""
        if self._supply is None:
            self._supply = {}
            for server in self.servers.values():
                if server.in_service and server.up.gpus:
                    cell = server.up.region, server.up.gpu_type
                    self._supply[cell] = self._supply.get(cell, 0) + server.up.gpus * GPU_MILLI
        return self._supply

    @property
    def stored_mb(self) -> int:
        """MB of all replicas and copies under way at a time of the log."""
        return sum(self._datasets.stored_mb.values())

    def holders(self, datasets: tuple[str, ...]) -> frozenset[str] | None:
        """Regions where jobs may read, at a time of the log, all of these datasets; None for any region, as there are
        none to be read.
        """
        if not datasets:
            return None
        if datasets not in self._holders:
            self._holders[datasets] = frozenset.intersection(*map(self._datasets.readable_in, datasets))
        return self._holders[datasets]

    def may_read(self, datasets: tuple[str, ...], region: str) -> bool:
        """Whether the residency of all of these datasets allows a region, at a time of the log."""
        return all(self._datasets.may_be_in(name, region) for name in datasets)

    def regions_with_room(self, job: PastJob) -> tuple[str, ...]:
        """Regions in which the job fits without a stop, wherever its data is."""
        asked = job.spec.shape
        if asked not in self._room:
            if self._servers_with_room is None:
                self._servers_with_room = PastRoom(self.servers.values())
            self._room[asked] = self._servers_with_room.regions(job)
        return self._room[asked]
