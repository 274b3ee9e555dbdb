"""Requests of clients, decoded and checked."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from sys import intern
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from mast_opt.core.errors import UsageError
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.jobs import job_of
from mast_opt.live.service.problems import Problem
from mast_opt.live.simulation.traces.schema import MOST_MS, REGIONS, SUBMISSIONS
from mast_opt.live.simulation.traces.schema import SCHEMA as TRACE
from mast_opt.problems.job_placement.live_fleet.types import Part
from mast_opt.problems.kind.schema import Column, ColumnType

MOST_BYTES = 8 * 2**20
MOST_JOBS = 10_000
MOST_LIMIT = 1000
"""Jobs or events of one answer."""
MOST_NUMBER = 10**18 - 1
"""Largest whole number in a query."""
MOST_LISTED = 20
"""Faults that are listed."""
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:/@-]{0,251}[A-Za-z0-9])?")
"""Names of what clients make: letters, digits and ``. _ : / @ -`` between them, 253 at most."""
TIERS = range(10)
"""Tiers that a live loop has; 0 is the most important."""

_PRICE = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?")
_END = r"$(?!\n)"
"""The end of a text, also where a pattern takes the end of its last line for one."""
_CARRIED = r"(?!.*/\.{0,2}(?:/|$))(?!.*/explain$)"
"""Names that an address leaves as they are, and no route takes for its own."""
PATTERN = f"^{_CARRIED}(?:{NAME.pattern}){_END}"

_CARRIED_NAME = re.compile(PATTERN)

Name = Annotated[str, Meta(min_length=1, max_length=253, pattern=PATTERN)]
NoName = Annotated[str, Meta(max_length=253, pattern=f"^{_CARRIED}(?:{NAME.pattern})?{_END}")]
"""A name, or nothing."""
Names = Annotated[tuple[Name, ...], Meta(max_length=1000)]
MOST = 10**9
"""The most of any unit."""


def _type(column: Column) -> Any:  # noqa: ANN401 - a type for msgspec
    """Type that a cell's JSON value in a request has to have."""
    if column.type is ColumnType.LABEL:
        return NoName
    if column.type is ColumnType.CHOICE:
        return Literal[column.choices]
    if column.type is ColumnType.BOOLEAN:
        return bool
    least, most = max(column.minimum, 0), MOST if column.maximum is None else column.maximum
    if column.type is ColumnType.INTEGER:
        return Annotated[int, Meta(ge=int(least), le=int(min(most, MOST)), description=column.help)]
    most = min(MOST, most / column.scale)
    return Annotated[float, Meta(ge=least / column.scale, le=most, description=column.help)]


def _default(column: Column) -> Any:  # noqa: ANN401 - of the column's type
    """Default of a request's field, as its column declares it."""
    if column.type is ColumnType.CHOICE:
        return column.choices[int(column.default or 0)]
    if column.default is None:
        return "" if column.type is ColumnType.LABEL else None
    return column.default / column.scale if column.type is ColumnType.QUANTITY else column.default


def _field(column: Column, *default: object) -> tuple[Any, ...]:
    """A field of a request as a column declares it. ``default`` stands for one that files have to state."""
    if column.required and not default:
        return column.name, _type(column)
    stands = default[0] if default else _default(column)
    return column.name, _type(column) | None if stands is None else _type(column), stands


def _request(name: str, words: str, *fields: tuple[Any, ...]) -> type[Struct]:
    """Class of request bodies with these fields; any other field is refused."""
    options: dict[str, Any] = {"frozen": True, "forbid_unknown_fields": True, "kw_only": True}
    return msgspec.defstruct(name, fields, namespace={"__doc__": words}, module=__name__, **options)


