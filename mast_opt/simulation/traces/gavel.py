"""Gavel's trace as a trace of jobs: how long each runs on one GPU type, by its steps and the measured throughputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mast_opt.core.errors import SourceError, UsageError
from mast_opt.core.units import MILLI
from mast_opt.importers.base import Importer, Input, setting
from mast_opt.importers.gavel import Trace, by_type, read_rates, read_trace
from mast_opt.io.faults import Faults
from mast_opt.job_placement.units import MOST_TASKS
from mast_opt.simulation.traces.schema import KIND, MOST_S
from mast_opt.simulation.traces.tables import TraceTables, equal_servers, trace_tables

GANG = 6
"""The field of a line that is the number of workers, counted from 0."""
MOST_SERVERS = 100_000


@dataclass(frozen=True)
class GavelSettings:
    """The knobs of the importer."""

    gpus: str = setting("v100=8,p100=16,k80=24", "GPUs of each worker type")
    reference: str = setting("v100", "worker type on which durations are stated")
    server: int = setting(1, "GPUs of a server")
    name: str = setting("", "of the trace; empty = that of its file")

    def __post_init__(self) -> None:
        supply = by_type("gpus", self.gpus)
        if not supply or any(number % 1 for number in supply.values()) or self.reference not in supply:
            raise UsageError(
                f"settings gpus and reference are {self.gpus!r} and {self.reference!r}; expected types with whole "
                "numbers of GPUs, and one of these types"
            )
        if not 1 <= self.server <= 4096 or any(number % self.server for number in supply.values()):
            raise UsageError(f"setting server is {self.server}; expected a divisor of the GPUs of each type")
        if sum(supply.values()) / self.server > MOST_SERVERS:
            raise UsageError(f"setting gpus is {self.gpus!r}; expected at most {MOST_SERVERS:,} servers")


def gavel(paths: Sequence[Path], settings: GavelSettings, rng: np.random.Generator) -> TraceTables:
    """The trace from Gavel's throughputs and one of its traces. Nothing is drawn. Raises SourceError."""
    throughputs, trace = paths
    faults = Faults()
    jobs = read_trace(trace, 0, faults)
    if jobs is None:
        raise SourceError(faults.found)
    keys = list(dict.fromkeys(jobs.key))
    rates = read_rates(throughputs, [settings.reference], keys, faults)
    _check(jobs, trace.name, faults)
    if rates is None or faults:
        raise SourceError(faults.found)
    position = {key: at for at, key in enumerate(keys)}
    rate = rates[0][[position[key] for key in jobs.key], 0]
    seconds = jobs.steps / rate
    if (seconds > MOST_S).any():
        faults.add(trace.name, f"at most {MOST_S:,} seconds a job", int(np.argmax(seconds)) + 1)
        raise SourceError(faults.found)
    count = len(jobs.key)
    supply = by_type("gpus", settings.gpus)
    gang = jobs.gang.astype(np.int64)
    tables = {
        **equal_servers(["gavel"], [int(sum(supply.values())) // settings.server], [settings.server]),
        "submissions": {
            "job": [f"job-{number}" for number in range(1, count + 1)],
            "submitted_s": np.round(jobs.arrival_s * MILLI).astype(np.int64),
            "tier": np.ones(count, np.int64),
            "tasks": gang,
            "gpus": np.full(count, MILLI),
            "duration_s": np.maximum(np.ceil(seconds * MILLI), 1).astype(np.int64),
            "workload": [key.rpartition(", ")[0].strip("('") for key in jobs.key],
        },
    }
    types = [kind for kind, number in supply.items() for _ in range(int(number) // settings.server)]
    tables["servers"] = {**tables["servers"], "gpu_type": types}
    provenance = (
        f"{trace.name} of Gavel (MIT), {count} jobs; durations are its steps over the steps a second of "
        f"{throughputs.name} on {settings.reference}. Weights and deadlines are left out"
    )
    return trace_tables(settings.name or trace.name.split(".")[0], provenance, tables)


def _check(jobs: Trace, file: str, faults: Faults) -> None:
    odd = np.flatnonzero((jobs.gang % 1 != 0) | (jobs.gang > MOST_TASKS))
    expected = f"a whole number of workers, at most {MOST_TASKS:,}, in field {GANG + 1}"
    faults.cells(file, None, odd + 1, lambda n: jobs.gang[odd[n]], expected)
    late = np.flatnonzero(jobs.arrival_s > MOST_S)
    faults.cells(file, None, late + 1, lambda n: jobs.arrival_s[late[n]], f"an arrival by second {MOST_S:,}")


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
