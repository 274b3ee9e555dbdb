"""The job-placement MIP, read row by row as in ``models/job_placement.mod``, in base units."""

import numpy as np

from mast_opt.core.arrays import IntArray
from mast_opt.problems.job_placement.capacity import fewest_racks, whole_server_tasks
from mast_opt.problems.job_placement.formulation.cluster_rows import ClusterRows
from mast_opt.problems.job_placement.formulation.codec import Codec, Columns
from mast_opt.problems.job_placement.formulation.index_sets import IndexSets, cells_of
from mast_opt.problems.job_placement.formulation.part_rows import one_place, whole_places
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import GPU, RACK, RESOURCES, SERVER, WHOLE, Ints
from mast_opt.problems.kind.formulation import Formulation


def base(problem: JobPlacement) -> Formulation[Plan]:
    """The formulation of the .mod: every server by itself, every number in base units."""
    statement = state(problem)
    return statement.finished()


def state(problem: JobPlacement) -> "PerServer":
    """The base formulation before it is closed, so that others can add rows to it."""
    statement = PerServer(problem)
    statement.admitted()
    statement.gangs()
    statement.levels()
    statement.capacity()
    statement.devices()
    statement.admission()
    statement.preemption()
    statement.balance()
    statement.fragmentation()
    return statement