_JOB_DEFAULTS = {"tier": 3, "tasks": 1, "gpus": 1.0}
_JOB_LIMITS = {"tier": (TIERS[0], TIERS[-1]), "tasks": (1, 1_000_000), "duration_s": (0, MOST_MS)}
"""Limits of columns where a live loop takes less than a trace, or a job that ends at once."""
PART_COLUMNS = tuple(one for one in TRACE.table("job_parts").columns if one.name not in ("job", "part"))
_NOT_ASKED = ("job", "submitted_s", "home_region", "min_tasks", "max_tasks", "model", "steps")
JOB_COLUMNS = tuple(
    replace(column, minimum=_JOB_LIMITS[column.name][0], maximum=_JOB_LIMITS[column.name][1])
    if column.name in _JOB_LIMITS
    else column
    for column in SUBMISSIONS.columns
    if column.name not in _NOT_ASKED
)
SERVER_COLUMNS = tuple(TRACE.table("servers").column(name) for name in ("gpus", "cpu_cores", "memory_gb"))
SIZE, STORAGE = TRACE.table("datasets").column("size_tb"), REGIONS.column("storage_tb")
INGRESS = REGIONS.column("ingress_tb_per_day")
QUOTA, BORROWING, LENDING = (TRACE.table("quotas").column(f) for f in ("gpus", "borrowing_limit", "lending_limit"))
GPUS_ON_TYPE = TRACE.table("job_gpu_types").column("gpus")
_GPUS_ON_TYPE = _type(GPUS_ON_TYPE)

_GPU_TYPES = "gpu_types", Annotated[dict[Name, _GPUS_ON_TYPE], Meta(max_length=100)] | None, None  # type: ignore[valid-type]

PartRequest = _request(
    "PartRequest",
    "A part of a job of several parts, which run together or not at all. Needs are those of one task.",
    ("part", Name),
    *(_field(one, *((_JOB_DEFAULTS.get(one.name, 0.0),) if one.required else ())) for one in PART_COLUMNS),
    _GPU_TYPES,
)
JobRequest = _request(
    "JobRequest",
    "A job. Needs are those of one task; a job of several parts has none itself.",
    ("job", Name),
    *(_field(one, *((_JOB_DEFAULTS[one.name],) if one.name in _JOB_DEFAULTS else ())) for one in JOB_COLUMNS),
    _GPU_TYPES,
    ("datasets", Names, ()),
    ("parts", Annotated[tuple[PartRequest, ...], Meta(max_length=100)], ()),  # type: ignore[valid-type]
)
ServerRequest = _request(
    "ServerRequest",
    "A server: in service or not, and what it is. What is not given stays as it is.",
    ("state", Literal["up", "down"]),
    *((name, Name | None, None) for name in ("region", "cluster", "rack", "gpu_type")),
    *(_field(column, None) for column in SERVER_COLUMNS),
    ("why", Annotated[str, Meta(max_length=1000)], ""),
)
QuotaRequest = _request(
    "QuotaRequest",
    "GPUs of a tenant, or of a group of tenants, of one type or of all; null for no limit. Without limits it borrows "
    "what is free, and lends all. The group above it stays as it is where it is not given; none if it is empty.",
    ("gpus", _type(QUOTA) | None),
    ("gpu_type", NoName, ""),
    *(_field(column, None) for column in (BORROWING, LENDING)),
    ("parent", NoName | None, None),
)
DatasetRequest = _request(
    "DatasetRequest",
    "A dataset, the regions that hold it whole, and the only ones where it may be copied and read (residency; empty "
    "for any). What is not given stays as it is.",
    ("regions", Names),
    ("residency", Names | None, None),
    _field(SIZE, None),
    ("namespace", NoName | None, None),
)
DrainRequest = _request(
    "DrainRequest",
    "A server, a rack or a cluster takes no job more (closed), or takes jobs again (open). What runs there goes on "
    "until it has ended, or is stopped after a time, and then waits for another place.",
    ("of", Literal["server", "rack", "cluster"]),
    ("name", Annotated[str, Meta(min_length=1, max_length=253)]),
    ("state", Literal["closed", "open"]),
    ("stop_after_s", Annotated[float, Meta(ge=0, le=MOST_MS / 1000)] | None, None),
    ("why", Annotated[str, Meta(max_length=1000)], ""),
)
RegionRequest = _request("RegionRequest", "What a region can store.", ("storage_tb", _type(STORAGE)))


