"""Logs of the Parallel Workloads Archive, in the Standard Workload Format (version 2.2), as a trace of jobs.

A line for each job, 18 numbers between blanks, −1 where a number is not known; comments begin with a semicolon, and
those at the top (``; MaxProcs: 128``) describe the machine.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import SourceError, UsageError
from mast_opt.core.units import MILLI
from mast_opt.live.simulation.traces.schema import KIND, MOST_S
from mast_opt.live.simulation.traces.tables import Given, TraceTables, places, trace_tables
from mast_opt.planner.importers.base import Importer, Input, setting
from mast_opt.planner.importers.fields import Field
from mast_opt.planner.importers.notices import warn
from mast_opt.planner.importers.traces.csv_table import content_of
from mast_opt.planner.io.faults import Faults, shortened
from mast_opt.problems.job_placement.units import MOST_GPUS

Floats = NDArray[np.float64]

NAMES = (
    *("job number", "submit time", "wait time", "run time", "allocated processors", "average CPU time", "used memory"),
    *("requested processors", "requested time", "requested memory", "status", "user", "group", "application", "queue"),
    *("partition", "preceding job", "think time"),
)
"""The 18 fields of a line, in order."""
UNREAD = (
    Field("queue", "all jobs have one tier"),
    Field("partition", "the machine is one region: sizes of partitions are not in the format"),
    Field("preceding job", "jobs of a trace depend on nothing"),
)
"""Fields of which a warning says that they are not read."""
_AT = {name: at for at, name in enumerate(NAMES)}
_COMMENT = re.compile(r";\s*([A-Za-z]+)\s*:\s*(.*?)\s*")
PARTS = (2, 3, 4)
"""Statuses of lines for parts of a job: to be continued, the last and completed, the last and failed."""
CANCELLED = 5
STATUSES = (-1, 0, 1, *PARTS, CANCELLED)
MOST_NODES = 1_000_000
KB_PER_MIB = 1024
SIZES, WHAT, TENANTS = ("allocated", "requested"), ("cores", "gpus"), ("user", "group", "none")


@dataclass(frozen=True)
class SwfSettings:
    """The knobs of the importer."""

    sizes: str = setting(
        "allocated", "which processors count: allocated or requested; the other where one is not known"
    )
    become: str = setting("cores", "what processors become: cores, or gpus for policies that look at GPUs only")
    tenant: str = setting("user", "who a job counts to: user, group or none")
    nodes: int = setting(0, "servers; 0 = MaxNodes of the header")
    processors: int = setting(0, "processors of all servers; 0 = MaxProcs of the header")
    name: str = setting("", "of the trace; empty = that of the file")

    def __post_init__(self) -> None:
        for name, known in (("sizes", SIZES), ("become", WHAT), ("tenant", TENANTS)):
            if getattr(self, name) not in known:
                raise UsageError(f"setting {name} is {getattr(self, name)!r}; expected {' or '.join(known)}")
        for name in ("nodes", "processors"):
            if getattr(self, name) < 0:
                raise UsageError(f"setting {name} is {getattr(self, name)}; expected 0 or more")


@dataclass(frozen=True, eq=False)
class _Log:
    """Content of a log file."""

    file: str
    header: Mapping[str, str]
    lines: NDArray[np.int64]
    """[jobs] lines in the file, from 1."""
    numbers: Floats
    """[jobs, 18]"""

    def column(self, name: str) -> Floats:
        """Values of a field in every line of an SWF log."""
        found: Floats = self.numbers[:, _AT[name]]
        return found

    def only(self, rows: NDArray[np.bool_]) -> "_Log":
        """The SWF log with these lines alone."""
        return _Log(self.file, self.header, self.lines[rows], self.numbers[rows])


def swf(paths: Sequence[Path], settings: SwfSettings, rng: np.random.Generator) -> TraceTables:
    """The trace of an SWF log. Nothing is drawn. Raises SourceError."""
    faults = Faults()
    log = _read(paths[0], faults)
    if log is None or faults:
        raise SourceError(faults.found)
    _check(log, faults)
    machine = _machine(log, settings, faults)
    if faults:
        raise SourceError(faults.found)
    whole = log.only(_whole(log))
    size = _size(whole, settings.sizes)
    ran = (
        (whole.column("run time") >= 0)
        & (size > 0)
        & ~((whole.column("status") == CANCELLED) & (whole.column("run time") == 0))
    )
    if not ran.any():
        faults.add(log.file, "at least one job with a run time and a number of processors")
        raise SourceError(faults.found)
    _warn(log, whole)
    kept, size = whole.only(ran), size[ran].astype(np.int64)
    tables = {**_servers(machine, settings), "submissions": _jobs(kept, size, machine, settings)}
    left = (
        f"; left out: {len(ran) - len(size):,} that never ran, or of which nobody knows how long"
        if len(size) < len(ran)
        else ""
    )
    begun = log.header.get("UnixStartTime", "")
    since = f", second 0 is {begun} since 1970" if begun else ""
    machine_name = log.header.get("Computer") or log.file
    provenance = f"{machine_name}, a log in the Standard Workload Format{since}: {len(size):,} jobs{left}"
    return trace_tables(settings.name or log.file.split(".")[0], provenance, tables)


def _read(path: Path, faults: Faults) -> _Log | None:
    """The lines of an SWF log, and its header; None, with a fault, if the file cannot be read."""
    data = content_of(path, faults)
    if data is None:
        return None
    header: dict[str, str] = {}
    rows: list[list[float]] = []
    lines: list[int] = []
    wrong: list[int] = []
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        text = line.strip()
        if text.startswith(";"):
            found = _COMMENT.fullmatch(text)
            if found is not None and not rows:
                header.setdefault(found[1], found[2])
        elif text:
            try:
                row = [float(part) for part in text.split()]
            except ValueError:
                row = []
            if len(row) != len(NAMES) or not all(map(math.isfinite, row)):
                wrong.append(number)
            else:
                rows.append(row)
                lines.append(number)
    shown = data.decode("utf-8", "replace").splitlines() if wrong else []
    expected = f"{len(NAMES)} numbers between blanks, as in the Standard Workload Format"
    faults.cells(path.name, None, np.array(wrong, np.int64), lambda n: shortened(shown[wrong[n] - 1]), expected)
    if not rows and not faults:
        faults.add(path.name, "at least one line with a job")
    return _Log(path.name, header, np.array(lines, np.int64), np.array(rows, np.float64).reshape(-1, len(NAMES)))


def _check(log: _Log, faults: Faults) -> None:
    """Note faults of an SWF log: times and numbers out of range, jobs that are there twice."""

    def cells(name: str, bad: NDArray[np.bool_], expected: str) -> None:
        rows, values = log.lines[bad], log.column(name)[bad]
        faults.cells(log.file, name, rows, lambda n: f"{values[n]:g}", expected)

    for name in ("submit time", "run time"):
        least = 0 if name == "submit time" else -1
        values = log.column(name)
        cells(name, (values < least) | (values > MOST_S), f"seconds from {least} to {MOST_S:,}")
    for name in ("job number", "allocated processors", "requested processors", "status"):
        values = log.column(name)
        cells(name, (values != np.floor(values)) | (values < -1) | (values > 2**31), "a whole number, or −1")
    numbers = log.column("job number")[_whole(log)]
    once, counts = np.unique(numbers, return_counts=True)
    cells("job number", np.isin(log.column("job number"), once[counts > 1]) & _whole(log), "each job once")


def _whole(log: _Log) -> NDArray[np.bool_]:
    """Lines of an SWF log that are whole jobs; each line of a part belongs to one with the sums."""
    return ~np.isin(log.column("status"), PARTS)


def _size(log: _Log, sizes: str) -> Floats:
    """Processors of each line of an SWF log: as ``sizes`` says, the others where that is not stated."""
    first, other = (log.column(f"{name} processors") for name in (sizes, *(one for one in SIZES if one != sizes)))
    return np.where(first > 0, first, other)


@dataclass(frozen=True)
class _Machine:
    """Servers as equal as can be."""

    nodes: int
    processors: int
    memory_mib: int
    """Memory of a node; 0 where it does not count."""

    @property
    def each(self) -> int:
        """Processors that every node of the machine has."""
        return self.processors // self.nodes


def _machine(log: _Log, settings: SwfSettings, faults: Faults) -> _Machine:
    """The machine of an SWF log by its header or the settings: nodes, processors, memory."""

    def stated(name: str) -> int:
        text = log.header.get(name, "").split(" ")[0].replace(",", "")
        if text in ("", "-1"):
            return 0
        if not text.isascii() or not text.isdigit() or len(text) > 15:
            faults.add(log.file, "a whole number", column=name, value=log.header[name])
            return 0
        return int(text)

    nodes = settings.nodes or stated("MaxNodes")
    processors = settings.processors or stated("MaxProcs") or nodes
    nodes = nodes or processors
    if not nodes:
        faults.add(log.file, "a comment MaxNodes or MaxProcs; or give nodes and processors as settings")
    elif nodes > min(MOST_NODES, processors) or processors > nodes * MOST_GPUS:
        expected = f"1 to {MOST_NODES:,} nodes, each with 1 to {MOST_GPUS:,} processors"
        faults.add(log.file, expected, column="MaxNodes", value=f"{nodes} nodes, {processors} processors")
    return _Machine(max(nodes, 1), max(processors, 1), stated("MaxMemory") // KB_PER_MIB)


def _servers(machine: _Machine, settings: SwfSettings) -> dict[str, Mapping[str, Given]]:
    """Tables of the nodes of an SWF machine as servers."""
    each = np.full(machine.nodes, machine.each, np.int64)
    each[: machine.processors % machine.nodes] += 1
    gpus = settings.become == "gpus"
    return places(
        ["machine"],
        [f"node-{number}" for number in range(1, machine.nodes + 1)],
        ["machine"] * machine.nodes,
        each * gpus,
        gpu_type=["processor" if gpus else ""] * machine.nodes,
        cpu_mcores=each * MILLI * (not gpus),
        memory_mib=np.full(machine.nodes, machine.memory_mib, np.int64),
    )


def _jobs(log: _Log, size: NDArray[np.int64], machine: _Machine, settings: SwfSettings) -> dict[str, Given]:
    """Jobs of an SWF log: each on one node where it fits there, else on parts of nodes that are all alike."""
    task = np.where(size <= machine.each, size, np.gcd(size, machine.each))
    gpus = settings.become == "gpus"
    asked, used = log.column("requested memory"), log.column("used memory")
    memory_kb = np.maximum(np.where(asked > 0, asked, used), 0) * task
    nothing = np.zeros(len(size), np.int64)
    submitted, asked_s = log.column("submit time"), log.column("requested time")
    duration_ms = np.maximum(np.round(log.column("run time") * MILLI).astype(np.int64), 1)
    limit_ms = np.maximum(np.round(asked_s * MILLI).astype(np.int64), duration_ms)
    return {
        "job": [f"{number:.0f}" for number in log.column("job number").tolist()],
        "submitted_s": np.round((submitted - submitted.min()) * MILLI).astype(np.int64),
        "tier": np.ones(len(size), np.int64),
        "tasks": size // task,
        "gpus": task * MILLI if gpus else nothing,
        "cpu_cores": nothing if gpus else task * MILLI,
        "memory_gb": np.ceil(memory_kb / KB_PER_MIB).astype(np.int64) if machine.memory_mib else nothing,
        "duration_s": duration_ms,
        "limit_s": np.where(asked_s > 0, limit_ms, -1),
        "tenant": _labels(log, settings.tenant, settings.tenant),
        "workload": _labels(log, "application", "app"),
        "home_region": ["machine"] * len(size),
    }


def _labels(log: _Log, field: str, word: str) -> list[str]:
    """Labels of a field of an SWF log, such as users; empty where none is stated."""
    if field not in _AT:
        return [""] * len(log.lines)
    return [f"{word}-{number:.0f}" if number >= 0 else "" for number in log.column(field).tolist()]


def _warn(log: _Log, whole: _Log) -> None:
    """Warn of what an SWF log says and a trace does not hold."""
    say = partial(warn, log.file)
    for field in UNREAD:
        values = whole.column(field.name)
        differ = field.name in ("queue", "partition") and len(np.unique(values[values >= 0])) < 2
        if (values >= 0).any() and not differ:
            lines = whole.lines[values >= 0]
            say(
                f"this field is not read: {field.help}",
                column=field.name,
                row=int(lines[0]),
                values=values[values >= 0].tolist(),
            )
    parts = log.column("job number")[~_whole(log)]
    if len(parts):
        say(
            "a line for a part of a job (status 2, 3 or 4) is left out; the line of the whole job counts",
            values=[f"{parts[0]:.0f}"] * len(parts),
        )
    alone = np.setdiff1d(parts, whole.column("job number"))
    if len(alone):
        say(
            "this job has lines for its parts and none for the whole: it is left out",
            values=[f"{one:.0f}" for one in alone.tolist()],
        )
    odd = ~np.isin(whole.column("status"), STATUSES)
    if odd.any():
        say(
            "this status is not in the definition; the job counts if it ran",
            column="status",
            values=[f"{one:g}" for one in whole.column("status")[odd].tolist()],
        )
    if np.any(np.diff(whole.column("submit time")) < 0):
        say("lines are not in the order of submit times, as the format wants them", column="submit time")
    memory = (whole.column("requested memory") > 0) | (whole.column("used memory") > 0)
    if memory.any() and "MaxMemory" not in log.header:
        say("jobs state memory, and the header has no MaxMemory: memory does not count", column="requested memory")


SWF = Importer(
    kind=KIND,
    help="a trace of jobs from a log in the Standard Workload Format of the Parallel Workloads Archive",
    inputs=(Input("log", "the log, .swf or .swf.gz"),),
    settings_type=SwfSettings,
    build=swf,
)
