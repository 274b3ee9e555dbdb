"""Objects that the options of ``mast-opt serve`` stand for: address, store, fleet, access and host."""

from __future__ import annotations

import ipaddress
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from mast_opt.cli.kueue import KueueOptions, params_of
from mast_opt.cli.options import named_values
from mast_opt.core.errors import BackendUnavailable, UsageError

if TYPE_CHECKING:
    from mast_opt.cli.invocation import Run
    from mast_opt.live.hosts.kueue.host import KueueHost
    from mast_opt.live.hosts.slurm.host import SlurmHost
    from mast_opt.live.policies.mast_params import MastParams
    from mast_opt.live.service.access import Access
    from mast_opt.live.store.sql_store import SqlStore
    from mast_opt.problems.job_placement.live_fleet.types import Server

    Over = KueueHost | SlurmHost

HostName = Literal["sim", "kueue", "slurm"]
STATE = "MAST_OPT_STATE"
"""Variable of the environment that may state where the log is."""


def listening(where: tuple[str, int]) -> socket.socket:
    """A socket that listens on an address and port. Raises UsageError."""
    try:
        family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
        listener = socket.create_server(where, family=family, backlog=1024)
    except OSError as error:
        raise UsageError(f"--listen: nobody can listen on port {where[1]} of {where[0]} ({error.strerror})") from error
    # Connections inherit it. Without it the second part of an answer waits 40 ms for the client to confirm the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def check_host(host: str, fleet: Path | None, kueue: KueueOptions) -> None:
    """Raises UsageError for options of ``mast-opt serve`` that do not go with its host."""
    if host != "kueue" and (kueue.worker or kueue.hook):
        raise UsageError("--worker and --hook go with --host kueue")
    if host != "sim" and fleet is not None:
        raise UsageError("--fleet: the servers are the quotas of Kueue's workers, or Slurm's nodes; leave it away")


def mast_params(texts: list[str] | None) -> MastParams:
    """Parameters of the policy of ``mast-opt serve``. Raises UsageError."""
    from mast_opt.live.policies.mast_params import MastParams
    from mast_opt.live.simulation.params import values_of

    return values_of(MastParams, named_values("--param", texts, "promote_after_s=86400"))


def host_over(
    host: HostName,
    kueue: KueueOptions,
    priorities: str | None,
    patience_s: float,
    limit_grace_s: float | None,
    run: Run,
) -> Over | None:
    """The host over Kueue or Slurm that ``mast-opt serve`` asks for; None for the simulated one."""
    if host == "sim":
        return None

    def on_problem(words: str) -> None:
        run.say(f"{host.capitalize()}: {words or 'it can be reached again'}.")

    if host == "slurm":
        from mast_opt.live.hosts.slurm.host import Programs, SlurmHost

        return SlurmHost(Programs(patience_s), limit_grace_s=limit_grace_s, on_problem=on_problem)
    from mast_opt.live.hosts.kueue.host import KueueHost

    manager, workers, replicas = kueue.connected()
    return KueueHost(
        manager,
        workers,
        params_of(kueue, priorities),
        replicas=replicas,
        shadow=kueue.shadow,
        limit_grace_s=limit_grace_s,
        on_problem=on_problem,
    )


def state_of(given: str) -> str:
    """The folder or URL of the log. Raises UsageError."""
    if given.startswith("@"):
        try:
            return Path(given[1:]).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--state: {given[1:]} cannot be read: {error}") from error
    if is_url(given) and given not in os.environ.get(STATE, "") and (urlsplit(given).password or "password=" in given):
        raise UsageError(f"--state: a password would stand in the list of processes; use {STATE}, or @FILE")
    return given


def is_url(state: str) -> bool:
    """Whether the log of ``mast-opt serve`` is given as a URL instead of a folder."""
    return state.startswith(("postgresql://", "postgres://"))


def store_of(state: str) -> SqlStore:
    """The store that ``mast-opt serve`` keeps its log in."""
    from mast_opt.live.service.snapshot_child import opened

    if "://" in state and not is_url(state):
        raise UsageError(f"--state {state!r}; expected a folder or postgresql://…")
    return opened(state)


def servers_of(fleet: Path | None) -> tuple[Server, ...]:
    """Servers of the fleet with which ``mast-opt serve`` begins an empty log."""
    if fleet is None:
        return ()
    from mast_opt.live.simulation.traces.trace import read_trace

    return read_trace(fleet).servers


def access_of(path: Path | None, rate: float) -> Access:
    """Access of clients to ``mast-opt serve``, by the file of tokens."""
    try:
        from mast_opt.live.service.access import Access
    except ImportError as error:
        raise BackendUnavailable(
            f"{error.name} is not installed; install it with: pip install 'mast-opt[serve]'"
        ) from error
    return Access(path, rate)


def address_of(listen: str) -> tuple[str, int]:
    """Host and port on which ``mast-opt serve`` listens. Raises UsageError."""
    text, _, port = listen.rpartition(":")
    try:
        address = str(ipaddress.ip_address("127.0.0.1" if text == "localhost" else text.strip("[]")))
        number = int(port)
    except ValueError:
        number = -1
    if not 0 <= number <= 65535:
        raise UsageError(f"--listen {listen!r}; expected ADDRESS:PORT, such as 127.0.0.1:8765")
    return address, number
