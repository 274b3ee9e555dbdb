"""The page of operators in a real browser, with real clicks, on 10,000 jobs."""

from __future__ import annotations

import json
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mast_opt.live.service.access import Access
from tests.platforms import needs
from tests.service.clicks import Browser
from tests.service.processes import Service

JOBS, TENANTS = 10_000, 7
CLUSTER = "2869ce"
pytestmark = [pytest.mark.second_tier, needs("signals"), needs("browser")]


class Operator:
    """A service with tokens, and somebody who may do everything there."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.token = Access(folder / "tokens.json").add("ops", ["submit", "read", "operate"])
        self.service = Service(folder)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(f"{self.service.url}v1/{path}", data, headers, method=method)
        with urllib.request.urlopen(asked) as answer:
            return json.load(answer)

    def closed(self) -> dict[str, int | None]:
        return {one["server"]: one["stop_ms"] for one in self.ask("GET", "drains")["servers"]}


@contextmanager
def operated(folder: Path) -> Iterator[Operator]:
    """A fleet of which one cluster has two racks, full, with a long queue."""
    one = Operator(folder)
    try:
        new = {"state": "up", "region": CLUSTER, "cluster": CLUSTER, "rack": "new", "gpu_type": "gpu", "gpus": 8}
        one.ask("PUT", "servers/new-0", new)
        job = {"gpus": 8, "duration_s": 9000, "preemptible": False}
        jobs = [
            {"job": f"tier-{at % 3}-{at}", "tier": at % 3, "tenant": f"team-{at % TENANTS}", **job}
            for at in range(JOBS)
        ]
        one.ask("POST", "jobs", [*jobs[1:], {"job": "too-large", "tasks": 1000, "gpus": 8}])
        one.ask("PUT", "quotas/team-3", {"gpus": 16})
        yield one
    finally:
        one.service.end(signal.SIGKILL)


QUEUE = """[...document.querySelectorAll("#waiting tr")].map((row) => [0, 1].map((at) => row.cells[at].textContent))"""
OVER = """[...document.querySelectorAll("td.number")].filter((cell) => {
  const head = cell.closest("table").querySelectorAll("th")[cell.cellIndex];
  const right = (one) => one.getBoundingClientRect().right;
  return Math.abs(right(head) - right(cell)) > 1 || getComputedStyle(head).textAlign !== "right";
}).length"""
"""Numbers whose heads are not right above them."""
WIDE = "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth + 1).length"


@pytest.mark.parametrize("width", [1400, 390])
def test_an_operator_looks_cancels_and_drains(tmp_path: Path, width: int) -> None:
    with operated(tmp_path / "state") as one, Browser(width, tmp_path / "profile") as page:
        page.do("Page.navigate", url=one.service.url)
        page.until("!document.getElementById('sign-in').hidden")
        page.type("#token", one.token)
        page.press("#sign-in button")
        page.until("document.querySelectorAll('#waiting tr').length")
        states = one.ask("GET", "jobs?limit=1")["states"]
        assert (states["running"], sum(states.values())) == (33, JOBS)
        assert page.value("document.getElementById('waiting-count').textContent") == "9,967"
        assert page.value("document.querySelectorAll('button.cell').length") == 33
        assert page.value("document.querySelectorAll('#tenants tr').length") == TENANTS + 1
        queue = one.ask("GET", "jobs?state=waiting&order=place&limit=50")["jobs"]
        assert page.value(QUEUE) == [[str(at), job["job"]] for at, job in enumerate(queue, start=1)]
        assert page.value("document.documentElement.scrollWidth - innerWidth") <= 0
        assert page.value(WIDE) == 0
        assert width < 700 or page.value(OVER) == 0
        page.picture(tmp_path / f"page-{width}.png")

        first = queue[0]["job"]
        assert page.click("#waiting button", "cancel", reply=None) == f"Cancel job {first}?"
        assert one.ask("GET", f"jobs/{first}")["state"] in ("queued", "submitted")
        page.click("#waiting button", "cancel", reply="")
        page.until(f"({QUEUE})[0][1] !== {json.dumps(first)}")
        assert one.ask("GET", f"jobs/{first}")["state"] == "cancelled"

        page.type("#text", "too-")
        page.until("document.querySelectorAll('#waiting tr').length === 1")
        assert "it can never run" in page.value("document.querySelector('#waiting td.why').textContent")

        assert page.click("#fleet .cell", reply=None).startswith(f"Close server {CLUSTER}-0?")
        page.click("#fleet .cell", reply="soon")
        assert page.asked[-1] == "soon is no number of minutes."
        assert one.closed() == {}
        page.click("#fleet .cell", reply="")
        page.until("!!document.querySelector('.cell.closed')")
        assert one.closed() == {f"{CLUSTER}-0": None}
        page.click("#fleet button.name", "new", reply="5")
        page.until("document.querySelectorAll('.cell.closed').length === 2")
        assert one.closed()["new-0"] is not None
        assert page.click("#fleet button.name", CLUSTER, reply="") == f"Open cluster {CLUSTER}?"
        page.until("!document.querySelector('.cell.closed')")
        page.click("#fleet button.name", CLUSTER, reply="")
        page.until("document.querySelectorAll('.cell.closed').length === 17")
        assert len(one.closed()) == 17
        assert page.faults == []
