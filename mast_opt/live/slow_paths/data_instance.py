"""Present data placement: regions, data and demand as the loop knows them, as an instance to be solved."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from typing import TypeAlias

import numpy as np

from mast_opt.live.loop.demand import DAY_MS, DemandClass
from mast_opt.live.loop.job_states import WAITING
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.slow_paths.forecasts import Forecast, weighted_mean
from mast_opt.live.slow_paths.network_limits import NetworkLimits
from mast_opt.problems.data_placement import entities
from mast_opt.problems.data_placement.problem import NO_GPU, TERMS, DataPlacement
from mast_opt.problems.job_placement.units import WHOLE
from mast_opt.problems.kind.header import Objective
from mast_opt.problems.kind.problem_data import Bools, Ints


@dataclass(frozen=True)
class PlannedWork:
    """Work that reads datasets, all of them wherever it runs."""

    label: str
    tier: int
    mgpu: int
    gpu_types: tuple[str, ...]
    """Empty for any."""
    datasets: tuple[str, ...]
    largest_mgpu: int
    """Request of the largest job of it; a region with less is none for it."""
    splittable: bool
    """Whether parts may run in several regions: it is more than one job."""


_Group: TypeAlias = tuple[str, str, int, tuple[str, ...], tuple[str, ...]]
"""Namespace, recurring workload, tier, GPU types and datasets of work that is forecast together."""


def planned_work(snapshot: Snapshot, forecast: Forecast = weighted_mean) -> tuple[PlannedWork, ...]:
    """All planned work of the data path, in an order that does not depend on that of jobs.

    A namespace is one workload for each tier: new jobs read any of its datasets that were read in the last days, so it
    runs where all of these are, as far as residency lets them be together. Work that recurs, and jobs without a
    namespace, have workloads of their own with just what they read. So do jobs that no region has all data for. Their
    GPUs are part of the forecast of their group already, so they share it with the rest of the group: the longer they
    wait, the larger is their share.
    """
    groups: dict[_Group, list[DemandClass]] = {}
    for of in snapshot.demand.classes():
        groups.setdefault(_group(snapshot, of), []).append(of)
    waiting = _waiting(snapshot)
    work: list[PlannedWork] = []
    wishes: dict[tuple[int, tuple[str, ...], tuple[str, ...]], list[tuple[int, int]]] = {}
    for key, classes in groups.items():
        namespace, workload, tier, gpu_types, alone = key
        mgpu, jobs = sum(forecast(snapshot, of) for of in classes), waiting.get(key, ())
        total, weights = max([mgpu, *(record.asked_mgpu for record, _ in jobs)]), mgpu + sum(one for _, one in jobs)
        for record, weight in jobs:
            share_mgpu = -(-total * weight // weights)
            wish = tier, gpu_types, tuple(sorted(record.spec.datasets))
            wishes.setdefault(wish, []).append((record.asked_mgpu, share_mgpu))
        mgpu = total * mgpu // max(1, weights)
        names = dict.fromkeys(name for of in classes for name in snapshot.demand.read(of, snapshot.now_ms))
        read = _together(snapshot, names)
        if mgpu and read and not (alone and len(read) < len(names)):
            label = f"{workload or namespace or 'jobs'} of tier {tier} ({_digest(key)})"
            largest = max(snapshot.demand.largest_mgpu(of) for of in classes)
            work.append(PlannedWork(label, tier, mgpu, gpu_types, tuple(read), largest, splittable=True))
    for wish, shares in wishes.items():
        tier, gpu_types, datasets = wish
        largest, mgpu = max(asked for asked, _ in shares), sum(share_mgpu for _, share_mgpu in shares)
        work.append(PlannedWork(f"wish {_digest(wish)}", tier, mgpu, gpu_types, datasets, largest, splittable=False))
    return tuple(work)


def _group(snapshot: Snapshot, of: DemandClass) -> _Group:
    """Group to which a class of demand belongs."""
    recurs = of.workload and snapshot.demand.jobs(of) > 1
    own = recurs or not of.namespace
    return of.namespace, of.workload if recurs else "", of.tier, of.gpu_types, of.datasets if own else ()


def _together(snapshot: Snapshot, datasets: Collection[str]) -> tuple[str, ...]:
    """Those of the datasets that one region with servers may hold together, where the first ones go first."""
    regions, found = frozenset(snapshot.supply_mgpu), list[str]()
    for name in datasets:
        left = regions & snapshot.datasets.residency.get(name, regions)
        if left:
            regions = left
            found.append(name)
    return tuple(found)


def _waiting(snapshot: Snapshot) -> dict[_Group, list[tuple[JobRecord, int]]]:
    """Group → its jobs that wait for copies: no region holds all of their data, and one may. The weight of each is
    the milli-GPUs that it asks for or, if that is more, its milli-GPU-days of waiting.
    """
    waiting: dict[_Group, list[tuple[JobRecord, int]]] = {}
    for record in snapshot.jobs.values():
        read, waits = record.spec.datasets, record.state in WAITING and record.asked_mgpu
        if waits and read and not snapshot.admissible(record) and len(_together(snapshot, read)) == len(read):
            waited = record.asked_mgpu * (snapshot.now_ms - record.since_ms) // DAY_MS
            weight = max(record.asked_mgpu, waited)
            waiting.setdefault(_group(snapshot, record.demand), []).append((record, weight))
    return waiting


def _digest(key: tuple[object, ...]) -> str:
    """Digest that identifies work and stays the same from day to day: plans that go on match work by label."""
    return blake2b(repr(key).encode(), digest_size=6).hexdigest()


FILLED = Fraction(4, 5)
"""Second replicas are asked of datasets as long as all together fill no more than this part of the storage."""
COPIED = Fraction(1, 2)
"""… and as long as copying them takes no more than this part of what the network carries meanwhile."""
NO_LIMIT_MB = 2**50


def data_instance(
    snapshot: Snapshot,
    network: NetworkLimits,
    *,
    copy_days: int,
    copies_min: int,
    origins: Mapping[str, str] | None = None,
    forecast: Forecast = weighted_mean,
) -> DataPlacement | None:
    """Present instance of the data path; None if there is no work to plan for.

    A copy under way counts as a replica that stays where the residency of its data allows it. Work runs where all its
    data is, or not at all. Cores are left out: they come with the servers.

    Args:
        copy_days: time for the copies of the plan.
        copies_min: replicas of what was read in the last days, as far as storage and network have room for that.
        origins: dataset → region where it stays as long as it is there, so that new work finds together what nobody
            has read together before.
        forecast: of demand.
    """
    data, regions = snapshot.datasets, tuple(snapshot.supply_mgpu)
    labels = tuple(name for name in data.size_mb if data.whole_in(name) and _together(snapshot, (name,)))
    position = {name: at for at, name in enumerate(labels)}
    work = [one for one in planned_work(snapshot, forecast) if all(name in position for name in one.datasets)]
    types = tuple(
        dict.fromkeys(one.gpu_type for one in snapshot.inventory.server_of.values() if one.gpu_type != NO_GPU)
    )
    if not work or not types:
        return None
    stored, under_way = np.zeros((2, len(labels), len(regions)), np.bool_)
    for r, region in enumerate(regions):
        under_way[:, r] = [(name, region) in data.copying for name in labels]
        stored[:, r] = under_way[:, r] | [region in data.whole_in(name) for name in labels]
    size = np.array([data.size_mb[name] for name in labels], np.int64)
    allowed = np.array([[data.may_be_in(name, region) for region in regions] for name in labels], np.bool_)
    kept = np.array([[(origins or {}).get(name) == region for region in regions] for name in labels], np.bool_)
    places = _regions(snapshot, network, regions, types, copy_days)
    read = sorted({position[name] for one in work for name in one.datasets})
    tiers = tuple(sorted({one.tier for one in work}))
    none = np.zeros(0, np.int64)
    return DataPlacement(
        name="data of now",
        regions=places,
        gpu_types=types,
        datasets=entities.Datasets(
            labels=labels,
            size_mb=size,
            copies_min=_copies_min(snapshot, network, size, stored, read, places, copies_min, copy_days, allowed),
            copies_max=np.full(len(labels), len(regions), np.int64),
            stored=stored,
            pinned=(under_way | (stored & kept)) & allowed,
            forbidden=np.zeros_like(stored),
            residency=allowed & ~allowed.all(axis=1, keepdims=True),
        ),
        workloads=_workloads(work, tiers, places, types),
        apps=("",),
        tiers=tiers,
        options=_options(work, types),
        reads=entities.Reads(
            workload=np.repeat(np.arange(len(work)), [len(one.datasets) for one in work]),
            dataset=np.array([at for one in work for at in sorted(position[name] for name in one.datasets)], np.int64),
            mb_per_day=np.zeros(sum(len(one.datasets) for one in work), np.int64),
        ),
        current_runs=entities.CurrentRuns(workload=none, region=none, gpu_type=none, share=none),
        cpu_quotas=entities.CpuQuotas(region=none, app=none, cpu_mcores=none),
        links=_links(snapshot, network, regions, copy_days),
        objective=Objective(weights=dict(TERMS), peak_levels=dict.fromkeys(tiers, 0.0)),
        remote_reads=False,
        may_refuse=True,
        days=Fraction(copy_days),
    )


def _regions(
    snapshot: Snapshot, network: NetworkLimits, regions: tuple[str, ...], types: tuple[str, ...], copy_days: int
) -> entities.Regions:
    """Regions of the data path's instance: storage, the ingress that copies under way leave, supply of GPUs."""
    data, inventory = snapshot.datasets, snapshot.inventory
    supply = np.zeros((len(regions), len(types)), np.int64)
    for server in inventory.in_service():
        if server.gpu_type in types:
            supply[regions.index(server.region), types.index(server.gpu_type)] += server.gpus * WHOLE
    coming = dict.fromkeys(regions, 0)
    for (_, region), copying in data.copying.items():
        coming[region] += copying.size_mb - copying.copied_mb
    ingress = network.ingress_mb_per_day
    limit = [max(0, ingress.get(region, 0) - -(-coming[region] // copy_days)) for region in regions]
    left = dict(data.storage_mb)
    for name in [name for name in data.size_mb if not _together(snapshot, (name,))]:
        left |= {region: max(0, left[region] - data.size_mb[name]) for region in data.whole_in(name) & left.keys()}
    return entities.Regions(
        labels=regions,
        storage_mb=np.array([left.get(region, NO_LIMIT_MB) for region in regions], np.int64),
        cpu_mcores=np.zeros(len(regions), np.int64),
        ingress_mb_per_day=np.array(limit, np.int64),
        ingress_limited=np.array([region in ingress for region in regions], np.bool_),
        supply_mgpu=supply,
        gpu_price_micro=np.zeros_like(supply),
    )


def _links(
    snapshot: Snapshot, network: NetworkLimits, regions: tuple[str, ...], copy_days: int
) -> entities.Links | None:
    """Links of the data path's instance: the capacity that copies under way leave; None without limits of links."""
    if network.links is None:
        return None
    left = {pair: mb for pair, mb in network.links.items() if pair[0] in regions and pair[1] in regions}
    for (_, region), copying in snapshot.datasets.copying.items():
        pair = copying.source, region
        left[pair] = max(0, left.get(pair, 0) - -(-(copying.size_mb - copying.copied_mb) // copy_days))
    pairs = list(left)
    return entities.Links(
        source=np.array([regions.index(source) for source, _ in pairs], np.int64),
        target=np.array([regions.index(target) for _, target in pairs], np.int64),
        capacity_mb_per_day=np.array([left[pair] for pair in pairs], np.int64),
        price_usd_per_tb=np.zeros(len(pairs)),
    )


def _copies_min(
    snapshot: Snapshot,
    network: NetworkLimits,
    size: Ints,
    stored: Bools,
    read: list[int],
    regions: entities.Regions,
    copies_min: int,
    copy_days: int,
    allowed: Bools,
) -> Ints:
    """[I] fewest copies of each dataset in a data plan: 1, and more for what is read, the smallest datasets first, as
    long as there is room.
    """
    least = np.ones(len(size), np.int64)
    names = regions.labels
    limited = all(region in snapshot.datasets.storage_mb for region in names)
    room = int(regions.storage_mb.sum() * FILLED) if limited else NO_LIMIT_MB
    room -= int((size[:, None] * stored).sum())
    carried = network.total_mb_per_day(names)
    budget = NO_LIMIT_MB if carried is None else int(carried * copy_days * COPIED)
    for i in sorted(read, key=lambda at: (int(size[at]), at)):
        wanted = min(copies_min, int(allowed[i].sum()))
        extra = max(0, wanted - int((stored[i] & allowed[i]).sum())) * int(size[i])
        if extra <= min(room, budget):
            least[i], room, budget = wanted, room - extra, budget - extra
    return least


def _workloads(
    work: list[PlannedWork], tiers: tuple[int, ...], regions: entities.Regions, types: tuple[str, ...]
) -> entities.Workloads:
    """Workloads of the data path's instance: planned work, forbidden in regions too small for its largest job."""
    accepted = np.array([[not one.gpu_types or kind in one.gpu_types for kind in types] for one in work])
    usable = (accepted[:, None, :] * regions.supply_mgpu[None, :, :]).sum(axis=2)
    small = usable < np.array([one.largest_mgpu for one in work])[:, None]
    small &= ~small.all(axis=1, keepdims=True)
    zeros = np.zeros(len(work), np.int64)
    return entities.Workloads(
        labels=tuple(one.label for one in work),
        tier=np.array([tiers.index(one.tier) for one in work], np.int64),
        cpu_mcores=zeros,
        app=zeros,
        splittable=np.array([one.splittable for one in work], np.bool_),
        pinned=np.zeros(usable.shape, np.bool_),
        forbidden=small,
    )


def _options(work: list[PlannedWork], types: tuple[str, ...]) -> entities.Options:
    """Options of the data path's instance: the GPU types that each planned work accepts."""
    rows = [
        (w, k, one.mgpu)
        for w, one in enumerate(work)
        for k, kind in enumerate(types)
        if not one.gpu_types or kind in one.gpu_types
    ]
    workload, kind, mgpu = np.array(rows, np.int64).reshape(-1, 3).T
    return entities.Options(workload=workload, gpu_type=kind, mgpu=mgpu)
