"""The loop in a thread: it takes in requests and reports, makes a turn, writes the log, and sends out commands.

Requests that come while a turn is written are taken in together by the next one. A client is answered, and a command
leaves, when the turn is in the log. Where the store refuses, everything is as it was before the turn.
"""

import math
import subprocess
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain

from mast_opt.core.errors import MastOptError, UsageError
from mast_opt.core.memory import available_bytes
from mast_opt.live.hosts.protocol import Host, check_policy, within_abilities
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.commands import Command
from mast_opt.live.loop.engine import Engine, Turn
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.policy import Policy
from mast_opt.live.loop.state import State
from mast_opt.live.service.open_steps import OpenSteps
from mast_opt.live.service.problems import Problem
from mast_opt.live.service.restart import Reconciliation, completed, differences, early_starts, found_in, settled
from mast_opt.live.service.start_times import Begin, StartTimes
from mast_opt.live.service.turn_requests import (
    Intake,
    Request,
    Unavailable,
    answer_all,
    fail_all,
    known_keys,
)
from mast_opt.live.store.errors import Fenced, StoreError
from mast_opt.live.store.records import Answer, Batch, OpenCommand
from mast_opt.live.store.recovery import snapshot_of
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.problems.job_placement.units import WHOLE

MOST_EVENTS, MOST_REPORTS = 2000, 500
"""Events of requests after which a turn takes in no further request, and most reports of the host that it takes in."""
MOST_DECIDED = 500
"""Events of requests up to which the turn that takes them in also decides on them; on more, the next one does."""
MOST_STARTS = 200
"""Jobs that one turn places; the next one goes on."""
DAY_S, USE_S = 86_400, 300
"""Seconds of a day, and between two notes of what is in use."""
LEAST_BYTES, WEIGH_S = 256 * 2**20, 1.0
"""Memory that has to be left for jobs to be taken in, and seconds between two looks at it."""
RECENT = 500
"""Number of recent events that are kept in memory."""


@dataclass(frozen=True)
class LiveParams:
    """Parameters of a live loop.

    Args:
        holder: name of this process, for others that would lead.
        ttl_s: seconds after which a leader that is not heard of is followed.
        snapshot_every: events between two snapshots.
        keep_answers_s: seconds for which a repeated request gets the answer of the first.
        most_waiting: requests that may wait for a turn, and a quarter of them of one client; further ones are refused.
        most_jobs, most_jobs_of_tenant: jobs that may not have ended; further ones are refused.
        observe_s: seconds between two looks at what the host runs.
        retry_s: seconds after which a store that has failed is tried again.
        promote_ms: as ``JobRecord.queue_tier`` has it; places in the queue are said by it.
        limit_grace_ms: longest time from a limit of a job that comes in a request until the host has ended it.
    """

    holder: str = "mast-opt"
    ttl_s: float = 15.0
    snapshot_every: int = 100_000
    keep_answers_s: float = 86_400.0
    most_waiting: int = 10_000
    most_jobs: int = 1_000_000
    most_jobs_of_tenant: int = 250_000
    observe_s: float = 60.0
    retry_s: float = 0.2
    promote_ms: int = 0
    limit_grace_ms: int = 0


MOST_SAVING_S = 1800.0
"""Seconds after which the process that writes a snapshot hangs: it is ended, and another one begins later."""
DISAGREEMENTS = 5
"""Times in a row that a loop reads its log again where what the host reports does not fit."""


class Disagreement(MastOptError):
    """A report of the host does not fit what the log says of its job or server."""

    code = "disagreement"

    def __init__(self, event: ev.Event, why: Exception) -> None:
        named = next((f"{what} {getattr(event, what)}" for what in ("job", "server") if hasattr(event, what)), "it")
        super().__init__(
            f"log and host disagree, as the host reports {type(event).__name__} of {named}: {why}; "
            f"end or remove {named} on the host, and start the service again"
        )