_IngressTb = Annotated[float, Meta(ge=0, le=MOST)]


class SolveRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """A plan for data or servers as they are now."""

    path: Literal["data", "servers"]
    solver: Literal["auto", "tetris", "ras", "highs", "cpsat"] | None = None
    """Solver; unless given, the one of the path: ``tetris`` or ``ras``."""
    time_limit_s: Annotated[float, Meta(ge=1, le=86_400)] = 300.0
    gap: Annotated[float, Meta(ge=0, le=1)] = 1e-4
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    threads: Annotated[int, Meta(ge=1, le=64)] = 1
    copy_days: Annotated[int, Meta(ge=1, le=30)] = 4
    """Time for the copies of a plan of data."""
    copies_min: Annotated[int, Meta(ge=1, le=100)] = 2
    """Replicas of what was read in the last seven days, as far as there is room."""
    ingress_tb_per_day: Annotated[dict[Name, _IngressTb], Meta(max_length=1000)] = {}
    """Region → what copies may bring in a day; a region that is not there has no limit."""
    from_plan: Annotated[str, Meta(max_length=100)] = ""
    """Earlier plan of the path from which the solve goes on, a few rounds where little has changed."""


BodyT = TypeVar("BodyT")
_LIST = msgspec.json.Decoder(Annotated[list[msgspec.Raw], Meta(max_length=MOST_JOBS)])


def decoded(body: bytes, kind: type[BodyT], what: str = "the body") -> BodyT:
    """A body of JSON. Raises Problem: 400 for what is no JSON, 422 for the wrong fields or values."""
    try:
        found = msgspec.json.decode(body, type=kind)
        _PLAIN.decode(body.decode())
    except (msgspec.ValidationError, _Twice) as error:
        raise Problem(422, "fault", f"{what}: {error}") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Problem(400, "no-json", f"{what} is no JSON: {error}") from None
    return found


def fields_in(body: bytes, kind: type[Struct], what: str = "the body") -> dict[str, Any]:
    """The fields of a body of JSON, see ``decoded``."""
    return msgspec.structs.asdict(decoded(body, kind, what))


class _Twice(Exception):
    """An object of JSON that has a key twice: which value is meant is not known."""


def _each_once(pairs: list[tuple[str, Any]]) -> None:
    """Refuse a JSON object of a request that has a key twice."""
    names = {name for name, _ in pairs}
    if len(names) < len(pairs):
        name = next(name for at, (name, _) in enumerate(pairs) if name in dict(pairs[:at]))
        raise _Twice(f"{name[:60]!r} is there twice; expected each key once")


_PLAIN = json.JSONDecoder(object_pairs_hook=_each_once)


@lru_cache(4096)
def base_units(column: Column, value: float | None) -> int | None:
    """A number of a request in base units, None for none; equal ones are one object. Raises Problem."""
    try:
        return None if value is None else column.in_base_units(value)
    except ValueError as error:
        raise Problem(422, "fault", str(error)) from None


