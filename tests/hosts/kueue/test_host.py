"""Kueue behind the protocol of hosts: what only Kueue has. The rest is in the conformance suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mast_opt.core.errors import UsageError
from mast_opt.live.hosts.kueue.host import KueueHost
from mast_opt.live.hosts.kueue.job_tracker import JobTracker
from mast_opt.live.hosts.kueue.jobs import job_name, shares_at, spec_of, tier_of
from mast_opt.live.hosts.kueue.manager_snapshot import CHECK
from mast_opt.live.hosts.kueue.nomination import PRIORITIES, DispatchParams
from mast_opt.live.hosts.kueue.reading import workload as read
from mast_opt.live.hosts.protocol import Host
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.commands import Drop, Start
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.live.store.sqlite import open_sqlite
from tests.hosts.kueue.api_servers import until
from tests.hosts.kueue.objects import condition, pods, queue, running, workload
from tests.hosts.kueue.test_dispatcher import Clusters, check, connected
from tests.hosts.test_conformance import KueueWorld
from tests.narrowing import some


class Run(KueueWorld):
    def __init__(self, clusters: Clusters, **more: object) -> None:
        super().__init__()
        self.clusters, self.more = clusters, more

    def host(self, spec_of: Callable[[str], JobSpec]) -> Host:
        self.of = KueueHost(
            self.clusters.manager,
            self.clusters.workers,
            ticks=lambda: self.now_ms / 1000,
            **self.more,  # type: ignore[arg-type]
        )
        return self.of

    def nominated(self, name: str) -> list[str]:
        found = self.clusters.status(name).get("nominatedClusterNames", [])
        assert isinstance(found, list)
        return found


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    made = open_sqlite(tmp_path)
    yield made
    assert check_log(made.read()) == ()
    made.close()


def submit(run: Run, name: str, *sets: dict[str, object], checks: tuple[str, ...] = ("mk",), **more: int) -> None:
    run.clusters.submit(workload(name, *sets, uid=name, **more), *checks)  # type: ignore[arg-type]


def test_work_of_a_worker_itself_is_taken_over_and_counts(store: SqlStore) -> None:
    run = Run(Clusters({"east": 8, "west": 8}))
    run.clusters.workers["east"].create(running("own"))
    run.begin(store)
    submit(run, "w")
    run.settle()
    states = {name: record.state for name, record in run.live._engine.state.jobs.items()}
    (foreign,) = (name for name in states if name.startswith("east:default/own."))
    assert states[foreign] is JobState.RUNNING
    assert run.clusters.status("w")["clusterName"] == "west"
    run.clusters.workers["east"].remove("own")
    run.settle()
    assert foreign not in run.live._engine.state.jobs
    assert run.live._engine.state.inventory.used_mgpu == {"east": 0, "west": 8000}


def test_shadow_mode_decides_and_writes_nothing(store: SqlStore) -> None:
    run = Run(Clusters({"east": 8}, check(), check("own", CHECK)), shadow=True)
    run.begin(store)
    submit(run, "w", checks=("mk", "own"))
    version = run.clusters.manager.version
    run.settle()
    (record,) = run.live._engine.state.jobs.values()
    assert (record.state, record.region) == (JobState.STARTING, "east")
    assert (run.clusters.manager.version, run.clusters.manager.events) == (version, [])


def test_our_own_check_passes_when_there_is_a_place(store: SqlStore) -> None:
    run = Run(Clusters({"east": 8}, check(), check("own", CHECK)))
    run.clusters.workers["east"].create(running("busy"))
    run.begin(store)
    submit(run, "w", checks=("mk", "own"))
    run.settle(2)
    assert {one["state"] for one in run.clusters.status("w")["admissionChecks"]} == {"Pending"}
    run.clusters.workers["east"].remove("busy")
    run.settle()
    assert run.clusters.status("w")["clusterName"] == "east"
    assert run.clusters.manager.get("own", "AdmissionCheck")["status"]["conditions"][0]["type"] == "Active"


def test_after_a_round_the_next_cluster_is_nominated_and_may_win(store: SqlStore) -> None:
    run = Run(Clusters({"a": 8, "b": 16, "c": 24}), params=DispatchParams(round_s=60, most=2))
    run.begin(store)
    submit(run, "w")
    seen = []
    for _ in range(4):
        run.of.step()
        run.live.step()
        run.of.act()
        seen.append(run.nominated("w"))
        run.now_ms += 60_000
    assert [len(names) for names in seen] == [1, 2, 2, 2]
    assert seen[0][0] == seen[1][0]
    first, second = seen[-1]
    run.clusters.workers[first].create(running("faster", pods(8, 3)))  # nothing is left where the loop placed it
    run.settle()
    (record,) = (one for one in run.live._engine.state.jobs.values() if one.name.startswith("default/w."))
    assert run.clusters.status("w")["clusterName"] == record.region == second
    assert (record.state, record.attempt) == (JobState.RUNNING, 2)


def test_a_cluster_that_is_lost_is_replaced_at_once(store: SqlStore) -> None:
    run = Run(Clusters({"a": 8, "b": 8}))
    run.begin(store)
    submit(run, "w")
    run.of.step()
    run.live.step()
    run.of.act()
    (first,) = run.nominated("w")
    run.clusters.workers[first].down = "no route to host"
    for _ in range(4):
        run.now_ms += 300
        run.of.step()
        run.live.step()
    assert run.nominated("w") == [{"a": "b", "b": "a"}[first]]
    downs = [stored.event for stored in store.read() if isinstance(stored.event, ev.ServerDown)]
    assert [one.why for one in downs] == ["no route to host"]


def preempting(run: Run) -> None:
    policy = {"withinClusterQueue": "LowerPriority"}
    for api in run.clusters.workers.values():
        api.create(queue(gpus=8, preemption=policy))


@pytest.mark.parametrize("as_expected", [True, False])
def test_the_worker_chooses_who_stops(store: SqlStore, as_expected: bool) -> None:
    """The loop expects one of two; the worker may stop the other one, and the loop learns that."""
    run = Run(Clusters({"east": 8}))
    preempting(run)
    run.begin(store)
    for name in ("one", "other"):
        submit(run, name, pods(4), priority=1)
    run.settle()
    submit(run, "high", pods(4), priority=1000)
    run.now_ms += 300
    for _ in range(2):
        run.of.step()
        run.live.step()
    run.of.act()
    assert run.nominated("high") == ["east"]  # while the other one still runs
    (expected,) = (name for name, one in run.records().items() if one.state is JobState.STOPPING)
    (unexpected,) = {"one", "other"} - {expected}
    chosen, stays = (expected, unexpected) if as_expected else (unexpected, expected)
    run.clusters.kueue.evict(chosen)
    run.clusters.kueue.turn()
    for _ in range(4):
        run.now_ms += 300
        run.of.step()
        run.live.step()
    states = {name: one.state for name, one in run.records().items()}
    assert states[stays] is states["high"] is JobState.RUNNING
    assert states[chosen] in (JobState.QUEUED, JobState.SUBMITTED)


def lending() -> Clusters:
    """A cluster whose queue of 8 GPUs has lent 6 of them, and takes them back from whoever has them."""
    clusters = Clusters({"east": 8})
    api = clusters.workers["east"]
    api.create(queue(gpus=8, cohortName="all", preemption={"reclaimWithinCohort": "Any"}))
    api.create(queue("other", 0, cohortName="all"))
    api.create(running("borrows", pods(6), priority=1000, of="other"))
    return clusters


def loans(run: Run) -> dict[str, tuple[JobState, int]]:
    """Quota that is lent, by the job that stands for it: its state and GPUs."""
    found = run.live._engine.state.jobs
    return {name: (one.state, one.spec.tasks) for name, one in found.items() if name.startswith("east:east/cq/h100.")}


def test_lent_quota_is_work_of_the_least_tier(store: SqlStore) -> None:
    run = Run(lending())
    run.begin(store)
    run.settle(2)
    (lent,) = loans(run)
    assert loans(run) == {lent: (JobState.RUNNING, 6)}
    submit(run, "w", pods(4))
    for _ in range(2):
        run.of.step()
        run.live.step()
    run.of.act()
    assert loans(run) == {lent: (JobState.STOPPING, 6)}
    assert run.clusters.manager.events[-1][2] == "nominated for east; quota is taken back from default/borrows"
    run.clusters.workers["east"].remove("borrows")
    run.settle()
    assert loans(run) == {}
    assert run.records()["w"].state is JobState.RUNNING


def test_lent_quota_stays_lent_if_nobody_needs_it_after_all(store: SqlStore) -> None:
    run = Run(lending())
    run.begin(store)
    submit(run, "w", pods(4))
    for _ in range(2):
        run.of.step()
        run.live.step()
    run.clusters.manager.remove("w")
    run.now_ms += 300
    run.settle(2)
    (lent,) = loans(run)
    assert loans(run) == {lent: (JobState.RUNNING, 6)}
    run.begin(store)  # as after a restart
    run.settle(2)
    assert loans(run) == {lent: (JobState.RUNNING, 6)}
    run.restart()  # the cluster is away for a while
    run.settle(2)
    assert [*loans(run).values()] == [(JobState.RUNNING, 6)]
    run.clusters.workers["east"].create(queue("other", 2, cohortName="all"))
    run.settle(2)
    assert [*loans(run).values()] == [(JobState.RUNNING, 4)]


def test_what_is_withdrawn_is_no_longer_nominated(store: SqlStore) -> None:
    run = Run(Clusters({"east": 8}))
    run.begin(store)
    submit(run, "w")
    run.of.step()
    run.live.step()
    run.of.act()
    assert run.nominated("w") == ["east"]
    run.clusters.manager.create(connected("east", "False"))
    for _ in range(2):
        run.of.step()
        run.live.step()
    run.of.step()
    assert run.nominated("w") == []
    (record,) = run.records().values()
    assert record.waits


def test_a_workload_that_changes_while_it_waits_is_another_job(store: SqlStore) -> None:
    run = Run(Clusters({"east": 8}))
    run.clusters.workers["east"].create(running("busy"))
    run.begin(store)
    submit(run, "w", priority=1)
    run.settle(2)
    run.clusters.manager.get("w")["spec"]["priority"] = 1000
    run.settle(2)
    (record,) = (one for name, one in run.records().items() if name == "w")
    assert record.spec.tier == tier_of(1000, PRIORITIES) < tier_of(1, PRIORITIES)
    cancelled = [stored.event.job for stored in store.read() if isinstance(stored.event, ev.Cancelled)]
    assert len(cancelled) == 1
    assert cancelled[0] != record.name


def test_work_that_goes_or_fails_leaves_the_loop(store: SqlStore) -> None:
    run = Run(Clusters({"east": 32}))
    run.begin(store)
    for name in ("deleted", "failed", "inactive", "waits"):
        submit(run, name, pods(8 if name != "waits" else 64))
    run.settle()
    run.clusters.manager.remove("deleted")
    run.clusters.kueue.finish("failed", "Failed")
    run.clusters.manager.get("inactive")["spec"]["active"] = False
    for name in ("deleted", "inactive"):  # Kueue deletes the copies
        run.clusters.workers["east"].remove(name)
    run.clusters.manager.remove("waits")
    run.settle()
    assert run.records() == {}
    ends = {run.plain(one.event.job): one.event for one in store.read() if isinstance(one.event, ev.Failed)}
    assert {name: one.why for name, one in ends.items()} == {
        "deleted": "its workload is no longer there, or not active",
        "failed": "its job has failed",
        "inactive": "its workload is no longer there, or not active",
    }


def test_data_decides_where_work_may_run(store: SqlStore) -> None:
    run = Run(Clusters({"east": 64, "west": 8}), replicas={"logs": {"west"}})
    run.begin(store)
    run.clusters.submit(workload("w", uid="w", datasets="logs"))
    run.clusters.submit(workload("lost", uid="lost", datasets="nowhere"))
    run.settle()
    assert run.clusters.status("w")["clusterName"] == "west"
    assert run.records()["lost"].held == "no region holds all of its data"


def test_jobs_of_others_fail() -> None:
    tracker = JobTracker()
    tracker.start(Start("mine", 1, ()))
    host = KueueHost(Clusters({"east": 8}).manager, {})
    assert host.reports(0) == []
    assert tracker._answers == [ev.Failed("mine", 1, "the host has no such job")]
    with pytest.raises(UsageError, match="makes room"):
        host.carry_out(0, Drop(1, "logs", "east"))


def test_a_manager_that_is_away_is_said_once_and_waited_for() -> None:
    clusters = Clusters({"east": 8})
    said: list[str] = []
    host = KueueHost(clusters.manager, clusters.workers, every_s=0.01, on_problem=said.append)
    host.resume(())
    clusters.manager.down = "connection refused"
    host.begin()
    until(lambda: bool(said))
    clusters.manager.down = ""
    until(lambda: len(said) == 2)
    host.close()
    assert said == ["connection refused", ""]
    assert clusters.manager.closed
    assert clusters.workers["east"].closed


def test_without_a_worker_there_is_no_beginning() -> None:
    clusters = Clusters({"east": 8})
    clusters.workers["east"].down = "connection refused"
    with pytest.raises(UsageError, match="east: connection refused"):
        KueueHost(clusters.manager, clusters.workers).servers()


def test_pod_sets_as_one_gang() -> None:
    def asked(*sets: dict[str, object]) -> tuple[int, int, int]:
        spec = spec_of(read(workload("w", *sets)), {"east/cq/h100": True})
        assert spec is not None
        assert spec.gpu_types == {"east/cq/h100": spec.mgpu}
        return spec.tasks, spec.mgpu, spec.cpu_mcores

    assert asked(pods(8, 4)) == (4, 8000, 0)
    assert asked(pods(None, 1, "launcher", cpu="2"), pods(8, 4, cpu="1")) == (4, 8000, 1500)
    assert asked(pods(8, 1, "a"), pods(4, 3, "b")) == (5, 4000, 0)
    assert asked(pods(None, 3, cpu="2")) == (3, 0, 2000)
    assert spec_of(read(workload("w", pods(8, 0))), {"east/cq/h100": True}) is None
    assert spec_of(read(workload("w")), {}) is None


def test_priorities_become_tiers() -> None:
    low, high = (read(workload("w", pods(1, 1), priority=priority)) for priority in (5, 50))
    places = {"east/cq/h100": True}
    tiers = [[some(spec_of(one, places, least)).tier for one in (low, high)] for least in (PRIORITIES, (10,), ())]
    assert tiers == [[6, 5], [1, 0], [0, 0]]


def test_shares_take_the_gpus_with_the_least_on_them() -> None:
    spec = JobSpec(tasks=2, mgpu=1000)
    assert shares_at(spec, "s", 4, {0: 1000, 2: 500})[0].gpus == {1: 1000, 3: 1000}
    assert shares_at(spec, "s", 3, {1: 1000, 2: 1000})[0].gpus == {0: 1000, 1: 1000}, "too much for the server"
    assert shares_at(spec, "s", 1, {})[0].gpus == {0: 2000}
    assert shares_at(spec, "s", 5000, {})[0].gpus == {0: 2000}
    assert shares_at(JobSpec(tasks=3, mgpu=0), "s", 0, {})[0].gpus == {}
    assert shares_at(JobSpec(tasks=2, mgpu=400), "s", 2, {0: 300})[0].gpus == {0: 400, 1: 400}


def test_names_differ_for_objects_and_for_what_they_ask() -> None:
    one, other = (read(workload("w", uid=uid)) for uid in ("1", "2"))
    specs = [spec_of(one, {place: True}) for place in ("a", "b")]
    names = {job_name(one), job_name(other), *(job_name(one, spec) for spec in specs)}
    assert len(names) == 4
    assert all(job_name(one, spec)[:-4] == job_name(one) for spec in specs)
    waiting = read(workload("w", conditions=[condition("QuotaReserved")]))
    assert waiting.reserved_at
