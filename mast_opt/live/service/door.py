"""The door of the service: what every request passes before a handler sees it, and the log of who asked for what.

A browser sends along with every request where the page that makes it is from, and a page of another site cannot forge
that. So a change has to come from the service's own page, or from no page; it bears a type that a form cannot send; and
the name under which the service was reached is one that it has.
"""

import asyncio
import ipaddress
import itertools
import os
import re
import secrets
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mast_opt.live.service.problems import Problem

LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Names of this machine for itself."""
MOST_HEADERS, MOST_HEADER_BYTES = 64, 16 * 2**10
MOST_LOG_BYTES = 64 * 2**20
"""Size of an access log; the one before it is kept too."""
_CHANGES_NOTHING = ("GET", "HEAD", "OPTIONS")
_ONCE = frozenset({b"authorization", b"content-encoding", b"content-type", b"idempotency-key", b"sec-fetch-site"})
"""Headers that say nothing certain if there are two of them."""
_NO_NAME = frozenset("/?#@\\")
"""Characters that end the host name in an address, or separate it from user names."""
_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")


class Watch(Protocol):
    """Observer of every answer."""

    def answered(self, method: str, status: int, seconds: float) -> None:
        """Count an HTTP answer of the service, and its time."""
        ...

    def read(self, client: str) -> None:
        """Note that a reading request of a client has ended."""
        ...


class AccessLog:
    """Lines of JSON in a file, which is replaced when it is full. A line that the disk does not take is lost, and the
    request is answered all the same.

    Args:
        path: the file, made if there is none.
    """

    def __init__(self, path: Path, most_bytes: int = MOST_LOG_BYTES) -> None:
        self._path, self._most = path, most_bytes
        self._descriptor: int | None = None
        self._size = 0

    def write(self, *lines: Mapping[str, object]) -> None:
        """Add lines to the log of who asked for what."""
        text = b"".join([msgspec.json.encode(line) + b"\n" for line in lines])
        with suppress(OSError):
            if self._descriptor is not None and self._size + len(text) > self._most:
                self.close()
                self._path.replace(self._path.with_name(self._path.name + ".1"))
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
                self._size = os.fstat(self._descriptor).st_size
            self._size += os.write(self._descriptor, text)

    def close(self) -> None:
        """Close the file of the access log."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class Hosts:
    """Names under which a service may be reached. On this machine alone these are its names for itself, else any
    address in figures too, since no name of another site is one.

    Args:
        names: further names.
        alone: whether the service listens on this machine alone.
    """

    def __init__(self, names: Iterable[str] = (), *, alone: bool = True) -> None:
        self._given = frozenset(name.lower().strip("[]") for name in names)
        self._alone = alone

    def has(self, host: str) -> bool:
        """Whether a name, perhaps with a port, is a host name of the service."""
        name = _name(host)
        return name in LOOPBACK or name in self._given or (not self._alone and _is_address(name))

    def gave(self, host: str) -> bool:
        """Whether a name, perhaps with a port, is one of the host names that the service was given."""
        return _name(host) in self._given


@lru_cache(128)
def _name(host: str) -> str:
    """The name of a host without its port."""
    if _NO_NAME & set(host):
        return ""
    with suppress(ValueError):
        parts = urlsplit(f"//{host}")
        return "" if parts.port == 0 else (parts.hostname or "").rstrip(".")  # a port that is no number raises
    return ""


def _is_address(name: str) -> bool:
    """Whether the name of a host is an IP address."""
    with suppress(ValueError):
        return bool(ipaddress.ip_address(name))
    return False


