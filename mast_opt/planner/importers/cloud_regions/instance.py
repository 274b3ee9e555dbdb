"""A real-shaped data-placement instance: cloud regions, a GPU fleet and a job list, and drawn data.

Real: the regions, which GPUs they offer, bandwidth and egress prices (georegions); the nodes with their GPU models,
GPUs and cores, CPU need per GPU, classes of service, acceptable GPU models, CPU-only pods (Alibaba OpenB); the virtual
clusters with their jobs' GPUs and durations (Microsoft Philly).
Ours: which region a node or a virtual cluster is in, how often the job list is replayed to fill the fleet, and, from
published distributions, storage, datasets and readers.

Data that the traces lack, drawn from published distributions: datasets, who reads them, and where all of it is
today.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import SourceError, UsageError
from mast_opt.core.units import MICRO
from mast_opt.planner.importers.base import Importer, Input, setting
from mast_opt.planner.importers.cloud_regions.workloads import CloudWork, recurring_work
from mast_opt.planner.importers.traces.alibaba import OpenbTrace, read_fleet
from mast_opt.planner.importers.traces.georegions import CloudRegions, read_regions
from mast_opt.planner.importers.traces.philly import read_jobs
from mast_opt.planner.io.faults import Faults
from mast_opt.problems.data_placement import DataPlacement, Links
from mast_opt.problems.data_placement.generate import distributions as draws
from mast_opt.problems.data_placement.generate.blank import WEIGHTS, plain
from mast_opt.problems.data_placement.generate.teams import Teams
from mast_opt.problems.data_placement.problem import SHARE, TERMS, Bools, Ints
from mast_opt.problems.kind.header import Objective

OWN_READS = 0.4
"""Share of a dataset's readers that belong to the group that owns it, where the rest is drawn from everyone; about 60%
of reads cross projects at Alibaba."""
FULL_TODAY = 0.9
"""Share of a region that the data at home there fills at most today; the rest is elsewhere."""


@dataclass(frozen=True, eq=False)
class CloudData:
    """Datasets [I] of the instance, and the reads of its workloads."""

    names: tuple[str, ...]
    owner: Ints
    """[I] the group it belongs to."""
    size_mb: Ints
    """Size of each dataset, [I]."""
    read_workload: Ints
    read_dataset: Ints
    read_mb_per_day: Ints


def datasets_and_readers(rng: np.random.Generator, count: int, work: CloudWork) -> CloudData:
    """Datasets of an imported instance: lognormal sizes, the published number of readers, and owners in proportion to
    their workloads.
    """
    number = len(work.names)
    size = draws.lognormal(rng, count, median=draws.MEDIAN_SIZE_MB, sigma=1.4, step=draws.GB)
    owner = work.group[rng.integers(number, size=count)]
    readers = draws.reader_counts(rng, count, number)
    chance = np.full((len(work.groups), number), (1 - OWN_READS) / number)
    members = np.bincount(work.group, minlength=len(work.groups))
    chance[work.group, np.arange(number)] += OWN_READS / members[work.group]
    chance /= chance.sum(axis=1, keepdims=True)
    drawn = [rng.choice(number, k, replace=False, p=chance[g]) for k, g in zip(readers.tolist(), owner.tolist())]
    workload, dataset = draws.by_workload(np.concatenate(drawn), np.repeat(np.arange(count), readers), count)
    return _cloud_data(rng, work, owner, size, workload, dataset)


def datasets_of_teams(rng: np.random.Generator, count: int, work: CloudWork) -> CloudData:
    """Datasets of an imported instance: every group a team with namespaces and tables of its own, as in family
    ``organisation``: datasets in proportion to its workloads, which read mostly these. A dataset has at most as many
    readers as its group has workloads.
    """
    number = len(work.names)
    members = np.bincount(work.group, minlength=len(work.groups))
    teams = Teams.of_sizes(rng, 1 + draws.shared_out(count - len(members), members.astype(np.float64)))
    owner = teams.team[teams.namespace]
    readers = np.minimum(draws.reader_counts(rng, count, number), members[owner])
    _, workload, dataset = teams.readers(rng, readers, number, members)
    workload, dataset = draws.by_workload(np.argsort(work.group, kind="stable")[workload], dataset, count)
    size = teams.sizes_mb(rng)
    return _cloud_data(rng, work, owner, size, workload, dataset)


def _cloud_data(
    rng: np.random.Generator, work: CloudWork, owner: Ints, size: Ints, workload: Ints, dataset: Ints
) -> CloudData:
    """Drawn datasets of the imported cloud regions, with names, owners, sizes, readers and volumes."""
    order = draws.names("data", len(size))
    names = tuple(f"{work.groups[g]}-{name}" for g, name in zip(owner.tolist(), order))
    return CloudData(names, owner, size, workload, dataset, draws.read_volumes(rng, size[dataset]))


def near_home(rng: np.random.Generator, amount: Ints, home: Ints, capacity: Ints, allowed: Bools) -> tuple[Ints, Ints]:
    """A region for every imported item, the largest first: its home while that is not nearly full, else where there is
    room; and the capacities, enlarged where an item fitted nowhere. ``allowed`` [n, R].
    """
    limit = capacity * FULL_TODAY
    room = limit.copy()
    region = home.copy()
    away = []
    for item in np.argsort(-amount, kind="stable").tolist():
        if allowed[item, home[item]] and room[home[item]] >= amount[item]:
            room[home[item]] -= amount[item]
        else:
            away.append(item)
    left = capacity - np.rint(limit - room).astype(np.int64)
    region[away], grown = draws.settle(rng, amount[away], left, allowed[away], np.arange(len(away)))
    return region, capacity + grown - left


STORAGE_USD_PER_TB_MONTH = {
    "us-east-1": 23.0,
    "us-east-2": 23.0,
    "us-west-2": 23.0,
    "us-west-1": 26.0,
    "ca-central-1": 25.0,
    "eu-west-1": 23.0,
    "eu-west-2": 24.0,
    "eu-central-1": 24.5,
    "ap-northeast-1": 25.0,
    "ap-northeast-2": 25.0,
    "ap-south-1": 25.0,
    "ap-southeast-1": 25.0,
    "ap-southeast-2": 25.0,
}
"""AWS S3 Standard, first 50 TB a month, public list price of 2025; 1 TB is 1,000 GB."""
OTHER_USD_PER_TB_MONTH = 25.0
"""Assumed for every other region."""
PRICED_AS = "V100"
"""Assumed for models that no region sells under their name: what this GPU costs there."""


def prices(regions: CloudRegions, models: tuple[str, ...], sold_as: dict[str, str]) -> dict[str, Any]:
    """Columns of prices of the imported cloud regions: GPU-hours by region and model, storage by region, copies at the
    mean egress price of the other regions.
    """
    count = len(regions.names)
    others = ~np.eye(count, dtype=np.bool_)
    storage = [STORAGE_USD_PER_TB_MONTH.get(name.partition(":")[2], OTHER_USD_PER_TB_MONTH) for name in regions.names]
    gpu = [_filled(regions.usd_per_gpu_hour[sold_as.get(model, PRICED_AS)]) for model in models]
    return {
        "regions.storage_price_micro": _micro(np.array(storage)),
        "regions.copy_price_micro": _micro((regions.usd_per_tb * others).sum(axis=0) / max(count - 1, 1)),
        "regions.gpu_price_micro": _micro(np.column_stack(gpu)),
    }


def _filled(usd: NDArray[np.float64]) -> NDArray[np.float64]:
    """The price of each imported cloud region; where a GPU is not sold, the mean of the regions that sell it."""
    sold = usd > 0
    return np.where(sold, usd, usd[sold].mean() if sold.any() else 0.0)


def _micro(usd: NDArray[np.float64]) -> NDArray[np.int64]:
    """USD as whole millionths, for prices of the imported cloud regions."""
    return np.rint(usd * MICRO).astype(np.int64)


SOLD_AS = {"T4": "T4", "V100M16": "V100", "V100M32": "V100", "A10": "A10G"}
"""Fleet model → the GPU that a region must offer to have it; the others (P100, and G2 and G3, whose names the trace
hides) may be anywhere."""
SMALLEST_MODEL = 64
"""Models with fewer GPUs in the fleet are left out."""
NODES_A_REGION = 8
"""A model is in at most one region for every so many of its nodes."""
LOAD = 1.05
"""GPU demand over supply."""
TB_PER_DAY = 86_400 / 8 / 1000
"""TB a day through 1 Gbit/s."""
READS = {"mixed": datasets_and_readers, "teams": datasets_of_teams}
"""Functions that draw the datasets and their readers, by name of the kind of readers."""
POINT_PER_USD = 1e-6
"""Weight of the term egress: a million USD a day costs one point."""


@dataclass(frozen=True)
class Settings:
    """The knobs of the importer."""

    name: str = setting("cloud-regions", "name of the instance")
    regions: int = setting(10, "regions to keep, those that offer the most kinds of GPU")
    datasets: int = setting(150, "datasets to draw")
    part: int = setting(128, "GPUs of the largest workload (or one gang)")
    reads: str = setting("mixed", "mixed: 60% of readers are of any virtual cluster; teams: as in family organisation")
    storage_percent: int = setting(180, "storage of all regions, in percent of one copy of everything")
    ingress: int = setting(0, "machines that receive copies in each region; 0 for no limit of ingress")
    days: int = setting(1, "days within which the copies are made")
    machines: int = setting(0, "machines whose connections make up the link between two regions; 0 leaves links out")

    def __post_init__(self) -> None:
        positive = dict.fromkeys(("datasets", "part", "days"), 1)
        for name, least in {"regions": 2, **positive, "storage_percent": 100, "ingress": 0, "machines": 0}.items():
            if getattr(self, name) < least:
                raise UsageError(f"setting {name} is {getattr(self, name)}; expected at least {least}")
        if self.reads not in READS:
            raise UsageError(f"setting reads is {self.reads!r}; expected one of: {', '.join(READS)}")


def build(paths: Sequence[Path], settings: Settings, rng: np.random.Generator) -> DataPlacement:
    """The imported instance from a georegions folder, an OpenB folder and a Philly job list. Raises SourceError."""
    faults = Faults()
    regions = read_regions(paths[0], faults)
    fleet = read_fleet(paths[1], faults)
    jobs = read_jobs(paths[2], faults)
    if regions is None or fleet is None or jobs is None or faults:
        raise SourceError(faults.found)
    models = fleet.models(SMALLEST_MODEL)
    if not models:
        raise UsageError(f"no GPU model of the fleet has {SMALLEST_MODEL} GPUs; is it the whole node list?")
    regions = regions.with_most_gpus(settings.regions)
    supply, cpu_mcores = _spread(rng, fleet, models, regions)
    demand = round(LOAD * int(supply.sum()))
    work = recurring_work(rng, jobs.classes(), fleet, models, demand, settings.part)
    if settings.reads == "teams" and settings.datasets < len(work.groups):
        raise UsageError(
            f"setting datasets is {settings.datasets}; expected at least one for each of {len(work.groups)} groups"
        )
    data = READS[settings.reads](rng, settings.datasets, work)
    return _assemble(rng, settings, regions, models, supply, cpu_mcores, work, data)


def _spread(
    rng: np.random.Generator, fleet: OpenbTrace, models: tuple[str, ...], regions: CloudRegions
) -> tuple[Ints, Ints]:
    """GPUs [R, K] and millicores [R]. The nodes of a model are in a random few of the regions that offer it, one for
    every 8 nodes: half of them evenly, half by Dirichlet(1.5). Nodes without GPUs are everywhere, likewise."""
    count = len(regions.names)
    nodes = fleet.nodes
    supply, cpu = np.zeros((count, len(models)), np.int64), np.zeros(count, np.int64)
    for model in (*models, ""):
        mine = rng.permutation(np.flatnonzero(np.array(nodes.model) == model))
        offered = regions.offers.get(SOLD_AS.get(model, ""), np.ones(count, np.bool_))
        possible = rng.permutation(np.flatnonzero(offered) if offered.any() else count)
        at = possible[: max(1, len(mine) // NODES_A_REGION)] if model else np.arange(count)
        share = rng.dirichlet(np.full(len(at), 1.5)) + 1 / len(at)
        where = np.repeat(at, draws.shared_out(len(mine), share))
        cpu += draws.used(nodes.cpu_mcores[mine], where, count)
        if model:
            supply[:, models.index(model)] = draws.used(nodes.gpus[mine], where, count)
    return supply, cpu


def _assemble(
    rng: np.random.Generator,
    settings: Settings,
    regions: CloudRegions,
    models: tuple[str, ...],
    supply: Ints,
    cpu_mcores: Ints,
    work: CloudWork,
    data: CloudData,
) -> DataPlacement:
    """The data-placement instance of the imported cloud regions, put together from its parts."""
    count = len(regions.names)
    total = supply.sum(axis=1)
    home = rng.choice(count, len(work.groups), p=total / total.sum())
    storage = draws.dirichlet(
        rng, 4.0, count, round(settings.storage_percent / 100 * int(data.size_mb.sum())), draws.GB
    )
    everywhere = np.ones((len(data.names), count), np.bool_)
    stored_in, storage = near_home(rng, data.size_mb, home[data.owner], storage, everywhere)
    cpu_only = work.gpus == 0
    runs_in = _possible_today(work, supply)
    running, cpu_mcores = near_home(rng, work.cpu_mcores, home[work.group], cpu_mcores, runs_in)
    columns = {
        "name": settings.name,
        "provenance": _provenance(settings, regions, work, supply),
        "regions.labels": regions.names,
        "gpu_types": models,
        "datasets.labels": data.names,
        "workloads.labels": work.names,
        "apps": work.groups,
        "workloads.app": work.group,
        "regions.storage_mb": storage,
        "regions.cpu_mcores": cpu_mcores,
        "regions.supply_mgpu": supply * draws.GPU,
        **prices(regions, models, SOLD_AS),
        "datasets.size_mb": data.size_mb,
        "datasets.stored": np.equal.outer(stored_in, np.arange(count)),
        "workloads.cpu_mcores": work.cpu_mcores,
        **_options(work),
        "reads.workload": data.read_workload,
        "reads.dataset": data.read_dataset,
        "reads.mb_per_day": data.read_mb_per_day,
        "current_runs.workload": np.arange(len(work.names)),
        "current_runs.region": running,
        "current_runs.gpu_type": np.where(cpu_only, len(models), (work.accepts * supply[running]).argmax(axis=1)),
        "current_runs.share": np.full(len(work.names), SHARE),
        "days": Fraction(settings.days),
        **({"objective": Objective(weights=dict(TERMS))} if settings.reads == "teams" else {}),
        **(_ingress(regions, settings) if settings.ingress else {}),
        **(_network(regions, settings) if settings.machines else {}),
    }
    return plain(work_tier=work.tier, columns=columns)


def _possible_today(work: CloudWork, supply: Ints) -> Bools:
    """[W, R] imported regions with at least half of the GPUs that the work needs, of one model that will do; where no
    region is so large, those that have any.
    """
    most = np.where(work.accepts[:, None], supply, 0).max(axis=2)
    half: Bools = 2 * most >= work.gpus[:, None]
    return np.where(half.any(axis=1, keepdims=True), half, most > 0)


def _options(work: CloudWork) -> dict[str, Any]:
    """Options of the imported workloads: the GPU models that each accepts."""
    workload, kind = np.nonzero(np.column_stack([work.accepts, work.gpus == 0]))
    return {"options.workload": workload, "options.gpu_type": kind, "options.mgpu": work.gpus[workload] * draws.GPU}


def _ingress(regions: CloudRegions, settings: Settings) -> dict[str, Any]:
    """Ingress of each region: what so many machines receive at the mean measured throughput from the other regions."""
    count = len(regions.names)
    others = ~np.eye(count, dtype=np.bool_)
    gbps = (regions.gbps * others).sum(axis=0) / (count - 1)
    return {
        "regions.ingress_mb_per_day": np.rint(gbps * settings.ingress * TB_PER_DAY * 1000).astype(np.int64) * draws.GB,
        "regions.ingress_limited": np.ones(count, np.bool_),
    }


def _network(regions: CloudRegions, settings: Settings) -> dict[str, Any]:
    """A link from every region to every other, with the measured throughput of so many machines, and its price."""
    source, target = np.nonzero(~np.eye(len(regions.names), dtype=np.bool_))
    capacity_gb = np.rint(regions.gbps[source, target] * settings.machines * TB_PER_DAY * 1000).astype(np.int64)
    weights = TERMS if settings.reads == "teams" else WEIGHTS
    return {
        "links": Links(source, target, capacity_gb * draws.GB, regions.usd_per_tb[source, target]),
        "objective": Objective(weights={**weights, "egress": POINT_PER_USD}),
    }


def _provenance(settings: Settings, regions: CloudRegions, work: CloudWork, supply: Ints) -> str:
    """Provenance of the imported cloud regions in words: sources, replays, and what is drawn."""
    network = (
        f" Links: {settings.machines} machines each, at measured throughput and price." if settings.machines else ""
    )
    if settings.ingress:
        network += (
            f" Ingress: {settings.ingress} machines in each region, at the mean throughput measured from the others."
        )
    readers = "readers as published for MAST"
    if settings.reads == "teams":
        readers += ", mostly of the virtual cluster that owns the data"
    return (
        f"Regions and the GPUs they offer: georegions ({', '.join(sorted(set(regions.clouds)))}; from Skyplane and "
        "public price lists). Nodes, GPU models, CPU per GPU, classes of service, acceptable models and CPU-only pods: "
        "Alibaba cluster-trace-gpu-v2023 (OpenB). Virtual clusters and their jobs by GPUs and duration: Microsoft "
        f"Philly trace, replayed {work.replay:.2f} times over to ask for {work.gpus.sum() / supply.sum():.1%} of the "
        f"GPUs.{network} Prices: public lists (on demand); models that are not sold cost what a V100 costs. "
        "Drawn with a seed: the region of every node and virtual cluster, storage, datasets, readers "
        f"and read volumes (sizes lognormal, {readers}), and where data and work are today."
    )


CLOUD_REGIONS = Importer(
    kind="data-placement",
    help="cloud regions with a real GPU fleet and a real job list; datasets and readers are drawn",
    inputs=(
        Input("georegions", "folder with regions.csv and region_pairs.csv"),
        Input("openb", "folder with Alibaba's cluster-trace-gpu-v2023: openb_node_list_all_node.csv and pod lists"),
        Input("philly", "Philly job list: philly.csv, plain or gzipped, or its folder"),
    ),
    settings_type=Settings,
    build=build,
)
