"""Booking of a bid in the live fleet (job placement), checked before anything changes."""

from collections.abc import Sequence

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.server_layout import Layout
from mast_opt.problems.job_placement.engine.server_selection import Placement
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.inventory import FleetInventory
from mast_opt.problems.job_placement.live_fleet.types import Job, Server, Share, whole
from mast_opt.problems.job_placement.units import CLUSTER, RACK, REGION, SERVER, WHOLE, WHOLE_JOB_LEVELS, Ints


def booking_of(bid: Bid, requests: Sequence[Request], books: FleetInventory) -> list[Placement]:
    """A bid in positions, one for each part of the job, or for the job without parts.

    Raises UsageError unless the job may stop its victims, and its shares hold the whole job where it may run;
    ``FleetInventory.start`` checks that there is room.
    """
    owner = f"the bid for {bid.job.name}"
    if bid.victims != ():
        _check_victims(owner, bid, requests[0], books)
    if not bid.job.parts:
        placed = [placement_of(owner, bid.shares, requests[0], books)]
        if any(share.part for share in bid.shares):
            shares_by_part(owner, bid.job, bid.shares)
        return placed
    shares = shares_by_part(owner, bid.job, bid.shares)
    placed = [placement_of(owner, *one, books) for one in zip(shares, requests)]
    _check_together(owner, bid.job, placed, books)
    return placed


def shares_by_part(owner: str, job: Job, shares: tuple[Share, ...]) -> list[tuple[Share, ...]]:
    """The shares of each part of a job in a bid, or all where it has none. Raises UsageError for what are no shares,
    and for a share of another part.
    """
    if not isinstance(shares, tuple) or not all(isinstance(share, Share) for share in shares):
        raise UsageError(f"{owner}: shares are {shares!r}; expected a tuple of at least one Share")
    names = [part.name for part in job.parts] or [""]
    if wrong := [share.part for share in shares if share.part not in names]:
        expected = f"one of {', '.join(names)}" if job.parts else "none, since the job has no parts"
        raise UsageError(f"{owner}: a share is of part {wrong[0]!r}; expected {expected}")
    return [tuple(share for share in shares if share.part == name) for name in names] if job.parts else [shares]


def _check_together(owner: str, job: Job, placed: list[Placement], books: FleetInventory) -> None:
    """Raise UsageError if the parts of a bid's job are further apart than the job allows."""
    server = np.concatenate([one.server for one in placed])
    if level_of(server, books.layout) > WHOLE_JOB_LEVELS.index(job.within):
        raise UsageError(f"{owner}: its parts are further apart than the job must stay")


def level_of(server: Ints, layout: Layout) -> int:
    """Level of how close together servers at these positions are."""
    group = layout.group[server]
    for level, place in (
        (SERVER, server),
        (RACK, layout.rack[server]),
        (CLUSTER, layout.group_cluster[group]),
    ):
        if np.ptp(place) == 0:
            return level
    return REGION if np.ptp(layout.group_region[group]) == 0 else REGION + 1


def placement_of(owner: str, shares: tuple[Share, ...], request: Request, books: FleetInventory) -> Placement:
    """Placement in positions of the shares in a bid. Raises UsageError where they cannot be."""
    names = servers_of(owner, shares, books)
    server = np.array([books.position[name] for name in names], np.int64)
    mgpu = _need_there(owner, names, server, request, books)
    tasks = [whole(owner, f"tasks on {share.server}", share.tasks, least=1) for share in shares]
    if sum(tasks) != request.tasks:
        raise UsageError(f"{owner}: its shares have {sum(tasks)} tasks; expected the {request.tasks} of the job")
    width = books.state.row_device.shape[1]
    device: list[int] = []
    for share, count in zip(shares, tasks):
        taken = devices_of(owner, share, books.servers[share.server], width)
        check_need(owner, share, count, mgpu, taken)
        device += taken
    table = np.array(device, np.int32).reshape(len(shares), width)
    return Placement(server, np.array(tasks, np.int64), table, np.zeros(1, np.int64))


