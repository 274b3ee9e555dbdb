"""Independent check of what a log says about servers: what each has, what jobs hold of it, and where it belongs."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.problems.job_placement.live_fleet.types import Part

GPU_MILLI = 1000
MOST_NUMBERED = 4096
"""GPUs of a server beyond which they have no numbers."""
UNITS = ("milli-GPUs", "millicores", "MiB")


@dataclass(slots=True)
class CheckedServer:
    """A server as the events so far leave it."""

    up: ev.ServerUp
    in_service: bool = True
    closed: bool = False
    """Whether it takes no job."""
    moves_to: str = ""
    """The cluster that it is to become part of; empty if it is not to move."""
    claimed: list[int] = field(default_factory=lambda: [0, 0, 0])
    """Amounts that jobs claim that start or run, and were not asked to stop."""
    used: list[int] = field(default_factory=lambda: [0, 0, 0])
    """Amounts that jobs use that have started and have not stopped."""
    beyond: bool = False
    """Whether its host has reported work beyond what it has, or less than its work takes, and that is still so: no job
    may be placed there then, and jobs that were placed before may start."""
    gpus: Counter[int] = field(default_factory=Counter)
    """GPU → milli-GPUs that started jobs hold, where the log numbers GPUs."""
    claimed_gpus: Counter[int] = field(default_factory=Counter)
    """GPU → milli-GPUs that are claimed."""

    @property
    def amounts(self) -> tuple[int, int, int]:
        """GPUs, cores and memory of a server, in ``UNITS``."""
        return self.up.gpus * GPU_MILLI, self.up.cpu_mcores, self.up.memory_mib


class ServerCheck:
    """Servers by the events alone, in whole milli-GPUs, millicores and MiB.

    Args:
        wrong: takes what is wrong: a word, and a sentence.
    """

    def __init__(self, wrong: Callable[[str, str], None]) -> None:
        self._wrong = wrong
        self.servers: dict[str, CheckedServer] = {}

    def server_up(self, event: ev.ServerUp) -> None:
        """Check an event by which a server is in service."""
        known = self.servers.get(event.server)
        if known is not None and known.in_service:
            self._wrong("server", f"server {event.server} is in service already")
        server = known or CheckedServer(event)
        changed, server.up, server.in_service = server.up != event, event, True
        self.servers[event.server] = server
        if changed:
            self.excuse(event.server)  # what ran there may still stop

    def server_down(self, event: ev.ServerDown) -> None:
        """Take in that a server is out of service, by the log."""
        server = self.servers.get(event.server)
        if server is None or not server.in_service:
            self._wrong("server", f"server {event.server} is not in service")
        else:
            server.in_service, server.moves_to = False, ""

    def set_closed(self, event: ev.ServerClosed | ev.ServerOpened) -> None:
        """Take in that a server takes no job from now on, or takes jobs again."""
        server = self.servers.get(event.server)
        if server is None:
            self._wrong("server", f"there is no server {event.server}")
        else:
            server.closed = isinstance(event, ev.ServerClosed)

    def capacity_set(self, event: ev.CapacitySet) -> None:
        """Check an event by which a server has other amounts."""
        server = self.servers.get(event.server)
        if server is None or not server.in_service or server.moves_to:
            self._wrong("server", f"server {event.server} is resized: it moves, or is not in service")
            return
        server.up = replace(server.up, gpus=event.gpus, cpu_mcores=event.cpu_mcores, memory_mib=event.memory_mib)
        self.excuse(event.server)

    def excuse(self, name: str) -> None:
        """Excuse a server from its limits: what a host has reported may be beyond what it has."""
        server = self.servers.get(name)
        if server is not None:
            server.beyond = server.beyond or self._is_beyond(server)

    @staticmethod
    def _is_beyond(server: CheckedServer) -> bool:
        """Whether jobs claim or use more of a server than it has, or of one of its GPUs."""
        for total, gpus in ((server.claimed, server.claimed_gpus), (server.used, server.gpus)):
            if any(amount > most for amount, most in zip(total, server.amounts, strict=True)):
                return True
            if server.up.gpus <= MOST_NUMBERED and any(
                held > GPU_MILLI or (held and at >= server.up.gpus) for at, held in gpus.items()
            ):
                return True
        return False

    def move_asked(self, event: ev.MoveAsked) -> None:
        """Note that a server takes no job from now on."""
        server = self.servers.get(event.server)
        if server is None or not server.in_service or server.moves_to:
            self._wrong("server", f"server {event.server} cannot be moved: it moves, or is not in service")
            return
        self._check_empty(event.server, server)
        server.moves_to = event.cluster

    def server_moved(self, event: ev.ServerMoved) -> None:
        """Check an event by which a server is part of another cluster."""
        server = self.servers.get(event.server)
        if server is None or server.moves_to != event.cluster or server.up.region != event.region:
            self._wrong("server", f"server {event.server} was not to move to {event.cluster} of {event.region}")
            return
        self._check_empty(event.server, server)
        server.up, server.moves_to = replace(server.up, cluster=event.cluster), ""

    def _check_empty(self, name: str, server: CheckedServer) -> None:
        """Check that no job is on a server that moves."""
        if any(server.claimed) or any(server.used):
            self._wrong("server", f"server {name} moves, and a job is on it")

    def count(self, spec: JobSpec, placed: ev.Placed, what: str, sign: int) -> None:
        """Add what a job holds to ``claimed`` or ``used`` of its servers, or (sign −1) take it off."""
        for share in placed.shares:
            server = self.servers.get(share.server)
            if server is None:
                continue
            total = server.claimed if what == "claimed" else server.used
            for at, need in enumerate(need_of(gang_of(spec, share.part), server.up.gpu_type)):
                total[at] += sign * share.tasks * need
            held = server.claimed_gpus if what == "claimed" else server.gpus
            for gpu, milli in share.gpus.items():
                held[gpu] += sign * milli
            if server.beyond:
                server.beyond = self._is_beyond(server)

    def check_capacity(self, placed: ev.Placed, what: str) -> None:
        """Check that the servers of a job have what jobs claim (``claimed``) or use (``used``) of them."""
        for share in placed.shares:
            server = self.servers.get(share.server)
            if server is None:
                continue
            if server.beyond and what == "used":
                continue
            total = server.claimed if what == "claimed" else server.used
            for used, most, unit in zip(total, server.amounts, UNITS, strict=True):
                if used > most:
                    held = "claimed" if what == "claimed" else "held"
                    self._wrong("capacity", f"{used:,} {unit} of {share.server} are {held}; it has {most:,}")
            if what == "used" and server.up.gpus <= MOST_NUMBERED:
                for gpu in share.gpus:
                    if not 0 <= gpu < server.up.gpus or server.gpus[gpu] > GPU_MILLI:
                        self._wrong("gpu", f"GPU {gpu} of {share.server}: {server.gpus[gpu]} milli-GPUs are held")


def gang_of(spec: JobSpec, part: str) -> JobSpec | Part:
    """The part of a job that a share of a log names, or the job itself, also where it has no such part."""
    return {one.name: one for one in spec.parts}.get(part, spec)


def need_of(spec: JobSpec | Part, gpu_type: str) -> tuple[int, int, int]:
    """Milli-GPUs, millicores and MiB of a task on this type."""
    mgpu = spec.mgpu if spec.gpu_types is None else spec.gpu_types.get(gpu_type, spec.mgpu)
    return mgpu, spec.cpu_mcores, spec.memory_mib
