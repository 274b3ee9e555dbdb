"""A service that is killed again and again while clients submit: nothing that was acknowledged is lost, nothing comes
twice.

    python -m tests.service.kills --points 200 --seed 1 --folder /tmp/kills
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from pathlib import Path

import numpy as np

from mast_opt.live.store.sqlite import open_sqlite
from tests.service.processes import Clients, Service, check

ORDERLY = range(2, 10**6, 20)
"""Kills before which the service ends once in good order, which leaves a snapshot to start from after them."""


def run(points: int, seed: int, folder: Path) -> str:
    """Kill so often, let it end by itself, and check the log. Raises AssertionError where anything is wrong."""
    rng = np.random.default_rng(seed)
    service = Service(folder)
    urls = [service.url]
    with Clients(urls) as clients:
        for kill in range(points):
            if kill in ORDERLY:
                assert service.end(signal.SIGTERM) == 0
                service = Service(folder)
                urls.append(service.url)
            time.sleep(float(rng.uniform(0.05, 0.8)))
            service.end(signal.SIGKILL)
            service = Service(folder)
            urls.append(service.url)
        time.sleep(1)
    assert service.end(signal.SIGTERM) == 0
    store = open_sqlite(folder)
    try:
        return f"{points} kills: {check(store, clients, range(1, len(urls) + 1), points)}"
    finally:
        store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/mast-opt-kills") / str(os.getpid()))
    given = parser.parse_args()
    print(run(given.points, given.seed, given.folder))


if __name__ == "__main__":
    main()
