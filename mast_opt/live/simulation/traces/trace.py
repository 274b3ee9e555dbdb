"""A trace of submitted jobs, and the servers that they may run on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from mast_opt.core.errors import Fault, InstanceError
from mast_opt.core.quota_tree import Quota
from mast_opt.core.quotas import Quotas
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.speeds import Speeds
from mast_opt.live.simulation.traces.models import check_models, durations_of, speeds_of, types_of
from mast_opt.live.simulation.traces.schema import KIND, OF_A_GANG, SCHEMA, SUBMISSIONS
from mast_opt.live.simulation.traces.surroundings import Surroundings, check_surroundings, surroundings_of
from mast_opt.live.simulation.traces.tables import texts_of
from mast_opt.planner.io.faults import Faults
from mast_opt.planner.io.plain_tables import read_tables, write_folder
from mast_opt.problems.job_placement.live_fleet.types import Part, Server
from mast_opt.problems.job_placement.tables.consistency import quota_faults, unstated
from mast_opt.problems.job_placement.units import (
    CLUSTER,
    LARGEST,
    LEVELS,
    MOST_GPUS,
    MOST_TASKS,
    NO_GPU,
    WHOLE,
    WHOLE_JOB_LEVELS,
    Bools,
    Ints,
)
from mast_opt.problems.kind.schema import Tables

_NUMBERS = ("tier", "tasks", "mgpu", "cpu_mcores", "memory_mib", "checkpoint_ms", "restart_ms")
_OPTIONAL = ("duration_ms", "limit_ms", "min_tasks", "max_tasks")
_TEXTS = ("tenant", "workload", "namespace", "home_region")
_STATED_BY_PARTS = ("tasks", "gpus", "cpu_cores", "memory_gb", "min_tasks", "max_tasks", "model", "steps")
_OF_PARTS = {"tasks": 1, "gpus": WHOLE}
"""Values of a job with parts in the columns of jobs that they state."""
_NO_PARTS = "an empty cell: the parts of the job say that, and they have no model and are not resized"
_WORKED_OUT = ("job", "duration_s", "steps", "preemptible", "model")
"""Columns of submissions that are not taken over as they are."""


@dataclass(frozen=True, eq=False)
class Submissions:
    """Columns of the submitted jobs, in the order of their submission. Needs are those of one task."""

    labels: tuple[str, ...]
    submitted_ms: Ints
    duration_ms: Ints
    """-1 where nobody knows."""
    limit_ms: Ints
    """-1 where there is none."""
    tier: Ints
    tasks: Ints
    mgpu: Ints
    cpu_mcores: Ints
    memory_mib: Ints
    within: Ints
    """Position in ``WHOLE_JOB_LEVELS``."""
    prefer: Ints
    preemptible: Bools
    checkpoint_ms: Ints
    restart_ms: Ints
    min_tasks: Ints
    """-1 where the job may not be resized."""
    max_tasks: Ints
    tenant: tuple[str, ...]
    """Empty where there is none."""
    workload: tuple[str, ...]
    namespace: tuple[str, ...]
    home_region: tuple[str, ...]
    gpu_types: Mapping[int, Mapping[str, int]]
    """Job → GPU types that it accepts, and milli-GPUs of a task on each; jobs that take any type are not there."""
    datasets: Mapping[int, tuple[str, ...]]
    """Job → what it reads; jobs that read nothing are not there."""
    model: tuple[str, ...] = ()
    """Empty where there is none, and altogether where no job has one."""
    parts: Mapping[int, tuple[Part, ...]] = field(default_factory=dict)
    """Job → its parts; jobs of one gang are not there. A job with parts has one task and GPU in the columns above."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def gang_mgpu(self) -> Ints:
        """[J] milli-GPUs of all tasks of a submitted job."""
        found: Ints = self.tasks * self.mgpu
        for j, parts in self.parts.items():
            found[j] = sum(part.tasks * part.mgpu for part in parts)
        return found

    @property
    def elastic(self) -> bool:
        """Whether a submitted job states other sizes than its own."""
        return bool((self.min_tasks >= 0).any() or (self.max_tasks >= 0).any())

    def spec(self, j: int) -> JobSpec:
        """Specification of the trace's j-th job, as its event states it."""
        found: dict[str, Any] = {name: int(getattr(self, name)[j]) for name in (*_NUMBERS, *_OPTIONAL)}
        found |= {name: None for name in _OPTIONAL if found[name] < 0}
        found |= {name: getattr(self, name)[j] for name in _TEXTS}
        return JobSpec(
            **found,
            gpu_types=self.gpu_types.get(j),
            datasets=self.datasets.get(j, ()),
            within=WHOLE_JOB_LEVELS[self.within[j]],
            prefer=LEVELS[self.prefer[j]],
            preemptible=bool(self.preemptible[j]),
            model=self.model[j] if self.model else "",
            parts=self.parts.get(j, ()),
        )


