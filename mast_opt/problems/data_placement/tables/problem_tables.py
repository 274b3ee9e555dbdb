"""Tables of data-placement instances and plans, and the way between them and the problem or the plan."""

from fractions import Fraction

import numpy as np

from mast_opt.core.errors import Fault, InstanceError
from mast_opt.problems.data_placement import entities
from mast_opt.problems.data_placement.goals import MONEY, money_weights
from mast_opt.problems.data_placement.plan import Plan, fill_copies, possible_remote
from mast_opt.problems.data_placement.problem import SHARE, Bools, DataPlacement, Ints, Links
from mast_opt.problems.data_placement.tables.schema import FORBIDDEN, PINNED, SCHEMA
from mast_opt.problems.kind.header import Header
from mast_opt.problems.kind.schema import Tables
from mast_opt.problems.kind.stated_columns import arrays_of, left_out, stated_tables

MICRO_OF_A_MILLI = 1000
COPIES = ("dataset", "src", "dst", "share")
REMOTE_READS = ("workload", *COPIES)
"""Files state steps of GPUs and of TB in one column, in millionths; arrays hold GPUs in thousandths."""


def problem_from_tables(header: Header, tables: Tables) -> DataPlacement:
    """The problem that the tables state. Raises InstanceError for what only the problem can see."""
    regions, types = tables.axes["region"], tables.axes["gpu_type"]
    datasets, workloads = tables.axes["dataset"], tables.axes["workload"]
    faults = _current_share_faults(tables)
    faults += _link_faults(tables)
    if faults:
        raise InstanceError(faults)

    def pairs(table: str, first: str, rows: Ints | slice = slice(None)) -> Bools:
        grid = np.zeros((len(tables.axes[first]), len(regions)), np.bool_)
        grid[tables.get(table, first)[rows], tables.get(table, "region")[rows]] = True
        return grid

    def ruled(table: str, first: str, rule: int) -> Bools:
        return pairs(table, first, np.flatnonzero(tables.get(table, "rule") == rule))

    supplied = np.zeros((len(regions), len(types)), np.int64)
    at = (tables.get("gpu_supply", "region"), tables.get("gpu_supply", "gpu_type"))
    supplied[at] = tables.get("gpu_supply", "gpus")
    gpu_price = np.zeros_like(supplied)
    gpu_price[at] = tables.get("gpu_supply", "usd_per_gpu_hour")
    tiers, tier = np.unique(tables.get("workloads", "tier"), return_inverse=True)
    demand = _sorted(tables, "gpu_demand", "workload", "gpu_type")
    gpu_free = np.setdiff1d(np.arange(len(workloads)), demand[0])
    option_workload = np.concatenate([demand[0], gpu_free])
    order = np.argsort(option_workload, kind="stable")
    reads = _sorted(tables, "reads", "workload", "dataset")
    banned = ruled("workload_rules", "workload", FORBIDDEN)
    read_at_all = np.bincount(reads[1][~np.all(banned, axis=1)[reads[0]]], minlength=len(datasets)) > 0
    sizes, work = arrays_of(entities.Datasets, tables, "datasets"), arrays_of(entities.Workloads, tables, "workloads")
    sizes["copies_min"] = np.where(read_at_all, np.maximum(sizes["copies_min"], 1), sizes["copies_min"])
    sizes["copies_max"] = np.where(tables.has("datasets", "copies_max"), sizes["copies_max"], len(regions))
    named = tables.has("workloads", "app")
    apps = tables.axes["app"] if named.all() else (*tables.axes["app"], "")
    work |= {"tier": tier.astype(np.int64), "app": np.where(named, work["app"], len(apps) - 1)}
    problem = DataPlacement(
        name=header.name,
        provenance=header.provenance,
        regions=entities.Regions(
            labels=regions,
            **arrays_of(entities.Regions, tables, "regions"),
            ingress_limited=tables.has("regions", "ingress_tb_per_day"),
            supply_mgpu=supplied,
            gpu_price_micro=gpu_price,
        ),
        gpu_types=types,
        datasets=entities.Datasets(
            labels=datasets,
            **sizes,
            stored=pairs("replicas", "dataset"),
            pinned=ruled("rules", "dataset", PINNED),
            forbidden=ruled("rules", "dataset", FORBIDDEN),
            residency=pairs("residency", "dataset"),
        ),
        workloads=entities.Workloads(
            labels=workloads,
            **work,
            pinned=ruled("workload_rules", "workload", PINNED),
            forbidden=banned,
        ),
        apps=apps,
        tiers=tuple(tiers.tolist()),
        options=entities.Options(
            workload=option_workload[order],
            gpu_type=np.concatenate([demand[1], np.full(len(gpu_free), len(types))])[order],
            mgpu=np.concatenate([demand[2], np.zeros(len(gpu_free), np.int64)])[order],
        ),
        reads=entities.Reads(workload=reads[0], dataset=reads[1], mb_per_day=reads[2]),
        current_runs=entities.CurrentRuns(**arrays_of(entities.CurrentRuns, tables, "current_runs")),
        cpu_quotas=entities.CpuQuotas(**arrays_of(entities.CpuQuotas, tables, "cpu_quota")),
        links=None if "links" in tables.missing else Links(**arrays_of(Links, tables, "links")),
        objective=header.objective,
        remote_reads=header.rules["remote_reads"] == "price",
        may_refuse=header.rules["unserved"] == "price",
        days=Fraction(header.rules["days"]),
        limits=header.limits,
        candidates=_candidates(tables),
    )
    _ = problem.demand_mgpu  # raises here rather than while solving
    if not problem.has_prices:
        return problem
    by_default = {term: w for term, w in money_weights(problem, MONEY).items() if term in header.unstated}
    return problem.with_objective(by_default)


