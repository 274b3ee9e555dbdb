"""Habits of Gavel's own simulator, to compare with it: what it does that its paper does not say and we do not do.

Shares wait for the next arrival when nothing runs; jobs without a share hold the room that they were chosen for; types
without known speeds choose in an order shuffled by Python's generator; jobs do whole steps only, so that a round ends
when the last job has done the steps that fit into it; and ``fifo`` without speeds draws a type, but takes the last one
on its list, whether there is room or not, and takes the drawn one off the list. The least makespan is known to 5% only.
"""

import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.commands import Command, Start, Stop
from mast_opt.live.loop.engine import Engine, Turn
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.loop.speeds import Speeds
from mast_opt.live.loop.state import State
from mast_opt.live.policies.central_shares import at_least
from mast_opt.live.policies.round_choice import Cell
from mast_opt.live.policies.round_params import RoundParams
from mast_opt.live.policies.share_rules import OBJECTIVES, Competing, ShareRule
from mast_opt.live.policies.shared_rounds import SECOND_MS, Rounds
from mast_opt.live.simulation.driver import simulate
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.live.simulation.traces.schema import MICRO
from mast_opt.live.simulation.traces.trace import JobTrace

ROUND = "round"
"""Name of the timer with which ``StepHost`` reports the end of a round."""
TYPE_SEED = 5
"""Added to the seed for the order of types."""


class GavelFifo(ShareRule):
    """Gavel's ``fifo`` without speeds, as its code is.

    Args:
        seed: of Python's generator.
    """

    only_shared = True

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._type: dict[str, int] = {}
        self._number: dict[str, int] = {}

    def shares(self, jobs: Competing) -> FloatArray:
        """Shares in order of submission as Gavel gives them. Types are in the order of their names, as in Gavel."""
        need, rate = jobs.demand.need.max(axis=1), jobs.demand.rate
        for name in jobs.names:
            self._number.setdefault(name, len(self._number))
        place = {name: at for at, name in enumerate(jobs.names)}
        left = jobs.demand.gpus.copy()
        queue = [name for name in jobs.names if name not in self._type]
        for name in sorted(self._type, key=self._number.__getitem__):
            kind = self._type[name]
            if name in place:
                left[kind] -= need[place[name]]
                continue
            del self._type[name]
            if queue and need[place[queue[0]]] <= left[kind] and rate[place[queue[0]], kind] > 0:
                head = queue.pop(0)
                self._type[head] = kind
                left[kind] -= need[place[head]]
        types = [kind for kind in range(len(left)) if left[kind] > 0]
        while queue and types:
            head = queue.pop(0)
            fits = [at for at, kind in enumerate(types) if left[kind] >= need[place[head]]]
            if not fits:
                break
            drawn, kind = fits[self._rng.randrange(len(fits))], types[-1]
            if rate[place[head], kind] > 0:
                self._type[head] = kind
                left[kind] -= need[place[head]]
                if left[kind] == 0:
                    types.pop(drawn)
        found = np.zeros(rate.shape)
        for name, kind in self._type.items():
            found[place[name], kind] = 1.0
        return found


class GavelMakespan(ShareRule):
    """Gavel's least makespan, which it finds to 5% by bisection."""

    first_s = (100.0, 1e6)
    """Seconds between which the search for the makespan begins."""

    def shares(self, jobs: Competing) -> FloatArray:
        """Shares with the least makespan as Gavel finds it."""
        low, high = self.first_s
        found = None
        while found is None:
            longest = high
            while 1.05 * low < high:
                middle = (low + high) / 2
                shares = at_least(jobs.demand, jobs.left_s / middle)
                low, high, found = (middle, high, found) if shares is None else (low, middle, shares)
            low, high = longest, 10 * longest
        return found


