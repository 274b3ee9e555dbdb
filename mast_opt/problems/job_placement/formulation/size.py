"""Size of the job-placement MIP before it is built, over classes of equal servers instead of servers."""

import numpy as np

from mast_opt.problems.job_placement.capacity import whole_server_tasks
from mast_opt.problems.job_placement.formulation.part_rows import whole_of
from mast_opt.problems.job_placement.movable_jobs import MovableJobs, movable_jobs
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.server_classes import ServerClasses, jobs_at_once, may_run, server_classes
from mast_opt.problems.job_placement.units import GPU, RACK, REGION, SERVER, WHOLE, Bools, Ints
from mast_opt.problems.mip.size import Size


def size(problem: JobPlacement) -> Size:
    """Exact but for a few rows and entries of victims, racks whose servers differ, and places of jobs of several parts,
    which count too often."""
    movers = movable_jobs(problem)
    count = _Count(movers)
    for jobs in jobs_at_once(movers.problem, count.classes):
        count.look(jobs)
    for jobs in jobs_at_once(movers.problem, count.classes):
        count.add(jobs)
    count.add_rest()
    return Size(count.columns, count.rows, count.entries)


class _Count:
    """``look`` at all jobs, then ``add`` all jobs, then the rest."""

    def __init__(self, movers: MovableJobs) -> None:
        p = self.p = movers.problem
        self.movers = movers
        c = self.classes = server_classes(p)
        self.columns = self.rows = self.entries = 0
        self.gpus = c.supply[:, GPU] // WHOLE
        self.racks = _racks(p, c)
        common = whole_server_tasks(movers.stated)
        self.common = np.zeros((len(c), 3), np.bool_)
        """[E, 3] what the commonest whole-server task needs something of."""
        self.common[c.of[common.servers]] = common.need > 0
        self.fragments = len(common.servers)
        self.reached = np.zeros((len(c), len(p.tiers)), np.bool_)
        """[E, P] may some job of just that tier run there?"""
        self.on_gpus, self.whole = np.zeros_like(self.reached), np.zeros_like(self.reached)
        """Counts of jobs that need GPUs, and of those that need whole ones."""
        self.fraction = np.zeros(len(c), np.bool_)
        """[E] may a fraction of a GPU run there?"""
        part = (p.allocations.need[:, GPU] > 0) & (p.allocations.need[:, GPU] < WHOLE)
        self.running_fraction = np.bincount(c.of[np.unique(p.allocations.server[part])], minlength=len(c))
        """[E] servers on which one runs."""
        self.options = np.zeros(len(p.jobs), np.int64)
        """[J] pairs with a cluster's servers of a type."""
        self.level = whole_of(p)[1]
        """[J] the level of the job of several parts."""

    def look(self, jobs: Ints) -> None:
        """Count the columns and rows that these jobs need in the job-placement program."""
        p = self.p
        at, e = np.nonzero(may_run(p, self.classes, jobs))
        tier, mgpu = p.queue_tier[jobs[at]], p.need_mgpu[jobs[at], self.classes.type[e]]
        self.reached[e, tier] = True
        self.on_gpus[e[mgpu > 0], tier[mgpu > 0]] = True
        self.whole[e[mgpu >= WHOLE], tier[mgpu >= WHOLE]] = True
        self.fraction[e[(mgpu > 0) & (mgpu < WHOLE)]] = True

    def shared(self) -> Ints:
        """[E] servers of the program with columns and rows for every GPU."""
        return np.where(self.fraction, self.classes.size, self.running_fraction)

    def add(self, jobs: Ints) -> None:
        """Columns, rows and entries of jobs in the job-placement program."""
        p, c = self.p, self.classes
        runs = may_run(p, c, jobs)
        at, e = np.nonzero(runs)
        job, servers = jobs[at], c.size[e]
        mgpu = p.need_mgpu[job, c.type[e]]
        need = np.stack([mgpu, p.jobs.cpu_mcores[job], p.jobs.memory_mib[job]], axis=1) > 0
        gang = p.jobs.tasks[job] > 1
        tied = gang & (p.jobs.within[job] == SERVER)
        fraction = (mgpu > 0) & (mgpu < WHOLE)
        whole = self.shared()[e] * (mgpu >= WHOLE)
        cells, gangs = int(servers.sum()), int(servers[gang].sum())
        racks = self.racks[e] * gang
        self.options[jobs] = self._options(runs)
        options = int(self.options[jobs].sum())
        parts = servers * self.gpus[e] * fraction

        self.columns += options + cells + int(racks.sum() + servers[tied].sum() + parts.sum())
        self.rows += len(jobs) + options + gangs + int(servers[tied].sum() + servers[fraction].sum())
        self.rows += int(((p.jobs.within[jobs] < 2) & (p.jobs.tasks[jobs] > 1)).sum())
        tier = p.queue_tier[job]
        levels = np.cumsum(self.reached, axis=1)[e, tier]
        on_gpus = np.cumsum(self.on_gpus, axis=1)[e, tier]
        a_server = 1 + 2 * gang + 3 * tied + levels * need.sum(axis=1) + fraction
        a_server += (need & self.common[e]).sum(axis=1) + (need[:, GPU] & self.common[e, GPU])
        self.entries += int((servers * a_server + whole).sum() + (parts * (1 + on_gpus)).sum())
        self.entries += 3 * options + int(racks[p.jobs.within[job] == RACK].sum())
        for level, places in ((RACK, self.racks[e]), (SERVER, servers)):
            together = self.level[job] == level
            self.columns += int(places[together].sum())
            self.rows += int(servers[together].sum())
            self.entries += int((2 * servers + places)[together].sum())

    def _options(self, runs: Bools) -> Ints:
        """[jobs] clusters' servers of a type where the job may run."""
        c = self.classes
        first = np.flatnonzero(np.diff(c.cluster, prepend=-1) | np.diff(c.type, prepend=-1))
        found: Ints = np.logical_or.reduceat(runs, first, axis=1).sum(axis=1)
        return found

    def add_rest(self) -> None:
        """Columns, rows and entries of servers, GPUs, victims and regions."""
        p, c = self.p, self.classes
        servers = self.shared()
        shared = servers * self.gpus
        takes = shared[:, None] * self.whole
        devices = int((shared[:, None] * self.on_gpus).sum())
        self.columns += int(p.running.preemptible.sum()) + int(takes.sum()) + 2 * self.fragments
        self.rows += 3 * int((c.size[:, None] * self.reached).sum()) + devices
        self.rows += int((servers * self.whole.sum(axis=1)).sum()) + 4 * self.fragments
        self.entries += int((takes * (1 + np.cumsum(self.on_gpus, axis=1))).sum()) + 5 * self.fragments
        tier = p.running.tier[p.allocations.running]
        held = np.flatnonzero(p.running.preemptible[p.allocations.running])
        moving = np.flatnonzero(np.isin(p.allocations.running, self.movers.running))
        reached = np.cumsum(self.reached, axis=1)
        for rows, last in ((held, tier[held]), (moving, np.full(len(moving), len(p.tiers) - 1))):
            self.entries += int((3 * reached[c.of[p.allocations.server[rows]], last] + 5).sum())
        moves, limits = len(self.movers.running), len(self.movers.stated.move_limits)
        self.columns += moves
        self.rows += moves + limits
        self.entries += moves * (3 + limits)
        further = np.flatnonzero(~p.counts_once)
        self.rows += int(np.where(self.level[further] == REGION, len(p.regions), len(p.clusters)).sum())
        self.rows += int((p.multipart_jobs.within <= RACK).sum())
        self.entries += int((self.options[further] + self.options[p.first_part[further]]).sum())
        balanced = len(p.regions) * len(p.gpu_types)
        self.columns += 2 * balanced
        self.rows += 3 * balanced
        self.entries += balanced * (4 + 2 * len(p.regions))


def _racks(problem: JobPlacement, classes: ServerClasses) -> Ints:
    """[E] racks with a server of the class."""
    pairs = np.unique(classes.of * len(problem.racks) + problem.servers.rack)
    return np.bincount(pairs // len(problem.racks), minlength=len(classes))
