"""The task-reassignment MIP, read row by row as in ``models/task_reassignment.mod``."""

import numpy as np

from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.mip import MipBuilder
from mast_opt.problems.task_reassignment.formulation.codec import Codec
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import TaskReassignment


def base(problem: TaskReassignment) -> Formulation[Plan]:
    """The formulation of the .mod: one binary column for each process and machine."""
    statement = _Statement(problem)
    statement.assignment()
    statement.loads()
    statement.balances()
    statement.services()
    statement.dependencies()
    statement.moves()
    mip = statement.m.build(problem.objective.weights)
    codec = Codec(
        problem,
        len(mip.cost),
        statement.x,
        statement.over,
        statement.missing,
        statement.most_moved,
        statement.hosts,
        statement.spread,
    )
    return Formulation(mip, codec.decode, codec.encode)


class _Statement:
    """The columns, then one method per group of rows."""

    def __init__(self, problem: TaskReassignment) -> None:
        p = self.p = problem
        m = self.m = MipBuilder("task_reassignment")
        goals = tuple(f"b{goal}" for goal in range(len(p.balances.target)))
        self.goals = goals
        self.spread = np.flatnonzero((p.services.spread_min > 1) & (p.service_size > 0))
        hosts_at = np.meshgrid(self.spread, np.arange(len(p.locations)), indexing="ij")
        self.x = m.columns("x", [p.processes.labels, p.machines.labels], upper=1, integral=True)
        self.over = m.columns("over", [p.machines.labels, p.resources.labels])
        self.missing = m.columns("missing", [goals, p.machines.labels])
        self.most_moved = m.columns("most_moved", [])
        self.hosts = m.columns(
            "hosts", [p.services.labels, p.locations], [at.ravel() for at in hosts_at], upper=1, integral=True
        ).reshape(hosts_at[0].shape)

    def assignment(self) -> None:
        """Add the rows ``assigned``: Σ_m x[p,m] = 1."""
        p = self.p
        self.m.equals("assigned", [p.processes.labels], value=1).add(np.arange(len(p.processes))[:, None], self.x)

    def loads(self) -> None:
        """capacity: Σ_p need[p,k]·x[p,m] ≤ capacity[m,k]; of a transient resource, a process that was on m holds
        its need there in any case.   load: Σ_p need[p,k]·x[p,m] ≤ safety[m,k] + over[m,k]."""
        p, m = self.p, self.m
        machines, resources = len(p.machines), len(p.resources)
        capacity = m.rows(
            "capacity",
            [p.machines.labels, p.resources.labels],
            upper=p.machines.capacity - p.held * p.resources.transient,
        )
        load = m.rows("load", [p.machines.labels, p.resources.labels], upper=p.machines.safety)
        row = np.arange(machines * resources).reshape(machines, resources)
        load.add(row, self.over, -1)
        stays = p.processes.initial[:, None] == np.arange(machines)
        for k in range(resources):
            process = np.flatnonzero(p.processes.need[:, k])
            need = np.broadcast_to(p.processes.need[process, k, None], (len(process), machines))
            at = np.broadcast_to(row[:, k], need.shape)
            load.add(at, self.x[process], need)
            counts = ~(stays[process] & p.resources.transient[k])
            capacity.add(at[counts], self.x[process][counts], need[counts])
        m.term("load", self.over, p.resources.load_weight)

    def balances(self) -> None:
        """balance: target·(capacity − use)[m,k1] − (capacity − use)[m,k2] ≤ missing[b,m], where m is balanced."""
        p, m = self.p, self.m
        counts = np.flatnonzero(p.machines.balanced)
        first, second = (
            p.machines.capacity[counts][:, p.balances.first],
            p.machines.capacity[counts][:, p.balances.second],
        )
        at = np.meshgrid(np.arange(len(self.goals)), counts, indexing="ij")
        upper = (second - p.balances.target * first).T.ravel()
        balance = m.rows("balance", [self.goals, p.machines.labels], [part.ravel() for part in at], upper=upper)
        row = np.arange(len(self.goals) * len(counts)).reshape(len(self.goals), len(counts))
        balance.add(row, self.missing[:, counts], -1)
        for b in range(len(self.goals)):
            per_process = (
                p.processes.need[:, p.balances.second[b]]
                - p.balances.target[b] * p.processes.need[:, p.balances.first[b]]
            )
            process = np.flatnonzero(per_process)
            balance.add(row[b], self.x[process][:, counts], per_process[process, None])
        m.term("balance", self.missing, p.balances.weight[:, None])

    def services(self) -> None:
        """conflict: Σ_{p∈s} x[p,m] ≤ 1, for services of two processes or more;
        present: hosts[s,l] ≤ Σ_{p∈s, m∈l} x[p,m];  spread: Σ_l hosts[s,l] ≥ spread_min[s], where that is above 1."""
        p, m = self.p, self.m
        several = np.flatnonzero(p.service_size > 1)
        at = np.meshgrid(several, np.arange(len(p.machines)), indexing="ij")
        conflict = m.rows("conflict", [p.services.labels, p.machines.labels], [part.ravel() for part in at], upper=1)
        first_row = np.full(len(p.services), -1)
        first_row[several] = np.arange(len(several)) * len(p.machines)
        process = np.flatnonzero(first_row[p.processes.service] >= 0)
        conflict.add(first_row[p.processes.service[process]][:, None] + np.arange(len(p.machines)), self.x[process])

        locations = len(p.locations)
        at = np.meshgrid(self.spread, np.arange(locations), indexing="ij")
        present = m.rows("present", [p.services.labels, p.locations], [part.ravel() for part in at], upper=0)
        present.add(np.arange(self.hosts.size).reshape(self.hosts.shape), self.hosts)
        first_row = np.full(len(p.services), -1)
        first_row[self.spread] = np.arange(len(self.spread)) * locations
        process = np.flatnonzero(first_row[p.processes.service] >= 0)
        present.add(first_row[p.processes.service[process]][:, None] + p.machines.location, self.x[process], -1)
        spread = m.rows("spread", [p.services.labels], [self.spread], lower=p.services.spread_min[self.spread])
        spread.add(np.arange(len(self.spread))[:, None], self.hosts)

    def dependencies(self) -> None:
        """dependency: Σ_{m∈n} x[p,m] ≤ Σ_{q∈b, m∈n} x[q,m], for each p of a service that depends on b, and n."""
        p, m = self.p, self.m
        order = np.argsort(p.processes.service, kind="stable")
        start = np.concatenate([[0], np.cumsum(p.service_size)])
        members = [order[start[s] : start[s + 1]] for s in range(len(p.services))]
        pairs = [
            (q, s)
            for a, s in zip(p.dependencies.service.tolist(), p.dependencies.needs.tolist())
            if a != s
            for q in members[a]
        ]
        process = np.array([q for q, _ in pairs], np.int64)
        needed = np.array([s for _, s in pairs], np.int64)
        places = len(p.neighbourhoods)
        at = [np.repeat(process, places), np.repeat(needed, places), np.tile(np.arange(places), len(pairs))]
        dependency = m.rows("dependency", [p.processes.labels, p.services.labels, p.neighbourhoods], at, upper=0)
        row = np.arange(len(pairs))[:, None] * places + p.machines.neighbourhood
        dependency.add(row, self.x[process])
        other = np.repeat(np.arange(len(pairs)), p.service_size[needed])
        helpers = np.concatenate([members[s] for s in needed.tolist()]) if pairs else np.zeros(0, np.int64)
        dependency.add(row[other], self.x[helpers], -1)

    def moves(self) -> None:
        """most_moved ≥ Σ_{p∈s} (1 − x[p, initial[p]]);  terms process_move, service_move, machine_move."""
        p, m = self.p, self.m
        everyone = np.arange(len(p.processes))
        moved = m.rows("moved", [p.services.labels], lower=p.service_size)
        moved.add(np.arange(len(p.services)), self.most_moved)
        moved.add(p.processes.service, self.x[everyone, p.processes.initial])
        m.term(
            "process_move",
            self.x[everyone, p.processes.initial],
            -p.processes.move_cost,
            float(p.processes.move_cost.sum()),
        )
        m.term("service_move", self.most_moved)
        cost = p.move_groups.move_cost[p.machines.move_group[p.processes.initial][:, None], p.machines.move_group]
        elsewhere = (cost > 0) & (p.processes.initial[:, None] != np.arange(len(p.machines)))
        m.term("machine_move", self.x[elsewhere], cost[elsewhere])
