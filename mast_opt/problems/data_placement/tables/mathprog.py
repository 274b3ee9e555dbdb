"""GNU MathProg data of data-placement instances: for ``models/data_placement.mod``, glpsol and other readers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.units import MICRO
from mast_opt.problems.data_placement.problem import NO_GPU, OBJECTIVE, Bools, DataPlacement
from mast_opt.problems.kind.mathprog import section, stated_sections, with_symbols, write_data

Column = NDArray[Any]
_AXES: dict[str, tuple[str, ...]] = {"regions": (), "gpu_types": (NO_GPU,), "datasets": (), "workloads": (), "apps": ()}


def printable(problem: DataPlacement) -> DataPlacement:
    """The problem with every label a symbol, as ``write_dat`` names them."""
    return with_symbols(problem, _AXES)


def write_dat(problem: DataPlacement, path: Path) -> None:
    """Write the data section that, with the .mod, states this problem. The objective is the weighted one."""
    write_data(problem, path, "data_placement.mod", _AXES, _sections)


def _sections(p: DataPlacement) -> Iterator[Iterator[str]]:
    """Regions, datasets, workloads, network, rules and objective, as the .mod declares them."""
    region, dataset, workload = np.array(p.regions.labels), np.array(p.datasets.labels), np.array(p.workloads.labels)
    gpu_type, kind, app = np.array(p.gpu_types, str), np.array([*p.gpu_types, NO_GPU]), np.array(p.apps, str)

    limited, supplied = np.flatnonzero(p.regions.ingress_limited), np.nonzero(p.regions.supply_mgpu)
    yield section("set TYPE", gpu_type)
    yield section(
        "param : REGION : storage_mb headroom_milli cpu_mcores",
        region,
        p.regions.storage_mb,
        p.regions.headroom_milli,
        p.regions.cpu_mcores,
    )
    yield section("param supply_mgpu", region[supplied[0]], gpu_type[supplied[1]], p.regions.supply_mgpu[supplied])
    priced = np.nonzero(p.regions.gpu_price_micro)
    yield from stated_sections(p.regions, region)
    gpu_price = p.regions.gpu_price_micro[priced] / MICRO
    yield section("param gpu_usd_per_hour", region[priced[0]], gpu_type[priced[1]], gpu_price)
    yield section(
        "param : INGRESS_LIMITED : ingress_mb_per_day", region[limited], p.regions.ingress_mb_per_day[limited]
    )

    yield section(
        "param : DATASET : size_mb copies_min copies_max",
        dataset,
        p.datasets.size_mb,
        p.datasets.copies_min,
        p.datasets.copies_max,
    )
    yield from stated_sections(p.datasets, dataset)
    for name, grid in (
        ("STORED", p.datasets.stored),
        ("PINNED", p.datasets.pinned),
        ("FORBIDDEN", p.datasets.forbidden),
        ("RESIDENCY", p.datasets.residency),
    ):
        yield _pairs(name, dataset, region, grid)

    tier = np.array(p.tiers)
    yield section("param : TIER : tier_weight", tier, p.tier_weight)
    if p.peak_level.any():
        yield section("param peak_level", tier, p.peak_level)
    yield section("set APP", app)
    yield section(
        "param : WORKLOAD : tier cpu_need_mcores output_mb app",
        workload,
        tier[p.workloads.tier],
        p.workloads.cpu_mcores,
        p.workloads.output_mb,
        app[p.workloads.app],
    )
    yield from stated_sections(p.workloads, workload)
    yield section("set SPLITTABLE", workload[p.workloads.splittable])
    yield _pairs("WORK_PINNED", workload, region, p.workloads.pinned)
    yield _pairs("WORK_FORBIDDEN", workload, region, p.workloads.forbidden)
    yield section("param : OPTION : gpus_mgpu", workload[p.options.workload], kind[p.options.gpu_type], p.options.mgpu)
    yield section(
        "param : READ : read_mb_per_day", workload[p.reads.workload], dataset[p.reads.dataset], p.reads.mb_per_day
    )
    today = (workload[p.current_runs.workload], region[p.current_runs.region], kind[p.current_runs.gpu_type])
    yield section("param : TODAY : today_milli", *today, p.current_runs.share)
    yield section(
        "param : QUOTA : quota_mcores", region[p.cpu_quotas.region], app[p.cpu_quotas.app], p.cpu_quotas.cpu_mcores
    )

    yield iter([f"param has_links := {int(p.links is not None)};"])
    link: tuple[Column, ...] = (region[:0],) * 4
    if p.links is not None:
        ends = (region[p.links.source], region[p.links.target])
        link = (*ends, p.links.capacity_mb_per_day, p.links.price_usd_per_tb)
    yield section("param : LINK : capacity_mb_per_day price_usd_per_tb", *link)

    yield iter(
        [
            f"param remote_reads := {int(p.remote_reads)};",
            f"param may_refuse := {int(p.may_refuse)};",
            f"param days_num := {p.days.numerator};",
            f"param days_den := {p.days.denominator};",
        ]
    )
    most = np.array([float(value) for value in p.limits.values()], float)
    yield section("param : LIMIT : most", np.array(list(p.limits), str), most)
    weights = {term: weight for term, weight in p.objective.weights.items() if weight or not OBJECTIVE[term].unstated}
    yield section("param weight", np.array(list(weights)), np.array(list(weights.values()), float))
    yield iter(["end;"])


def _pairs(name: str, first: Column, second: Column, grid: Bools) -> Iterator[str]:
    """MathProg set of pairs that a grid of dataset or workload and region marks."""
    row, column = np.nonzero(grid)
    return section(f"set {name}", first[row], second[column])
