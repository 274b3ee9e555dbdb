"""The worst loss of a region once a plan is carried out: what the GPUs that are left do not take."""

from dataclasses import dataclass
from typing import Any, Unpack

from mast_opt.core.errors import FormulationTooLarge
from mast_opt.core.solve_limits import SolveLimits, params_of
from mast_opt.core.solve_result import Status
from mast_opt.planner.solving.auto_strategy import EXACT
from mast_opt.planner.solving.clock import Clock
from mast_opt.planner.solving.last_pass import COLUMNS_A_SECOND, LARGEST
from mast_opt.problems import backends
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import check_plan, kind_of


@dataclass(frozen=True)
class RegionLoss:
    """GPUs and data that are missing after the loss of one region."""

    region: str
    overload_gpus: float
    """GPUs over the supply that is left."""
    unserved_gpus: float
    """GPUs of work that stands still, such as that whose data is lost."""
    datasets: int
    """Datasets of which nothing is left."""

    @property
    def missing_gpus(self) -> float:
        """GPUs that are over the supply, or whose work stands still."""
        return self.overload_gpus + self.unserved_gpus


def can_lose_regions(problem: Problem[Any]) -> bool:
    """Whether the loss of a region can leave GPUs missing: the kind has regions to lose, and somebody uses GPUs."""
    stated: Any = problem
    return kind_of(problem).analysis.hooks().after_loss is not None and bool(stated.gpu_types)


def worst_region_loss(problem: Problem[PlanT], plan: PlanT, **limits: Unpack[SolveLimits]) -> RegionLoss | None:
    """The region whose loss leaves most GPUs missing; None where a kind has no regions to lose or nobody uses GPUs, and
    where time or memory is too short for a proof.

    Replicas are those of the plan, and none is copied after the loss; work is placed again where its data is left,
    by the goal ``least-change``. A placement that is not proven counts only where another region's proven loss is
    worse, since a better placement would miss less.

    Args:
        problem: the instance.
        plan: a plan of it that keeps every limit.
        limits: see ``SolveLimits``; ``time_limit_s`` is for all regions.
    """
    kind = kind_of(problem)
    after_loss = kind.analysis.hooks().after_loss
    stated: Any = check_plan(kind, problem, plan)
    if after_loss is None or not can_lose_regions(problem):
        return None
    clock = Clock(limits.get("time_limit_s"))
    losses: list[tuple[RegionLoss, bool]] = []
    names = stated.labels_of("regions")
    for left, name in zip(range(len(names), 0, -1), names, strict=True):
        instance, lost = after_loss(stated, plan, name)
        columns = LARGEST + 1 if kind.formulation.size is None else kind.formulation.size(instance).columns
        if columns > min(LARGEST, COLUMNS_A_SECOND * clock.remaining_s / left):
            return None
        params = params_of({**limits, "time_limit_s": clock.budget_s(1 / left)})
        try:
            formulation = kind.formulate(instance)
            result = backends.get(EXACT).solve(formulation.mip, params)
        except FormulationTooLarge:
            return None
        if result.x is None:
            return None
        found = kind.verification.verify(instance, formulation.decode(result.x)).metrics
        loss = RegionLoss(name, found["overload_gpus"], found["unserved_gpus"], len(lost.datasets))
        losses.append((loss, result.status is Status.OPTIMAL))
    worst, proven = max(losses, key=lambda one: one[0].missing_gpus)
    return worst if proven else None
