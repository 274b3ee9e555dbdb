"""Slurm's accounting as a trace of jobs: each partition a region with the nodes of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import SourceError, UsageError
from mast_opt.core.units import MILLI
from mast_opt.live.simulation.traces.schema import KIND, MOST_S
from mast_opt.live.simulation.traces.slurm import nodes as sinfo
from mast_opt.live.simulation.traces.slurm.jobs import SacctJob, jobs_of, warn_of_sizes
from mast_opt.live.simulation.traces.slurm.nodes import Node, nodes_in
from mast_opt.live.simulation.traces.slurm.records import gpu_types_in, gpus_in
from mast_opt.live.simulation.traces.slurm.sacct_json import rows_in_json
from mast_opt.live.simulation.traces.slurm.sacct_text import FORMAT, rows_in_text
from mast_opt.live.simulation.traces.tables import Given, TraceTables, places, trace_tables
from mast_opt.planner.importers.base import Importer, Input, setting
from mast_opt.planner.importers.traces.csv_table import content_of
from mast_opt.planner.io.faults import Faults
from mast_opt.problems.job_placement.units import MOST_GPUS, MOST_TASKS

NEEDS = ("all", "gpus", "asked", "asked-gpus")
TENANTS = ("account", "user")
TIER = 1
"""Tier of jobs whose quality of service has no tier of its own."""


@dataclass(frozen=True)
class SacctSettings:
    """The knobs of the importer."""

    needs: str = setting(
        "all",
        "all: the GPUs, cores and memory that jobs held; gpus: the GPUs only, for policies that look at nothing else;"
        " asked, asked-gpus: what they asked for, which is less with --exclusive",
    )
    cpu_jobs: int = setting(0, "1: jobs without GPUs too")
    tenant: str = setting("account", "who a job counts to: account or user")
    tiers: str = setting("", f"tier by quality of service, as in high=0,scavenger=2; {TIER} for the others")
    name: str = setting("slurm", "of the trace")

    def __post_init__(self) -> None:
        for name, known in (("needs", NEEDS), ("tenant", TENANTS), ("cpu_jobs", (0, 1))):
            if getattr(self, name) not in known:
                expected = " or ".join(map(str, known))
                raise UsageError(f"setting {name} is {getattr(self, name)!r}; expected {expected}")
        if self.needs.endswith("gpus") and self.cpu_jobs:
            raise UsageError(
                f"settings needs is {self.needs} and cpu_jobs 1; expected only one of them: such jobs need nothing"
            )
        _tiers(self.tiers)


def _tiers(text: str) -> dict[str, int]:
    """QOS of Slurm → tier, from the setting ``tiers``. Raises UsageError."""
    found: dict[str, int] = {}
    for part in text.split(",") if text else []:
        name, _, number = part.partition("=")
        if not name or name in found or not (number.isascii() and number.isdigit() and len(number) <= 3):
            raise UsageError(f"setting tiers is {text!r}; expected each name once with a tier: high=0,scavenger=2")
        found[name] = int(number)
    return found


def sacct(paths: Sequence[Path], settings: SacctSettings, rng: np.random.Generator) -> TraceTables:
    """The trace from what ``sacct`` and ``sinfo`` print. Nothing is drawn. Raises SourceError.

    Jobs that never ran or have not ended are left out, since nobody knows how long they run.
    """
    faults = Faults()
    jobs, nodes, regions, limits = _read(paths, faults)
    if faults:
        raise SourceError(faults.found)
    asked = settings.needs.startswith("asked")
    kept = [job for job in jobs if job.ran and (settings.cpu_jobs or gpus_in(job.needs(asked=asked)))]
    _check(paths[0].name, kept, regions, faults, asked=asked)
    if faults:
        raise SourceError(faults.found)
    warn_of_sizes(kept, paths[0].name, asked=asked)
    submissions, types = _jobs(kept, regions, limits, settings)
    tables = {**_servers(nodes, settings), "submissions": submissions}
    if types["job"]:
        tables["job_gpu_types"] = types
    left = {
        "never ran": sum(not any(row.allocated for row in job.rows) for job in jobs),
        "had not ended": sum(any(row.allocated for row in job.rows) and not job.ran for job in jobs),
    }
    left["had no GPU"] = len(jobs) - len(kept) - sum(left.values())
    words = ", ".join(f"{count} that {why}" for why, count in left.items() if count)
    provenance = f"Slurm's accounting ({paths[0].name}): {len(kept)} jobs" + (f"; left out: {words}" if words else "")
    return trace_tables(settings.name, provenance, tables)


def _read(paths: Sequence[Path], faults: Faults) -> tuple[list[SacctJob], list[Node], dict[str, str], dict[str, int]]:
    accounting, servers = (content_of(path, faults) for path in paths)
    if accounting is None or servers is None:
        return [], [], {}, {}
    read = rows_in_json if accounting.lstrip()[:1] == b"{" else rows_in_text
    rows = read(accounting, paths[0].name, faults)
    jobs = [] if faults else jobs_of(rows, paths[0].name, faults)
    return jobs, *nodes_in(servers, paths[1].name, faults)


def _check(file: str, kept: Sequence[SacctJob], regions: Mapping[str, str], faults: Faults, *, asked: bool) -> None:
    """Note faults of Slurm's jobs: unlisted partitions, and times or sizes beyond what a trace can state."""
    if not kept:
        faults.add(file, "at least one job with GPUs that ended; cpu_jobs=1 takes those without GPUs too")
        return
    first = min(job.submitted_s for job in kept)

    def wrong(column: str, bad: Sequence[SacctJob], values: Sequence[object], expected: str) -> None:
        rows = np.array([job.first.row for job in bad], np.int64)
        faults.cells(file, column, rows, lambda n: values[n], expected)

    far = [job for job in kept if job.first.partition not in regions]
    wrong("Partition", far, [job.first.partition for job in far], "a partition that sinfo lists")
    long = [job for job in kept if job.submitted_s - first > MOST_S or job.duration_ms(asked=asked) > MOST_S * MILLI]
    wrong("Elapsed", long, [job.first.elapsed_s for job in long], f"times of at most {MOST_S:,} seconds")
    if asked:
        nothing = [job for job in kept if not job.first.requested]
        wrong("ReqTRES", nothing, [""] * len(nothing), "what the job asked for, as needs=asked takes that")
    shapes = [_shape(job, asked=asked) for job in kept]
    large = [job for job, shape in zip(kept, shapes) if shape.tasks > MOST_TASKS or shape.gpus > MOST_GPUS]
    wrong("NNodes", large, [job.first.nodes for job in large], f"at most {MOST_TASKS:,} tasks of {MOST_GPUS:,} GPUs")


