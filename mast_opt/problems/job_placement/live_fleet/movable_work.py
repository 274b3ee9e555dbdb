"""Running jobs of the live fleet (job placement) that may be moved: what each needs elsewhere, and what its move costs.

A job that is moved stays in its region, where its data and its checkpoint are, on its GPU type, and as close together
as it is now.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mast_opt.core.errors import UnsupportedOption, UsageError
from mast_opt.core.units import MILLI
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.fill_value import CORES, MGPU, MIB, REGION, TASKS, TYPE
from mast_opt.problems.job_placement.engine.state import MOST_HOURS, VICTIM
from mast_opt.problems.job_placement.live_fleet.booking import level_of
from mast_opt.problems.job_placement.live_fleet.inventory import FleetInventory
from mast_opt.problems.job_placement.live_fleet.move_plan import MoveBudget
from mast_opt.problems.job_placement.live_fleet.running_job import Holding, Running
from mast_opt.problems.job_placement.live_fleet.types import Share
from mast_opt.problems.job_placement.units import SERVER, WHOLE, Ints

ONE_MOVE = 1 << 32
"""Cost of a move where only their number is limited; GPU-hours decide between equal numbers."""
WHOLE_BUDGET = 1 << 40
"""Cost of moves that use up one of two limits."""


@dataclass(frozen=True, eq=False)
class MovableWork:
    """M jobs that may be moved, in the order in which they started."""

    name: tuple[str, ...]
    place: Ints
    """[M] in the state."""
    server: Ints
    """[M] position; −1 for a job on several servers."""
    need: Ints
    """[M, 6] see ``fill_value``."""
    level: Ints
    """[M] how close together it is."""
    mgpu_hours: Ints
    """[M] thousandths of a GPU-hour that its move loses."""

    def kinds(self) -> tuple[Ints, Ints]:
        """The different needs of the fleet's movable jobs [N, 6], and the number of each job's [M]."""
        order = np.lexsort(self.need.T)
        ordered = self.need[order]
        new = np.ones(len(order), np.bool_)
        new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
        kind = np.empty(len(order), np.int64)
        kind[order] = np.cumsum(new) - 1
        return ordered[new], kind

    def request(self, m: int, books: FleetInventory) -> Request:
        """A running job as one that looks for a new place."""
        need = self.need[m].tolist()
        mgpu, region = np.full(len(books.types), -1, np.int64), np.zeros(len(books.regions), np.bool_)
        mgpu[need[TYPE]], region[need[REGION]] = need[MGPU], True
        last = books.ranks.levels - 1
        return Request(mgpu, region, need[CORES], need[MIB], need[TASKS], int(self.level[m]), SERVER, last)

    def costs(self, budget: MoveBudget) -> Ints:
        """[M] what moves of the fleet's jobs cost the search: the share of the budget that they use up."""
        hours = self.mgpu_hours
        if budget.moves is None:
            return hours * VICTIM + 1
        if budget.gpu_hours is None:
            return ONE_MOVE + np.minimum(hours, ONE_MOVE - 1)
        share = 1 / max(budget.moves, 1) + hours / max(budget.gpu_hours * MILLI, 1.0)
        return np.round(np.minimum(share, 2.0) * WHOLE_BUDGET).astype(np.int64) + 1


