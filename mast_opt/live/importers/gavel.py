"""A resource-allocation instance from Gavel's files: measured throughputs, and a trace of jobs.

The throughputs are a JSON file: worker type → job type → ``null`` (steps a second alone) or another job type (steps a
second of the two on the same GPUs). A job type is a text such as ``('ResNet-18 (batch size 16)', 1)``, with the GPUs of
the gang. The trace has one job a line, ten fields between tabs. All of its jobs are there at once.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import SourceError, UsageError
from mast_opt.live.policies import gavel
from mast_opt.planner.importers.base import Importer, Input, setting
from mast_opt.planner.importers.traces.csv_table import content_of
from mast_opt.planner.io.faults import Faults, one_of
from mast_opt.planner.io.readers.base import Number
from mast_opt.planner.io.readers.json_file import parse_object
from mast_opt.problems.resource_allocation import ResourceAllocation

FIELDS = 10
"""Fields of a line of a trace."""
JOB_TYPE, STEPS, GANG, WEIGHT, ARRIVAL = 0, 5, 6, 7, 9
"""Positions of those that are read."""
LARGEST = 1e12
"""Largest number that a file may hold."""
MOST_JOB_TYPES = 1000
MOST_PACKED = 4096
"""Jobs whose pairs are listed."""
_NUMBER = re.compile(r"[0-9.]{1,40}([eE][+-]?[0-9]{1,3})?", re.ASCII)
ALONE = "null"


@dataclass(frozen=True)
class Settings:
    """The knobs of the importer."""

    gpus: str = setting("v100=8,p100=16,k80=24", "GPUs of each worker type")
    policy: str = setting(
        "las", f"Gavel's policy, one of: {', '.join(policy for policy in gavel.POLICIES if policy != 'hierarchical')}"
    )
    price: str = setting("", "price of a GPU of each type, as in v100=3.1,p100=2; for the policy cost")
    jobs: int = setting(0, "only so many jobs, the first of the trace; 0 = all")
    packing: int = setting(0, "1: two jobs may share GPUs wherever that was measured")
    name: str = setting("", "name of the instance; empty = that of the trace")


@dataclass(frozen=True, eq=False)
class Trace:
    """Jobs of a trace; J counts them."""

    key: tuple[str, ...]
    """[J] job type and gang, as the throughputs name them."""
    steps: FloatArray
    gang: FloatArray
    weight: FloatArray
    arrival_s: FloatArray


def read_trace(path: Path, most: int, faults: Faults) -> Trace | None:
    """The first jobs of Gavel's trace, ``most`` of them or all if it is 0; None, with faults, if there are none."""
    data = content_of(path, faults)
    if data is None:
        return None
    before = len(faults.found)
    lines = data.decode("utf-8", "replace").splitlines()
    lines = lines[:most] if most else lines
    keys, rows = [], []
    for row, line in enumerate(lines, start=1):
        cells = line.split("\t")
        if len(cells) != FIELDS:
            faults.add(path.name, f"{FIELDS} fields between tabs", row, value=f"{len(cells)} fields")
            continue
        numbers = [_number(cells[at]) for at in (STEPS, GANG, WEIGHT, ARRIVAL)]
        for at, number in zip((STEPS, GANG, WEIGHT, ARRIVAL), numbers, strict=True):
            least = "at least 0" if at == ARRIVAL else "above 0"
            if number is None or (number == 0 and at != ARRIVAL):
                faults.add(path.name, f"a number {least}, up to {LARGEST:g}, in field {at + 1}", row, value=cells[at])
        keys.append(f"('{cells[JOB_TYPE]}', {cells[GANG]})")
        rows.append(numbers)
    if not lines:
        faults.add(path.name, "at least one job")
    if len(faults.found) > before:
        return None
    steps, gang, weight, arrival = np.array(rows, np.float64).T
    return Trace(tuple(keys), steps, gang, weight, arrival)


def read_rates(
    path: Path, types: Sequence[str], keys: Sequence[str], faults: Faults
) -> tuple[FloatArray, FloatArray] | None:
    """Gavel's rates of A job types alone [A, G], and of each next to each other one [A, A, G]; 0 where nothing was
    measured.

    None, and faults that say why, if the file is not what it should be or lacks one of the types.
    """
    before = len(faults.found)
    measured = _measured(path, types, keys, faults)
    if measured is None:
        return None
    alone, paired = np.zeros((len(keys), len(types))), np.zeros((len(keys), len(keys), len(types)))
    at = {key: position for position, key in enumerate(keys)}
    for g, kind in enumerate(types):
        for key in filter(measured[kind].__contains__, keys):
            place = f"{path.name}: {kind}, {key}"
            _take(measured[kind][key], at, alone[at[key], g : g + 1], paired[at[key], :, g], place, faults)
    if len(faults.found) == before:
        for position in np.flatnonzero(~(alone > 0).any(axis=1)).tolist():
            faults.add(path.name, f"steps a second of {keys[position]} above 0 on one of: {one_of(types)}")
    return None if len(faults.found) > before else (alone, paired)


