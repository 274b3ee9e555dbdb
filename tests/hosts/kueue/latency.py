"""How long it takes from a reservation of quota to a nomination, over a real API server.

    python -m tests.hosts.kueue.latency --rate 100 --seconds 10

Submissions come at a steady rate. Each is a Workload, and the status with which Kueue reserves its quota; the time runs
from the answer to that until a watch shows the nomination. Everything, API servers and etcd included, runs here.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from tests.hosts.kueue.api_servers import APPLY, JSON, ApiServer, cluster, kubeconfig, until
from tests.hosts.kueue.objects import NOW, admission, condition, flavor, local_queue, pods, queue, workload
from tests.hosts.kueue.real_api import path_of
from tests.hosts.kueue.test_api_server import SOURCE, config
from tests.hosts.kueue.test_dispatcher import check, of_kueue
from tests.platforms import APISERVER

CLIENTS = 4


class Client:
    """Keeps its connection, one for each thread."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._local = threading.local()
        self._context = ssl.create_default_context(cafile=str(server._certificates.authority))

    def call(self, method: str, path: str, body: Any, content_type: str = JSON) -> None:
        if not hasattr(self._local, "connection"):
            address = self._server.url.removeprefix("https://")
            self._local.connection = http.client.HTTPSConnection(address, context=self._context, timeout=60)
        headers = {"Authorization": f"Bearer {self._server._token}", "Content-Type": content_type}
        self._local.connection.request(method, path, json.dumps(body), headers)
        answer = self._local.connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{answer.status}: {text[:200]!r}")


def submit(client: Client, name: str, reserved: dict[str, float]) -> None:
    """A workload that has quota and waits for its cluster."""
    one = workload(name, pods(8))
    del one["metadata"]["creationTimestamp"], one["status"]
    client.call("POST", path_of("Workload"), one)
    entry = {"name": "mk", "state": "Pending", "message": "", "lastTransitionTime": NOW}
    status = {"conditions": [condition("QuotaReserved")], "admission": admission(one), "admissionChecks": [entry]}
    body = {**{part: one[part] for part in ("apiVersion", "kind", "metadata")}, "status": status}
    path = f"{path_of('Workload', name)}/status?fieldManager=kueue-admission&force=true"
    reserved[name] = 0.0
    client.call("PATCH", path, body, APPLY)
    reserved[name] = time.monotonic()


def watch(server: ApiServer, nominated: dict[str, float], stop: threading.Event) -> None:
    """Note when each workload is nominated."""
    context = ssl.create_default_context(cafile=str(server._certificates.authority))
    connection = http.client.HTTPSConnection(server.url.removeprefix("https://"), context=context, timeout=5)
    headers = {"Authorization": f"Bearer {server._token}"}
    connection.request("GET", f"{path_of('Workload')}?watch=1&timeoutSeconds=600", headers=headers)
    answer = connection.getresponse()
    while not stop.is_set():
        try:
            line = answer.readline()
        except TimeoutError:
            continue
        if not line:
            return
        one = json.loads(line)["object"]
        if one.get("status", {}).get("nominatedClusterNames"):
            nominated.setdefault(one["metadata"]["name"], time.monotonic())


def cpu_s(pid: int) -> float:
    """CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(rate: float, seconds: float, folder: Path) -> np.ndarray:
    """Seconds from reservation to nomination of every submission."""
    assert APISERVER is not None, "see tests/hosts/kueue/build_apiserver.sh"
    with cluster(folder, APISERVER) as made:
        manager, east, west = (made.start(name) for name in ("manager", "east", "west"))
        for server in (manager, east, west):
            server.load_crds()
        active = {"conditions": [condition("Active")]}
        connected = [of_kueue("MultiKueueCluster", name, SOURCE, **active) for name in ("east", "west")]
        for one in (check(), config("east", "west"), *connected):
            manager.create(one)
        for worker in (east, west):
            for one in (queue(gpus=100_000), flavor(), local_queue()):
                worker.create(one)
        path = folder / "kubeconfig"
        path.write_text(kubeconfig({server.name: server.credentials("admin") for server in (manager, east, west)}))
        command = ["serve", "--state", str(folder / "state"), "--host", "kueue", "--kubeconfig", str(path)]
        command += ["--worker", "east=east", "--worker", "west=west", "--listen", "127.0.0.1:0"]
        process = subprocess.Popen([sys.executable, "-m", "mast_opt", *command], stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        while "Serving on" not in process.stderr.readline():
            assert process.poll() is None
        pids = {"service": process.pid, "API server of the manager": made._processes["manager"].pid}
        before = {name: cpu_s(pid) for name, pid in pids.items()}
        try:
            found = _submissions(manager, rate, round(rate * seconds))
            print("CPU:", ", ".join(f"{name} {cpu_s(pid) - before[name]:.1f} s" for name, pid in pids.items()))
            return found
        finally:
            process.terminate()
            process.wait()


def _submissions(manager: ApiServer, rate: float, count: int) -> np.ndarray:
    reserved: dict[str, float] = {}
    nominated: dict[str, float] = {}
    stop = threading.Event()
    watcher = threading.Thread(target=watch, args=(manager, nominated, stop))
    watcher.start()
    client, began = Client(manager), time.monotonic()
    with ThreadPoolExecutor(CLIENTS) as pool:
        for number in range(count):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            pool.submit(submit, client, f"w{number}", reserved)
    took = time.monotonic() - began
    until(lambda: len(nominated) == count, 120)
    stop.set()
    watcher.join()
    print(f"{count} submissions in {took:.1f} s ({count / took:.0f}/s)")
    return np.array([nominated[name] - reserved[name] for name in reserved])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, default=100)
    parser.add_argument("--seconds", type=float, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(given.rate, given.seconds, Path(folder))
    p50, p99 = np.percentile(found, [50, 99])
    print(f"reservation to nomination: P50 {p50:.3f} s, P99 {p99:.3f} s, longest {found.max():.3f} s")


if __name__ == "__main__":
    main()
