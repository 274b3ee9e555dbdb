"""Verifier of task-reassignment plans: checks the statement of the problem, sharing no code with any solver.

Everything is integer arithmetic without tolerance. A broken limit is named as its row in
``models/task_reassignment.mod``; a process without a machine is a broken ``assigned``.
"""

import numpy as np

from mast_opt.core.verdict import Verdict, Violation
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import TaskReassignment


def verify(problem: TaskReassignment, plan: Plan) -> Verdict:
    """Every violation of the plan, and its cost terms, metrics and objective recomputed from the plan alone.

    A process whose machine is not one of the problem's counts for nothing else.

    Raises:
        ValueError: the plan is not one position for each process.
    """
    if plan.machine.shape != (len(problem.processes),):
        raise ValueError(f"machine has shape {plan.machine.shape}, expected {(len(problem.processes),)}")
    check = _Check(problem, plan)
    terms = {
        "load": check.load(),
        "balance": check.balance(),
        "process_move": int(problem.processes.move_cost[check.moved].sum()),
        "service_move": check.service_move(),
        "machine_move": check.machine_move(),
    }
    violations = (
        *check.assigned(),
        *check.capacity(),
        *check.conflict(),
        *check.spread(),
        *check.dependency(),
    )
    objective = float(sum(weight * terms[name] for name, weight in problem.objective.weights.items()))
    return Verdict(violations, objective, {name: float(value) for name, value in terms.items()}, check.metrics())


class _Check:
    """One method for each group of rows and each term."""

    def __init__(self, problem: TaskReassignment, plan: Plan) -> None:
        p = self.p = problem
        self.plan = plan
        self.running = np.flatnonzero((plan.machine >= 0) & (plan.machine < len(p.machines)))
        self.machine = plan.machine[self.running]
        self.service = p.processes.service[self.running]
        self.moved = self.running[self.machine != p.processes.initial[self.running]]
        self.use = np.zeros_like(p.machines.capacity)
        np.add.at(self.use, self.machine, p.processes.need[self.running])

    def load(self) -> int:
        """Load cost over all machines."""
        return int((np.maximum(self.use - self.p.machines.safety, 0) @ self.p.resources.load_weight).sum())

    def balance(self) -> int:
        """Balance cost over all machines."""
        free = self.p.machines.capacity - self.use
        missing = self.p.balances.target * free[:, self.p.balances.first] - free[:, self.p.balances.second]
        missing = missing[self.p.machines.balanced]
        return int((np.maximum(missing, 0) @ self.p.balances.weight).sum())

    def service_move(self) -> int:
        """The largest number of moved processes of one service."""
        return int(np.bincount(self.p.processes.service[self.moved], minlength=1).max())

    def machine_move(self) -> int:
        """Cost of moves between groups of machines, in the verifier."""
        group = self.p.machines.move_group
        old, new = self.p.processes.initial[self.moved], self.plan.machine[self.moved]
        return int(self.p.move_groups.move_cost[group[old], group[new]].sum())

    def assigned(self) -> list[Violation]:
        """Violations by processes that run on no machine."""
        lost = np.setdiff1d(np.arange(len(self.p.processes)), self.running)
        return [Violation("assigned", (self.p.processes.labels[at],), 1.0, 1.0, "machines") for at in lost.tolist()]

    def capacity(self) -> list[Violation]:
        """A moved process holds the transient resources of the machine that it left as well."""
        p = self.p
        held = self.use.copy()
        np.add.at(held, p.processes.initial[self.moved], p.processes.need[self.moved] * p.resources.transient)
        over = held - p.machines.capacity
        return [
            Violation(
                "capacity",
                (p.machines.labels[m], p.resources.labels[k]),
                float(over[m, k]),
                float(p.machines.capacity[m, k]),
                f"units of {p.resources.labels[k]}",
            )
            for m, k in np.argwhere(over > 0).tolist()
        ]

    def conflict(self) -> list[Violation]:
        """Violations by processes of a service on one machine."""
        pairs, count = np.unique(np.stack([self.service, self.machine], axis=1), axis=0, return_counts=True)
        crowded = count > 1
        return [
            Violation(
                "conflict", (self.p.services.labels[s], self.p.machines.labels[m]), float(n - 1), 1.0, "processes"
            )
            for (s, m), n in zip(pairs[crowded].tolist(), count[crowded].tolist(), strict=True)
        ]

    def spread(self) -> list[Violation]:
        """A service without processes has nothing to spread."""
        p = self.p
        pairs = np.unique(np.stack([self.service, p.machines.location[self.machine]], axis=1), axis=0)
        missing = p.services.spread_min - np.bincount(pairs[:, 0], minlength=len(p.services))
        missing[p.service_size == 0] = 0
        return [
            Violation(
                "spread", (p.services.labels[s],), float(missing[s]), float(p.services.spread_min[s]), "locations"
            )
            for s in np.flatnonzero(missing > 0).tolist()
        ]

    def dependency(self) -> list[Violation]:
        """Looks at every pair of a dependency and a neighbourhood that hosts its dependent service."""
        p = self.p
        near = p.machines.neighbourhood[self.machine]
        width = len(p.neighbourhoods)
        hosted = np.unique(self.service * width + near)
        host, place = hosted // width, hosted % width
        order = np.argsort(p.dependencies.service, kind="stable")
        first = np.searchsorted(p.dependencies.service[order], host)
        count = np.searchsorted(p.dependencies.service[order], host, side="right") - first
        pair = np.repeat(np.arange(len(hosted)), count)
        within = np.arange(len(pair)) - np.repeat(np.cumsum(count) - count, count)
        needed = p.dependencies.needs[order][first[pair] + within]
        lonely = np.flatnonzero(~np.isin(needed * width + place[pair], hosted))
        return [
            Violation(
                "dependency",
                (p.processes.labels[at], p.services.labels[needed[row]], p.neighbourhoods[place[pair[row]]]),
                1.0,
                0.0,
                "processes",
            )
            for row in lonely.tolist()
            for at in self.running[(self.service == host[pair[row]]) & (near == place[pair[row]])].tolist()
        ]

    def metrics(self) -> dict[str, float]:
        """``mean_excess``: use above the safety capacity as a share of the capacity, averaged over machines and
        added up over resources."""
        over = np.maximum(self.use - self.p.machines.safety, 0)
        has = self.p.machines.capacity > 0
        nothing = np.zeros(self.use.shape)
        return {
            "moved_processes": float(len(self.moved)),
            "moved_share": len(self.moved) / len(self.p.processes),
            "machines_over_safety": float((over > 0).any(axis=1).sum()),
            "peak_utilisation": float(
                np.divide(self.use, self.p.machines.capacity, out=nothing.copy(), where=has).max()
            ),
            "mean_excess": float(np.divide(over, self.p.machines.capacity, out=nothing, where=has).mean(axis=0).sum()),
        }