@dataclass(frozen=True, eq=False)
class JobTrace:
    """Jobs with their times of submission, and the servers on which they run. It is no optimisation problem: nothing in
    it is decided."""

    name: str
    regions: tuple[str, ...]
    servers: tuple[Server, ...]
    submissions: Submissions
    replicas: Mapping[str, tuple[str, ...]]
    """Dataset → regions that hold it."""
    quotas: Quotas
    provenance: str = ""
    surroundings: Surroundings = field(default_factory=Surroundings)
    speeds: Speeds = field(default_factory=Speeds)

    def rate(self) -> Callable[[str, str, str, int], int]:
        """(job, server, job on the same GPUs or "", tasks) → millionths of its reference speed at which the trace's job
        runs there.
        """
        kinds = {server.name: server.gpu_type for server in self.servers}
        specs = {name: self.submissions.spec(j) for j, name in enumerate(self.submissions.labels)}
        return lambda job, server, other, tasks: self.speeds.rate(specs[job], kinds[server], specs.get(other), tasks)

    def readable_in(self, dataset: str) -> tuple[str, ...]:
        """Regions of a trace that hold a dataset when it appears, and where its residency allows jobs to read it."""
        held = self.replicas[dataset]
        return tuple(region for region in held if region in self.surroundings.residency.get(dataset, held))

    @cached_property
    def servers_of(self) -> Mapping[str, tuple[Server, ...]]:
        """Region of a trace → its servers."""
        found: dict[str, list[Server]] = {region: [] for region in self.regions}
        for server in self.servers:
            found[server.region].append(server)
        return {region: tuple(servers) for region, servers in found.items()}


def read_trace(path: str | PathLike[str]) -> JobTrace:
    """The trace in a folder, an .xlsx workbook or a .json file.

    Raises InstanceError, which lists everything that is wrong with the files.
    """
    return read_tables(path, KIND, SCHEMA, trace_from_tables)


def write_trace(
    path: str | PathLike[str], name: str, provenance: str, tables: Tables, *, format: str = "csv", force: bool = False
) -> None:
    """Write the tables of a trace to a new folder.

    Args:
        format: ``csv`` or ``parquet``.
        force: replace an instance that is there.

    Raises:
        InputError: it cannot be written, or something else is there.
    """
    write_folder(Path(path), KIND, name, provenance, SCHEMA, tables, format=format, force=force)


def _quotas(tables: Tables) -> Quotas:
    """Quotas of the tenants of a trace, and of their groups."""

    def limits(name: str) -> list[int | None]:
        values, stated = tables.get("quotas", name).tolist(), tables.has("quotas", name).tolist()
        return [value if has else None for value, has in zip(values, stated, strict=True)]

    axes = {"tenant": "tenant", "gpu_type": "gpu_type", "parent": "tenant"}
    tenants, types, parents = (texts_of(tables, "quotas", name, axis) for name, axis in axes.items())
    amounts = map(Quota, tables.get("quotas", "gpus").tolist(), limits("borrowing_limit"), limits("lending_limit"))
    return Quotas.of(zip(tenants, (kind or None for kind in types), amounts, parents, strict=True))


def trace_from_tables(name: str, provenance: str, tables: Tables) -> JobTrace:
    """The trace that checked tables hold; jobs that were submitted at the same time keep the order of their rows.

    Raises InstanceError, which lists what does not fit together.
    """
    faults = Faults()
    _check(tables, faults)
    if faults:
        raise InstanceError(faults.found)
    replicas: dict[str, list[str]] = {}
    for dataset, region in _pairs(tables, "replicas", "dataset", "region"):
        replicas.setdefault(dataset, []).append(region)
    speeds = speeds_of(tables)
    return JobTrace(
        name=name,
        regions=tables.axes["region"],
        servers=_servers(tables),
        submissions=_submissions(tables, speeds),
        replicas={dataset: tuple(regions) for dataset, regions in replicas.items()},
        quotas=_quotas(tables),
        provenance=provenance,
        surroundings=surroundings_of(tables),
        speeds=speeds,
    )


