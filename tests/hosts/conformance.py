"""What every host behind the protocol has to do, whatever it is: one suite, run over each of them.

A ``World`` drives a host from the other side: work comes, is admitted, ends, is lost. The loop is the real one, in
steps, over a store in memory. Nothing here waits for a clock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
from mast_opt.live.hosts.protocol import Can, Host
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.commands import Resize, Start, Stop
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.loop.policy import Policy
from mast_opt.live.loop.speeds import Speeds
from mast_opt.live.policies.mast import Mast
from mast_opt.live.policies.presets import ServiceParams, preset_policy
from mast_opt.live.service.live import Live, LiveParams
from mast_opt.live.service.restart import opening_of
from mast_opt.live.service.turn_requests import Request
from mast_opt.live.store.errors import StoreError
from mast_opt.live.store.recovery import recovered
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.live.store.sqlite import open_sqlite
from mast_opt.problems.job_placement.live_fleet.types import Server

ELASTIC = JobSpec(tier=2, mgpu=1000, tasks=8, min_tasks=1, preemptible=True)


def resizing() -> Policy:
    """A policy that shrinks elastic jobs before it stops any."""
    return preset_policy("singularity", ServiceParams(round_s=1, reset_s=0), Speeds({}))


class World(ABC):
    """A host, and what is on its other side."""

    adopts: bool = True
    """Whether work goes on without us, and is taken over."""
    grace_ms: int = 0
    """Grace of limits, unless the host's parameter states it."""
    limit_grace_s: float | None = None
    """Parameter of the host."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.live: Live

    @abstractmethod
    def host(self, spec_of: Callable[[str], JobSpec]) -> Host:
        """A new host object over the same reality, as after a restart of ours."""

    @abstractmethod
    def servers(self) -> tuple[Server, ...]:
        """Two servers of 8 GPUs in two regions, with which a log begins."""

    @abstractmethod
    def submit(self, name: str, gpus: int, limit_s: int | None = None) -> None:
        """Work comes in; with a time limit, if it has one."""

    @abstractmethod
    def turn(self) -> None:
        """Let the host's side do what it has been asked to, and see it."""

    @abstractmethod
    def end(self, name: str) -> None:
        """Running work ends by itself."""

    @abstractmethod
    def reach_limit(self, name: str) -> None:
        """The limit of running work and its grace are over."""

    @abstractmethod
    def leave_limits(self) -> bool:
        """The host's side ends nothing at a limit from now on. Returns False if it always ends jobs there."""

    @abstractmethod
    def lose(self, name: str) -> None:
        """Running work is stopped by somebody else."""

    @abstractmethod
    def resize(self, server: int, gpus: int) -> None:
        """A server has another number of GPUs."""

    @abstractmethod
    def restart(self) -> None:
        """The host's side goes away and comes back."""

    @abstractmethod
    def truly_running(self) -> dict[str, str]:
        """Work that runs → its region."""

    @abstractmethod
    def most_starts(self) -> int:
        """How often one attempt has been started at most."""

    def tasks_of(self, name: str) -> int:
        """Tasks of work that runs, which the world of a host that resizes has to know."""
        pytest.fail(f"{type(self).__name__} does not say how many tasks of {name} run, and its host resizes work")

    # --- the loop ---

    def begin(self, store: SqlStore, policy: Callable[[], Policy] = Mast) -> Live:
        self.live = Live(
            store, opening_of(store, self.servers()), policy, self.host,
            LiveParams(observe_s=0.5, ttl_s=10_000.0, limit_grace_ms=int(1000 * (self.limit_grace_s or 0))),
            clock=lambda: self.now_ms, ticks=lambda: self.now_ms / 1000,
        )  # fmt: skip
        self.live.begin()
        return self.live

    def settle(self, times: int = 6) -> None:
        """Turns of the loop and of the other side, until nothing new can come."""
        for _ in range(times):
            self.now_ms += 300
            self.turn()
            self.live.step()

    def records(self) -> dict[str, JobRecord]:
        """Work that the loop knows, under the names of this world."""
        return {self.plain(name): record for name, record in self.live._engine.state.jobs.items()}

    def plain(self, job: str) -> str:
        """The name in this world of a job of the loop."""
        return job

    def runs(self) -> dict[str, str]:
        """Work that runs as the loop sees it → its region."""
        return {name: one.region for name, one in self.records().items() if one.state is JobState.RUNNING}


