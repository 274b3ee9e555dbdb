"""Strategy of tetris: the one place that decides which algorithms run on an instance, and on how much of the time."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.problem import DataPlacement, Ints
from mast_opt.problems.data_placement.tetris.params import TetrisParams
from mast_opt.problems.data_placement.tetris.stage_objective import StageObjective
from mast_opt.problems.search.params import Value
from mast_opt.problems.search.strategy import Strategy

MOST_PARTS = 128
"""Most parts of a plan: what belongs to no region draws the number of its part in eight bits."""


class Search(StrEnum):
    """Ways to search for plans."""

    MULTISTART = "multistart annealing"
    """Every thread cools plans of its own."""
    PARALLEL = "parallel annealing"
    """Every thread anneals a part of one plan."""
    MULTILEVEL = "multilevel start, then parallel annealing"
    GIBBS = "Gibbs sweeps, then parallel annealing"


class TreeCuts(StrEnum):
    """Times at which the Lagrangian relaxation separates tree cuts."""

    NEVER = "never"
    WITH_SEARCH = "during the search"
    WITH_SUB_MIPS = "during the sub-MIPs"


class Finish(StrEnum):
    """Exact solves that follow the search."""

    SHARES = "shares of splittable work and sources across links"
    WORKLOADS = "all work, with replicas held"
    NEIGHBOURHOODS = "neighbourhoods"
    WHOLE = "the whole program, then neighbourhoods"


@dataclass(frozen=True)
class Features:
    """Features of an instance and its start on which the strategy depends."""

    workloads: int
    regions: int
    read_cells: int
    """Reads times regions."""
    link_cells: int | None
    """Reads times links; None without links."""
    option_cells: int
    """Options times the regions where each may run."""
    gang_share: float
    """Share of a region's GPUs of its type that the gang of the usual GPU takes."""
    remote_reads: bool
    splittable: bool
    """True if some work may be split."""
    replicas_priced: bool
    """True if a replica costs anything."""
    one_copy: bool
    """True if no dataset that is read may have a second copy."""
    gpus: bool
    """True if some work needs GPUs."""
    start: bool
    """True if a plan is given to start from."""

    @classmethod
    def of(cls, problem: DataPlacement, start: Plan | None) -> "Features":
        """The features of a problem with or without a start."""
        reads = len(problem.reads)
        return cls(
            workloads=len(problem.workloads),
            regions=len(problem.regions),
            read_cells=reads * len(problem.regions),
            link_cells=None if problem.links is None else reads * len(problem.links),
            option_cells=int(problem.option_regions.sum()),
            gang_share=usual_share(problem.options.mgpu, problem.regions.supply_mgpu),
            remote_reads=problem.remote_reads,
            splittable=bool(problem.workloads.splittable.any()),
            replicas_priced=bool(problem.datasets.size_mb.any()),
            one_copy=bool((problem.datasets.copies_max[problem.reads.dataset] <= 1).all()),
            gpus=bool(problem.options.mgpu.any()),
            start=start is not None,
        )


@dataclass(frozen=True)
class Budget:
    """Time and threads that a search may take."""

    seconds: float
    """Infinite where there is no time limit."""
    counted: bool
    """True if rounds are counted, so that the clock must have no say."""
    threads: int


@dataclass(frozen=True)
class TetrisStrategy(Strategy):
    """Choice of the algorithms that run, and their settings."""

    search: Search
    chains: int
    """Plans or parts of a plan that are annealed at the same time."""
    search_share: float
    """Share of the time that is searched, before the sub-MIPs."""
    search_s: float
    """Seconds of the search, less what is reserved for handing the plan over; infinite without a time limit."""
    hot: float
    """First temperature, in mean costs of a workload."""
    temperature_scale: float
    """Factor on the usual first temperatures that ``hot`` includes."""
    link_surcharge: float
    """Factor on the prices of remote reads and copies in the search."""
    tree_cuts: TreeCuts
    finish: Finish

    @property
    def facts(self) -> dict[str, Value]:
        """Field → value of tetris' strategy; without the seconds, which depend on the clock."""
        stated = {name: str(value) if isinstance(value, StrEnum) else value for name, value in super().facts.items()}
        return {name: value for name, value in stated.items() if name != "search_s"}


