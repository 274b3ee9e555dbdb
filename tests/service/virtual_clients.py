"""Clients of a virtual service over a bad network, and what each answer must be, whatever else happens."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mast_opt.live.service.access import Access
from mast_opt.live.service.connections import HEAD_S
from mast_opt.live.service.handlers import BODY_S
from mast_opt.live.service.streams import MOST_OF_CLIENT
from tests.service.loops import SERVERS
from tests.service.virtual_network import Answer, Connection, request_bytes
from tests.service.virtual_service import RATE, Outside

PATIENCE_S = 60.0
TRY_AGAIN = (0, 408, 429, 503)
"""Statuses, or no answer, after which a client asks again."""
STATUSES = {200, 201, 202, 207, 400, 401, 403, 404, 405, 408, 409, 413, 415, 421, 422, 429, 431, 503}
TENANTS = ("red", "blue")
PATHS = (
    *("/v1/jobs?state=waiting", "/v1/jobs?state=holding&search=a", "/v1/fleet", "/v1/overview", "/v1/drains"),
    *("/v1/quotas", "/v1/events?limit=20", "/v1/solves", "/v1/plans", "/metrics", "/openapi.json", "/"),
)


@dataclass
class Wanted:
    """A job that somebody wants.

    Args:
        by: names of all requests that asked for it, as the log has them.
    """

    tenant: str
    by: set[str] = field(default_factory=set)
    acknowledged: bool = False


class Clients:
    """Clients with tokens: one of each tenant, one that operates, and one that may only read."""

    def __init__(self, outside: Outside) -> None:
        self.outside, self.rng = outside, outside.rng
        access = Access(outside.tokens)
        self.secret = {name: access.add(name, ["submit", "read"], name) for name in TENANTS}
        self.secret["ops"] = access.add("ops", ["submit", "read", "operate"])
        self.secret["eve"] = access.add("eve", ["read"])
        self.sound_tokens = outside.tokens.read_bytes()
        self.network_odds = 0.1
        self.jobs: dict[str, Wanted] = {}
        self.answered: dict[str, tuple[tuple[Any, ...], bytes]] = {}
        """Key → the request and the answer that it got first."""
        self.cancels: list[tuple[str, str]] = []
        """(client, job) of cancels that were accepted."""
        self.stopping = False
        self.seen: Counter[str] = Counter()
        """What was done, so that nothing is left untested."""
        self.numbers = outside.numbers
        self._pool: dict[str, Connection] = {}

    # --- one request ---

    def _pieces(self, content: bytes) -> list[tuple[bytes, float]]:
        """A request in pieces, some of them late."""
        if self.rng.random() > self.network_odds:
            return [(content, 0.0)]
        cuts = sorted({0, *self.rng.integers(0, len(content), 3).tolist()})
        parts = [content[first:last] for first, last in zip(cuts, [*cuts[1:], len(content)], strict=True)]
        return [(part, float(self.rng.exponential(0.3))) for part in parts]

    async def ask(
        self,
        who: str,
        method: str,
        path: str,
        body: Any = None,
        key: str = "",
        name: str = "",
        patience_s: float = PATIENCE_S,
        **more: str,
    ) -> Answer:
        """A request that may be lost, or its answer; the answer is checked."""
        address = f"10.0.0.{1 + int(self.rng.integers(3))}"
        headers = {"Host": "localhost", "X-Request-Id": name or f"r{next(self.numbers)}"}
        if who:
            headers["Authorization"] = f"Bearer {self.secret.get(who, who)}"
        if key:
            headers["Idempotency-Key"] = key
        content = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        if content is not None:
            headers["Content-Type"] = "application/json"
        headers |= {at.replace("_", "-"): value for at, value in more.items()}
        if self.outside.killed:
            return Answer()
        connection = self._pool.pop(address, None)
        if connection is None or not connection.open:
            connection = self.outside.process.network.connect(address)
        chunks = int(self.rng.integers(1, 500)) if content and self.rng.random() < 0.2 else 0
        head, sent = request_bytes(method, path, headers, content, chunks=chunks)
        pieces = self._pieces(head + sent)
        is_cut = self.rng.random() < self.network_odds
        if is_cut and self.rng.random() < 0.5:
            await connection.send(pieces[: int(self.rng.integers(len(pieces)))])
            connection.cut()
            return Answer()
        await connection.send(pieces)
        found = await connection.answer(float(self.rng.exponential(0.1)) if is_cut else patience_s)
        if not found.whole or self.rng.random() < 0.5:
            connection.cut()
        else:
            self._pool[address] = connection
        if not found.whole:
            if not path.endswith("/stream"):
                found.status = 0
            return found
        self._check(found, headers["X-Request-Id"], f"{method} {path}")
        return found

    def _check(self, found: Answer, name: str, what: str) -> None:
        """Every answer is of a known kind, and says whose it is."""
        assert found.status in STATUSES, (what, found)
        assert found.headers.get("x-request-id") == name, (what, found)
        if found.status >= 400:
            assert found.headers["content-type"] == "application/problem+json", (what, found)
            assert found.json()["status"] == found.status
            assert found.json()["detail"]
        self.seen[f"{what.split()[0]} {found.status}"] += 1

    async def until_answered(self, who: str, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        """The answer to a request that is repeated, with its key, until there is one."""
        key = f"k{next(self.numbers)}"
        twice = self.rng.random() < self.network_odds
        request = who, method, path, body
        for _ in range(400):
            asked = [self.ask(*request, key=key, **more) for _ in range(1 + twice)]
            answers = [one for one in await asyncio.gather(*asked) if one.status not in TRY_AGAIN]
            for one in answers:
                if one.status < 300:
                    first = self.answered.setdefault(key, (request, bytes(one.body)))
                    assert first[1] == bytes(one.body), (request, first, one)
            if answers:
                return answers[0]
            await asyncio.sleep(float(self.rng.exponential(1.0)))
        raise AssertionError(f"{method} {path} of {who} got no answer")

    # --- what clients do ---

    async def submits(self) -> None:
        """A job, or a list of some."""
        who = str(self.rng.choice([*TENANTS, "ops"]))
        names = [f"job-{next(self.numbers)}" for _ in range(1 + int(self.rng.random() < 0.2) * 2)]
        tenant = who if who in TENANTS else str(self.rng.choice(TENANTS))
        jobs = [{"job": one, "tenant": tenant, **self._job()} for one in names]
        addressed = f"r{next(self.numbers)}"
        for one in names:
            self.jobs[one] = Wanted(tenant, {f"{who} 10.0.0.{at} {addressed}" for at in (1, 2, 3)})
        found = await self.until_answered(who, "POST", "/v1/jobs", jobs if len(jobs) > 1 else jobs[0], name=addressed)
        assert found.status == 201, found
        for one in names:
            self.jobs[one].acknowledged = True

    def _job(self) -> dict[str, Any]:
        rng = self.rng
        return {
            "tier": int(rng.integers(4)),
            "tasks": int(rng.integers(1, 3)),
            "gpus": int(rng.choice([1, 2, 4, 8])),
            "duration_s": int(rng.integers(60)),
            "checkpoint_s": int(rng.choice([0, 5])),
            "preemptible": bool(rng.random() < 0.7),
        }

    async def cancels_one(self) -> None:
        """A cancel by the owner, by another tenant, by one who operates, or by one who may only read."""
        known = [name for name, one in self.jobs.items() if one.acknowledged]
        if not known:
            return
        name, who = known[-1 - int(self.rng.integers(min(8, len(known))))], str(self.rng.choice([*self.secret]))
        found = await self.until_answered(who, "DELETE", f"/v1/jobs/{name}")
        may = who == "ops" or who == self.jobs[name].tenant
        assert found.status in ((202, 404) if may else (403,) if who == "eve" else (403, 404)), (who, name, found)
        if found.status == 202:
            self.cancels.append((who, name))
            self.seen[f"cancel by {'owner' if who in TENANTS else who}"] += 1

    async def uses_a_key_twice(self) -> None:
        """A key that came with another request is refused."""
        if not self.answered:
            return
        key = list(self.answered)[-1 - int(self.rng.integers(min(20, len(self.answered))))]
        (who, method, path, body), first = self.answered[key]
        again = await self.ask(who, method, path, body, key=key)
        assert again.status in TRY_AGAIN or bytes(again.body) == first, (path, again, first)
        other = f"{path}x" if method != "POST" else path
        found = await self.ask(who, method, other, body if method != "POST" else {"job": "other"}, key=key)
        assert found.status in (*TRY_AGAIN, 422) or path.endswith("adopt"), (method, path, found)

    async def operates(self) -> None:
        """Servers break, close and come back; quotas change; one who may only submit may do none of that."""
        server = str(self.rng.choice([one.name for one in SERVERS]))
        what: tuple[str, str, Any] = [
            ("PUT", f"/v1/servers/{server}", {"state": str(self.rng.choice(["up", "down"]))}),
            ("POST", "/v1/drains", {"of": "server", "name": server, "state": str(self.rng.choice(["closed", "open"]))}),
            ("PUT", "/v1/quotas/red", {"gpus": int(self.rng.integers(8, 25))}),
            ("PUT", "/v1/regions/east", {"storage_tb": int(self.rng.integers(5, 20))}),
        ][int(self.rng.integers(4))]
        found = await self.until_answered("ops", *what)
        assert found.status in (200, 409), (what, found)
        refused = await self.ask(str(self.rng.choice(["eve", *TENANTS])), *what)
        assert refused.status in (*TRY_AGAIN, 403), (what, refused)

    async def reads(self) -> None:
        """One page after another is right in itself."""
        path = str(self.rng.choice(PATHS))
        found = await self.ask(str(self.rng.choice(["eve", "ops"])), "GET", path)
        assert found.status in (*TRY_AGAIN, 200), (path, found)
        if found.status == 200 and path.startswith("/v1/jobs"):
            said = found.json()
            assert sum(said["states"].values()) == said["count"] >= said["matching"] >= len(said["jobs"])
            assert all(one["why"] and one["place"] >= 1 for one in said["jobs"] if one["state"] == "queued"), said
        if found.status == 200 and path.startswith("/v1/events"):
            numbers = [one["seq"] for one in found.json()["events"]]
            assert numbers == [*range(found.json()["last"] - len(numbers) + 1, found.json()["last"] + 1)]
        alive = self.outside.process.network.connect("10.0.0.9")
        await alive.send([(request_bytes("GET", "/livez", {"Host": "localhost"}, None)[0], 0.0)])
        answer = await alive.answer(5.0)
        assert answer.status == 200 or not alive.open, answer
        alive.cut()

    async def is_refused(self) -> None:
        """What nobody may ask for."""
        body = {"job": f"refused-{next(self.numbers)}"}
        cases: list[tuple[int, str, str, str, dict[str, Any]]] = [
            (421, "ops", "POST", "/v1/jobs", {"Host": "evil.example"}),
            (403, "ops", "POST", "/v1/jobs", {"Origin": "http://evil.example"}),
            (403, "ops", "POST", "/v1/jobs", {"Sec_Fetch_Site": "cross-site"}),
            (415, "ops", "POST", "/v1/jobs", {"Content_Type": "text/plain"}),
            (405, "ops", "PATCH", "/v1/jobs", {}),
            (401, "nobody", "POST", "/v1/jobs", {}),
            (401, "", "POST", "/v1/jobs", {}),
            (403, "eve", "POST", "/v1/jobs", {}),
            (403, "red", "POST", "/v1/jobs", {"tenant": "blue"}),
            (422, "red", "POST", "/v1/jobs", {"gpu": "1"}),
        ]
        status, who, method, path, more = cases[int(self.rng.integers(len(cases)))]
        wrong = {name: value for name, value in more.items() if name[0].islower()}
        headers = {name: value for name, value in more.items() if name[0].isupper()}
        found = await self.ask(who, method, path, body | wrong, **headers)
        assert found.status in (*TRY_AGAIN, status), (status, more, found)

    async def sends_too_much(self) -> None:
        """Too large a body, a slow one, a slow head, connections that say nothing, too many requests."""
        head = {
            "Host": "localhost",
            "Authorization": f"Bearer {self.secret['red']}",
            "Content-Type": "application/json",
        }
        body = json.dumps({"job": f"large-{next(self.numbers)}", "tenant": "red", "why": "x" * 5000}).encode()
        what = int(self.rng.integers(5))
        network = self.outside.process.network
        if what <= 1:
            first, rest = request_bytes("POST", "/v1/jobs", head, body, chunks=700 * what)
            connection = network.connect("10.0.0.7")
            await connection.send([(first + rest, 0.0)])
            found = await connection.answer(PATIENCE_S)
            assert found.status in (*TRY_AGAIN, 413), found
        elif what == 2:
            first, rest = request_bytes("POST", "/v1/jobs", head, b'{"job": "slow"}')
            connection = network.connect("10.0.0.7")
            await connection.send([(first + rest[:5], BODY_S + 1)])
            found = await connection.answer(BODY_S)  # the clock goes on by itself before the service begins to wait
            assert found.status in (*TRY_AGAIN, 413), found
            assert found.status or not connection.open, "a slow body is waited for"
        elif what == 3:
            connection = network.connect("10.0.0.7")
            await connection.send([(b"POST /v1/jobs HTTP/1.1\r\nHost: local", HEAD_S + 1)])
            assert not connection.open, "a slow head is waited for"
        else:
            silent = [network.connect("10.0.0.8") for _ in range(50)]
            await asyncio.sleep(1.0)
            assert network.room._of.total() <= 40
            for one in silent:
                one.cut()
            return
        connection.cut()

    async def asks_too_often(self) -> None:
        """A client that asks more often than it may is refused, and no other."""
        process, begun = self.outside.process, self.outside.loop.time()
        found = await asyncio.gather(*(self.ask("blue", "GET", "/v1/quotas") for _ in range(int(3 * RATE))))
        answered = sum(one.status == 200 for one in found)
        if process is self.outside.process:
            assert answered <= 2 * RATE + RATE * (self.outside.loop.time() - begun) + 1, answered
        self.seen["too often"] += any(one.status == 429 for one in found)

    async def follows(self) -> None:
        """A stream of events has every event once, in order, from the one after the last that was seen."""
        last = int(self.rng.integers(len(self.outside.log) + 1))
        # in pieces or cut, as any other request
        found = await self.ask(
            "eve", "GET", "/v1/events/stream", patience_s=float(self.rng.exponential(20)), Last_Event_ID=str(last)
        )
        if found.status != 200:
            assert found.status in TRY_AGAIN, found
            full = f"has {MOST_OF_CLIENT} streams".encode()  # as the service sees it: some may just have been left
            assert found.status != 429 or b":rate" in found.body or full in found.body, found
            return
        text = bytes(found.body).decode()
        numbers = [int(line[4:]) for line in text.splitlines() if line.startswith("id: ")]
        assert numbers == [*range(last + 1, last + 1 + len(numbers))], (last, numbers)
        said = [
            json.loads(line[6:]) for line in text.splitlines(keepends=True) if line[:6] == "data: " and line[-1] == "\n"
        ]
        for one in said:
            if one["seq"] > len(self.outside.log):
                self.outside.note()
            assert one["event"] == type(self.outside.log[one["seq"] - 1].event).__name__, one
        self.seen["followed"] += len(numbers)

    async def opens_many_streams(self) -> None:
        """No client has more streams than it may."""
        process = self.outside.process
        await asyncio.gather(*(self.follows() for _ in range(MOST_OF_CLIENT + 4)))
        assert max(process.streams._open.values(), default=0) <= MOST_OF_CLIENT

    async def solves(self) -> None:
        """A plan is solved for, waited for, and carried out."""
        name = f"logs-{next(self.numbers)}"
        stored = await self.until_answered("ops", "PUT", f"/v1/datasets/{name}", {"regions": ["west"], "size_tb": 0.01})
        assert stored.status == 200, stored
        job = f"job-{next(self.numbers)}"
        address = f"r{next(self.numbers)}"
        self.jobs[job] = Wanted("red", {f"red 10.0.0.{at} {address}" for at in (1, 2, 3)})
        reads = {"job": job, "gpus": 8, "duration_s": 30, "datasets": [name]}
        assert (await self.until_answered("red", "POST", "/v1/jobs", reads, name=address)).status == 201
        self.jobs[job].acknowledged = True
        self.outside.clock.go_on(3600)
        asked = {"path": "data", "solver": "highs", "time_limit_s": 100}
        begun = await self.until_answered("ops", "POST", "/v1/solves", asked)
        if begun.status != 202:
            assert begun.status == 409, begun
            self.seen["nothing to solve"] += 1
            return
        solve = begun.json()["solve"]
        for _ in range(200):
            await asyncio.sleep(2)
            found = await self.ask("eve", "GET", f"/v1/solves/{solve}")
            if found.status == 200 and found.json()["status"] not in ("RUNNING", "STOPPING"):
                break
        else:
            raise AssertionError(f"solve {solve} does not end: {found}")
        self.seen[f"solve {found.json()['status']}"] += 1
        if found.json()["plan"]:
            adopted = await self.until_answered("ops", "POST", f"/v1/plans/{solve}/adopt", {})
            assert adopted.status in (200, 409), adopted

    async def loses_tokens(self) -> None:
        """The file of tokens is damaged for a while: nobody is let in."""
        path = self.outside.tokens
        path.write_bytes(self.sound_tokens[: int(self.rng.integers(len(self.sound_tokens) - 2))])
        found = await self.ask("ops", "POST", "/v1/jobs", {"job": f"refused-{next(self.numbers)}"})
        new = path.with_suffix(".repaired")
        assert found.status in (0, 503), found
        new.write_bytes(self.sound_tokens)
        new.chmod(0o600)
        new.replace(path)

    # --- all of them ---

    async def acts(self, weights: dict[Callable[[Clients], Any], float]) -> None:
        """One thing after another, until it is to stop."""
        kinds, odds = list(weights), np.array(list(weights.values()))
        while not self.stopping:
            await asyncio.sleep(float(self.rng.exponential(4)))
            if not self.stopping:
                await kinds[int(self.rng.choice(len(kinds), p=odds / odds.sum()))](self)


WEIGHTS: dict[Callable[[Clients], Any], float] = {
    Clients.submits: 10,
    Clients.cancels_one: 4,
    Clients.uses_a_key_twice: 2,
    Clients.operates: 2,
    Clients.reads: 5,
    Clients.is_refused: 2,
    Clients.sends_too_much: 1,
    Clients.asks_too_often: 0.15,
    Clients.follows: 2,
    Clients.opens_many_streams: 0.2,
    Clients.solves: 0.3,
    Clients.loses_tokens: 0.2,
}
