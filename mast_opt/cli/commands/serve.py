"""``mast-opt serve``."""

from __future__ import annotations

import gc
import ipaddress
import logging
import os
import socket
import subprocess
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.interrupt import Interrupt
from mast_opt.cli.invocation import Answer, Run
from mast_opt.cli.kueue import KueueOptions
from mast_opt.cli.options import Json, TheRun, above, at_least, repeated
from mast_opt.cli.serve_options import (
    HostName,
    access_of,
    address_of,
    check_host,
    host_over,
    is_url,
    listening,
    mast_params,
    servers_of,
    state_of,
    store_of,
)
from mast_opt.core.errors import UsageError
from mast_opt.core.wording import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import uvicorn

    from mast_opt.cli.serve_options import Over
    from mast_opt.live.hosts.protocol import Host
    from mast_opt.live.loop.state import State
    from mast_opt.live.policies.mast_params import MastParams
    from mast_opt.live.service.access import Access
    from mast_opt.live.service.live import Live, LiveParams
    from mast_opt.live.service.solves import Solves
    from mast_opt.live.service.start_times import Begin
    from mast_opt.live.service.streams import Streams
    from mast_opt.live.store.sql_store import SqlStore
    from mast_opt.problems.job_placement.live_fleet.types import Server

COLLECT_AFTER = 50_000, 20, 100
"""Objects, and collections of the generations before, after which the garbage collector looks at each generation:
almost nothing of it is cyclic. With the default (700, 10, 10) a turn takes a fifth longer, and reading the log too."""
TOKENS, PLANS, ACCESS_LOG = "tokens.json", "plans", "access.jsonl"


