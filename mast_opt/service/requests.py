"""What clients send, and what of it is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from mast_opt.core.errors import UsageError
from mast_opt.job_placement.live_fleet.types import Job
from mast_opt.job_placement.units import WHOLE
from mast_opt.loop.events import JobSpec
from mast_opt.service.problems import Problem

MOST_BYTES = 8 * 2**20
MOST_JOBS = 10_000
MOST_LIMIT = 1000
"""Jobs or events of one answer."""
MOST_LISTED = 20
"""Faults that are listed."""
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:/@-]{0,251}[A-Za-z0-9])?")
"""Names of what clients make: letters, digits and ``. _ : / @ -`` between them, 253 at most."""
TIERS = range(10)
"""Tiers that a live loop has; 0 is the most important."""

_END = r"$(?!\n)"
"""The end of a text, also where a pattern takes the end of its last line for one."""
PATTERN = f"^(?:{NAME.pattern}){_END}"

Name = Annotated[str, Meta(min_length=1, max_length=253, pattern=PATTERN)]
NoName = Annotated[str, Meta(max_length=253, pattern=f"^(?:{NAME.pattern})?{_END}")]
"""A name, or nothing."""
Names = Annotated[tuple[Name, ...], Meta(max_length=1000)]
Whole = Annotated[int, Meta(ge=0, le=10**9)]
Amount = Annotated[float, Meta(ge=0, le=1e9)]


class JobRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """A job. Needs are those of one task."""

    job: Name
    tier: Annotated[int, Meta(ge=TIERS[0], le=TIERS[-1])] = 3
    tasks: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    gpus: Amount = 1.0
    """Whole GPUs, or less than one in thousandths."""
    cpu_cores: Amount = 0.0
    memory_gb: Amount = 0.0
    gpu_types: Annotated[dict[Name, Amount], Meta(max_length=100)] | None = None
    """Types that it accepts, and GPUs of a task on each."""
    datasets: Names = ()
    within: Literal["server", "rack", "cluster"] = "cluster"
    prefer: Literal["server", "rack", "cluster"] = "server"
    tenant: NoName = ""
    preemptible: bool | None = None
    """Whether more important work may stop it; unless given, jobs of every tier but 0 may be stopped."""
    checkpoint_s: Amount = 0.0
    restart_s: Amount = 0.0
    duration_s: Amount | None = None
    workload: NoName = ""
    namespace: NoName = ""


class ServerRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """A server: in service or not, and, if it is new, what it is."""

    state: Literal["up", "down"]
    region: Name | None = None
    cluster: Name | None = None
    rack: Name | None = None
    gpu_type: Name | None = None
    gpus: Whole | None = None
    cpu_cores: Amount = 0.0
    memory_gb: Amount = 0.0
    why: Annotated[str, Meta(max_length=1000)] = ""


class QuotaRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """GPUs of a tenant; null for no limit."""

    gpus: Amount | None


class DatasetRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """A dataset, and the regions that hold it whole."""

    regions: Names
    size_tb: Amount = 0.0
    namespace: NoName = ""


class RegionRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """What a region can store."""

    storage_tb: Amount


class SolveRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """A plan for data or servers as they are now."""

    path: Literal["data", "servers"]
    solver: Literal["auto", "tetris", "ras", "highs", "cpsat"] | None = None
    """Unless given, the one of the path: ``tetris`` or ``ras``."""
    time_limit_s: Annotated[float, Meta(ge=1, le=86_400)] = 300.0
    gap: Annotated[float, Meta(ge=0, le=1)] = 1e-4
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    threads: Annotated[int, Meta(ge=1, le=64)] = 1
    copy_days: Annotated[int, Meta(ge=1, le=30)] = 4
    """Time for the copies of a plan of data."""
    copies_min: Annotated[int, Meta(ge=1, le=100)] = 2
    """Replicas of what was read in the last seven days, as far as there is room."""
    ingress_tb_per_day: Annotated[dict[Name, Amount], Meta(max_length=1000)] = {}
    """Region → what copies may bring in a day; a region that is not there has no limit."""


BodyT = TypeVar("BodyT")
_LIST = msgspec.json.Decoder(Annotated[list[msgspec.Raw], Meta(max_length=MOST_JOBS)])


def decoded(body: bytes, kind: type[BodyT], what: str = "the body") -> BodyT:
    """A body of JSON. Raises Problem: 400 for what is no JSON, 422 for the wrong fields or values."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise Problem(422, "fault", f"{what}: {error}") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Problem(400, "no-json", f"{what} is no JSON: {error}") from None


def jobs_in(body: bytes) -> tuple[list[tuple[str, JobSpec]], bool]:
    """The jobs of a body, and whether it was a list. Raises Problem with every fault."""
    many = body.lstrip()[:1] == b"["
    if not many:
        one = decoded(body, JobRequest)
        return [(one.job, spec_of(one))], False
    try:
        parts = _LIST.decode(body)
    except msgspec.ValidationError as error:
        raise Problem(413, "too-many", f"a list of jobs: {error}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise Problem(400, "no-json", f"the body is no JSON: {error}") from None
    found, faults = [], []
    for number, part in enumerate(parts):
        try:
            one = decoded(bytes(part), JobRequest, f"job {number}")
            found.append((one.job, spec_of(one)))
        except Problem as problem:
            faults.append(problem.detail)
    if faults:
        more = len(faults) - MOST_LISTED
        listed = [*faults[:MOST_LISTED], *([f"and {more:,} more"] if more > 0 else [])]
        raise Problem(422, "fault", f"{len(faults):,} of {len(parts):,} jobs have faults", faults=listed)
    return found, True


def spec_of(one: JobRequest) -> JobSpec:
    """What a job asks for. Raises Problem."""
    kinds: Mapping[str, int] | None = None
    if one.gpu_types is not None:
        kinds = {name: _milli(gpus) for name, gpus in one.gpu_types.items()}
    spec = JobSpec(
        tier=one.tier,
        tasks=one.tasks,
        mgpu=_milli(one.gpus),
        cpu_mcores=_milli(one.cpu_cores),
        memory_mib=round(one.memory_gb * 1e9 / 2**20),
        gpu_types=kinds,
        datasets=tuple(dict.fromkeys(one.datasets)),
        within=one.within,
        prefer=one.prefer,
        tenant=one.tenant,
        preemptible=one.tier > 0 if one.preemptible is None else one.preemptible,
        checkpoint_ms=_milli(one.checkpoint_s),
        restart_ms=_milli(one.restart_s),
        duration_ms=None if one.duration_s is None else _milli(one.duration_s),
        workload=one.workload,
        namespace=one.namespace,
    )
    try:
        as_job(one.job, spec)
    except UsageError as error:
        raise Problem(422, "fault", str(error)) from None
    return spec


def as_job(name: str, spec: JobSpec) -> Job:
    """What the fleet is asked for. Raises UsageError."""
    return Job(
        name=name, tier=spec.tier, tasks=spec.tasks, mgpu=spec.mgpu, cpu_mcores=spec.cpu_mcores,
        memory_mib=spec.memory_mib, gpu_types=spec.gpu_types, datasets=spec.datasets, within=spec.within,
        prefer=spec.prefer, preemptible=spec.preemptible, tenant=spec.tenant,
    )  # fmt: skip


def _milli(value: float) -> int:
    return round(value * WHOLE)


def name_in(path: Mapping[str, Any], what: str) -> str:
    """A name of a path. Raises Problem."""
    name = str(path[what])
    if not NAME.fullmatch(name):
        raise Problem(422, "fault", f"{what} is {name[:60]!r}; expected letters, digits and . _ : / @ - between them")
    return name
