"""Gavel's trace as a trace of jobs with the steps of each, and its measured throughputs as speeds.

``gavel_jobs`` draws them as Gavel's simulator does: a job lasts 10^U minutes on a V100, with U uniform between 1.5 and
3, or for one job in five between 3 and 4; its model is one of ``MODELS``, all equally likely. Draws are those of
Gavel's code (commit c4fa400; OSDI'20, section 7.1), one by one and from Python's generator, so that equal seeds give
equal jobs.
"""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import SourceError, UsageError
from mast_opt.core.units import MICRO, MILLI
from mast_opt.live.importers.gavel import FORMATS, Trace, by_type, read_rates, read_trace
from mast_opt.live.loop.speeds import Speeds
from mast_opt.live.simulation.traces.schema import FASTEST, KIND, MOST_S, MOST_STEPS
from mast_opt.live.simulation.traces.tables import Given, TraceTables, equal_servers, places, trace_tables
from mast_opt.planner.importers.base import Importer, Input, setting
from mast_opt.planner.io.faults import Faults
from mast_opt.problems.job_placement.units import MOST_TASKS

GANG = 6
"""The field of a line that is the number of workers, counted from 0."""
MOST_SERVERS = 100_000


FAMILIES = (
    ("ResNet-18", (16, 32, 64, 128, 256)),
    ("ResNet-50", (16, 32, 64, 128)),
    ("Transformer", (16, 32, 64, 128, 256)),
    ("LM", (5, 10, 20, 40, 80)),
    ("Recommendation", (512, 1024, 2048, 4096, 8192)),
)
MODELS = (*(f"{family} (batch size {size})" for family, sizes in FAMILIES for size in sizes), "A3C", "CycleGAN")
"""Models in the order of Gavel's table, from which one is drawn."""
TYPES = ("v100", "p100", "k80")
DURATION_TYPE = "v100"
"""Type on which durations are drawn."""
LONG_SHARE = 0.2
SHORT, LONG = (1.5, 3.0), (3.0, 4.0)
"""Logarithms to base 10 of the minutes of jobs."""
JOB_SEED, ARRIVAL_SEED = 2, 3
"""Added to the seed, one for each generator."""
MINUTE_S, HOUR_S = 60, 3600


@dataclass(frozen=True)
class GavelSettings:
    """The knobs of the importer."""

    gpus: str = setting("v100=8,p100=16,k80=24", "GPUs of each worker type")
    server: int = setting(1, "GPUs of a server")
    packing: int = setting(0, "1: the speeds of two jobs on the same GPUs too, wherever they were measured")
    name: str = setting("", "of the trace; empty = that of its file")

    def __post_init__(self) -> None:
        supply = by_type("gpus", self.gpus)
        if not supply or any(number % 1 for number in supply.values()) or self.packing not in (0, 1):
            raise UsageError(
                f"settings gpus and packing are {self.gpus!r} and {self.packing}; expected types with whole numbers of "
                "GPUs, and 0 or 1"
            )
        if not 1 <= self.server <= 4096 or any(number % self.server for number in supply.values()):
            raise UsageError(f"setting server is {self.server}; expected a divisor of the GPUs of each type")
        if sum(supply.values()) / self.server > MOST_SERVERS:
            raise UsageError(f"setting gpus is {self.gpus!r}; expected at most {MOST_SERVERS:,} servers")