def command(
    *,
    state: Annotated[
        str,
        Parameter(
            help="Folder of the log (made if missing), postgresql://…, or @FILE with one of them. A URL with a "
            "password goes into the variable or a file.",
            env_var="MAST_OPT_STATE",
        ),
    ],
    host: Annotated[
        HostName,
        Parameter(help="What runs the jobs: sim, for as long as they say; or Kueue or Slurm, whose jobs they are."),
    ] = "sim",
    fleet: Annotated[
        Path | None, Parameter(help="Servers of a new log: a folder, .xlsx or .json of the kind job-trace.")
    ] = None,
    listen: Annotated[str, Parameter(help="ADDRESS:PORT; port 0 for any free one.")] = "127.0.0.1:8765",
    behind_proxy: Annotated[
        bool,
        Parameter(
            help="A proxy in front has TLS, and says in X-Forwarded-For who asks; needs tokens. Other addresses may be "
            "listened on.",
            negative=(),
        ),
    ] = False,
    host_name: Annotated[list[str] | None, repeated("Name under which the service is reached from elsewhere.")] = None,
    access_log: Annotated[
        Path | None,
        Parameter(help="File of requests and who made them; access.jsonl in the folder of the log unless given."),
    ] = None,
    tls_cert: Annotated[Path | None, Parameter(help="Certificate (PEM).")] = None,
    tls_key: Annotated[Path | None, Parameter(help="Its key (PEM).")] = None,
    tokens: Annotated[
        Path | None, Parameter(help="File of tokens; tokens.json in the folder of the log unless given.")
    ] = None,
    new_token: Annotated[
        str | None, Parameter(help="NAME=SCOPE,SCOPE[@TENANT]: make a token, print it, and end.")
    ] = None,
    plans: Annotated[
        Path | None, Parameter(help="Folder of solves and their plans; plans in the folder of the log unless given.")
    ] = None,
    rate: Annotated[
        float, above(0, "Requests a second of one client in the long run; twice as many at once.")
    ] = 5000.0,
    param: Annotated[list[str] | None, repeated("NAME=VALUE: a parameter of mast, as for simulate.")] = None,
    kueue: KueueOptions = KueueOptions(),
    priorities: Annotated[
        str | None,
        Parameter(help="Kueue: N,N,…: the least priority of each tier but the last, the most important tier first."),
    ] = None,
    patience: Annotated[float, above(0, "Slurm: seconds that each of its programs may take.")] = 20.0,
    limit_grace: Annotated[
        float | None,
        at_least(
            0,
            "Seconds from a job's time limit until the host has ended it. Unless given: sim 0, and the others as they "
            "are configured.",
            "--limit-grace-s",
        ),
    ] = None,
    keep_days: Annotated[
        float, at_least(0, "Days after which events that no snapshot needs are deleted; 0 keeps all of them.")
    ] = 0.0,
    lease: Annotated[
        float, at_least(1, "Seconds after which another process leads if this one hangs.", "--lease-s")
    ] = 15.0,
    json: Json = False,
    run: TheRun,
) -> Answer:
    """Serve a live fleet over HTTP: jobs in, decisions out, everything in a log that survives a crash.

    Jobs are placed by mast: one global queue, late binding. What is acknowledged is in the log. A page for operators is
    at /, the interface at /openapi.json, metrics at /metrics. Ctrl-C or a termination request ends it: solves stop and
    keep their incumbents, what has come is written, and a snapshot is kept. A second process on the same log waits, and
    leads when the first has ended or hangs; a process that was overtaken ends.

        mast-opt serve --state my-state --fleet instances/traces/philly-small
        mast-opt serve --state my-state --host kueue --worker east=east-admin --worker west=west-admin --shadow
        mast-opt serve --state my-state --host slurm
        mast-opt serve --state my-state --new-token ada=submit,read@research
        mast-opt serve --state @url --listen 0.0.0.0:8765 --behind-proxy --host-name mast.example --tokens tokens.json
    """
    if (tls_cert is None) != (tls_key is None):
        raise UsageError("--tls-cert and --tls-key go together")
    address, port = address_of(listen)
    state = state_of(state)
    path = tokens if tokens is not None else None if is_url(state) else Path(state) / TOKENS
    access = access_of(path, rate)
    if new_token is not None:
        return _make_token(run, access, new_token, path)
    alone = ipaddress.ip_address(address).is_loopback and not behind_proxy
    if not alone and access.open:
        where = "--behind-proxy" if behind_proxy else f"--listen {listen}"
        raise UsageError(f"{where} lets in more than this machine, and there are no tokens; see --new-token")
    if not (ipaddress.ip_address(address).is_loopback or behind_proxy or tls_cert is not None):
        raise UsageError(f"--listen {listen} is not this machine alone; expected --tls-cert or --behind-proxy")
    if access.open:
        run.say("There are no tokens: whoever reaches this machine's own address may do everything; see --new-token.")
    if access.problem:
        run.say(f"Nobody is let in: {access.problem}.")
    log = access_log if access_log is not None else None if is_url(state) else Path(state) / ACCESS_LOG
    check_host(host, fleet, kueue)
    mast = mast_params(param)
    with run.phase("read"):
        servers = servers_of(fleet)
        over = host_over(host, kueue, priorities, patience, limit_grace, run)
        store = store_of(state)
    try:
        folder = plans if plans is not None else None if is_url(state) else Path(state) / PLANS
        web = partial(_web, access, tuple(host_name or ()), log, (tls_cert, tls_key), alone, behind_proxy)
        saves = partial(_snapshot, state, int(keep_days * 86_400_000)), partial(_forecast, state, mast)
        from mast_opt.live.service.live import LiveParams

        params = LiveParams(
            f"{socket.gethostname()}/{os.getpid()}",
            ttl_s=lease,
            promote_ms=1000 * mast.promote_after_s,
            limit_grace_ms=round(1000 * (limit_grace or 0)) if over is None else 0,
        )
        _serve(run, store, folder, servers, web, (address, port), tls_cert is not None, over, params, mast, *saves)
    finally:
        store.close()
    run.record.update(kind="service", host=host)
    return Answer(Exit.OK, lambda console: console.print("Stopped; everything is in the log."))


