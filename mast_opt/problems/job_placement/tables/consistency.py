"""Consistency checks of job-placement instances: faults that no table shows alone."""

from collections.abc import Iterable, Iterator

import numpy as np

from mast_opt.core.errors import Fault
from mast_opt.core.wording import did_you_mean
from mast_opt.problems.job_placement.gpu_assignment import read_devices
from mast_opt.problems.job_placement.problem import ONE_GANG, one_gang
from mast_opt.problems.job_placement.tables.job_rows import JobRows
from mast_opt.problems.job_placement.tables.schema import SCHEMA
from mast_opt.problems.job_placement.units import CLUSTER, LARGEST, LEVELS, MOST_GPUS, MOST_TASKS, WHOLE, Bools, Ints
from mast_opt.problems.kind.schema import Table, Tables

_COLUMNS = {"gpus": (WHOLE, "GPUs"), "cpu_cores": (1000, "cores"), "memory_gb": (1024, "GiB")}
"""Base units per unit of the file, and the unit."""
_SHARE_OR_WHOLE = "a whole number of GPUs, or less than one"


def faults_of(tables: Tables) -> list[Fault]:
    """Every fault of a job-placement instance that its tables show together; empty for a sound one."""
    return [
        *_parts(tables),
        *_servers(tables),
        *_types(tables),
        *quota_faults(tables),
        *_shares(tables),
        *_sizes(tables),
        *_names(tables),
        *_movable(tables),
        *_over_committed(tables),
    ]


def _servers(tables: Tables) -> Iterator[Fault]:
    """Faults of servers: parts of GPUs, too many of them, or no GPU type."""
    mgpu = tables.get("servers", "gpus")
    for row in np.flatnonzero(mgpu % WHOLE != 0).tolist():
        yield Fault("servers", "a whole number of GPUs", row + 1, "gpus", f"{mgpu[row] / WHOLE:g}")
    for row in np.flatnonzero(mgpu > MOST_GPUS * WHOLE).tolist():
        yield Fault("servers", f"at most {MOST_GPUS} GPUs in one server", row + 1, "gpus", f"{mgpu[row] / WHOLE:g}")
    for row in np.flatnonzero((mgpu > 0) & ~tables.has("servers", "gpu_type")).tolist():
        yield Fault("servers", "the GPU type of a server with GPUs", row + 1, "gpu_type", "")


def _parts(tables: Tables) -> Iterator[Fault]:
    """Jobs that neither state their tasks nor have parts, and what names a part that is none."""
    jobs = tables.axes["job"]
    alone = np.ones(len(jobs), np.bool_)
    alone[tables.get("job_parts", "job")] = False
    yield from unstated(tables, SCHEMA.table("jobs"), ("tasks", *_COLUMNS), alone)
    rows = JobRows.of(tables)
    parts = tables.axes["part"]
    for row in np.flatnonzero(rows.named("job_gpu_types") < 0).tolist():
        job = int(tables.get("job_gpu_types", "job")[row])
        known = [parts[at] for at in tables.get("job_parts", "part")[tables.get("job_parts", "job") == job].tolist()]
        words = f"a part of {jobs[job]}: {', '.join(known)}" if known else f"nothing, since {jobs[job]} has no parts"
        named = tables.has("job_gpu_types", "part")[row]
        value = parts[int(tables.get("job_gpu_types", "part")[row])] if named else ""
        yield Fault("job_gpu_types", words, row + 1, "part", value)
    if tables.rows("job_parts"):
        first: dict[str, int] = {}
        for row, label in enumerate(rows.labels):
            if first.setdefault(label, row) != row:
                words = "a name that no part of another job has (a part is called job/part)"
                yield Fault("jobs", words, int(rows.job[row]) + 1, "job", label)


