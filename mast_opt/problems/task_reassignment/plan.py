"""A task-reassignment plan, and the current assignment as a plan."""

from dataclasses import dataclass

from mast_opt.core.arrays import OTHER_INSTANCE, Arrays, amounts, positions
from mast_opt.core.errors import PlanError
from mast_opt.problems.kind.problem_data import Decisions
from mast_opt.problems.task_reassignment.problem import Ints, TaskReassignment


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Decisions):
    """Decisions of a task reassignment. Raises PlanError for an array of another type or shape."""

    machine: Ints
    """[P] the machine that runs each process after the plan."""

    def __post_init__(self) -> None:
        check = Arrays(self)
        check.take(amounts("machine", "processes", least=None, total=False))
        if check.faults:
            raise PlanError(check.faults)


def check_plan(problem: TaskReassignment, plan: Plan) -> None:
    """Raises PlanError for a plan of another instance: a position that the problem does not have."""
    check = Arrays(plan, {name: len(getattr(problem, name)) for name in ("processes", "machines")})
    check.take(positions("machine", "processes", "machines"))
    if check.faults:
        raise PlanError(check.faults, OTHER_INSTANCE)


def today(problem: TaskReassignment) -> Plan:
    """Plan that leaves every process on its machine."""
    return Plan(problem.processes.initial.copy())
