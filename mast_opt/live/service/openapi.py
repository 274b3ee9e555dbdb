"""OpenAPI 3.1 document of everything under /v1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mast_opt.live.service.requests import (
    MOST_JOBS,
    MOST_LIMIT,
    PATTERN,
    DatasetRequest,
    DrainRequest,
    JobRequest,
    QuotaRequest,
    RegionRequest,
    ServerRequest,
    SolveRequest,
)

_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "faults": {"type": "array", "items": {"type": "string"}},
    },
}
_NAME = {"type": "string", "minLength": 1, "maxLength": 253, "pattern": PATTERN}
_QUERY: Mapping[str, dict[str, Any]] = {
    "state": {"type": "string"},
    "job": _NAME,
    "event": {"type": "integer", "minimum": 0, "maximum": 10**18 - 1},
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_LIMIT},
}
"""Schemas of the parameters of a query, by name."""
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": _NAME,
    "description": "The same key with the same body gets the answer of the first request, for a day.",
}


def document(version: str) -> dict[str, Any]:
    """The OpenAPI document of the service."""
    kinds = (JobRequest, ServerRequest, DrainRequest, QuotaRequest, RegionRequest, DatasetRequest, SolveRequest)
    _, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    ref: dict[type, dict[str, str]] = {kind: {"$ref": f"#/components/schemas/{kind.__name__}"} for kind in kinds}
    return {
        "openapi": "3.1.0",
        "info": {"title": "mast-opt", "version": version},
        "paths": _paths(ref),
        "components": {
            "schemas": {**components, "Problem": _PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _paths(ref: Mapping[type, dict[str, str]]) -> dict[str, Any]:
    """Every path of the HTTP interface and its methods; ``ref`` is where each body is described."""
    jobs = {"oneOf": [ref[JobRequest], {"type": "array", "items": ref[JobRequest], "maxItems": MOST_JOBS}]}
    return {
        "/v1/jobs": {
            "post": _operation("Submit a job, or a list of jobs", jobs, (201, 207), (409,), key=True),
            "get": _operation(
                "Jobs whose end is not known, and how many of each state",
                query={"state": "state", "tenant": "state", "search": "state", "after": "job", "limit": "limit"},
            ),
        },
        "/v1/jobs/{job}": {
            "get": _operation("A job; of one that has ended, its events", path="job"),
            "delete": _operation("Cancel a job", None, (202,), path="job", key=True),
        },
        "/v1/jobs/{job}/explain": {
            "get": _operation("Where a waiting job could start, and why not elsewhere", errors=(409,), path="job")
        },
        "/v1/whatif": {"post": _operation("Where a job could start if it came now; nothing changes", ref[JobRequest])},
        "/v1/fleet": {"get": _operation("Servers and what is used of them, quotas, replicas")},
        "/v1/servers/{server}": {
            "put": _operation("A server comes, breaks or comes back", ref[ServerRequest], path="server", key=True)
        },
        "/v1/overview": {
            "get": _operation("How many jobs wait and hold servers, tenants, and what was in use over the last day")
        },
        "/v1/drains": {
            "post": _operation(
                "Servers take no job more, or take jobs again", ref[DrainRequest], errors=(404,), key=True
            ),
            "get": _operation("Servers that take no job, and what they still hold"),
        },
        "/v1/quotas": {"get": _operation("Quotas of tenants and groups, what is used of them and what is left")},
        "/v1/quotas/{tenant}": {"put": _operation("GPUs of a tenant", ref[QuotaRequest], path="tenant", key=True)},
        "/v1/datasets/{dataset}": {
            "put": _operation("A dataset and where it is", ref[DatasetRequest], path="dataset", key=True)
        },
        "/v1/regions/{region}": {
            "put": _operation("What a region can store", ref[RegionRequest], path="region", key=True)
        },
        "/v1/solves": {
            "post": _operation(
                "Solve for a plan of data or servers as they are now", ref[SolveRequest], (202,), (409, 501), key=True
            ),
            "get": _operation("Solves, the newest first"),
        },
        "/v1/solves/{solve}": {
            "get": _operation("A solve", path="solve"),
            "delete": _operation("Stop a solve; its incumbent is kept", None, (200, 202), path="solve"),
        },
        "/v1/solves/{solve}/events": {"get": _operation("Incumbents as they come (server-sent events)", path="solve")},
        "/v1/plans": {"get": _operation("Plans, the newest first")},
        "/v1/plans/{plan}": {"get": _operation("A plan, and the steps that are left", path="plan")},
        "/v1/plans/{plan}/adopt": {
            "post": _operation("Carry out a plan from now on", errors=(409, 501), path="plan", key=True)
        },
        "/v1/events": {"get": _operation("Events of the log", query={"after": "event", "limit": "limit"})},
        "/v1/events/stream": {"get": _operation("Events as they come (server-sent events)")},
    }


def _operation(
    summary: str,
    body: dict[str, Any] | None = None,
    done: tuple[int, ...] = (200,),
    errors: tuple[int, ...] = (),
    *,
    path: str = "",
    query: Mapping[str, str] | None = None,
    key: bool = False,
) -> dict[str, Any]:
    """OpenAPI description of one operation: its parameters, body and answers."""
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    general = (401, 403, 422, 429, 503, *((400, 413, 415) if body is not None else ()))
    if path:  # a name with a line break in it is no address, whatever is done there
        general = (*general, 404)
    found: dict[str, Any] = {
        "summary": summary,
        "responses": {
            **{str(status): {"description": "Done"} for status in done},
            **{str(status): {"description": "Problem", "content": problem} for status in sorted({*general, *errors})},
        },
    }
    parameters: list[dict[str, Any]] = []
    if path:
        parameters.append({"name": path, "in": "path", "required": True, "schema": _NAME})
    parameters += [{"name": name, "in": "query", "schema": _QUERY[what]} for name, what in (query or {}).items()]
    if key:
        parameters.append(_KEY)
    if parameters:
        found["parameters"] = parameters
    if body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return found
