"""What a bid books, held against the books before anything changes."""

from __future__ import annotations

import numpy as np

from mast_opt.errors import UsageError
from mast_opt.job_placement.arguments import whole
from mast_opt.job_placement.books import Books
from mast_opt.job_placement.heuristics.fit import Request
from mast_opt.job_placement.heuristics.state import J_LIMIT, S_BLOCKED
from mast_opt.job_placement.offers import Bid, Share
from mast_opt.job_placement.units import RACK, SERVER, WHOLE, Ints


def check_booking(bid: Bid, request: Request, books: Books) -> None:
    """Raises UsageError unless the bid's shares hold the whole job where it may run, and fit once its victims, which
    the job may stop, have stopped."""
    owner = f"the bid for {bid.job.name}"
    _check_victims(owner, bid, request, books)
    shares = bid.shares
    if not isinstance(shares, tuple) or not shares or not all(isinstance(share, Share) for share in shares):
        raise UsageError(f"{owner}: shares are {shares!r}; expected a tuple of at least one Share")
    names = [share.server for share in shares]
    unknown = [name for name in names if not isinstance(name, str) or name not in books.servers]
    if unknown:
        raise UsageError(f"{owner}: the fleet has no server called {unknown[0]}; ask for a new bid")
    _once(owner, "server", names)
    _check_place(owner, names, request, books)
    tasks = sum(whole(owner, f"tasks on {share.server}", share.tasks, least=1) for share in shares)
    if tasks != request.tasks:
        raise UsageError(f"{owner}: its shares have {tasks} tasks; expected the {request.tasks} of the job")
    for share in shares:
        _check_room(owner, share, bid, request, books)


def _once(owner: str, noun: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        raise UsageError(f"{owner}: expected each {noun} once, not {', '.join(names)}")


def _check_victims(owner: str, bid: Bid, request: Request, books: Books) -> None:
    if not isinstance(bid.victims, tuple) or not all(isinstance(name, str) for name in bid.victims):
        raise UsageError(f"{owner}: victims are {bid.victims!r}; expected a tuple of names")
    _once(owner, "victim", list(bid.victims))
    for name in bid.victims:
        if name not in books.place:
            raise UsageError(f"{owner}: no job called {name} runs here; ask for a new bid")
        if books.state.job[J_LIMIT, books.place[name]] <= request.tier:
            raise UsageError(f"{owner}: {name} may not be stopped for work of tier {bid.tier}")


def _check_place(owner: str, names: list[str], request: Request, books: Books) -> None:
    """One cluster, GPU type and region that the job may use, and no further apart than it allows."""
    at = np.array([books.position[name] for name in names])
    groups = np.unique(books.layout.group[at])
    if len(groups) > 1:
        raise UsageError(f"{owner}: expected servers of one cluster and GPU type, not {', '.join(names)}")
    g = int(groups[0])
    if request.mgpu[books.layout.group_type[g]] < 0 or not request.open[books.layout.group_region[g]]:
        raise UsageError(f"{owner}: the job may not run on {names[0]}, for its GPU type or region; ask for a new bid")
    racks = len(np.unique(books.layout.rack[at]))
    if (request.within == SERVER and len(names) > 1) or (request.within == RACK and racks > 1):
        raise UsageError(f"{owner}: {', '.join(names)} are further apart than the job must stay")


def _check_room(owner: str, share: Share, bid: Bid, request: Request, books: Books) -> None:
    """The share's GPUs are what its tasks need, and are there with their cores and memory."""
    s, tiers = books.position[share.server], slice(0, request.tier + 1)
    mgpu = int(request.mgpu[books.layout.group_type[books.layout.group[s]]])
    asked = _devices(owner, share, mgpu, books.servers[share.server].gpus)
    state = books.state
    room = state.slack_device[s, : len(asked), tiers].min(axis=1).astype(np.int64)
    cpu, memory = (int(amount) for amount in state.slack[:, s, tiers].min(axis=1))
    for name in bid.victims:
        for held in books.holdings(name):
            if held.server == share.server:
                room += held.device[: len(room)]
                cpu, memory = cpu + held.cpu_mcores, memory + held.memory_mib
    fits = share.tasks * request.cpu <= cpu and share.tasks * request.memory <= memory and bool((asked <= room).all())
    if not fits or state.server[S_BLOCKED, s]:
        raise UsageError(f"{owner}: {share.server} has no room for {share.tasks} of its tasks there; ask for a new bid")


def _devices(owner: str, share: Share, mgpu: int, gpus: int) -> Ints:
    """[D] what the share takes of each GPU."""
    asked = np.zeros(gpus, np.int64)
    if not hasattr(share.gpus, "items"):
        raise UsageError(f"{owner}: GPUs on {share.server} are {share.gpus!r}; expected GPU → milli-GPUs")
    for d, taken in share.gpus.items():
        at = whole(owner, f"a GPU of {share.server}", d, most=gpus - 1)
        asked[at] = whole(owner, f"milli-GPUs of GPU {at} on {share.server}", taken, most=WHOLE)
    each = min(mgpu, WHOLE)
    wrong = (asked % each).any() if each else asked.any()
    if asked.sum() != share.tasks * mgpu or wrong or (mgpu >= WHOLE and (asked % WHOLE).any()):
        raise UsageError(
            f"{owner}: {share.tasks} tasks on {share.server} need {mgpu} milli-GPUs each, not {share.gpus}"
        )
    return asked
