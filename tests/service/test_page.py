"""The page of operators in a real browser, with real clicks, on 10,000 jobs."""

from __future__ import annotations

import json
import signal
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette

from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.policies.mast import Mast
from mast_opt.live.service.access import Access
from mast_opt.live.service.app import build
from mast_opt.problems.job_placement.live_fleet.types import Part
from tests.platforms import needs
from tests.service.clicks import Browser
from tests.service.loops import running, submit
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


class Halving(Mast):
    """Mast, which lets one job go on with half of its tasks."""

    def decide(self, snapshot: Snapshot, actions: Actions) -> None:
        super().decide(snapshot, actions)
        record = snapshot.jobs.get("elastic")
        if record is not None and record.state is JobState.RUNNING and record.tasks == 8:
            actions.resize("elastic", 4)


@contextmanager
def listening(app: Starlette) -> Iterator[str]:
    """The address of a web server in this process."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()


def parts(tasks: int) -> tuple[Part, ...]:
    return (
        Part("trainers", tasks, 2000, gpu_types={"H100": 2000, "A100": 4000}),
        Part("servers", 2, 0, cpu_mcores=4000, within="server"),
    )


@pytest.mark.parametrize("width", [1400, 390])
def test_parts_and_sizes_of_jobs(tmp_path: Path, width: int) -> None:
    with (
        running(tmp_path / "state", policy=Halving) as (live, store),
        listening(build(live, store, Access(None))) as url,
        Browser(width, tmp_path / "profile") as page,
    ):
        elastic = JobSpec(tier=1, tasks=8, min_tasks=1, max_tasks=16, preemptible=True, duration_ms=3_600_000)
        submit(live, "elastic", spec=elastic).result()
        of_parts = JobSpec(tier=1, parts=parts(6), within="region", duration_ms=3_600_000)
        submit(live, "train", spec=of_parts).result()
        submit(live, "large", spec=replace(of_parts, parts=parts(100))).result()
        submit(live, "stretch", spec=replace(elastic, tasks=16)).result()
        page.do("Page.navigate", url=url)
        lines = """[...document.querySelectorAll('#%s tr td div div')].map((line) => line.textContent)"""
        page.until(f"({lines % 'holding'})[0]?.startsWith('4 tasks')")
        with urllib.request.urlopen(f"{url}v1/jobs/train") as answer:
            trainers, servers = json.load(answer)["parts"]
        assert sum(trainers["servers"].values()) == 6
        trains, serves = (", ".join(one["servers"]) for one in (trainers, servers))
        assert page.value(lines % "holding") == [
            f"4 tasks (may have 1 to 16) on {next(iter(live._engine.state.jobs['elastic'].shares)).server}",
            f"trainers: 6 × 2 H100 on {trains}",
            f"servers: 2 without GPUs on {serves}",
        ]
        assert page.value(lines % "waiting") == [
            "trainers: 100 × 2 H100 or 4 A100", "servers: 2 without GPUs", "16 tasks (may have 1 to 16)",
        ]  # fmt: skip
        assert page.value("document.querySelector('#holding tr').cells[3].textContent") == "4"
        assert page.value("document.getElementById('events').textContent").count("train gets 2 servers in east") == 1
        assert page.value("document.documentElement.scrollWidth - innerWidth") <= 0
        assert page.value(WIDE) == 0
        page.picture(tmp_path / f"parts-{width}.png")
        assert page.faults == []
