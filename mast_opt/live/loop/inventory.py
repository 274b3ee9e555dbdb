"""Servers of the loop: which are in service, which are about to move, and what each region has."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.reclaimable import Reclaimable
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job, Server, gangs_of
from mast_opt.problems.job_placement.units import WHOLE


class Inventory:
    """Servers by name. Only ``State.apply`` changes it.

    Args:
        fleet: that these servers make up.
        tiers: all tiers of its jobs, ascending.
        servers: those the fleet begins with.
    """

    def __init__(self, fleet: Fleet, tiers: Iterable[int], servers: Iterable[Server]) -> None:
        self.lagging, self.reclaimable = fleet, Reclaimable(self, tiers)
        """The fleet, which may not know of the last moves: it is laid out again once for all moves of a turn."""
        self._moved: dict[str, Server] = {}
        """Servers that have moved, of which the fleet does not know yet."""
        self.server_of: dict[str, Server] = {}
        self.up: set[str] = set()
        """Servers in service."""
        self.moving: dict[str, str] = {}
        """Server that is to move → the cluster that it becomes part of. It takes no job until then."""
        self.supply_mgpu: dict[str, int] = {}
        """Region → what its servers have that are not out of service, which the fleet does not tell from others that
        take no work."""
        self._supply_of_type: dict[tuple[str, str], int] = {}
        """(region, GPU type) → the same of these servers."""
        self.shrinking: dict[str, Server] = {}
        """Server that holds more than it is to have → what it is to be. It takes no job until then."""
        self.closed: dict[str, int | None] = {}
        """Server that is to take no job → when what still runs there is asked to stop; None for never."""
        for server in servers:
            self._know(server)

    @property
    def fleet(self) -> Fleet:
        """The fleet, with all servers where the log says that they are."""
        if self._moved:
            moved, self._moved = self._moved, {}
            self.lagging.replace_servers(moved.values())
            for name in moved.keys() & self.closed.keys():
                self.lagging.cordon(name)
        return self.lagging

    @property
    def used_mgpu(self) -> dict[str, int]:
        """Region → what starts and runs there."""
        used = self.fleet.used_mgpu()
        return {region: used.get(region, 0) for region in self.supply_mgpu}

    def in_service(self) -> Iterator[Server]:
        """Servers in service, in the order in which they were first known."""
        return (server for name, server in self.server_of.items() if name in self.up)

    def _know(self, server: Server) -> None:
        """Register a server and its region."""
        self.server_of[server.name] = server
        self.supply_mgpu.setdefault(server.region, 0)

    def _supply(self, server: Server, gpus: int) -> None:
        """Count more GPUs of a server in service, or fewer."""
        kind = server.region, server.gpu_type
        self.supply_mgpu[server.region] += gpus * WHOLE
        self._supply_of_type[kind] = self._supply_of_type.get(kind, 0) + gpus * WHOLE

    def could_hold(self, job: Job, region: str) -> bool:
        """Whether the servers in service of a region, if all were idle, would have enough GPUs of a type that suits for
        each gang of a job, and for all of them together."""
        supply = {kind: mgpu for (where, kind), mgpu in self._supply_of_type.items() if where == region}
        least = 0
        for gang in gangs_of(job):
            needs = dict.fromkeys(supply, gang.mgpu) if gang.gpu_types is None else gang.gpu_types
            asked = [gang.tasks * mgpu for kind, mgpu in needs.items() if gang.tasks * mgpu <= supply.get(kind, -1)]
            if not asked:
                return False
            least += min(asked)
        return least <= self.supply_mgpu[region]

    def arrives(self, event: ev.ServerUp) -> None:
        """Put a server into service."""
        if event.server in self.up:
            raise ev.Unfit(f"server {event.server} is in service already")
        server = event.as_server()
        known = self.server_of.get(event.server)
        if known != server:
            if known is None:
                self.fleet.add_servers((server,))
            else:
                self.fleet.replace_server(server)
            self._know(server)
        else:
            self.fleet.uncordon(event.server)
        self.up.add(event.server)
        if event.server in self.closed:
            self.fleet.cordon(event.server)
        self._supply(server, server.gpus)
        self.reclaimable.grow(server.name)

    def resized(self, event: ev.CapacitySet) -> None:
        """Let a server have other amounts; where more is held there, as soon as that has ended."""
        if event.server not in self.up or event.server in self.moving:
            raise ev.Unfit(f"server {event.server} cannot be resized: it moves, or is not in service")
        if not self.resizes(event):
            return
        if self.shrinking.pop(event.server, None) is None:
            self.fleet.cordon(event.server)
        self.shrinking[event.server] = replace(
            self.server_of[event.server], gpus=event.gpus, cpu_mcores=event.cpu_mcores, memory_mib=event.memory_mib
        )
        self.shrink(event.server)

    def resizes(self, event: ev.CapacitySet) -> bool:
        """Whether a server can get these amounts, and does not have them."""
        if event.server not in self.up or event.server in self.moving:
            return False
        now = self.shrinking.get(event.server, self.server_of[event.server])
        return (now.gpus, now.cpu_mcores, now.memory_mib) != (event.gpus, event.cpu_mcores, event.memory_mib)

    def shrink(self, server: str) -> None:
        """Give a server the amounts that it is to have, if no more is held there."""
        new, old = self.shrinking.get(server), self.server_of[server]
        if new is None:
            return
        try:
            self.fleet.set_capacity(server, gpus=new.gpus, cpu_mcores=new.cpu_mcores, memory_mib=new.memory_mib)
        except UsageError:  # more is held
            return
        del self.shrinking[server]
        if server not in self.closed:
            self.fleet.uncordon(server)
        self._know(new)
        self._supply(new, new.gpus - old.gpus)
        self.reclaimable.grow(server)

    def breaks(self, event: ev.ServerDown) -> tuple[str, ...]:
        """Take a server out of service; returns the jobs that it takes along."""
        if event.server not in self.up:
            raise ev.Unfit(f"server {event.server} is not in service")
        self.up.discard(event.server)
        self.moving.pop(event.server, None)
        self.shrinking.pop(event.server, None)
        server = self.server_of[event.server]
        self._supply(server, -server.gpus)
        return self.fleet.fail(event.server)

    def move_asked(self, event: ev.MoveAsked) -> None:
        """Close a server to new jobs."""
        if event.server not in self.up or event.server in self.moving:
            raise ev.Unfit(f"server {event.server} cannot be moved: it moves already, or is not in service")
        self.moving[event.server] = event.cluster
        self.fleet.cordon(event.server)
        self.reclaimable.shrink(event.server)

    def moved(self, event: ev.ServerMoved) -> None:
        """Make a server part of another cluster, where it takes jobs."""
        server = self.server_of[event.server]
        if self.moving.pop(event.server, None) != event.cluster or server.region != event.region:
            raise ev.Unfit(f"server {event.server} was not to move to cluster {event.cluster} of {event.region}")
        moved = replace(server, cluster=event.cluster)
        if there := self.lagging.jobs_on(event.server):
            raise ev.Unfit(f"server {event.server} moves, and still runs {there[0]}")
        self._moved[event.server] = moved
        self._know(moved)
        self.reclaimable.grow(moved.name)

    def closes(self, event: ev.ServerClosed) -> None:
        """Close a server to new jobs, or set another time for what runs there."""
        if event.server not in self.server_of:
            raise ev.Unfit(f"there is no server {event.server}")
        if event.server not in self.closed and event.server in self.up:
            self.fleet.cordon(event.server)
            self.reclaimable.shrink(event.server)
        self.closed[event.server] = event.stop_ms

    def opens(self, event: ev.ServerOpened) -> None:
        """Open a server again; one that moves, gets other amounts or is out of service takes jobs after that."""
        if event.server not in self.closed:
            raise ev.Unfit(f"server {event.server} is not closed")
        del self.closed[event.server]
        if event.server in self.up and event.server not in self.moving and event.server not in self.shrinking:
            self.fleet.uncordon(event.server)
            self.reclaimable.grow(event.server)

    def opening(self) -> tuple[ev.ServerUp, ...]:
        """The events that put the servers of the beginning in service."""
        return tuple(map(ev.ServerUp.of, self.server_of.values()))