class PerServer(ClusterRows):
    """The columns and rows of servers and their GPUs."""

    def __init__(self, problem: JobPlacement) -> None:
        super().__init__(problem)
        p, m = self.p, self.m
        c: IndexSets = cells_of(p, self.options)
        self.cells = c
        self.job_tier = p.queue_tier[c.job]
        """[c] of each cell."""
        self.count = m.columns(
            "count", [p.jobs.labels, p.servers.labels], [c.job, c.server], upper=p.jobs.tasks[c.job], integral=True
        )
        self.uses_rack = m.columns(
            "uses_rack", [p.jobs.labels, p.racks.labels], [c.rack_job, c.rack], upper=1, integral=True
        )
        self.uses_server = m.columns(
            "uses_server", [p.jobs.labels, p.servers.labels], [c.job[c.tied], c.server[c.tied]], upper=1, integral=True
        )
        self.whole_places = whole_places(p, c, m)
        self._device_columns()

    def _device_columns(self) -> None:
        """on[j,s,d] tasks of a fraction on one GPU; takes[s,p,d]: the GPU is taken whole by work of tier p."""
        p, c, m = self.p, self.cells, self.m
        places = tuple(str(d) for d in range(int(c.device.max(initial=-1)) + 1))
        cell = c.fraction[c.part_fraction]
        self.on = m.columns(
            "on",
            [p.jobs.labels, p.servers.labels, places],
            [c.job[cell], c.server[cell], c.device[c.part_device]],
            upper=p.jobs.tasks[c.job[cell]],
            integral=True,
        )
        pairs = np.unique(np.stack([c.server[c.whole], self.job_tier[c.whole]], axis=1), axis=0)
        self.whole_server, self.whole_tier = pairs[:, 0], pairs[:, 1]
        number = p.servers.supply[self.whole_server, GPU] // WHOLE
        self.take_row = np.repeat(np.arange(len(pairs)), number)
        step = np.arange(len(self.take_row)) - np.repeat(np.cumsum(number) - number, number)
        self.take_device = c.device_start[self.whole_server[self.take_row]] + step
        self.takes = m.columns(
            "takes",
            [p.servers.labels, self.tiers, places],
            [self.whole_server[self.take_row], self.whole_tier[self.take_row], step],
            upper=1,
            integral=True,
        )
        self.places = places

    def finished(self) -> Formulation[Plan]:
        """The job-placement program with the problem's weights, and its codec."""
        mip = self.m.build(self.p.objective.weights)
        columns = Columns(
            assign=self.assign,
            count=self.count,
            uses_rack=self.uses_rack,
            uses_server=self.uses_server,
            whole_places=self.whole_places,
            preempt=self.preempt,
            move=self.move,
            on=self.on,
            takes=self.takes,
            take_device=self.take_device,
            take_tier=self.whole_tier[self.take_row],
            use=self.use,
            off=self.off,
            balanced=self.balanced,
            fits=self.fits,
            fragment=self.fragment,
        )
        codec = Codec(self.movers, self.cells, columns, self.victims, self.common, len(mip.cost))
        return Formulation(mip, codec.decode, codec.encode)

    def gangs(self) -> None:
        """gang: Σ_{s∈c of type k} count[j,s] = tasks[j]·assign[j,c,k]."""
        p, o, m = self.p, self.options, self.m
        gang = m.equals("gang", [p.jobs.labels, p.clusters.labels, p.gpu_types], [o.job, o.cluster, o.type])
        gang.add(self.cells.option, self.count, 1)
        gang.add(np.arange(len(o.job)), self.assign, -p.jobs.tasks[o.job])

    def levels(self) -> None:
        """in_rack: count[j,s] ≤ tasks[j]·uses_rack[j,rack(s)] and in_server likewise, for gangs of several tasks;
        one_rack, one_server: at most one where the job must stay within it; likewise for all parts of a job."""
        p, c, m = self.p, self.cells, self.m
        job, server = c.job[c.gang], c.server[c.gang]
        in_rack = m.rows("in_rack", [p.jobs.labels, p.servers.labels], [job, server], upper=0)
        in_rack.add(np.arange(len(job)), self.count[c.gang], 1)
        in_rack.add(np.arange(len(job)), self.uses_rack[c.gang_rack], -p.jobs.tasks[job])
        job, server = c.job[c.tied], c.server[c.tied]
        in_server = m.rows("in_server", [p.jobs.labels, p.servers.labels], [job, server], upper=0)
        in_server.add(np.arange(len(job)), self.count[c.tied], 1)
        in_server.add(np.arange(len(job)), self.uses_server, -p.jobs.tasks[job])

        self._at_most_one("one_rack", c.rack_job, self.uses_rack, RACK)
        self._at_most_one("one_server", job, self.uses_server, SERVER)
        for places in self.whole_places:
            one_place(p, c, self.count, m, places)

        racks = np.zeros(len(p.jobs.tasks))
        racks[:] = fewest_racks(p)
        scale = 1 / float(p.jobs.tasks[: self.waiting].sum())
        m.term("spread", self.uses_rack[c.rack_job < self.waiting], scale)
        jobs = self.options.job
        gangs = (p.jobs.tasks[jobs] > 1) & (jobs < self.waiting)
        m.term("spread", self.assign[gangs], -racks[jobs[gangs]] * scale)

    def _at_most_one(self, name: str, job: Ints, columns: IntArray, level: int) -> None:
        """Add rows by which a job stays on one server, or in one rack: at most one of its columns is 1."""
        p = self.p
        limited = np.flatnonzero((p.jobs.within == level) & (p.jobs.tasks > 1))
        rows = self.m.rows(name, [p.jobs.labels], [limited], upper=1)
        row_of = np.full(len(p.jobs), -1)
        row_of[limited] = np.arange(len(limited))
        at = row_of[job]
        rows.add(at[at >= 0], columns[at >= 0], 1)

    def capacity(self) -> None:
        """Σ_{j: tier ≥ p} need[j]·count[j,s] ≤ free[s] + Σ_{v: tier > p} held[v,s]·preempt[v] + Σ_v held[v,s]·move[v],
        per server and resource.

        Stated for the tiers p of which some job may use the server; others follow from these."""
        p, c, m = self.p, self.cells, self.m
        resources = np.arange(3)
        rows = len(c.row_server)
        at = [np.repeat(c.row_server, 3), np.repeat(c.row_tier, 3), np.tile(resources, rows)]
        capacity = m.rows("capacity", [p.servers.labels, self.tiers, RESOURCES], at, upper=p.free[c.row_server].ravel())
        row_of = np.full((len(p.servers), len(p.tiers)), -1)
        row_of[c.row_server, c.row_tier] = np.arange(rows)
        freed = self.freed()
        for tier in range(len(p.tiers)):
            row = row_of[c.server, tier]
            for resource in resources.tolist():
                mine = np.flatnonzero((row >= 0) & (self.job_tier >= tier) & (c.need[:, resource] > 0))
                capacity.add(row[mine] * 3 + resource, self.count[mine], c.need[mine, resource])
                at_row = row_of[freed.server, tier]
                gives = np.flatnonzero((at_row >= 0) & (freed.below > tier) & (freed.held[:, resource] > 0))
                capacity.add(at_row[gives] * 3 + resource, freed.column[gives], -freed.held[gives, resource])

    def devices(self) -> None:
        """split: Σ_d on[j,s,d] = count[j,s] for fractions; whole: Σ_d takes[s,p,d] = Σ_j gpus[j]·count[j,s] for the
        others of tier p; device: what fractions and whole tasks of tier ≥ p take of GPU d is there."""
        p, c, m = self.p, self.cells, self.m
        split = m.equals("split", [p.jobs.labels, p.servers.labels], [c.job[c.fraction], c.server[c.fraction]])
        split.add(c.part_fraction, self.on, 1)
        split.add(np.arange(len(c.fraction)), self.count[c.fraction], -1)

        whole = m.equals("whole", [p.servers.labels, self.tiers], [self.whole_server, self.whole_tier])
        row_of = np.full((len(p.servers), len(p.tiers)), -1)
        row_of[self.whole_server, self.whole_tier] = np.arange(len(self.whole_server))
        whole.add(self.take_row, self.takes, 1)
        whole.add(
            row_of[c.server[c.whole], self.job_tier[c.whole]], self.count[c.whole], -(c.need[c.whole, GPU] // WHOLE)
        )
        self._device_rows()

    def _device_rows(self) -> None:
        """Add rows by which the tasks on each GPU of a shared server take no more than it has, tier by tier."""
        p, c, m = self.p, self.cells, self.m
        uses_gpus = np.flatnonzero((c.need[:, GPU] > 0) & c.shared[c.server])
        asked = np.zeros((len(p.servers), len(p.tiers)), np.bool_)
        asked[c.server[uses_gpus], self.job_tier[uses_gpus]] = True
        device, tier = np.nonzero(asked[c.device_server])
        row_of = np.full((len(c.device_server), len(p.tiers)), -1)
        row_of[device, tier] = np.arange(len(device))

        entries = p.held_devices
        kept = c.shared[p.allocations.server[entries.row]]
        row, mgpu = entries.row[kept], entries.mgpu[kept]
        held_device = c.device_start[p.allocations.server[row]] + entries.device[kept]
        free = np.full(len(c.device_server), WHOLE)
        np.subtract.at(free, held_device, mgpu)
        at = [c.device_server[device], tier, c.device[device]]
        rows = m.rows("device", [p.servers.labels, self.tiers, self.places], at, upper=free[device])

        cell = c.fraction[c.part_fraction]
        every = np.full(len(p.running), len(p.tiers))
        for level in range(len(p.tiers)):
            mine = np.flatnonzero((row_of[c.part_device, level] >= 0) & (self.job_tier[cell] >= level))
            rows.add(row_of[c.part_device[mine], level], self.on[mine], c.need[cell[mine], GPU])
            mine = np.flatnonzero((row_of[self.take_device, level] >= 0) & (self.whole_tier[self.take_row] >= level))
            rows.add(row_of[self.take_device[mine], level], self.takes[mine], WHOLE)
            running = p.allocations.running[row]
            for columns, below in ((self.preempt_of, p.running.tier), (self.move_of, every)):
                gives = np.flatnonzero(
                    (row_of[held_device, level] >= 0) & (columns[running] >= 0) & (below[running] > level)
                )
                rows.add(row_of[held_device[gives], level], columns[running[gives]], -mgpu[gives])

    def fragmentation(self) -> None:
        """room: the commonest whole-server task needs no more than is left on s where fits[s] = 1;
        waste: fragment[s] ≥ free GPUs − gpus[s]·fits[s]."""
        p, c, m = self.p, self.cells, self.m
        self.common = common = whole_server_tasks(self.movers.stated)
        n = len(common.servers)
        self.fits = m.columns("fits", [p.servers.labels], [common.servers], upper=1, integral=True)
        self.fragment = m.columns(
            "fragment", [p.servers.labels], [common.servers], upper=p.servers.supply[common.servers, GPU]
        )
        at, resource = np.nonzero(common.need)
        row_of = np.full((len(p.servers), 3), -1)
        row_of[common.servers[at], resource] = np.arange(len(at))
        free = p.free[common.servers]
        room = m.rows("room", [p.servers.labels, RESOURCES], [common.servers[at], resource], upper=free[at, resource])
        room.add(np.arange(len(at)), self.fits[at], common.need[at, resource])
        freed = self.freed()
        for resource_at in range(3):
            row = row_of[c.server, resource_at]
            mine = np.flatnonzero((row >= 0) & (c.need[:, resource_at] > 0))
            room.add(row[mine], self.count[mine], c.need[mine, resource_at])
            row = row_of[freed.server, resource_at]
            gives = np.flatnonzero((row >= 0) & (freed.held[:, resource_at] > 0))
            room.add(row[gives], freed.column[gives], -freed.held[gives, resource_at])

        waste = m.rows("waste", [p.servers.labels], [common.servers], lower=free[:, GPU])
        waste.add(np.arange(n), self.fragment, 1)
        waste.add(np.arange(n), self.fits, common.need[:, GPU])
        row_at = np.full(len(p.servers), -1)
        row_at[common.servers] = np.arange(n)
        mine = np.flatnonzero((row_at[c.server] >= 0) & (c.need[:, GPU] > 0))
        waste.add(row_at[c.server[mine]], self.count[mine], c.need[mine, GPU])
        gives = np.flatnonzero((row_at[freed.server] >= 0) & (freed.held[:, GPU] > 0))
        waste.add(row_at[freed.server[gives]], freed.column[gives], -freed.held[gives, GPU])
        m.term("fragmentation", self.fragment, 1 / max(p.all_mgpu, 1))
