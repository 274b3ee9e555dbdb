"""Structure of a generated organisation before its first job (teams, data, targets, servers), and its parameters."""

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import UsageError
from mast_opt.problems.data_placement.generate import distributions as draws
from mast_opt.problems.data_placement.generate.published import POOR_SHARE
from mast_opt.problems.data_placement.generate.teams import PARETO_INDEX, Teams
from mast_opt.problems.kind.problem_data import Ints

Floats = NDArray[np.float64]
GPU_TYPES = ("a100", "h100", "v100")
GPUS_PER_SERVER = 8
SUPPLY_ALPHA = 3.0
"""Concentration of the Dirichlet distribution of GPUs over regions."""
WEEKLY_CHANGE = 0.2
"""σ of the change of a namespace's popularity from week to week, in logarithms."""
HOT_SHARE = 0.5
"""Share of a namespace's partitions that its first-time work reads; at least one."""
RECURRING = 4
"""Recurring workloads of a namespace."""
WEEK_DAYS = 7


TIER_LOADS = (0.95, 0.03, 0.0665, 0.2244, 0.0291)
"""Demand of each tier over supply: 0.98 for the first two, 1.3 for all."""


def generator(seed: int, purpose: str, number: int = 0) -> np.random.Generator:
    """A random generator of its own in the organisation for each purpose, so that one more draw somewhere shifts
    nothing else.
    """
    return np.random.Generator(np.random.PCG64([seed, zlib.crc32(purpose.encode()), number]))


@dataclass(frozen=True, eq=False)
class Structure:
    """Namespaces N, partitions I, regions R, types K, tiers P, weeks W."""

    namespace: Ints
    """[I] ascending."""
    home: Ints
    """[N] region."""
    team: Ints
    """[N] ascending."""
    partner: Ints
    """[N] another namespace of the same team; itself where there is none."""
    size_mb: Ints
    """Size of each dataset, [I]."""
    created_day: Floats
    """[I] 0 for what is there from the start."""
    hot: NDArray[np.bool_]
    """Mask of the hot datasets, [I]."""
    target: Floats
    """[N, P, W] GPUs that the work of a namespace and tier takes on average."""
    nominal: Ints
    """[N, RECURRING] GPU type of each recurring workload."""
    supply: Ints
    """[R, K] GPUs."""

    def partitions(self, n: int) -> Ints:
        """Partitions (datasets) of a namespace of the organisation."""
        first, last = np.searchsorted(self.namespace, [n, n + 1])
        return np.arange(first, last)


def structure(params: "OrganisationParams") -> Structure:
    """The structure of a generated organisation with these parameters."""
    rng = generator(params.seed, "teams")
    teams = Teams.drawn(rng, params.datasets)
    count = len(teams.team)
    home = rng.integers(params.regions - 1, size=int(teams.team[-1]) + 1)[teams.team]
    first = np.searchsorted(teams.team, teams.team)
    members = np.bincount(teams.team)[teams.team]
    partner = first + (np.arange(count) - first + 1) % members
    size_mb = teams.sizes_mb(generator(params.seed, "sizes"))
    rng = generator(params.seed, "partitions")
    order = np.lexsort((rng.random(len(size_mb)), teams.namespace))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.searchsorted(teams.namespace, teams.namespace)[order]
    of = np.bincount(teams.namespace)[teams.namespace]
    hot = rank < np.maximum(1, np.floor(HOT_SHARE * of))
    new = hot & (rank > 0) & (rng.random(len(order)) * 100 * HOT_SHARE < params.new_percent)
    created = np.where(new, rng.uniform(0, params.days, len(order)), 0.0)
    target = _targets(params, count)
    nominal = generator(params.seed, "nominal").integers(len(GPU_TYPES), size=(count, RECURRING))
    supply = _supply(params, home, target[:, 0].mean(axis=1), nominal)
    return Structure(teams.namespace, home, teams.team, partner, size_mb, created, hot, target, nominal, supply)