def _check(tables: Tables, faults: Faults) -> None:
    """Note faults of a trace's tables: GPUs, tasks, models of jobs, and surroundings."""

    def wrong(table: str, column: str, mask: Bools, expected: str) -> None:
        rows, values = np.flatnonzero(mask), tables.get(table, column)
        faults.cells(table, column, rows + 1, lambda n: int(values[rows[n]]), expected)

    supply = tables.get("servers", "gpus")
    wrong("servers", "gpus", (supply % WHOLE != 0) | (supply > MOST_GPUS * WHOLE), f"whole GPUs, at most {MOST_GPUS:,}")
    _check_parts(tables, faults)
    for table in ("submissions", "job_gpu_types", "job_parts"):
        mgpu = tables.get(table, "gpus")
        wrong(table, "gpus", (mgpu > WHOLE) & (mgpu % WHOLE != 0), "whole GPUs, or less than one (in thousandths)")
    tasks = tables.get("submissions", "tasks")
    for table in ("submissions", "job_parts"):
        most = LARGEST // np.maximum(1, tables.get(table, "tasks"))
        for column in ("gpus", "cpu_cores", "memory_gb"):
            wrong(table, column, tables.get(table, column) > most, f"at most {LARGEST} base units in all tasks")
    wrong("job_parts", "tasks", tables.get("job_parts", "tasks") > MOST_TASKS, f"at most {MOST_TASKS:,} tasks")
    for column, sign in (("min_tasks", 1), ("max_tasks", -1)):
        beyond = tables.has("submissions", column) & (sign * (tables.get("submissions", column) - tasks) > 0)
        wrong("submissions", column, beyond, f"{'no more' if sign > 0 else 'no fewer'} than tasks")
    check_models(tables, faults)
    if "server" not in tables.axes or not tables.axes["server"]:
        faults.found.append(Fault("servers", "at least one server"))
    check_surroundings(tables, faults)
    faults.found += quota_faults(tables)


def _check_parts(tables: Tables, faults: Faults) -> None:
    """Note jobs of a trace that neither state their tasks nor have parts, or do both, and unknown parts."""
    alone = np.ones(tables.rows("submissions"), np.bool_)
    alone[tables.get("job_parts", "job")] = False
    faults.found += unstated(tables, SUBMISSIONS, OF_A_GANG, alone)
    for name in _STATED_BY_PARTS:
        default = SUBMISSIONS.column(name).default
        unlike = tables.get("submissions", name) != (-1 if default is None else default)
        says = unlike & tables.has("submissions", name)
        faults.cells("submissions", name, np.flatnonzero(~alone & says) + 1, lambda _: "", _NO_PARTS)
    known = set(zip(tables.get("job_parts", "job").tolist(), texts_of(tables, "job_parts", "part", "part")))
    named = zip(tables.get("job_gpu_types", "job").tolist(), texts_of(tables, "job_gpu_types", "part", "part"))
    for row, (job, part) in enumerate(named):
        if (part or not alone[job]) and (job, part) not in known:
            words = f"a part of {tables.axes['job'][job]}, or nothing if it has none"
            faults.found.append(Fault("job_gpu_types", words, row + 1, "part", part))


def _pairs(tables: Tables, table: str, one: str, other: str) -> list[tuple[str, str]]:
    """Pairs of labels in two columns of a trace's table."""
    return list(zip(texts_of(tables, table, one, one), texts_of(tables, table, other, other), strict=True))


def _servers(tables: Tables) -> tuple[Server, ...]:
    """Servers of a trace from checked tables."""
    clusters, regions = tables.axes["cluster"], tables.axes["region"]
    region = tables.get("clusters", "region")
    racks, types = texts_of(tables, "servers", "rack", "rack"), texts_of(tables, "servers", "gpu_type", "gpu_type")
    columns = [tables.get("servers", name).tolist() for name in ("cluster", "gpus", "cpu_cores", "memory_gb")]
    return tuple(
        Server(
            name=tables.axes["server"][row],
            region=regions[region[cluster]],
            cluster=clusters[cluster],
            rack=f"{clusters[cluster]}/{racks[row]}",
            gpu_type=types[row] or NO_GPU,
            gpus=mgpu // WHOLE,
            cpu_mcores=cores,
            memory_mib=memory,
        )
        for row, (cluster, mgpu, cores, memory) in enumerate(zip(*columns, strict=True))
    )


