"""Independent check of what a log says about servers: what each has, what jobs hold of it, and where it belongs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mast_opt.loop.events import JobSpec, MoveAsked, Placed, ServerDown, ServerMoved, ServerUp

GPU_MILLI = 1000
MOST_NUMBERED = 4096
"""GPUs of a server beyond which they have no numbers."""
UNITS = ("milli-GPUs", "millicores", "MiB")


@dataclass(slots=True)
class CheckedServer:
    """A server as the events so far leave it."""

    up: ServerUp
    in_service: bool = True
    moves_to: str = ""
    """The cluster that it is to become part of; empty if it is not to move."""
    claimed: list[int] = field(default_factory=lambda: [0, 0, 0])
    """By jobs that start or run, and were not asked to stop."""
    used: list[int] = field(default_factory=lambda: [0, 0, 0])
    """By jobs that have started and have not stopped."""
    gpus: Counter[int] = field(default_factory=Counter)
    """GPU → milli-GPUs that started jobs hold, where the log numbers GPUs."""

    @property
    def amounts(self) -> tuple[int, int, int]:
        """What it has, in ``UNITS``."""
        return self.up.gpus * GPU_MILLI, self.up.cpu_mcores, self.up.memory_mib


class ServerCheck:
    """Servers by the events alone, in whole milli-GPUs, millicores and MiB.

    Args:
        wrong: takes what is wrong: a word, and a sentence.
    """

    def __init__(self, wrong: Callable[[str, str], None]) -> None:
        self._wrong = wrong
        self.servers: dict[str, CheckedServer] = {}

    def server_up(self, event: ServerUp) -> None:
        """A server is in service."""
        known = self.servers.get(event.server)
        if known is not None and known.in_service:
            self._wrong("server", f"server {event.server} is in service already")
        server = known or CheckedServer(event)
        server.up, server.in_service = event, True
        self.servers[event.server] = server

    def server_down(self, event: ServerDown) -> None:
        """A server is out of service."""
        server = self.servers.get(event.server)
        if server is None or not server.in_service:
            self._wrong("server", f"server {event.server} is not in service")
        else:
            server.in_service, server.moves_to = False, ""

    def move_asked(self, event: MoveAsked) -> None:
        """A server takes no job from now on."""
        server = self.servers.get(event.server)
        if server is None or not server.in_service or server.moves_to:
            self._wrong("server", f"server {event.server} cannot be moved: it moves, or is not in service")
            return
        self._check_empty(event.server, server)
        server.moves_to = event.cluster

    def server_moved(self, event: ServerMoved) -> None:
        """A server is part of another cluster."""
        server = self.servers.get(event.server)
        if server is None or server.moves_to != event.cluster or server.up.region != event.region:
            self._wrong("server", f"server {event.server} was not to move to {event.cluster} of {event.region}")
            return
        self._check_empty(event.server, server)
        server.up, server.moves_to = replace(server.up, cluster=event.cluster), ""

    def _check_empty(self, name: str, server: CheckedServer) -> None:
        if any(server.claimed) or any(server.used):
            self._wrong("server", f"server {name} moves, and a job is on it")

    def count(self, spec: JobSpec, placed: Placed, what: str, sign: int) -> None:
        """Add what a job holds to ``claimed`` or ``used`` of its servers, or (sign −1) take it off."""
        for share in placed.shares:
            server = self.servers.get(share.server)
            if server is None:
                continue
            total = server.claimed if what == "claimed" else server.used
            for at, need in enumerate(need_of(spec, server.up.gpu_type)):
                total[at] += sign * share.tasks * need
            if what == "used":
                for gpu, milli in share.gpus.items():
                    server.gpus[gpu] += sign * milli

    def check_capacity(self, placed: Placed, what: str) -> None:
        """Whether the servers of a job have what is ``claimed`` or ``used``."""
        for share in placed.shares:
            server = self.servers.get(share.server)
            if server is None:
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


def need_of(spec: JobSpec, gpu_type: str) -> tuple[int, int, int]:
    """Milli-GPUs, millicores and MiB of a task on this type."""
    mgpu = spec.mgpu if spec.gpu_types is None else spec.gpu_types.get(gpu_type, spec.mgpu)
    return mgpu, spec.cpu_mcores, spec.memory_mib
