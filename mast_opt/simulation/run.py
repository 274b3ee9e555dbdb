"""A trace under a policy: the compiled replay for order-only policies, engine and simulated host for the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from mast_opt.core.errors import Fault, InstanceError, UsageError
from mast_opt.core.wording import did_you_mean
from mast_opt.job_placement.live_fleet.types import PLACEMENTS
from mast_opt.loop.engine import Engine, Turn
from mast_opt.loop.events import Finished, ServerUp, Stored, Submitted
from mast_opt.loop.job_log import JobLog, job_log
from mast_opt.loop.policy import Policy
from mast_opt.loop.state import State
from mast_opt.policies.early_binding import EarlyBinding, EarlyBindingParams
from mast_opt.policies.mast import Mast, MastParams
from mast_opt.simulation.driver import simulate
from mast_opt.simulation.host import SimulatedHost, Work
from mast_opt.simulation.kernel import FOREVER, TIRESIAS_THRESHOLDS_GPU_MS
from mast_opt.simulation.kernel import POLICIES as ORDER_ONLY
from mast_opt.simulation.order_only import replay_trace
from mast_opt.simulation.traces.trace import JobTrace

ENGINE_POLICIES: Mapping[str, tuple[type[Any], Callable[[Any], Policy]]] = {
    "mast": (MastParams, Mast),
    "federated": (EarlyBindingParams, EarlyBinding),
}
"""Policy → the class of its parameters, and what makes the policy of them."""
POLICIES = (*ORDER_ONLY, *ENGINE_POLICIES)
THRESHOLDS = "thresholds_gpu_s"
PLACEMENT = "placement"
"""Parameter of every policy of the engine: what decides between servers, as in ``Fleet``."""


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    """What came of a trace under a policy."""

    policy: str
    params: Mapping[str, Any]
    """All of them, defaults too."""
    rows: JobLog
    count: int
    """Events about jobs, without those that put the servers in service."""
    events: Callable[[], Iterator[Stored]]
    """The whole log, from the beginning at every call."""


def run_trace(
    trace: JobTrace,
    policy: str,
    params: Mapping[str, str] | None = None,
    *,
    until_ms: int | None = None,
    watch: Callable[[float], None] | None = None,
) -> SimulatedRun:
    """The run of a trace under a policy.

    Args:
        policy: one of ``POLICIES``.
        params: parameters of the policy, as text, by name.
        until_ms: the last ms; None for the end of all jobs.
        watch: called from time to time with the share of the jobs that have come or ended; it may raise, which ends
            the run.

    Raises:
        UsageError: no such policy or parameter, or a value that it cannot have.
        InstanceError: what the policy cannot do with this trace, all of it listed.
    """
    given = dict(params or {})
    if policy not in POLICIES:
        hint = did_you_mean(policy, POLICIES)
        raise UsageError(f"there is no policy {policy!r}; expected one of: {', '.join(POLICIES)}{hint}")
    if policy in ORDER_ONLY:
        return _replayed(trace, policy, given, until_ms, watch)
    return _engine_run(trace, policy, given, until_ms, watch)


def _replayed(
    trace: JobTrace, policy: str, given: Mapping[str, str], until_ms: int | None, watch: Callable[[float], None] | None
) -> SimulatedRun:
    known = (THRESHOLDS,) if policy == "las" else ()
    _refuse_unknown(policy, given, known)
    thresholds = tuple(_number(THRESHOLDS, part, int) for part in given[THRESHOLDS].split(",")) if given else None
    rows = 3 * len(trace.submissions)

    def on_progress(row: int, at_ms: int) -> None:
        if watch is not None:
            watch(min(row / rows, 1.0))

    until = FOREVER if until_ms is None else until_ms
    log = replay_trace(trace, policy, thresholds_gpu_s=thresholds, until_ms=until, on_progress=on_progress)
    default = tuple(gpu_ms // 1000 for gpu_ms in TIRESIAS_THRESHOLDS_GPU_MS)
    stated = {THRESHOLDS: thresholds or default} if policy == "las" else {}
    return SimulatedRun(policy, stated, log.rows, len(log), log.events)


def _engine_run(
    trace: JobTrace, policy: str, given: Mapping[str, str], until_ms: int | None, watch: Callable[[float], None] | None
) -> SimulatedRun:
    params_type, make = ENGINE_POLICIES[policy]
    placement = given.get(PLACEMENT, PLACEMENTS[0])
    _refuse_unknown(policy, given, (*(item.name for item in fields(params_type)), PLACEMENT))
    params = params_type(**_values(params_type, {name: text for name, text in given.items() if name != PLACEMENT}))
    _check_for_engine(trace)
    jobs = trace.submissions
    state = State(
        trace.servers,
        tiers=sorted(set(jobs.tier.tolist())),
        replicas=trace.replicas,
        quotas={tenant: mgpu for (tenant, _), mgpu in trace.quotas.items()},
        placement=placement,
    )
    columns = zip(jobs.labels, jobs.duration_ms.tolist(), jobs.checkpoint_ms.tolist(), jobs.restart_ms.tolist())
    work = {name: Work(duration, checkpoint, restart) for name, duration, checkpoint, restart in columns}
    log: list[Stored] = []
    ended = 0

    def keep(turn: Turn) -> None:
        nonlocal ended
        log.extend(turn.events)
        ended += sum(isinstance(stored.event, Finished) for stored in turn.events)
        if watch is not None:
            watch(ended / len(jobs))

    coming = ((int(jobs.submitted_ms[j]), Submitted(name, jobs.spec(j))) for j, name in enumerate(jobs.labels))
    host = SimulatedHost(work, trace.rate() if jobs.model else None)
    simulate(Engine(state, make(params)), host, coming, until_ms=until_ms, on_turn=keep)
    count = sum(not isinstance(stored.event, ServerUp) for stored in log)
    stated = {**asdict(params), PLACEMENT: placement}
    return SimulatedRun(policy, stated, job_log(log), count, lambda: iter(log))


def _check_for_engine(trace: JobTrace) -> None:
    faults = [
        Fault("submissions", f"how long the job runs (job {trace.submissions.labels[job]})", column="duration_s")
        for job in (trace.submissions.duration_ms < 0).nonzero()[0][:20].tolist()
    ]
    faults += [
        Fault(
            "quotas", f"no GPU type: quotas are of all types together (tenant {tenant})", column="gpu_type", value=kind
        )
        for tenant, kind in trace.quotas
        if kind
    ]
    if trace.surroundings.happenings:
        faults.append(Fault("happenings", "nothing that happens: that is not simulated yet"))
    if faults:
        raise InstanceError(faults, "the simulation cannot run this trace")


def _refuse_unknown(policy: str, given: Mapping[str, str], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) or (f"; it has: {', '.join(known)}" if known else "; it has none")
            raise UsageError(f"{policy} has no parameter {name!r}{hint}")


def _values(params_type: type[Any], given: Mapping[str, str]) -> dict[str, Any]:
    """The parameters of their types: those of their defaults."""
    defaults = {item.name: item.default for item in fields(params_type)}
    return {name: _number(name, text, type(defaults[name])) for name, text in given.items()}


def _number(name: str, text: str, kind: type[Any]) -> Any:  # noqa: ANN401 - of that type
    if kind is bool:
        if text not in ("true", "false"):
            raise UsageError(f"parameter {name} is {text!r}; expected true or false")
        return text == "true"
    try:
        return kind(text)
    except ValueError:
        noun = "a whole number" if kind is int else "a number"
        raise UsageError(f"parameter {name} is {text!r}; expected {noun}") from None
