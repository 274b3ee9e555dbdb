"""Instances of resource allocation from what schedulers take as input, as CSV files: one measurement a row.

Each importer reads one file and calls ``tables`` of the policy of its name; see ``docs/policies.md``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.core.errors import SourceError, UsageError
from mast_opt.live.importers.gavel import by_type
from mast_opt.live.policies import allox, gandiva, gandiva_fair, node_sizes, pollux, sia, singularity, synergy, themis
from mast_opt.live.policies.program import Program
from mast_opt.planner.importers.base import Importer, Input, setting
from mast_opt.planner.importers.fields import Format, Use, of_columns
from mast_opt.planner.importers.traces.csv_table import SourceTable, read_table
from mast_opt.planner.io.faults import Faults
from mast_opt.problems.kind.schema import Column, boolean, integer, label, real
from mast_opt.problems.resource_allocation import ResourceAllocation

SettingsT = TypeVar("SettingsT")
MOST_CONFIGURATIONS = 2_000_000
"""Largest number of configurations of an instance; a small file of AlloX or of pairs may stand for far more."""
_JOB = label("job", "job", help="name of the job")


@dataclass(frozen=True)
class Named:
    """The setting of every importer here."""

    name: str = setting("", "name of the instance; empty = that of the file")


@dataclass(frozen=True)
class Gpus(Named):
    """Equal GPUs."""

    gpus: int = setting(1, "GPUs that there are, all equal")


@dataclass(frozen=True)
class Users(Named):
    """GPUs of several types, and what users own of them."""

    gpus: str = setting("v100=4,k80=4", "GPUs of each type")
    tickets: str = setting("", "tickets of each user, as in ann=2,bob=1; empty = equal ones")
    demand: str = setting("", "GPUs that each user can use together; empty = all")


@dataclass(frozen=True)
class Points(Named):
    """Amounts for all jobs together."""

    cpu_cores: float = setting(24.0, "CPU cores that there are")
    memory_gb: float = setting(0.0, "memory that there is; 0 = not counted")
    shares: str = setting("whole", "whole: one point for each job; fractional: several in turn")


@dataclass(frozen=True)
class Nodes(Named):
    """Equal nodes."""

    nodes: int = setting(1, "nodes, all equal")
    gpus_per_node: int = setting(8, "GPUs of each node")
    objective: str = setting("sum", "of the speedups: sum or harmonic")


@dataclass(frozen=True)
class Types(Named):
    """GPUs of several types."""

    gpus: str = setting("v100=8,t4=8", "GPUs of each type")
    power: float = setting(-0.5, "p; the lower, the fairer")
    waiting: float = setting(1.1, "λ, the penalty of a job without GPUs")


@dataclass(frozen=True)
class Levels(Named):
    """A pool of equal GPUs."""

    capacity: float = setting(8.0, "GPUs that there are")
    overhead: float = setting(0.0, "part of the work that is lost while workers take turns on a GPU")
    shares: str = setting("fractional", "fractional: several sizes in turn; whole: one size for each job")


class _Reading:
    """One file on its way to arrays."""

    def __init__(self, table: SourceTable, faults: Faults) -> None:
        self.table, self.faults = table, faults

    def numbers(self, column: str) -> FloatArray:
        """The values of a column of a scheduler's input, as floats."""
        values: FloatArray = self.table.numbers[column].astype(np.float64)
        return values

    def axis(self, column: str) -> tuple[list[str], IntArray]:
        """Labels in a column of a scheduler's input, in order of appearance, and the position of each row's; −1 for an
        empty cell.
        """
        cells = self.table.labels[column].to_list()
        known = {name: at for at, name in enumerate(dict.fromkeys(name for name in cells if name is not None))}
        return list(known), np.array([-1 if name is None else known[name] for name in cells], np.int64)

    def among(self, column: str, names: Sequence[str]) -> IntArray:
        """[rows] positions of a scheduler's input among these names; a fault for another one."""
        cells = self.table.labels[column].to_list()
        known = {name: at for at, name in enumerate(names)}
        other = np.array([row for row, name in enumerate(cells) if name not in known], np.int64)
        self.faults.cells(self.table.file, column, other + 1, lambda n: cells[other[n]], f"one of: {', '.join(names)}")
        return np.array([known.get(name, 0) for name in cells], np.int64)

    def grid(self, rows: IntArray, columns: IntArray, shape: tuple[int, int], column: str, empty: float) -> FloatArray:
        """[rows, columns] the values of a column of a scheduler's input; ``empty`` where no row has one, and a fault
        where two have.
        """
        _check_size(shape[0] * shape[1])
        cell = rows * shape[1] + columns
        _, first = np.unique(cell, return_index=True)
        twice = np.setdiff1d(np.arange(len(cell)), first)
        self.faults.cells(self.table.file, None, twice + 1, lambda n: None, "each combination once")
        found = np.full(shape, empty)
        found[rows, columns] = self.table.numbers[column]
        return found

    def done(self) -> None:
        """Raises SourceError where anything is wrong with a scheduler's input."""
        if self.faults:
            raise SourceError(self.faults.found)


