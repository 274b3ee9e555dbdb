"""A server-assignment plan, and the current assignment as a plan."""

from dataclasses import dataclass

from mast_opt.core.arrays import OTHER_INSTANCE, Arrays, amounts, positions
from mast_opt.core.errors import PlanError
from mast_opt.problems.kind.problem_data import Decisions
from mast_opt.problems.server_assignment.problem import Ints, ServerAssignment


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Decisions):
    """Decisions of a server assignment. Raises PlanError for an array of another type or shape."""

    reservation: Ints
    """[S] the reservation that has each server after the plan; Q for an unassigned server."""

    def __post_init__(self) -> None:
        check = Arrays(self)
        check.take(amounts("reservation", "servers", least=None, total=False))
        if check.faults:
            raise PlanError(check.faults)


def check_plan(problem: ServerAssignment, plan: Plan) -> None:
    """Raises PlanError for a plan of another instance: a position that the problem does not have."""
    check = Arrays(plan, {name: len(getattr(problem, name)) for name in ("servers", "reservations")})
    check.take(positions("reservation", "servers", "reservations", beyond=1))
    if check.faults:
        raise PlanError(check.faults, OTHER_INSTANCE)


def today(problem: ServerAssignment) -> Plan:
    """Plan that changes no server. It breaks no limit, since limits allow whatever the present assignment lacks."""
    return Plan(problem.servers.owner.copy())