def _measured(
    path: Path, types: Sequence[str], keys: Sequence[str], faults: Faults
) -> Mapping[str, Mapping[str, object]] | None:
    """Worker type → job type → what Gavel's file holds; None, with faults, if a type or all about a job type is
    missing.
    """
    data = content_of(path, faults)
    words = "an object with a key for each worker type"
    content = None if data is None else parse_object(data, path.name, words, faults)
    if content is None:
        return None
    before = len(faults.found)
    for kind in types:
        if not isinstance(content.get(kind), dict):
            faults.add(path.name, f"the worker type {kind}; there are: {one_of(content)}")
    if len(keys) > MOST_JOB_TYPES:
        faults.add(path.name, f"at most {MOST_JOB_TYPES} job types in the trace", value=len(keys))
    if len(faults.found) == before:
        for key in keys:
            if not any(key in content[kind] for kind in types):
                faults.add(path.name, f"the job type {key} on one of the worker types: {one_of(types)}")
    return None if len(faults.found) > before else {kind: content[kind] for kind in types}


def _take(
    measured: object, at: Mapping[str, int], alone: FloatArray, paired: FloatArray, place: str, faults: Faults
) -> None:
    """Write what was measured of one job type on one worker type into ``alone`` [1] and ``paired`` [A]."""
    if not isinstance(measured, dict):
        faults.add(place, "an object with the key 'null'")
        return
    for other in filter(measured.__contains__, (ALONE, *at)):
        found = measured[other]
        rates = [found] if other == ALONE else found if isinstance(found, list) and len(found) == 2 else [None]
        numbers = [_number(rate) if isinstance(rate, Number) else None for rate in rates]
        if any(number is None for number in numbers):
            words = "a number" if other == ALONE else "a list of two numbers"
            faults.add(f"{place}, {other}", f"{words} from 0 to {LARGEST:g}", value=found)
        elif other == ALONE:
            alone[0] = numbers[0]
        else:
            paired[at[other]] = numbers[0]


def _number(text: str) -> float | None:
    """The number in Gavel's file, if it is one from 0 to ``LARGEST``."""
    try:
        number = float(text) if _NUMBER.fullmatch(text) else -1.0
    except ValueError:
        return None
    return number if 0 <= number <= LARGEST else None


def pairs_of(kind: NDArray[np.int64], gang: FloatArray, paired: FloatArray) -> gavel.Pairs:
    """The pairs of jobs of Gavel's trace with equal gangs that were measured together.

    Args:
        kind: [J] job type of each job.
        gang: [J]
        paired: [A, A, G] as by ``read_rates``.
    """
    first, second = np.triu_indices(len(kind), 1)
    equal = gang[first] == gang[second]
    first, second = first[equal], second[equal]
    rate = np.stack([paired[kind[first], kind[second]], paired[kind[second], kind[first]]], axis=1)
    measured = np.asarray((rate > 0).all(axis=1)).any(axis=1)
    return gavel.Pairs(np.stack([first[measured], second[measured]], axis=1), rate[measured])


def by_type(name: str, text: str) -> dict[str, float]:
    """Worker type → number, from text such as ``v100=8,p100=16``. Raises UsageError."""
    found: dict[str, float] = {}
    for part in text.split(",") if text else []:
        kind, _, number = part.partition("=")
        value = _number(number)
        if not kind or value is None or value == 0 or kind in found:
            raise UsageError(
                f"setting {name} is {text!r}; expected each type once with a number above 0: v100=8,p100=16"
            )
        found[kind] = value
    return found


def build(paths: Sequence[Path], settings: Settings, rng: np.random.Generator) -> ResourceAllocation:
    """The resource-allocation instance from Gavel's files; nothing in it is drawn. Raises SourceError for files that
    are not what they should be.
    """
    throughputs, trace = paths
    gpus, price = by_type("gpus", settings.gpus), by_type("price", settings.price)
    if not gpus or (price and price.keys() != gpus.keys()):
        raise UsageError(
            f"settings gpus and price name {list(gpus)} and {list(price)}; expected the same types in both"
        )
    if settings.jobs < 0 or settings.packing not in (0, 1):
        raise UsageError(
            f"jobs is {settings.jobs} and packing {settings.packing}; expected jobs ≥ 0 and packing 0 or 1"
        )
    faults, types = Faults(), list(gpus)
    jobs = read_trace(trace, settings.jobs, faults)
    rates = None
    if jobs is not None:
        keys = list(dict.fromkeys(jobs.key))
        rates = read_rates(throughputs, types, keys, faults)
    if jobs is None or rates is None:
        raise SourceError(faults.found)
    if settings.packing and len(jobs.key) > MOST_PACKED:
        raise UsageError(f"packing takes at most {MOST_PACKED} jobs, the trace has {len(jobs.key)}; set jobs to fewer")
    position = {key: at for at, key in enumerate(keys)}
    kind = np.array([position[key] for key in jobs.key], np.int64)
    alone, paired = rates
    known = gavel.Jobs(
        alone[kind],
        gang=jobs.gang,
        weight=jobs.weight,
        steps=jobs.steps,
        submitted_s=jobs.arrival_s,
        pairs=pairs_of(kind, jobs.gang, paired) if settings.packing else None,
        names=[f"job-{number}" for number in range(1, len(kind) + 1)],
        types=types,
    )
    supply = [gpus[name] for name in types]
    prices = [price[name] for name in types] if price else None
    program = gavel.tables(known, supply, settings.policy, price=prices)
    return program.problem(settings.name or trace.name.split(".")[0])


GAVEL = Importer(
    kind=ResourceAllocation.kind,
    help="jobs on GPU types under a policy of Gavel, from its measured throughputs and a trace",
    inputs=(
        Input("throughputs", "JSON: worker type, job type, steps a second alone and packed; plain or gzipped"),
        Input("trace", "one job a line, ten fields between tabs; plain or gzipped"),
    ),
    settings_type=Settings,
    build=build,
)