def _submissions(tables: Tables, speeds: Speeds) -> Submissions:
    """Submissions of a trace from checked tables, by time."""
    table = "submissions"
    order = np.argsort(tables.get(table, "submitted_s"), kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))

    def column(name: str) -> Ints:
        """Its cells; the default, or -1 if there is none, where they are absent."""
        default = _OF_PARTS.get(name, SUBMISSIONS.column(name).default)
        values = np.where(tables.has(table, name), tables.get(table, name), -1 if default is None else default)[order]
        values.setflags(write=False)
        return values

    def texts(name: str, axis: str) -> tuple[str, ...]:
        found = texts_of(tables, table, name, axis)
        return tuple(found[row] for row in order)

    stated, tier = tables.has(table, "preemptible"), tables.get(table, "tier")
    types = _types(tables)
    read: dict[int, list[str]] = {}
    for job, name in zip(
        tables.get("job_datasets", "job").tolist(), texts_of(tables, "job_datasets", "dataset", "dataset")
    ):
        read.setdefault(int(place[job]), []).append(name)
    models = texts("model", "model")
    as_stated = (one for one in SUBMISSIONS.columns if one.name not in _WORKED_OUT)
    found: dict[str, Any] = {
        one.attribute: column(one.name) if one.axis is None else texts(one.name, one.axis) for one in as_stated
    }
    return Submissions(
        labels=texts("job", "job"),
        duration_ms=durations_of(models, found["tasks"], column("steps"), column("duration_s"), speeds),
        preemptible=np.where(stated, tables.get(table, "preemptible"), tier > 0)[order],
        gpu_types=types_of(
            models,
            found["tasks"],
            found["mgpu"],
            {int(place[job]): needs for (job, part), needs in types.items() if not part},
            speeds,
        ),
        parts=_parts(tables, types, place),
        datasets={job: tuple(names) for job, names in read.items()},
        model=models if any(models) else (),
        **found,
    )


def _types(tables: Tables) -> dict[tuple[int, str], dict[str, int]]:
    """(row of a trace's job, part or nothing) → the GPU types that it accepts, and milli-GPUs of a task on each."""
    jobs, parts = tables.get("job_parts", "job").tolist(), texts_of(tables, "job_parts", "part", "part")
    asked = dict(zip(zip(jobs, parts), tables.get("job_parts", "gpus").tolist()))
    asked |= {(job, ""): mgpu for job, mgpu in enumerate(tables.get("submissions", "gpus").tolist())}
    found: dict[tuple[int, str], dict[str, int]] = {}
    jobs, parts = tables.get("job_gpu_types", "job").tolist(), texts_of(tables, "job_gpu_types", "part", "part")
    stated, own = tables.has("job_gpu_types", "gpus").tolist(), tables.get("job_gpu_types", "gpus").tolist()
    names = texts_of(tables, "job_gpu_types", "gpu_type", "gpu_type")
    for of, name, has, mgpu in zip(zip(jobs, parts), names, stated, own):
        found.setdefault(of, {})[name] = mgpu if has else asked[of]
    return found


def _parts(
    tables: Tables, types: Mapping[tuple[int, str], Mapping[str, int]], place: Ints
) -> dict[int, tuple[Part, ...]]:
    """Job → its parts, in the order of their rows in a trace."""
    found: dict[int, tuple[Part, ...]] = {}
    columns = (tables.get("job_parts", name).tolist() for name in ("tasks", "gpus", "cpu_cores", "memory_gb"))
    within = np.where(tables.has("job_parts", "within"), tables.get("job_parts", "within"), CLUSTER).tolist()
    jobs, labels = tables.get("job_parts", "job").tolist(), texts_of(tables, "job_parts", "part", "part")
    for job, label, level, (tasks, mgpu, cores, memory) in zip(jobs, labels, within, zip(*columns)):
        j = int(place[job])
        part = Part(label, tasks, mgpu, cores, memory, types.get((job, label)), LEVELS[level])
        found[j] = (*found.get(j, ()), part)
    return found
