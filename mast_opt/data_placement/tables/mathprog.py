"""GNU MathProg data of data-placement instances: for ``models/data_placement.mod``, glpsol and other readers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.data_placement.problem import NO_GPU, Bools, DataPlacement
from mast_opt.kind.mathprog import section, with_symbols, write_data

Column = NDArray[Any]
_AXES: dict[str, tuple[str, ...]] = {
    "regions": (),
    "gpu_types": (NO_GPU,),
    "datasets": (),
    "workloads": (),
    "apps": (),
}


def printable(problem: DataPlacement) -> DataPlacement:
    """The same problem with every label a symbol, as ``write_dat`` names them."""
    return with_symbols(problem, _AXES)


def write_dat(problem: DataPlacement, path: Path) -> None:
    """Write the data section that, with the .mod, states this problem. The objective is the weighted one."""
    write_data(problem, path, "data_placement.mod", _AXES, _sections)


def _sections(p: DataPlacement) -> Iterator[Iterator[str]]:
    """Regions, datasets, workloads, network, rules and objective, as the .mod declares them."""
    region, dataset, workload = np.array(p.regions), np.array(p.datasets), np.array(p.workloads)
    gpu_type, kind, app = np.array(p.gpu_types, str), np.array([*p.gpu_types, NO_GPU]), np.array(p.apps, str)

    limited, supplied = np.flatnonzero(p.ingress_limited), np.nonzero(p.supply_mgpu)
    yield section("set TYPE", gpu_type)
    yield section(
        "param : REGION : storage_mb headroom_milli cpu_mcores", region, p.storage_mb, p.headroom_milli, p.cpu_mcores
    )
    yield section("param supply_mgpu", region[supplied[0]], gpu_type[supplied[1]], p.supply_mgpu[supplied])
    yield section("param : INGRESS_LIMITED : ingress_mb_per_day", region[limited], p.ingress_mb_per_day[limited])

    yield section("param : DATASET : size_mb copies_min copies_max", dataset, p.size_mb, p.copies_min, p.copies_max)
    for name, grid in (
        ("STORED", p.stored),
        ("PINNED", p.pinned),
        ("FORBIDDEN", p.forbidden),
        ("RESIDENCY", p.residency),
    ):
        yield _pairs(name, dataset, region, grid)

    tier = np.array(p.tiers)
    yield section("param : TIER : tier_weight", tier, p.tier_weight)
    yield section("set APP", app)
    yield section(
        "param : WORKLOAD : tier cpu_need_mcores output_mb app",
        workload,
        tier[p.tier],
        p.cpu_need_mcores,
        p.output_mb,
        app[p.app],
    )
    yield section("set SPLITTABLE", workload[p.splittable])
    yield _pairs("WORK_PINNED", workload, region, p.work_pinned)
    yield _pairs("WORK_FORBIDDEN", workload, region, p.work_forbidden)
    yield section("param : OPTION : gpus_mgpu", workload[p.option_workload], kind[p.option_type], p.option_mgpu)
    yield section(
        "param : READ : read_mb_per_day", workload[p.read_workload], dataset[p.read_dataset], p.read_mb_per_day
    )
    today = (workload[p.current_workload], region[p.current_region], kind[p.current_type])
    yield section("param : TODAY : today_milli", *today, p.current_share)
    yield section("param : QUOTA : quota_mcores", region[p.quota_region], app[p.quota_app], p.quota_mcores)

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
    weights = p.objective.weights
    yield section("param weight", np.array(list(weights)), np.array(list(weights.values()), float))
    yield iter(["end;"])


def _pairs(name: str, first: Column, second: Column, grid: Bools) -> Iterator[str]:
    row, column = np.nonzero(grid)
    return section(f"set {name}", first[row], second[column])
