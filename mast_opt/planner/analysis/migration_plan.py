"""Migration plans: the order in which a plan can be carried out, for every kind of problem that has one."""

from mast_opt.core.errors import UsageError
from mast_opt.problems.kind.migration_plan import Order
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import check_plan, kind_of


def steps(problem: Problem[PlanT], plan: PlanT) -> Order:
    """An order of what has to be done to get from today to the plan, what blocks it, and what would help.

    Args:
        problem: the instance, which gives the present state.
        plan: a plan of it without violations.

    Raises:
        UsageError: the kind of problem has no order of steps, or the plan breaks a limit.
    """
    kind = kind_of(problem)
    if kind.migration.steps is None:
        raise UsageError(f"a plan for {kind.name} has no steps to order")
    problem = check_plan(kind, problem, plan)
    verdict = kind.verification.verify(problem, plan)
    if not verdict.ok:
        raise UsageError(
            f"the plan breaks {verdict.violations[0]}, so there is no way to it within the limits; "
            "'mast-opt verify' lists every violation"
        )
    return kind.migration.steps(problem, plan)
