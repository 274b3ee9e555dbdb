"""Instances of slow paths: what they say of demand, data, network and servers, and what becomes of a plan."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.demand import DemandClass
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.slow_path import Planned
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.loop.state import State
from mast_opt.live.simulation.slow_runs import Foresight
from mast_opt.live.simulation.traces.trace import read_trace
from mast_opt.live.slow_paths.data_instance import data_instance, planned_work
from mast_opt.live.slow_paths.data_path import DataPath, DataPathParams
from mast_opt.live.slow_paths.forecasts import Forecast, WithErrors, weighted_mean
from mast_opt.live.slow_paths.network_limits import NetworkLimits
from mast_opt.live.slow_paths.servers_path import ServersPath, server_instance
from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.job_placement.live_fleet.types import Part, Server, Share
from mast_opt.problems.server_assignment.plan import Plan as ServerPlan
from tests.simulation.data_trace import COMMITTED

DAY_MS = 86_400_000
SERVERS = tuple(
    Server(f"{region}{n}", region, f"{region}-{n % 2}", "r", "h100", 8, 0, 0) for region in ("a", "b") for n in range(4)
)
BOARDS = {server.name: f"{server.region}-msb{int(server.name[1]) // 2}" for server in SERVERS}
DATA = (
    *(ev.StorageSet(region, 100) for region in ("a", "b")),
    *(ev.DatasetCreated(name, 10, ("a",), "ads") for name in ("d", "e")),
    ev.DatasetCreated("f", 10, ("b",)),
)
NETWORK = NetworkLimits({"a": 20, "b": 5})


def job(name: str, *datasets: str, mgpu: int = 8000, tasks: int = 1, **rest: object) -> ev.Submitted:
    return ev.Submitted(name, JobSpec(mgpu=mgpu, tasks=tasks, datasets=datasets, **rest))  # type: ignore[arg-type]


def snapshot_after(*events: ev.Event, at_ms: int = DAY_MS) -> Snapshot:
    state = State(SERVERS)
    for event in (*state.opening(), *DATA, *events):
        state.apply(state.seq + 1, 0, event)
    state.now_ms = at_ms
    return Snapshot(state, ())


class TestWork:
    def test_namespaces_recurring_work_and_jobs_without_a_namespace(self) -> None:
        snapshot = snapshot_after(
            job("1", "d", namespace="ads"),
            job("2", "e", namespace="ads", workload="once"),
            job("3", "d", namespace="ads", workload="nightly"),
            job("4", "d", namespace="ads", workload="nightly"),
            job("5", "f"),
            job("6", "d", namespace="ads", tier=1),
        )
        found = [
            (one.label.split(" (")[0], one.tier, one.mgpu, one.datasets, one.splittable)
            for one in planned_work(snapshot)
        ]
        assert found == [
            ("ads of tier 0", 0, 16_000, ("d", "e"), True),
            ("nightly of tier 0", 0, 16_000, ("d",), True),
            ("jobs of tier 0", 0, 8000, ("f",), True),
            ("ads of tier 1", 1, 8000, ("d",), True),
        ]

    def test_labels_stay_the_same_when_other_work_comes_first(self) -> None:
        wish = job("9", "d", "f"), ev.Refused("9", "no data", "data")
        labels = {one.label for one in planned_work(snapshot_after(job("1", "d", namespace="ads"), *wish))}
        after = (job("0", "e"), job("00", "d", "f", tier=1), job("1", "d", namespace="ads"), *wish)
        found = [one.label for one in planned_work(snapshot_after(*after))]
        assert labels < set(found)
        assert len(found) == len(set(found))

    def test_jobs_that_no_region_has_all_data_for_take_more_of_the_forecast_the_longer_they_wait(self) -> None:
        snapshot = snapshot_after(job("1", "d", "f"), ev.Refused("1", "no data", "data"), at_ms=3 * DAY_MS)
        rest, wish = planned_work(snapshot)
        assert wish.label.startswith("wish ")
        assert (rest.mgpu, wish.mgpu, wish.datasets, wish.splittable) == (2000, 6000, ("d", "f"), False)
        early = snapshot_after(job("1", "d", "f"), at_ms=DAY_MS // 2)
        assert [one.mgpu for one in planned_work(early)] == [4000, 4000]

    @pytest.mark.parametrize("forecast_mgpu", [0, 2000, 40_000])
    def test_gpus_of_jobs_that_wait_for_data_count_once(self, forecast_mgpu: int) -> None:
        jobs = [job(f"{n}", "df"[n % 2], "e", namespace="ads", mgpu=8000 * (1 + n % 2)) for n in range(6)]
        other = job("6", "d", namespace="search")
        snapshot = snapshot_after(*jobs, other, at_ms=5 * DAY_MS)
        work = planned_work(snapshot, lambda snapshot, of: forecast_mgpu)
        assert sum(one.mgpu for one in work) - forecast_mgpu == pytest.approx(max(16_000, forecast_mgpu), abs=6)
        assert {one.datasets for one in work if not one.splittable} == {("e", "f")}, "d and e are together in a"
        assert all(one.mgpu for one in work), "or nothing would bring their data together"

    def test_a_job_of_several_parts_asks_for_all_of_them(self) -> None:
        parts = (
            Part("t", 2, 4000, gpu_types={"h100": 4000}),
            Part("r", 3, 0, 1000),
            Part("u", 1, 500, 0, 0, {"v": 500}),
        )
        spec = JobSpec(parts=parts, datasets=("d",), within="region")
        work = planned_work(snapshot_after(ev.Submitted("1", spec)))
        assert [(one.mgpu, one.gpu_types, one.largest_mgpu) for one in work] == [(8500, ("h100", "v"), 8500)]


class TestData:
    def test_an_instance(self) -> None:
        snapshot = snapshot_after(job("1", "d"), ev.CopyAsked("e", "a", "b", 10), ev.CopyProgress("e", "b", 2))
        problem = data_instance(snapshot, NETWORK, copy_days=4, copies_min=1)
        assert problem is not None
        assert problem.regions.supply_mgpu.tolist() == [[32_000], [32_000]]
        assert problem.regions.storage_mb.tolist() == [100, 100]
        assert problem.regions.ingress_mb_per_day.tolist() == [20, 3]  # 8 MB are still to come in 4 days
        assert problem.datasets.labels == ("d", "e", "f")
        assert problem.datasets.stored.tolist() == [[True, False], [True, True], [False, True]]
        assert problem.datasets.pinned.tolist() == [[False, False], [False, True], [False, False]]
        assert (problem.days, problem.remote_reads, problem.may_refuse) == (Fraction(4), False, True)

    def test_any_worst_ratio_counts(self) -> None:
        snapshot = snapshot_after(job("1", "d"), job("2", "e", tier=1))
        problem = data_instance(snapshot, NETWORK, copy_days=4, copies_min=1)
        assert problem is not None
        assert problem.tiers == (0, 1)
        assert problem.peak_level.tolist() == [0, 0], "else nothing spreads work that all fits today's places"

    def test_second_replicas_as_far_as_storage_and_network_have_room(self) -> None:
        jobs = (job("1", "d"), job("2", "e"), job("3", "f"))
        wide = data_instance(snapshot_after(*jobs), NetworkLimits(), copy_days=4, copies_min=2)
        assert wide is not None
        assert wide.datasets.copies_min.tolist() == [2, 2, 2]
        narrow = data_instance(snapshot_after(*jobs), NETWORK, copy_days=1, copies_min=2)  # half of 25 MB
        assert narrow is not None
        assert narrow.datasets.copies_min.tolist() == [2, 1, 1]

    def test_residency(self) -> None:
        created = ev.DatasetCreated("g", 10, ("a",), "", ("b",))
        snapshot = snapshot_after(created, job("1", "d"), job("2", "g"), ev.CopyAsked("g", "a", "b", 10))
        problem = data_instance(snapshot, NetworkLimits(), copy_days=4, copies_min=2)
        assert problem is not None
        assert problem.datasets.labels == ("d", "e", "f", "g")
        assert problem.datasets.residency.tolist() == [[False, False]] * 3 + [[False, True]]
        assert problem.datasets.stored[3].tolist() == [True, True], "the replica outside is what copies come from"
        assert problem.datasets.pinned[3].tolist() == [False, True]
        assert problem.datasets.copies_min.tolist() == [2, 1, 1, 1], "g may be in one region only"

    def test_data_that_no_region_with_servers_may_hold_is_not_planned(self) -> None:
        created = ev.DatasetCreated("g", 30, ("a",), "", ("without-servers",))
        jobs = job("1", "d", "g", namespace="ads"), job("2", "d", namespace="ads"), job("3", "g")
        problem = data_instance(snapshot_after(created, *jobs), NETWORK, copy_days=4, copies_min=2)
        assert problem is not None
        assert problem.datasets.labels == ("d", "e", "f")
        assert problem.regions.storage_mb.tolist() == [70, 100], "g stays where it is"
        assert [label.split(" (")[0] for label in problem.workloads.labels] == ["ads of tier 0"]
        assert problem.options.mgpu.tolist() == [16_000], "a job that no copy helps has no wish"
        assert problem.reads.dataset.tolist() == [0]

    def test_a_namespace_reads_what_may_be_together(self) -> None:
        created = [ev.DatasetCreated(name, 10, (region,), "", (region,)) for name, region in (("g", "a"), ("h", "b"))]
        jobs = job("1", "d", "g", namespace="ads"), job("2", "h", namespace="ads"), job("3", "g", "h", workload="w")
        work = planned_work(snapshot_after(*created, *jobs, job("4", "g", "h", workload="w")))
        assert [(one.label.split(" (")[0], one.datasets) for one in work] == [("ads of tier 0", ("d", "g"))]

    def test_links(self) -> None:
        network = NetworkLimits(links={("a", "b"): 6})
        problem = data_instance(
            snapshot_after(job("1", "d"), ev.CopyAsked("e", "a", "b", 10)), network, copy_days=5, copies_min=1
        )
        assert problem is not None
        assert problem.links is not None
        assert problem.links.capacity_mb_per_day.tolist() == [4]

    def test_a_job_that_only_one_region_can_hold(self) -> None:
        snapshot = snapshot_after(job("1", "d", tasks=4), ev.ServerDown("b0"))
        problem = data_instance(snapshot, NETWORK, copy_days=4, copies_min=1)
        assert problem is not None
        assert problem.workloads.forbidden.tolist() == [[False, True]]

    def test_nothing_to_plan(self) -> None:
        assert DataPath(NETWORK).ask(snapshot_after()) is None

    def test_one_replica_where_no_plan_was_found(self) -> None:
        failed = (ev.SolveAsked("data", "x"), ev.SolveEnded("data", "x", "INFEASIBLE"))
        question = DataPath(NetworkLimits()).ask(snapshot_after(job("1", "d"), *failed))
        assert question is not None
        assert question.problem.datasets.copies_min.tolist() == [1, 1, 1]  # type: ignore[attr-defined]

    def test_steps_of_a_plan_of_some_hours_ago(self) -> None:
        path = DataPath(NetworkLimits())
        then = path.ask(snapshot_after(job("1", "d"), job("2", "e")))
        assert then is not None
        none = np.zeros(0, np.int64)
        two = np.zeros(2, np.int64)
        plan = Plan(
            place=np.array([[True, True], [True, True], [True, True]]),
            run_workload=np.arange(2),
            run_region=np.array([0, 1]),
            run_type=two,
            run_share=np.full(2, 1000),
            **{f"copy_{name}": none for name in ("dataset", "source", "target", "share")},
            **{f"remote_{name}": none for name in ("workload", "dataset", "source", "target", "share")},
        )
        now = snapshot_after(job("1", "d"), job("2", "e"), ev.CopyEnded("d", "b"))
        found = path.carry_out(now, Planned(then.problem, plan))
        assert sorted((step.does, step.name, step.source, step.target) for step in found.steps) == [
            ("copy", "e", "a", "b"),
            ("copy", "f", "b", "a"),
        ]
        assert found.dropped == ("copy d b: it is there already",)
        assert found.ratios == {0: 0.25}

    def test_bad_parameters(self) -> None:
        with pytest.raises(UsageError, match="copy_days of the data path is 0"):
            DataPathParams(copy_days=0)


class TestServers:
    PLACED = (job("1"), ev.Placed("1", 1, "a", "a-0", (Share("a0", 1, dict.fromkeys(range(8), 1000)),)))

    def test_an_instance(self) -> None:
        problem = server_instance(snapshot_after(*self.PLACED, ev.MoveAsked("b1", "b-0"), at_ms=0), BOARDS)
        assert problem is not None
        assert problem.reservations.asked_mrru.tolist() == [8000, 0, 0, 0]
        assert problem.servers.labels == tuple(sorted(BOARDS))
        assert problem.servers.in_use.tolist() == [True, *[False] * 4, True, False, False]
        assert problem.servers.owner.tolist() == [0, 1, 0, 1, 2, 2, 2, 3]  # b1 counts where it goes
        assert problem.reservations.value_mrru.tolist() == [[8000, 0], [8000, 0], [0, 8000], [0, 8000]]
        assert problem.datacenters == ("a", "b")

    def test_only_idle_servers_move(self) -> None:
        snapshot = snapshot_after(*self.PLACED, at_ms=0)
        problem = server_instance(snapshot, BOARDS)
        assert problem is not None
        owner = problem.servers.owner.copy()
        owner[[0, 2, 5]] = 1, 1, len(problem.reservations)
        found = ServersPath(BOARDS).carry_out(snapshot, Planned(problem, ServerPlan(owner)))
        assert [(step.name, step.target) for step in found.steps] == [("a2", "a-1")]
        assert found.dropped == ("move a0 a-1: a job runs on it",)

    def test_no_choice(self) -> None:
        state = State([Server("s", "a", "c", "r", "h100", 8, 0, 0)])
        for event in state.opening():
            state.apply(state.seq + 1, 0, event)
        assert server_instance(Snapshot(state, ()), {"s": "m"}) is None


class TestForecasts:
    def test_errors_have_mean_one_and_are_the_same_every_time(self) -> None:
        snapshot = snapshot_after(*(job(str(n), "d", namespace=f"ns{n}") for n in range(400)))
        noisy = WithErrors(weighted_mean, 0.5, seed=3)
        plain = np.array([weighted_mean(snapshot, of) for of in snapshot.demand.classes()])
        found = np.array([noisy(snapshot, of) for of in snapshot.demand.classes()])
        assert (found == [noisy(snapshot, of) for of in snapshot.demand.classes()]).all()
        assert (found / plain).mean() == pytest.approx(1.0, abs=0.1)
        assert np.log(found / plain).std() == pytest.approx(0.5, abs=0.05)
        assert [one.mgpu for one in planned_work(snapshot, noisy)] == sorted_like(snapshot, noisy)

    def test_foresight_is_what_the_trace_asks_for(self) -> None:
        trace = read_trace(COMMITTED)
        jobs, snapshot = trace.submissions, snapshot_after(at_ms=DAY_MS)
        asked = sum(
            Foresight(trace, days=2)(snapshot, of) for of in {DemandClass.of(jobs.spec(j)) for j in range(len(jobs))}
        )
        begin, end = jobs.submitted_ms, jobs.submitted_ms + jobs.duration_ms
        inside = np.clip(np.minimum(end, 3 * DAY_MS) - np.maximum(begin, DAY_MS), 0, None)
        assert asked == pytest.approx((inside * jobs.gang_mgpu).sum() / (2 * DAY_MS), rel=1e-3)

    @pytest.mark.parametrize("sigma", [-0.1, 6.0])
    def test_wrong_errors_are_named(self, sigma: float) -> None:
        with pytest.raises(UsageError, match="expected 0 to 5"):
            WithErrors(weighted_mean, sigma)


def sorted_like(snapshot: Snapshot, forecast: Forecast) -> list[int]:
    """What each namespace is planned with: they are one class each."""
    return [forecast(snapshot, of) for of in snapshot.demand.classes()]
