"""Job-placement problem from its tables, and its tables from the problem."""

from typing import Any, NamedTuple

import numpy as np

from mast_opt.core.errors import Fault, InstanceError, PlanError
from mast_opt.core.ranks import Reclaim
from mast_opt.problems.job_placement import entities
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.tables.consistency import faults_of
from mast_opt.problems.job_placement.tables.job_rows import JobRows
from mast_opt.problems.job_placement.units import NO_GPU, Bools, Ints
from mast_opt.problems.job_placement.whole_jobs import WholeJobs
from mast_opt.problems.kind.header import Header
from mast_opt.problems.kind.problem_data import Relation
from mast_opt.problems.kind.schema import Tables
from mast_opt.problems.kind.stated_columns import arrays_of, cells_of


def problem_from_tables(header: Header, tables: Tables) -> JobPlacement:
    """The problem that the tables state. Raises InstanceError for what only the problem can see."""
    faults = faults_of(tables)
    if faults:
        raise InstanceError(faults)
    types, server_type = _server_types(tables)
    racks, rack_cluster, server_rack = _racks(tables)
    tiers, tier, running_tier = _tiers(tables)
    tenants, tenant, running_tenant = _tenants(tables)
    rows = JobRows.of(tables)
    option_job, option_type, option_mgpu = _options(tables, types, rows)
    tasks = rows.column("tasks")
    worth = rows.total(rows.column("gpus") * tasks)
    reads, reader = rows.each(tables.get("job_datasets", "job"))
    order = np.lexsort((tables.get("job_datasets", "dataset")[reads], reader))
    reads, reader = reads[order], reader[order]
    multipart_jobs, parts = rows.groups()
    stored = np.zeros((len(tables.axes["dataset"]), len(tables.axes["region"])), np.bool_)
    stored[tables.get("replicas", "dataset"), tables.get("replicas", "region")] = True
    residency = np.zeros_like(stored)
    residency[tables.get("residency", "dataset"), tables.get("residency", "region")] = True
    return JobPlacement(
        name=header.name,
        provenance=header.provenance,
        regions=tables.axes["region"],
        clusters=entities.Clusters(labels=tables.axes["cluster"], **arrays_of(entities.Clusters, tables, "clusters")),
        racks=entities.Racks(labels=racks, cluster=rack_cluster),
        servers=entities.Servers(
            labels=tables.axes["server"], rack=server_rack, gpu_type=server_type, supply=_resources(tables, "servers")
        ),
        gpu_types=types,
        jobs=entities.Jobs(
            labels=rows.labels,
            tier=tier[rows.job],
            value_milli=rows.once(np.where(tables.has("jobs", "value"), tables.get("jobs", "value"), worth)),
            tasks=tasks,
            cpu_mcores=rows.column("cpu_cores"),
            memory_mib=rows.column("memory_gb"),
            within=rows.column("within"),
            tenant=tenant[rows.job],
            **{name: values[rows.job] for name, values in arrays_of(entities.Jobs, tables, "jobs").items()},
        ),
        running=entities.RunningJobs(
            labels=tables.axes["running"],
            **arrays_of(entities.RunningJobs, tables, "running") | {"tier": running_tier, "tenant": running_tenant},
        ),
        datasets=entities.Datasets(labels=tables.axes["dataset"], stored=stored, residency=residency),
        tenants=tenants,
        tiers=tiers,
        options=entities.Options(job=option_job, gpu_type=option_type, mgpu=option_mgpu),
        reads=entities.Reads(
            job=reader,
            dataset=tables.get("job_datasets", "dataset")[reads],
            mb_per_day=np.where(rows.first[reader], tables.get("job_datasets", "tb_per_day")[reads], 0),
        ),
        allocations=entities.Allocations(
            running=tables.get("allocations", "job"),
            server=tables.get("allocations", "server"),
            tasks=tables.get("allocations", "tasks"),
            need=_resources(tables, "allocations"),
            gpu_index=tables.get("allocations", "gpu_index"),
            indexed=tables.has("allocations", "gpu_index"),
        ),
        quotas=entities.TenantQuotas(
            tenant=tables.get("quotas", "tenant"),
            gpu_type=_renumbered(tables.get("quotas", "gpu_type"), tables.axes["gpu_type"], types),
            typed=tables.has("quotas", "gpu_type"),
            mgpu=tables.get("quotas", "gpus"),
            parent=_or(tables, "parent", len(tenants)),
            borrowing_mgpu=_or(tables, "borrowing_limit", -1),
            lending_mgpu=_or(tables, "lending_limit", -1),
        ),
        costs=entities.Costs(
            **arrays_of(entities.Costs, tables, "costs") | {"job": rows.first_row[tables.get("costs", "job")]},
        ),
        objective=header.objective,
        remote_reads=header.rules["remote_reads"] == "price",
        reclaim=Reclaim(str(header.rules.get("reclaim", Reclaim.ANY))),
        movable=entities.Movable(**_ordered(entities.Movable, tables, "movable", "job")),
        multipart_jobs=multipart_jobs,
        parts=parts,
        **_running_parts(tables),
        move_limits=entities.MoveLimits(**_ordered(entities.MoveLimits, tables, "move_limits", "limit")),
    )