class Door:
    """Middleware that lets in what may come in, names each request, and notes its end.

    Args:
        hosts: names of the service.
        log: takes a line for each request; None for no log.
        behind_proxy: the last address in X-Forwarded-For is the client's.
    """

    def __init__(
        self,
        app: ASGIApp,
        watch: Watch,
        hosts: Hosts,
        log: AccessLog | None = None,
        *,
        behind_proxy: bool = False,
    ) -> None:
        self._app, self._watch, self._hosts, self._log = app, watch, hosts, log
        self._behind_proxy = behind_proxy
        self._process, self._numbers = secrets.token_hex(8), itertools.count(1)
        self._lines: list[Mapping[str, object]] = []
        """Lines for the log of the requests that have ended in this round of the event loop."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, pass it on, and note its end."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, headers, method = time.perf_counter(), Headers(scope=scope), str(scope["method"])
        of = scope.setdefault("state", {})
        of["address"], of["request"] = self._address(scope, headers), self._request_id(headers)
        status = 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                more = [(b"x-content-type-options", b"nosniff"), (b"x-request-id", of["request"].encode())]
                message.setdefault("headers", []).extend(more)
            await send(message)

        try:
            self._check(scope, headers)
        except Problem as problem:
            await problem.response()(scope, receive, noted)
        else:
            try:
                await self._app(scope, receive, noted)
            finally:
                if of.get("reads"):
                    self._watch.read(of["by"])
        seconds = time.perf_counter() - begun
        self._watch.answered(method, status, seconds)
        if self._log is not None:
            line = {"at_ms": round(1000 * time.time()), "request": of["request"], "address": of["address"]}
            line |= {"by": of.get("by", ""), "method": method, "path": scope["path"], "status": status}
            if not self._lines:
                asyncio.get_running_loop().call_soon(self._write, self._log)
            self._lines.append({**line, "ms": round(1000 * seconds, 1)})

    def _write(self, log: AccessLog) -> None:
        """Log the requests that have ended, all at once."""
        lines, self._lines = self._lines, []
        log.write(*lines)

    def _request_id(self, headers: Headers) -> str:
        """Name of a request: the client's, where it has a fit one."""
        given = headers.get("x-request-id", "")
        return given if _ID.fullmatch(given) else f"{self._process}-{next(self._numbers)}"

    def _address(self, scope: Scope, headers: Headers) -> str:
        """Address of a client of the service, behind a proxy where there is one."""
        forwarded = ",".join(headers.getlist("x-forwarded-for")) if self._behind_proxy else ""
        said = forwarded.rpartition(",")[2].strip()
        if said and _is_address(said):
            return said
        return str(scope["client"][0]) if scope.get("client") else ""

    def _check(self, scope: Scope, headers: Headers) -> None:
        """Refuse a request that may not come in. Raises Problem: 403, 415, 421, 431."""
        raw, method, path = headers.raw, str(scope["method"]), str(scope["path"])
        if len(raw) > MOST_HEADERS or sum(len(name) + len(value) for name, value in raw) > MOST_HEADER_BYTES:
            words = f"expected at most {MOST_HEADERS} headers of {MOST_HEADER_BYTES:,} bytes together"
            raise Problem(431, "headers", words)
        names = [name for name, _ in raw]
        if len(set(names)) < len(names) and (twice := sorted(one for one in _ONCE if names.count(one) > 1)):
            raise Problem(422, "fault", f"the header {twice[0].decode()} is there twice; expected it once")
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._hosts.has(hosts[0]):
            known = hosts[0][:60] if hosts else ""
            raise Problem(421, "host", f"this service is not called {known!r}; see --host-name of mast-opt serve")
        changes = method not in _CHANGES_NOTHING
        if changes or path.startswith(("/v1", "/metrics")):
            self._check_site(headers, f"{scope.get('scheme', 'http')}://{hosts[0]}")
        wrong = _wrong_type(headers, method) if changes else None
        if wrong and any(one.matches(scope)[0] is Match.FULL for one in scope["app"].routes):  # else 404 or 405
            raise wrong

    def _check_site(self, headers: Headers, own: str) -> None:
        """Refuse a request that a page of another site asks for."""
        site, origins = headers.get("sec-fetch-site", "none"), headers.getlist("origin")
        if site not in ("same-origin", "none") or not all(self._is_own(origin, own) for origin in origins):
            raise Problem(403, "other-site", "a page of another site may ask nothing of this service")

    def _is_own(self, origin: str, own: str) -> bool:
        """Whether a page is the service's own; the name and scheme of a proxy may be others than those behind it."""
        if not self._behind_proxy:
            return origin.lower() == own.lower()
        host = origin.partition("://")[2]
        return bool(host) and (host.lower() == own.partition("://")[2].lower() or self._hosts.gave(host))


def _wrong_type(headers: Headers, method: str) -> Problem | None:
    """Refusal of a change that does not bear the type of JSON; one that no form can send needs none without a body."""
    kind, coding = headers.get("content-type"), headers.get("content-encoding", "identity")
    if coding.lower() != "identity":
        return Problem(415, "media-type", f"the body is encoded as {coding[:60]}; expected it as it is")
    if kind is None and method not in ("POST", "PUT"):
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        if not has_body:
            return None
    if kind is not None and kind.partition(";")[0].strip().lower() == "application/json":
        return None
    words = "of no stated type" if kind is None else kind[:60]
    return Problem(415, "media-type", f"the body is {words}; expected Content-Type: application/json")
