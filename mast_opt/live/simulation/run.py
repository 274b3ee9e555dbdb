"""A trace under a policy: the compiled replay for order-only policies, engine and simulated host for the others."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np

from mast_opt.core.errors import Fault, InstanceError, Interrupted, UsageError
from mast_opt.core.input_warning import InputWarning
from mast_opt.core.plugins import Extensions
from mast_opt.core.wording import did_you_mean
from mast_opt.live.loop.events import JOB_EVENTS, Stored
from mast_opt.live.loop.job_log import PLACED, JobLog, job_log
from mast_opt.live.loop.policy import PARTS, NamedPolicy
from mast_opt.live.loop.start_errors import StartErrors
from mast_opt.live.policies.allox_in_time import AlloXInTime, AlloXParams
from mast_opt.live.policies.early_binding import EarlyBinding, EarlyBindingParams
from mast_opt.live.policies.easy import Easy, EasyParams
from mast_opt.live.policies.mast import Mast
from mast_opt.live.policies.mast_params import MastParams
from mast_opt.live.policies.pai import Pai, PaiParams
from mast_opt.live.policies.presets import PRESETS, preset_policy
from mast_opt.live.policies.round_params import RoundParams
from mast_opt.live.policies.shared_rounds import gavel
from mast_opt.live.simulation.engine_run import CANNOT, engine_log
from mast_opt.live.simulation.forecast import Sampling
from mast_opt.live.simulation.kernel import FOREVER, TIRESIAS_THRESHOLDS_GPU_MS
from mast_opt.live.simulation.kernel import POLICIES as ORDER_ONLY
from mast_opt.live.simulation.order_only import READS, replay_trace
from mast_opt.live.simulation.params import number, values_of
from mast_opt.live.simulation.slow_runs import PREFIX, slow_run
from mast_opt.live.simulation.slow_runs import READS as SLOW_READS
from mast_opt.live.simulation.traces.fit import ignored, jobs_that_fit_nowhere, warnings_by_reason
from mast_opt.live.simulation.traces.trace import JobTrace
from mast_opt.problems.job_placement.engine.limits import PLACEMENTS

_OWN: dict[str, NamedPolicy | str] = {
    "mast": NamedPolicy(MastParams, lambda params, speeds: Mast(params)),
    "federated": NamedPolicy(EarlyBindingParams, lambda params, speeds: EarlyBinding(params)),
    "allox": NamedPolicy(AlloXParams, lambda params, speeds: AlloXInTime(speeds)),
    "easy": NamedPolicy(EasyParams, lambda params, speeds: Easy(params)),
    "gavel": NamedPolicy(RoundParams, gavel),
    "pai": NamedPolicy(PaiParams, lambda params, speeds: Pai(params)),
    **{name: NamedPolicy(preset.params_type, partial(preset_policy, name)) for name, preset in PRESETS.items()},
}
ENGINE_POLICIES: Extensions[NamedPolicy] = Extensions("mast_opt.policies", "policy", _OWN, NamedPolicy, ORDER_ONLY)
"""name → policy of the engine."""
THRESHOLDS = "thresholds_gpu_s"
PLACEMENT = "placement"
"""Parameter of every policy of the engine: what decides between servers, as in ``Fleet``."""
TICK = "tick_s"
"""Parameter of every policy of the engine: the least time between two decisions, s; 0 to decide at every change."""
ESTIMATES = "estimates"
"""Parameter of every policy of the engine: how many of the jobs that wait have their start predicted; 0 for none."""
GRACE = "limit_grace_s"
"""Parameter of every policy of the engine: time after its limit at which the host ends a job that still runs, s."""


def policy_names() -> tuple[str, ...]:
    """Names of all policies that a simulation can run."""
    return (*ORDER_ONLY, *ENGINE_POLICIES)


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    """Events of a trace under a policy."""

    policy: str
    params: Mapping[str, Any]
    """All of them, defaults too."""
    rows: JobLog
    count: int
    """Events about jobs."""
    events: Callable[[], Iterator[Stored]]
    """The whole log, from the beginning at every call."""
    complete: bool = True
    """False where it was stopped before its end."""
    warnings: tuple[InputWarning, ...] = ()
    """Columns of the trace that the policy does not look at, and jobs that no region can ever hold."""
    impossible: Mapping[str, str] = field(default_factory=dict)
    """Job that no region can ever hold → why."""
    starts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Errors of promises and of predicted starts, as ``StartErrors.figures`` has them."""