def _ordered(group: type[Relation], tables: Tables, table: str, by: str) -> dict[str, Any]:
    """The arrays of a group of jobs in the order of a column."""
    order = np.argsort(tables.get(table, by))
    return {name: values[order] for name, values in arrays_of(group, tables, table).items()}


def _resources(tables: Tables, table: str) -> Ints:
    """[·, 3] the columns gpus, cpu_cores and memory_gb."""
    return np.stack([tables.get(table, name) for name in ("gpus", "cpu_cores", "memory_gb")], axis=1)


def _running_parts(tables: Tables) -> dict[str, Any]:
    """The fields of the parts of running jobs."""
    row = np.flatnonzero(tables.has("allocations", "part"))
    used, part = np.unique(tables.get("allocations", "part")[row], return_inverse=True)
    names = tuple(tables.axes["part"][at] for at in used.tolist())
    return {"part_names": names, "running_parts": entities.RunningParts(row, part.reshape(-1).astype(np.int64))}


def _server_types(tables: Tables) -> tuple[tuple[str, ...], Ints]:
    """The types that servers have, ``none`` last if a server names no type, and [S] the type of each."""
    axis, typed = tables.axes["gpu_type"], tables.has("servers", "gpu_type")
    labels = [
        axis[k] if known else NO_GPU for k, known in zip(tables.get("servers", "gpu_type").tolist(), typed.tolist())
    ]
    used = set(labels)
    types = tuple(label for label in dict.fromkeys((*axis, NO_GPU)) if label in used)
    number = {label: k for k, label in enumerate(types)}
    return types, np.array([number[label] for label in labels], np.int64)


def _renumbered(at: Ints, old: tuple[str, ...], new: tuple[str, ...]) -> Ints:
    """The labels of job placement as positions on another axis that has all that are used."""
    number = {label: k for k, label in enumerate(new)}
    map_to = np.array([number.get(label, 0) for label in old] or [0], np.int64)
    return map_to[at]


def _racks(tables: Tables) -> tuple[tuple[str, ...], Ints, Ints]:
    """Labels, cluster and [S] position of each rack; a label that two clusters use becomes ``cluster/label``."""
    cluster, rack = tables.get("servers", "cluster"), tables.get("servers", "rack")
    names, clusters = tables.axes["rack"], tables.axes["cluster"]
    pairs, at = np.unique(rack * len(clusters) + cluster, return_inverse=True)
    of_rack, of_cluster = pairs // len(clusters), pairs % len(clusters)
    shared = np.bincount(of_rack, minlength=len(names)) > 1
    labels = tuple(
        f"{clusters[c]}/{names[b]}" if shared[b] else names[b] for b, c in zip(of_rack.tolist(), of_cluster.tolist())
    )
    return labels, of_cluster, at.astype(np.int64)


def _or(tables: Tables, column: str, absent: int) -> Ints:
    """A column of quotas, with another value where cells are empty."""
    return np.where(tables.has("quotas", column), tables.get("quotas", column), absent)