def movable_work(books: FleetInventory, costs: Mapping[str, float] | None) -> MovableWork:
    """The jobs that may be moved: those named, at these GPU-hours, or (None) those that may be stopped, at what they
    have at risk. Left out are jobs whose tasks hold different amounts, or whole GPUs and a part of one. Raises
    UsageError for a name that does not run, and UnsupportedOption for a job of several parts."""
    if costs is not None and (unknown := sorted(costs.keys() - books.running.keys())):
        raise UsageError(f"movable: no job called {unknown[0]} runs here")
    books.names()
    running = [one for name, one in books.running.items() if (one.job.preemptible if costs is None else name in costs)]
    if costs is None:
        running = [one for one in running if not one.job.parts]
    elif several := [one.job.name for one in running if one.job.parts]:
        raise UnsupportedOption(f"movable: {several[0]} has several parts, and such a job is not moved")
    count = len(running)
    hours = (one.job.gpu_hours_at_risk if costs is None else costs[one.job.name] for one in running)
    lost = np.round(np.minimum(np.fromiter(hours, np.float64, count), MOST_HOURS) * MILLI).astype(np.int64)
    state, layout = books.state, books.layout
    place = np.fromiter((books.place[one.job.name] for one in running), np.int64, count)
    row = state.job[col.J_ROW, place]
    single = state.row[col.L_NEXT, row] < 0
    server = state.row[col.L_SERVER, row]
    held = np.stack(
        [state.row_device[row].sum(axis=1), state.row[col.L_CPU, row], state.row[col.L_MEMORY, row]], axis=1
    )
    tasks = np.fromiter((one.job.tasks for one in running), np.int64, count)
    here, level, sound = tasks.copy(), np.zeros(len(place), np.int64), np.ones(len(place), np.bool_)
    for m in np.flatnonzero(~single).tolist():
        here[m] = next(share.tasks for share in running[m].shares if books.position[share.server] == server[m])
        level[m] = running_level(running[m], books)
        sound[m] = _are_equal(running[m], books)
    sound &= (held % here[:, None] == 0).all(axis=1)
    each = held[:, 0] // here
    sound &= (each < WHOLE) | (each % WHOLE == 0)
    group = layout.group[server]
    need = np.stack([layout.group_region[group], layout.group_type[group], *(held // here[:, None]).T, tasks], axis=1)
    kept = np.flatnonzero(sound)
    return MovableWork(
        tuple(running[m].job.name for m in kept.tolist()),
        place[kept],
        np.where(single, server, -1)[kept],
        need[kept],
        level[kept],
        lost[kept],
    )


def running_level(running: Running, books: FleetInventory) -> int:
    """Level of how close together a running job is."""
    return level_of(np.array([books.position[share.server] for share in running.shares], np.int64), books.layout)


def _are_equal(running: Running, books: FleetInventory) -> bool:
    """Whether all tasks of a job hold the same amounts."""
    amounts = set()
    for share, held in zip(running.shares, books.holdings_by_share(running.job.name)):
        total = (int(held.device.sum()), held.cpu_mcores, held.memory_mib)
        amounts.add(tuple(amount / share.tasks for amount in total))
    return len(amounts) == 1


def task_of(running: Running, books: FleetInventory) -> tuple[int, int, int]:
    """Milli-GPUs, millicores and MiB that a task of a running job holds, where all tasks are equal."""
    now, tasks = books.holdings_by_share(running.job.name)[0], running.shares[0].tasks
    return int(now.device.sum()) // tasks, now.cpu_mcores // tasks, now.memory_mib // tasks


def moved_holdings(running: Running, target: tuple[Share, ...], books: FleetInventory) -> tuple[Holding, ...]:
    """Holdings of a running job at its target, in the order of the shares: each task holds as much as it does now."""
    _, cpu, memory = task_of(running, books)
    width = books.state.row_device.shape[1]
    found = []
    for share in target:
        device = np.zeros(width, np.int32)
        device[list(share.gpus)] = list(share.gpus.values())
        found.append(Holding(share.server, share.tasks * cpu, share.tasks * memory, device))
    return tuple(found)


def has_room(books: FleetInventory, name: str, held: tuple[Holding, ...]) -> bool:
    """Whether a running job could hold this once it has left its place; outside rounds."""
    state, now = books.state, {one.server: one for one in books.holdings(name)}
    for one in held:
        at, own = books.position[one.server], now.get(one.server)
        device = state.slack_device[at, :, 0] - one.device
        cpu, memory = state.slack[0, at, 0] - one.cpu_mcores, state.slack[1, at, 0] - one.memory_mib
        if own is not None:
            device, cpu, memory = device + own.device, cpu + own.cpu_mcores, memory + own.memory_mib
        if cpu < 0 or memory < 0 or (device < 0).any():
            return False
    return True
