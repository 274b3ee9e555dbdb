"""Whatever an earlier service, a full disk or another version has left: it starts, and has what was acknowledged."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from mast_opt.live.loop import events as ev
from mast_opt.live.service.access import Access
from mast_opt.live.service.app import build
from mast_opt.live.service.solve_files import ALIVE, ASKED, ERRORS, INSTANCE, OUTCOME, PLAN, SETTINGS, files_checksum
from mast_opt.live.service.solves import Solves
from mast_opt.live.store.codec import chained
from mast_opt.live.store.errors import StoreError
from mast_opt.live.store.records import Batch, OpenCommand, StoredPlan
from mast_opt.live.store.sql_store import EVENT_COLUMNS, SqlStore
from mast_opt.live.store.sqlite import DATABASE, open_sqlite
from mast_opt.planner.io.events import EVENTS
from tests.platforms import needs
from tests.service.loops import loop, running, submit, web
from tests.service.processes import Service

ENDED, AWAITED = "data-ended", "data-awaited"
FILES = (
    *("tokens.json", "head", "leader.lock", "access.jsonl"),
    *(
        f"plans/{ENDED}/{name}"
        for name in (ASKED, SETTINGS, OUTCOME, INSTANCE, EVENTS, ERRORS, ALIVE, f"{PLAN}/plan.toml")
    ),
    *(f"plans/{AWAITED}/{name}" for name in (ASKED, OUTCOME, EVENTS)),
)
DAMAGES = ("empty", "cut", "garbage", "later", "gone", "folder")
TABLES = ("answers", "commands", "plans", "snapshots", "lead", "base")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that a service has left: jobs, a snapshot, a solve that has ended, one whose end is not in the log."""
    folder = tmp_path_factory.mktemp("kept") / "state"
    leave(folder, lambda: open_sqlite(folder))
    return folder


def leave(folder: Path, opened: Callable[[], SqlStore]) -> None:
    """Be such a service, with this store."""
    folder.mkdir(exist_ok=True)
    with running(folder, opened()) as (live, store):
        submit(live, "a", "b", "c", "d", key="k", digest="1").result(60)
        submit(live, "e", key="l", digest="1").result(60)
        Access(folder / "tokens.json").add("ada", ["read"])
        (folder / "access.jsonl").write_text('{"at_ms": 1}\n')
        for name, checksum in ((ENDED, "1"), (AWAITED, "2")):
            own = folder / "plans" / name
            (own / PLAN).mkdir(parents=True)
            asked = {"id": name, "path": "data", "solver": "tetris", "by": "ada", "checksum": checksum, "asked_ms": 1}
            (own / ASKED).write_text(json.dumps(asked))
            (own / SETTINGS).write_text("{}")
            outcome = {"status": "FEASIBLE", "objective": 1.5, "bound": 1.0, "error": ""}
            (own / OUTCOME).write_text(json.dumps(outcome))
            for file in (INSTANCE, EVENTS, ERRORS, ALIVE, f"{PLAN}/plan.toml"):
                (own / file).write_text('{"x": 1}\n')
        live.submit(_request(ev.SolveAsked("data", "1"))).result(60)
        live.submit(_request(ev.SolveEnded("data", "1", "FEASIBLE", ENDED, 1.0))).result(60)
        live.submit(_request(ev.SolveAsked("data", "2"))).result(60)
        checksum = files_checksum(folder / "plans" / ENDED / PLAN)
        plan = StoredPlan(ENDED, "data", ENDED, checksum, "1", "FEASIBLE", 1.5, 1.0, 1)
        store.save_plan(live.epoch, plan)
    store = opened()
    command = OpenCommand("a/1/stop", "Stop", {"job": "a", "attempt": 1, "why": "test"})
    epoch = store.take_lead("test", 0)
    store.append(epoch, Batch(store.last_seq(), commands=[command]))
    store.release_lead(epoch)
    store.close()


def _request(event: ev.Event):  # type: ignore[no-untyped-def]
    from mast_opt.live.service.turn_requests import Request

    return Request((event,), lambda verdicts: (200, ""))


@pytest.fixture
def folder(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kept, tmp_path / "state"))