def _serve(
    run: Run,
    store: SqlStore,
    plans: Path | None,
    servers: tuple[Server, ...],
    web: Callable[[Live, SqlStore, Solves, Streams], uvicorn.Config],
    where: tuple[str, int],
    has_tls: bool,
    over: Over | None,
    params: LiveParams,
    mast: MastParams,
    saves: Callable[[int], subprocess.Popen[bytes]],
    predicts: Begin,
) -> None:
    """Run the service of ``mast-opt serve`` until it is asked to stop."""
    gc.set_threshold(*COLLECT_AFTER)  # before the log is read
    from mast_opt.live.hosts.simulated import SimulatedLiveHost
    from mast_opt.live.policies.mast import Mast
    from mast_opt.live.service.connections import RateLimitedErrors, Server
    from mast_opt.live.service.leading import Leading
    from mast_opt.live.service.live import Live
    from mast_opt.live.service.restart import opening_of
    from mast_opt.live.service.solves import Solves
    from mast_opt.live.service.streams import Streams
    from mast_opt.live.simulation.warm_up import warm_up_simulation

    host_of: Callable[..., Host] = SimulatedLiveHost
    if over is not None:
        host_of = lambda _: over  # noqa: E731

    def opened() -> Callable[[], State]:
        begins = servers if over is None or store.last_seq() else over.servers()
        return opening_of(store, begins)

    opened()  # an empty log needs a fleet
    live = Live(store, lambda: opened()(), lambda: Mast(mast), host_of, params, saves=saves, predicts=predicts)
    solves, streams = Solves(live, store, plans), Streams()
    listener = listening(where)
    logging.getLogger("asyncio").addFilter(RateLimitedErrors())
    server = Server(web(live, store, solves, streams))
    server.capture_signals = nullcontext  # type: ignore[assignment,method-assign] # the command has its own
    with listener, Interrupt(run, "everything that was acknowledged") as interrupt:

        def begun() -> None:
            solves.resume()
            _say_at_start(run, (*store.left_aside, *solves.left_aside), live, mast)
            if over is not None:
                over.begin()
            _spare_the_collector()
            scheme = "https" if has_tls else "http"
            run.say(f"Serving on {scheme}://{where[0]}:{listener.getsockname()[1]}/ (epoch {live.epoch}).")

        def ended() -> None:
            streams.end()
            server.should_exit = True

        def compiles() -> None:
            live.problem = "compiling, once for this installation"
            run.say("Compiling, once for this installation.")

        def prepare() -> None:
            warm_up_simulation(("mast",), compiles, interrupt.cancel)

        leading = Leading(live, interrupt.cancel, prepare, lambda words: run.say(f"Waiting: {words}."), begun, ended)
        leading.start()
        server.run(sockets=[listener])
        interrupt.cancel.set()
        leading.join()
        if leading.led:
            solves.close()
            live.close()
        if leading.error is not None:
            raise leading.error


def _snapshot(state: str, keep_ms: int, epoch: int) -> subprocess.Popen[bytes]:
    """A process that writes a snapshot."""
    from mast_opt.live.service.snapshot_child import begin

    return begin(state, epoch, keep_ms)


def _forecast(state: str, mast: MastParams, now_ms: int, out: IO[bytes]) -> subprocess.Popen[bytes]:
    """A process that predicts starts of waiting jobs."""
    from mast_opt.live.service.forecast_child import begin

    return begin(state, mast, now_ms, out)


def _say_at_start(run: Run, left_aside: Iterable[str], live: Live, mast: MastParams) -> None:
    """Say what could not be read, which weights are of tenants and groups that have no quota, and whether the host
    keeps time limits."""
    for words in left_aside:
        run.say(f"Left aside: {words}.")
    with live.state() as state:
        unused = mast.weights_of_nobody({row[0] for row in state.quotas.rows()})
    if unused:
        run.say(f"Parameter {unused} yet.")
    if unenforced := live.host.unenforced():
        run.say(f"Limits are not enforced, so jobs may start later than promised: {unenforced}.")


def _web(
    access: Access,
    names: tuple[str, ...],
    log: Path | None,
    tls: tuple[Path | None, Path | None],
    alone: bool,
    behind_proxy: bool,
    live: Live,
    store: SqlStore,
    solves: Solves,
    streams: Streams,
) -> uvicorn.Config:
    """The web server over a loop."""
    import uvicorn

    from mast_opt.live.service.app import build
    from mast_opt.live.service.connections import MOST_CONNECTIONS, descriptors, limited
    from mast_opt.live.service.door import AccessLog, Hosts

    requests = None if log is None else AccessLog(log)
    hosts = Hosts(names, alone=alone)
    app = build(live, store, access, solves, streams, hosts, requests, behind_proxy=behind_proxy)
    given: dict[str, Any] = {} if tls[0] is None else {"ssl_certfile": str(tls[0]), "ssl_keyfile": str(tls[1])}
    return uvicorn.Config(
        app,
        log_level="error",  # a line for each request that is none would let anybody fill the disk
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        http=limited(min(MOST_CONNECTIONS, descriptors() // 2)),  # files and children need some
        ws="none",
        timeout_graceful_shutdown=10,
        **given,
    )


def _spare_the_collector() -> None:
    """Freeze the objects that exist, so that the garbage collector does not look through them again."""
    gc.collect()
    gc.freeze()


def _make_token(run: Run, access: Access, text: str, path: Path | None) -> Answer:
    """Make a token for ``mast-opt serve``, and print it."""
    name, _, rest = text.partition("=")
    scopes, _, tenant = rest.partition("@")
    if path is not None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    token = access.add(name, scopes.split(","), tenant)
    run.record.update(kind="service", name=name, token=token)
    return Answer(
        Exit.OK, lambda console: console.print(f"{token}\n\nThis is shown once; {shown(str(path))} has its hash.")
    )