def run_trace(
    trace: JobTrace,
    policy: str,
    params: Mapping[str, str] | None = None,
    *,
    slow: Collection[str] = (),
    until_ms: int | None = None,
    watch: Callable[[float], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> SimulatedRun:
    """The run of a trace under a policy.

    Args:
        policy: the name of one.
        params: parameters of the policy, as text, by name, and of slow paths, such as ``slow.data.every_s``.
        slow: slow paths that are on, some of ``slow_runs.PATHS``.
        until_ms: the last ms; None for the end of all jobs.
        watch: called from time to time with the share of the jobs that have come or ended; it may raise, which ends
            the run.
        stop: asked from time to time; where it says so, the run ends there. Order-only policies then raise Interrupted.

    Raises:
        Interrupted: ``stop`` ended the replay of an order-only policy.
        UsageError: no such policy or parameter, or a value that it cannot have.
        InstanceError: what the policy cannot do with this trace, all of it listed.
    """
    given = dict(params or {})
    if policy in ORDER_ONLY:
        if slow:
            by_engine = " or ".join(ENGINE_POLICIES)
            raise UsageError(f"{policy} looks at nothing but the order of jobs; slow paths need {by_engine}")
        return _replayed(trace, policy, given, until_ms, watch, stop)
    of_slow = {name: text for name, text in given.items() if name.startswith(PREFIX)}
    own = {name: text for name, text in given.items() if name not in of_slow}
    named = ENGINE_POLICIES.named(policy, also=ORDER_ONLY)
    placement = own.pop(PLACEMENT, PLACEMENTS[0])
    tick_s = number(TICK, own.pop(TICK, "0"), int)
    estimates, grace_s = (number(name, own.pop(name, "0"), int) for name in (ESTIMATES, GRACE))
    of_engine = PLACEMENT, TICK, ESTIMATES, GRACE
    _refuse_unknown(policy, own, (*(item.name for item in fields(named.params)), *of_engine))
    if grace_s < 0:
        raise UsageError(f"parameter {GRACE} is {grace_s}; expected at least 0")
    chosen = values_of(named.params, own)
    if isinstance(chosen, MastParams):
        tenants = {*(row[0] for row in trace.quotas.rows()), *trace.submissions.tenant}
        if words := chosen.weights_of_nobody(tenants):
            raise UsageError(words)
    errors = StartErrors()
    sampling = Sampling(errors, lambda: named.make(chosen, trace.speeds), len(trace.submissions), estimates)
    paths = slow_run(trace, slow, of_slow)
    with ENGINE_POLICIES.blaming(policy):
        decides = named.make(chosen, trace.speeds)
    if trace.submissions.parts and PARTS not in decides.reads:
        raise InstanceError([Fault(PARTS, f"no jobs of several parts: {policy} cannot place them")], CANNOT)
    with ENGINE_POLICIES.blaming(policy, ours=(InstanceError, Interrupted)):
        log, complete = engine_log(
            trace,
            decides,
            placement,
            paths,
            tick_ms=tick_s * 1000,
            limit_grace_ms=grace_s * 1000,
            until_ms=until_ms,
            watch=watch,
            stop=stop,
            look=sampling.take,
        )
        unlooked = unread(trace, policy, given, slow)
    count = sum(type(stored.event) in JOB_EVENTS for stored in log)
    stated = {**asdict(chosen), **dict(zip(of_engine, (placement, tick_s, estimates, grace_s))), **paths.stated}
    rows = job_log(log)
    impossible = jobs_that_fit_nowhere(trace, _never_placed(rows))
    warnings = (*unlooked, *warnings_by_reason(impossible))
    starts = errors.figures()
    return SimulatedRun(policy, stated, rows, count, lambda: iter(log), complete, warnings, impossible, starts)


def unread(
    trace: JobTrace, policy: str, params: Mapping[str, str], slow: Collection[str] = ()
) -> tuple[InputWarning, ...]:
    """Warnings of columns that a trace states and such a run does not look at; arguments as in ``run_trace``."""
    if policy in ORDER_ONLY:
        return ignored(trace, policy, READS)
    named = ENGINE_POLICIES[policy]
    names = {item.name for item in fields(named.params)}
    own = {name: text for name, text in params.items() if name in names}
    decides = named.make(values_of(named.params, own), trace.speeds)
    return ignored(trace, policy, decides.reads.union(*(SLOW_READS[path] for path in slow)))


def _never_placed(rows: JobLog) -> frozenset[str]:
    """Jobs of a log that were never placed."""
    placed = np.zeros(len(rows.jobs), np.bool_)
    placed[rows.job[rows.kind == PLACED]] = True
    return frozenset(name for name, was in zip(rows.jobs, placed.tolist(), strict=True) if not was)


def _replayed(
    trace: JobTrace,
    policy: str,
    given: Mapping[str, str],
    until_ms: int | None,
    watch: Callable[[float], None] | None,
    stop: Callable[[], bool] | None,
) -> SimulatedRun:
    """The run of a trace under an order-only policy, by the compiled replay."""
    known = (THRESHOLDS,) if policy == "las" else ()
    _refuse_unknown(policy, given, known)
    thresholds = tuple(number(THRESHOLDS, part, int) for part in given[THRESHOLDS].split(",")) if given else None
    rows = 3 * len(trace.submissions)

    def on_progress(row: int, at_ms: int) -> None:
        if watch is not None:
            watch(min(row / rows, 1.0))
        if stop is not None and stop():
            raise Interrupted(f"interrupted while {policy} was replayed")

    on_progress(0, 0)  # a short replay says nothing on its way
    until = FOREVER if until_ms is None else until_ms
    log = replay_trace(trace, policy, thresholds_gpu_s=thresholds, until_ms=until, on_progress=on_progress)
    default = tuple(gpu_ms // 1000 for gpu_ms in TIRESIAS_THRESHOLDS_GPU_MS)
    stated = {THRESHOLDS: thresholds or default} if policy == "las" else {}
    return SimulatedRun(policy, stated, log.rows, len(log), log.events, True, unread(trace, policy, given))


def _refuse_unknown(policy: str, given: Mapping[str, str], known: tuple[str, ...]) -> None:
    """Raises UsageError for a parameter that the simulated policy does not have."""
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) or (f"; it has: {', '.join(known)}" if known else "; it has none")
            raise UsageError(f"{policy} has no parameter {name!r}{hint}")