def unstated(tables: Tables, table: Table, columns: Iterable[str], alone: Bools) -> Iterator[Fault]:
    """Columns that jobs without parts (``alone``) do not state, and levels that only others may stay within."""
    for name in columns:
        column = table.column(name)
        lacking = np.flatnonzero(alone & ~tables.has(table.name, name)).tolist()
        if len(lacking) == len(alone):
            yield Fault(table.name, f"this column ({column.help})", None, name)
            continue
        for row in lacking:
            yield Fault(table.name, f"{column.type.value} ({column.help}), not an empty cell", row + 1, name)
    for row in np.flatnonzero(alone & (tables.get(table.name, "within") > CLUSTER)).tolist():
        words = f"one of: {', '.join(LEVELS)} (region is for jobs in job_parts)"
        yield Fault(table.name, words, row + 1, "within", "region")


def _types(tables: Tables) -> Iterator[Fault]:
    """Types that jobs or quotas name and no server has."""
    labels = tables.axes["gpu_type"]
    there = np.zeros(len(labels), np.bool_)
    there[tables.get("servers", "gpu_type")[tables.has("servers", "gpu_type")]] = True
    known = [label for label, have in zip(labels, there.tolist()) if have]
    for table in ("job_gpu_types", "quotas"):
        kind = tables.get(table, "gpu_type")
        unknown = tables.has(table, "gpu_type") & ~np.append(there, True)[kind]
        for row in np.flatnonzero(unknown).tolist():
            name = labels[int(kind[row])]
            words = f"a GPU type that servers have: {', '.join(known) or 'none'}{did_you_mean(name, known)}"
            yield Fault(table, words, row + 1, "gpu_type", name)


def quota_faults(tables: Tables) -> Iterator[Fault]:
    """Limits and groups of quotas that contradict one another."""
    names, of = tables.axes["tenant"], tables.get("quotas", "tenant").tolist()
    mgpu, lending = tables.get("quotas", "gpus"), tables.get("quotas", "lending_limit")
    for row in np.flatnonzero(tables.has("quotas", "lending_limit") & (lending > mgpu)).tolist():
        words = f"at most the {mgpu[row] / WHOLE:g} GPUs of the quota"
        yield Fault("quotas", words, row + 1, "lending_limit", f"{lending[row] / WHOLE:g}")
    parent, above = tables.get("quotas", "parent").tolist(), dict[int, int]()
    rows = np.flatnonzero(tables.has("quotas", "parent")).tolist()
    for row in rows:
        above.setdefault(of[row], parent[row])
    for row in rows:
        path, words = [of[row], parent[row]], ""
        if above[of[row]] != parent[row]:
            words = f"one group above {names[of[row]]}; another row has {names[above[of[row]]]}"
        elif parent[row] not in of:
            near = did_you_mean(names[parent[row]], [names[tenant] for tenant in of])
            words = f"a group with a quota of its own, if only of 0{near}"
        while path[-1] in above and path[-1] not in path[:-1]:
            path.append(above[path[-1]])
        if path[-1] in path[:-1]:
            words = f"no circle: {' below '.join(names[t] for t in path)}"
        if words:
            yield Fault("quotas", words, row + 1, "parent", names[parent[row]])


def _shares(tables: Tables) -> Iterator[Fault]:
    """Faults of jobs and allocations that ask for a part of a GPU beyond one."""
    for table in ("jobs", "job_parts", "job_gpu_types", "allocations"):
        mgpu = tables.get(table, "gpus")
        for row in np.flatnonzero((mgpu > WHOLE) & (mgpu % WHOLE != 0)).tolist():
            yield Fault(table, _SHARE_OR_WHOLE, row + 1, "gpus", f"{mgpu[row] / WHOLE:g}")


