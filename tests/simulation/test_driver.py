"""Random traces through engine and simulated host: nothing is lost, a log replays, and logs are equal every time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from benchmarks.head_of_line import HeadOfLine
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.engine import Engine, Turn
from mast_opt.live.loop.event_log import log_lines
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.loop.policy import Policy
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.loop.state import State
from mast_opt.live.policies.early_binding import RULES, EarlyBinding, EarlyBindingParams
from mast_opt.live.policies.mast import Mast
from mast_opt.live.policies.mast_params import MastParams
from mast_opt.live.simulation.driver import Happening, simulate
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.problems.job_placement.live_fleet.types import Server

REGIONS = ("east", "north", "west")
SERVERS = tuple(
    Server(f"{region}-{k}", region, f"{region}-c", f"{region}-r{k // 2}", "H100", 8, 0, 0)
    for region in REGIONS
    for k in range(4)
)
POLICIES: dict[str, Callable[[], Policy]] = {
    "fifo": lambda: HeadOfLine("fifo"),
    "sjf": lambda: HeadOfLine("sjf"),
    "mast": Mast,
    "mast-regional": lambda: Mast(MastParams(scope="region")),
    "mast-runner-up": lambda: Mast(MastParams(runner_up=True)),
    "mast-packed": lambda: Mast(MastParams(pack="always")),
    **{rule: partial(EarlyBinding, EarlyBindingParams(rule, age_ms=30)) for rule in RULES},
}


def trace(seed: int, jobs: int = 60, faults: bool = True) -> tuple[list[Happening], dict[str, Work]]:
    rng = np.random.default_rng(seed)
    happenings: list[Happening] = []
    work = {}
    for number in range(jobs):
        gpus = int(rng.choice([1, 2, 4, 8, 16]))
        tier = int(rng.integers(3))
        data = tuple(name for name in ("logs", "images") if rng.random() < 0.4)
        duration = int(rng.integers(1, 400))
        spec = JobSpec(
            tier=tier,
            tasks=max(1, gpus // 8),
            mgpu=min(gpus, 8) * 1000,
            datasets=data,
            tenant=str(rng.choice(["ads", "search", "maps"])),
            preemptible=tier > 0,
            checkpoint_ms=50,
            restart_ms=7,
            duration_ms=duration,
            home_region=str(rng.choice(REGIONS)) if not data else "west",
        )
        happenings.append((int(rng.integers(1, 1500)), ev.Submitted(f"job-{number}", spec)))
        work[f"job-{number}"] = Work(duration, 50, 7, stop_ms=int(rng.integers(0, 20)))
    if faults:
        happenings += [(300, ev.ServerDown("west-1")), (700, STATE_UP["west-1"]), (900, ev.Cancelled("job-3"))]
        happenings += [(400, ev.CopyEnded("images", "east")), (600, ev.QuotaSet("ads", 20_000))]
    return sorted(happenings, key=lambda happening: happening[0]), work


def fresh(*, limited: bool = True) -> State:
    replicas = {"logs": {"west", "east"}, "images": {"west"}}
    quotas = {"ads": 12_000, "search": 40_000} if limited else {}
    return State(SERVERS, tiers=(0, 1, 2), replicas=replicas, quotas=quotas, placement="best-fit")


def tiers(state: State) -> dict[str, tuple[int, bool]]:
    """What the fleet thinks of each job that runs: its tier after quotas, and whether it is over its quota."""
    running = state.fleet._books.running
    return {name: (job.tier, job.over_quota) for name, job in running.items()}


STATE_UP = {event.server: event for event in fresh().opening()}


def run(name: str, seed: int, faults: bool = True) -> tuple[Engine, list[ev.Stored], dict[str, Work]]:
    happenings, work = trace(seed, faults=faults)
    engine, log = Engine(fresh(), POLICIES[name]()), list[ev.Stored]()

    def keep(turn: Turn) -> None:
        log.extend(turn.events)

    simulate(engine, SimulatedHost(work), happenings, on_turn=keep)
    return engine, log, work


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("seed", [1, 2])
class TestRandomTraces:
    def test_every_job_ends_once_and_no_server_holds_more_than_it_has(self, name: str, seed: int) -> None:
        engine, log, _ = run(name, seed)
        assert not engine.state.jobs
        ends = Counter(stored.event.job for stored in log if isinstance(stored.event, ev.Finished))
        cancelled = {stored.event.job for stored in log if isinstance(stored.event, ev.Cancelled)}
        submitted = {stored.event.job for stored in log if isinstance(stored.event, ev.Submitted)}
        assert set(ends) | cancelled == submitted
        assert set(ends.values()) == {1}
        replicas = {"logs": ["west", "east"], "images": ["west"]}
        found = check_log(log, replicas=replicas, limited=["ads", "search"], all_end=True, durations=True)
        assert [str(violation) for violation in found] == []
        held: dict[str, tuple[ev.Placed, bool]] = {}
        for stored in log:
            event = stored.event
            if isinstance(event, ev.Placed):
                held[event.job] = event, False
            elif isinstance(event, ev.Started):
                held[event.job] = held[event.job][0], True
                used: Counter[str] = Counter()
                for placed, started in held.values():
                    for share in placed.shares if started else ():
                        used[share.server] += sum(share.gpus.values())
                assert max(used.values()) <= 8000
            elif isinstance(event, (ev.Stopped, ev.Finished)):
                held.pop(event.job)

    def test_replay_leads_to_the_same_state(self, name: str, seed: int) -> None:
        happenings, work = trace(seed)
        engine, replayed = Engine(fresh(), POLICIES[name]()), fresh()

        def compare(turn: Turn) -> None:
            for stored in turn.events:
                replayed.apply(stored.seq, stored.at_ms, stored.event)
            if turn.events:
                assert replayed.digest() == engine.state.digest()
                assert replayed.fleet.running() == engine.state.fleet.running()
                assert tiers(replayed) == tiers(engine.state)
                for name, (_, over) in tiers(replayed).items():
                    assert replayed.jobs[name].over_quota == over

        simulate(engine, SimulatedHost(work), happenings, on_turn=compare)

    def test_work_is_conserved(self, name: str, seed: int) -> None:
        _, log, work = run(name, seed)
        saved: Counter[str] = Counter()
        began: dict[str, int] = {}
        for stored in log:
            event = stored.event
            if isinstance(event, ev.Started):
                began[event.job] = stored.at_ms + (7 if event.attempt > 1 else 0)
            elif isinstance(event, ev.Stopped):
                saved[event.job] += event.work_ms
                if event.work_ms or event.lost_ms:
                    assert event.work_ms % 50 == 0
            elif isinstance(event, ev.Finished):
                assert saved[event.job] + stored.at_ms - began[event.job] == work[event.job].duration_ms


def test_late_binding_never_stops_work_that_had_another_place() -> None:
    """A victim is stopped only when no region has room without one (metric ``needless`` of late binding: 0)."""
    happenings, work = trace(5, faults=False)
    engine = Engine(fresh(), Mast())

    def check(turn: Turn) -> None:
        placed = [stored.event for stored in turn.events if isinstance(stored.event, ev.Placed)]
        for event in placed:
            if event.victims:
                assert event.key is not None
                assert event.key[0] is not None

    simulate(engine, SimulatedHost(work), happenings, on_turn=check)


class Searching(Mast):
    """Sorts all jobs again when data changes, and searches for every class in every turn, whatever room there seems to
    be."""

    def begin(self, snapshot: Snapshot) -> None:
        super().begin(snapshot)
        self._waiting.may_fit = lambda waiting: True  # type: ignore[method-assign]

    def _serve_oldest_first(self, snapshot: Snapshot, actions: Actions) -> None:
        self._serve_by_rank(snapshot, actions)

    def _take_in_data(self, snapshot: Snapshot, actions: Actions, *, rights: bool) -> None:
        self._requeue(snapshot, actions)
        self._bind_all(snapshot.jobs.values(), snapshot, actions)
        self.begin(snapshot)

    def _wake(self, snapshot: Snapshot) -> None:
        super()._wake(snapshot)
        self._due.update(self._waiting.classes)


def moving_data(seed: int) -> tuple[list[Happening], dict[str, Work]]:
    """A trace in which replicas come and go, and jobs wait for data that is nowhere yet."""
    happenings, work = trace(seed, jobs=120)
    happenings = [happening for happening in happenings if not isinstance(happening[1], ev.QuotaSet)]
    rng = np.random.default_rng(seed + 100)
    for number, (at_ms, event) in enumerate(happenings):
        if isinstance(event, ev.Submitted) and rng.random() < 0.2:
            happenings[number] = at_ms, ev.Submitted(event.job, replace(event.spec, datasets=("late", "logs")))
    changes: list[ev.Event] = [ev.ReplicaDropped("logs", "east"), ev.CopyEnded("logs", "north")]
    changes += [
        ev.DatasetCreated("late", 5, ("west",)),
        ev.ReplicaDropped("logs", "west"),
        ev.CopyEnded("logs", "west"),
    ]
    happenings += zip(np.sort(rng.integers(1, 1200, len(changes))).tolist(), changes)
    return sorted(happenings, key=lambda happening: happening[0]), work


def logs_of(
    happenings: list[Happening], work: dict[str, Work], params: MastParams, limited: bool
) -> list[list[ev.Stored]]:
    """The logs of the policy, and of one that searches more."""
    logs = []
    for policy in (Mast(params), Searching(params)):
        turns: list[Turn] = []
        simulate(Engine(fresh(limited=limited), policy), SimulatedHost(work), happenings, on_turn=turns.append)
        logs.append([stored for turn in turns for stored in turn.events])
    return logs


@pytest.mark.parametrize("seed", range(6))
def test_classes_that_sleep_could_not_be_placed(seed: int) -> None:
    logs = logs_of(*trace(seed, jobs=120), MastParams(), True)
    assert logs[0] == logs[1]


@pytest.mark.parametrize("params", [MastParams(), MastParams(pack="always"), MastParams(bind="share")], ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_no_class_that_could_be_placed_sleeps_where_data_moves(seed: int, params: MastParams) -> None:
    logs = logs_of(*moving_data(seed), params, False)
    assert any(isinstance(stored.event, ev.Refused) for stored in logs[0])
    assert logs[0] == logs[1]


LOG = """
from mast_opt.live.loop.event_log import log_lines
from mast_opt.live.loop.log_checker import check_log
from tests.simulation.test_driver import run
print("".join(log_lines(run("mast", 3)[1])))
"""


@pytest.mark.second_tier
def test_logs_are_equal_under_other_hash_seeds() -> None:
    logs = set()
    for seed in ("1", "2"):
        command = [sys.executable, "-c", LOG]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}
        )
        logs.add(done.stdout)
    assert len(logs) == 1
    assert logs == {"".join(log_lines(run("mast", 3)[1])) + "\n"}