def _tiers(tables: Tables) -> tuple[tuple[int, ...], Ints, Ints]:
    """Tiers of an instance, and the position of each pending and running job's tier."""
    pending, running = tables.get("jobs", "tier"), tables.get("running", "tier")
    tiers, at = np.unique(np.concatenate([pending, running]), return_inverse=True)
    return tuple(tiers.tolist()), at[: len(pending)].astype(np.int64), at[len(pending) :].astype(np.int64)


def _tenants(tables: Tables) -> tuple[tuple[str, ...], Ints, Ints]:
    """Labels, and the tenant of every pending and running job; the empty label for those that name none."""
    named = [tables.has(table, "tenant") for table in ("jobs", "running")]
    labels = tables.axes["tenant"]
    if not (named[0].all() and named[1].all()):
        labels = (*labels, "")
    pending, running = (
        np.where(known, tables.get(table, "tenant"), len(labels) - 1)
        for table, known in zip(("jobs", "running"), named)
    )
    return labels, pending, running


def _options(tables: Tables, types: tuple[str, ...], rows: JobRows) -> tuple[Ints, Ints, Ints]:
    """(row, type, milli-GPUs per task), ascending by row; the types of a job or part as listed. One that lists none
    takes any, in the order in which the tables mention them."""
    job, mgpu = rows.named("job_gpu_types"), rows.column("gpus")
    kind = _renumbered(tables.get("job_gpu_types", "gpu_type"), tables.axes["gpu_type"], types)
    stated = tables.has("job_gpu_types", "gpus")
    needs = np.where(stated, tables.get("job_gpu_types", "gpus"), mgpu[job])
    free = np.setdiff1d(np.arange(len(mgpu)), job)
    any_job, any_type = np.repeat(free, len(types)), np.tile(np.arange(len(types)), len(free))
    jobs = np.concatenate([job, any_job])
    kinds = np.concatenate([kind, any_type])
    amounts = np.concatenate([needs, mgpu[any_job]])
    order = np.argsort(jobs, kind="stable")
    return jobs[order], kinds[order], amounts[order]


