"""Codec of the job-placement MIP: between a plan and the columns, both ways; columns fixed to a plan's values."""

from dataclasses import dataclass

import numpy as np

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.problems.job_placement.capacity import WholeServerTasks
from mast_opt.problems.job_placement.formulation.index_sets import IndexSets
from mast_opt.problems.job_placement.formulation.part_rows import WholePlaces
from mast_opt.problems.job_placement.movable_jobs import MovableJobs
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import GPU, WHOLE, Bools, Ints
from mast_opt.problems.job_placement.whole_jobs import WholeJobs
from mast_opt.problems.kind.formulation import FixedParts


@dataclass(frozen=True, eq=False)
class Columns:
    """Column ids, and what the cells of the blocks without a set of their own are."""

    assign: IntArray
    count: IntArray
    uses_rack: IntArray
    uses_server: IntArray
    whole_places: tuple[WholePlaces, WholePlaces]
    preempt: IntArray
    move: IntArray
    on: IntArray
    takes: IntArray
    take_device: Ints
    take_tier: Ints
    use: IntArray
    off: IntArray
    balanced: tuple[Ints, Ints]
    """(region, type) of ``use`` and ``off``."""
    fits: IntArray
    fragment: IntArray


@dataclass(frozen=True, eq=False)
class Codec:
    """The exact way between a plan and the columns of the formulation, both directions."""

    movers: MovableJobs
    cells: IndexSets
    columns: Columns
    victims: Ints
    common: WholeServerTasks
    width: int

    @property
    def problem(self) -> JobPlacement:
        """The problem with its movable jobs behind the pending ones."""
        return self.movers.problem

    def decode(self, x: FloatArray) -> Plan:
        """The plan of a solution: tasks and victims rounded."""
        p, c, at = self.problem, self.cells, self.columns
        tasks = np.rint(x[at.count]).astype(np.int64)
        fraction = np.zeros(len(tasks), np.bool_)
        fraction[c.fraction] = True
        whole = np.flatnonzero((tasks > 0) & ~fraction)
        on = np.rint(x[at.on]).astype(np.int64)
        parts = np.flatnonzero(on)
        cell = np.concatenate([whole, c.fraction[c.part_fraction[parts]]])
        index = np.concatenate([np.zeros(len(whole), np.int64), c.device[c.part_device[parts]]])
        number = np.concatenate([tasks[whole], on[parts]])
        indexed = np.repeat([False, True], [len(whole), len(parts)])
        order = np.lexsort((index, cell))
        cell = cell[order]
        preempt = np.zeros(len(p.running), np.bool_)
        preempt[self.victims] = x[at.preempt] > 0.5
        plan = Plan(c.job[cell], c.server[cell], number[order], index[order], indexed[order], preempt)
        return self.movers.split(plan)

    def encode(self, plan: Plan) -> FloatArray:
        """A value for every column of the job-placement program; rows of the plan that have no column are left out."""
        c, at = self.cells, self.columns
        moved = self.movers.moved(plan)
        plan = self.movers.joined(plan)
        x = np.zeros(self.width)
        cell = self._cell_of(plan)
        known = cell >= 0
        np.add.at(x, at.count[cell[known]], plan.tasks[known])
        placed = np.flatnonzero(x[at.count] > 0)
        x[at.assign[c.option[placed]]] = 1
        gang = np.flatnonzero(x[at.count[c.gang]] > 0)
        x[at.uses_rack[c.gang_rack[gang]]] = 1
        x[at.uses_server] = x[at.count[c.tied]] > 0
        for places in at.whole_places:
            x[places.columns[places.at[x[at.count[places.cell]] > 0]]] = 1
        x[at.preempt] = plan.preempt[self.victims]
        x[at.move] = moved[self.movers.running]
        self._encode_devices(plan, moved, cell, x)
        self._encode_dependent(x)
        return x

    def _cell_of(self, plan: Plan) -> Ints:
        """The cell (job, server) of each row of the plan, −1 where the formulation has none."""
        p, c = self.problem, self.cells
        known = c.job * len(p.servers) + c.server
        wanted = plan.job * len(p.servers) + plan.server
        at = np.searchsorted(known, wanted)
        return np.where(np.append(known, -1)[at] == wanted, at, -1)

    def _encode_devices(self, plan: Plan, moved: Bools, cell: Ints, x: FloatArray) -> None:
        """Set the columns for the GPUs of tasks that take a part of one, from a plan."""
        p, c, at = self.problem, self.cells, self.columns
        fraction_of = np.full(len(c.job), -1)
        fraction_of[c.fraction] = np.arange(len(c.fraction))
        first_part = np.searchsorted(c.part_fraction, np.arange(len(c.fraction)))
        touched = np.zeros(len(c.device_server), np.bool_)
        number = p.servers.supply[:, GPU] // WHOLE
        for row in np.flatnonzero((cell >= 0) & plan.indexed).tolist():
            f, d, s = fraction_of[cell[row]], int(plan.gpu_index[row]), int(plan.server[row])
            if f >= 0 and 0 <= d < number[s]:
                x[at.on[first_part[f] + d]] += plan.tasks[row]
                touched[c.device_start[s] + d] = True
        if len(at.takes):
            self._encode_whole(plan, moved, touched, x)

    def _encode_whole(self, plan: Plan, moved: Bools, touched: Bools, x: FloatArray) -> None:
        """GPUs for whole tasks on shared servers: those that are named, then any that are left; the least
        important work first, because what is left to it is left to all."""
        p, c, at = self.problem, self.cells, self.columns
        room = self._device_room(plan, moved)
        take_of = np.full((len(c.device_server), len(p.tiers)), -1)
        take_of[at.take_device, at.take_tier] = np.arange(len(at.takes))
        gpus = p.need_mgpu[plan.job, p.servers.gpu_type[plan.server]] // WHOLE * plan.tasks
        tier = p.queue_tier[plan.job]
        rows = np.flatnonzero((gpus > 0) & c.shared[plan.server])
        for row in rows[np.lexsort((-tier[rows], ~plan.indexed[rows]))].tolist():
            s, n = int(plan.server[row]), int(gpus[row])
            first = int(c.device_start[s])
            devices = np.arange(first, first + int(p.servers.supply[s, GPU]) // WHOLE)
            if plan.indexed[row]:
                chosen = devices[plan.gpu_index[row] : plan.gpu_index[row] + n]
            else:
                chosen = devices[~touched[devices] & (room[devices, tier[row]] == WHOLE)][:n]
            touched[chosen] = True
            take = take_of[chosen, tier[row]]
            x[at.takes[take[take >= 0]]] = 1

    def _device_room(self, plan: Plan, moved: Bools) -> Ints:
        """[device, P] what victims, moved jobs and idle GPUs leave to work of each tier."""
        p, c = self.problem, self.cells
        entries = p.held_devices
        room = np.full((len(c.device_server), len(p.tiers)), WHOLE)
        kept = c.shared[p.allocations.server[entries.row]]
        row = entries.row[kept]
        device = c.device_start[p.allocations.server[row]] + entries.device[kept]
        running = p.allocations.running[row]
        for tier in range(len(p.tiers)):
            stays = ~(moved[running] | (plan.preempt[running] & (p.running.tier[running] > tier)))
            np.subtract.at(room[:, tier], device[stays], entries.mgpu[kept][stays])
        return room

    def _encode_dependent(self, x: FloatArray) -> None:
        """use, off, fits and fragment, from the tasks and victims that are in ``x``."""
        p, c, at = self.problem, self.cells, self.columns
        free = p.free.copy()
        stopped = np.zeros(len(p.running), np.bool_)
        stopped[self.victims] = x[at.preempt] > 0.5
        stopped[self.movers.running] |= x[at.move] > 0.5
        rows = stopped[p.allocations.running]
        np.add.at(free, p.allocations.server[rows], p.held[rows])
        tasks = x[at.count].astype(np.int64)
        np.subtract.at(free, c.server, c.need * tasks[:, None])

        shape = (len(p.regions), len(p.gpu_types))
        supply, used = np.zeros(shape), np.zeros(shape)
        place = (p.server_region, p.servers.gpu_type)
        np.add.at(supply, place, p.servers.supply[:, GPU])
        np.add.at(used, place, p.servers.supply[:, GPU] - free[:, GPU])
        mean = used.sum(axis=0) / np.maximum(supply.sum(axis=0), 1)
        x[at.use] = used[at.balanced]
        x[at.off] = np.abs(used - supply * mean)[at.balanced]

        left = free[self.common.servers]
        fits = (left >= self.common.need).all(axis=1)
        x[at.fits] = fits
        x[at.fragment] = np.where(fits, 0, np.maximum(left[:, GPU], 0))


FREEZING: FixedParts[JobPlacement, Plan] = FixedParts(
    tables=("assignments", "preemptions", "moves"),
    blocks={
        "assign": ("gang", None, None),
        "count": ("gang", "server"),
        "on": ("gang", "server", None),
        "preempt": ("running",),
        "move": ("running",),
    },
    groups={
        "job": lambda p: ("gang", WholeJobs(p).labels, WholeJobs(p).of),
        "rack": lambda p: ("server", p.racks.labels, p.servers.rack),
        "cluster": lambda p: ("server", p.clusters.labels, p.server_cluster),
        "region": lambda p: ("server", p.regions, p.server_region),
    },
)
