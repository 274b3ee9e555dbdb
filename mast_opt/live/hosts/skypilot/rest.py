"""The admin policy over HTTP, as SkyPilot's ``RestfulAdminPolicy`` asks for it: a body is a JSON string that holds
JSON, whose task is YAML; status 400 rejects, with the reason as text.
"""

import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from mast_opt.core.errors import InputError, MastOptError
from mast_opt.live.hosts.skypilot.advice import Prices, Tables, advise, asked_of, placed, read_tables

MOST_BYTES = 2**24
PLACED_ALREADY = "exec"
"""Request on a cluster that runs."""


def answered(task: Mapping[str, Any], request: str, tables: Tables, prices: Prices) -> dict[str, Any]:
    """The task of a request with its places. Raises InputError where there is none."""
    if request == PLACED_ALREADY or not asked_of(task):
        return dict(task)
    advice = advise(task, tables, prices)
    if not advice.choices:
        raise InputError(f"no place for the task: {'; '.join(advice.reasons)}")
    return placed(task, advice)


def reply(body: bytes, tables: Tables, prices: Prices) -> bytes:
    """The body of an answer. Raises InputError for a request that makes no sense or whose task has no place."""
    import yaml

    try:
        request = json.loads(json.loads(body))
        task = next(one for one in yaml.safe_load_all(request["task"]) if one is not None)
        name, config = str(request["request_name"]), request["skypilot_config"]
        done = answered(task, name, tables, prices)
    except (ValueError, TypeError, KeyError, AttributeError, StopIteration, yaml.YAMLError) as error:
        raise InputError(f"not a request of SkyPilot's admin policy: {error!r}") from error
    return json.dumps(json.dumps({"task": yaml.safe_dump(done, sort_keys=False), "skypilot_config": config})).encode()


def server(folder: Path, prices: Prices, port: int) -> ThreadingHTTPServer:
    """A server of the policy on this machine alone, which reads the tables for every request; 0 is any port.

    Raises:
        OSError: it cannot listen on the port.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = self.headers.get("Content-Length") or ""
            try:
                if not length.isdecimal() or int(length) > MOST_BYTES:
                    raise InputError(f"Content-Length is {length!r}; expected at most {MOST_BYTES:,}")
                status, kind, body = (
                    200,
                    "application/json",
                    reply(self.rfile.read(int(length)), read_tables(folder), prices),
                )
            except MastOptError as error:
                status, kind, body = 400, "text/plain; charset=utf-8", str(error).encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Write nothing: SkyPilot logs its requests."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)
