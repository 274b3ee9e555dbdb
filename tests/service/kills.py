"""A service that is killed again and again while clients submit: nothing that was acknowledged is lost, nothing comes
twice.

    python -m tests.service.kills --points 200 --seed 1 --folder /tmp/kills
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

import numpy as np

from mast_opt.loop import events as ev
from mast_opt.loop.log_checker import check_log
from mast_opt.service.restart import opening_of
from mast_opt.store.recovery import recovered
from mast_opt.store.sqlite import open_sqlite

FLEET = Path(__file__).parents[2] / "instances" / "traces" / "philly-small"
CLIENTS = 4


class Service:
    """A process of ``mast-opt serve``."""

    def __init__(self, state: Path) -> None:
        tokens = ("serve", "--state", state, "--fleet", FLEET, "--listen", "127.0.0.1:0")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mast_opt", *map(str, tokens)], stderr=subprocess.PIPE, text=True
        )
        self.url = self._announced()

    def _announced(self) -> str:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if "Serving on " in line:
                return line.split("Serving on ")[1].split()[0]
        raise RuntimeError("the service has not started")

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        code = self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


class Client(threading.Thread):
    """Submits jobs one by one, and repeats each with its key until it is acknowledged."""

    def __init__(self, number: int, urls: list[str], stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._number, self._urls, self._stop_asked = number, urls, stop
        self.acknowledged: list[str] = []
        self.wrong: list[str] = []
        self.repeated = 0

    def run(self) -> None:
        for count in itertools.count():
            name = f"client-{self._number}/job-{count}"
            while not self._submitted(name):
                if self._stop_asked.is_set():
                    return
                self.repeated += 1
                time.sleep(0.05)
            if self._stop_asked.is_set():
                return

    def _submitted(self, name: str) -> bool:
        body = json.dumps({"job": name, "gpus": 1, "duration_s": 0.5, "tier": 1}).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": name}
        request = urllib.request.Request(self._urls[-1] + "v1/jobs", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            if error.code != 503:
                self.wrong.append(f"{name}: {error.code} {error.read()!r}")
                return True
            return False
        except (OSError, http.client.HTTPException):
            return False
        if json.loads(text) != {"job": name, "result": "accepted"}:
            self.wrong.append(f"{name}: {text!r}")
        self.acknowledged.append(name)
        return True


def run(points: int, seed: int, folder: Path) -> str:
    """Kill so often, let it end by itself, and check the log. Raises AssertionError where anything is wrong."""
    rng = np.random.default_rng(seed)
    stop = threading.Event()
    service = Service(folder)
    urls = [service.url]
    clients = [Client(number, urls, stop) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    for _ in range(points):
        time.sleep(float(rng.uniform(0.05, 0.8)))
        service.end(signal.SIGKILL)
        service = Service(folder)
        urls.append(service.url)
    time.sleep(1)
    stop.set()
    for client in clients:
        client.join()
    assert service.end(signal.SIGTERM) == 0
    acknowledged = [name for client in clients for name in client.acknowledged]
    assert not any(client.wrong for client in clients), [client.wrong for client in clients]
    store = open_sqlite(folder)
    log = list(store.read())
    assert check_log(log) == ()
    submitted = Counter(stored.event.job for stored in log if isinstance(stored.event, ev.Submitted))
    assert set(acknowledged) <= set(submitted)
    assert max(submitted.values()) == 1
    started = Counter((one.event.job, one.event.attempt) for one in log if isinstance(one.event, ev.Started))
    assert max(started.values(), default=1) == 1
    leads = [stored.event.epoch for stored in log if isinstance(stored.event, ev.LeadTaken)]
    assert leads == list(range(1, points + 2))
    opening = opening_of(store)
    digests = {recovered(store, opening).state.digest()}
    store._db.execute("DELETE FROM snapshots")
    digests.add(recovered(store, opening).state.digest())
    assert len(digests) == 1
    store.close()
    repeated = sum(client.repeated for client in clients)
    return (
        f"{points} kills: {len(acknowledged):,} jobs acknowledged, {repeated:,} requests repeated, none lost, "
        f"none twice; {len(log):,} events"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/mast-opt-kills") / str(os.getpid()))
    given = parser.parse_args()
    print(run(given.points, given.seed, given.folder))


if __name__ == "__main__":
    main()