def _allox(read: _Reading, settings: Named) -> Program:
    """AlloX's program from a CSV file: the seconds of each job on each machine."""
    jobs, job = read.axis("job")
    machines, machine = read.axis("machine")
    _check_size(len(jobs) ** 2 * len(machines))
    seconds = read.grid(job, machine, (len(jobs), len(machines)), "seconds", np.inf)
    read.done()
    return allox.tables(seconds).named(j=jobs, m=machines)


def _gandiva(read: _Reading, settings: Gpus) -> Program:
    """Gandiva's program from a CSV file: the rates of jobs alone and of each pair."""
    jobs, job = read.axis("job")
    other = read.table.labels["other"].to_list()
    alone = np.array([name is None for name in other], np.bool_)
    _check_size(len(jobs) ** 2)
    known = {name: at for at, name in enumerate(jobs)}
    lost = np.array([row for row, name in enumerate(other) if name is not None and name not in known], np.int64)
    read.faults.cells(read.table.file, "other", lost + 1, lambda n: other[lost[n]], "a job that has a row of its own")
    partner = np.array([known.get(name or "", len(jobs)) for name in other], np.int64)
    rate = read.grid(job, partner, (len(jobs), len(jobs) + 1), "rate", 0.0)
    for at in np.flatnonzero(np.bincount(job[alone], minlength=len(jobs)) == 0).tolist():
        read.faults.add(read.table.file, f"a row of {jobs[at]} alone, with no other")
    read.done()
    return gandiva.tables(gandiva.worth(rate[:, -1], rate[:, :-1]), settings.gpus).named(j=jobs)


def _gandiva_fair(read: _Reading, settings: Users) -> Program:
    """Gandiva-Fair's program from a CSV file: the rates of users on GPU types."""
    supply = _supply(settings.gpus)
    users, user = read.axis("user")
    value = read.grid(user, read.among("gpu_type", list(supply)), (len(users), len(supply)), "rate", 0.0)
    read.done()
    tickets, demand = (_for_all(users, name, getattr(settings, name)) for name in ("tickets", "demand"))
    owned = 1.0 if tickets is None else tickets
    return gandiva_fair.tables(value, list(supply.values()), tickets=owned, demand=demand).named(
        u=users, g=list(supply)
    )


def _themis(read: _Reading, settings: Gpus) -> Program:
    """Themis' program from a CSV file: the value of each number of GPUs to each app."""
    apps, app = read.axis("app")
    size = read.table.numbers["gpus"]
    beyond = np.flatnonzero(size > settings.gpus)
    read.faults.cells(read.table.file, "gpus", beyond + 1, lambda n: size[beyond[n]], f"at most {settings.gpus} GPUs")
    value = read.grid(app, np.minimum(size, settings.gpus), (len(apps), settings.gpus + 1), "value", 0.0)
    read.done()
    return themis.tables(value, settings.gpus).named(a=apps)


