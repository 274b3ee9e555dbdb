"""Starts of waiting jobs, predicted: the queue is played forward from the present state, and nobody else comes.

Where every job ends at its limit, a job usually starts by the time that is found. Where jobs use as much of their
limits as they did before, the time is nearer, and too early or too late.
"""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine, Turn
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.policy import Policy
from mast_opt.live.loop.start_errors import EXPECTED, USUALLY_BY, StartErrors
from mast_opt.live.loop.state import State
from mast_opt.live.simulation.driver import Happening, simulate
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.live.store.state_format import state_bytes, state_from

FEW = 10
"""Jobs of a workload or tenant that have to have ended before they count instead of all."""
KEPT = 1000
"""Jobs of each that count, the last ones."""
NEVER = 1 << 58
Length = Callable[[JobSpec, int], int | None]
"""(job, time for which it has run) → time for which it runs in all; None where that is not known."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """Times when a waiting job starts, None where they are not known."""

    by_ms: int | None
    """Time if every job ends at its limit."""
    expected_ms: int | None
    """Time if jobs use as much of their limits as those before them, or, without limits, run as long."""


class PastRuns:
    """Lengths of the runs of jobs that have finished, by workload and by tenant, in shares of their limits; the state
    forgets these jobs.
    """

    def __init__(self) -> None:
        self._specs: dict[str, JobSpec] = {}
        self._began: dict[str, int] = {}
        self._ended: dict[tuple[str, str, bool], deque[float]] = {}
        self._sorted: dict[tuple[str, str, bool], list[float]] = {}

    def take(self, at_ms: int, event: ev.Event) -> None:
        """Take in the next event of a log."""
        if isinstance(event, ev.Submitted):
            self._specs[event.job] = event.spec
        elif isinstance(event, (ev.Started, ev.Placed, ev.Adopted)):
            self._began[event.job] = at_ms
        elif isinstance(event, (ev.Finished, ev.Failed)):
            spec, began = self._specs.pop(event.job, None), self._began.pop(event.job, None)
            if spec is None or began is None or at_ms <= began:
                return
            run = (at_ms - began) / (spec.limit_ms or 1)
            for key in _keys(spec):
                self._ended.setdefault(key, deque(maxlen=KEPT)).append(run)
                self._sorted.pop(key, None)

    def length_ms(self, spec: JobSpec, run_ms: int) -> int | None:
        """Mean length of the runs like that of a job that were longer than it is so far: its limit, or None, where none
        was."""
        for key in _keys(spec):
            if len(self._ended.get(key, ())) >= FEW:
                if key not in self._sorted:
                    self._sorted[key] = sorted(self._ended[key])
                ended, unit = self._sorted[key], spec.limit_ms or 1
                longer = ended[bisect.bisect_right(ended, run_ms / unit) :]
                return int(unit * sum(longer) / len(longer)) if longer else spec.limit_ms
        return spec.limit_ms


def _keys(spec: JobSpec) -> tuple[tuple[str, str, bool], ...]:
    """Groups of past runs to which a job belongs, the nearest first."""
    limited = spec.limit_ms is not None
    named = (("workload", spec.workload, limited),) if spec.workload else ()
    return *named, ("tenant", spec.tenant, limited), ("", "", limited)


def predicted(state: State, policy: Callable[[], Policy], past: PastRuns) -> dict[str, Predicted]:
    """Times when the waiting jobs of a state start under a policy; the state stays as it is."""
    kept = state_bytes(state)
    by = _starts(state_from(kept), policy(), lambda spec, run_ms: spec.longest_ms)
    expected = _starts(state_from(kept), policy(), past.length_ms)
    return {name: Predicted(by.get(name), expected.get(name)) for name, one in state.jobs.items() if one.waits}


def _starts(state: State, policy: Policy, length: Length) -> Mapping[str, int]:
    """Waiting job → time when it starts."""
    now_ms, work = state.now_ms, dict[str, Work]()
    coming = list[Happening]()
    for record in state.jobs.values():
        runs = record.state is JobState.RUNNING
        ran_ms = now_ms - record.since_ms if runs else 0
        in_all = length(record.spec, ran_ms)
        left_ms = NEVER if in_all is None else max(1, in_all - ran_ms)
        work[record.name] = Work(NEVER if in_all is None else in_all, 0, 0, limit_ms=record.spec.longest_ms)
        if record.state is JobState.STOPPING:
            coming.append((now_ms, ev.Stopped(record.name, record.attempt, 0, 0)))
        elif record.shares and not record.blockers:
            if not runs:
                coming.append((now_ms, ev.Started(record.name, record.attempt)))
            coming.append((now_ms + left_ms, ev.Finished(record.name, record.attempt)))
    coming.sort(key=lambda one: one[0])
    found = dict[str, int]()
    waiting = {record.name for record in state.jobs.values() if record.waits}

    def note(turn: Turn) -> None:
        for stored in turn.events:
            if isinstance(stored.event, ev.Placed) and stored.event.job in waiting:
                waiting.remove(stored.event.job)
                found[stored.event.job] = stored.at_ms

    engine, host = Engine(state, policy), SimulatedHost(work)
    turn = engine.advance(now_ms, [])
    for command in turn.commands:
        host.carry_out(now_ms, command)
    note(turn)
    simulate(engine, host, coming, until_ms=NEVER - 1, on_turn=note, ended=lambda: not waiting)
    return found


class Sampling:
    """Foretells the starts of some jobs of a simulated run when they come, and compares.

    Args:
        jobs: how many come.
        samples: how many of them are looked at.
    """

    def __init__(self, errors: StartErrors, policy: Callable[[], Policy], jobs: int, samples: int) -> None:
        self._errors, self._policy, self._past = errors, policy, PastRuns()
        self._each = jobs // samples if 0 < samples < jobs else min(samples, 1)
        self._count = 0

    def take(self, state: State, turn: Turn) -> None:
        """Take in a turn of the run."""
        chosen = list[str]()
        for stored in turn.events:
            self._errors.take(stored.at_ms, stored.event)
            if self._each:
                self._past.take(stored.at_ms, stored.event)
                if isinstance(stored.event, ev.Submitted):
                    self._count += 1
                    chosen += [stored.event.job] if self._count % self._each == 0 else []
        if any(name in state.jobs and state.jobs[name].waits for name in chosen):
            found = predicted(state, self._policy, self._past)
            for name in chosen:
                if name in found:
                    self._errors.say(USUALLY_BY, name, state.now_ms, found[name].by_ms)
                    self._errors.say(EXPECTED, name, state.now_ms, found[name].expected_ms)