def servers_of(owner: str, shares: tuple[Share, ...], books: FleetInventory) -> list[str]:
    """The servers of shares. Raises UsageError for what are no shares, and for servers that the fleet does not have or
    that occur twice."""
    if not isinstance(shares, tuple) or not shares or not all(isinstance(share, Share) for share in shares):
        raise UsageError(f"{owner}: shares are {shares!r}; expected a tuple of at least one Share")
    names = [share.server for share in shares]
    for name in names:
        if not isinstance(name, str) or name not in books.position:
            raise UsageError(f"{owner}: the fleet has no server called {name}")
    _once(owner, "server", names)
    return names


def are_named(bid: Bid) -> bool:
    """Whether servers and victims of a bid are given by name, as ``booking_of`` expects."""
    given = isinstance(bid.shares, tuple) and isinstance(bid.victims, tuple)
    shares = given and all(isinstance(share, Share) and isinstance(share.server, str) for share in bid.shares)
    return shares and all(isinstance(name, str) for name in bid.victims)


def _once(owner: str, noun: str, names: list[str]) -> None:
    """Raise UsageError if a bid names something twice."""
    if len(set(names)) < len(names):
        raise UsageError(f"{owner}: expected each {noun} once, not {', '.join(names)}")


def _check_victims(owner: str, bid: Bid, request: Request, books: FleetInventory) -> None:
    """Raise UsageError if a bid's victims do not run in the fleet, or may not be stopped."""
    if not isinstance(bid.victims, tuple) or not all(isinstance(name, str) for name in bid.victims):
        raise UsageError(f"{owner}: victims are {bid.victims!r}; expected a tuple of names")
    _once(owner, "victim", list(bid.victims))
    for name in bid.victims:
        if name not in books.place:
            raise UsageError(f"{owner}: no job called {name} runs here; ask for a new bid")
        if books.state.job[col.J_LIMIT, books.place[name]] <= request.tier:
            raise UsageError(f"{owner}: {name} may not be stopped for work of tier {bid.tier}")


def _need_there(owner: str, names: list[str], server: Ints, request: Request, books: FleetInventory) -> int:
    """Milli-GPUs of a task on these servers: of one cluster, GPU type and region that the job may use, and no further
    apart than it allows."""
    layout = books.layout
    g = int(layout.group[server[0]])
    apart = len(names) > 1
    if apart and (layout.group[server] != g).any():
        raise UsageError(f"{owner}: expected servers of one cluster and GPU type, not {', '.join(names)}")
    mgpu = int(request.mgpu[layout.group_type[g]])
    if mgpu < 0 or not request.open[layout.group_region[g]]:
        raise UsageError(f"{owner}: the job may not run on {names[0]}, for its GPU type or region; ask for a new bid")
    if apart and (request.within == SERVER or (request.within == RACK and np.ptp(layout.rack[server]) > 0)):
        raise UsageError(f"{owner}: {', '.join(names)} are further apart than the job must stay")
    return mgpu


def devices_of(owner: str, share: Share, server: Server, width: int) -> list[int]:
    """[width] what a job's share takes of each GPU of its server. Raises UsageError for what the server
    does not have.
    """
    taken = [0] * width
    gpus, most = (1, server.gpus * WHOLE) if server.pool else (server.gpus, WHOLE)
    if not hasattr(share.gpus, "items"):
        raise UsageError(f"{owner}: GPUs on {share.server} are {share.gpus!r}; expected GPU → milli-GPUs")
    for d, mgpu in share.gpus.items():
        if type(d) is int and type(mgpu) is int and 0 <= d < gpus and 0 <= mgpu <= most:
            taken[d] = mgpu
        else:
            at = whole(owner, f"a GPU of {share.server}", d, most=gpus - 1)
            taken[at] = whole(owner, f"milli-GPUs of GPU {at} on {share.server}", mgpu, most=most)
    return taken


def check_need(owner: str, share: Share, tasks: int, mgpu: int, taken: list[int]) -> None:
    """Raise UsageError unless a share's GPUs are what so many tasks need: whole ones, or so many fractions on each."""
    each = min(mgpu, WHOLE)
    if sum(taken) != tasks * mgpu or (each and any(amount % each for amount in taken)):
        raise UsageError(f"{owner}: {tasks} tasks on {share.server} need {mgpu} milli-GPUs each, not {share.gpus}")
