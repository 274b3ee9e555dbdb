"""Tokens, their scopes, and the rate of requests that each allows.

A token is shown once, when it is made; what is stored is a keyed hash of it. Where there never were tokens, whoever
reaches the service may do everything, so it listens on this machine alone.
"""

import hashlib
import hmac
import json
import os
import re
import secrets
import stat
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from mast_opt.core.errors import InputError, UsageError
from mast_opt.live.service.problems import Problem

SCOPES = ("submit", "read", "operate")
"""``submit`` jobs and cancel one's own, ``read`` everything, ``operate`` servers, data, quotas and the jobs of all."""
MOST_PRINCIPALS = 10_000
MOST_READS = 32
"""Reading requests of one client at a time; there are some more threads than that."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True)
class Principal:
    """Client that a token stands for."""

    name: str
    scopes: frozenset[str]
    tenant: str = ""
    """Jobs of others are not theirs to submit or cancel; empty for all."""

    @property
    def sees(self) -> str | None:
        """The only tenant whose quotas and usage a client sees; None for all."""
        return self.tenant if self.tenant and "operate" not in self.scopes else None

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
    """Tokens of the service: who may do what. Their file is read again whenever it has changed. Where there never was
    one, no token is needed; where it is empty, damaged, gone or in the hands of others, nobody is let in.

    Args:
        path: a file of tokens; it need not exist.
        rate: requests a second of one principal in the long run.
        burst: requests at once; what comes in two seconds unless given.
    """

    path: Path | None
    rate: float = 5000.0
    burst: float | None = None
    clock: Callable[[], float] = time.monotonic
    problem: str = ""
    """Reason why the tokens cannot be used; empty while they can."""
    open: bool = True
    """Whether there is no file of tokens, so that none is needed."""
    body_bytes: Counter[str] = field(default_factory=Counter)
    """Client → bytes of its bodies that are being read."""
    _reads: Counter[str] = field(default_factory=Counter)
    _salt: bytes = b""
    _tokens: dict[str, Principal] = field(default_factory=dict)
    _seen: tuple[int, ...] = ()
    _buckets: OrderedDict[str, _Bucket] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self.look()

    def look(self) -> None:
        """Read the file of tokens if it has changed."""
        if self.path is None:
            return
        try:
            found = self.path.stat()
        except FileNotFoundError:
            if not self.open:
                self._tokens, self._seen, self.problem = {}, (), f"{self.path} is gone"
            return
        except OSError as error:
            self._tokens, self._seen, self.open, self.problem = {}, (), False, f"{self.path}: {error.strerror}"
            return
        seen = found.st_mtime_ns, found.st_ino, found.st_size, found.st_mode, found.st_uid
        if seen == self._seen:
            return
        self.open, self._tokens = False, {}
        self.problem = _others(found) or self._read(self.path)
        self.problem = self.problem and f"{self.path} {self.problem}"
        self._seen = seen

    def _read(self, path: Path) -> str:
        """Read the tokens from their file; returns what is wrong with it."""
        try:
            found = json.loads(path.read_text())
            salt, tokens = bytes.fromhex(found["salt"]), dict[str, Principal]()
            hashlib.blake2b(key=salt)  # raises for one that is too long
            for one in found["tokens"]:
                if not set(one["scopes"]) <= set(SCOPES):
                    return f"has a token with scopes {one['scopes']}; expected some of {', '.join(SCOPES)}"
                digest = bytes.fromhex(one["hash"]).hex()
                tokens[digest] = Principal(str(one["name"]), frozenset(one["scopes"]), str(one["tenant"]))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            return f"is no file of tokens: {error}"
        self._salt, self._tokens = salt, tokens
        return "" if tokens else "has no tokens"

    def add(self, name: str, scopes: Iterable[str], tenant: str = "") -> str:
        """Make a token, store its hash, and return it. Raises UsageError for a wrong name or scope."""
        scopes = sorted(set(scopes))
        if self.problem and self._seen and self.problem != f"{self.path} has no tokens":
            raise InputError(self.problem)
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
        self.look()
        return token

    def _hash(self, token: str) -> str:
        """Keyed hash of a client's token."""
        return hashlib.blake2b(token.encode(), key=self._salt, digest_size=32).hexdigest()

    def principal(self, header: str | None) -> Principal:
        """Client that shows a token. Raises Problem: 401, 429 if it asks too often, 503 if the tokens cannot be
        read."""
        self.look()
        who = EVERYBODY
        if not self.open:
            if self.problem:
                raise Problem(503, "tokens", f"nobody is let in: {self.problem}", headers={"Retry-After": "30"})
            kind, _, token = (header or "").partition(" ")
            given = self._hash(token.strip()) if kind.lower() == "bearer" else ""
            matching = [one for digest, one in self._tokens.items() if hmac.compare_digest(digest, given)]
            if not matching:
                detail = "expected an Authorization header with Bearer and a token that is known"
                raise Problem(401, "token", detail, headers={"WWW-Authenticate": "Bearer"})
            who = matching[0]
        self._count(who.name)
        return who

    def stands(self, who: Principal) -> bool:
        """Whether a client that was let in before would be let in now, with the same rights."""
        self.look()
        return who == EVERYBODY if self.open else not self.problem and who in self._tokens.values()

    def begin(self, name: str) -> None:
        """Begin a reading request of a client. Raises Problem (429) where it has too many."""
        if self._reads[name] >= MOST_READS:
            words = f"{name} has {MOST_READS} reading requests already"
            raise Problem(429, "reads", words, headers={"Retry-After": "1"})
        self._reads[name] += 1

    def end(self, name: str) -> None:
        """End a reading request of a client."""
        self._reads[name] -= 1

    def _count(self, name: str) -> None:
        """Count a request of a client against its rate. Raises Problem (429)."""
        now, burst = self.clock(), max(1.0, 2 * self.rate) if self.burst is None else self.burst
        bucket = self._buckets.setdefault(name, _Bucket(burst, now))
        self._buckets.move_to_end(name)
        if len(self._buckets) > MOST_PRINCIPALS:
            self._buckets.popitem(last=False)
        bucket.tokens = min(burst, bucket.tokens + self.rate * (now - bucket.at_s))
        bucket.at_s = now
        if bucket.tokens < 1:
            wait = max(1, round((1 - bucket.tokens) / self.rate))
            raise Problem(
                429, "rate", f"{name} asks more than {self.rate:g} times a second", headers={"Retry-After": str(wait)}
            )
        bucket.tokens -= 1


def _others(found: os.stat_result) -> str:
    """Reason why the file of tokens is in the hands of others; empty if it is not."""
    if os.name != "posix":
        return ""
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "may be written by others; expected chmod 600"
    return "" if found.st_uid in (0, os.geteuid()) else "belongs to another user"
