"""Random operations on a live fleet."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.problems.job_placement.live_fleet.answers import Bid, Refused
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job, Part, Server, Share

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


def new_multipart_job(rng: np.random.Generator, name: str) -> Job:
    """A job of one to three parts, half of which need no GPU."""
    whole = new_job(rng, name)
    parts = []
    for number in range(int(rng.choice([1, 2, 2, 3]))):
        like = new_job(rng, "part")
        mgpu = int(rng.choice([like.mgpu, 0]))
        types = like.gpu_types if mgpu else None
        parts.append(Part(f"p{number}", like.tasks, mgpu, like.cpu_mcores, like.memory_mib, types, within=like.within))
    within = str(rng.choice(["region", "region", "cluster", "rack", "server"]))
    return Job(
        **{what: getattr(whole, what) for what in ("name", "tier", "datasets", "prefer", "preemptible", "tenant")},
        gpu_hours_at_risk=whole.gpu_hours_at_risk,
        within=within,
        parts=tuple(parts),
    )


def any_job(rng: np.random.Generator, name: str) -> Job:
    """Mostly a job without parts."""
    return new_multipart_job(rng, name) if rng.random() < 0.2 else new_job(rng, name)


def random_operation(rng: np.random.Generator, fleet: Fleet, number: int) -> str:
    """Do one thing; returns its name. Jobs and servers get their names from ``number``."""
    running = fleet.running()
    servers = tuple(fleet._books.servers)
    kinds = ["place", "release", "risk", "server", "state", "resize", "adopt", "rules"]
    what = str(rng.choice(kinds, p=[0.48, 0.25, 0.04, 0.1, 0.04, 0.05, 0.02, 0.02]))
    if what in ("release", "risk", "resize") and not running:
        what = "place"
    if what == "place":
        job = any_job(rng, f"j{number}")
        answer = fleet.place(job)
        what = "refused"
        if isinstance(answer, Bid):
            what = "placed with victims" if fleet.commit(answer) else "placed"
        what += " in parts" if job.parts else ""
    elif what == "release":
        fleet.release(str(rng.choice(running)))
    elif what == "risk":
        fleet.set_at_risk({str(name): float(rng.integers(0, 20)) for name in rng.choice(running, 2)})
    elif what == "server":
        what = str(
            rng.choice(["fail", "cordon", *["uncordon"] * 6, "drain", "add", "remove", "replace", *["capacity"] * 4])
        )
        at = str(rng.choice(servers))
        if what == "add":
            if len(servers) < 16:
                fleet.add_servers([new_server(rng, f"s-{number}")])
        elif what == "remove":
            if len(servers) > 8:
                fleet.fail(at)
                fleet.remove_server(at)
        elif what == "replace":
            fleet.fail(at)
            fleet.replace_server(new_server(rng, at))
        elif what == "capacity":
            what = change_capacity(rng, fleet, at)
        else:
            getattr(fleet, what)(at)
    elif what == "resize":
        try:
            resized = fleet.resize(str(rng.choice(running)), int(rng.integers(1, 6)))
            what = "resize without room" if isinstance(resized, Refused) else "resize"
        except UsageError:
            what = "resize of unknown needs"
    elif what == "adopt":
        name = str(rng.choice(running)) if running and rng.random() < 0.5 else f"a{number}"
        adopt(rng, fleet, name)
    elif what == "rules":
        fleet.set_quota("lab", int(rng.integers(5, 13)) * 1000)
        fleet.set_replicas("a", REGIONS[: int(rng.integers(0, 3))])
    else:
        what = go_back(rng, fleet, number)
    return what


def change_capacity(rng: np.random.Generator, fleet: Fleet, server: str) -> str:
    """Give a server other amounts, unless what runs there needs those that it has."""
    amounts = {"gpus": (1, 7), "cpu_mcores": (2, 14), "memory_mib": (16, 90)}
    chosen = {what: int(rng.integers(*amounts[what])) for what in amounts if rng.random() < 0.6}
    try:
        fleet.set_capacity(server, **chosen)
    except UsageError:
        return "capacity in use"
    return "capacity"


def adopt(rng: np.random.Generator, fleet: Fleet, name: str) -> tuple[str, ...]:
    """Report a job on one or two servers, whatever runs there; now and then, the same for each of two parts."""
    parts = ("p0", "p1") if rng.random() < 0.2 else ("",)
    shares = [share for part in parts for share in _some_shares(rng, fleet, part)]
    job = replace(new_job(rng, name), tasks=sum(share.tasks for share in shares), gpu_types=None)
    if len(parts) > 1:
        job = new_multipart_job(rng, name)
        tasks = {part: sum(share.tasks for share in shares if share.part == part) for part in parts}
        job = replace(job, parts=tuple(Part(part, tasks[part], cpu_mcores=1, memory_mib=2) for part in parts))
    return fleet.adopt(job, tuple(shares[::-1]))


def _some_shares(rng: np.random.Generator, fleet: Fleet, part: str) -> list[Share]:
    shares = []
    for server in rng.permutation(list(fleet._books.servers))[: int(rng.integers(1, 3))].tolist():
        gpus = fleet._books.servers[server].gpus
        taken = {int(d): int(rng.choice([300, 500, 1000])) for d in rng.permutation(gpus)[: int(rng.integers(0, 3))]}
        shares.append(Share(server, int(rng.integers(1, 3)), taken, part))
    return shares


def go_back(rng: np.random.Generator, fleet: Fleet, number: int) -> str:
    """Do three things, and undo them in one of two ways or not at all."""
    how = str(rng.choice(["trial", "trial in a round", "not"]))
    before = fleet.snapshot_bytes()
    with ExitStack() as stack:
        if how == "trial in a round":
            stack.enter_context(fleet.round())
        if how.startswith("trial"):
            stack.enter_context(fleet.trial())
        for more in range(3):
            try:
                random_operation(rng, fleet, -10 * number - more - 1)
            except UsageError:
                assert how == "trial in a round"
    if how != "not":
        assert fleet.snapshot_bytes() == before, how
    return how
