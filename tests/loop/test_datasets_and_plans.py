"""Data, plans, demand and use as folds of events, and what the checker says of logs that break their rules."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.cluster_use import INTERVAL_MS, ClusterUse
from mast_opt.live.loop.demand import DAY_MS, KEPT_DAYS, Demand, DemandClass
from mast_opt.live.loop.engine import Engine
from mast_opt.live.loop.events import CorruptLog
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.loop.plan_steps import misfit
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.live.policies.mast_params import MastParams
from mast_opt.live.store.state_format import state_bytes, state_from
from mast_opt.problems.job_placement.live_fleet.answers import Bid, Refused
from mast_opt.problems.job_placement.live_fleet.inventory import FleetInventory
from mast_opt.problems.job_placement.live_fleet.types import Server, Share

SERVERS = tuple(
    Server(f"{region}-{n}", region, f"{region}-{n}", "r", "h100", 8, 0, 0) for region in "ab" for n in (0, 1)
)
HEAD = (
    ev.StorageSet("a", 10),
    ev.StorageSet("b", 5),
    ev.DatasetCreated("d", 3, ("a",)),
    ev.DatasetCreated("e", 3, ("a",)),
)
READS = {name: JobSpec(mgpu=8000, datasets=(name,)) for name in "de"}
PLAN = (
    ev.SolveAsked("data", "sum"),
    ev.SolveEnded("data", "sum", "FEASIBLE", "plan"),
    ev.PlanAdopted(
        "data",
        "plan",
        (),
        (
            ev.PlanStep("copy", "d", "b", "a", 0, 0),
            ev.PlanStep("drop", "d", "a", "", 1, 1),
            ev.PlanStep("copy", "e", "b", "a", 2, 2),
        ),
    ),
)


def stored(*events: ev.Event) -> list[ev.Stored]:
    opening = State(SERVERS).opening()
    return [ev.Stored(at + 1, 0, event) for at, event in enumerate((*opening, *events))]


def state_after(*events: ev.Event) -> State:
    state = State(SERVERS)
    for one in stored(*events):
        state.apply(one.seq, one.at_ms, one.event)
    return state


def faults(*events: ev.Event) -> list[str]:
    return [violation.words for violation in check_log(stored(*events), replicas={})]


class TestData:
    def test_a_copy_takes_its_room_at_once_and_counts_when_it_has_ended(self) -> None:
        state = state_after(*HEAD, ev.CopyAsked("d", "a", "b", 3))
        assert (state.datasets.stored_mb["b"], sorted(state.datasets.whole_in("d"))) == (3, ["a"])
        assert not state.datasets.has_room("b", 3)
        state = state_after(*HEAD, ev.CopyAsked("d", "a", "b", 3), ev.CopyProgress("d", "b", 2), ev.CopyEnded("d", "b"))
        assert (state.datasets.stored_mb["b"], sorted(state.datasets.whole_in("d"))) == (3, ["a", "b"])

    def test_a_copy_that_is_cut_gives_its_room_back(self) -> None:
        state = state_after(*HEAD, ev.CopyAsked("d", "a", "b", 3), ev.CopyEnded("d", "b", whole=False))
        assert (state.datasets.stored_mb["b"], sorted(state.datasets.whole_in("d"))) == (0, ["a"])

    @pytest.mark.parametrize(
        ("events", "words"),
        [
            ((ev.CopyAsked("d", "b", "a", 3),), "which does not hold it"),
            ((ev.CopyAsked("d", "a", "b", 3), ev.CopyAsked("d", "a", "b", 3)), "already, or on its way"),
            ((ev.ReplicaDropped("d", "b"),), "which does not hold it"),
            ((ev.CopyProgress("d", "b", 1),), "is not being copied"),
            ((ev.DatasetCreated("d", 1, ("b",)),), "is there already"),
            ((ev.ServerMoved("a-0", "a", "a-1"),), "was not to move"),
            ((ev.MoveAsked("a-0", "a-1"), ev.MoveAsked("a-0", "a-1")), "cannot be moved"),
            ((ev.SolveAsked("data", "x"), ev.SolveAsked("data", "y")), "waits for another"),
            ((ev.SolveEnded("data", "x", "FEASIBLE"),), "has not asked"),
            ((ev.StepDropped("data", "copy", "d", "b", "why"),), "has this step"),
        ],
    )
    def test_what_does_not_fit(self, events: tuple[ev.Event, ...], words: str) -> None:
        with pytest.raises(CorruptLog, match=words):
            state_after(*HEAD, *events)


class TestPlans:
    def test_waves(self) -> None:
        state = state_after(*HEAD, *PLAN)
        assert [step.name for step in state.plans.ready("data")] == ["d"]
        begun = (*HEAD, *PLAN, ev.CopyAsked("d", "a", "b", 3))
        assert state_after(*begun).plans.ready("data") == ()
        copied = (*begun, ev.CopyEnded("d", "b"))
        assert [step.does for step in state_after(*copied).plans.ready("data")] == ["drop"]
        dropped = (*copied, ev.ReplicaDropped("d", "a"))
        assert [step.name for step in state_after(*dropped).plans.ready("data")] == ["e"]
        ended = (*dropped, ev.StepDropped("data", "copy", "e", "b", "no room"))
        assert state_after(*ended).plans.ready("data") == ()

    def test_misfits(self) -> None:
        state = state_after(*HEAD, ev.CopyAsked("d", "a", "b", 3))
        snapshot = Snapshot(state, ())
        assert "already" in misfit(snapshot, ev.PlanStep("copy", "d", "b", "a"))
        assert "no room" in misfit(snapshot, ev.PlanStep("copy", "e", "b", "a"))
        assert "there already" in misfit(snapshot, ev.PlanStep("copy", "e", "a", "b"))
        assert "fewer than 1" in misfit(snapshot, ev.PlanStep("drop", "d", "a"))
        assert "no such cluster" in misfit(snapshot, ev.PlanStep("move", "a-0", "b-0"))
        assert misfit(snapshot, ev.PlanStep("move", "a-0", "a-1")) == ""

    def test_a_replica_that_a_waiting_job_needs_stays(self) -> None:
        job = ev.Submitted("j", JobSpec(datasets=("d",), mgpu=16_000))
        state = state_after(*HEAD, ev.CopyEnded("d", "b"), job, ev.Bound("j", "b"))
        why = misfit(Snapshot(state, ()), ev.PlanStep("drop", "d", "b"))
        assert why == "job j waits for a place there and can run nowhere else"
        assert misfit(Snapshot(state, ()), ev.PlanStep("drop", "d", "a")) == ""

    def test_a_server_that_moves(self) -> None:
        state = state_after(ev.MoveAsked("a-0", "a-1"))
        assert state.reclaimable.most("a-0", 0) == 0
        state = state_after(ev.MoveAsked("a-0", "a-1"), ev.ServerMoved("a-0", "a", "a-1"))
        assert state.inventory.server_of["a-0"].cluster == "a-1"
        assert (state.reclaimable.most("a-0", 0), state.inventory.supply_mgpu["a"]) == (8000, 16_000)
        broken = state_after(ev.MoveAsked("a-0", "a-1"), ev.ServerDown("a-0"))
        assert not broken.inventory.moving

    def test_the_fleet_is_laid_out_once_for_all_moves_of_a_turn(self, monkeypatch: pytest.MonkeyPatch) -> None:
        laid_out: list[int] = []
        change = FleetInventory.change_servers

        def counted(books: FleetInventory, added: tuple[Server, ...], removed: list[str]) -> None:
            laid_out.append(len(removed))
            change(books, added, removed)

        monkeypatch.setattr(FleetInventory, "change_servers", counted)
        servers = [f"a-{n}" for n in range(4)]
        state = State(Server(name, "a", f"c{name[-1]}", "r", "h100", 8, 0, 0) for name in servers)
        wide = ev.Submitted("wide", JobSpec(tasks=4, mgpu=8000))
        moves = [(ev.MoveAsked(name, "c0"), ev.ServerMoved(name, "a", "c0")) for name in servers[1:]]
        asked, moved = zip(*moves, strict=True)
        for event in (*state.opening(), wide, *asked, ev.ServerClosed("a-3"), *moved):
            state.apply(state.seq + 1, 0, event)
        assert laid_out == []
        copy = state_from(state_bytes(state))
        for one in (state, copy):
            refused = Actions(one, lambda *_: None, ExitStack()).place("wide")
            assert isinstance(refused, Refused), "a-3 is closed, wherever it is"
            one.apply(one.seq + 1, 0, ev.ServerOpened("a-3"))
            bid = Actions(one, lambda *_: None, ExitStack()).place("wide")
            assert isinstance(bid, Bid)
            assert (bid.cluster, len(bid.shares)) == ("c0", 4)
        assert laid_out == [3, 3], "once each in the state and its copy"

    def test_a_server_does_not_move_under_a_job(self) -> None:
        spec = ev.Submitted("j", JobSpec(mgpu=1000))
        adopted = ev.Adopted("j", 1, "a", "a-0", (Share("a-0", 1, {0: 1000}),))
        with pytest.raises(CorruptLog, match="server a-0 moves, and still runs j"):
            state_after(ev.MoveAsked("a-0", "a-1"), spec, adopted, ev.ServerMoved("a-0", "a", "a-1"))


class TestResidency:
    """Dataset d is whole in a and b, and may only be read in b; e is in a, and may only be in a."""

    HEAD = (ev.DatasetCreated("d", 3, ("a", "b"), "", ("b",)), ev.DatasetCreated("e", 3, ("a",), "", ("a",)))

    def test_jobs_run_where_their_data_may_be_read(self) -> None:
        engine = Engine(State(SERVERS), Mast())
        inbox = (*engine.state.opening(), *self.HEAD, *(ev.Submitted(f"{n}", READS["d"]) for n in range(4)))
        turn = engine.advance(0, [*inbox, ev.Submitted("both", JobSpec(mgpu=1000, datasets=("d", "e")))])
        placed = [one.event for one in turn.events if isinstance(one.event, ev.Placed)]
        assert [(one.job, one.region) for one in placed] == [(f"{n}", "b") for n in range(2)], "b has room for two"
        assert engine.state.jobs["both"].state is JobState.HELD

    def test_a_residency_that_is_widened_lets_jobs_in(self) -> None:
        engine = Engine(State(SERVERS), Mast())
        engine.advance(0, [*engine.state.opening(), *self.HEAD, *(ev.Submitted(f"{n}", READS["d"]) for n in range(3))])
        placed = engine.advance(5, [ev.DatasetCreated("d", 3, ("a", "b"))]).events[-1].event
        assert isinstance(placed, ev.Placed)
        assert (placed.job, placed.region) == ("2", "a")

    def test_nothing_is_copied_out_of_a_residency(self) -> None:
        with pytest.raises(CorruptLog, match="dataset e is copied to b, outside its residency"):
            state_after(*self.HEAD, ev.CopyAsked("e", "a", "b", 3))
        assert faults(*self.HEAD, ev.CopyAsked("e", "a", "b", 3)) == ["e is copied to b, outside its residency"]
        step = ev.PlanStep("copy", "e", "b", "a")
        assert misfit(Snapshot(state_after(*self.HEAD), ()), step) == "the region is outside its residency now"

    def test_a_replica_outside_is_none_of_those_that_a_deletion_leaves(self) -> None:
        step, created = ev.PlanStep("drop", "d", "b", keep=1), ev.DatasetCreated("d", 3, ("a", "b"))
        assert misfit(Snapshot(state_after(created), ()), step) == ""
        kept = "fewer than 1 replicas that jobs may read would be left"
        assert misfit(Snapshot(state_after(*self.HEAD), ()), step) == kept

    def test_the_checker_finds_jobs_outside_it(self) -> None:
        placed = ev.Placed("j", 1, "a", "a-0", (Share("a-0", 1, dict.fromkeys(range(8), 1000)),))
        wrong = (*self.HEAD, ev.Submitted("j", READS["d"]), placed)
        assert faults(*wrong) == ["job j reads d in a, outside the residency of that data"]

    def test_a_copy_on_submission_stays_inside(self) -> None:
        engine = Engine(State(SERVERS), Mast(MastParams(bind="copy")))
        created = ev.DatasetCreated("d", 3, ("a",), "", ("b",))
        jobs = [ev.Submitted(f"{n}", READS["d"]) for n in range(2)]
        turn = engine.advance(0, [*engine.state.opening(), created, *jobs])
        assert [one.event.region for one in turn.events if isinstance(one.event, (ev.Bound, ev.CopyAsked))] == ["b"] * 3


def test_a_job_waits_until_its_dataset_is_there() -> None:
    engine = Engine(State(SERVERS), Mast())
    job = ev.Submitted("j", JobSpec(datasets=("d",), mgpu=1000))
    held = engine.advance(0, [*engine.state.opening(), job]).events[-1].event
    assert isinstance(held, ev.Refused)
    assert held.code == "data"
    placed = engine.advance(5, [ev.DatasetCreated("d", 3, ("b",))]).events[-1].event
    assert isinstance(placed, ev.Placed)
    assert placed.region == "b"


class TestChecker:
    def test_a_good_log(self) -> None:
        copied = (ev.CopyAsked("d", "a", "b", 3), ev.CopyEnded("d", "b"), ev.ReplicaDropped("d", "a"))
        assert faults(*HEAD, *PLAN, *copied) == []

    @pytest.mark.parametrize(
        ("events", "words"),
        [
            ((ev.CopyAsked("d", "b", "a", 3),), "d is copied from b, which does not hold it whole"),
            ((ev.CopyAsked("d", "a", "b", 4),), "a copy of d has 4 MB, not 3"),
            ((ev.CopyAsked("d", "a", "b", 3), ev.CopyAsked("e", "a", "b", 3)), "with e, b stores 6 MB; it has 5"),
            ((ev.ReplicaDropped("d", "a"),), "0 whole replicas of d are left, not 1"),
            ((ev.PlanAdopted("data", "x"),), "path data adopts x, which no solve has brought"),
            ((ev.SolveEnded("data", "x", "FEASIBLE"),), "path data has not asked for the plan of x"),
            ((ev.ServerMoved("a-0", "a", "a-1"),), "server a-0 was not to move to a-1 of a"),
            ((ev.MoveAsked("a-9", "a-1"),), "server a-9 cannot be moved: it moves, or is not in service"),
        ],
    )
    def test_faults(self, events: tuple[ev.Event, ...], words: str) -> None:
        assert words in faults(*HEAD, *events)

    def test_jobs_and_servers_that_move(self) -> None:
        from mast_opt.problems.job_placement.live_fleet.types import Share

        job = ev.Submitted("j", JobSpec(datasets=("d",), mgpu=1000))
        placed = ev.Placed("j", 1, "a", "a-0", (Share("a-0", 1, {0: 1000}),))
        words = "job j is placed on a-0, which is not in service"
        assert words in faults(*HEAD, ev.MoveAsked("a-0", "a-1"), job, placed)
        assert "server a-0 moves, and a job is on it" in faults(*HEAD, job, placed, ev.MoveAsked("a-0", "a-1"))
        dropped = (ev.CopyEnded("d", "b"), ev.ReplicaDropped("d", "a"))
        assert "d is deleted in a, where job j reads it" in faults(*HEAD, job, placed, *dropped)
        found = faults(*HEAD, job, placed, *dropped, ev.Started("j", 1))
        assert "job j reads d, which is not in a" in found


class TestForecasts:
    def test_demand_is_the_weighted_mean_of_days(self) -> None:
        demand = Demand()
        of = DemandClass.of(JobSpec(mgpu=1000, tasks=8, namespace="ads", datasets=("d",)))
        demand.submitted(of, 8000, ("d",), DAY_MS // 2)
        assert demand.classes() == (of,)
        assert demand.forecast_mgpu(of, DAY_MS // 2 + 3600) * (DAY_MS // 2 + 3600) // 8000 <= 3600
        assert demand.forecast_mgpu(of, DAY_MS) == 4000
        assert demand.forecast_mgpu(of, 2 * DAY_MS) == 4000 + (8000 - 4000) // 4
        demand.ended(of, 8000, 2 * DAY_MS)
        assert demand.forecast_mgpu(of, 3 * DAY_MS) == 5000 - 5000 // 4
        assert (demand.read(of, 7 * DAY_MS), demand.read(of, 8 * DAY_MS)) == (("d",), ())

    def test_demand_by_arrivals_has_no_backlog(self) -> None:
        demand = Demand()
        of = DemandClass.of(JobSpec(mgpu=1000, namespace="ads"))
        for day in range(8):
            for _ in range(2):  # each would run for half a day, and every second one waits
                demand.submitted(of, 1000, (), day * DAY_MS)
            if day:
                assert demand.forecast_by_arrivals_mgpu(of, day * DAY_MS) == 1000
                assert demand.forecast_by_arrivals_mgpu(of, (day + 1) * DAY_MS) == 1000
            demand.ended(of, 1000, day * DAY_MS + DAY_MS // 2, 1000 * DAY_MS // 2)
        assert demand.forecast_mgpu(of, 8 * DAY_MS) > 4000
        assert demand.forecast_by_arrivals_mgpu(of, 9 * DAY_MS) == 2000 * 3 // 4 // 2
        never_ran = DemandClass.of(JobSpec(tier=3, mgpu=1000, namespace="ads"))
        demand.submitted(never_ran, 500, (), 9 * DAY_MS)
        assert demand.forecast_by_arrivals_mgpu(never_ran, 10 * DAY_MS) == 250, "run time of the tier that ran"
        nothing_ran = Demand()
        nothing_ran.submitted(of, 500, (), 0)
        assert nothing_ran.forecast_by_arrivals_mgpu(of, DAY_MS) == 500

    def test_a_run_time_of_long_ago_fades(self) -> None:
        demand, of = Demand(), DemandClass.of(JobSpec(mgpu=8000, namespace="ads"))
        demand.submitted(of, 8000, (), 0)
        demand.ended(of, 8000, DAY_MS, 8000 * DAY_MS)
        found = []
        for day in range(1, 60):
            demand.submitted(of, 8000, (), day * DAY_MS)
            found.append(demand.forecast_by_arrivals_mgpu(of, day * DAY_MS))
        assert (found[0], found[-1]) == (8000, demand.forecast_mgpu(of, 59 * DAY_MS))

    def test_what_nobody_asks_for_any_more_is_forgotten(self) -> None:
        demand = Demand()
        once = [DemandClass.of(JobSpec(datasets=(f"d{day}",))) for day in range(60)]
        recurs = DemandClass.of(JobSpec(namespace="ads", workload="nightly", datasets=("d",)))
        stays = DemandClass.of(JobSpec(tier=1, datasets=("e",)))
        demand.submitted(stays, 1000, ("e",), 0)
        demand.submitted(recurs, 1000, ("d",), 0)
        demand.ended(recurs, 1000, DAY_MS)
        counts = []
        for day, of in enumerate(once):
            demand.submitted(of, 1000, (f"d{day}",), day * DAY_MS)
            demand.ended(of, 1000, day * DAY_MS + 1)
            counts.append(len(demand.classes()))
            assert (recurs in demand.classes()) == (day <= 1 + KEPT_DAYS)
        assert counts[8:29] == [8 + 2] * 21  # those of today and of the seven days before, and the two others
        assert counts[30:] == [8 + 1] * 30
        assert stays in demand.classes()
        assert demand.read(stays, 60 * DAY_MS) == ()
        assert all(demand.read(of, 59 * DAY_MS) for of in demand.classes() if of != stays)

    @pytest.mark.parametrize("seed", range(4))
    def test_p95_of_use(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        use, now, level = ClusterUse(), 0, 0
        peaks = np.zeros(600, np.int64)
        for _ in range(200):
            step = int(rng.integers(0, 5 * INTERVAL_MS))
            for interval in range(now // INTERVAL_MS, (now + step) // INTERVAL_MS + 1):
                peaks[interval] = max(peaks[interval], level)
            now += step
            change = int(rng.integers(-level, 9 - level))
            level += change
            peaks[now // INTERVAL_MS] = max(peaks[now // INTERVAL_MS], level)
            use.change("c", "h100", change, now)
            last = now // INTERVAL_MS
            window = np.sort(peaks[max(0, last - 335) : last + 1])
            expected = window[-(-95 * len(window) // 100) - 1]
            assert use.p95_mgpu("c", "h100", now) == expected