def _damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how in ("gone", "folder"):
        path.unlink()
        if how == "folder":
            path.mkdir()
        return
    if how == "later":
        try:
            content = json.dumps({**json.loads(content), "added": {"by": "a later version"}}).encode()
        except (ValueError, TypeError):
            content += b"\nadded by a later version\n"
    path.write_bytes(
        {"empty": b"", "cut": content[: len(content) // 2], "garbage": b"\xff\x00{[" * 40}.get(how, content)
    )


def starts(folder: Path, store: SqlStore) -> list[str]:
    """Start, ask for what was acknowledged, take in more, and end; returns what was left aside."""
    live = loop(store)
    try:
        live.start()
        solves = Solves(live, store, folder / "plans")
        solves.resume()
        access = Access(folder / "tokens.json")
        client = web(build(live, store, access, solves))
        assert client.get("/readyz").status_code == 200
        assert client.get("/v1/fleet").status_code in (401, 503)
        client = web(build(live, store, Access(None), solves))
        assert [one["job"] for one in client.get("/v1/jobs").json()["jobs"]][:5] == ["a", "b", "c", "d", "e"]
        assert submit(live, "f", key="m", digest="1").result(60)[0] == 201
        for name in ("a", "b", "c", "d", "e"):
            assert submit(live, name).result(60)[1] == "exists"
        for path in ("/v1/solves", "/v1/plans", f"/v1/solves/{ENDED}"):
            assert client.get(path).status_code in (200, 404)
        adopted = client.post(f"/v1/plans/{ENDED}/adopt", headers={"content-type": "application/json"})
        assert adopted.status_code in (404, 409)
        solves.close()
        return [*store.left_aside, *solves.left_aside, *([access.problem] if access.problem else [])]
    finally:
        live.close()
        store.close()


def _starts(folder: Path) -> list[str]:
    return starts(folder, open_sqlite(folder))


def test_an_undamaged_folder_leaves_nothing_aside(folder: Path) -> None:
    assert _starts(folder) == []


NO_DAMAGE = {("head", "folder"), ("leader.lock", "folder"), ("tokens.json", "gone")}
"""What damages nothing: a folder of these names, and no tokens at all (see ``test_door``)."""


@pytest.mark.parametrize(("name", "how"), [(n, h) for n in FILES for h in DAMAGES if (n, h) not in NO_DAMAGE])
def test_a_damaged_file_stops_no_service(folder: Path, name: str, how: str) -> None:
    _damage(folder / name, how)
    said = _starts(folder)
    if how in ("empty", "cut", "garbage") and (name == "tokens.json" or name.endswith(ASKED)):
        assert any(name in words for words in said)
    if name == "head" and how in ("cut", "garbage"):
        assert any("head" in words for words in said)


@pytest.mark.parametrize("how", ["gone", "value", "digest"])
@pytest.mark.parametrize("table", TABLES)
def test_a_damaged_row_stops_no_service(folder: Path, table: str, how: str) -> None:
    store = open_sqlite(folder)
    damage_row(store, table, how)
    store.close()
    said = _starts(folder)
    if table in ("commands", "plans") and how != "gone":
        assert any(table[:-1] in words for words in said)


def damage_row(store: SqlStore, table: str, how: str) -> None:
    column = {
        "answers": "body",
        "commands": "body",
        "plans": "status",
        "snapshots": "blob",
        "lead": "holder",
        "base": "seq",
    }
    if how == "gone":
        store._db.execute(f"DELETE FROM {table}")
    elif how == "value" and table != "base":
        store._db.execute(f"UPDATE {table} SET {column[table]} = ?", (b"x" if table == "snapshots" else "x",))
    elif table not in ("lead", "base"):
        store._db.execute(f"UPDATE {table} SET digest = ?", (b"x",))


LATER = "a later version"
LOG = [
    ("UPDATE meta SET value = 99", "the store has tables of version 99; this version of mast-opt reads"),
    ("UPDATE meta SET value = 'x'", "does not say which version its tables have; restore a backup"),
    ("DELETE FROM meta", "does not say which version its tables have; restore a backup"),
    ("UPDATE events SET format = 2 WHERE seq = {last}", f"has format 2; this version reads format 1: use {LATER}"),
    ("{unknown}", f"is a NotYet, which this version does not know: use {LATER}"),
    ("UPDATE events SET body = substr(body, 1, 3) WHERE seq = {last}", "is not what was written; restore a backup"),
    ("UPDATE events SET kind = 'x' WHERE seq = {last}", "is not what was written; restore a backup"),
    ("DELETE FROM events WHERE seq = {last}", "was acknowledged: its end is lost; restore a backup"),
    ("DELETE FROM events", "was acknowledged: its end is lost; restore a backup"),
]
"""Damage of the log itself, and of what says how to read it, and the line with which the start is refused."""


@pytest.mark.parametrize(("statement", "words"), LOG)
def test_a_log_that_cannot_be_read_is_refused_by_name(folder: Path, statement: str, words: str) -> None:
    store = open_sqlite(folder)
    damage_log(store, statement)
    store.close()
    for _ in range(2):
        with pytest.raises(StoreError, match=words):
            _starts(folder)


def damage_log(store: SqlStore, statement: str) -> None:
    last, chain = store._last()
    store._db.execute("DELETE FROM snapshots")
    if statement == "{unknown}":
        made = chained(chain, 10**13, "NotYet", "{}")
        store._db.insert("events", EVENT_COLUMNS, [(last + 1, 10**13, 1, 1, "NotYet", None, "{}", made, None)])
    else:
        store._db.execute(statement.format(last=last))


@pytest.mark.parametrize("how", [how for how in DAMAGES if how != "later"])  # SQLite has one format
def test_a_database_that_cannot_be_read_is_refused(folder: Path, how: str) -> None:
    _damage(folder / DATABASE, how)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"restore a backup|cannot be opened"):
            _starts(folder)


@pytest.mark.parametrize("end", ["-wal", "-shm"])
@pytest.mark.parametrize("content", [b"", b"\xff\x00{[" * 40, b"x" * 50_000])
def test_what_lies_beside_a_closed_database_may_be_damaged(folder: Path, end: str, content: bytes) -> None:
    (folder / (DATABASE + end)).write_bytes(content)
    assert _starts(folder) == []


def test_names_of_deleted_events_may_be_damaged(folder: Path) -> None:
    store = open_sqlite(folder)
    store._db.execute("INSERT INTO names VALUES (X'FF00')")
    store.close()
    assert _starts(folder) == []


@pytest.mark.second_tier
@needs("signals")
def test_the_command_says_what_it_left_aside_and_refuses_a_later_log(folder: Path) -> None:
    (folder / "tokens.json").unlink()
    _damage(folder / "plans" / ENDED / ASKED, "cut")
    _damage(folder / "head", "garbage")
    service = Service(folder, waits=True)
    try:
        said = [service.announced("Left aside: ") for _ in range(2)]
        assert {Path(words.rstrip(",:")).name for words in said} == {"head", ASKED}
        service.announced()
        assert httpx.get(service.url + "v1/jobs").json()["count"] == 5
    finally:
        assert service.end(signal.SIGTERM) == 0
    store = open_sqlite(folder)
    store._db.execute("UPDATE meta SET value = 99")
    store.close()
    refused = Service(folder, waits=True)
    assert refused.process.stderr is not None
    lines = [line for line in refused.process.stderr if line.strip()]
    assert (refused.process.wait(), len(lines)) == (1, 2), lines
    assert "error: the store has tables of version 99" in lines[-1]
    refused.process.stderr.close()


def test_an_answer_that_is_damaged_is_forgotten(folder: Path) -> None:
    store = open_sqlite(folder)
    store._db.execute("UPDATE answers SET body = 'x' WHERE key = 'k'")
    store.close()
    with running(folder) as (live, store):
        assert submit(live, "a", "b", "c", "d", key="k", digest="1").result(60)[1] == "exists,exists,exists,exists"
        assert submit(live, "a", "b", "c", "d", key="k", digest="1").result(60)[1] == "exists,exists,exists,exists"
        assert submit(live, "e", key="l", digest="1").result(60) == (201, "accepted")
        assert [words for words in store.left_aside if "request k " in words]


def test_no_epoch_comes_twice(folder: Path) -> None:
    store = open_sqlite(folder)
    ((before,),) = store._db.execute("SELECT MAX(epoch) FROM events")
    store._db.execute("DELETE FROM lead")
    assert store.take_lead("other", 15) == before + 1
    store.close()


@pytest.fixture
def full(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A disk on which files are made and nothing is written to them."""
    written = Path.write_text

    def refuse(self: Path, *given: object, **named: object) -> int:
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", refuse)
    yield folder
    monkeypatch.setattr(Path, "write_text", written)


def test_a_solve_that_finds_the_disk_full_leaves_nothing_that_stops_a_start(full: Path) -> None:
    with running(full) as (live, store):
        solves = Solves(live, store, full / "plans")
        client = web(build(live, store, Access(None), solves))
        live.submit(_request(ev.SolveEnded("data", "2", "LOST"))).result(60)
        client.put("/v1/datasets/logs", json={"regions": ["west"], "size_tb": 2})
        answer = client.post("/v1/solves", json={"path": "data"})
        assert answer.status_code in (409, 503), answer.text
        solves.close()