class GavelRounds(Rounds):
    """Rounds as Gavel's simulator plays them.

    Args:
        arrivals: jobs of the whole trace.
        host_rounds: whether rounds end when ``StepHost`` says so.
    """

    reacts_to: ClassVar[frozenset[type]] = Rounds.reacts_to | {ev.Timer}

    def __init__(
        self, rule: ShareRule, speeds: Speeds, params: RoundParams, arrivals: int, *, host_rounds: bool
    ) -> None:
        super().__init__(rule, speeds, params)
        self._arrivals, self._arrived = arrivals, 0
        self._host_rounds = host_rounds
        self._before_ms = 0
        """End of the round before this one."""
        self._ran = False
        """Whether anything was chosen for this one."""
        self._rng = random.Random(params.seed + TYPE_SEED)

    def decide(self, snapshot: Snapshot, actions: Actions) -> None:
        """Decide like ``Rounds``, with the end of a round where Gavel's simulator has it."""
        self._arrived += sum(isinstance(event, ev.Submitted) for event in snapshot.news)
        if self._host_rounds and any(isinstance(event, ev.Timer) for event in snapshot.news):
            self._ends_ms = snapshot.now_ms
        super().decide(snapshot, actions)

    def _credit(self, snapshot: Snapshot) -> None:
        """Credit the jobs of the round that ends, and note its end, from which Gavel pays the next one."""
        super()._credit(snapshot)
        if self._ran:
            self._before_ms, self._ran = snapshot.now_ms, False

    def _paid_ms(self, snapshot: Snapshot, records: Sequence[JobRecord], kind: int) -> float:
        """A job is paid from the end of the round before, even if nothing ran since, for the steps that it has done."""
        worked_ms: float = snapshot.now_ms - self._began_ms
        if self._host_rounds:
            spec, round_s = records[0].spec, self.params.round_s
            speed = self._speeds.alone[spec.model, self._types[kind], spec.tasks] / MICRO
            worked_ms = int(speed * round_s) / speed * SECOND_MS
        return self._began_ms - self._before_ms + worked_ms

    def _end_of_round(self, now_ms: int, chosen: Mapping[str, Cell]) -> int | None:
        """End of a round where Gavel's simulator has it; None if no job runs in it."""
        end = super()._end_of_round(now_ms, chosen)
        self._ran = bool(chosen)
        if not chosen or end is None:
            return None
        return 2 * end - now_ms if self._host_rounds else end  # the host ends it before that

    def _shares_due(self, now_ms: int) -> bool:
        """Whether Gavel's simulator computes shares now: every so often, or when nothing runs and no job is to come."""
        forced = not self._target and self._arrived == self._arrivals
        return forced or not self._shared_ms or now_ms - self._shared_ms >= self.params.reset_s * SECOND_MS

    def _may_run(self, at: int) -> bool:
        """Whether a job that was chosen runs in Gavel's simulator: one that shares have been computed for."""
        return bool(self._table.has_share[at])

    def _order_of_types(self) -> Sequence[int]:
        """GPU types in the order of Gavel's simulator: by name backwards, or at random where speeds are not known."""
        order = list(range(len(self._types)))[::-1]  # v100, p100, k80
        if not self.params.aware:
            self._rng.shuffle(order)
        return order


@dataclass(slots=True)
class _Attempt:
    number: int
    speed: float
    """Steps a second."""
    steps: float = 0
    """Done in this attempt."""


class StepHost(SimulatedHost):
    """A host on which jobs do whole steps in rounds: as many as fit into a round, or are left. It reports the end of a
    round when the last job has done its steps, as a ``Timer``.

    Args:
        trace: of jobs that have models.
        round_s: longest length of a round.
    """

    def __init__(self, trace: JobTrace, round_s: int) -> None:
        super().__init__({})
        self._speeds, self._round_s = trace.speeds, round_s
        self._kinds = {server.name: server.gpu_type for server in trace.servers}
        self._of: dict[str, tuple[str, int]] = {}
        """Job → model and tasks."""
        self._left: dict[str, float] = {}
        """Job → steps; jobs that were drawn have a part of one at their end."""
        for j, name in enumerate(trace.submissions.labels):
            spec = trace.submissions.spec(j)
            if not spec.model or spec.duration_ms is None:
                raise UsageError(f"job {name} has no model or no duration; whole steps need both")
            self._of[name] = spec.model, spec.tasks
            self._left[name] = self._steps(name, spec.duration_ms)
        self._attempts: dict[str, _Attempt] = {}
        self._at_once: list[ev.Event] = []
        self._now_s = 0.0
        self._plan: list[tuple[float, str, float]] = []
        """Plan of this round: end, job and steps of each, first to last; empty before it has been made."""

    def _reference(self, name: str) -> float:
        """Training steps a second of a job on the GPU type on which it is fastest."""
        return max(self._speeds.runs[self._of[name]].values()) / MICRO

    def _steps(self, name: str, duration_ms: int) -> float:
        """Training steps of a simulated job: whole ones, if its duration is that of whole ones in ms, rounded up."""
        speed = self._reference(name)
        steps = duration_ms * speed / SECOND_MS
        return int(steps) if steps % 1 < speed / SECOND_MS else steps

    def next_ms(self) -> int | None:
        """Time of the simulated host's next answer, which is the end of a job or of the round."""
        if self._at_once:
            return round(self._now_s * SECOND_MS)
        if not self._attempts:
            return None
        if not self._plan:
            for name, attempt in self._attempts.items():
                steps = min(int(attempt.speed * self._round_s), self._left[name])
                self._plan.append((self._now_s + steps / attempt.speed, name, steps))
            self._plan.sort()
        ends = (end for end, name, steps in self._plan if name in self._attempts and steps == self._left[name])
        return round(min(next(ends, math.inf), self._plan[-1][0]) * SECOND_MS)

    def answers(self, now_ms: int) -> list[ev.Event]:
        """Answers of the simulated host that are due, with the jobs that end in this round."""
        found, self._at_once = self._at_once, []
        for end, name, steps in self._plan:
            if round(end * SECOND_MS) <= now_ms and name in self._attempts and steps == self._left[name]:
                found.append(ev.Finished(name, self._attempts.pop(name).number))
        if self._plan and round(self._plan[-1][0] * SECOND_MS) <= now_ms:
            for _, name, steps in self._plan:
                if name in self._attempts:
                    self._left[name] -= steps
                    self._attempts[name].steps += steps
            self._now_s, self._plan = self._plan[-1][0], []
            found.append(ev.Timer(ROUND))
        return found

    def carry_out(self, now_ms: int, command: Command) -> None:
        """Carry out a command on the simulated host, in steps of training instead of time."""
        if not self._attempts and not self._plan and round(self._now_s * SECOND_MS) < now_ms:
            self._now_s = now_ms / SECOND_MS  # nothing ran
        self._plan = []
        if isinstance(command, Start):
            model, tasks = self._of[command.job]
            speed = self._speeds.alone[model, self._kinds[command.shares[0].server], tasks] / MICRO
            self._attempts[command.job] = _Attempt(command.attempt, speed)
            self._at_once.append(ev.Started(command.job, command.attempt))
        elif isinstance(command, Stop) and command.job in self._attempts:
            attempt = self._attempts.pop(command.job)
            work_ms = int(attempt.steps / self._reference(command.job) * SECOND_MS)
            self._at_once.append(ev.Stopped(command.job, attempt.number, work_ms, 0))


