"""The loss of a region once a plan is carried out: what the GPUs that are left do not take."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Generic

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

STORED = "region_losses"
"""Field of ``plan.toml`` with the losses of regions that were proven after the solve."""
DOUBT = 1.25
"""GPUs missing by the best placement, over those missing by another: at most, as is taken. Above 1, since the goal puts
first terms that count other things."""


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
    """Whether no placement of the work that is left is better, within the gap asked for. If not, ``missing_gpus`` is
    an upper bound, and its parts say nothing: another placement has others."""

    regions: tuple["RegionLoss", ...] = ()
    """The loss of each region, in the order of the instance; where this is the worst of them."""
    lost_tb: float | None = None
    """TB of these datasets; None in files that do not state it."""

    @property
    def missing_gpus(self) -> float:
        """GPUs that are over the supply, or whose work stands still."""
        return self.overload_gpus + self.unserved_gpus

    def keys(self) -> dict[str, Any]:
        """The JSON object of a loss; where it is not proven, the parts of the upper bound are null."""
        parts = {} if self.proven else {"overload_gpus": None, "unserved_gpus": None}
        most = None if math.isinf(self.missing_gpus) else self.missing_gpus
        regions = [one.keys() for one in self.regions]
        return {**asdict(self), **parts, "missing_gpus_at_most": most, "regions": regions}


def region_loss(region: str, metrics: Mapping[str, float], lost: Loss, proven: bool) -> RegionLoss:
    """The figures of a loss.

    Args:
        region: of the region or scenario.
        metrics: those of the plan after the loss.
        lost: the data that is gone, and the work that reads it.
        proven: whether the plan after the loss is proven.
    """
    gpus = metrics["overload_gpus"], metrics["unserved_gpus"], lost.gpus or 0.0
    return RegionLoss(region, *gpus, len(lost.datasets), proven, lost_tb=lost.tb or 0.0)


def loss_fields(losses: Mapping[str, RegionLoss | None]) -> dict[str, Any]:
    """Field of ``plan.toml`` with the worst loss of a region, where it is proven, for each state of a name."""
    known = {name: asdict(one) for name, one in losses.items() if one is not None and one.proven}
    return {STORED: known} if known else {}


def stored_losses(fields: Mapping[str, Any]) -> dict[str, RegionLoss]:
    """The losses that ``plan.toml`` states by ``loss_fields``; what it does not state in full is left out."""
    found: dict[str, RegionLoss] = {}
    with suppress(AttributeError, KeyError, TypeError):
        for name, stated in fields.get(STORED, {}).items():
            regions = tuple(RegionLoss(**{**one, "regions": ()}) for one in stated["regions"])
            found[name] = RegionLoss(**{**stated, "regions": regions})
    return found


def can_lose_regions(problem: Problem[Any]) -> bool:
    """Whether the loss of a region can leave GPUs missing: the kind has regions to lose, and somebody uses GPUs."""
    stated: Any = problem
    return kind_of(problem).analysis.hooks().after_loss is not None and bool(stated.gpu_types)


class RegionLosses(Generic[PlanT]):
    """The loss of each region once a plan is carried out.

    Regions without storage, cores and GPUs are lost already. Replicas are those of the plan, and none is copied after
    the loss; work is placed again where its data is left, by the goal ``least-change``. Until that is solved, the loss
    of a region is that with a placement that is found at once, and an upper bound. The best placement is taken to miss
    at most ``DOUBT`` of it, apart from work whose data is lost; so a region needs no solve where another's proven loss
    is worse.

    Args:
        problem: an instance for which ``can_lose_regions``.
        plan: a plan of it that keeps every limit.
    """

    def __init__(self, problem: Problem[PlanT], plan: PlanT) -> None:
        self._kind, self._plan = kind_of(problem), plan
        stated: Any = check_plan(self._kind, problem, plan)
        self._stated = stated
        names = zip(stated.labels_of("regions"), stated.gone, strict=True)
        left = [name for name, gone in names if not gone]
        too_large = left and self._columns(self._after(left[0])[0]) > LARGEST
        self._losses = {} if too_large else {name: self._at_once(name) for name in left}

    @property
    def worst(self) -> RegionLoss | None:
        """The region whose loss leaves most GPUs missing, with the losses of all; an upper bound where the worst is
        not proven, None where no bound is known."""
        losses = tuple(self._losses.values())
        worst = max(losses, key=self._most, default=None)
        if worst is not None and not worst.proven:
            worst = replace(max(losses, key=lambda one: one.missing_gpus), proven=False)
        return None if worst is None or math.isinf(worst.missing_gpus) else replace(worst, regions=losses)

    def prove_worst(self, limits: SolveLimits) -> None:
        """Solve for the region with most GPUs missing, until that is proven or its solve ended without a proof."""
        clock, tried = Clock(limits.get("time_limit_s")), set[str]()
        while self._losses:
            worst = max(self._losses.values(), key=self._most)
            if worst.proven or worst.region in tried:
                return
            tried.add(worst.region)
            self._solve(worst.region, {**limits, "time_limit_s": clock.budget_s()})

    def prove_others(self, limits: SolveLimits) -> None:
        """Solve for each region that is not proven, those with most GPUs missing first."""
        clock = Clock(limits.get("time_limit_s"))
        unproven = sorted((one for one in self._losses.values() if not one.proven), key=self._most, reverse=True)
        for left, one in zip(range(len(unproven), 0, -1), unproven, strict=True):
            self._solve(one.region, {**limits, "time_limit_s": clock.budget_s(1 / left)})

    def _most(self, loss: RegionLoss) -> float:
        """GPUs that are missing at most after the loss of a region."""
        return loss.lost_gpus + (loss.missing_gpus - loss.lost_gpus) * (1.0 if loss.proven else DOUBT)

    def _columns(self, instance: Any) -> int:  # noqa: ANN401 - an instance of the kind
        """Columns of the program of an instance."""
        size = self._kind.formulation.size
        return LARGEST + 1 if size is None else size(instance).columns

    def _after(self, region: str) -> tuple[Any, Loss]:
        """The instance after the loss of a region, and the data that is lost."""
        after_loss = self._kind.analysis.hooks().after_loss
        assert after_loss is not None
        return after_loss(self._stated, self._plan, region)

    def _at_once(self, region: str) -> RegionLoss:
        """The loss of a region with the placement that needs no solve; infinite where that breaks a limit."""
        instance, lost = self._after(region)
        plan = self._kind.analysis.hooks().placed_soon(instance, self._plan)
        verdict = self._kind.verification.verify(instance, plan)
        found = region_loss(region, verdict.metrics, lost, proven=False)
        return found if verdict.ok else replace(found, overload_gpus=math.inf)

    def _solve(self, region: str, limits: SolveLimits) -> None:
        """Place work again after the loss of a region, as far as time and memory allow."""
        instance, lost = self._after(region)
        seconds = limits.get("time_limit_s")
        if self._columns(instance) > min(LARGEST, math.inf if seconds is None else COLUMNS_A_SECOND * seconds):
            return
        try:
            built = self._kind.formulate(instance)
            mip = replace(built.mip, offset=built.mip.offset - unavoidable(instance, lost))
            result = backends.get(EXACT).solve(mip, params_of(limits))
        except FormulationTooLarge:
            return
        if result.x is None:
            return
        metrics = self._kind.verification.verify(instance, built.decode(result.x)).metrics
        found = region_loss(region, metrics, lost, result.status is Status.OPTIMAL)
        if found.proven or found.missing_gpus < self._losses[region].missing_gpus:
            self._losses[region] = found


def unavoidable(problem: Problem[Any], lost: Loss | None) -> float:
    """The part of the objective that is work whose data is lost; 0 where terms are minimised one after another."""
    objective = problem.objective
    if lost is None or objective.lexicographic:
        return 0.0
    return float(sum(objective.weights.get(term, 0.0) * value for term, value in lost.unavoidable.items()))
