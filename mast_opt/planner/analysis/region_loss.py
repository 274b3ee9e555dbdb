"""The loss of a region once a plan is carried out: what the GPUs that are left do not take."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack

from mast_opt.core.errors import FormulationTooLarge
from mast_opt.core.solve_limits import SolveLimits, params_of
from mast_opt.core.solve_result import Status
from mast_opt.planner.solving.auto_strategy import EXACT
from mast_opt.planner.solving.clock import Clock
from mast_opt.planner.solving.last_pass import COLUMNS_A_SECOND, LARGEST
from mast_opt.problems import backends
from mast_opt.problems.kind.analysis_hooks import Loss
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import check_plan, kind_of


@dataclass(frozen=True)
class RegionLoss:
    """GPUs and data that are missing after the loss of one region, or of those of a scenario."""

    region: str
    """The region or scenario."""
    overload_gpus: float
    """GPUs over the supply that is left."""
    unserved_gpus: float
    """GPUs of work that stands still, such as that whose data is lost."""
    lost_gpus: float
    """GPUs of work that stands still since its data is lost: a part of ``unserved_gpus``."""
    datasets: int
    """Datasets of which nothing is left."""
    proven: bool = True
    """Whether no placement of the work that is left is better, within the gap asked for."""

    regions: tuple["RegionLoss", ...] = ()
    """The loss of each region, in the order of the instance; where this is the worst of them."""

    @property
    def missing_gpus(self) -> float:
        """GPUs that are over the supply, or whose work stands still."""
        return self.overload_gpus + self.unserved_gpus


def region_loss(region: str, metrics: Mapping[str, float], lost: Loss, proven: bool) -> RegionLoss:
    """The figures of a loss.

    Args:
        region: of the region or scenario.
        metrics: those of the plan after the loss.
        lost: the data that is gone, and the work that reads it.
        proven: whether the plan after the loss is proven.
    """
    gpus = metrics["overload_gpus"], metrics["unserved_gpus"], lost.gpus or 0.0
    return RegionLoss(region, *gpus, len(lost.datasets), proven)


def can_lose_regions(problem: Problem[Any]) -> bool:
    """Whether the loss of a region can leave GPUs missing: the kind has regions to lose, and somebody uses GPUs."""
    stated: Any = problem
    return kind_of(problem).analysis.hooks().after_loss is not None and bool(stated.gpu_types)


def worst_region_loss(problem: Problem[PlanT], plan: PlanT, **limits: Unpack[SolveLimits]) -> RegionLoss | None:
    """The region whose loss leaves most GPUs missing; None where a kind has no regions to lose or nobody uses GPUs, and
    where time or memory is too short for a proof.

    Regions without storage, cores and GPUs are lost already. Replicas are those of the plan, and none is copied after
    the loss; work is placed again where its data is left,
    by the goal ``least-change``. A placement that is not proven counts only where another region's proven loss is
    worse, since a better placement would miss less.

    Args:
        problem: the instance.
        plan: a plan of it that keeps every limit.
        limits: see ``SolveLimits``; ``time_limit_s`` is for all regions, and the gap is that of what a plan can change.
    """
    kind = kind_of(problem)
    after_loss = kind.analysis.hooks().after_loss
    stated: Any = check_plan(kind, problem, plan)
    if after_loss is None or not can_lose_regions(problem):
        return None
    clock = Clock(limits.get("time_limit_s"))
    losses: list[RegionLoss] = []
    names = [name for name, gone in zip(stated.labels_of("regions"), stated.gone, strict=True) if not gone]
    for left, name in zip(range(len(names), 0, -1), names, strict=True):
        instance, lost = after_loss(stated, plan, name)
        columns = LARGEST + 1 if kind.formulation.size is None else kind.formulation.size(instance).columns
        if columns > min(LARGEST, COLUMNS_A_SECOND * clock.remaining_s / left):
            return None
        params = params_of({**limits, "time_limit_s": clock.budget_s(1 / left)})
        try:
            formulation = kind.formulate(instance)
            mip = formulation.mip
            result = backends.get(EXACT).solve(replace(mip, offset=mip.offset - unavoidable(instance, lost)), params)
        except FormulationTooLarge:
            return None
        if result.x is None:
            return None
        found = kind.verification.verify(instance, formulation.decode(result.x)).metrics
        losses.append(region_loss(name, found, lost, result.status is Status.OPTIMAL))
    worst = max(losses, key=lambda one: one.missing_gpus, default=None)
    return None if worst is None or not worst.proven else replace(worst, regions=tuple(losses))


def unavoidable(problem: Problem[Any], lost: Loss | None) -> float:
    """The part of the objective that is work whose data is lost; 0 where terms are minimised one after another."""
    objective = problem.objective
    if lost is None or objective.lexicographic:
        return 0.0
    return float(sum(objective.weights.get(term, 0.0) * value for term, value in lost.unavoidable.items()))