def jobs_in(body: bytes) -> tuple[list[tuple[str, JobSpec]], bool]:
    """The jobs of a body, and whether it was a list. Raises Problem with every fault."""
    many = body.lstrip()[:1] == b"["
    if not many:
        one = fields_in(body, JobRequest)
        return [(one["job"], spec_of(one))], False
    try:
        parts = _LIST.decode(body)
    except msgspec.ValidationError as error:
        raise Problem(413, "too-many", f"a list of jobs: {error}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise Problem(400, "no-json", f"the body is no JSON: {error}") from None
    found, faults = [], []
    for number, part in enumerate(parts):
        try:
            one = fields_in(bytes(part), JobRequest, f"job {number}")
            found.append((one["job"], spec_of(one)))
        except Problem as problem:
            faults.append(problem.detail)
    if faults:
        more = len(faults) - MOST_LISTED
        listed = [*faults[:MOST_LISTED], *([f"and {more:,} more"] if more > 0 else [])]
        raise Problem(422, "fault", f"{len(faults):,} of {len(parts):,} jobs have faults", faults=listed)
    return found, True


def spec_of(asked: Mapping[str, Any]) -> JobSpec:
    """Specification of the job that a request describes; equal ones are checked once. Raises Problem."""
    if asked["parts"]:
        return _checked(asked)
    kinds = asked["gpu_types"]
    key = tuple([asked[name] for name in _ASKED]), None if kinds is None else tuple(kinds.items()), asked["datasets"]
    known = _SPECS.get(key)
    if known is None:
        if len(_SPECS) == MOST_SPECS:
            _SPECS.clear()
        known = _SPECS[key] = _checked(asked)
    return known


_ASKED = tuple(column.name for column in JOB_COLUMNS)
MOST_SPECS = 4096
"""Specifications that are kept, so that equal ones need no check."""
_SPECS: dict[tuple[object, ...], JobSpec] = {}


def _checked(asked: Mapping[str, Any]) -> JobSpec:
    """Specification of the job that a request describes. Raises Problem."""
    found = _in_base_units(JOB_COLUMNS, asked)
    if found["preemptible"] is None:
        found["preemptible"] = asked["tier"] > 0
    for name in ("tenant", "workload", "namespace"):
        found[name] = intern(found[name])  # as many jobs as there are, few of these
    try:
        parts = tuple(_part(msgspec.structs.asdict(one)) for one in asked["parts"])
        spec = JobSpec(**found, datasets=tuple(dict.fromkeys(asked["datasets"])), parts=parts)
        job_of(asked["job"], spec)
    except UsageError as error:
        raise Problem(422, "fault", str(error)) from None
    return spec


def _in_base_units(columns: Iterable[Column], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a job of a request, or of a part of one, that columns describe, and its GPU types. Raises Problem."""
    found: dict[str, Any] = {}
    for column in columns:
        value = asked[column.name]
        found[column.attribute] = base_units(column, value) if column.type is ColumnType.QUANTITY else value
    if asked["gpu_types"] is not None:
        found["gpu_types"] = {name: base_units(GPUS_ON_TYPE, gpus) for name, gpus in asked["gpu_types"].items()}
    return found


def _part(asked: Mapping[str, Any]) -> Part:
    """Part of the job that a request describes. Raises Problem, UsageError."""
    needs = _in_base_units(PART_COLUMNS, asked)
    names = {"gpus": "mgpu", "cpu_cores": "cpu_mcores", "memory_gb": "memory_mib"}
    return Part(asked["part"], **{names.get(name, name): value for name, value in needs.items()})


def name_in(path: Mapping[str, Any], what: str) -> str:
    """A name in the path of a request. Raises Problem."""
    name = str(path[what])
    fits = NAME.fullmatch(name) if what == "job" else _CARRIED_NAME.match(name)  # jobs of hosts may have others
    if not fits:
        raise Problem(422, "fault", f"{what} is {name[:60]!r}; expected letters, digits and . _ : / @ - between them")
    return name


def prices_in(text: str) -> dict[str, float]:
    """Prices of a GPU-hour by GPU type, from ``TYPE:PRICE,…``. Raises Problem."""
    found = dict[str, float]()
    for part in text.split(","):
        name, _, number = part.rpartition(":")
        if not name or name in found or not _PRICE.fullmatch(number):
            raise Problem(422, "fault", f"prices is {text[:60]!r}; expected TYPE:PRICE,…, with each type once")
        found[name] = float(number)
    return found
