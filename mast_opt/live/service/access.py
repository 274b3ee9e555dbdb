"""Tokens, their scopes, and the rate of requests that each allows.

A token is shown once, when it is made; what is stored is a keyed hash of it. Where there are no tokens, whoever reaches
the service may do everything, so it listens on this machine alone.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from mast_opt.core.errors import InputError, UsageError
from mast_opt.live.service.problems import Problem

SCOPES = ("submit", "read", "operate")
"""``submit`` jobs and cancel one's own, ``read`` everything, ``operate`` servers, data, quotas and the jobs of all."""
MOST_PRINCIPALS = 10_000
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True)
class Principal:
    """Client that a token stands for."""

    name: str
    scopes: frozenset[str]
    tenant: str = ""
    """Jobs of others are not theirs to submit or cancel; empty for all."""

    def check(self, scope: str) -> None:
        """Refuse a client that lacks a scope. Raises Problem (403)."""
        if scope not in self.scopes:
            raise Problem(403, "scope", f"{self.name} has no scope {scope}; it has {', '.join(sorted(self.scopes))}")


EVERYBODY = Principal("local", frozenset(SCOPES))


@dataclass
class _Bucket:
    tokens: float
    at_s: float


@dataclass
class Access:
    """Tokens of the service: who may do what.

    Args:
        path: a file of tokens; it need not exist.
        rate: requests a second of one principal in the long run.
        burst: requests at once.
    """

    path: Path | None
    rate: float = 5000.0
    burst: float = 20_000.0
    clock: Callable[[], float] = time.monotonic
    _salt: bytes = b""
    _tokens: dict[str, Principal] = field(default_factory=dict)
    _buckets: OrderedDict[str, _Bucket] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        if self.path is not None and self.path.exists():
            self._load(self.path)

    def _load(self, path: Path) -> None:
        """Load the tokens from their file. Raises InputError for a file that is none."""
        try:
            found = json.loads(path.read_text())
            self._salt = bytes.fromhex(found["salt"])
            for one in found["tokens"]:
                who = Principal(str(one["name"]), frozenset(one["scopes"]), str(one["tenant"]))
                self._tokens[str(one["hash"])] = who
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} is no file of tokens: {error}") from error

    @property
    def open(self) -> bool:
        """Whether there are no tokens, so that none is needed."""
        return not self._tokens

    def add(self, name: str, scopes: Iterable[str], tenant: str = "") -> str:
        """Make a token, store its hash, and return it. Raises UsageError for a wrong name or scope."""
        scopes = sorted(set(scopes))
        if not _NAME.fullmatch(name) or any(who.name == name for who in self._tokens.values()):
            raise UsageError(f"name {name!r}; expected a new one of letters, digits and . _ -")
        if not scopes or not set(scopes) <= set(SCOPES):
            raise UsageError(f"scopes {', '.join(scopes)!r}; expected some of {', '.join(SCOPES)}")
        if self.path is None:
            raise UsageError("tokens need a file to be stored in")
        token = secrets.token_urlsafe(32)
        self._salt = self._salt or secrets.token_bytes(16)
        self._tokens[self._hash(token)] = Principal(name, frozenset(scopes), tenant)
        listed = [
            {"name": who.name, "hash": digest, "scopes": sorted(who.scopes), "tenant": who.tenant}
            for digest, who in self._tokens.items()
        ]
        text = json.dumps({"salt": self._salt.hex(), "tokens": listed}, indent=1)
        new = self.path.with_suffix(".new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text + "\n")
        new.replace(self.path)
        return token

    def _hash(self, token: str) -> str:
        """Keyed hash of a token."""
        return hashlib.blake2b(token.encode(), key=self._salt, digest_size=32).hexdigest()

    def principal(self, header: str | None) -> Principal:
        """Client that shows a token. Raises Problem: 401, and 429 if it asks too often."""
        who = EVERYBODY
        if self._tokens:
            kind, _, token = (header or "").partition(" ")
            given = self._hash(token.strip()) if kind.lower() == "bearer" else ""
            matching = [one for digest, one in self._tokens.items() if hmac.compare_digest(digest, given)]
            if not matching:
                detail = "expected an Authorization header with Bearer and a token that is known"
                raise Problem(401, "token", detail, headers={"WWW-Authenticate": "Bearer"})
            who = matching[0]
        self._count(who.name)
        return who

    def _count(self, name: str) -> None:
        """Count a request of a client against its rate. Raises Problem (429)."""
        now = self.clock()
        bucket = self._buckets.setdefault(name, _Bucket(self.burst, now))
        self._buckets.move_to_end(name)
        if len(self._buckets) > MOST_PRINCIPALS:
            self._buckets.popitem(last=False)
        bucket.tokens = min(self.burst, bucket.tokens + self.rate * (now - bucket.at_s))
        bucket.at_s = now
        if bucket.tokens < 1:
            wait = max(1, round((1 - bucket.tokens) / self.rate))
            raise Problem(
                429, "rate", f"{name} asks more than {self.rate:g} times a second", headers={"Retry-After": str(wait)}
            )
        bucket.tokens -= 1