@dataclass(frozen=True, slots=True)
class _Shape:
    """The equal tasks of a job; amounts are of one."""

    tasks: int
    gpus: int
    cores: int
    memory_mib: int


def _shape(job: SacctJob, *, asked: bool) -> _Shape:
    """Tasks of a Slurm job: one for each node that it held; a task for each GPU where they are of several types or
    cannot be spread evenly. Where it held more GPUs than it asked for, what it asked for is on as many nodes as it
    asked for.
    """
    needs, first = job.needs(asked=asked), job.first
    gpus, nodes = gpus_in(needs), max(first.nodes, 1)
    if gpus != gpus_in(first.allocated):
        nodes = max(needs.get("node", nodes), 1)
    single = gpus % nodes or len(gpu_types_in(first.requested)) > 1
    tasks = gpus if gpus and single else nodes
    return _Shape(tasks, *(-(-amount // tasks) for amount in (gpus, needs.get("cpu", 0), needs.get("mem", 0))))


def _jobs(
    jobs: Sequence[SacctJob], regions: Mapping[str, str], limits: Mapping[str, int], settings: SacctSettings
) -> tuple[dict[str, Given], dict[str, list[str]]]:
    """Table of submissions, and that of the GPU types which jobs name, from Slurm's accounting."""
    first = min(job.submitted_s for job in jobs)
    tiers, whole = _tiers(settings.tiers), not settings.needs.endswith("gpus")
    asked = settings.needs.startswith("asked")
    shapes = [_shape(job, asked=asked) for job in jobs]

    def numbers(values: Sequence[int], scale: int = 1) -> NDArray[np.int64]:
        return np.array(values, np.int64) * scale

    columns: dict[str, Given] = {
        "job": [job.name for job in jobs],
        "submitted_s": numbers([job.submitted_s - first for job in jobs], MILLI),
        "tier": numbers([tiers.get(job.first.qos, TIER) for job in jobs]),
        "tasks": numbers([shape.tasks for shape in shapes]),
        "gpus": numbers([shape.gpus for shape in shapes], MILLI),
        "cpu_cores": numbers([shape.cores * whole for shape in shapes], MILLI),
        "memory_gb": numbers([shape.memory_mib * whole for shape in shapes]),
        "duration_s": numbers([job.duration_ms(asked=asked) for job in jobs]),
        "limit_s": numbers([job.limit_ms(limits, asked=asked) for job in jobs]),
        "tenant": [getattr(job.first, settings.tenant) for job in jobs],
        "home_region": [regions[job.first.partition] for job in jobs],
    }
    types = [
        (job.name, kind) for job, shape in zip(jobs, shapes) if shape.gpus for kind in gpu_types_in(job.first.requested)
    ]
    return columns, {"job": [name for name, _ in types], "gpu_type": [kind for _, kind in types]}


def _servers(nodes: Sequence[Node], settings: SacctSettings) -> dict[str, Mapping[str, Given]]:
    """Tables of Slurm's nodes as servers; those without GPUs are left out where nothing could run there."""
    kept = [node for node in nodes if node.gpus or settings.cpu_jobs]
    regions = list(dict.fromkeys(node.partition for node in nodes))
    return places(
        regions,
        [node.name for node in kept],
        [node.partition for node in kept],
        np.array([node.gpus for node in kept], np.int64),
        gpu_type=[node.gpu_type for node in kept],
        cpu_mcores=np.array([node.cores_m for node in kept], np.int64),
        memory_mib=np.array([node.memory_mib for node in kept], np.int64),
    )


SACCT = Importer(
    kind=KIND,
    help="a trace of jobs from Slurm's accounting, each partition a region of its own",
    inputs=(
        Input("jobs", f"what sacct --json prints, or sacct --allusers --parsable2 --format={FORMAT}"),
        Input(
            "nodes",
            f"what scontrol show nodes --json prints, or sinfo --Node --format='{sinfo.FORMAT}' (no states there)",
        ),
    ),
    settings_type=SacctSettings,
    build=sacct,
)