def gavel(paths: Sequence[Path], settings: GavelSettings, rng: np.random.Generator) -> TraceTables:
    """The trace from Gavel's throughputs and one of its traces. Nothing is drawn. Raises SourceError."""
    throughputs, trace = paths
    faults, supply = Faults(), by_type("gpus", settings.gpus)
    jobs = read_trace(trace, 0, faults)
    if jobs is None:
        raise SourceError(faults.found)
    _check(jobs, trace.name, faults)
    keys, types = list(dict.fromkeys(jobs.key)), list(supply)
    rates = read_rates(throughputs, types, keys, faults)
    if rates is None or faults:
        raise SourceError(faults.found)
    for rate in rates:
        if (rate * MICRO > FASTEST).any():
            faults.add(throughputs.name, f"at most {FASTEST / MICRO:g} steps a second", value=rate.max())
            raise SourceError(faults.found)
    tables: dict[str, Mapping[str, Given]] = {
        **equal_servers(["gavel"], [int(sum(supply.values())) // settings.server], settings.server),
        "submissions": _jobs(jobs),
        "speeds": _speeds(keys, types, rates[0]),
    }
    of_server = [kind for kind, number in supply.items() for _ in range(int(number) // settings.server)]
    tables["servers"] = {**tables["servers"], "gpu_type": of_server}
    if settings.packing:
        tables["pair_speeds"] = _pair_speeds(keys, types, rates[1])
    provenance = (
        f"{trace.name} of Gavel (MIT), {len(jobs.key)} jobs; speeds are the steps a second of {throughputs.name}. "
        "Weights and deadlines are left out"
    )
    return trace_tables(settings.name or trace.name.split(".")[0], provenance, tables)


def _check(jobs: Trace, file: str, faults: Faults) -> None:
    """Note faults of Gavel's trace: gangs, arrivals or steps that a trace of jobs cannot state."""

    def wrong(values: FloatArray, bad: NDArray[np.bool_], expected: str) -> None:
        rows = np.flatnonzero(bad)
        faults.cells(file, None, rows + 1, lambda n: values[rows[n]], expected)

    gang = f"a whole number of workers, at most {MOST_TASKS:,}, in field {GANG + 1}"
    wrong(jobs.gang, (jobs.gang % 1 != 0) | (jobs.gang > MOST_TASKS), gang)
    wrong(jobs.arrival_s, jobs.arrival_s > MOST_S, f"an arrival by second {MOST_S:,}")
    wrong(jobs.steps, (jobs.steps % 1 != 0) | (jobs.steps > MOST_STEPS), f"a whole number of steps, to {MOST_STEPS:,}")


def _model(key: str) -> tuple[str, int]:
    """Gavel's job type and workers of a key such as ``('ResNet-18 (batch size 16)', 1)``."""
    model, _, gang = key.removesuffix(")").rpartition(", ")
    return model.removeprefix("('").removesuffix("'"), int(float(gang))


def _jobs(jobs: Trace) -> Mapping[str, Given]:
    """Table of submissions from Gavel's trace."""
    count = len(jobs.key)
    models = [_model(key)[0] for key in jobs.key]
    return {
        "job": [f"job-{number}" for number in range(1, count + 1)],
        "submitted_s": np.round(jobs.arrival_s * MILLI).astype(np.int64),
        "tier": np.ones(count, np.int64),
        "tasks": jobs.gang.astype(np.int64),
        "gpus": np.full(count, MILLI),
        "model": models,
        "steps": jobs.steps.astype(np.int64),
        "workload": models,
        "checkpoint_s": np.zeros(count, np.int64),  # as in Gavel's simulator, where a stop costs nothing
        "restart_s": np.zeros(count, np.int64),
    }


def _speeds(keys: Sequence[str], types: Sequence[str], alone: FloatArray) -> Mapping[str, Given]:
    """Table of speeds from Gavel's throughputs of job types alone."""
    key, kind = np.nonzero(alone * MICRO >= 1)
    return {
        "model": [_model(keys[at])[0] for at in key.tolist()],
        "gpu_type": [types[at] for at in kind.tolist()],
        "tasks": np.array([_model(keys[at])[1] for at in key.tolist()], np.int64),
        "steps_per_s": (alone[key, kind] * MICRO).astype(np.int64),
    }


def _pair_speeds(keys: Sequence[str], types: Sequence[str], paired: FloatArray) -> Mapping[str, Given]:
    """Table of speeds of pairs from Gavel's throughputs of job types that share GPUs."""
    gang = np.array([_model(key)[1] for key in keys])
    key, other, kind = np.nonzero((paired * MICRO >= 1) & (gang[:, None] == gang)[:, :, None])
    return {
        "model": [_model(keys[at])[0] for at in key.tolist()],
        "other": [_model(keys[at])[0] for at in other.tolist()],
        "gpu_type": [types[at] for at in kind.tolist()],
        "tasks": gang[key],
        "steps_per_s": (paired[key, other, kind] * MICRO).astype(np.int64),
    }


GAVEL_TRACE = Importer(
    kind=KIND,
    help="a trace of jobs from Gavel's throughputs and one of its traces",
    inputs=(
        Input("throughputs", "JSON: worker type, job type, steps a second alone and packed; plain or gzipped"),
        Input("trace", "one job a line, ten fields between tabs; plain or gzipped"),
    ),
    settings_type=GavelSettings,
    build=gavel,
    formats=FORMATS,
)


@dataclass(frozen=True)
class DrawnJob:
    """A job of one GPU."""

    arrival_s: float
    duration_s: float
    """Duration on a V100."""
    model: str


def drawn_jobs(rate_per_h: float, seed: int) -> Iterator[DrawnJob]:
    """Gavel's random jobs without end, in the order of their arrival; the first one comes at 0.

    Args:
        rate_per_h: jobs an hour, on average.
        seed: Gavel's, to which it adds a number for each of its generators.

    Raises:
        UsageError: the rate is not above 0.
    """
    if not rate_per_h > 0:
        raise UsageError(f"rate_per_h is {rate_per_h}; expected above 0")
    jobs, arrivals = random.Random(seed + JOB_SEED), random.Random(seed + ARRIVAL_SEED)
    mean_s = HOUR_S / rate_per_h
    arrival_s = 0.0
    while True:
        jobs.uniform(0, 1)  # the size of a gang, drawn even where all jobs have one GPU
        low, high = LONG if jobs.random() >= 1 - LONG_SHARE else SHORT
        duration_s = MINUTE_S * 10 ** jobs.uniform(low, high)
        yield DrawnJob(arrival_s, duration_s, jobs.choice(MODELS))
        arrival_s += -math.log(1.0 - arrivals.random()) * mean_s


def gavel_jobs(speeds: Speeds, *, rate_per_h: float, jobs: int, seed: int, gpus: int = 36) -> TraceTables:
    """The tables of a trace of Gavel's random jobs, named by their numbers from 0.

    Args:
        speeds: that hold those of ``MODELS`` on ``TYPES``, one task each.
        rate_per_h: jobs an hour, on average.
        jobs: number of jobs.
        seed: see ``drawn_jobs``.
        gpus: of each type, each a server by itself.

    Raises:
        UsageError: a speed is missing, or a number is not above 0.
    """
    if jobs < 1 or gpus < 1:
        raise UsageError(f"jobs and gpus are {jobs} and {gpus}; expected above 0")
    missing = [(model, kind) for model in MODELS for kind in TYPES if not speeds.alone.get((model, kind, 1))]
    if missing:
        raise UsageError(f"there is no speed of {missing[0][0]} on {missing[0][1]}")
    drawn = list(islice(drawn_jobs(rate_per_h, seed), jobs))
    servers = [(kind, at) for kind in TYPES for at in range(gpus)]
    no_time = np.zeros(jobs, np.int64)
    tables: dict[str, Mapping[str, Given]] = {
        **places(
            ["gavel"],
            [f"{kind}-{at}" for kind, at in servers],
            ["gavel"] * len(servers),
            np.ones(len(servers), np.int64),
            gpu_type=[kind for kind, _ in servers],
            rack=[kind for kind, _ in servers],
        ),
        "submissions": {
            "job": [str(at) for at in range(jobs)],
            "submitted_s": np.array([round(job.arrival_s * MILLI) for job in drawn], np.int64),
            "tier": np.ones(jobs, np.int64),
            "tasks": np.ones(jobs, np.int64),
            "gpus": np.full(jobs, MILLI),
            "duration_s": np.array([_reference_ms(job, speeds) for job in drawn], np.int64),
            "model": [job.model for job in drawn],
            "workload": [job.model for job in drawn],
            "checkpoint_s": no_time,  # a stop costs nothing
            "restart_s": no_time,
        },
        "speeds": {
            "model": [model for model in MODELS for _ in TYPES],
            "gpu_type": [kind for _ in MODELS for kind in TYPES],
            "tasks": np.ones(len(MODELS) * len(TYPES), np.int64),
            "steps_per_s": np.array([speeds.alone[model, kind, 1] for model in MODELS for kind in TYPES], np.int64),
        },
    }
    provenance = (
        f"Jobs as Gavel's simulator draws them: {jobs}, {rate_per_h:g} an hour, seed {seed}; speeds are the steps a "
        "second of its simulation_throughputs.json (MIT)"
    )
    return trace_tables(f"gavel-{rate_per_h:g}-an-hour", provenance, tables)


def _reference_ms(job: DrawnJob, speeds: Speeds) -> int:
    """Duration of a job of Gavel's trace on the type on which it is fastest, in ms."""
    steps_per_s = speeds.runs[job.model, 1]
    return round(job.duration_s * MILLI * steps_per_s[DURATION_TYPE] / max(steps_per_s.values()))
