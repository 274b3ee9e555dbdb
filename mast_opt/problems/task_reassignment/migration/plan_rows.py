"""Migration steps of a task reassignment as rows: labels and words."""

from __future__ import annotations

from mast_opt.problems.kind.migration_plan import Move, Order, Stuck
from mast_opt.problems.task_reassignment.migration.planner import Blocked, steps
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import TaskReassignment


def migration_plan(problem: TaskReassignment, plan: Plan) -> Order:
    """Waves of moves from today's machines to the plan's."""
    p = problem
    found = steps(problem, plan)
    moves = tuple(
        Move(
            wave=step.wave,
            action="move",
            what=p.processes.labels[step.process],
            source=p.machines.labels[step.source],
            target=p.machines.labels[step.target],
            hop=step.hop,
        )
        for step in found.moves
    )
    stuck = tuple(
        Stuck(p.processes.labels[blocked.process], p.machines.labels[blocked.target], _reason(p, blocked))
        for blocked in found.blocked
    )
    return Order(moves, stuck, _relief(problem, found.blocked), proven=found.proven)


_CONFLICT = "a process of the same service is still there"


def _reason(problem: TaskReassignment, blocked: Blocked) -> str:
    words = (_missing(problem, blocked), _CONFLICT if blocked.conflict else "")
    return "; ".join(part for part in words if part)


def _missing(problem: TaskReassignment, blocked: Blocked) -> str:
    lacks = zip(problem.resources.labels, blocked.missing.tolist(), strict=True)
    words = [f"{amount:,} of {resource}" for resource, amount in lacks if amount]
    return f"{' and '.join(words)} are missing there" if words else ""


def _relief(problem: TaskReassignment, blocked: tuple[Blocked, ...]) -> tuple[str, ...]:
    """The smallest room with which one of those that are stuck could make its move after the other steps, measured by
    the machine's capacity. Room does not help where a process of the same service is on the machine."""
    p = problem
    lacking = [one for one in blocked if one.missing.any() and not one.conflict]
    if not lacking:
        return ()
    nearest = min(lacking, key=lambda one: float((one.missing / p.machines.capacity[one.target].clip(1)).max()))
    lacks = zip(p.resources.labels, nearest.missing.tolist(), strict=True)
    room = " and ".join(f"{amount:,} more of {resource}" for resource, amount in lacks if amount)
    machine, process = p.machines.labels[nearest.target], p.processes.labels[nearest.process]
    return (f"after these steps, {room} on {machine} would let {process} move there",)
