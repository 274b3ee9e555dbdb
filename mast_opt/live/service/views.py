"""JSON views of a state, a log and a fleet."""

from collections.abc import Iterable, Mapping
from dataclasses import astuple
from typing import Any

from mast_opt.live.loop.event_log import fields_of
from mast_opt.live.loop.events import Cancelled, Failed, Finished, Refused, Stored, Submitted
from mast_opt.live.loop.job_states import WAITING
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.state import State
from mast_opt.live.reports.usage import HEADS, Usage
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job, Share
from mast_opt.problems.job_placement.units import WHOLE


def event_object(stored: Stored) -> dict[str, Any]:
    """JSON of an event, as in a log of text."""
    event = stored.event
    by = {"by": stored.by} if stored.by else {}
    return {"seq": stored.seq, "at_ms": stored.at_ms, "event": type(event).__name__, **by, **fields_of(event)}


def job_object(record: JobRecord, why: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """JSON of a job that has not ended, with what is said of its waiting. Its GPUs and tasks are those that it has, or
    asks for while it waits; the GPUs of a part are those of one task."""
    spec, tasks = record.spec, record.tasks
    least, most = spec.sizes
    more = sum(part.tasks for part in spec.parts) - 1 if spec.parts else 0
    return {
        "job": record.name,
        "state": record.state.value,
        "tier": spec.tier,
        "tenant": spec.tenant,
        "gpus": record.asked_mgpu * tasks / spec.tasks / WHOLE,
        "tasks": tasks + more,
        "min_tasks": least + more,
        "max_tasks": most + more,
        "parts": [
            {
                "part": part.name,
                "tasks": part.tasks,
                "gpus": part.mgpu / WHOLE,
                "gpu_types": part.gpu_types and {kind: mgpu / WHOLE for kind, mgpu in part.gpu_types.items()},
                "servers": tasks_by_server(share for share in record.shares if share.part == part.name),
            }
            for part in spec.parts
        ],
        "submitted_ms": record.submitted_ms,
        "since_ms": record.since_ms,
        "attempt": record.attempt,
        "region": record.region,
        "servers": tasks_by_server(record.shares),
        "cancelled": record.cancelled,
        **(why or {}),
    }


def tasks_by_server(shares: Iterable[Share]) -> dict[str, int]:
    """Server → tasks of a job there, of all of its parts."""
    found: dict[str, int] = {}
    for share in shares:
        found[share.server] = found.get(share.server, 0) + share.tasks
    return found


def ended_object(log: list[Stored]) -> dict[str, Any] | None:
    """JSON of a job that has ended, from its events; None if they do not say that it has."""
    first = next((stored for stored in log if isinstance(stored.event, Submitted)), None)
    last = log[-1] if log else None
    if first is None or last is None or not isinstance(first.event, Submitted):
        return None
    words = {Finished: "finished", Failed: "failed"}.get(type(last.event))
    if words is None and any(isinstance(stored.event, Cancelled) for stored in log):
        words = "cancelled"
    return {
        "job": first.event.job,
        "state": words or "ended",
        "tier": first.event.spec.tier,
        "tenant": first.event.spec.tenant,
        "submitted_ms": first.at_ms,
        "since_ms": last.at_ms,
        "events": [event_object(stored) for stored in log],
    }


def fleet_object(state: State, tenant: str | None = None) -> dict[str, Any]:
    """JSON of the servers, and of what is used of them."""
    used: dict[str, int] = {}
    for record in state.jobs.values():
        for share in record.shares:
            used[share.server] = used.get(share.server, 0) + sum(share.gpus.values())
    servers = [
        {
            "server": server.name,
            "region": server.region,
            "cluster": server.cluster,
            "rack": server.rack,
            "gpu_type": server.gpu_type,
            "gpus": server.gpus,
            "used": used.get(server.name, 0) / WHOLE,
            "state": "down"
            if server.name not in state.inventory.up
            else "closed"
            if server.name in state.inventory.closed
            else "up",
        }
        for server in state.inventory.server_of.values()
    ]
    return {
        "seq": state.seq,
        "at_ms": state.now_ms,
        "servers": servers,
        "quotas": {one["tenant"]: one["gpus"] for one in quota_objects(state.fleet, tenant) if not one["gpu_type"]},
        "datasets": {name: sorted(regions) for name, regions in sorted(state.datasets.replicas.items())},
    }


def quota_objects(fleet: Fleet, tenant: str | None = None) -> list[dict[str, Any]]:
    """JSON of the quotas, of what counts against each, and of what is left; a tenant that has none is not there.

    Args:
        tenant: its quotas and those of the groups above it only; None for all.
    """
    shown = None if tenant is None else {tenant, *fleet.quotas.above(tenant)}
    return [
        {
            "tenant": name,
            "gpu_type": kind or "",
            "gpus": quota.nominal / WHOLE,
            "borrowing_limit": mgpu_or_none(quota.borrowing),
            "lending_limit": mgpu_or_none(quota.lending),
            "parent": parent,
            "used": fleet.ledger.counted(name, kind) / WHOLE,
            "left": mgpu_or_none(fleet.ledger.left(name, kind)),
        }
        for name, kind, quota, parent in fleet.quotas.rows()
        if shown is None or name in shown
    ]


def usage_object(row: Usage) -> dict[str, Any]:
    """JSON of the usage of a tenant in a month."""
    return dict(zip(HEADS, astuple(row), strict=True))


def overview_object(state: State, only: str | None = None) -> dict[str, Any]:
    """JSON of how many jobs wait and hold servers, in all and of each tenant, or of one ``only``, with what it uses."""
    quotas = {tenant: quota.nominal for tenant, key, quota, _ in state.quotas.rows() if key is None}
    tenants: dict[str, list[int]] = {tenant: [0, 0, 0] for tenant in quotas}
    for record in state.jobs.values():
        of = tenants.setdefault(record.spec.tenant, [0, 0, 0])
        of[0] += record.mgpu
        of[2 if record.state in WAITING else 1] += 1
    listed = [
        {"tenant": tenant, "gpus": mgpu / WHOLE, "holding": holding, "waiting": waiting}
        | {"quota": mgpu_or_none(quotas.get(tenant))}
        for tenant, (mgpu, holding, waiting) in tenants.items()
        if only in (None, tenant)
    ]
    holding, waiting = (sum(of[at] for of in tenants.values()) for at in (1, 2))
    return {"at_ms": state.now_ms, "holding": holding, "waiting": waiting, "tenants": listed}


def mgpu_or_none(mgpu: int | None) -> float | None:
    """GPUs of milli-GPUs for JSON, None for none."""
    return None if mgpu is None else mgpu / WHOLE


def answer_object(fleet: Fleet, job: Job) -> dict[str, Any]:
    """JSON of the places where a job could start now, the best first, and what rules every other cluster out."""
    return {
        "job": job.name,
        "bids": [bid_object(bid) for bid in fleet.bids(job)],
        "clusters": [
            {"cluster": one.cluster, "fits": one.fits, "code": one.code, "why": one.words}
            | ({"part": one.part} if one.part else {})
            for one in fleet.explain(job)
        ],
    }


def bid_object(bid: Bid) -> dict[str, Any]:
    """JSON of a bid."""
    return {
        "region": bid.region,
        "cluster": bid.cluster,
        "gpu_type": bid.gpu_type,
        "level": bid.level,
        "servers": tasks_by_server(bid.shares),
        "parts": {
            part: tasks_by_server(share for share in bid.shares if share.part == part)
            for part in dict.fromkeys(share.part for share in bid.shares if share.part)
        },
        "stops": list(bid.victims),
        "gpu_hours_lost": bid.gpu_hours_lost,
        "over_quota": bid.over_quota,
        "proven": bid.proven,
    }


def why_waiting(log: list[Stored]) -> str:
    """Last reason that a policy gave for holding a job back."""
    return next((stored.event.reason for stored in reversed(log) if isinstance(stored.event, Refused)), "")
