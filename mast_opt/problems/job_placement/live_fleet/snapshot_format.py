"""Format of snapshots (job placement): the state of a live fleet as bytes, of numbers and texts only.

MAGIC, the version (4 bytes), a digest (32 bytes: BLAKE2b of magic, version and content), the content: JSON, compressed.
"""

import hashlib
import json
import zlib
from collections.abc import Mapping
from operator import index
from typing import Any

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.core.quota_tree import Quota
from mast_opt.core.quotas import Quotas
from mast_opt.core.ranks import Reclaim
from mast_opt.problems.job_placement.engine.arrival_mix import ArrivalMix, Arrivals, Shape
from mast_opt.problems.job_placement.engine.limits import FillSampling, SearchLimits, sound_limits, sound_sampling
from mast_opt.problems.job_placement.live_fleet.adoption import merged
from mast_opt.problems.job_placement.live_fleet.booking import devices_of
from mast_opt.problems.job_placement.live_fleet.inventory import FleetInventory
from mast_opt.problems.job_placement.live_fleet.running_job import Holding, Places, Running
from mast_opt.problems.job_placement.live_fleet.types import Job, Part, Server, Share, amounts_of, whole

MAGIC = b"mast-opt fleet\n"
VERSION = 4
HEAD, DIGEST = len(MAGIC) + 4, 32
"""Bytes of magic and version, and of the digest."""
SERVER_FIELDS = ("name", "region", "cluster", "rack", "gpu_type", "gpus", "cpu_mcores", "memory_mib")
JOB_FIELDS = (
    *("name", "tier", "tasks", "mgpu", "cpu_mcores", "memory_mib", "gpu_types", "datasets", "within", "prefer"),
    *("preemptible", "gpu_hours_at_risk", "tenant", "read_mb_per_day", "costs", "limit_ms", "parts"),
)
PART_FIELDS = ("name", "tasks", "mgpu", "cpu_mcores", "memory_mib", "gpu_types", "within")


def encoded(books: FleetInventory) -> bytes:
    """The state of a fleet outside rounds as bytes."""
    text = json.dumps(_content(books), separators=(",", ":"), ensure_ascii=False, default=_plain)
    content, head = zlib.compress(text.encode(), 6), MAGIC + VERSION.to_bytes(4, "big")
    return head + _digest(head + content) + content


def _digest(data: bytes) -> bytes:
    """Digest of the bytes of a fleet's snapshot."""
    return hashlib.blake2b(data, digest_size=DIGEST).digest()


def _plain(value: object) -> object:
    """JSON form in a fleet's snapshot of what JSON lacks: sets, mappings that are no dictionaries, numbers of NumPy."""
    if isinstance(value, (frozenset, set)):
        return sorted(value)
    return dict(value) if isinstance(value, Mapping) else index(value)  # type: ignore[arg-type]


def _content(books: FleetInventory) -> dict[str, Any]:
    """Content of a fleet's snapshot: its servers, running jobs, quotas and the rest, as JSON has them."""
    places, names = books.places(), books.names()
    number = {name: at for at, name in enumerate(books.servers)}
    mix = books.mix
    return {
        "tiers": books.tiers,
        "servers": [[getattr(server, field) for field in SERVER_FIELDS] for server in books.servers.values()],
        "replicas": books.replicas,
        "residency": books.residency,
        "remote_mb_price": books.remote_mb_price,
        "search_limits": books.limits,
        "blocked": books.blocked,
        "quotas": [
            [name, key, one.nominal, one.borrowing, one.lending, parent]
            for name, key, one, parent in books.ledger.quotas.rows()
        ],
        "reclaim": books.ranks.reclaim,
        "mix": None
        if mix is None
        else {
            "sampling": mix.sampling,
            "counts": list(mix.counts.items()),
            "total": mix.total,
            "due": mix.due,
            "sample": books.state.sample.tolist(),
            "demand": books.state.demand.tolist(),
        },
        "jobs": [_fields(books.running[name].job) for name in names],
        "started_ms": [books.running[name].started_ms for name in names],
        "numbers": [books.running[name].number for name in names],
        "shares": [
            [
                [number[share.server], share.tasks, *amounts, list(share.gpus.items()), share.part]
                for share, amounts in zip(books.running[name].shares, _amounts(books, name))
            ]
            for name in names
        ],
        "places": [places.job, places.free, places.row.tolist()],
        "started": books.started,
    }


def _fields(job: Job) -> list[Any]:
    """Fields of a job in a fleet's snapshot, its parts last."""
    *values, parts = (getattr(job, field) for field in JOB_FIELDS)
    return [*values, [[getattr(part, field) for field in PART_FIELDS] for part in parts]]