def problem_to_tables(problem: JobPlacement) -> tuple[Header, Tables]:
    """The header and tables that ``build`` turns into this problem."""
    p = problem
    rules = {"remote_reads": "price" if p.remote_reads else "forbid"}
    if p.reclaim is not Reclaim.ANY:  # younger than the checksums of instances without it
        rules["reclaim"] = p.reclaim.value
    header = Header(p.kind, p.name, p.objective, rules, p.provenance)
    is_named = np.array([tenant != "" for tenant in p.tenants], np.bool_)
    named, running_named = is_named[p.jobs.tenant], is_named[p.running.tenant]
    base = np.zeros(len(p.jobs), np.int64)
    begins = np.unique(p.options.job, return_index=True)[1]
    base[p.options.job[begins]] = p.options.mgpu[begins]
    per_task = {"tasks": p.jobs.tasks, "gpus": base, "cpu_cores": p.jobs.cpu_mcores, "memory_gb": p.jobs.memory_mib}
    out_of_order = p.options.job[1:][(np.diff(p.options.job) == 0) & (np.diff(p.options.gpu_type) < 0)]
    any_type = p.accepts.all(axis=1) & (p.need_mgpu == base[:, None]).all(axis=1)
    if len(p.quotas.tenant):
        any_type[out_of_order] = False
        any_type &= list(p.gpu_types) == sorted(p.gpu_types)  # the order of servers is in no checksum
    listed = ~any_type[p.options.job]
    tiers = np.array(p.tiers, np.int64)
    whole = WholeJobs(p)
    first, alone = whole.first, ~whole.has_parts[whole.first]
    counted = p.counts_once[p.reads.job]
    running_part, in_part = np.zeros(len(p.allocations), np.int64), np.zeros(len(p.allocations), np.bool_)
    number = {name: at for at, name in enumerate(whole.part_names)}
    of_names = np.array([number[name] for name in p.part_names], np.int64)
    running_part[p.running_parts.allocation] = of_names[p.running_parts.part]
    in_part[p.running_parts.allocation] = True
    dataset, region = np.nonzero(p.datasets.stored)
    axes = axes_of(p)
    jobs, stated_jobs = cells_of(p.jobs, axes)
    running, stated_running = cells_of(p.running, axes)
    limits = {"borrowing_limit": p.quotas.borrowing_mgpu, "lending_limit": p.quotas.lending_mgpu}
    stated_limits = {name: values >= 0 for name, values in limits.items()}
    stated_limits["parent"] = p.quotas.parent < len(axes["tenant"])
    limits["parent"] = np.where(stated_limits["parent"], p.quotas.parent, 0)
    values = {
        "regions": {"region": np.arange(len(p.regions))},
        "clusters": {"cluster": np.arange(len(p.clusters)), "region": p.clusters.region},
        "servers": {
            "server": np.arange(len(p.servers)),
            "cluster": p.server_cluster,
            "rack": p.servers.rack,
            "gpu_type": p.servers.gpu_type,
            **_columns(p.servers.supply),
        },
        "jobs": {
            "job": np.arange(len(first)),
            "tier": tiers[p.jobs.tier[first]],
            "value": p.jobs.value_milli[first],
            **{name: np.where(alone, values[first], 0) for name, values in per_task.items()},
            "within": whole.within,
            "tenant": np.where(named, p.jobs.tenant, 0)[first],
            **{name: cells[first] for name, cells in jobs.items()},
        },
        "job_gpu_types": {
            "job": whole.of[p.options.job[listed]],
            "gpu_type": p.options.gpu_type[listed],
            "gpus": p.options.mgpu[listed],
            "part": whole.part[p.options.job[listed]],
        },
        "job_datasets": {
            **{name: cells[counted] for name, cells in cells_of(p.reads, axes)[0].items()},
            "job": whole.of[p.reads.job[counted]],
        },
        "replicas": {"dataset": dataset, "region": region},
        "residency": dict(zip(("dataset", "region"), np.nonzero(p.datasets.residency))),
        "running": {
            "job": np.arange(len(p.running)),
            **running,
            "tier": tiers[p.running.tier],
            "tenant": np.where(running_named, p.running.tenant, 0),
        },
        "allocations": {
            "job": p.allocations.running,
            "server": p.allocations.server,
            "tasks": p.allocations.tasks,
            **_columns(p.allocations.need),
            "gpu_index": p.allocations.gpu_index,
            "part": running_part,
        },
        "quotas": {"tenant": p.quotas.tenant, "gpus": p.quotas.mgpu, "gpu_type": p.quotas.gpu_type, **limits},
        "costs": cells_of(p.costs, axes)[0] | {"job": whole.of[p.costs.job]},
        "movable": cells_of(p.movable, axes)[0],
        "move_limits": cells_of(p.move_limits, axes)[0],
        "job_parts": {
            "job": whole.of[p.parts.job],
            "part": whole.part[p.parts.job],
            **{name: values[p.parts.job] for name, values in per_task.items()},
            "within": p.jobs.within[p.parts.job],
        },
    }
    present = {
        "jobs": {
            **{name: cells[first] for name, cells in stated_jobs.items()},
            "tenant": named[first],
            **dict.fromkeys(per_task, alone),
        },
        "job_gpu_types": {"part": whole.has_parts[p.options.job[listed]]},
        "running": {**stated_running, "tenant": running_named},
        "allocations": {"gpu_index": p.allocations.indexed, "part": in_part},
        "quotas": {"gpu_type": p.quotas.typed, **stated_limits},
    }
    empty = {"quotas": len(p.quotas), "costs": len(p.costs), "residency": int(p.datasets.residency.sum())}
    empty |= {"movable": len(p.movable), "move_limits": len(p.move_limits), "job_parts": len(p.parts)}
    missing = frozenset(name for name, rows in empty.items() if not rows)
    return header, Tables(axes, values, present, missing)


def _columns(amounts: Ints) -> dict[str, Ints]:
    """Columns of GPUs, cores and memory from amounts [rows, 3]."""
    return {name: amounts[:, at] for at, name in enumerate(("gpus", "cpu_cores", "memory_gb"))}


