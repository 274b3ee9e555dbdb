"""OpenAPI 3.1 document of everything under /v1."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from mast_opt.live.service.handlers import Endpoint
from mast_opt.live.service.requests import MOST_LIMIT, MOST_NUMBER, PATTERN
from mast_opt.live.service.routes import Api
from mast_opt.live.service.solve_routes import SolveApi

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
    "order": {"enum": ["submission", "place"]},
    "event": {"type": "integer", "minimum": 0, "maximum": MOST_NUMBER},
    "prices": {"type": "string", "description": "TYPE:PRICE,…, prices of a GPU-hour by GPU type"},
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
    endpoints = [of for api in (Api, SolveApi) for _, of in api.endpoints()]
    kinds = [of.body for of in endpoints if of.body is not None]
    _, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    paths: dict[str, dict[str, Any]] = {}
    for of in endpoints:
        paths.setdefault(of.path.replace(":path", ""), {})[of.method.lower()] = _operation(of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "mast-opt", "version": version},
        "paths": paths,
        "components": {
            "schemas": {**components, "Problem": _PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _operation(of: Endpoint) -> dict[str, Any]:
    """OpenAPI description of one operation: its parameters, body and answers."""
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    general = (401, 403, 421, 422, 429, 431, 503, *((400, 408, 413) if of.body is not None else ()))
    if of.method != "GET":  # a body of another type is refused even where none is read
        general = (*general, 415, *((409,) if of.method == "PUT" else ()))
    named = re.findall(r"{(\w+)", of.path)
    if named:  # a name with a line break in it is no address, whatever is done there
        general = (*general, 404)
    found: dict[str, Any] = {
        "summary": of.summary,
        "responses": {
            **{str(status): {"description": "Done"} for status in of.done},
            **{
                str(status): {"description": "Problem", "content": problem} for status in sorted({*general, *of.errors})
            },
        },
    }
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": _NAME} for name in named
    ]
    parameters += [{"name": name, "in": "query", "schema": _QUERY[what]} for name, what in of.query.items()]
    if of.key:
        parameters.append(_KEY)
    if parameters:
        found["parameters"] = parameters
    if of.body is not None:
        body: dict[str, Any] = {"$ref": f"#/components/schemas/{of.body.__name__}"}
        if of.many:
            body = {"oneOf": [body, {"type": "array", "items": body, "maxItems": of.many}]}
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return found
