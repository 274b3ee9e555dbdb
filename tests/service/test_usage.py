"""Usage over HTTP: the table of reports, in parts, after a restart, after old events are deleted, and who sees it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from mast_opt.live.loop.history import history
from mast_opt.live.reports.usage import HEADS, usage_of
from mast_opt.live.service import usage_so_far
from mast_opt.live.service.access import Access
from mast_opt.live.service.app import build
from mast_opt.live.service.usage_so_far import UsageSoFar
from mast_opt.live.store.sql_store import SqlStore
from tests.report.test_usage import LOG, TABLE
from tests.service.loops import SHORT, running, submit, web

PRICES = {"H100": 3.0}


class Log:
    """A store of the events of a list."""

    def __init__(self) -> None:
        self.events = LOG

    def last_seq(self) -> int:
        return len(self.events)

    def first_seq(self) -> int:
        return 1

    def read(self, after: int, upto: int) -> list[Any]:
        return self.events[after:upto]


@pytest.mark.parametrize("most", [1, 2, 3, 5, 100])
def test_usage_of_parts_of_a_log_adds_up_to_that_of_the_whole(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(usage_so_far, "MOST_READ", most)
    usage = UsageSoFar(Log())  # type: ignore[arg-type]
    covers = {"event": 0, "last": 1}
    while covers["event"] < covers["last"]:
        rows, covers = usage.read({"h100": 2.0})
    assert rows == TABLE
    assert (covers["first_ms"], covers["last_ms"]) == (LOG[0].at_ms, LOG[-1].at_ms)
    assert usage.read(None)[0][0].cost is None
    assert not usage._fold.fold.jobs  # those that have ended are forgotten


def table(store: SqlStore, upto: int) -> list[dict[str, Any]]:
    rows = usage_of(history(store.read(0, upto)), PRICES)
    return [
        dict(zip(HEADS, (row.month, row.tenant, row.asked, row.held, row.idle, row.lost, row.cost), strict=True))
        for row in rows
    ]


def test_usage_is_that_of_the_log_also_after_a_restart_and_a_tenant_sees_its_own(tmp_path: Path) -> None:
    access = Access(tmp_path / "tokens.json")
    tokens = {
        "ada": access.add("ada", ["read"], "a"),
        "lead": access.add("lead", ["read", "operate"], "a"),
        "bob": access.add("bob", ["submit"], "b"),
    }
    for start in range(2):
        with running(tmp_path / "state") as (live, store):
            for number in range(3):
                for tenant in "ab":
                    spec = replace(SHORT, tenant=tenant, duration_ms=3_600_000 * (number > 0))
                    assert submit(live, f"{tenant}-{start}-{number}", spec=spec).result(10)[0] == 201
            client = web(build(live, store, access))

            def ask(who: str, status: int = 200, *, client: TestClient = client, **query: str | int) -> Any:
                headers = {"Authorization": f"Bearer {tokens[who]}"}
                answer = client.get("/v1/usage", params=query, headers=headers)
                assert answer.status_code == status
                return answer.json()

            found = ask("lead", prices="H100:3")
            assert found["usage"] == table(store, found["event"])
            assert [row["tenant"] for row in found["usage"]] == ["a", "b"]
            assert found["matching"] == 2
            assert found["event"] == found["last"]
            assert [row["tenant"] for row in ask("ada")["usage"]] == ["a"]
            assert ask("ada", tenant="b")["usage"] == []
            assert [row["tenant"] for row in ask("lead", skip=1, limit=1)["usage"]] == ["b"]
            assert ask("lead", month="1999-01")["matching"] == 0
            assert ask("lead")["usage"][0]["cost"] is None
            for prices in ("", "H100", "H100:-1", "H100:1,H100:2", "H100:nan"):
                ask("lead", 422, prices=prices)
            ask("bob", 403)


def test_usage_goes_on_from_the_oldest_snapshot_where_events_are_deleted(tmp_path: Path) -> None:
    with running(tmp_path) as (live, store):
        submit(live, *"abcd").result(10)
        live._save_snapshot()
        begun = store.newest_snapshot()
        store.retain(live.epoch, events_from=begun + 1, answers_from_ms=0)
        time.sleep(0.01)  # some usage
        submit(live, "e").result(10)
        usage = UsageSoFar(store)
        (row,), covers = usage.read(None)
        assert covers["event"] == covers["last"] > begun
        assert len(usage._fold.fold.jobs) == 5
        held = sum(job.mgpu for job in usage._fold.fold.jobs.values() if job.placed is not None)
        assert held == sum(record.mgpu for record in live._engine.state.jobs.values()) > 0
        assert row.asked > row.held >= 0
