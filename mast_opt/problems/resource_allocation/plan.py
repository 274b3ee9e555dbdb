"""A resource-allocation plan."""

from dataclasses import dataclass

import numpy as np

from mast_opt.core.arrays import OTHER_INSTANCE, Arrays, reals
from mast_opt.core.errors import PlanError
from mast_opt.problems.kind.problem_data import Decisions, Floats
from mast_opt.problems.resource_allocation.problem import ResourceAllocation


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Decisions):
    """Decisions of a resource allocation.

    Raises:
        PlanError: arrays of another type or shape, or numbers that are not finite.
    """

    share: Floats
    """[C] share of the time that each configuration runs, from 0 to 1."""
    rate: Floats
    """[J] rate of each job under these shares; ``of_shares`` computes it."""
    kept: Floats
    """[J] fraction of its rate that the policy's mechanism leaves each job, from 0 to 1; 1 without a mechanism."""

    def __post_init__(self) -> None:
        check = Arrays(self)
        check.take(
            *(reals(name, axis, least=-np.inf) for name, axis in (("share", "configurations"), ("rate", "jobs"))),
            reals("kept", "jobs", most=1.0),
        )
        if check.faults:
            raise PlanError(check.faults)

    @classmethod
    def of_shares(cls, problem: ResourceAllocation, share: Floats, kept: Floats | None = None) -> "Plan":
        """The plan with these shares [C] and the rates that follow from them.

        Args:
            kept: [J] of a mechanism; 1 for every job unless given.
        """
        rates = job_rates(problem, np.asarray(share, np.float64))
        return cls(share, rates, np.ones(len(problem.jobs)) if kept is None else kept)


def job_rates(problem: ResourceAllocation, share: Floats) -> Floats:
    """[J] Σ_c rate[c,j]·share[c]."""
    weights = problem.members.rate * share[problem.members.configuration]
    return np.bincount(problem.members.job, weights, minlength=len(problem.jobs)).astype(np.float64)


def check_plan(problem: ResourceAllocation, plan: Plan) -> None:
    """Raises PlanError for a plan of another instance: arrays of other lengths."""
    check = Arrays(plan, {name: len(getattr(problem, name)) for name in ("configurations", "jobs")})
    check.take(
        *(reals(name, axis, least=-np.inf) for name, axis in (("share", "configurations"), ("rate", "jobs"))),
        reals("kept", "jobs", most=1.0),
    )
    if check.faults:
        raise PlanError(check.faults, OTHER_INSTANCE)
