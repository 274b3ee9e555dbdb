"""Jobs of Gavel's generator as a trace, to compare with its published curves.

A job lasts 10^U minutes on a V100, with U uniform between 1.5 and 3, or for one job in five between 3 and 4; its model
is one of ``MODELS``, all equally likely. Draws are those of Gavel's code (commit c4fa400; OSDI'20, section 7.1), one by
one and from Python's generator, so that equal seeds give equal jobs.
"""

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.core.units import MILLI
from mast_opt.live.loop.speeds import Speeds
from mast_opt.live.simulation.traces.tables import Given, TraceTables, places, trace_tables

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
