"""Exchanges of running jobs in the live fleet (job placement): two jobs change places, so that a third one fits.

Parts of GPUs that are free on two of them are of use on one: the smaller job comes to the GPU of the larger one, which
has then room for the third. Only jobs of one task that are on one GPU take part, each stays on its GPU type and in its
region, and they are on different servers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.relocation import CORES, MGPU, MIB, REGION, TASKS, TYPE
from mast_opt.problems.job_placement.engine.state import A_CPU, A_MEMORY, J_ROW, S_BLOCKED, S_SIZE
from mast_opt.problems.job_placement.live_fleet.inventory import FleetInventory
from mast_opt.problems.job_placement.live_fleet.movable_work import MovableWork
from mast_opt.problems.job_placement.live_fleet.types import Share
from mast_opt.problems.job_placement.units import WHOLE, Bools

Pair = tuple[int, int]


class Exchanges:
    """N jobs that may change places, and what is free where each is; the fleet must stay as it is."""

    def __init__(self, books: FleetInventory, work: MovableWork, may: Bools) -> None:
        """``may`` [M]: jobs that may be moved."""
        state = books.state
        usable = may & (work.server >= 0) & (work.need[:, TASKS] == 1)
        usable &= (state.server[S_BLOCKED, work.server] == 0) & (state.server[S_SIZE, work.server] == WHOLE)
        held = state.row_device[state.job[J_ROW, work.place]]
        self.m = np.flatnonzero(usable & ((held > 0).sum(axis=1) == 1))
        self.need, self.server = work.need[self.m], work.server[self.m]
        self.device = held[self.m].argmax(axis=1)
        last = state.room.shape[1] - 1
        self.free = state.slack_device[self.server, self.device, 0].astype(np.int64)
        """[N] milli-GPUs of the same GPU."""
        self.cores, self.mib = state.room[A_CPU, last, self.server], state.room[A_MEMORY, last, self.server]
        self.names = [books.server_at(at) for at in self.server.tolist()]

    def pairs(self, request: Request, most: int) -> Iterator[Pair]:
        """Pairs whose exchange leaves room for one task of the request where the first one was.

        Args:
            most: first jobs that are tried, those for which the least is lacking.
        """
        need, mgpu = self.need, request.mgpu[self.need[:, TYPE]]
        lacking = mgpu - self.free
        first = (mgpu >= 0) & (mgpu <= WHOLE) & request.open[need[:, REGION]] & (need[:, MGPU] > lacking)
        first &= (self.cores + need[:, CORES] >= request.cpu) & (self.mib + need[:, MIB] >= request.memory)
        first &= lacking <= self.free.max(initial=0)
        chosen = np.flatnonzero(first)
        for u in chosen[np.argsort(lacking[chosen], kind="stable")][:most].tolist():
            found = np.flatnonzero(self._fits(u, int(lacking[u]), request))
            if len(found):
                left = self.free[found] + need[found, MGPU]
                yield u, int(found[left.argmin()])

    def _fits(self, u: int, lacking: int, request: Request) -> Bools:
        """[N] jobs that have room for a job where they are, and leave room for the request where it is."""
        need, own = self.need, self.need[u]
        there: Bools = (need[:, [REGION, TYPE]] == own[[REGION, TYPE]]).all(axis=1) & (self.server != self.server[u])
        there &= (need[:, MGPU] <= own[MGPU] - lacking) & (self.free + need[:, MGPU] >= own[MGPU])
        for column, free, asked in ((CORES, self.cores, request.cpu), (MIB, self.mib, request.memory)):
            there &= (free + need[:, column] >= own[column]) & (free[u] + own[column] - asked >= need[:, column])
        return there

    def target(self, job: int, other: int) -> tuple[Share, ...]:
        """Shares of a job that takes the place of another one."""
        return (Share(self.names[other], 1, {int(self.device[other]): int(self.need[job, MGPU])}),)