def _candidates(tables: Tables) -> entities.Candidates | None:
    """Candidates for purchases in regions from their table; None without one."""
    if "candidates" in tables.missing:
        return None
    found = arrays_of(entities.Candidates, tables, "candidates")
    found["step"] = np.where(found["resource"] == entities.GPUS, found["step"] // MICRO_OF_A_MILLI, found["step"])
    return entities.Candidates(labels=tables.axes["candidate"], **found)


def _sorted(tables: Tables, table: str, first: str, second: str) -> tuple[Ints, ...]:
    """The columns of a table in order of its first two."""
    order = np.lexsort((tables.get(table, second), tables.get(table, first)))
    return tuple(column[order] for column in tables.values[table].values())


def _current_share_faults(tables: Tables) -> list[Fault]:
    """Faults of workloads whose present shares add up to more than 1."""
    workload, share = tables.get("current_runs", "workload"), tables.get("current_runs", "share")
    total = np.bincount(workload, weights=share, minlength=len(tables.axes["workload"]))
    return [
        Fault(
            "current_runs",
            f"shares of {tables.axes['workload'][w]} that add up to at most 1",
            value=f"{total[w] / SHARE:g}",
        )
        for w in np.flatnonzero(total > SHARE).tolist()
    ]


def _link_faults(tables: Tables) -> list[Fault]:
    """Faults of links from a region to itself."""
    src, dst = tables.get("links", "src"), tables.get("links", "dst")
    return [
        Fault("links", "a link between two different regions", row + 1, "dst", tables.axes["region"][int(dst[row])])
        for row in np.flatnonzero(src == dst).tolist()
    ]


def problem_to_tables(problem: DataPlacement) -> tuple[Header, Tables]:
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
        limits=p.limits,
    )
    named = np.array([p.apps[a] != "" for a in p.workloads.app.tolist()], np.bool_)
    rows, work_rows = p.datasets.pinned | p.datasets.forbidden, p.workloads.pinned | p.workloads.forbidden
    supply_at = np.nonzero(p.regions.supply_mgpu)
    asks = p.options.gpu_type < len(p.gpu_types)
    axes = p.table_axes(SCHEMA)
    values, present = stated_tables(p, SCHEMA, axes)
    values["workloads"]["tier"] = np.array(p.tiers, np.int64)[p.workloads.tier]
    values["workloads"]["app"] = np.where(named, p.workloads.app, 0)
    if p.candidates is not None:
        gpus, step = p.candidates.resource == entities.GPUS, p.candidates.step
        values["candidates"]["step"] = np.where(gpus, step * MICRO_OF_A_MILLI, step)
    values |= {
        "gpu_supply": {
            "region": supply_at[0],
            "gpu_type": supply_at[1],
            "gpus": p.regions.supply_mgpu[supply_at],
            "usd_per_gpu_hour": p.regions.gpu_price_micro[supply_at],
        },
        "replicas": dict(zip(("dataset", "region"), np.nonzero(p.datasets.stored))),
        "rules": {
            **dict(zip(("dataset", "region"), np.nonzero(rows))),
            "rule": np.where(p.datasets.pinned[rows], PINNED, FORBIDDEN),
        },
        "residency": dict(zip(("dataset", "region"), np.nonzero(p.datasets.residency))),
        "workload_rules": {
            **dict(zip(("workload", "region"), np.nonzero(work_rows))),
            "rule": np.where(p.workloads.pinned[work_rows], PINNED, FORBIDDEN),
        },
        "gpu_demand": {
            "workload": p.options.workload[asks],
            "gpu_type": p.options.gpu_type[asks],
            "gpus": p.options.mgpu[asks],
        },
    }
    present["regions"]["ingress_tb_per_day"] = p.regions.ingress_limited
    present |= {
        "gpu_supply": {"usd_per_gpu_hour": p.regions.gpu_price_micro[supply_at] > 0},
        "gpu_demand": {},
    }
    present["workloads"]["app"] = named
    present["datasets"]["copies_max"] = p.datasets.copies_max < len(p.regions)
    there = {name for name, group in (("links", p.links), ("candidates", p.candidates)) if group is not None}
    return header, Tables(axes, values, present, left_out(SCHEMA, values) - there)