def _synergy(read: _Reading, settings: Points) -> Program:
    """Synergy's program from a CSV file: the rates of jobs at points of cores and memory."""
    whole = _whole(settings.shares)
    jobs, job = read.axis("job")
    both = np.stack([read.numbers("cpu_cores"), read.numbers("memory_gb")], axis=1)
    points, point = np.unique(both, axis=0, return_inverse=True)
    rate = read.grid(job, point.reshape(-1), (len(jobs), len(points)), "rate", 0.0)
    marked = read.table.numbers["fair"].astype(np.bool_)
    for at in np.flatnonzero(np.bincount(job[marked], minlength=len(jobs)) != 1).tolist():
        read.faults.add(read.table.file, f"one row of {jobs[at]} with fair = true")
    read.done()
    fair = np.zeros(len(jobs), np.int64)
    fair[job[marked]] = point.reshape(-1)[marked]
    counted = [0, 1] if settings.memory_gb > 0 else [0]
    totals = [[settings.cpu_cores, settings.memory_gb][at] for at in counted]
    program = synergy.tables(rate, points[:, counted], fair, totals, whole=whole)
    shown = [f"{cores:g}cores" + f"-{memory:g}gb" * (len(counted) > 1) for cores, memory in points.tolist()]
    return program.named(j=jobs, p=shown, k=[["cpu_cores", "memory_gb"][at] for at in counted])


def _pollux(read: _Reading, settings: Nodes) -> Program:
    """Pollux' program from a CSV file: the goodput of jobs on each number of GPUs."""
    able = node_sizes.sizes(settings.nodes, settings.gpus_per_node)
    jobs, job = read.axis("job")
    size = read.table.numbers["gpus"]
    other = np.flatnonzero(~np.isin(size, able))
    read.faults.cells(read.table.file, "gpus", other + 1, lambda n: size[other[n]], f"one of: {able.tolist()[:20]}")
    at = np.minimum(np.searchsorted(able, size), len(able) - 1)
    goodput = read.grid(job, at, (len(jobs), len(able)), "goodput", 0.0)
    for row in np.flatnonzero(goodput[:, 0] <= 0).tolist():
        read.faults.add(read.table.file, f"a goodput of {jobs[row]} above 0 on 1 GPU")
    read.done()
    return pollux.tables(
        goodput / goodput[:, :1], settings.nodes, settings.gpus_per_node, objective=settings.objective
    ).named(j=jobs)


def _sia(read: _Reading, settings: Types) -> Program:
    """Sia's program from a CSV file: the goodput of jobs on each GPU type and number of GPUs."""
    supply = _supply(settings.gpus)
    jobs, job = read.axis("job")
    both = np.stack([read.among("gpu_type", list(supply)), read.table.numbers["gpus"]], axis=1)
    choices, choice = np.unique(both, axis=0, return_inverse=True)
    goodput = read.grid(job, choice.reshape(-1), (len(jobs), len(choices)), "goodput", 0.0)
    read.done()
    kind, size = choices.T
    program = sia.tables(goodput, size, kind, list(supply.values()), power=settings.power, waiting=settings.waiting)
    types = list(supply)
    return program.named(j=jobs, g=types, c=[f"{n}x{types[g]}" for g, n in zip(kind.tolist(), size.tolist())])


def _singularity(read: _Reading, settings: Levels) -> Program:
    """Singularity's program from a CSV file: GPUs, weights and guarantees of jobs."""
    whole = _whole(settings.shares)
    jobs, job = read.axis("job")
    twice = np.setdiff1d(np.arange(len(job)), np.unique(job, return_index=True)[1])
    read.faults.cells(read.table.file, "job", twice + 1, lambda n: jobs[job[twice[n]]], "each job once")
    read.done()
    return singularity.tables(
        read.numbers("gpus"),
        settings.capacity,
        weight=read.numbers("weight"),
        guaranteed=read.numbers("guaranteed"),
        overhead=settings.overhead,
        whole=whole,
    ).named(j=jobs)


def _supply(text: str) -> dict[str, float]:
    """GPU type → GPUs, from the setting ``gpus`` of a scheduler's input. Raises UsageError if it is empty."""
    supply = by_type("gpus", text)
    if not supply:
        raise UsageError("setting gpus is empty; expected each type with its GPUs: v100=8,p100=16")
    return supply


def _for_all(users: Sequence[str], name: str, text: str) -> list[float] | None:
    """A setting of a scheduler's input: a number for each user, or None where the setting is empty."""
    found = by_type(name, text)
    if found and found.keys() != set(users):
        raise UsageError(f"setting {name} is for {', '.join(found)}; expected each of: {', '.join(users)}")
    return [found[user] for user in users] if found else None


def _whole(shares: str) -> bool:
    """Whether the setting ``shares`` of a scheduler's input asks for whole shares. Raises UsageError."""
    if shares not in ("whole", "fractional"):
        raise UsageError(f"setting shares is {shares!r}; expected whole or fractional")
    return shares == "whole"