def _sizes(tables: Tables) -> Iterator[Fault]:
    """Needs, supplies and numbers of tasks too large for exact arithmetic."""
    for table in ("jobs", "job_parts", "allocations"):
        number = tables.get(table, "tasks")
        for row in np.flatnonzero(number > MOST_TASKS).tolist():
            yield Fault(table, f"at most {MOST_TASKS:,} tasks", row + 1, "tasks", str(number[row]))
    one = {"servers": np.ones(tables.rows("servers"), np.int64)}
    times = {name: tables.get(name, "tasks") for name in ("jobs", "job_parts", "allocations")} | one
    rows = JobRows.of(tables)
    times["job_gpu_types"] = rows.column("tasks")[rows.named("job_gpu_types")]
    for table, tasks in times.items():
        for column in _COLUMNS if table != "job_gpu_types" else ("gpus",):
            amount = tables.get(table, column)
            for row in np.flatnonzero(amount.astype(np.float64) * tasks > LARGEST).tolist():
                value = f"{tasks[row]} · {amount[row]}" if table != "servers" else str(amount[row])
                yield Fault(table, f"at most {LARGEST} base units in all", row + 1, column, value)


def _names(tables: Tables) -> Iterator[Fault]:
    """Faults of pending jobs whose name a running job has."""
    running = set(tables.axes["running"])
    for row, label in enumerate(tables.axes["job"]):
        if label in running:
            yield Fault("jobs", "a job that waits; this one runs already (table running)", row + 1, "job", label)


def _movable(tables: Tables) -> Iterator[Fault]:
    """Movable jobs that hold nothing, or unequal tasks, or tasks in several clusters or on several GPU types."""
    server = tables.get("allocations", "server")
    typed = tables.has("servers", "gpu_type")
    kind = np.where(typed, tables.get("servers", "gpu_type"), -1)[server]
    part = np.where(tables.has("allocations", "part"), tables.get("allocations", "part"), -1)
    rows = [
        *(tables.get("allocations", name) for name in _COLUMNS),
        tables.get("servers", "cluster")[server],
        kind,
        part,
    ]
    sound = one_gang(len(tables.axes["running"]), tables.get("allocations", "job"), np.stack(rows, axis=1))
    job = tables.get("movable", "job")
    for row in np.flatnonzero(~sound[job]).tolist():
        yield Fault("movable", ONE_GANG, row + 1, "job", tables.axes["running"][int(job[row])])


def _over_committed(tables: Tables) -> Iterator[Fault]:
    """Servers whose running jobs hold more than there is, in total or on single GPUs."""
    labels = tables.axes["server"]
    server, tasks = tables.get("allocations", "server"), tables.get("allocations", "tasks")
    short = np.zeros(len(labels), np.bool_)
    for column, (scale, unit) in _COLUMNS.items():
        used = np.zeros(len(labels), np.float64)
        np.add.at(used, server, tables.get("allocations", column).astype(np.float64) * tasks)
        supply = tables.get("servers", column)
        for s in np.flatnonzero(used > supply).tolist():
            short[s] = True
            message = f"at most the {supply[s] / scale:g} {unit} of {labels[s]} for all running jobs together"
            yield Fault("allocations", message, None, column, f"{used[s] / scale:g}")
    yield from _misfits(tables, short)


def _misfits(tables: Tables, short: Bools) -> Iterator[Fault]:
    """Faults of allocations whose GPUs no server has left."""
    labels = tables.axes["server"]
    need: Ints = np.stack([tables.get("allocations", name) for name in _COLUMNS], axis=1)
    server = tables.get("allocations", "server")
    index, indexed = tables.get("allocations", "gpu_index"), tables.has("allocations", "gpu_index")
    tasks = np.minimum(tables.get("allocations", "tasks"), MOST_GPUS * WHOLE)
    mgpu = np.minimum(tables.get("servers", "gpus"), MOST_GPUS * WHOLE)
    for row in read_devices(mgpu, server, tasks, need, index, indexed).misfits:
        name = labels[int(server[row])]
        if indexed[row]:
            gpus = f"GPUs from this one on that {name} has and no other job holds"
            yield Fault("allocations", gpus, row + 1, "gpu_index", str(index[row]))
        elif not short[server[row]]:
            gpus = f"GPUs of {name} with room for it next to the other jobs (state gpu_index where tasks share one)"
            yield Fault("allocations", gpus, row + 1, "gpus", f"{need[row, 0] / WHOLE:g}")
