"""State of a job-placement batch (exhaustive): the ledger of a problem, its jobs as requests, the decisions so far."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.job_placement.capacity import remote_mb_price
from mast_opt.problems.job_placement.engine import capacity_ledger as ledger
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.arrival_mix import ArrivalMix, server_classes, shape_of, together
from mast_opt.problems.job_placement.engine.best_bid import NOBODY, assign_devices, take
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.limits import DEFAULT_SAMPLING, FillSampling
from mast_opt.problems.job_placement.engine.server_layout import Layout, lay_out
from mast_opt.problems.job_placement.engine.server_selection import Placement
from mast_opt.problems.job_placement.engine.state import VICTIM, EngineState
from mast_opt.problems.job_placement.engine.state_allocation import copied, empty_state, valued
from mast_opt.problems.job_placement.exhaustive.objective import TermPrices, objective
from mast_opt.problems.job_placement.movable_jobs import MovableJobs, movable_jobs
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.running_allocations import Allocations, allocations_of
from mast_opt.problems.job_placement.tables.schema import MICRO
from mast_opt.problems.job_placement.units import CPU, GPU, MEMORY, WHOLE, Bools, Ints


@dataclass
class BatchState:
    """Batch of a problem in progress: the engine's ledger, and what has been decided, by jobs of the problem."""

    problem: JobPlacement
    layout: Layout
    state: EngineState
    running: Ints
    """[V] place in the state of each running job of the problem."""
    victim: dict[int, int]
    """Place in the state → running job of the problem."""
    held: Allocations
    """Allocations of the running jobs."""
    movers: MovableJobs
    """The problem as stated, and its movable jobs, which stand behind its pending ones in ``problem``."""
    placed: dict[int, int] = field(default_factory=dict)
    """Pending job of the problem → place in the state."""
    pending: dict[int, int] = field(default_factory=dict)
    """Place in the state → pending job of the problem."""
    stopped: set[int] = field(default_factory=set)
    """Running jobs of the problem that were stopped."""
    requests: dict[int, Request] = field(default_factory=dict)
    """Requests that were made before; copies of a batch share them."""
    group_prices: dict[int, NDArray[np.float64] | None] = field(default_factory=dict)
    """Prices that were found before, likewise."""

    @cached_property
    def all_groups(self) -> Bools:
        """All groups of servers of the batch [G]."""
        return np.ones(len(self.layout.group_cluster), np.bool_)

    def request(self, j: int) -> Request:
        """A pending job as the kernels see it."""
        request = self.requests.get(j)
        if request is None:
            request = self.requests[j] = self._request(j)
        return request

    def _request(self, j: int) -> Request:
        """Request of a job to the engine."""
        p = self.problem
        return Request(
            mgpu=np.where(p.accepts[j], p.need_mgpu[j], -1),
            open=p.open_region[j].copy(),
            cpu=int(p.jobs.cpu_mcores[j]),
            memory=int(p.jobs.memory_mib[j]),
            tasks=int(p.jobs.tasks[j]),
            within=int(p.jobs.within[j]),
            prefer=int(p.jobs.prefer[j]),
            tier=int(p.queue_tier[j]),
        )

    def price(self, j: int) -> NDArray[np.float64] | None:
        """[G] what a pending job costs in each group, in the unit of the objective; None where that is the same."""
        if j not in self.group_prices:
            self.group_prices[j] = self._price(j)
        return self.group_prices[j]

    def _price(self, j: int) -> NDArray[np.float64] | None:
        """Price of each group of servers for a pending job; None where there is none."""
        p = self.problem
        rows = p.costs.job == j
        if not rows.any() and not p.remote_reads:
            return None
        cost = np.zeros(len(p.clusters))
        cost[p.costs.cluster[rows]] = p.objective.weights["cost"] * (p.costs.cost_micro[rows] / MICRO)
        price = cost[self.layout.group_cluster] + p.missing_mb[j, self.layout.group_region] * remote_mb_price(p)
        return price if (price != price[0]).any() else None

    def copy(self) -> "BatchState":
        """A batch that can go its own way."""
        return replace(
            self,
            state=copied(self.state)._replace(sample=self.state.sample, demand=self.state.demand, memo=self.state.memo),
            running=self.running.copy(),
            victim=dict(self.victim),
            placed=dict(self.placed),
            pending=dict(self.pending),
            stopped=set(self.stopped),
        )

    def value(self, prices: TermPrices) -> float:
        """The objective of what has been decided in the batch so far."""
        jobs = np.fromiter(self.placed.keys(), np.int64, len(self.placed))
        places = np.fromiter(self.placed.values(), np.int64, len(self.placed))
        stopped = np.fromiter(self.stopped, np.int64, len(self.stopped))
        return objective(self.state, prices, jobs, places, stopped)

    def admit(self, j: int, job: Request, placed: Placement, victims: Ints, limit: int = 0, cost: int = 0) -> list[int]:
        """Start a pending job at the expense of the victims; returns the pending jobs among these, which wait again.

        Args:
            limit, cost: what stopping the job would take, see ``state``.
        """
        ejected = []
        if len(self.problem.parts):
            ejected, victims = self.evict(victims), NOBODY
        for at in victims.tolist():
            if at in self.pending:
                ejected.append(self.pending.pop(at))
                del self.placed[ejected[-1]]
            else:
                self.stopped.add(self.victim[at])
        at = int(take(self.state, job, placed, victims, limit, cost, True))
        self.placed[j], self.pending[at] = at, j
        return ejected

    def evict(self, places: Ints) -> list[int]:
        """Stop the jobs at these places of the state, pending ones with all of their parts; returns the pending ones
        (of their parts the first), which wait again."""
        jobs = {int(self.problem.first_part[self.pending[at]]): None for at in places.tolist() if at in self.pending}
        for v in [self.victim[at] for at in places.tolist() if at not in self.pending]:
            self.stop(v)
        return [self.remove_whole(j) for j in jobs]

    def waiting(self) -> Ints:
        """Pending jobs (of their parts the first) that are not placed, ascending."""
        every = np.flatnonzero(self.problem.counts_once[: self.movers.first])
        return np.setdiff1d(every, np.fromiter(self.placed, np.int64, len(self.placed)))

    def cluster_of(self, place: int) -> int:
        """The cluster in which a job of the batch runs."""
        server = int(self.state.row[col.L_SERVER, self.state.job[col.J_ROW, place]])
        return int(self.layout.group_cluster[self.state.server[col.S_GROUP, server]])

    def remove(self, j: int) -> None:
        """Take a pending job out again."""
        at = self.placed.pop(j)
        del self.pending[at]
        ledger.stop(self.state, at, ledger.last_tier_of(self.state, at))

    def remove_whole(self, j: int) -> int:
        """Take a placed job out of the batch again with all of its parts; returns the first one."""
        first = int(self.problem.first_part[j])
        for part in self.parts_of(first):
            if part in self.placed:
                self.remove(part)
        return first

    def parts_of(self, first: int) -> range:
        """The rows of a pending job with its parts, from the first."""
        of = self.problem.first_part
        return range(first, int(np.searchsorted(of, first, side="right")))

    def replay(self, plan: Plan) -> None:
        """Do what a plan of the problem as stated says; the batch must be untouched. A job of which the plan does not
        have all tasks, or for which its servers and GPUs have no room (which only a plan that breaks rules asks for),
        is left out. Jobs whose GPUs the plan names go first, so that no other takes these."""
        for v in np.unique(plan.moved).tolist():
            ledger.stop(self.state, int(self.running[v]), len(self.problem.tiers) - 1)
        for v in np.flatnonzero(plan.preempt).tolist():
            self.stop(v)
        plan = self.movers.joined(plan)
        first = np.flatnonzero(np.diff(plan.job, prepend=-1))
        parts = [slice(begin, end) for begin, end in zip(first.tolist(), [*first[1:].tolist(), len(plan.job)])]
        need = self.problem.need_mgpu[plan.job, self.problem.servers.gpu_type[plan.server]]
        named = plan.indexed & (need > 0) & (need < WHOLE)
        for rows in sorted(parts, key=lambda rows: not named[rows].all()):
            placed = self._as_stated(plan, rows, int(need[rows][0]), bool(named[rows].all()))
            if placed is not None:
                j = int(plan.job[rows.start])
                self.admit(j, self.request(j), placed, NOBODY)

    def _as_stated(self, plan: Plan, rows: slice, mgpu: int, named: bool) -> Placement | None:
        """Placement of a job by these rows of a plan; None if it does not fit there."""
        job, state = self.request(int(plan.job[rows.start])), self.state
        each, index = plan.tasks[rows], plan.gpu_index[rows]
        if (each < 1).any() or (each > job.tasks).any() or each.sum() != job.tasks:
            return None
        server, at = np.unique(self.layout.position[plan.server[rows]], return_inverse=True)
        tasks = np.zeros(len(server), np.int64)
        np.add.at(tasks, at, each)
        device = np.zeros((len(server), state.row_device.shape[1]), np.int32)
        if named:
            if (index < 0).any() or (index >= device.shape[1]).any():
                return None
            asked = np.zeros(device.shape, np.int64)
            np.add.at(asked, (at, index), mgpu * each)
            if not self._has(server, asked, tasks * job.cpu, tasks * job.memory, job.tier):
                return None
            device[:] = asked
        elif not assign_devices(state, server, tasks, mgpu, job, device):
            return None
        return Placement(server, tasks, device, np.zeros(1, np.int64))

    def _has(self, server: Ints, device: Ints, cpu: Ints, memory: Ints, tier: int) -> bool:
        """Whether servers in the batch [·] have so much on each GPU [·, D] and so many cores and MiB for work of a
        tier.
        """
        room = self.state.slack_device[server, :, : tier + 1].min(axis=2)
        enough = (self.state.room[col.A_CPU, tier, server] >= cpu) & (
            self.state.room[col.A_MEMORY, tier, server] >= memory
        )
        return bool((room >= device).all() and enough.all())

    def stop(self, v: int) -> None:
        """Stop a running job of the problem; what it frees serves only more important work."""
        at = int(self.running[v])
        ledger.stop(self.state, at, ledger.last_tier_of_victim(self.state, at))
        self.stopped.add(v)

    def restore_unneeded(self, cost: Ints) -> None:
        """Let stopped jobs go on where what they held is still there, the most expensive by ``cost`` [V] first."""
        for v in sorted(self.stopped, key=lambda v: (-cost[v], v)):
            if self._still_there(v):
                self.stopped.remove(v)
                self._run(v, self._tier_above(v), int(cost[v]))

    def _tier_above(self, v: int) -> int:
        """The least important tier that may use what a victim frees, −1 if there is none."""
        return int(self.problem.running.tier[v]) - 1

    def _still_there(self, v: int) -> bool:
        """Whether the batch still has on their servers the capacity that a stopped running job held."""
        tiers = slice(0, self._tier_above(v) + 1)
        return all(
            (self.state.slack[0, s, tiers] >= need[CPU]).all()
            and (self.state.slack[1, s, tiers] >= need[MEMORY]).all()
            and (self.state.slack_device[s, :, tiers] >= device[:, None]).all()
            for s, need, device in self._held_by(v)
        )

    def _run(self, v: int, last: int, cost: int) -> None:
        """Start a running job of the problem where it runs, at the expense of tiers 0 … last."""
        p, state = self.problem, self.state
        tier = int(p.running.tier[v])
        at = ledger.new_job(state, tier, tier if p.running.preemptible[v] else 0, cost, False)
        for s, need, device in self._held_by(v):
            ledger.new_row(state, at, s, int(need[CPU]), int(need[MEMORY]), device)
        ledger.start(state, at, last)
        self.running[v] = at
        self.victim[at] = v

    def _held_by(self, v: int) -> Iterator[tuple[int, Ints, NDArray[np.int32]]]:
        """(position, amounts, milli-GPUs of each GPU) of what a running job of the problem holds."""
        held = self.held
        for at in range(held.first[v], held.first[v + 1]):
            yield int(self.layout.position[held.server[at]]), held.amount[at], held.device[at]

    def plan(self) -> Plan:
        """The batch's decisions so far, as a plan of the problem as stated."""
        rows = [row for j in sorted(self.placed) for row in self._rows(j)]
        table = np.array(rows, np.int64).reshape(-1, 5)
        preempt = np.zeros(len(self.problem.running), np.bool_)
        preempt[list(self.stopped)] = True
        job, server, tasks, index, indexed = (table[:, at].copy() for at in range(5))
        return self.movers.split(Plan(job, server, tasks, index, indexed.astype(np.bool_), preempt))

    def _rows(self, j: int) -> list[tuple[int, int, int, int, int]]:
        """(job, server, tasks, GPU, whether the GPU is named), sorted, of a job's placement in the batch."""
        p, state = self.problem, self.state
        rows = []
        row = int(state.job[col.J_ROW, self.placed[j]])
        while row >= 0:
            s = int(self.layout.server[state.row[col.L_SERVER, row]])
            mgpu = int(p.need_mgpu[j, p.servers.gpu_type[s]])
            device = state.row_device[row]
            if 0 < mgpu < WHOLE:
                rows += [(j, s, int(device[d]) // mgpu, d, 1) for d in np.flatnonzero(device).tolist()]
            else:
                rows.append((j, s, self._tasks(j, row, mgpu), 0, 0))
            row = int(state.row[col.L_NEXT, row])
        rows.sort()
        missing = int(p.jobs.tasks[j]) - sum(row[2] for row in rows)
        rows[0] = (j, rows[0][1], rows[0][2] + missing, *rows[0][3:])
        return rows

    def _tasks(self, j: int, row: int, mgpu: int) -> int:
        """Tasks of an allocation, from what it holds; 1 if they need nothing (the rest may then be anywhere)."""
        p, state = self.problem, self.state
        if mgpu:
            return int(state.row_device[row].sum()) // mgpu
        for need, held in (
            (p.jobs.cpu_mcores[j], state.row[col.L_CPU, row]),
            (p.jobs.memory_mib[j], state.row[col.L_MEMORY, row]),
        ):
            if need:
                return int(held // need)
        return 1


def batch_state_of(problem: JobPlacement, mix: ArrivalMix | None = None) -> BatchState:
    """The fleet of the problem with its running jobs, nothing decided yet; with a mix of arrivals, free capacity has a
    value."""
    movers = movable_jobs(problem)
    p = movers.problem
    layout = lay_out(p.server_cluster, p.servers.gpu_type, p.servers.rack, p.clusters.region, len(p.regions))
    held = allocations_of(p)
    most_rows = len(held.server) + int(np.minimum(p.jobs.tasks, len(p.servers)).sum())
    state = empty_state(layout, p.servers.supply, len(p.tiers), len(p.running) + len(p.jobs), most_rows)
    state.free_places[col.N_ROUND] = 1
    if mix is not None:
        types = {name: k for k, name in enumerate(p.gpu_types)}
        arrivals = mix.draw(types, server_classes(p.servers.gpu_type, p.servers.supply))
        state = valued(state, arrivals, 0, mix.sampling.memo)
    tier = p.running.tier
    running = np.stack(
        [tier, np.where(p.running.preemptible, tier, 0), p.running.at_risk_mgpu_hours * VICTIM + 1], axis=1
    )
    owner = np.repeat(np.arange(len(running)), np.diff(held.first))
    rows = np.stack([owner, layout.position[held.server], held.amount[:, CPU], held.amount[:, MEMORY]], axis=1)
    places = ledger.load(state, running, rows, held.device)
    return BatchState(p, layout, state, places, {at: v for v, at in enumerate(places.tolist())}, held, movers)


def mix_of(problem: JobPlacement, sampling: FillSampling = DEFAULT_SAMPLING) -> ArrivalMix:
    """The mix of arrivals of an instance: the shapes of its pending jobs, each counted once; none is drawn yet."""
    p, jobs, mix = problem, problem.jobs, ArrivalMix(sampling)
    largest = max(int(p.servers.supply[:, GPU].max(initial=0)), WHOLE)
    needs: list[dict[str, int]] = [{} for _ in range(len(jobs))]
    for j, k in zip(p.options.job.tolist(), p.options.gpu_type.tolist()):
        needs[j][p.gpu_types[k]] = int(p.need_mgpu[j, k])
    rows = zip(needs, jobs.cpu_mcores.tolist(), jobs.memory_mib.tolist(), jobs.tasks.tolist(), jobs.within.tolist())
    for (need, cpu, memory, tasks, within), prefer in zip(rows, jobs.prefer.tolist()):
        mix.add(*shape_of(need, cpu, memory, tasks, together(within, prefer), largest))
    return mix
