"""Set exchange of twine: a large process changes places with as many others as it needs the room of.

No change of two or three processes frees a machine that is too small for its largest process, once all other machines
are full of small ones.
"""

import numpy as np

from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import Bools, Ints, TaskReassignment
from mast_opt.problems.task_reassignment.twine.params import OperatorParams
from mast_opt.problems.task_reassignment.twine.state import spare
from mast_opt.problems.task_reassignment.verification.verifier import verify


def exchange_sets(problem: TaskReassignment, machine: Ints, params: OperatorParams) -> tuple[Ints, float] | None:
    """A cheaper assignment in which machines that cause much of the cost have given away their largest process.

    None where there is none. Deterministic; ``machine`` [P] breaks no rule and stays as it is.
    """
    found, best = None, verify(problem, Plan(machine)).objective
    for _ in range(len(problem.machines)):
        use = problem.used(machine)
        cost = np.maximum(use - problem.machines.safety, 0) @ _price(problem)
        source = int(cost.argmax())
        if cost[source] <= params.exchange_share * best:
            break
        better = _freed(problem, machine, use, source, best, params.exchange_targets)
        if better is None:
            break
        found = machine, best = better
    return found


def _price(problem: TaskReassignment) -> Ints:
    """[K] of a unit above the safety capacity."""
    price: Ints = problem.resources.load_weight * (problem.objective.weights["load"] > 0)
    return price


def _freed(
    problem: TaskReassignment, machine: Ints, use: Ints, source: int, cost: float, targets: int
) -> tuple[Ints, float] | None:
    """The first cheaper assignment with the largest process of the source elsewhere, and its cost."""
    p, need = problem, problem.processes.need
    residents = np.flatnonzero(machine == source)
    large = int(residents[(need[residents] @ _price(p)).argmax()])
    room = p.machines.safety - use
    firm = p.resources.transient
    room[:, firm] = np.minimum(room[:, firm], spare(p, machine))
    room[source] += need[large] * ~(firm & (p.processes.initial[large] == source))
    alone = (p.machines.safety >= need[large]).all(axis=1)
    alone[machine[p.processes.service == p.processes.service[large]]] = False
    lack = (np.maximum(need[large] - room, 0) / np.maximum(need[large], 1)).max(axis=1)
    nearest = np.argsort(lack, kind="stable")
    for target in nearest[alone[nearest]][:targets].tolist():
        leavers = _leavers(p, machine, target, need[large] - room[target], room[source])
        if leavers is None:
            continue
        changed = machine.copy()
        changed[leavers], changed[large] = source, target
        verdict = verify(p, Plan(changed))
        if verdict.ok and verdict.objective < cost:
            return changed, verdict.objective
    return None


def _leavers(problem: TaskReassignment, machine: Ints, source: int, lack: Ints, room: Ints) -> list[int] | None:
    """Processes of a machine that leave it with ``lack`` [K] more room and need no more than ``room`` [K]; None where
    the large ones that fit, taken first, are not enough."""
    p = problem
    members = np.flatnonzero(machine == source)
    here: Bools = p.processes.initial[members] == source
    given = p.processes.need[members] * ~(p.resources.transient & here[:, None])
    helps = (given * (lack > 0) / np.maximum(lack, 1)).sum(axis=1)
    taken: list[int] = []
    for at in np.argsort(-helps, kind="stable").tolist():
        if (lack <= 0).all():
            break
        need = p.processes.need[members[at]]
        if helps[at] > 0 and (need <= room).all():
            lack, room = lack - given[at], room - need
            taken.append(int(members[at]))
    return taken if (lack <= 0).all() else None
