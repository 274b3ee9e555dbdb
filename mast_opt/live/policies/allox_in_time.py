"""AlloX in the loop: at every arrival and completion, the schedule of the least total completion time from now on.

Each GPU is a machine that is ready when the job on it ends. The jobs that come first on a GPU that is free start there;
the others wait for the next schedule. Nobody is stopped.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import UsageError
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.policy import CHANGES, EVERY_POLICY
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.loop.speeds import REFERENCE, Speeds
from mast_opt.live.policies import allox
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.units import WHOLE

SECOND_MS = 1000


@dataclass(frozen=True)
class AlloXParams:
    """Parameters of ``allox``: none."""


class Cell(NamedTuple):
    """The GPUs of a type in a region."""

    region: str
    gpu_type: str


class AlloXInTime:
    """Jobs of one GPU each, by the least total completion time. It looks at neither tiers nor quotas.

    Args:
        speeds: of the jobs' models.
    """

    name: str = "allox"
    reacts_to: ClassVar[frozenset[type]] = CHANGES
    every_ms: int | None = None
    reads: frozenset[str] = EVERY_POLICY

    def __init__(self, speeds: Speeds) -> None:
        self._speeds = speeds

    def begin(self, snapshot: Snapshot) -> None:
        """Nothing is kept: each decision goes by the jobs of its snapshot."""

    def decide(self, snapshot: Snapshot, actions: Actions) -> None:
        """Schedule the waiting jobs, and start those that come first on a free GPU.

        Raises:
            UsageError: a job that does not take exactly one GPU, or of unknown duration.
        """
        waiting = [record for record in snapshot.jobs.values() if record.waits]
        if not waiting:
            return
        cells, ready_s = self._machines(snapshot, len(waiting))
        time = np.array([self._times(record, cells, snapshot) for record in waiting]).reshape(len(waiting), len(cells))
        able = np.flatnonzero(np.isfinite(time).any(axis=1))
        if not len(able):
            return
        found = allox.solve(time[able], ready_s=ready_s)
        for machine in np.flatnonzero(ready_s == 0.0).tolist():
            order = found.order(machine)
            if len(order):
                cell = cells[machine]
                bid = actions.place(waiting[able[order[0]]].name, (cell.region,), cell.gpu_type, preempt=False)
                if isinstance(bid, Bid):
                    actions.commit(bid)

    def _machines(self, snapshot: Snapshot, most: int) -> tuple[list[Cell], FloatArray]:
        """The cell of each GPU, and how long it is taken, s; no more free GPUs of a cell than jobs wait."""
        free: dict[Cell, int] = {}
        for server in snapshot.inventory.in_service():
            cell = Cell(server.region, server.gpu_type)
            free[cell] = free.get(cell, 0) + server.gpus
        cells, ready_s = list[Cell](), list[float]()
        for record in snapshot.jobs.values():
            if record.shares:
                kind = snapshot.inventory.server_of[record.shares[0].server].gpu_type
                cell = Cell(record.region, kind)
                free[cell] = free.get(cell, 0) - 1
                cells.append(cell)
                ready_s.append(max(self._left_s(record, kind, snapshot), 1 / SECOND_MS))
        for cell, gpus in free.items():
            cells += [cell] * min(gpus, most)
        return cells, np.array(ready_s + [0.0] * (len(cells) - len(ready_s)))

    def _times(self, record: JobRecord, cells: list[Cell], snapshot: Snapshot) -> list[float]:
        """Seconds that a waiting job takes on each GPU; infinite where it cannot run."""
        regions, spec = snapshot.admissible(record), record.spec
        kinds: dict[str, float] = {}
        for kind in {cell.gpu_type for cell in cells}:
            need = spec.tasks * (spec.mgpu if spec.gpu_types is None else spec.gpu_types.get(kind, 0))
            if need not in (0, WHOLE):
                raise UsageError(f"job {record.name} does not take exactly one GPU; allox places no others")
            kinds[kind] = self._left_s(record, kind, snapshot) if need else np.inf
        return [kinds[cell.gpu_type] if cell.region in regions else np.inf for cell in cells]

    def _left_s(self, record: JobRecord, kind: str, snapshot: Snapshot) -> float:
        """Seconds that a job still takes on a GPU type; infinite where it cannot run."""
        if record.spec.duration_ms is None:
            raise UsageError(f"job {record.name} has no duration; allox needs the duration of every job")
        rate = self._speeds.rate(record.spec, kind)
        left = max(1, record.spec.duration_ms * REFERENCE - self._speeds.done(record, kind, snapshot.now_ms))
        return left / rate / SECOND_MS if rate else np.inf