class Conformance:
    """Tests; a class for each host adds the fixture ``world``."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> SqlStore:
        return open_sqlite(tmp_path)

    def check(self, world: World, store: SqlStore) -> None:
        """What is observed is the state, and the log is sound and leads to it again."""
        state = world.live._engine.state
        held = {(one.name, one.attempt) for one in state.jobs.values() if one.state is JobState.RUNNING}
        assert set(world.live.host.observe()) == held
        assert world.runs() == world.truly_running()
        assert check_log(store.read()) == ()
        again = recovered(store, opening_of(store)).state
        again.now_ms = state.now_ms
        assert again.digest() == state.digest()
        world.live.close()
        store.close()

    def test_work_comes_runs_and_ends(self, world: World, store: SqlStore) -> None:
        world.begin(store)
        world.submit("a", 8)
        world.submit("b", 8)
        world.submit("c", 8)
        world.settle()
        assert len(world.runs()) == 2
        assert len(set(world.runs().values())) == 2
        world.end(min(world.runs()))
        world.settle()
        assert len(world.runs()) == 2
        for name in sorted(world.runs()):
            world.end(name)
        world.settle()
        assert not world.records()
        self.check(world, store)

    def test_a_start_twice_is_one(self, world: World, store: SqlStore) -> None:
        live = world.begin(store)
        world.submit("a", 8)
        world.settle(1)
        for record in live._engine.state.jobs.values():
            for _ in range(2):
                live.host.carry_out(world.now_ms, Start(record.name, 1, record.shares))
        world.settle()
        (record,) = live._engine.state.jobs.values()
        live.host.carry_out(world.now_ms, Start(record.name, 1, record.shares))
        world.settle()
        assert world.most_starts() == 1
        assert (record.state, record.attempt) == (JobState.RUNNING, 1)
        self.check(world, store)

    def test_a_stop_twice_is_one_and_nobody_is_missed(self, world: World, store: SqlStore) -> None:
        live = world.begin(store)
        for _ in range(2):
            live.host.carry_out(world.now_ms, Stop("never/there.12345678", 3, "x"))
        assert set(live.host.reports(world.now_ms)) >= {ev.Stopped("never/there.12345678", 3, 0, 0)}
        world.submit("a", 8)
        world.settle()
        (record,) = live._engine.state.jobs.values()
        for _ in range(2):
            live.host.carry_out(world.now_ms, Stop(record.name, record.attempt, "somebody else"))
        world.settle()
        (again,) = live._engine.state.jobs.values()
        assert again.state is JobState.RUNNING  # again, or still
        assert again.attempt == 2
        self.check(world, store)

    def test_answers_that_are_lost_are_found_by_looking(self, world: World, store: SqlStore) -> None:
        live = world.begin(store)
        world.submit("a", 8)
        world.settle(1)
        live._reports.clear()
        for _ in range(5):  # nobody hears them
            world.turn()
            live.host.reports(world.now_ms)
        world.settle(12)
        assert list(world.runs()) == ["a"]
        assert world.most_starts() <= 1
        self.check(world, store)

    def test_running_work_is_resized_or_a_policy_that_would_is_refused(self, world: World, store: SqlStore) -> None:
        host = world.host(lambda job: JobSpec())
        if Can.RESIZE not in host.can:
            with pytest.raises(UsageError, match=f"singularity changes .* the host {host.name} cannot; expected"):
                world.begin(store, resizing)
            with pytest.raises(UsageError, match="it got Resize"):
                host.carry_out(0, Resize(1, "a", 1, ()))
            return
        live = world.begin(store, resizing)
        live.submit(Request((ev.Submitted("a", ELASTIC),), lambda verdicts: (201, "")))
        world.settle()
        assert world.tasks_of("a") == 8
        world.submit("b", 8)
        world.submit("c", 4)
        world.settle(12)
        assert set(world.runs()) == {"a", "b", "c"}
        assert world.tasks_of("a") == 4
        world.end("c")
        world.settle(12)
        assert world.tasks_of("a") == 8
        assert world.records()["a"].attempt == 1
        assert store.open_commands() == []
        self.check(world, store)

    def test_work_that_is_lost_runs_again(self, world: World, store: SqlStore) -> None:
        world.begin(store)
        world.submit("a", 8)
        world.settle()
        world.lose("a")
        world.settle(8)
        assert list(world.runs()) == ["a"]
        assert world.records()["a"].attempt == 2
        self.check(world, store)

    def test_work_goes_on_through_a_restart_of_ours(self, world: World, store: SqlStore) -> None:
        world.begin(store)
        for name in "abc":
            world.submit(name, 8)
        world.settle()
        before = world.runs()
        world.live._store.release_lead(world.live.epoch)
        world.begin(store)
        world.settle()
        after = world.runs()
        assert len(after) == 2
        if world.adopts:
            assert after == before
            assert {record.attempt for record in world.records().values()} == {0, 1}
        self.check(world, store)

    def test_a_new_loop_takes_over_what_runs(self, world: World, store: SqlStore, tmp_path: Path) -> None:
        world.begin(store)
        world.submit("a", 8)
        world.settle()
        before = world.runs()
        world.live.close()
        store.close()
        (tmp_path / "new").mkdir()
        empty = open_sqlite(tmp_path / "new")
        world.begin(empty)
        world.settle()
        if world.adopts:
            assert world.runs() == before
            world.submit("b", 8)
            world.settle()
            assert len(set(world.runs().values())) == 2
        self.check(world, empty)

    def test_work_goes_on_through_a_restart_of_the_host(self, world: World, store: SqlStore) -> None:
        world.begin(store)
        for name in "abc":
            world.submit(name, 8)
        world.settle()
        world.restart()
        world.settle(12)
        assert len(world.runs()) == 2
        self.check(world, store)

    def test_capacity_shrinks_under_work(self, world: World, store: SqlStore) -> None:
        world.begin(store)
        world.submit("a", 4)
        world.submit("b", 4)
        world.settle()
        assert len(world.runs()) == 2
        for server in range(2):
            world.resize(server, 4)
        world.settle()
        assert len(world.runs()) == 2
        world.submit("c", 8)
        world.submit("d", 4)
        world.settle()
        assert "c" not in world.runs()
        for name in sorted(world.runs()):
            world.end(name)
        world.settle()
        assert "c" not in world.runs()
        for server in range(2):
            world.resize(server, 8)
        world.settle()
        assert "c" in world.runs()
        self.check(world, store)

    @pytest.mark.parametrize("grace_s", [None, 7.5])
    def test_work_ends_within_the_grace_of_its_limit_and_a_promise_is_kept(
        self, world: World, store: SqlStore, grace_s: float | None
    ) -> None:
        world.limit_grace_s = grace_s
        world.begin(store)
        for name in "abc":
            world.submit(name, 8, limit_s=120)
            world.settle()
        running, waiting = world.runs(), world.records()["c"]
        spec = waiting.spec
        assert (spec.limit_ms, spec.limit_grace_ms) == (120_000, world.grace_ms if grace_s is None else 7_500)
        assert set(running) == {"a", "b"}
        assert waiting.promise is not None
        by_ms = waiting.promise.by_ms
        assert by_ms == min(world.records()[name].since_ms for name in "ab") + (spec.longest_ms or 0)
        assert world.live.starts.of_jobs([waiting], world.live._engine.state)[0]["limits_enforced"]
        leads = [one.event for one in store.read() if isinstance(one.event, ev.LeadTaken)]
        assert [one.unenforced for one in leads] == [""]
        world.now_ms = by_ms - 2_400
        for name in "ab":
            world.reach_limit(name)
        world.settle(8)
        assert "c" in world.runs()
        assert "a" not in world.records()
        failed = {world.plain(one.event.job) for one in store.read() if isinstance(one.event, ev.Failed)}
        assert "a" in failed
        self.check(world, store)

    def test_a_host_that_ends_nothing_at_a_limit_says_so(self, world: World, store: SqlStore) -> None:
        leaves = world.leave_limits()
        world.begin(store)
        for name in "abc":
            world.submit(name, 8, limit_s=120)
            world.settle()
        assert bool(world.live.host.unenforced()) == leaves
        if not leaves:
            return
        waiting = world.records()["c"]
        assert (waiting.spec.limit_ms, waiting.spec.limit_grace_ms) == (120_000, None)
        assert waiting.promise is not None
        assert waiting.promise.by_ms is not None
        assert world.live.starts.of_jobs([waiting], world.live._engine.state)[0]["limits_enforced"] is False
        assert world.live.host.unenforced()
        world.begin(store)
        *_, last = [one.event for one in store.read() if isinstance(one.event, ev.LeadTaken)]
        assert last.unenforced == world.live.host.unenforced()
        world.now_ms = waiting.promise.by_ms + 1_000
        world.settle()
        assert "c" not in world.runs()
        assert "overrun" in {one.event.why for one in store.read() if isinstance(one.event, ev.PromiseEnded)}
        self.check(world, store)

    @pytest.mark.parametrize("seed", range(3))
    def test_1000_random_operations_end_with_what_is_observed(self, world: World, store: SqlStore, seed: int) -> None:
        rng = np.random.default_rng(seed)
        world.begin(store)
        count = 0
        for _ in range(1000):
            running = sorted(world.truly_running())
            kind = rng.integers(0, 12)
            if kind < 4 and len(world.records()) < 8:
                count += 1
                world.submit(f"w{count}", int(rng.integers(1, 9)))
            elif kind < 6 and running:
                world.end(str(rng.choice(running)))
            elif kind == 6 and running:
                world.lose(str(rng.choice(running)))
            elif kind == 7:
                world.resize(int(rng.integers(2)), int(rng.integers(4, 12)))
            elif kind == 8 and rng.random() < 0.1:
                world.restart()
            elif kind == 9 and rng.random() < 0.1:
                with suppress(StoreError):
                    world.live._store.release_lead(world.live.epoch)
                world.begin(store)
            else:
                world.settle(1)
        for server in range(2):
            world.resize(server, 12)
        for _ in range(200):
            world.settle(8)
            if all(one.state is JobState.RUNNING for one in world.records().values()):
                break
            for name in sorted(world.truly_running())[:1]:
                world.end(name)
        world.settle(8)
        assert all(one.state is JobState.RUNNING for one in world.records().values())
        self.check(world, store)
