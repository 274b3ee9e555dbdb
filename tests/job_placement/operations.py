"""Random operations on a live fleet."""

from __future__ import annotations

import numpy as np

from mast_opt.job_placement.live_fleet.fleet import Fleet
from mast_opt.job_placement.live_fleet.types import Bid, Job, Server

REGIONS = ("north", "south")


def small_fleet(rng: np.random.Generator, servers: int = 12) -> Fleet:
    """Servers of two types in three clusters, two tenants with quotas, two datasets."""
    return Fleet(
        (new_server(rng, f"s{n}") for n in range(servers)),
        tiers=(0, 1, 2),
        replicas={"a": {"north"}, "b": {"north", "south"}},
        quotas={"lab": 9000, "shop": 2500},
    )


def new_server(rng: np.random.Generator, name: str) -> Server:
    cluster = int(rng.integers(3))
    region = REGIONS[cluster % 2]
    kind = str(rng.choice(["a100", "h100"]))
    gpus = int(rng.choice([2, 4]))
    return Server(name, region, f"c{cluster}", f"b{rng.integers(2)}", kind, gpus, int(rng.integers(4, 12)), 64)


def new_job(rng: np.random.Generator, name: str) -> Job:
    return Job(
        name,
        tier=int(rng.integers(3)),
        tasks=int(rng.choice([1, 1, 1, 2, 3])),
        mgpu=int(rng.choice([1000, 1000, 2000, 4000, 500, 300, 0])),
        cpu_mcores=int(rng.integers(0, 3)),
        memory_mib=int(rng.integers(0, 8)),
        gpu_types=None if rng.random() < 0.5 else {str(rng.choice(["a100", "h100", "tpu"])): 1000},
        datasets=tuple(rng.choice(["a", "b", "c"], size=int(rng.random() < 0.3), p=[0.5, 0.4, 0.1]).tolist()),
        within=str(rng.choice(["cluster", "cluster", "rack", "server"])),
        prefer=str(rng.choice(["server", "rack"])),
        preemptible=bool(rng.random() < 0.7),
        gpu_hours_at_risk=float(rng.integers(0, 50)) / 7,
        tenant=str(rng.choice(["", "lab", "shop"])),
    )


def random_operation(rng: np.random.Generator, fleet: Fleet, number: int) -> str:
    """Do one thing; returns its name. Jobs and servers get their names from ``number``."""
    running = fleet.running()
    servers = tuple(fleet._books.servers)
    what = str(rng.choice(["place", "release", "risk", "server", "state"], p=[0.55, 0.3, 0.05, 0.08, 0.02]))
    if what in ("release", "risk") and not running:
        what = "place"
    if what == "place":
        answer = fleet.place(new_job(rng, f"j{number}"))
        what = "refused"
        if isinstance(answer, Bid):
            what = "placed with victims" if fleet.commit(answer) else "placed"
    elif what == "release":
        fleet.release(str(rng.choice(running)))
    elif what == "risk":
        fleet.set_at_risk(str(rng.choice(running)), float(rng.integers(0, 20)))
    elif what == "server":
        what = str(rng.choice(["fail", "cordon", *["uncordon"] * 6, "drain", "add", "remove"]))
        at = str(rng.choice(servers))
        if what == "add":
            if len(servers) < 16:
                fleet.add_servers([new_server(rng, f"s-{number}")])
        elif what == "remove":
            if len(servers) > 8:
                fleet.fail(at)
                fleet.remove_server(at)
        else:
            getattr(fleet, what)(at)
    else:
        snapshot = fleet.snapshot()
        for more in range(3):
            random_operation(rng, fleet, -10 * number - more - 1)
        if rng.random() < 0.5:
            fleet.restore(snapshot)
    return what
