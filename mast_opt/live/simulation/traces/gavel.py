"""Gavel's trace as a trace of jobs with the steps of each, and its measured throughputs as speeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import SourceError, UsageError
from mast_opt.core.units import MICRO, MILLI
from mast_opt.live.importers.gavel import Trace, by_type, read_rates, read_trace
from mast_opt.live.simulation.traces.schema import FASTEST, KIND, MOST_S, MOST_STEPS
from mast_opt.live.simulation.traces.tables import Given, TraceTables, equal_servers, trace_tables
from mast_opt.planner.importers.base import Importer, Input, setting
from mast_opt.planner.io.faults import Faults
from mast_opt.problems.job_placement.units import MOST_TASKS

GANG = 6
"""The field of a line that is the number of workers, counted from 0."""
MOST_SERVERS = 100_000


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
)