def replay_gavel(trace: JobTrace, params: RoundParams, *, whole_steps: bool = False) -> list[ev.Stored]:
    """The log of a trace as Gavel's simulator would have played it.

    Args:
        whole_steps: jobs do whole steps only, so that rounds end before their time.
    """
    log: list[ev.Stored] = []
    _play(trace, params, len(trace.submissions), lambda turn: log.extend(turn.events), whole_steps=whole_steps)
    return log


def completion_times(
    trace: JobTrace, params: RoundParams, watched: Collection[str], *, whole_steps: bool = True
) -> dict[str, int]:
    """Watched job → ms from its submission to its end, if Gavel's simulator had gone on until the last of them ended.

    Args:
        watched: jobs of the trace.
        whole_steps: see ``replay_gavel``.

    Raises:
        UsageError: the trace ends before they do: Gavel's jobs go on coming, so there have to be more.
    """
    submitted_ms = dict(zip(trace.submissions.labels, trace.submissions.submitted_ms.tolist(), strict=True))
    unfinished, found = set(watched), dict.fromkeys(watched, 0)

    def note(turn: Turn) -> None:
        for stored in turn.events:
            if isinstance(stored.event, ev.Finished) and stored.event.job in unfinished:
                unfinished.remove(stored.event.job)
                found[stored.event.job] = stored.at_ms - submitted_ms[stored.event.job]

    jobs_without_end = len(trace.submissions) + 1
    until_ms = max(submitted_ms.values())
    _play(
        trace, params, jobs_without_end, note, whole_steps=whole_steps, until_ms=until_ms, ended=lambda: not unfinished
    )
    if unfinished:
        raise UsageError(f"the trace ends before {len(unfinished)} of the watched jobs do; expected more jobs")
    return found


def _play(
    trace: JobTrace,
    params: RoundParams,
    arrivals: int,
    on_turn: Callable[[Turn], None],
    *,
    whole_steps: bool,
    until_ms: int | None = None,
    ended: Callable[[], bool] = bool,
) -> None:
    """Simulate a trace under a policy of Gavel with the habits of Gavel's own simulator."""
    if params.packing and whole_steps:
        raise UsageError("jobs that share GPUs do not do whole steps here; expected packing or whole_steps")
    jobs = trace.submissions
    rule = OBJECTIVES[params.objective](params.aware, params.seed)
    if params.objective == "fifo" and not params.aware:
        rule = GavelFifo(params.seed)
    if params.objective == "makespan":
        rule = GavelMakespan()
    policy = GavelRounds(rule, trace.speeds, params, arrivals, host_rounds=whole_steps)
    columns = zip(jobs.labels, jobs.duration_ms.tolist(), jobs.checkpoint_ms.tolist(), jobs.restart_ms.tolist())
    work = {name: Work(*times) for name, *times in columns}
    host = StepHost(trace, params.round_s) if whole_steps else SimulatedHost(work, trace.rate())
    coming = ((int(jobs.submitted_ms[j]), ev.Submitted(name, jobs.spec(j))) for j, name in enumerate(jobs.labels))
    by_type = sorted(trace.servers, key=lambda server: server.gpu_type)  # its types are in the order of their names
    state = State(by_type, tiers=sorted(set(jobs.tier.tolist())))
    simulate(Engine(state, policy), host, coming, until_ms=until_ms, on_turn=on_turn, ended=ended)
