"""Processes of ``mast-opt serve``, clients that repeat what was not answered, and what has to be so in the end."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.service.restart import opening_of
from mast_opt.live.store.recovery import recovered
from mast_opt.live.store.sql_store import SqlStore

FLEET = Path(__file__).parents[2] / "instances" / "traces" / "philly-small"
CLIENTS = 4


class Service:
    """A process of ``mast-opt serve``.

    Args:
        state: folder or URL of the log.
        waits: it is not to lead yet.
        port: where it listens; 0 for any.
        kernels: folder of compiled kernels; that of this process unless given.
    """

    def __init__(
        self, state: Path | str, *more: str, waits: bool = False, port: int = 0, kernels: Path | None = None
    ) -> None:
        tokens = ("serve", "--state", state, "--fleet", FLEET, "--listen", f"127.0.0.1:{port}", *more)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mast_opt", *map(str, tokens)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=None if kernels is None else os.environ | {"NUMBA_CACHE_DIR": str(kernels)},
        )
        self.url = "" if waits else self.announced()

    def announced(self, words: str = "Serving on ") -> str:
        """The word after these, which the process is still to say."""
        assert self.process.stderr is not None
        said = []
        for line in self.process.stderr:
            said.append(line)
            if words in line:
                self.url = line.split(words)[1].split()[0]
                return self.url
        raise RuntimeError(f"the service has not said {words!r}, but {said}")

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


class Clients:
    """Several of them, at work while this is entered.

    Args:
        urls: of the services so far; clients go to the last one.
    """

    def __init__(self, urls: list[str]) -> None:
        self._stop = threading.Event()
        self._clients = [Client(number, urls, self._stop) for number in range(CLIENTS)]

    def __enter__(self) -> Clients:
        for client in self._clients:
            client.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for client in self._clients:
            client.join()

    @property
    def acknowledged(self) -> list[str]:
        return [name for client in self._clients for name in client.acknowledged]

    @property
    def repeated(self) -> int:
        return sum(client.repeated for client in self._clients)

    @property
    def wrong(self) -> list[str]:
        return [words for client in self._clients for words in client.wrong]


def check(store: SqlStore, clients: Clients, epochs: Sequence[int], least: int) -> str:
    """Raises AssertionError unless the log has what was acknowledged, once, of one leader after another, and snapshot
    and tail lead to where the whole log leads. Returns how much that was.

    Args:
        least: so many jobs have to be acknowledged, and most leaders have to take one in: with fewer, little was
            tested.
    """
    assert not clients.wrong, clients.wrong
    assert len(clients.acknowledged) >= least, f"{len(clients.acknowledged)} jobs acknowledged"
    log = list(store.read())
    assert check_log(log) == (), check_log(log)
    submitted = Counter(stored.event.job for stored in log if isinstance(stored.event, ev.Submitted))
    assert set(clients.acknowledged) <= set(submitted)
    assert len(set(clients.acknowledged)) == len(clients.acknowledged)
    assert max(submitted.values()) == 1
    started = Counter((one.event.job, one.event.attempt) for one in log if isinstance(one.event, ev.Started))
    assert max(started.values(), default=1) == 1
    leads = [stored.event.epoch for stored in log if isinstance(stored.event, ev.LeadTaken)]
    assert leads == list(epochs)
    written = [row[0] for row in store._db.execute("SELECT epoch FROM events ORDER BY seq")]
    assert written == sorted(written), "an earlier leader has written after a later one"
    ((busy,),) = store._db.execute("SELECT count(DISTINCT epoch) FROM events WHERE kind = 'Submitted'")
    assert 2 * busy > len(epochs), f"{busy} of {len(epochs)} leaders have taken in a job"
    opening = opening_of(store)
    digests = {recovered(store, opening).state.digest()}
    store._db.execute("DELETE FROM snapshots")
    digests.add(recovered(store, opening).state.digest())
    assert len(digests) == 1
    return (
        f"{len(clients.acknowledged):,} jobs acknowledged, {clients.repeated:,} requests repeated, none lost, "
        f"none twice; {len(log):,} events"
    )
