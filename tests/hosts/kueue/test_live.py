"""A live loop over a real API server, with its threads, watches and log; Kueue's controllers are the stand-in."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mast_opt.live.hosts.kueue.api import ApiError
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.store.sqlite import open_sqlite
from tests.hosts.kueue.api_servers import kubeconfig, until
from tests.hosts.kueue.conftest import Real
from tests.hosts.kueue.objects import pods, running
from tests.hosts.kueue.test_api_server import clusters, submit
from tests.platforms import needs

pytestmark = needs("kube-apiserver")


@contextmanager
def controllers(real: Real) -> Iterator[None]:
    """The stand-in for Kueue's controllers, at work."""
    stop = threading.Event()
    faults: list[str] = []

    def work() -> None:
        while not stop.wait(0.1):
            try:
                real.kueue.turn()
            except ApiError as error:
                if error.status == 422:  # a rule of Kueue's was broken
                    faults.append(str(error))
            except OSError:
                continue

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert faults == []


@contextmanager
def served(real: Real, folder: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``mast-opt serve --host kueue`` as a process, and its address."""
    config = folder / "kubeconfig"
    servers = {"manager": real.servers.manager, "east-admin": real.servers.east}
    config.write_text(kubeconfig({name: one.credentials("admin") for name, one in servers.items()}))
    command = ["serve", "--state", str(folder / "state"), "--host", "kueue", "--kubeconfig", str(config)]
    command += ["--worker", "east=east-admin", "--listen", "127.0.0.1:0", *more]
    process = subprocess.Popen([sys.executable, "-m", "mast_opt", *command], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        words = ""
        while "Serving on" not in words:
            words = process.stderr.readline()
            assert words, process.wait()
        yield process, words.split("Serving on ")[1].split()[0]
    finally:
        process.terminate()
        process.communicate(timeout=60)


def got(address: str, path: str) -> Any:
    with urllib.request.urlopen(address + path, timeout=30) as answer:
        return json.loads(answer.read())


def states(address: str) -> dict[str, str]:
    return {one["job"].partition(".")[0]: one["state"] for one in got(address, "v1/jobs")["jobs"]}


def kinds(folder: Path, job: str) -> list[str]:
    store = open_sqlite(folder / "state")
    log = list(store.read())
    store.close()
    assert check_log(log) == ()
    return [type(one.event).__name__ for one in log if getattr(one.event, "job", "").startswith(f"{job}.")]


def test_the_service_runs_over_kueue(real: Real, tmp_path: Path) -> None:
    """From a reservation to the end of the work, through a restart of the API server and of the service."""
    clusters(real, 16)
    real.east.create(running("own", pods(8)))
    with controllers(real):
        with served(real, tmp_path) as (_, address):
            submit(real, "first")
            until(lambda: states(address).get("default/first") == "running")
            assert states(address)["east:default/own"] == "running"
            submit(real, "second")
            until(lambda: "default/second" in states(address))
            real.servers.cluster.stop("manager")
            time.sleep(1)
            real.servers.cluster.start("manager")
        with served(real, tmp_path) as (_, address):
            assert states(address) == {
                "default/first": "running",
                "east:default/own": "running",
                "default/second": states(address)["default/second"],
            }
            real.kueue.finish("first")
            until(lambda: states(address).get("default/second") == "running")
            real.kueue.finish("second")
            until(lambda: states(address) == {"east:default/own": "running"})
    assert kinds(tmp_path, "default/first") == ["Submitted", "Placed", "Started", "Finished"]
    second = kinds(tmp_path, "default/second")
    assert [second[0], *second[-3:]] == ["Submitted", "Placed", "Started", "Finished"]


def test_shadow_mode_changes_nothing(real: Real, tmp_path: Path) -> None:
    clusters(real)
    with served(real, tmp_path, "--shadow") as (_, address):
        before = submit(real)
        until(lambda: states(address).get("default/w") == "starting")
    assert real.manager.get("w")["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert kinds(tmp_path, "default/w") == ["Submitted", "Placed"]


def test_what_cannot_be_used_is_said(real: Real, tmp_path: Path) -> None:
    manager = real.servers.manager
    state = ["--state", str(tmp_path / "state"), "--host", "kueue", "--worker", f"east={manager.name}"]
    bad = manager.expired()
    command = [sys.executable, "-m", "mast_opt", "serve", *state, "--kubeconfig", bad]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode != 0
    assert "has the kubeconfig expired" in ended.stderr
