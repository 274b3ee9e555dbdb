"""Trace ``mixed``: jobs with measured speeds, several regions, three GPU types and data, made from a seed.

Every policy of the loop runs it. Speeds are those of another trace, such as Gavel's; durations are drawn as by Gavel's
generator; the rest is our own choice.
"""

from collections.abc import Mapping

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.live.loop.speeds import Speeds
from mast_opt.live.simulation.traces.tables import Given, TraceTables, places, trace_tables
from mast_opt.problems.data_placement.generate.distributions import names
from mast_opt.problems.job_placement.units import WHOLE

MINUTE_MS = 60_000
GPUS_PER_SERVER = 4
SERVERS = 2
"""Number of servers of each region and type."""
NAMESPACES = 12
DATASETS = 3
"""Number of datasets of each namespace."""
LONG_SHARE = 0.2
SHORT, LONG = (1.5, 3.0), (3.0, 4.0)
"""Logarithms to base 10 of the minutes of jobs, between which they are uniform."""
TIERS = 4


def mixed_tables(
    speeds: Speeds, *, seed: int = 1, jobs: int = 2000, regions: int = 8, load: float = 0.8, gangs: bool = True
) -> TraceTables:
    """Tables of the trace ``mixed``.

    Args:
        speeds: of the models that jobs are drawn from, in all sizes that fit on a region's servers of one type.
        seed: of every draw.
        jobs: number of jobs.
        regions: number of regions, of equal size.
        load: GPU time of the jobs at their reference speeds over that of all GPUs until the last one comes.
        gangs: whether jobs have several tasks; without them there are jobs of one GPU only.

    Raises:
        UsageError: no speeds of three GPU types, or a number that cannot be.
    """
    if jobs < 1 or regions < 1 or not load > 0:
        raise UsageError(f"jobs, regions and load are {jobs}, {regions} and {load}; expected above 0")
    kinds = sorted({kind for _, kind, _ in speeds.alone})
    largest = SERVERS * GPUS_PER_SERVER if gangs else 1
    known = sorted(key for key, types in speeds.runs.items() if key[1] <= largest and len(types) == len(kinds))
    if len(kinds) != 3 or not known:
        raise UsageError(f"the speeds are of the types {', '.join(kinds) or 'none'}; expected models that run on three")
    rng = np.random.Generator(np.random.PCG64([seed, jobs]))
    model = rng.integers(len(known), size=jobs)
    low, high = np.where(rng.random(jobs) < LONG_SHARE, np.array(LONG)[:, None], np.array(SHORT)[:, None])
    duration_ms = np.round(10 ** (low + (high - low) * rng.random(jobs)) * MINUTE_MS).astype(np.int64)
    tasks = np.array([known[at][1] for at in model.tolist()], np.int64)
    supply = regions * len(kinds) * SERVERS * GPUS_PER_SERVER
    span_ms = float((duration_ms * tasks).sum()) / (load * supply)
    submitted = np.sort(rng.random(jobs) * span_ms).astype(np.int64) // 1000 * 1000
    space = rng.integers(NAMESPACES, size=jobs)
    named, spaces, data = names("r", regions), names("ns", NAMESPACES), names("d", NAMESPACES * DATASETS)
    held = [sorted(rng.choice(regions, min(regions, 2 + n % 3), replace=False).tolist()) for n in range(NAMESPACES)]
    reads = [n * DATASETS + int(at) for n, at in zip(space.tolist(), rng.integers(DATASETS, size=jobs), strict=True)]
    tables: dict[str, Mapping[str, Given]] = {
        **_places(named, kinds),
        "submissions": {
            "job": [f"j{at}" for at in range(jobs)],
            "submitted_s": submitted,
            "tier": rng.integers(TIERS, size=jobs),
            "tasks": tasks,
            "gpus": np.full(jobs, WHOLE),
            "duration_s": duration_ms,
            "namespace": [spaces[n] for n in space.tolist()],
            "home_region": [named[held[n][0]] for n in space.tolist()],
            "preemptible": np.ones(jobs, np.int64),
            "checkpoint_s": np.full(jobs, 300_000, np.int64),
            "restart_s": np.full(jobs, 30_000, np.int64),
            "model": [known[at][0] for at in model.tolist()],
        },
        "job_datasets": {"job": [f"j{at}" for at in range(jobs)], "dataset": [data[i] for i in reads]},
        "replicas": {
            "dataset": [data[n * DATASETS + i] for n in range(NAMESPACES) for i in range(DATASETS) for _ in held[n]],
            "region": [named[r] for n in range(NAMESPACES) for _ in range(DATASETS) for r in held[n]],
        },
        "speeds": _speeds(speeds),
        "pair_speeds": _pair_speeds(speeds),
    }
    return trace_tables(f"mixed-{jobs}", f"Generated, mixed: seed {seed}, {jobs} jobs, load {load:g}.", tables)


def _places(regions: tuple[str, ...], kinds: list[str]) -> dict[str, Mapping[str, Given]]:
    """Tables of the regions and servers of the trace ``mixed``."""
    servers = [(region, kind, at) for region in regions for kind in kinds for at in range(SERVERS)]
    of_kind = [kind for _, kind, _ in servers]
    return places(
        regions,
        [f"{region}-{kind}-{at}" for region, kind, at in servers],
        [region for region, _, _ in servers],
        np.full(len(servers), GPUS_PER_SERVER, np.int64),
        gpu_type=of_kind,
        rack=of_kind,
    )


def _speeds(speeds: Speeds) -> Mapping[str, Given]:
    """Table of the speeds of job types alone in the trace ``mixed``."""
    rows = sorted(speeds.alone)
    return {
        "model": [model for model, _, _ in rows],
        "gpu_type": [kind for _, kind, _ in rows],
        "tasks": np.array([tasks for _, _, tasks in rows], np.int64),
        "steps_per_s": np.array([speeds.alone[row] for row in rows], np.int64),
    }


def _pair_speeds(speeds: Speeds) -> Mapping[str, Given]:
    """Table of the speeds of pairs in the trace ``mixed``."""
    rows = sorted(speeds.packed)
    return {
        "model": [model for model, _, _, _ in rows],
        "other": [other for _, other, _, _ in rows],
        "gpu_type": [kind for _, _, kind, _ in rows],
        "tasks": np.array([tasks for _, _, _, tasks in rows], np.int64),
        "steps_per_s": np.array([speeds.packed[row] for row in rows], np.int64),
    }