def _check_size(configurations: int) -> None:
    """Raises UsageError if a scheduler's input stands for too many configurations."""
    if configurations > MOST_CONFIGURATIONS:
        words = f"expected {MOST_CONFIGURATIONS:,} at most"
        raise UsageError(f"file and settings stand for {configurations:,} configurations; {words}")


def _importer(
    help: str,
    what: str,
    columns: tuple[Column, ...],
    settings_type: type[SettingsT],
    tables: Callable[[_Reading, SettingsT], Program],
) -> Importer[Any]:
    """An importer of one CSV file with these columns, the input of one scheduler."""

    def build(paths: Sequence[Path], settings: SettingsT, rng: np.random.Generator) -> ResourceAllocation:
        faults = Faults()
        optional = {column.name for column in columns if not column.required}
        table = read_table(paths[0], columns, faults, lacking=optional)
        if table is None:
            raise SourceError(faults.found)
        name = getattr(settings, "name", "") or paths[0].name.split(".")[0]
        return tables(_Reading(table, faults), settings).problem(name)

    listed = ", ".join(column.name + ("" if column.required else "?") for column in columns)
    inputs = (Input("file", f"CSV, {what}: {listed}"),)
    formats = (Format(f"CSV, {what}", of_columns(columns), Use.IGNORED),)
    return Importer(ResourceAllocation.kind, help, inputs, settings_type, build, formats)


_GPUS = integer("gpus", minimum=1, maximum=10**6, help="GPUs")
_GPU_TYPE = label("gpu_type", "gpu_type", help="GPU type")

ALLOX = _importer(
    "AlloX: machine and order of each job, at the least total completion time",
    "one row for each job and machine on which it runs",
    (_JOB, label("machine", "machine", help="machine"), real("seconds", above=True, help="processing time")),
    Named,
    _allox,
)
GANDIVA = _importer(
    "Gandiva: pairs of jobs that share a GPU",
    "one row for each job alone, with an empty other, and for each job next to another",
    (
        _JOB,
        label("other", "job", required=False, help="the job that it shares a GPU with"),
        real("rate", above=True, help="rate of the job there"),
    ),
    Gpus,
    _gandiva,
)
GANDIVA_FAIR = _importer(
    "Gandiva-Fair: trade of fast GPUs for slow ones, where nobody is worse off",
    "one row for each user and GPU type",
    (label("user", "user", help="user"), _GPU_TYPE, real("rate", help="rate on one such GPU")),
    Users,
    _gandiva_fair,
)
POLLUX = _importer(
    "Pollux: sizes of elastic jobs by goodput",
    "one row for each job and size",
    (_JOB, _GPUS, real("goodput", help="goodput on so many GPUs")),
    Nodes,
    _pollux,
)
SIA = _importer(
    "Sia: GPU type and size of each elastic job",
    "one row for each job, type and size",
    (_JOB, _GPU_TYPE, _GPUS, real("goodput", help="goodput on so many GPUs of the type")),
    Types,
    _sia,
)
SINGULARITY = _importer(
    "Singularity: sizes of elastic jobs under service levels",
    "one row for each job",
    (
        _JOB,
        _GPUS,
        real("weight", above=True, default=1.0, required=False, help="worth of a GPU to the job"),
        real("guaranteed", maximum=1, default=0.0, required=False, help="guaranteed fraction of its GPUs"),
    ),
    Levels,
    _singularity,
)
SYNERGY = _importer(
    "Synergy: CPU cores and memory of each job",
    "one row for each job and point that was measured",
    (
        _JOB,
        real("cpu_cores", help="CPU cores"),
        real("memory_gb", default=0.0, required=False, help="memory"),
        real("rate", help="rate of the job there"),
        boolean("fair", default=False, required=False, help="is it the point proportional to the job's GPUs?"),
    ),
    Points,
    _synergy,
)
THEMIS = _importer(
    "Themis: an auction of GPUs among apps, where no false bid gains",
    "one row for each app and number of GPUs",
    (
        label("app", "app", help="app"),
        integer("gpus", maximum=10**6, help="number of GPUs"),
        real("value", help="the app's bid: 1/ρ"),
    ),
    Gpus,
    _themis,
)