def _either(condition: bool, yes: str, no: str) -> str:
    """One of two texts of a data placement's tables, by a condition."""
    return yes if condition else no


def plan_from_tables(problem: DataPlacement, tables: Tables) -> Plan:
    """The plan that the tables state; positions are those of the problem's axes."""
    place = np.zeros((len(problem.datasets), len(problem.regions)), np.bool_)
    place[tables.get("placements", "dataset"), tables.get("placements", "region")] = True
    typed = tables.has("runs", "gpu_type")
    kind = np.where(typed, tables.get("runs", "gpu_type"), len(problem.gpu_types))
    order = np.lexsort((kind, tables.get("runs", "region"), tables.get("runs", "workload")))
    run = (tables.get("runs", "workload"), tables.get("runs", "region"), kind, tables.get("runs", "share"))
    copy = (tables.get("copies", name) for name in COPIES)
    remote = (tables.get("remote_reads", name) for name in REMOTE_READS)
    return Plan(place, *(column[order] for column in run), *copy, *remote)


def in_full(problem: DataPlacement, plan: Plan) -> Plan:
    """The plan with the copies and the remote reads that it leaves out, as it may where there are no links."""
    if problem.links is not None:
        return plan
    if not len(plan.copy_share):
        plan = plan.with_rows(copy=fill_copies(problem, plan.place))
    if not len(plan.remote_share):
        plan = plan.with_rows(remote=possible_remote(problem, plan.place, plan.rows("run")))
    return plan


def plan_to_tables(problem: DataPlacement, plan: Plan) -> Tables:
    """The tables that ``plan_from_tables`` turns into this plan."""
    dataset, region = np.nonzero(plan.place)
    typed = plan.run_type < len(problem.gpu_types)
    values = {
        "placements": {"dataset": dataset, "region": region},
        "runs": {
            "workload": plan.run_workload,
            "region": plan.run_region,
            "gpu_type": np.where(typed, plan.run_type, 0),
            "share": plan.run_share,
        },
        "copies": dict(zip(COPIES, plan.rows("copy"))),
        "remote_reads": dict(zip(REMOTE_READS, plan.rows("remote"))),
    }
    return Tables(problem.table_axes(SCHEMA), values, {"runs": {"gpu_type": typed}})
