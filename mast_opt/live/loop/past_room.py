"""Regions with room for a job at some time of a log: what fits on each server, added up as near as the job's tasks have
to be."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mast_opt.live.loop.past_state import PastJob, PastServer

Ints = NDArray[np.int64]
MGPU, CPU, MEMORY = range(3)
ANY_NUMBER = 1 << 62
"""Number of tasks that fit if they need nothing of a resource."""


class PastRoom:
    """Room on these servers, which take work.

    Args:
        servers: each in service, and about to move nowhere.
    """

    def __init__(self, servers: Collection[PastServer]) -> None:
        ups = [server.up for server in servers]
        self._servers = {server.up.server: (row, server) for row, server in enumerate(servers)}
        self._free: Ints = np.array([server.free for server in servers], np.int64).reshape(-1, 3)
        kinds = {kind: at for at, kind in enumerate(dict.fromkeys(up.gpu_type for up in ups))}
        self._kinds = list(kinds)
        self._kind: Ints = np.array([kinds[up.gpu_type] for up in ups], np.int64)
        self._near = {
            "server": _numbered([(up.region, up.cluster, up.rack, up.server) for up in ups]),
            "rack": _numbered([(up.region, up.cluster, up.rack) for up in ups]),
            "cluster": _numbered([(up.region, up.cluster) for up in ups]),
        }
        self._changed: set[str] = set()

    def changed(self, server: str) -> None:
        """Another amount of a server is free."""
        self._changed.add(server)

    def regions(self, job: PastJob) -> tuple[str, ...]:
        """Regions in which the job fits without a stop, wherever its data is."""
        for name in self._changed & self._servers.keys():
            row, server = self._servers[name]
            self._free[row] = server.free
        self._changed.clear()
        spec = job.spec
        needs = np.array([job.need(kind)[MGPU] if job.takes(kind) else -1 for kind in self._kinds], np.int64)
        mgpu = needs[self._kind]
        tasks: Ints = np.where(mgpu > 0, self._free[:, MGPU] // np.maximum(mgpu, 1), ANY_NUMBER)
        for at, need in ((CPU, spec.cpu_mcores), (MEMORY, spec.memory_mib)):
            if need:
                tasks = np.minimum(tasks, self._free[:, at] // need)
        tasks[(mgpu < 0) | (tasks < 0) | (tasks == ANY_NUMBER)] = 0
        group, region = self._near[spec.within]
        room = np.bincount(group, weights=tasks, minlength=len(region))
        return tuple(sorted({region[at] for at in np.flatnonzero(room >= spec.tasks).tolist()}))


def _numbered(groups: list[tuple[str, ...]]) -> tuple[Ints, list[str]]:
    """The number of each one's group, and the region of each group."""
    numbers = {group: at for at, group in enumerate(dict.fromkeys(groups))}
    return np.array([numbers[group] for group in groups], np.int64), [group[0] for group in numbers]
