"""Slurm's accounting as a trace of jobs: each partition a region with the nodes of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import SourceError, UsageError
from mast_opt.core.units import MILLI
from mast_opt.importers.base import Importer, Input, setting
from mast_opt.importers.traces.csv_table import content_of
from mast_opt.io.faults import Faults
from mast_opt.job_placement.units import MOST_GPUS, MOST_TASKS
from mast_opt.simulation.traces.schema import KIND, MOST_S
from mast_opt.simulation.traces.slurm import nodes as sinfo
from mast_opt.simulation.traces.slurm.nodes import Node, nodes_in
from mast_opt.simulation.traces.slurm.records import SacctJob
from mast_opt.simulation.traces.slurm.sacct_json import jobs_in_json
from mast_opt.simulation.traces.slurm.sacct_text import FORMAT, jobs_in_text
from mast_opt.simulation.traces.tables import Given, TraceTables, trace_tables

NEEDS = ("all", "gpus")
TENANTS = ("account", "user")
TIER = 1
"""Of jobs whose quality of service has no tier of its own."""


@dataclass(frozen=True)
class SacctSettings:
    """The knobs of the importer."""

    needs: str = setting("all", "all: GPUs, cores and memory; gpus: GPUs only, for policies that look at nothing else")
    cpu_jobs: int = setting(0, "1: jobs without GPUs too")
    tenant: str = setting("account", "who a job counts to: account or user")
    tiers: str = setting("", f"tier by quality of service, as in high=0,scavenger=2; {TIER} for the others")
    name: str = setting("slurm", "of the trace")

    def __post_init__(self) -> None:
        for name, known in (("needs", NEEDS), ("tenant", TENANTS), ("cpu_jobs", (0, 1))):
            if getattr(self, name) not in known:
                expected = " or ".join(map(str, known))
                raise UsageError(f"setting {name} is {getattr(self, name)!r}; expected {expected}")
        if self.needs == "gpus" and self.cpu_jobs:
            raise UsageError("settings needs is gpus and cpu_jobs 1; expected only one of them: such jobs need nothing")
        _tiers(self.tiers)


def _tiers(text: str) -> dict[str, int]:
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
    jobs, nodes, regions = _read(paths, faults)
    if faults:
        raise SourceError(faults.found)
    kept = [job for job in jobs if job.allocated and job.ended and (settings.cpu_jobs or job.gpus)]
    _check(paths[0].name, jobs, kept, regions, faults)
    if faults:
        raise SourceError(faults.found)
    submissions, types = _jobs(kept, regions, settings)
    tables = {**_servers(nodes, settings), "submissions": submissions}
    if types["job"]:
        tables["job_gpu_types"] = types
    left = {
        "never ran": sum(not job.allocated for job in jobs),
        "had not ended": sum(bool(job.allocated) and not job.ended for job in jobs),
    }
    left["had no GPU"] = len(jobs) - len(kept) - sum(left.values())
    words = ", ".join(f"{count} that {why}" for why, count in left.items() if count)
    provenance = f"Slurm's accounting ({paths[0].name}): {len(kept)} jobs" + (f"; left out: {words}" if words else "")
    return trace_tables(settings.name, provenance, tables)


def _read(paths: Sequence[Path], faults: Faults) -> tuple[list[SacctJob], list[Node], dict[str, str]]:
    accounting, servers = (content_of(path, faults) for path in paths)
    if accounting is None or servers is None:
        return [], [], {}
    read = jobs_in_json if accounting.lstrip()[:1] == b"{" else jobs_in_text
    jobs = read(accounting, paths[0].name, faults)
    return jobs, *nodes_in(servers, paths[1].name, faults)


def _check(
    file: str, jobs: Sequence[SacctJob], kept: Sequence[SacctJob], regions: Mapping[str, str], faults: Faults
) -> None:
    names = [job.name for job in jobs]
    if len(set(names)) < len(names):
        faults.add(file, "each job once; leave out --duplicates", column="JobID")
    if not kept:
        faults.add(file, "at least one job that held GPUs and ended; cpu_jobs=1 takes those without GPUs too")
        return
    first = min(job.submitted_s for job in kept)

    def wrong(column: str, bad: Sequence[SacctJob], values: Sequence[object], expected: str) -> None:
        rows = np.array([job.row for job in bad], np.int64)
        faults.cells(file, column, rows, lambda n: values[n], expected)

    far = [job for job in kept if job.partition not in regions]
    wrong("Partition", far, [job.partition for job in far], "a partition that sinfo lists")
    long = [job for job in kept if job.elapsed_s > MOST_S or job.submitted_s - first > MOST_S]
    wrong("Elapsed", long, [job.elapsed_s for job in long], f"times of at most {MOST_S:,} seconds")
    large = [job for job in kept if _tasks(job) > MOST_TASKS or _per_task(job, job.gpus) > MOST_GPUS]
    wrong("NNodes", large, [job.nodes for job in large], f"at most {MOST_TASKS:,} tasks of {MOST_GPUS:,} GPUs")


def _tasks(job: SacctJob) -> int:
    """One for each node; where its GPUs cannot be spread evenly, one for each GPU."""
    nodes = max(job.nodes, 1)
    return job.gpus if job.gpus % nodes else nodes


def _per_task(job: SacctJob, amount: int) -> int:
    return -(-amount // _tasks(job))


def _jobs(
    jobs: Sequence[SacctJob], regions: Mapping[str, str], settings: SacctSettings
) -> tuple[dict[str, Given], dict[str, list[str]]]:
    first = min(job.submitted_s for job in jobs)
    tiers, whole = _tiers(settings.tiers), settings.needs == "all"

    def numbers(values: Sequence[int], scale: int = 1) -> NDArray[np.int64]:
        return np.array(values, np.int64) * scale

    columns: dict[str, Given] = {
        "job": [job.name for job in jobs],
        "submitted_s": numbers([job.submitted_s - first for job in jobs], MILLI),
        "tier": numbers([tiers.get(job.qos, TIER) for job in jobs]),
        "tasks": numbers([_tasks(job) for job in jobs]),
        "gpus": numbers([_per_task(job, job.gpus) for job in jobs], MILLI),
        "cpu_cores": numbers([_per_task(job, job.allocated.get("cpu", 0)) * whole for job in jobs], MILLI),
        "memory_gb": numbers([_per_task(job, job.allocated.get("mem", 0)) * whole for job in jobs]),
        "duration_s": numbers([max(job.elapsed_s, 1) for job in jobs], MILLI),
        "tenant": [getattr(job, settings.tenant) for job in jobs],
        "home_region": [regions[job.partition] for job in jobs],
    }
    asked = [(job.name, kind) for job in jobs for kind in job.gpu_types if job.gpus]
    return columns, {"job": [name for name, _ in asked], "gpu_type": [kind for _, kind in asked]}


def _servers(nodes: Sequence[Node], settings: SacctSettings) -> dict[str, Mapping[str, Given]]:
    """Nodes without GPUs are left out where nothing could run there."""
    kept = [node for node in nodes if node.gpus or settings.cpu_jobs]
    regions = list(dict.fromkeys(node.partition for node in nodes))
    return {
        "regions": {"region": regions},
        "clusters": {"cluster": regions, "region": regions},
        "servers": {
            "server": [node.name for node in kept],
            "cluster": [node.partition for node in kept],
            "rack": ["rack"] * len(kept),
            "gpu_type": [node.gpu_type or ("gpu" if node.gpus else "") for node in kept],
            "gpus": np.array([node.gpus for node in kept], np.int64) * MILLI,
            "cpu_cores": np.array([node.cores for node in kept], np.int64) * MILLI,
            "memory_gb": np.array([node.memory_mib for node in kept], np.int64),
        },
    }


SACCT = Importer(
    kind=KIND,
    help="a trace of jobs from Slurm's accounting, each partition a region of its own",
    inputs=(
        Input("jobs", f"what sacct --json prints, or sacct --allusers --parsable2 --format={FORMAT}"),
        Input("nodes", f"what sinfo --Node --format='{sinfo.FORMAT}' prints"),
    ),
    settings_type=SacctSettings,
    build=sacct,
)
