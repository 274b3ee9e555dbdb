"""The conformance suite over the simulated host, over Kueue and over Slurm (with stand-ins for both)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from mast_opt.core.errors import InputError
from mast_opt.live.hosts.kueue.host import KueueHost
from mast_opt.live.hosts.protocol import Host
from mast_opt.live.hosts.simulated import SimulatedLiveHost
from mast_opt.live.hosts.slurm.host import SlurmHost
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.commands import Command, Resize
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.service.turn_requests import Request
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.problems.job_placement.live_fleet.types import Server
from tests.hosts.conformance import ELASTIC, Conformance, World, resizing
from tests.hosts.kueue.objects import pods, queue, workload
from tests.hosts.kueue.test_dispatcher import Clusters
from tests.hosts.slurm.stand_in import NODES, SlurmStandIn

FOREVER_MS = 10**12
REGIONS = ("east", "west")


class SimulatedWorld(World):
    """Jobs come through requests, and end with the process."""

    adopts = False

    def __init__(self) -> None:
        super().__init__()
        self.starts: Counter[tuple[str, int]] = Counter()
        self.of: SimulatedLiveHost

    def host(self, spec_of: Callable[[str], JobSpec]) -> Host:
        starts = self.starts

        class Counting(SimulatedLiveHost):
            def reports(self, now_ms: int) -> list[ev.Event]:
                found = list(super().reports(now_ms))
                starts.update((one.job, one.attempt) for one in found if isinstance(one, ev.Started))
                return found

        self.of = Counting(spec_of, FOREVER_MS)
        return self.of

    def servers(self) -> tuple[Server, ...]:
        return tuple(Server(name, name, f"{name}-1", f"{name}-r", "H100", 8, 64_000, 512_000) for name in REGIONS)

    def submit(self, name: str, gpus: int, limit_s: int | None = None) -> None:
        limit_ms = None if limit_s is None else 1000 * limit_s
        grace_ms = self.live.limit_grace_ms
        spec = JobSpec(tier=1, mgpu=1000 * gpus, preemptible=True, limit_ms=limit_ms, limit_grace_ms=grace_ms)
        self.live.submit(Request((ev.Submitted(name, spec),), lambda verdicts: (201, "")))

    def turn(self) -> None:
        pass

    def _report(self, event: ev.Event) -> None:
        """Something happens that the host reports."""
        self.of._host._running.pop(event.job)  # type: ignore[attr-defined]
        self.live._reports.append(event)

    def _attempt(self, name: str) -> int:
        return next(attempt for job, attempt in self.of.observe() if job == name)

    def end(self, name: str) -> None:
        self._report(ev.Finished(name, self._attempt(name)))

    def reach_limit(self, name: str) -> None:
        pass  # time goes on

    def leave_limits(self) -> bool:
        return False

    def lose(self, name: str) -> None:
        self._report(ev.Stopped(name, self._attempt(name), 0, 0))

    def resize(self, server: int, gpus: int) -> None:
        self.live._reports.append(ev.CapacitySet(REGIONS[server], gpus, 64_000, 512_000))

    def restart(self) -> None:
        for name in sorted(self.truly_running()):
            self.of._host._running.pop(name)  # and nobody hears of it

    def truly_running(self) -> dict[str, str]:
        running = {job for job, _ in self.of.observe()}
        jobs = self.live._engine.state.jobs
        return {name: jobs[name].region if name in jobs else "" for name in running}

    def most_starts(self) -> int:
        return max(self.starts.values())

    def tasks_of(self, name: str) -> int:
        return sum(share.tasks for share in self.of._host._running[name].shares)


class KueueWorld(World):
    """Workloads come through Kueue, and go on without us."""

    grace_ms = 60_000

    def __init__(self) -> None:
        super().__init__()
        self.clusters = Clusters(dict.fromkeys(REGIONS, 8))
        self.of: KueueHost
        self.kueue_limits = True
        self.ended: list[str] = []

    def host(self, spec_of: Callable[[str], JobSpec]) -> Host:
        self.of = KueueHost(
            self.clusters.manager,
            self.clusters.workers,
            limit_grace_s=self.limit_grace_s,
            ticks=lambda: self.now_ms / 1000,
        )
        return self.of

    def servers(self) -> tuple[Server, ...]:
        return KueueHost(self.clusters.manager, self.clusters.workers).servers()

    def submit(self, name: str, gpus: int, limit_s: int | None = None) -> None:
        by_pod = limit_s is not None and not self.kueue_limits
        pod: dict[str, Any] = {"activeDeadlineSeconds": limit_s} if by_pod else {}
        one = workload(name, pods(gpus, **pod), uid=f"uid of {name}")
        if limit_s is not None and self.kueue_limits:
            one["spec"]["maximumExecutionTimeSeconds"] = limit_s
        self.clusters.submit(one)

    def turn(self) -> None:
        for name in self.ended[:-4]:  # as Kueue does after a while
            self.clusters.manager.remove(name)
        del self.ended[:-4]
        self.of.step()
        self.clusters.kueue.turn()
        for one in self.clusters.manager.list("Workload"):  # what was evicted gets its quota back
            kinds = {part["type"] for part in one["status"].get("conditions", []) if part["status"] == "True"}
            if "QuotaReserved" not in kinds:
                self.clusters.kueue.reserve(one["metadata"]["name"], "mk")
        self.of.step()

    def end(self, name: str) -> None:
        self.clusters.kueue.finish(name)
        self.ended.append(name)

    def reach_limit(self, name: str) -> None:
        """Kueue evicts the workload, and does not admit it again."""
        one = self.clusters.manager.get(name)
        self.clusters.manager.create({**one, "spec": {**one["spec"], "active": False}})
        self.clusters.kueue.evict(name)
        self.ended.append(name)

    def leave_limits(self) -> bool:
        self.kueue_limits = False
        return True

    def lose(self, name: str) -> None:
        self.clusters.kueue.evict(name)

    def resize(self, server: int, gpus: int) -> None:
        self.clusters.workers[REGIONS[server]].create(queue(gpus=gpus))

    def restart(self) -> None:
        for api in self.clusters.workers.values():
            api.down = "connection refused"
        self.of.step()
        self.live.step()
        for api in self.clusters.workers.values():
            api.down = ""

    def truly_running(self) -> dict[str, str]:
        found = {}
        for one in self.clusters.manager.list("Workload"):
            kinds = {part["type"] for part in one["status"].get("conditions", [])}
            if one["status"].get("clusterName") and "Finished" not in kinds:
                found[one["metadata"]["name"]] = one["status"]["clusterName"]
        return found

    def most_starts(self) -> int:
        return max(Counter(name for name, reason, _ in self.clusters.manager.events if reason == "Nominated").values())

    def plain(self, job: str) -> str:
        return job.partition("/")[2].rpartition(".")[0]


class SlurmWorld(World):
    """Jobs come held, and go on without us. Both nodes are of one region, so their names stand for it."""

    grace_ms = 61_000

    def __init__(self) -> None:
        super().__init__()
        self.slurm = SlurmStandIn()
        self.numbers: dict[str, int] = {}
        self.of: SlurmHost

    def host(self, spec_of: Callable[[str], JobSpec]) -> Host:
        self.of = SlurmHost(self.slurm, limit_grace_s=self.limit_grace_s)
        return self.of

    def servers(self) -> tuple[Server, ...]:
        return SlurmHost(self.slurm).servers()

    def submit(self, name: str, gpus: int, limit_s: int | None = None) -> None:
        self.numbers[name] = len(self.numbers) + 1
        limit: dict[str, Any] = {} if limit_s is None else {"time_limit": limit_s // 60}
        self.slurm.submit(self.numbers[name], gpus, **limit)

    def turn(self) -> None:
        self.of.step()
        self.slurm.schedule()
        self.of.step()

    def end(self, name: str) -> None:
        self.slurm.jobs[self.numbers[name]]["job_state"] = "COMPLETED"

    def reach_limit(self, name: str) -> None:
        self.slurm.jobs[self.numbers[name]]["job_state"] = "TIMEOUT"

    def leave_limits(self) -> bool:
        self.slurm.config += "OverTimeLimit = UNLIMITED\n"
        return True

    def lose(self, name: str) -> None:
        self.slurm.requeue(self.numbers[name])

    def resize(self, server: int, gpus: int) -> None:
        self.slurm.gpus[NODES[server]] = gpus

    def restart(self) -> None:
        self.slurm.down = "slurmctld cannot be reached"
        with pytest.raises(InputError):
            self.of.step()
        self.live.step()
        self.slurm.down = ""

    def truly_running(self) -> dict[str, str]:
        jobs = self.slurm.jobs
        numbers = self.numbers.items()
        return {name: jobs[one]["nodes"] for name, one in numbers if jobs[one]["job_state"] == "RUNNING"}

    def runs(self) -> dict[str, str]:
        running = {name: one for name, one in self.records().items() if one.state is JobState.RUNNING}
        return {name: one.shares[0].server for name, one in running.items()}

    def most_starts(self) -> int:
        return max(self.slurm.released.values())

    def plain(self, job: str) -> str:
        return next((name for name, number in self.numbers.items() if str(number) == job), job)


class TestSimulated(Conformance):
    @pytest.fixture
    def world(self) -> World:
        return SimulatedWorld()

    def test_a_resize_that_the_host_did_not_take_is_given_again(
        self, world: World, store: SqlStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert isinstance(world, SimulatedWorld)
        live, lost = world.begin(store, resizing), list[Command]()
        carry_out = world.of.carry_out

        def loses_the_first(now_ms: int, command: Command) -> None:
            if isinstance(command, Resize) and not lost:
                lost.append(command)
                raise OSError("out of reach")
            carry_out(now_ms, command)

        monkeypatch.setattr(world.of, "carry_out", loses_the_first)
        live.submit(Request((ev.Submitted("a", ELASTIC),), lambda verdicts: (201, "")))
        world.settle()
        world.submit("b", 8)
        world.submit("c", 4)
        world.settle(12)
        assert lost
        assert world.tasks_of("a") == 4
        assert store.open_commands() == []
        self.check(world, store)


class TestKueue(Conformance):
    @pytest.fixture
    def world(self) -> World:
        return KueueWorld()


class TestSlurm(Conformance):
    @pytest.fixture
    def world(self) -> World:
        return SlurmWorld()