def _targets(params: "OrganisationParams", count: int) -> Floats:
    """GPUs [N, tiers, weeks] that the organisation's namespaces want, by popularities that change every week."""
    rng = generator(params.seed, "popularity")
    weeks = -(-params.days // WEEK_DAYS) + 2
    steps = rng.normal(0.0, WEEKLY_CHANGE, (count, weeks))
    steps[:, 0] = 0.0
    popularity = (rng.pareto(PARETO_INDEX, count) + 1)[:, None] * np.exp(steps.cumsum(axis=1))
    loads = np.array(TIER_LOADS) * params.load * params.gpus
    target: Floats = loads[None, :, None] * (popularity / popularity.sum(axis=0))[:, None, :]
    return target


def _supply(params: "OrganisationParams", home: Ints, urgent: Floats, nominal: Ints) -> Ints:
    """[R, K] in each region what tier 0 at home needs at the worst ratio, in the last one almost nothing, the rest by
    Dirichlet everywhere but there and in the region of most demand."""
    rng = generator(params.seed, "supply")
    kinds, poor = len(GPU_TYPES), params.regions - 1
    first = params.first_time_percent / 100
    supply = np.zeros((params.regions, kinds), np.int64)
    for k in range(kinds):
        of_type = urgent * (first / kinds + (1 - first) * (nominal == k).mean(axis=1))
        demand = np.bincount(home, weights=of_type, minlength=params.regions)
        servers = np.floor(demand / params.skew / GPUS_PER_SERVER + 0.5).astype(np.int64)
        servers[:poor] = np.maximum(servers[:poor], 1)
        share = rng.dirichlet(np.full(params.regions, SUPPLY_ALPHA))
        share[[poor, int(np.argmax(demand))]] = 0.0
        part = of_type.sum() / urgent.sum()
        left = max(0, round(params.gpus * part / GPUS_PER_SERVER) - int(servers.sum()))
        supply[:, k] = (servers + draws.shared_out(left, share)) * GPUS_PER_SERVER
    supply[poor] = 0
    supply[poor, 0] = max(1, round(POOR_SHARE * params.gpus))
    return supply


@dataclass(frozen=True)
class OrganisationParams:
    """Settings of the generator. Published for MAST: the ratio before, the loads, the share of first-time work, the
    region with almost no GPUs. The rest is our own choice.

    Args:
        seed: of every draw.
        days: length of the trace.
        gpus: of all regions, of three types.
        regions: number of regions.
        datasets: partitions of tables; a namespace has eight on average.
        storage_percent: storage of all regions, in percent of one copy of everything.
        storage_by: ``supply``: each region's storage follows its GPUs; ``chance``: Dirichlet.
        first_time_percent: share of the demand that is work that never ran before.
        skew: mean demand of tier 0 over supply in the worst region of each type, where work runs at home.
        load: factor on the demand of every tier.
        median_hours: of a job.
        largest_gpus: of a gang.
        copy_days: days in which all regions together can take in one copy of everything.
        clusters: of each region.
        new_percent: about so many of the partitions appear in the course of the trace, in the home of their namespace.
        ramp_days: first days in which the demand is ``ramp_load`` of what it is later, so that no backlog builds up
            before a data plan can have been carried out.
        ramp_load: see ``ramp_days``.
        failures: of servers, each in a thousand days of service. Published for two clusters of Meta: 2.34 and 6.5
            (Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research Clusters", 2024).
        repair_hours: mean of the exponential time until a server is back.
        quotas: whether namespaces have quotas, by their share of the demand in the week before, and borrow from each
            other within their team, teams from each other.
    """

    seed: int = 1
    days: int = 14
    gpus: int = 2000
    regions: int = 12
    datasets: int = 1600
    storage_percent: int = 225
    storage_by: str = "supply"
    first_time_percent: int = 70
    skew: float = 1.2
    load: float = 1.0
    median_hours: float = 3.0
    largest_gpus: int = 32
    copy_days: float = 4.0
    clusters: int = 1
    new_percent: int = 0
    ramp_days: int = 5
    ramp_load: float = 0.5
    failures: float = 0.0
    repair_hours: float = 24.0
    quotas: bool = False

    def __post_init__(self) -> None:
        least = {"seed": 0, "days": 1, "gpus": 100, "regions": 2, "datasets": 16, "storage_percent": 100}
        least |= {"largest_gpus": 1, "clusters": 1, "first_time_percent": 0, "ramp_days": 0, "new_percent": 0}
        least |= {"failures": 0}
        for name, number in least.items():
            if getattr(self, name) < number:
                raise UsageError(f"{name} of an organisation is {getattr(self, name)}; expected at least {number}")
        for name in ("skew", "load", "median_hours", "copy_days", "ramp_load", "repair_hours"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} of an organisation is {getattr(self, name)}; expected more than 0")
        if self.storage_by not in ("supply", "chance"):
            raise UsageError(f"storage_by of an organisation is {self.storage_by!r}; expected supply or chance")
        if self.first_time_percent > 100:
            raise UsageError(
                f"first_time_percent of an organisation is {self.first_time_percent}; expected at most 100"
            )
