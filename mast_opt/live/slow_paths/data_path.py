"""Data path: once a day, where the data should be for the work of the next days, and the copies that lead there."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mast_opt.core.errors import UsageError
from mast_opt.live.loop.events import COPY, DROP, PlanStep
from mast_opt.live.loop.slow_path import CarriedOut, Planned, Question
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.slow_paths.data_instance import data_instance
from mast_opt.live.slow_paths.forecasts import Forecast, weighted_mean
from mast_opt.live.slow_paths.network_limits import NetworkLimits
from mast_opt.planner.io import checksum
from mast_opt.problems.data_placement.migration.planner import Steps, steps
from mast_opt.problems.data_placement.plan import Plan, gpu_demand
from mast_opt.problems.data_placement.problem import TERMS, DataPlacement

NAME = "data"
GPU_LIMITS = (SOFT, HARD) = ("soft", "hard")
LIMIT_WEIGHT = 4e5
"""Weight of overload where a GPU limit is hard: a hundred times that of refusing all work."""
TIER_RATIO = 0.1
"""Weight of a tier over that of the tier above it, where work is refused."""


@dataclass(frozen=True)
class DataPathParams:
    """Parameters of the data path.

    Args:
        every_s: how often it asks for a plan.
        copy_days: time that a plan has for its copies.
        copies_min: replicas of what was read in the last seven days, as far as storage and network have room.
        gpu_limit: ``soft``: demand may exceed supply, at a price; ``hard``: no plan may, and work is refused instead,
            the low tiers first.
        storage_weight: of what is stored, in the objective: the lower, the longer
            replicas stay that may be of use again.
        copy_weight: of what is copied, in the objective: at 0, nothing keeps a plan near what there is.
        keep_origin: whether a dataset stays in the region where it appeared, if that was one.
        plan_each: how many times it would ask for each time that it does; the first time counts.
    """

    every_s: int = 86_400
    copy_days: int = 4
    copies_min: int = 2
    gpu_limit: str = SOFT
    keep_origin: bool = False
    plan_each: int = 1
    storage_weight: float = TERMS["storage"]
    copy_weight: float = TERMS["copy"]

    def __post_init__(self) -> None:
        for name in ("every_s", "copy_days", "copies_min", "plan_each"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} of the data path is {getattr(self, name)}; expected at least 1")
        if self.gpu_limit not in GPU_LIMITS:
            raise UsageError(
                f"gpu_limit of the data path is {self.gpu_limit!r}; expected one of {', '.join(GPU_LIMITS)}"
            )


class DataPath:
    """Slow path of data: asks for a data placement from the present state, and carries it out wave by wave.

    Where no plan was found, the next instance asks for one replica of each dataset only.

    Args:
        origins: dataset → region where it appeared; used with ``keep_origin``.
        forecast: of demand.
    """

    name: str = NAME

    def __init__(
        self,
        network: NetworkLimits,
        params: DataPathParams | None = None,
        origins: Mapping[str, str] | None = None,
        forecast: Forecast = weighted_mean,
    ) -> None:
        self.params = params or DataPathParams()
        self.every_ms: int = self.params.every_s * 1000
        self._network, self._forecast = network, forecast
        self._origins = dict(origins or {}) if self.params.keep_origin else {}

    def ask(self, snapshot: Snapshot) -> Question | None:
        """Instance of the data path for the placement of data, made from the state."""
        if (snapshot.now_ms // self.every_ms - 1) % self.params.plan_each:
            return None
        copies = 1 if snapshot.plans.failed(NAME) else self.params.copies_min
        problem = data_instance(
            snapshot,
            self._network,
            copy_days=self.params.copy_days,
            copies_min=copies,
            origins=self._origins,
            forecast=self._forecast,
        )
        if problem is not None:
            own = {"storage": self.params.storage_weight, "copy": self.params.copy_weight}
            weights = {**problem.objective.weights, **own}
            problem = replace(problem, objective=replace(problem.objective, weights=weights))
        if problem is not None and self.params.gpu_limit == HARD:
            problem = with_hard_limits(problem)
        return None if problem is None else Question(problem, checksum(problem))

    def carry_out(self, snapshot: Snapshot, planned: Planned) -> CarriedOut:
        """Steps of the data plan that still fit the state, and those that are dropped."""
        problem, plan = planned.problem, planned.plan
        assert isinstance(problem, DataPlacement)
        assert isinstance(plan, Plan)
        found = steps(problem, plan)
        kept, dropped = (
            [],
            [
                f"{problem.datasets.labels[stuck.dataset]} to {problem.regions.labels[stuck.region]}: it has no order"
                for stuck in found.blocked
            ],
        )
        for step in plan_steps(problem, plan, found):
            why = _stale(snapshot, step)
            if why:
                dropped.append(f"{step.does} {step.name} {step.target}: {why}")
            else:
                kept.append(step)
        return CarriedOut(tuple(kept), tuple(dropped), planned_ratios(problem, plan))


def with_hard_limits(problem: DataPlacement) -> DataPlacement:
    """The data path's instance where the weight of overload rules out plans that exceed the supply of GPUs."""
    objective = replace(
        problem.objective,
        weights={**problem.objective.weights, "overload": LIMIT_WEIGHT},
        tier_weights={tier: TIER_RATIO**tier for tier in problem.tiers},
    )
    return replace(problem, objective=objective)


def plan_steps(problem: DataPlacement, plan: Plan, found: Steps) -> tuple[PlanStep, ...]:
    """Copies and deletions of a data plan as steps of the loop, with the waves in which they begin and end; a copy of
    several days is one step.
    """
    regions, names = problem.regions.labels, problem.datasets.labels
    merged: dict[tuple[str, int, int], PlanStep] = {}
    for step in found.steps:
        does = DROP if step.deletes else COPY
        if step.source is None and not step.deletes:
            continue
        key = does, step.dataset, step.region
        first = merged[key].first_wave if key in merged else step.wave
        source = "" if step.source is None or step.deletes else regions[step.source]
        source = merged[key].source if key in merged else source
        keep = min(int(problem.datasets.copies_min[step.dataset]), int(plan.place[step.dataset].sum()))
        target = regions[step.region]
        merged[key] = PlanStep(does, names[step.dataset], target, source, first, step.wave, max(1, keep))
    return tuple(merged.values())


def planned_ratios(problem: DataPlacement, plan: Plan) -> dict[int, float]:
    """Tier → in a data plan, the largest demand of that tier and more important ones over supply, of all regions and
    types.
    """
    asked, supply = gpu_demand(problem, plan), problem.regions.supply_mgpu
    has = supply > 0
    return {tier: float((asked[:, :, at][has] / supply[has]).max(initial=0.0)) for at, tier in enumerate(problem.tiers)}


def _stale(snapshot: Snapshot, step: PlanStep) -> str:
    """Reason why a step of a data plan of some hours ago will not fit any more; empty if it may."""
    if not snapshot.supply_mgpu.get(step.target):
        return "the region has no server in service"
    if step.does == COPY and step.target in snapshot.datasets.whole_in(step.name):
        return "it is there already"
    return ""
