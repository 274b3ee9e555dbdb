"""``sacct --json``: an object with a list of jobs. Later versions of Slurm wrap numbers and list states."""

from collections.abc import Mapping
from typing import Any

from mast_opt.live.simulation.traces.slurm.records import MOST, SacctRow, Stage, stage_of
from mast_opt.planner.io.faults import Faults, shortened
from mast_opt.planner.io.readers.base import Number
from mast_opt.planner.io.readers.json_file import parse_object

LATEST_S = 10**12
"""A time in seconds that no clock shows."""
NO_TIME_S = 4_294_967_294
"""Value that Slurm writes for a missing time."""
LISTED = 20
MINUTE_S = 60


class _Wrong(Exception):
    """A value that does not fit; the arguments are where it is, the value, and what was expected."""


def rows_in_json(data: bytes, file: str, faults: Faults) -> list[SacctRow]:
    """The rows of jobs in ``sacct --json``; faults say what is wrong with them, by the way to the value."""
    content = parse_object(data, file, "an object with a list of jobs", faults)
    if content is None:
        return []
    jobs = content.get("jobs")
    if not isinstance(jobs, list):
        faults.add(f"{file}: jobs", "a list of jobs, as sacct --json writes it")
        return []
    found: list[SacctRow] = []
    wrong = 0
    for row, job in enumerate(jobs, start=1):
        try:
            found.append(_job(row, job))
        except _Wrong as fault:
            place, value, expected = fault.args
            wrong += 1
            if wrong <= LISTED:
                faults.add(f"{file}: jobs[{row - 1}]{place}", expected, value=shortened(repr(value)))
    return found


def _job(row: int, job: object) -> SacctRow:
    """Row of Slurm's accounting from one job of ``sacct --json``. Raises _Wrong."""
    if not isinstance(job, dict):
        raise _Wrong("", job, "an object")
    end, start = _number(job, "time", "end"), _number(job, "time", "start")
    return SacctRow(
        row=row,
        name=_name(job),
        submitted_s=_number(job, "time", "submission"),
        elapsed_s=_number(job, "time", "elapsed"),
        ended_s=end if end else None,
        stage=_stage(job),
        partition=_text(job, "partition").split(",")[0],
        nodes=_number(job, "allocation_nodes"),
        requested=_resources(job, "requested"),
        allocated=_resources(job, "allocated"),
        account=_text(job, "account"),
        user=_text(job, "user"),
        qos=_text(job, "qos"),
        started_s=start if 0 < start < NO_TIME_S else None,
        limit_s=_limit_s(job),
        restarts=_number(job, "restart_cnt") if job.get("restart_cnt") is not None else 0,
    )


def _stage(job: Mapping[str, Any]) -> Stage | None:
    """Stage of a job in ``sacct --json``: Slurm 22.05 writes a state, later versions a list of a state and
    its flags.
    """
    state = job.get("state")
    current = state.get("current") if isinstance(state, dict) else None
    states = current if isinstance(current, list) else [] if current is None else [current]
    if not all(isinstance(one, str) for one in states):
        raise _Wrong(".state.current", current, "a state, or a list of states")
    try:
        return stage_of(states)
    except ValueError:
        raise _Wrong(".state.current", current, "states of Slurm such as COMPLETED") from None


def _name(job: Mapping[str, Any]) -> str:
    """Job's name as ``sacct`` prints it: tasks of an array and parts of a heterogeneous job have numbers of their
    own."""
    number = _number(job, "job_id")
    for kind, at, mark in (("array", "task_id", "_"), ("het", "job_offset", "+")):
        part = job.get(kind)
        if isinstance(part, dict) and isinstance(part.get("job_id"), (Number, dict)):
            whole, place = _number(part, "job_id"), part.get(at)
            if whole and _is_set(place):
                return f"{whole}{mark}{_number(part, at)}"
    return str(number)


def _limit_s(job: Mapping[str, Any]) -> int | None:
    """Time limit of a job in ``sacct --json``, s; None for no limit, or for that of the partition."""
    value = job["time"].get("limit")
    if value is None or (isinstance(value, dict) and not _is_set(value)):
        return None
    return _number(job, "time", "limit") * MINUTE_S


def _is_set(value: object) -> bool:
    """Whether a number in ``sacct --json`` is set; later versions of Slurm say so in an object."""
    return value.get("set") is True if isinstance(value, dict) else isinstance(value, Number)


def _number(job: Mapping[str, Any], *way: str) -> int:
    """A whole number of a ``sacct --json`` record, plain or as an object with the key ``number``."""
    place = "".join(f".{key}" for key in way)
    value: Any = job
    for key in way:
        value = value.get(key) if isinstance(value, dict) else None
    found = value.get("number") if isinstance(value, dict) else value
    if not isinstance(found, Number) or not (found.isascii() and found.isdigit()) or int(found[:20]) > LATEST_S:
        raise _Wrong(place, value, "a whole number")
    return int(found)


def _text(job: Mapping[str, Any], key: str) -> str:
    """Text of a field of a ``sacct --json`` record; empty if it has none. Raises _Wrong."""
    value = job.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or isinstance(value, Number) or not value.isprintable():
        raise _Wrong(f".{key}", value, "text")
    return value.strip()


def _resources(job: Mapping[str, Any], which: str) -> dict[str, int]:
    """Resources (TRES) of a ``sacct --json`` record, requested or allocated. Raises _Wrong."""
    tres = job.get("tres")
    listed = tres.get(which) if isinstance(tres, dict) else None
    if not isinstance(listed, list):
        raise _Wrong(f".tres.{which}", listed, "a list of resources")
    found: dict[str, int] = {}
    for at, one in enumerate(listed):
        if not isinstance(one, dict) or not isinstance(one.get("type"), str):
            raise _Wrong(f".tres.{which}[{at}]", one, "an object with type, name and count")
        if one["type"] not in ("cpu", "mem", "node", "gres"):
            continue  # energy has a count that says nothing
        name = f"{one['type']}/{one.get('name')}" if one.get("name") else one["type"]
        try:
            count = _number(one, "count")
        except _Wrong as fault:
            raise _Wrong(f".tres.{which}[{at}]{fault.args[0]}", *fault.args[1:]) from None
        if count > MOST:
            raise _Wrong(f".tres.{which}[{at}].count", count, f"at most {MOST:,}")
        found[name] = found.get(name, 0) + count
    return found
