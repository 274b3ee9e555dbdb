"""Current state of a task-reassignment instance: where each process runs, and which limits that breaks."""

from mast_opt.problems.kind.current_state import BrokenLimit, CurrentState, Known
from mast_opt.problems.task_reassignment.plan import today
from mast_opt.problems.task_reassignment.problem import TaskReassignment
from mast_opt.problems.task_reassignment.verification.verifier import verify


def current_state(problem: TaskReassignment) -> CurrentState:
    """Every process has a machine; each limit that the initial assignment breaks is listed."""
    broken = tuple(
        BrokenLimit(
            one.constraint, one.index, f"{one.name} is off by {one.amount:,.12g} {one.unit} (limit {one.limit:,.12g})"
        )
        for one in verify(problem, today(problem)).violations
    )
    processes = float(len(problem.processes))
    return CurrentState((Known("processes", processes, processes),), broken)