def _job(fields: list[Any]) -> Job:
    """Job of a fleet's snapshot from its fields."""
    *values, parts = fields
    given = dict(zip(JOB_FIELDS, values, strict=False))
    return Job(**given, parts=tuple(Part(**dict(zip(PART_FIELDS, part, strict=True))) for part in parts))


def _amounts(books: FleetInventory, name: str) -> list[tuple[int, int]]:
    """Millicores and MiB of each share of a running job: what its tasks need where it has parts, else what it holds."""
    running = books.running[name]
    if running.job.parts:
        return [amounts_of(running.job, share) for share in running.shares]
    return [(held.cpu_mcores, held.memory_mib) for held in books.holdings_by_share(name)]


def decoded(data: bytes) -> FleetInventory:
    """The state of a fleet that the snapshot's bytes hold. Raises UsageError if they are no snapshot, of another
    version, or damaged.
    """
    if not data.startswith(MAGIC):
        raise UsageError("this is no snapshot of a live fleet")
    version = int.from_bytes(data[len(MAGIC) : HEAD], "big")
    if len(data) >= HEAD and version != VERSION:
        raise UsageError(f"the snapshot has version {version} of the format; expected version {VERSION}")
    digest, content = data[HEAD : HEAD + DIGEST], data[HEAD + DIGEST :]
    if digest != _digest(data[:HEAD] + content):
        raise UsageError("the snapshot is damaged: its digest is not that of its content")
    try:
        return _state(json.loads(zlib.decompress(content)))
    except (UsageError, KeyError, ValueError, TypeError, IndexError, OverflowError, zlib.error) as error:
        raise UsageError(f"the snapshot is damaged: {error}") from error


def _state(content: dict[str, Any]) -> FleetInventory:
    """Inventory of a fleet from the content of a snapshot."""
    mix = _mix(content["mix"])
    quotas = ((name, key, Quota(*limits), parent) for name, key, *limits, parent in content["quotas"])
    books = FleetInventory(
        [Server(*row) for row in content["servers"]],
        tuple(content["tiers"]),
        content["replicas"],
        content["residency"],
        content["remote_mb_price"],
        mix,
        sound_limits(SearchLimits(*content["search_limits"])),
        Quotas.of(quotas),
        Reclaim(content["reclaim"]),
    )
    books.blocked = set(content["blocked"])
    running, held = {}, {}
    rows = zip(content["jobs"], content["numbers"], content["shares"], content["started_ms"], strict=True)
    for fields, number, shares, started_ms in rows:
        job = _job(fields)
        by_share = [_holding(job, row, books) for row in shares]
        shown = tuple(
            Share(one.server, row[1], {d: int(one.device[d]) for d, _ in row[4]}, row[5])
            for row, one in zip(shares, by_share)
        )
        held[job.name] = merged(by_share)
        running[job.name] = Running(job, books.tiers.index(job.tier), shown, False, number, started_ms)
    job_places, free, order_of = content["places"]
    if sorted([*job_places, *free]) != list(range(len(job_places) + len(free))) or len(job_places) != len(running):
        raise ValueError("places of jobs")
    order = np.array(order_of, np.int64)
    if sorted(order_of) != list(range(sum(map(len, held.values())))):
        raise ValueError("order of allocations")
    books.load_running(running, held, Places(tuple(job_places), tuple(free), order))
    books.started = content["started"]
    if mix is not None:
        mix.due = content["mix"]["due"]
        sample = np.array(content["mix"]["sample"], np.int64).reshape(-1, mix.sampling.draws, len(books.types) + 3)
        demand = np.array(content["mix"]["demand"], np.int64).reshape(-1, len(books.types) + 4)
        books.value_by(Arrivals(sample, demand))
    return books


def _holding(job: Job, row: list[Any], books: FleetInventory) -> Holding:
    """Holding of a job in a fleet's snapshot, checked against its server."""
    at, tasks, cpu, memory, gpus, _ = row
    server = books.servers[books.server_names[whole(job.name, "a server", at)]]
    share, width = Share(server.name, tasks, dict(gpus)), books.state.row_device.shape[1]
    taken = np.array(devices_of(f"job {job.name}", share, server, width), np.int32)
    return Holding(server.name, whole(job.name, "cores", cpu), whole(job.name, "MiB", memory), taken)


def _mix(content: dict[str, Any] | None) -> ArrivalMix | None:
    """Mix of arrivals in a fleet's snapshot; None if the fleet had none."""
    if content is None:
        return None
    counts = {
        Shape(mgpu, cpu, memory, tasks, tuple((kind, need) for kind, need in needs)): count
        for (mgpu, cpu, memory, tasks, needs), count in content["counts"]
    }
    sampling = sound_sampling(FillSampling(*content["sampling"]))
    return ArrivalMix(sampling, counts, content["total"], content["due"])
