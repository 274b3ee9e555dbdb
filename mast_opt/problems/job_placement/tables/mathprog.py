"""GNU MathProg data of job-placement instances: for ``models/job_placement.mod``, glpsol and other readers."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mast_opt.problems.job_placement.movable_jobs import movable_jobs
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import GPU, LEVELS, MOVE_LIMITS, RESOURCES, WHOLE, WHOLE_JOB_LEVELS
from mast_opt.problems.kind.mathprog import section, stated_sections, symbols, write_data

_AXES: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("regions", "clusters", "racks", "servers", "gpu_types", "jobs", "multipart_jobs", "running", "datasets"), ()
)


def symbol_axes(problem: JobPlacement) -> dict[str, tuple[str, ...]]:
    """The axes, and symbols that their labels must not take: a movable job is among the jobs too."""
    return _AXES | ({"running": symbols(problem.jobs.labels)} if len(problem.movable) else {})


def write_dat(problem: JobPlacement, path: Path) -> None:
    """Write the data section that, with the .mod, states this problem. The objective is the weighted one."""
    write_data(problem, path, "job_placement.mod", symbol_axes(problem), _sections)


def _sections(p: JobPlacement) -> Iterator[Iterator[str]]:
    """The fleet, the jobs that wait, those that run, rules and objective, as the .mod declares them."""
    p = p.standing
    yield from _fleet(p)
    yield from _jobs(movable_jobs(p).problem)
    yield from _parts(p)
    yield from _running(p)
    yield from _moves(p)
    weights = p.objective.weights
    yield iter([f"param remote_reads := {int(p.remote_reads)};"])
    yield section("param weight", np.array(list(weights)), np.array(list(weights.values()), float))
    yield section("param : TIER : tier_weight", np.array(p.tiers), p.tier_weight)
    yield iter(["end;"])


def _fleet(p: JobPlacement) -> Iterator[Iterator[str]]:
    """Data sections of the servers, racks, clusters and GPU types."""
    region, cluster, rack = np.array(p.regions), np.array(p.clusters.labels), np.array(p.racks.labels)
    server, kind, resource = np.array(p.servers.labels), np.array(p.gpu_types), np.array(RESOURCES)
    yield section("set REGION", region)
    yield section("param : CLUSTER : region", cluster, region[p.clusters.region])
    yield section("param : RACK : cluster rack_at", rack, cluster[p.racks.cluster], np.arange(len(rack)))
    yield section("set TYPE", kind)
    yield section("param : SERVER : rack type", server, rack[p.servers.rack], kind[p.servers.gpu_type])
    yield section("param supply", np.repeat(server, 3), np.tile(resource, len(server)), p.servers.supply.ravel())


def _jobs(p: JobPlacement) -> Iterator[Iterator[str]]:
    """Data sections of the pending jobs, their options and datasets."""
    job, kind, cluster = np.array(p.jobs.labels), np.array(p.gpu_types), np.array(p.clusters.labels)
    region, dataset = np.array(p.regions), np.array(p.datasets.labels, str)
    yield section(
        "param : JOB : tier value_milli tasks mcores mib level job_at",
        job,
        np.array(p.tiers)[p.queue_tier],
        p.jobs.value_milli,
        p.jobs.tasks,
        p.jobs.cpu_mcores,
        p.jobs.memory_mib,
        np.array(LEVELS)[p.jobs.within],
        np.arange(len(job)),
    )
    yield from stated_sections(p.jobs, job)
    yield section("param : OPTION : mgpu", job[p.options.job], kind[p.options.gpu_type], p.options.mgpu)
    yield section("set DATASET", dataset)
    held, where = np.nonzero(p.datasets.stored)
    yield section("set STORED", dataset[held], region[where])
    resident, home = np.nonzero(p.datasets.residency)
    yield section("set RESIDENCY", dataset[resident], region[home])
    yield section("param : READ : read_mb_per_day", job[p.reads.job], dataset[p.reads.dataset], p.reads.mb_per_day)
    yield section("param : PRICED : cost_micro", job[p.costs.job], cluster[p.costs.cluster], p.costs.cost_micro)


def _parts(p: JobPlacement) -> Iterator[Iterator[str]]:
    """Data sections of jobs of several parts."""
    job, whole = np.array(p.jobs.labels), np.array(p.multipart_jobs.labels, str)
    yield section("param : MULTIPART : whole_level", whole, np.array(WHOLE_JOB_LEVELS)[p.multipart_jobs.within])
    yield section("param : PART : job_of", job[p.parts.job], whole[p.parts.whole])
    first = p.counts_once[p.parts.job]
    yield section("param first", whole[p.parts.whole[first]], job[p.parts.job[first]])


def _moves(p: JobPlacement) -> Iterator[Iterator[str]]:
    """Data sections of running jobs that may be moved, and limits of moves."""
    movable = np.array(p.running.labels, str)[p.movable.running]
    yield section("param : MOVABLE : restart", movable, p.movable.restart_mgpu_hours)
    limit = np.array(MOVE_LIMITS)[p.move_limits.limit]
    yield section("param : MOVE_LIMIT : most_milli", limit, p.move_limits.most_milli)


def _running(p: JobPlacement) -> Iterator[Iterator[str]]:
    """Data sections of running jobs and what they hold."""
    running, server, resource = np.array(p.running.labels, str), np.array(p.servers.labels), np.array(RESOURCES)
    yield section(
        "param : RUNNING : running_tier preemptible at_risk",
        running,
        np.array(p.tiers)[p.running.tier],
        p.running.preemptible.astype(np.int64),
        p.running.at_risk_mgpu_hours,
    )
    pairs, at = np.unique(np.stack([p.allocations.running, p.allocations.server], axis=1), axis=0, return_inverse=True)
    held = np.zeros((len(pairs), 3), np.int64)
    np.add.at(held, at.reshape(-1), p.held)
    v, s = running[pairs[:, 0]], server[pairs[:, 1]]
    yield section("set HOLDS", v, s)
    yield section("param held", np.repeat(v, 3), np.repeat(s, 3), np.tile(resource, len(v)), held.ravel())
    entries = p.held_devices
    where = np.stack([p.allocations.running[entries.row], p.allocations.server[entries.row], entries.device], axis=1)
    places, at = np.unique(where, axis=0, return_inverse=True)
    mgpu = np.zeros(len(places), np.int64)
    np.add.at(mgpu, at.reshape(-1), entries.mgpu)
    yield section("param : HOLDS_DEVICE : held_device", running[places[:, 0]], server[places[:, 1]], places[:, 2], mgpu)
    fraction = (p.allocations.need[:, GPU] > 0) & (p.allocations.need[:, GPU] < WHOLE)
    yield section("set FRACTION_RUNS", server[np.unique(p.allocations.server[fraction])])