def axes_of(problem: JobPlacement) -> dict[str, tuple[str, ...]]:
    """The labels of every axis of the schemas."""
    p, whole = problem, WholeJobs(problem)
    return {
        "region": p.regions,
        "cluster": p.clusters.labels,
        "rack": p.racks.labels,
        "server": p.servers.labels,
        "gpu_type": p.gpu_types,
        "job": whole.labels,
        "part": whole.part_names,
        "gang": p.jobs.labels,
        "running": p.running.labels,
        "dataset": p.datasets.labels,
        "tenant": tuple(tenant for tenant in p.tenants if tenant),
    }


class _Rows(NamedTuple):
    """Rows of a plan, by job, server and GPU."""

    job: Ints
    server: Ints
    tasks: Ints
    gpu_index: Ints
    indexed: Bools


def plan_from_tables(problem: JobPlacement, tables: Tables) -> Plan:
    """The plan that the tables state. Raises PlanError for a server in another cluster than stated."""
    faults: list[Fault] = []
    starts, moves = (_rows(problem, tables, table, faults) for table in ("assignments", "moves"))
    if faults:
        raise PlanError(faults)
    preempt = np.zeros(len(problem.running), np.bool_)
    preempt[tables.get("preemptions", "job")] = True
    return Plan(*starts, preempt, *moves)


def _rows(problem: JobPlacement, tables: Tables, table: str, faults: list[Fault]) -> _Rows:
    """Rows of a plan's table with its servers; faults where the cluster is not that of the server."""
    cluster, server = tables.get(table, "cluster"), tables.get(table, "server")
    true = problem.server_cluster[server]
    faults += [
        Fault(
            table,
            f"{problem.clusters.labels[true[row]]}, the cluster of {problem.servers.labels[server[row]]}",
            row + 1,
            "cluster",
            problem.clusters.labels[cluster[row]],
        )
        for row in np.flatnonzero(true != cluster).tolist()
    ]
    indexed = tables.has(table, "gpu_index")
    index = np.where(indexed, tables.get(table, "gpu_index"), 0)
    job: Ints = tables.get(table, "job")
    if table == "assignments":
        job = _jobs(problem, tables, faults)
    order = np.lexsort((index, server, job))
    return _Rows(job[order], server[order], tables.get(table, "tasks")[order], index[order], indexed[order])


def _jobs(problem: JobPlacement, tables: Tables, faults: list[Fault]) -> Ints:
    """The row of ``problem.jobs`` of each assignment, by its job and part."""
    whole, job, named = WholeJobs(problem), tables.get("assignments", "job"), tables.has("assignments", "part")
    part = tables.get("assignments", "part")
    row = whole.row_of(job, np.where(named, part, -1))
    for at in np.flatnonzero(row < 0).tolist():
        known = [whole.part_names[whole.part[one]] for one in np.flatnonzero((whole.of == job[at]) & whole.has_parts)]
        name = whole.labels[job[at]]
        words = f"a part of {name}: {', '.join(known)}" if known else f"nothing, since {name} has no parts"
        faults.append(Fault("assignments", words, at + 1, "part", whole.part_names[part[at]] if named[at] else ""))
    return row


def plan_to_tables(problem: JobPlacement, plan: Plan) -> Tables:
    """The tables that ``plan_from_tables`` turns into this plan; without ``moves`` where nothing moves."""
    starts = _Rows(plan.job, plan.server, plan.tasks, plan.gpu_index, plan.indexed)
    moves = _Rows(plan.moved, plan.moved_server, plan.moved_tasks, plan.moved_gpu_index, plan.moved_indexed)
    values = {
        name: {
            "job": rows.job,
            "cluster": problem.server_cluster[rows.server],
            "server": rows.server,
            "tasks": rows.tasks,
            "gpu_index": rows.gpu_index,
        }
        for name, rows in (("assignments", starts), ("moves", moves))
    }
    whole = WholeJobs(problem)
    values["assignments"] |= {"job": whole.of[plan.job], "part": whole.part[plan.job]}
    values["preemptions"] = {"job": np.flatnonzero(plan.preempt)}
    indexed = {"gpu_index": plan.indexed, "part": whole.has_parts[plan.job]}
    present = {"assignments": indexed, "moves": {"gpu_index": plan.moved_indexed}}
    return Tables(axes_of(problem), values, present, frozenset() if len(plan.moved) else frozenset({"moves"}))