def choose_strategy(
    features: Features, objective: StageObjective, budget: Budget, params: TetrisParams
) -> TetrisStrategy:
    """The strategy for an instance with these features; the same arguments give the same strategy."""
    search = _search(features, objective, params)
    finish = _finish(features, objective, params)
    scale = _temperature_scale(features, objective, params)
    multistart = search is Search.MULTISTART
    chains = budget.threads if multistart else min(budget.threads, features.regions // 2)
    handover_s = params.handover_s_per_cell * features.read_cells
    share = 1.0 if budget.counted else _search_share(features, objective, finish, params)
    search_s = share * max(budget.seconds * (1 - params.reserve) - handover_s, budget.seconds / 2)
    return TetrisStrategy(
        search=search,
        chains=max(1, min(chains, MOST_PARTS)),
        search_share=share,
        search_s=search_s,
        hot=_hot(features, objective, search, params) * scale,
        temperature_scale=scale,
        link_surcharge=params.neighbourhoods.link_surcharge if _links_follow(features, params) else 1.0,
        tree_cuts=_tree_cuts(features, objective, budget, finish, search_s, params),
        finish=Finish.SHARES if budget.counted else finish,
    )


def _search(f: Features, objective: StageObjective, params: TetrisParams) -> Search:
    """Choice of the search: Gibbs sweeps where there is much of all, packed gangs where there is little. With one copy
    of each dataset and no GPUs, remote reads are edges that a partition of the datasets cuts."""
    scratch = not f.start and not objective.caps and f.link_cells is None
    reads = f.remote_reads and objective.weights["remote"] > 0 and not objective.gpus_alone
    if scratch and reads and f.one_copy and not f.gpus and _partitions(f, params):
        return Search.MULTILEVEL
    if not f.start and f.remote_reads and f.workloads <= params.multistart.most_workloads:
        return Search.MULTISTART
    many = f.workloads >= params.gibbs.workloads and f.gang_share <= params.gibbs.gang_share
    return Search.GIBBS if scratch and reads and many else Search.PARALLEL


def _partitions(f: Features, params: TetrisParams) -> bool:
    """Whether the graph is of a size to be partitioned."""
    return f.regions > 1 and f.read_cells <= params.multilevel.most_cells and params.multilevel.share > 0


def _links_follow(f: Features, params: TetrisParams) -> bool:
    """Whether neighbourhoods bring the plan within the links."""
    return f.link_cells is not None and f.link_cells <= params.neighbourhoods.link_cells


def _finish(f: Features, objective: StageObjective, params: TetrisParams) -> Finish:
    """Exact solve that follows the search where the clock may have a say."""
    limits = params.neighbourhoods
    if f.link_cells is not None:
        return Finish.NEIGHBOURHOODS if _links_follow(f, params) else Finish.SHARES
    if f.remote_reads and objective.work_alone and f.option_cells <= params.workloads_only.option_cells:
        return Finish.WORKLOADS
    capped, most = bool(objective.caps), limits.whole_cells_later if f.remote_reads else limits.whole_cells
    if (capped or not f.remote_reads) and not f.splittable and f.read_cells <= most:
        return Finish.WHOLE
    follows = capped or f.remote_reads
    return Finish.NEIGHBOURHOODS if follows and f.read_cells <= limits.read_cells else Finish.SHARES


def _search_share(f: Features, objective: StageObjective, finish: Finish, params: TetrisParams) -> float:
    """Share of the time that is searched before that."""
    if finish is Finish.SHARES:
        return 1.0
    if finish is Finish.WORKLOADS:
        own = params.workloads_only
        return float(np.clip(f.option_cells / own.cells_per_search, own.least_search, own.most_search))
    if f.link_cells is not None:
        return params.neighbourhoods.search_share_links
    limits = params.neighbourhoods
    if objective.caps and f.remote_reads:
        return limits.search_share_later
    return limits.search_share_whole if finish is Finish.WHOLE else limits.search_share_priced


def _hot(f: Features, objective: StageObjective, search: Search, params: TetrisParams) -> float:
    """First temperature of tetris' annealing, by the search that comes before it."""
    if search is Search.GIBBS:
        return min(max(params.cooling.warm, params.gibbs.warmer * f.gang_share), params.cooling.hot)
    if search is Search.MULTILEVEL:
        return params.multilevel.warm
    if objective.caps and not objective.work_alone:
        return params.cooling.later_stage
    return params.cooling.warm if f.start else params.cooling.hot


def _temperature_scale(f: Features, objective: StageObjective, params: TetrisParams) -> float:
    """Cost of changes relative to the mean cost of a workload, compared with the usual case."""
    if objective.gpus_alone and not objective.caps:
        return params.cooling.gpus_only
    return 1.0 if f.remote_reads else params.cooling.no_remote_reads


def _tree_cuts(
    f: Features, objective: StageObjective, budget: Budget, finish: Finish, search_s: float, params: TetrisParams
) -> TreeCuts:
    """Choice of tree cuts: only where reads and replicas cost something and there is time for them."""
    of_replicas = ("storage", "copy", "moved_items", "running_cost", "migration_cost")
    priced = any(objective.weights.get(term, 0.0) > 0 for term in of_replicas)
    replicas = f.replicas_priced and priced
    if not replicas or (f.remote_reads and objective.weights["remote"] == 0):
        return TreeCuts.NEVER
    sub_mips = finish in (Finish.NEIGHBOURHOODS, Finish.WHOLE)
    if sub_mips and not budget.counted and budget.threads > 1:
        return TreeCuts.WITH_SUB_MIPS
    patient = not budget.counted and f.read_cells <= params.tree_cuts.most_cells
    patient = patient and search_s >= params.tree_cuts.seconds_per_cell * f.read_cells
    few = f.read_cells <= params.tree_cuts.few_cells
    return TreeCuts.WITH_SEARCH if sub_mips or few or patient else TreeCuts.NEVER


def usual_share(needs: Ints, limits: Ints) -> float:
    """Share (for tetris' strategy) of a region's resource that the work around the usual unit takes, on average over
    regions with any.
    """
    taken, given = needs.astype(np.float64), limits[limits > 0]
    return float((taken**2).sum() / max(taken.sum(), 1.0) / given.mean()) if len(given) else 0.0
