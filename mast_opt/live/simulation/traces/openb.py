"""Alibaba's ``cluster-trace-gpu-v2023`` (OpenB) as a trace of jobs: every pod a job of one task, in one region."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mast_opt.core.errors import SourceError
from mast_opt.core.units import MILLI
from mast_opt.live.simulation.traces.schema import KIND
from mast_opt.live.simulation.traces.tables import Given, TraceTables, places, trace_tables
from mast_opt.planner.importers.base import Importer, Input, setting
from mast_opt.planner.importers.traces.alibaba import GpuNodes, GpuPods, pods_in, read_nodes
from mast_opt.planner.importers.traces.csv_table import find, read_table
from mast_opt.planner.io.faults import Faults
from mast_opt.problems.job_placement.units import Ints
from mast_opt.problems.kind.schema import integer, label

PODS = "openb_pod_list_default.csv"
REGION = "openb"
TIMES = (
    label("name", "pod", help="name of the pod"),
    integer("creation_time", help="second at which it was handed in"),
    integer("deletion_time", help="second at which it ended"),
    integer("scheduled_time", required=False, help="second at which it was placed; empty if it never was"),
)


@dataclass(frozen=True)
class OpenbSettings:
    """The knobs of the importer."""

    name: str = setting("openb", "of the trace")


def openb(paths: Sequence[Path], settings: OpenbSettings, rng: np.random.Generator) -> TraceTables:
    """The trace from a node list and a pod list with times. Nothing is drawn. Raises SourceError.

    Pods that were never placed are left out, since nobody knows how long they would have run.
    """
    faults = Faults()
    nodes = read_nodes(paths[0], faults)
    file = find(paths[1], PODS, faults) if paths[1].is_dir() else paths[1]
    pods = None if file is None else pods_in(file, faults)
    times = None if file is None else read_table(file, TIMES, faults)
    if nodes is None or pods is None or times is None or faults:
        raise SourceError(faults.found)
    created, ended, placed = (times.numbers[name] for name in ("creation_time", "deletion_time", "scheduled_time"))
    ran = times.filled["scheduled_time"]
    early = np.flatnonzero(ran & (ended < placed))
    faults.cells(
        times.file, "deletion_time", early + 1, lambda n: ended[early[n]], "no time before that of scheduled_time"
    )
    names = times.labels["name"].to_list()
    if len(set(names)) < len(names):
        faults.add(times.file, "each pod once", column="name")
    if not ran.any():
        faults.add(times.file, "at least one pod that was placed", column="scheduled_time")
    if faults:
        raise SourceError(faults.found)
    at = np.flatnonzero(ran)
    provenance = (
        f"Alibaba cluster-trace-gpu-v2023 (OpenB): {len(nodes.gpus)} nodes of {nodes.source}, {len(at)} pods of "
        f"{times.file} that ran from scheduled_time to deletion_time; {len(names) - len(at)} that were never placed "
        "are left out. Times are those since the first pod"
    )
    jobs = _jobs([names[n] for n in at.tolist()], pods.part(at), created[at] - created[at].min(), (ended - placed)[at])
    types = {
        "job": [names[n] for n in at.tolist() for _ in pods.models[n]],
        "gpu_type": [model for n in at.tolist() for model in pods.models[n]],
    }
    tables: dict[str, Mapping[str, Given]] = {**_servers(nodes), "submissions": jobs}
    if types["job"]:
        tables["job_gpu_types"] = types
    return trace_tables(settings.name, provenance, tables)


def _servers(nodes: GpuNodes) -> dict[str, Mapping[str, Given]]:
    """Tables of regions and servers from OpenB's nodes."""
    count = len(nodes.gpus)
    return places(
        [REGION],
        [f"node-{number}" for number in range(count)],
        [REGION] * count,
        nodes.gpus,
        gpu_type=nodes.model,
        cpu_mcores=nodes.cpu_mcores,
        memory_mib=nodes.memory_mib,
    )


def _jobs(names: list[str], pods: GpuPods, submitted_s: Ints, ran_s: Ints) -> Mapping[str, Given]:
    """Table of submissions from OpenB's pods."""
    return {
        "job": names,
        "submitted_s": submitted_s * MILLI,
        "tier": pods.tier,
        "tasks": np.ones(len(names), np.int64),
        "gpus": pods.mgpu,
        "cpu_cores": pods.cpu_mcores,
        "memory_gb": pods.memory_mib,
        "duration_s": np.maximum(ran_s, 1) * MILLI,
    }


OPENB = Importer(
    kind=KIND,
    help="a trace of jobs from Alibaba's cluster-trace-gpu-v2023 (OpenB): shares of GPUs, cores, memory, GPU models",
    inputs=(
        Input("nodes", "openb_node_list_all_node.csv, or its folder"),
        Input("pods", "a pod list with times, such as openb_pod_list_default.csv, plain or gzipped, or its folder"),
    ),
    settings_type=OpenbSettings,
    build=openb,
)
