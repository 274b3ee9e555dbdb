"""The header and tables that state a problem: the inverse of ``build``."""

from __future__ import annotations

import numpy as np

from mast_opt.data_placement.problem import DataPlacement
from mast_opt.data_placement.tables.schema import FORBIDDEN, MICRO, PINNED
from mast_opt.kind.header import Header
from mast_opt.kind.schema import Tables


def unbuild(problem: DataPlacement) -> tuple[Header, Tables]:
    """The header and tables that ``build`` turns into this problem."""
    p = problem
    header = Header(
        kind=p.kind,
        name=p.name,
        objective=p.objective,
        rules={
            "remote_reads": _either(p.remote_reads, "price", "forbid"),
            "unserved": _either(p.may_refuse, "price", "forbid"),
            "days": p.days,
        },
        provenance=p.provenance,
    )
    named = np.array([p.apps[a] != "" for a in p.app.tolist()], np.bool_)
    rows, work_rows = p.pinned | p.forbidden, p.work_pinned | p.work_forbidden
    supply_at = np.nonzero(p.supply_mgpu)
    asks = p.option_type < len(p.gpu_types)
    types_known = p.current_type < len(p.gpu_types)
    values = {
        "regions": {
            "region": np.arange(len(p.regions)),
            "storage_tb": p.storage_mb,
            "cpu_cores": p.cpu_mcores,
            "ingress_tb_per_day": p.ingress_mb_per_day,
            "headroom": p.headroom_milli,
        },
        "gpu_supply": {"region": supply_at[0], "gpu_type": supply_at[1], "gpus": p.supply_mgpu[supply_at]},
        "datasets": {
            "dataset": np.arange(len(p.datasets)),
            "size_tb": p.size_mb,
            "copies_min": p.copies_min,
            "copies_max": p.copies_max,
        },
        "replicas": dict(zip(("dataset", "region"), np.nonzero(p.stored))),
        "rules": {
            **dict(zip(("dataset", "region"), np.nonzero(rows))),
            "rule": np.where(p.pinned[rows], PINNED, FORBIDDEN),
        },
        "residency": dict(zip(("dataset", "region"), np.nonzero(p.residency))),
        "workloads": {
            "workload": np.arange(len(p.workloads)),
            "tier": np.array(p.tiers, np.int64)[p.tier],
            "cpu_cores": p.cpu_need_mcores,
            "app": np.where(named, p.app, 0),
            "splittable": p.splittable,
            "output_tb": p.output_mb,
        },
        "workload_rules": {
            **dict(zip(("workload", "region"), np.nonzero(work_rows))),
            "rule": np.where(p.work_pinned[work_rows], PINNED, FORBIDDEN),
        },
        "gpu_demand": {
            "workload": p.option_workload[asks],
            "gpu_type": p.option_type[asks],
            "gpus": p.option_mgpu[asks],
        },
        "reads": {"workload": p.read_workload, "dataset": p.read_dataset, "tb_per_day": p.read_mb_per_day},
        "current_runs": {
            "workload": p.current_workload,
            "region": p.current_region,
            "gpu_type": np.where(types_known, p.current_type, 0),
            "share": p.current_share,
        },
        "cpu_quota": {"region": p.quota_region, "app": p.quota_app, "cpu_cores": p.quota_mcores},
        "links": {name: np.zeros(0, np.int64) for name in ("src", "dst", "tb_per_day", "usd_per_tb")}
        if p.links is None
        else {
            "src": p.links.source,
            "dst": p.links.target,
            "tb_per_day": p.links.capacity_mb_per_day,
            "usd_per_tb": np.rint(p.links.price_usd_per_tb * MICRO).astype(np.int64),
        },
    }
    present = {
        "regions": {"ingress_tb_per_day": p.ingress_limited},
        "workloads": {"app": named},
        "current_runs": {"gpu_type": types_known},
        "datasets": {"copies_max": p.copies_max < len(p.regions)},
    }
    optional = ("rules", "residency", "workload_rules", "current_runs", "cpu_quota")
    empty = {name for name in optional if not len(next(iter(values[name].values())))}
    missing = frozenset(empty | ({"links"} if p.links is None else set()))
    return header, Tables(problem_axes(p), values, present, missing)


def _either(condition: bool, yes: str, no: str) -> str:
    return yes if condition else no


def problem_axes(problem: DataPlacement) -> dict[str, tuple[str, ...]]:
    return {
        "region": problem.regions,
        "dataset": problem.datasets,
        "workload": problem.workloads,
        "gpu_type": problem.gpu_types,
        "app": tuple(app for app in problem.apps if app),
    }
