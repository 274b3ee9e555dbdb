"""Risk analysis (``explain --risk``): which data has a single copy, how much work depends on each region."""

from mast_opt.core.errors import UsageError
from mast_opt.planner.analysis.common import asked
from mast_opt.problems.kind.analysis_hooks import Risk
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import check_plan


def risk(problem: Problem[PlanT], plan: PlanT | None = None) -> Risk:
    """Find the data that has a single copy, and what each region would take with it.

    Args:
        problem: an instance.
        plan: a plan of it; None for the present state.

    Raises:
        UsageError: instances of this kind have no data that a region can take with it.
        PlanError: the plan was made for another instance.
    """
    kind, questions = asked(problem)
    if questions.risk is None:
        raise UsageError(f"{kind.name} has no replicas to ask about; --risk is for data-placement")
    if plan is not None:
        problem = check_plan(kind, problem, plan)
    return questions.risk(problem, plan)