class Live:
    """A loop over a store and a host.

    Args:
        opening: the state before the first event.
        policy: makes the policy; it is made again when the state is read again. One that changes sizes of running jobs
            over a host that cannot, or that places no jobs of several parts where the log has one, is refused
            (UsageError) by ``begin`` and ``start``.
        host_of: the host, given what jobs ask for.
        clock: ms since 1970; it may go back, the loop does not.
        ticks: seconds that never go back.
        saves: begins a process that writes a snapshot, given the epoch; without it the loop writes it itself.
        predicts: begins a process that predicts starts of waiting jobs; without it none are.
    """

    def __init__(
        self,
        store: SqlStore,
        opening: Callable[[], State],
        policy: Callable[[], Policy],
        host_of: Callable[[Callable[[str], JobSpec]], Host],
        params: LiveParams | None = None,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        ticks: Callable[[], float] = time.monotonic,
        saves: Callable[[int], subprocess.Popen[bytes]] | None = None,
        predicts: Begin | None = None,
    ) -> None:
        self._store, self._opening, self._policy = store, opening, policy
        self._params = params or LiveParams()
        self.promote_ms, self.limit_grace_ms = self._params.promote_ms, self._params.limit_grace_ms
        self._clock, self._ticks, self._saves = clock, ticks, saves
        self._saving: subprocess.Popen[bytes] | None = None
        self._saving_since = 0.0
        self.starts = StartTimes(predicts)
        self._anchor = clock(), ticks()
        """Time of the clock when it was last ahead, and ticks then."""
        self.host = host_of(lambda job: self._engine.state.jobs[job].spec)
        self.host.listen(self._look_up)
        self._lock = threading.RLock()
        self._wake = threading.Condition()
        self._waiting: deque[Request] = deque()
        self._asking: Counter[str] = Counter()
        """Client → its requests that are not answered."""
        self._stopping = False
        self._stored: list[Callable[[int], object]] = []
        self.epoch = 0
        self.problem = "starting"
        """Reason why nothing is taken in; empty while everything is."""
        self.recent: deque[ev.Stored] = deque(maxlen=RECENT)
        self.use: deque[tuple[int, float, float]] = deque(maxlen=DAY_S // USE_S)
        """(time in ms, GPUs in use, GPUs in service) of the last day."""
        self.turn_s: deque[float] = deque(maxlen=1000)
        self._snapshot_seq = 0
        self._in_log = False
        """Whether the log has everything that the state has."""
        self._last_ms = 0
        """Time of the last event."""
        self._reports: list[ev.Event] = []
        """Reports of the host that are not yet in the log."""
        self._next_wake: int | None = None
        self._renewed = 0.0
        self._cleared = 0.0
        self._looked = 0.0
        self._noted = self._weighed = -math.inf
        self._low = False
        """Whether little memory is left."""
        self._reconciliation = Reconciliation()
        self._steps = OpenSteps()
        self._engine: Engine
        self._thread = threading.Thread(target=self._run, name="mast-opt loop", daemon=True)

    # --- from outside ---

    def start(self) -> None:
        """Lead, read the log, and begin the loop. Raises LeadHeld while another process leads, StoreError,
        CorruptStore.
        """
        self.begin()
        self._thread.start()

    def begin(self) -> None:
        """Take the lead and recover, like ``start``, for a caller that calls ``step`` itself instead of starting a
        thread."""
        self.epoch = self._store.take_lead(self._params.holder, self._params.ttl_s)
        self._renewed = self._looked = self._ticks()
        self._recover(first=True)

    @property
    def goes_on(self) -> bool:
        """Whether the loop's thread runs; it ends when the loop is closed, or when another process leads."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Take in nothing more, write what has come, keep a snapshot, and let the next one lead."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()
        if self._saving is not None:
            self._saving.kill()  # what it writes is one transaction
            self._saving.wait()
        self.starts.close()
        if not self.problem:
            with suppress(StoreError, Unavailable):  # the log has everything
                self._save_snapshot()
                self._store.release_lead(self.epoch)
        self.host.close()
        self.problem = "stopped"

    def submit(self, request: Request) -> Future[tuple[int, str]]:
        """A future of status and body of the answer, filled in when what was accepted is in the log. It may hold
        Unavailable, KeyReused, or a StoreError."""
        client = request.by.partition(" ")[0]
        with self._wake:
            if self.problem or self._stopping:
                request.done.set_exception(Unavailable(f"the loop takes nothing in: {self.problem or 'stopping'}"))
            elif len(self._waiting) >= self._params.most_waiting:
                request.done.set_exception(Unavailable("too many requests wait for their turn"))
            elif client and self._asking[client] >= self._params.most_waiting // 4:
                words = f"{client} has {self._asking[client]:,} requests that wait for their turn"
                request.done.set_exception(Problem(429, "waiting", words, headers={"Retry-After": "1"}))
            else:
                if client:
                    self._asking[client] += 1
                    request.done.add_done_callback(lambda _: self._answered(client))
                self._waiting.append(request)
                self._wake.notify()
        return request.done

    def _answered(self, client: str) -> None:
        """Count a request of a client as answered."""
        with self._wake:
            self._asking[client] -= 1

    @contextmanager
    def state(self) -> Iterator[State]:
        """The state between two turns, all of it in the log. The loop waits meanwhile. Raises Unavailable while the log
        is being read."""
        with self._lock:
            if not self._in_log:
                raise Unavailable(f"the state is not known now: {self.problem}")
            yield self._engine.state

    def now_ms(self) -> int:
        """Time of the loop: that of the clock, or, where the clock has gone back, the time before plus the ticks
        since."""
        (since_ms, since_s), tick_s, clock_ms = self._anchor, self._ticks(), self._clock()
        carried_ms = since_ms + int(1000 * (tick_s - since_s))
        if clock_ms >= carried_ms:
            self._anchor = clock_ms, tick_s
        return max(clock_ms, carried_ms, self._engine.state.now_ms)

    def on_stored(self, call: Callable[[int], object]) -> Callable[[], None]:
        """Call a function with the number of the last event after every turn; returns a function that ends the
        calls."""
        self._stored.append(call)
        return lambda: self._stored.remove(call)

    # --- the thread ---

    def _look_up(self) -> None:
        """Wake the loop's thread, so that it looks for requests and reports."""
        with self._wake:
            self._wake.notify()

    def _run(self) -> None:
        """Body of the thread: turn after turn until the loop is closed."""
        while True:
            with self._wake:
                if not self._waiting and not self._stopping:
                    self._wake.wait(self._pause_s())
                if self._stopping and not self._waiting:
                    return
            if not self.step():
                return

    def step(self) -> bool:
        """Make one turn with the requests that have come; False if the loop has ended."""
        with self._wake:
            taken = self._take()
        try:
            self._turn(taken)
            self._keep_house()
        except Fenced as error:
            self._give_up(taken, error)
            return False
        except StoreError as error:  # nothing of the turn is in the log, or all of it
            with self._wake:
                self.problem = f"reading the log again after a failure: {error}"
                rest, self._waiting = self._waiting, deque()
            fail_all(taken, error)
            fail_all(rest, Unavailable(self.problem))
            return self._recovered()
        except BaseException as error:  # a request that should have been refused; a library's panic is no Exception
            if len(taken) == 1:
                fail_all(
                    taken, error if isinstance(error, Exception) else Unavailable(f"{type(error).__name__}: {error}")
                )
            for request in taken:
                request.alone = True
            with self._wake:
                self.problem = f"reading the log again after a failure: {error}"
                self._waiting.extendleft(reversed([one for one in taken if not one.done.done()]))
            return self._recovered()
        return True

    def _take(self) -> list[Request]:
        """Take the requests of one turn from the queue."""
        taken, count = list[Request](), 0
        while self._waiting and count < MOST_EVENTS and not (taken and (taken[-1].alone or self._waiting[0].alone)):
            taken.append(self._waiting.popleft())
            count += len(taken[-1].events)
        return taken

    def _pause_s(self) -> float:
        """Seconds that the loop's thread may wait before its next turn."""
        if self._reports:
            return 0.0
        now = self.now_ms()
        times = [time_ms for time_ms in (self._next_wake, self.host.next_ms()) if time_ms is not None]
        return max(0.0, min([self._params.ttl_s / 3, *((time_ms - now) / 1000 for time_ms in times)]))

    def _turn(self, taken: Sequence[Request]) -> None:
        """Make one turn: decide on events, write the log, send commands."""
        now, begun = self.now_ms(), time.perf_counter()
        answered, fresh = known_keys(self._store, taken)
        self._reports += self.host.reports(now)
        later = self._reports[MOST_REPORTS:]
        reports = completed(self._engine.state, self._reports[:MOST_REPORTS])
        due = self._next_wake is not None and now >= self._next_wake
        if not (reports or due or fresh):
            answer_all(answered)
            return
        with self._lock:
            before = self._engine.state.seq
            self._in_log = False
            most = self._params.most_jobs, self._params.most_jobs_of_tenant
            happened = partial(self.host.happened, now)
            intake = Intake(self._engine, self._store, fresh, happened, most, low=self._low)
            try:
                many = sum(len(request.events) for request in fresh) > MOST_DECIDED
                turn = self._engine.advance(now, chain(reports, intake.events()), decides=not many)
            finally:
                self._reports += intake.reports  # the host says so once
            self._next_wake = turn.next_wake_ms
            commands = within_abilities(self.host, turn.commands)
            answers = intake.answers
            self._steps.add(commands)
            batch = Batch(
                before,
                turn.events,
                [OpenCommand.of(command) for command in commands],
                [*settled(turn.events), *self._steps.settled(self._engine.state)],
                [
                    Answer(request.key.principal, request.key.key, request.key.digest, status, body, now)
                    for request, status, body in answers
                    if request.key is not None
                ],
            )
            if batch.events or batch.answers or batch.settled:
                self._store.append(self.epoch, batch)
            self._reports = later
            self._written(turn.events)
        self.turn_s.append(time.perf_counter() - begun)
        answer_all(answered)
        answer_all([(request, (status, body)) for request, status, body in answers])
        for request, error in intake.refused:
            fail_all([request], error)
        self._give(now, (*early_starts(self.host, self._engine.state, turn.events), *commands))
        for call in tuple(self._stored):
            call(self._engine.state.seq)

    def _give(self, now_ms: int, commands: Iterable[Command]) -> None:
        """Send commands to the host."""
        for command in commands:
            self.host.carry_out(now_ms, command)
            self._steps.taken(command)

    def _written(self, events: Sequence[ev.Stored]) -> None:
        """Note that events of a turn of the loop are in the log."""
        self._in_log = True
        self._steps.written()
        self.recent.extend(events)
        self.starts.take(events)
        if events:
            self._last_ms = events[-1].at_ms

    # --- housekeeping ---

    def _keep_house(self) -> None:
        """Do what is due now and then: renew the lead, note use, take snapshots, compare with the host, clear old
        answers.
        """
        now = self._ticks()
        if now - self._renewed > self._params.ttl_s / 3:
            self._store.renew_lead(self.epoch)
            self._renewed = now
        if now - self._weighed >= WEIGH_S:
            self._weighed, left = now, available_bytes()
            self._low = left is not None and left < LEAST_BYTES
        if now - self._noted >= USE_S:
            self._noted, there = now, self._engine.state.inventory
            used, supply = (sum(mgpu.values()) / WHOLE for mgpu in (there.used_mgpu, there.supply_mgpu))
            self.use.append((self.now_ms(), used, supply))
        if self._saving is not None:
            self._look_at_saving(self._saving)
        elif self._engine.state.seq - self._snapshot_seq >= self._params.snapshot_every:
            if self._saves is None:
                self._save_snapshot()
            else:
                self._begin_saving(self._saves)
        self.starts.keep(now, self.now_ms(), self._engine.state)
        if now - self._looked > self._params.observe_s:
            self._looked = now
            self._look()
        if now - self._cleared > 3600:
            self._cleared = now
            since = self.now_ms() - round(1000 * self._params.keep_answers_s)
            self._store.retain(self.epoch, events_from=1, answers_from_ms=since)

    def _look(self) -> None:
        """Compare the state with what the host runs: an answer may have been lost."""
        found = self._reconciliation.look(self._engine.state, self.host.observe(), self._reports)
        self._reports += found.events
        self._give(self.now_ms(), found.commands)

    def _look_at_saving(self, process: subprocess.Popen[bytes]) -> None:
        """Note the end of the process that writes the service's snapshot, and end one that hangs; one that failed is
        tried again some events later.
        """
        if process.poll() is not None:
            self._saving = None
            self._snapshot_seq = max(self._store.newest_snapshot(), self._some_later() if process.returncode else 0)
        elif self._ticks() - self._saving_since > MOST_SAVING_S:
            process.kill()

    def _begin_saving(self, saves: Callable[[int], subprocess.Popen[bytes]]) -> None:
        """Begin the process that writes the service's snapshot, or try it again some events later."""
        try:
            self._saving, self._saving_since = saves(self.epoch), self._ticks()
        except OSError:  # no memory, or as many processes as there may be
            self._snapshot_seq = self._some_later()

    def _some_later(self) -> int:
        """The event after which a snapshot would be due again in a tenth of the usual events."""
        return self._engine.state.seq - self._params.snapshot_every * 9 // 10

    def _save_snapshot(self) -> None:
        """Save a snapshot of the loop's state to the store."""
        with self.state() as state:
            now, state.now_ms = state.now_ms, self._last_ms  # a turn without events is not in the log
            snapshot = snapshot_of(state)
            state.now_ms = now
        self._store.save_snapshot(self.epoch, snapshot)
        self._snapshot_seq = snapshot.seq

    def _give_up(self, taken: Sequence[Request], error: Exception) -> None:
        """Give up after an error: refuse all requests that wait, and close the host."""
        with self._wake:
            self.problem = str(error)
            rest, self._waiting = [*taken, *self._waiting], deque()
        fail_all(rest, Unavailable(self.problem))
        self.host.close()

    def _recovered(self) -> bool:
        """Read the state again after a failure, as often as it takes; False if another process leads by then, or if log
        and host go on disagreeing."""
        disagreed = 0
        while not self._stopping:
            try:
                self._store.renew_lead(self.epoch)
                self._recover()
            except Fenced as error:
                self._give_up((), error)
                return False
            except BaseException as error:  # a full disk, no memory, a host that is away, a library's panic
                self.problem = str(error) or type(error).__name__
                disagreed = disagreed + 1 if isinstance(error, Disagreement) else 0
                if isinstance(error, Disagreement) and disagreed == DISAGREEMENTS:
                    self._give_up((), error)
                    return False
                time.sleep(self._params.retry_s)
            else:
                return True
        return False

    def _taken_in(self, now_ms: int, inbox: Iterable[ev.Event]) -> Turn:
        """The turn of a recovery. Raises Disagreement for an event that does not fit."""
        last: list[ev.Event] = []

        def one_by_one() -> Iterator[ev.Event]:
            for event in inbox:
                last[:] = (event,)
                yield event
            last.clear()

        try:
            return self._engine.advance(now_ms, one_by_one())
        except (ev.CorruptLog, UsageError) as error:
            raise (Disagreement(last[0], error) if last else error) from error

    def _recover(self, *, first: bool = False) -> None:
        """Rebuild the state from the log, compare it with what the host runs, and repeat commands without an answer."""
        with self._lock:
            self._in_log = False
            found = found_in(self._store, self._opening)
            self._last_ms = found.state.now_ms
            self._anchor = max(self._clock(), found.state.now_ms), self._ticks()
            policy = self._policy()
            check_policy(policy, self.host, found.state.jobs.values())
            self._engine = Engine(found.state, policy, most_starts=MOST_STARTS)
            self._snapshot_seq = found.snapshot_seq
            state, now = found.state, self.now_ms()
            self.host.resume(state.jobs.values())
            self._reports = completed(state, self._reports)
            differ = differences(state, self.host.observe(), self._reports, found.commands)
            inbox: list[ev.Event] = [*state.opening()] if state.seq == 0 else []
            if first:
                inbox.append(ev.LeadTaken(self._params.holder, self.epoch, self.host.unenforced()))
            inbox += (*self._reports, *differ.events)
            turn = self._taken_in(now, inbox)
            self._next_wake = turn.next_wake_ms
            fresh = within_abilities(self.host, turn.commands)
            given = [OpenCommand.of(command) for command in fresh]
            again = within_abilities(self.host, found.commands)
            able = {one.id for one in again}
            self._steps = OpenSteps()
            self._steps.add((*again, *fresh))
            done = (
                *found.settled,
                *(one.id for one in found.commands if one.id not in able),
                *settled(turn.events),
                *self._steps.settled(state),
            )
            before = turn.events[0].seq - 1 if turn.events else state.seq
            self._store.append(self.epoch, Batch(before, turn.events, given, done))
            self._reports.clear()
            self._written(turn.events)
        self.problem = ""
        gone = set(done)
        again = [one for one in again if one.id not in gone]
        self._give(now, (*differ.commands, *again, *early_starts(self.host, state, turn.events), *fresh))
