"""Reservations of ``mast``: promises on random traces, and times of fit against trials on the live fleet.

``python -m tests.policies.test_reservations 1000`` runs a thousand traces of each form.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.engine import Engine, Turn
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.jobs import JobRecord, job_of
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.loop.state import State
from mast_opt.live.policies.fit_times import FitTimes
from mast_opt.live.policies.mast import Mast
from mast_opt.live.policies.mast_params import MastParams
from mast_opt.live.policies.reservations import Reservations
from mast_opt.live.policies.whole_servers import packed_bid
from mast_opt.live.simulation.driver import simulate
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.live.simulation.run import run_trace
from mast_opt.live.simulation.traces.surroundings import Happening
from mast_opt.live.simulation.traces.trace import JobTrace
from mast_opt.problems.job_placement.fit_times import FOREVER, NOW
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Part, Server
from tests.policies.trials import first_fit
from tests.simulation.test_order_only import trace_of

LONGEST = 200
FORMS = ("one-tier", "tiers", "rough")


class Drawn:
    """A random fleet and jobs.

    ``one-tier``: nothing but time ends what runs; ``tiers``: preemption and quotas; ``rough``: servers that break, data
    that comes and goes, and jobs without limits too. With ``parts`` a third of the jobs have several.
    """

    def __init__(self, form: str, seed: int, parts: bool = False) -> None:
        self.rng, self.form = random.Random(f"{form} {seed}"), form
        rng = self.rng
        regions = ["a", "b"][: rng.randint(1, 2)]
        self.servers = tuple(
            Server(
                f"{region}{at}", region, f"{region}-{at % 2}", f"{region}-{at % 2}/{at // 2 % 2}",
                rng.choice(["h100", "h100", "v100"]), rng.choice([2, 4, 4, 8]), 32, 0,
            )
            for region in regions
            for at in range(rng.randint(2, 6))
        )  # fmt: skip
        self.replicas = {"d0": set(regions), "d1": {regions[0]}}
        at, self.jobs = 0, dict[str, tuple[int, JobSpec]]()
        for number in range(rng.randint(20, 60)):
            at += rng.choice([0, 0, 0, 0, 5])
            self.jobs[f"j{number}"] = at, self.spec()
        rng = random.Random(f"{form} {seed} parts")
        for name, (at, spec) in self.jobs.items() if parts else ():
            if rng.random() < 1 / 3:
                self.jobs[name] = at, self.in_parts(spec, rng)

    def in_parts(self, spec: JobSpec, rng: random.Random) -> JobSpec:
        """The job with parts, of the same duration, limit and tier."""
        parts = tuple(
            Part(
                f"p{at}",
                rng.choice([1, 1, 2, 3]),
                (mgpu := rng.choice([0, 250, 500, 1000, 2000, 4000])),
                rng.choice([0, 4, 10]),
                gpu_types=rng.choice([None, None, {"h100": mgpu}, {"v100": mgpu}]),
                within=rng.choice(["cluster", "cluster", "rack", "server"]),
            )
            for at in range(rng.choice([1, 2, 2, 3]))
        )
        within = rng.choice(["region", "cluster", "rack", "server"])
        return replace(spec, tasks=1, mgpu=1000, cpu_mcores=0, gpu_types=None, parts=parts, within=within)

    def spec(self) -> JobSpec:
        rng = self.rng
        duration = rng.choice([rng.randint(1, 100), 100])
        limit = rng.choice([duration, 2 * duration, rng.choice([50, 100, LONGEST]), max(1, duration - 5)])
        mgpu = rng.choice([250, 500, 1000, 1000, 2000, 4000])
        spec = JobSpec(
            tier=1,
            tasks=rng.choice([1, 1, 1, 2, 3, 4]),
            mgpu=mgpu,
            cpu_mcores=rng.choice([0, 0, 4, 10]),
            gpu_types=rng.choice([None, None, {"h100": mgpu}, {"h100": mgpu, "v100": min(4000, 2 * mgpu)}]),
            within=rng.choice(["cluster", "cluster", "rack", "server"]),
            duration_ms=duration,
            limit_ms=min(limit, LONGEST),
        )
        if self.form != "one-tier":
            spec = replace(spec, tier=rng.choice([0, 1, 1, 2]), preemptible=rng.random() < 0.4)
            spec = replace(spec, tenant=rng.choice(["x", "y"]), checkpoint_ms=10, restart_ms=2)
        if self.form == "rough" and rng.random() < 0.3:
            spec = replace(spec, limit_ms=None)
        return replace(spec, datasets=rng.choice([(), (), ("d0",), ("d1",)])) if self.form == "rough" else spec

    def happenings(self) -> list[tuple[int, ev.Event]]:
        rng = self.rng
        found: list[tuple[int, ev.Event]] = []
        for _ in range(rng.randint(0, 4) if self.form == "rough" else 0):
            server, at = rng.choice(self.servers), rng.randint(0, 300)
            up = ev.ServerUp(
                server.name, server.region, server.cluster, server.rack, server.gpu_type, server.gpus, server.cpu_mcores
            )
            found += [(at, ev.ServerDown(server.name)), (at + rng.randint(1, 60), up)]
        if self.form == "rough":
            closed, at = rng.choice(self.servers).name, rng.randint(0, 200)
            found += [(at, ev.ServerClosed(closed)), (at + 100, ev.ServerOpened(closed))]
        if self.form == "rough" and len(self.replicas["d0"]) == 2:
            found += [(rng.randint(50, 200), ev.ReplicaDropped("d0", "b"))]
        if self.form != "one-tier" and rng.random() < 0.5:
            found += [(rng.randint(0, 200), ev.QuotaSet("x", rng.choice([2000, 8000]))) for _ in range(2)]
        return found

    def run(self, policy: Mast, most_starts: int | None = None) -> list[ev.Stored]:
        """The log until no job is left that ever ends. Where jobs are promoted, all takes longer."""
        state = State(self.servers, tiers=(0, 1, 2), replicas=self.replicas)
        slower = 20 if policy.params.promote_after_s or policy.params.make_room_after_s else 1
        names = {name: (slower * at, slowed(spec, slower)) for name, (at, spec) in self.jobs.items()}.items()
        work = {
            name: Work(spec.duration_ms or 0, spec.checkpoint_ms, spec.restart_ms, limit_ms=spec.limit_ms)
            for name, (_, spec) in names
        }
        coming: list[tuple[int, ev.Event]] = [(0, event) for event in state.opening()]
        happenings = [(slower * at, event) for at, event in self.happenings()]
        coming += sorted(
            [(at, ev.Submitted(name, spec)) for name, (at, spec) in names] + happenings, key=lambda p: p[0]
        )
        log = list[ev.Stored]()

        def keep(turn: Turn) -> None:
            log.extend(turn.events)

        engine = Engine(state, policy, most_starts=most_starts)
        simulate(engine, SimulatedHost(work, servers=self.servers), coming, on_turn=keep)
        return log


def slowed(spec: JobSpec, slower: int) -> JobSpec:
    """A job with longer times."""
    times = ("duration_ms", "limit_ms", "checkpoint_ms", "restart_ms")
    return replace(spec, **{name: at and slower * at for name in times if (at := getattr(spec, name)) is not None})


PARAMS = (
    MastParams(),
    MastParams(backfill="shortest-limit"),
    MastParams(pack="always"),
    MastParams(runner_up=True),
    MastParams(bind="free"),
    MastParams(promote_after_s=1),
    MastParams(without_limits="hold", hold_after_s=0),
    MastParams(make_room_after_s=1, make_room_share=1.0),
)


def counts(
    form: str, seed: int, params: MastParams, most_starts: int | None = None, parts: bool = False
) -> Counter[str]:
    """Reasons for which promises ended, and under "promised" how many jobs had one, under "in parts" how many of those
    have several; the log passes its checks."""
    drawn = Drawn(form, seed, parts)
    log = drawn.run(Mast(params), most_starts)
    limited = {"x"} if form != "one-tier" else set()
    faults = [one for one in check_log(log, limited=limited, durations=True) if one.what != "data"]
    assert not faults, (form, seed, params, faults[:3])
    promised = {one.event.job for one in log if isinstance(one.event, ev.Promised)}
    found = Counter(one.event.why for one in log if isinstance(one.event, ev.PromiseEnded))
    found["promised"] = len(promised)
    if parts:
        found["in parts"] = sum(bool(drawn.jobs[name][1].parts) for name in promised)
    return found


@pytest.mark.parametrize("params", PARAMS)
def test_one_tier_keeps_all_promises(params: MastParams) -> None:
    found = sum((counts("one-tier", seed, params) for seed in range(3)), Counter[str]())
    assert found["promised"] > 20
    assert set(found) == {"promised"}


@pytest.mark.parametrize("params", PARAMS)
def test_one_tier_keeps_all_promises_to_jobs_of_parts(params: MastParams) -> None:
    found = sum((counts("one-tier", seed, params, parts=True) for seed in range(3)), Counter[str]())
    assert found["in parts"] > 5
    assert set(found) == {"promised", "in parts"}


@pytest.mark.parametrize("form", FORMS)
def test_parts_start_in_the_place_that_is_kept_for_them(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No search finds a place for those that have a promise: they get what a trial found when they waited."""
    kept_for, kept = Reservations.kept_for, list[Bid]()

    def searched(record: JobRecord, *others: Any) -> Bid | None:
        return None if record.spec.parts and record.promise is not None else packed_bid(record, *others)

    def counted(self: Reservations, *others: Any) -> Bid | None:
        bid = kept_for(self, *others)
        kept.extend([bid] if bid else [])
        return bid

    monkeypatch.setattr("mast_opt.live.policies.mast.packed_bid", searched)
    monkeypatch.setattr(Reservations, "kept_for", counted)
    found = sum((counts(form, seed, MastParams(), parts=True) for seed in range(6)), Counter[str]())
    assert found["in parts"] > 10
    assert len(kept) > 5
    assert any(bid.victims for bid in kept) == (form != "one-tier")


@pytest.mark.parametrize("parts", [False, True])
def test_waits_are_bounded(parts: bool) -> None:
    """A job that fits an empty cluster waits at most (n + 1) times the longest limit, with n older waiting jobs."""
    waited = 0
    for seed in range(5):
        drawn = Drawn("one-tier", seed, parts)
        placed = {one.event.job: one.at_ms for one in drawn.run(Mast()) if isinstance(one.event, ev.Placed)}
        for number, (name, (at, spec)) in enumerate(drawn.jobs.items()):
            before = list(drawn.jobs)[:number]
            older = sum(name in placed and placed[name] > at for name in before)
            if isinstance(Fleet(drawn.servers, tiers=(1,)).place(job_of(name, spec)), Bid):
                assert placed[name] - at <= (older + 1) * LONGEST, (seed, name)
                waited += placed[name] > at
    assert waited > 30


@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("form", FORMS[1:])
def test_each_late_promise_has_its_reason(form: str, parts: bool) -> None:
    found = sum((counts(form, seed, PARAMS[seed % len(PARAMS)], parts=parts) for seed in range(15)), Counter[str]())
    assert found["promised"] > 70
    assert not parts or found["in parts"] > 25
    assert len(found) > 2 + parts


def test_a_promise_that_has_just_got_better_ends_for_its_own_reason() -> None:
    assert set(counts("tiers", 32, MastParams(pack="always"))) >= {"promised", "quota"}


def test_a_bid_with_victims_among_what_is_promised_is_not_the_last_word() -> None:
    """Its job would end in time, but its victims would not: another server, promised to the job itself, is left."""
    counts("tiers", 107, MastParams(pack="always"))


def test_limits_do_not_end_before_servers_that_are_held_without_them() -> None:
    counts("rough", 9015, MastParams(without_limits="hold", hold_after_s=0))


class Looking(Mast):
    """Compares times of fit with those that trials find, for each waiting job in each turn."""

    looked = 0

    def decide(self, snapshot: Snapshot, actions: Actions) -> None:
        super().decide(snapshot, actions)
        assert isinstance(snapshot, Snapshot)
        state = snapshot._state
        held = map(state.jobs.__getitem__, state.fleet.running())
        ends = sorted((at, one.name) for one in held if (at := one.ends_by_ms(snapshot.now_ms)) is not None)
        for record in snapshot.jobs.values():
            for region in snapshot.supply_mgpu if record.waits else ():
                found = FitTimes(record, snapshot.importance(record), region, snapshot).by()
                if isinstance(state.fleet.place(record.job, regions=(region,), preempt=False), Bid):
                    expected = NOW
                else:
                    later = first_fit(state.fleet, record.job, ends, regions=(region,))
                    expected = FOREVER if later is None else later[0]
                assert found == expected, (snapshot.now_ms, record.name, region)
                self.looked += 1


def test_times_of_fit_are_those_of_trials() -> None:
    looked = 0
    for seed in range(3):
        policy = Looking()
        Drawn("one-tier", seed).run(policy)
        looked += policy.looked
    assert looked > 300


def small(at: int, **changed: Any) -> dict[str, Any]:
    return {"submitted_ms": at, "mgpu": 4000, "duration_ms": 100, "limit_ms": 100, **changed}


def starts(rows: list[dict[str, Any]], **params: str) -> dict[str, int]:
    """Job → time of its start; nobody may be stopped."""
    trace = trace_of(*rows)
    trace = replace(trace, submissions=replace(trace.submissions, preemptible=np.zeros(len(rows), np.bool_)))
    log = list(run_trace(trace, "mast", params).events())
    assert check_log(log, all_end=True, durations=True) == ()
    return {one.event.job: one.at_ms for one in log if isinstance(one.event, ev.Placed)}


STREAM = [small(0), small(50), small(60, tasks=2), *(small(100 + 50 * at) for at in range(20))]
"""A gang of both servers comes after two jobs, and then as many small ones as keep one server busy."""


@pytest.mark.parametrize("factor", [1, 5])
def test_a_gang_is_not_passed_for_ever(factor: int) -> None:
    rows = [row | {"limit_ms": factor * row["limit_ms"]} for row in STREAM]
    assert starts(rows)["j2"] == 150
    assert starts(rows, reserve="false")["j2"] == 1150


@pytest.mark.parametrize("seed", range(8))
def test_a_job_of_a_low_tier_is_not_passed_for_ever(seed: int) -> None:
    """In an endless stream of more important jobs it starts t T + (n + t + 2) L after it came at the latest, with
    n older jobs that wait when it has come to the first tier."""
    rng = random.Random(seed)
    tier, tasks, longest_ms, after_s = rng.choice([1, 2]), rng.choice([1, 2]), 1000, 3
    stream = [
        small(300 * at, tier=rng.randrange(tier), duration_ms=(ms := rng.randint(500, longest_ms)), limit_ms=ms)
        for at in range(100)
    ]
    low = small(1000, tier=tier, tasks=tasks, duration_ms=longest_ms, limit_ms=longest_ms)
    rows = sorted([*stream, low], key=lambda row: row["submitted_ms"])
    name = f"j{rows.index(low)}"
    found = starts(rows, promote_after_s=str(after_s))
    promoted_ms = 1000 + tier * after_s * 1000
    older = sum(found[f"j{at}"] > promoted_ms for at, row in enumerate(rows) if row["submitted_ms"] <= 1000)
    assert found[name] <= promoted_ms + (older + tier + 1) * longest_ms
    assert starts(rows)[name] > 30_000


def test_refused_jobs_try_again_by_their_limits() -> None:
    """Twelve small jobs share two servers once the gangs have ended, those with short limits first."""
    limits = [100 - 10 * (at % 5) for at in range(12)]
    little = [small(2 + at, mgpu=1000 * (1 + at % 4), duration_ms=50, limit_ms=ms) for at, ms in enumerate(limits)]
    found = starts([small(0, tasks=2), small(1, tasks=2), *little], backfill="shortest-limit")
    assert {found[f"j{2 + at}"] for at, ms in enumerate(limits) if ms == 60} == {200}
    assert max(found.values()) == 400


def test_promoted_work_takes_no_promise() -> None:
    """The tier-1 gang has a promise when the tier-2 gang is promoted beyond it; who is more important of itself has
    to keep neither, and then the older gang goes first."""
    busy = [small(at, duration_ms=1000, limit_ms=1000) for at in (0, 500)]
    gangs = [
        small(600, tier=2, tasks=2, duration_ms=500, limit_ms=500),
        small(610, tier=1, tasks=2, duration_ms=500, limit_ms=500),
    ]
    assert starts([*busy, *gangs])["j3"] == 1500
    found = starts([*busy, *gangs, *(small(620 + at, tier=1) for at in range(5))], promote_after_s="1")
    assert found["j3"] == 1500


def test_a_gang_without_limits_has_servers_kept_after_a_time() -> None:
    rows = [row | {"limit_ms": -1} for row in STREAM]
    assert starts(rows)["j2"] == 1150
    rows = [{**row, "submitted_ms": 100 * row["submitted_ms"], "duration_ms": 10_000} for row in rows]
    assert starts(rows, without_limits="hold", hold_after_s="30")["j2"] == 45_000


BROKEN_UP = [
    *({"submitted_ms": at, "mgpu": 3000, "duration_ms": 60_000} for at in (0, 1)),
    {"submitted_ms": 10, "mgpu": 4000, "tasks": 2, "duration_ms": 500},
]
"""A gang of both servers comes when each has a job that leaves a quarter of it free; nothing else happens."""


def starts_with_room(
    share: str = "0.75", of: str = "preemptible", firm: bool = False, **changed: Any
) -> list[tuple[str, int, int]]:
    """The first three jobs with the times and attempts of their starts."""
    trace = trace_of(*(row | changed if at < 2 else row for at, row in enumerate(BROKEN_UP)))
    if firm:
        preemptible = np.zeros(len(BROKEN_UP), np.bool_)
        trace = replace(trace, submissions=replace(trace.submissions, preemptible=preemptible))
    return starts_of(trace, share, of)


def starts_of(trace: JobTrace, share: str, of: str = "preemptible") -> list[tuple[str, int, int]]:
    """The first three jobs of a trace with the times and attempts of their starts."""
    params = {"make_room_after_s": "2", "make_room_share": share, "make_room_of": of}
    log = list(run_trace(trace, "mast", params).events())
    assert check_log(log, all_end=True, durations=True) == ()
    placed = [(one.event, one.at_ms) for one in log if isinstance(one.event, ev.Placed)]
    return [(event.job, at_ms, event.attempt) for event, at_ms in placed if event.job in ("j0", "j1", "j2")]


def test_smaller_jobs_make_room_for_a_gang() -> None:
    """They stop once it has waited for two seconds, and go on when it has ended."""
    assert (
        starts_with_room()
        == starts_with_room(of="all", firm=True)
        == [("j0", 0, 1), ("j1", 1, 1), ("j2", 2010, 1), ("j0", 2510, 2), ("j1", 2510, 2)]
    )


@pytest.mark.parametrize(
    ("share", "changed"),
    [("0.37", {}), ("1", {"firm": True}), ("1", {"tier": 0}), ("1", {"mgpu": 4000}), ("1", {"tasks": 2})],
)
def test_nobody_makes_room(share: str, changed: dict[str, Any]) -> None:
    """They hold more than the share, may not be stopped, are more important, as large as a task, or run on several
    servers."""
    found = starts_with_room(share, **changed)
    assert ("j2", 2010, 1) not in found
    assert all(attempt == 1 for _, _, attempt in found)


@pytest.mark.parametrize(("checkpoint_ms", "start_ms"), [(0, 6000), (3000, 6000), (60_000, 16_000)])
def test_nobody_loses_more_for_a_gang_than_it_has_waited(checkpoint_ms: int, start_ms: int) -> None:
    """It comes at 4,000 ms and asks each two seconds for 6 GPUs of the 8 that it needs: 6 t of work since the begin
    are at most 8 (t - 4,000 ms) from 16,000 ms on."""
    rows = [{**row, "checkpoint_ms": checkpoint_ms} for row in BROKEN_UP[:2]]
    found = starts_of(trace_of(*rows, {**BROKEN_UP[2], "submitted_ms": 4000}), "1")
    assert ("j2", start_ms, 1) in found


def test_servers_are_held_where_a_job_can_run() -> None:
    """Limits do not say when the gang fits; in the first region it never does."""
    rows = [{**row, "limit_ms": -1, "gpu_types": {"h100": 4000}} for row in STREAM]
    rows = [{**row, "submitted_ms": 100 * row["submitted_ms"], "duration_ms": 10_000} for row in rows]
    trace = trace_of(*rows, regions=("q", "r"))
    servers = tuple(replace(one, gpu_type="v100") if one.region == "q" else one for one in trace.servers)
    log = run_trace(replace(trace, servers=servers), "mast", {"without_limits": "hold", "hold_after_s": "30"}).events()
    placed = {one.event.job: one.at_ms for one in log if isinstance(one.event, ev.Placed)}
    assert placed["j2"] == 45_000


def test_a_gang_larger_than_its_region_is_looked_at_again_when_a_server_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two servers one is away from 50 to 500 ms. The gang, and ten like it, are looked at once meanwhile, and not in
    each turn; the first starts when the job has ended that ran as the server came back."""
    asked = list[str]()
    give = Reservations.give

    def counted(self: Reservations, record: JobRecord, *others: Any) -> Any:
        asked.append(record.name)
        return give(self, record, *others)

    monkeypatch.setattr(Reservations, "give", counted)
    stream = [small(50 * at) for at in range(40)]
    gangs = [small(101, tasks=2) for _ in range(11)]
    rows = sorted([*stream, *gangs], key=lambda row: row["submitted_ms"])
    trace = trace_of(*rows)
    away = Happening(50, "server_down", trace.servers[1].name), Happening(500, "server_up", trace.servers[1].name)
    trace = replace(trace, surroundings=replace(trace.surroundings, happenings=away))
    trace = replace(trace, submissions=replace(trace.submissions, preemptible=np.zeros(len(rows), np.bool_)))
    log = list(run_trace(trace, "mast", {}).events())
    first = next(name for name, one in zip(trace.submissions.labels, rows) if one.get("tasks") == 2)
    placed = {one.event.job: one.at_ms for one in log if isinstance(one.event, ev.Placed)}
    assert 500 < placed[first] <= 600
    assert asked.count(first) <= 2


def test_faulty_parameters() -> None:
    with pytest.raises(UsageError, match="backfill is 'longest'; expected one of submission, shortest-limit"):
        MastParams(backfill="longest")
    with pytest.raises(UsageError, match="without_limits is 'wait'; expected one of pass, hold"):
        MastParams(without_limits="wait")
    with pytest.raises(UsageError, match="hold_after_s is -1; expected at least 0"):
        MastParams(hold_after_s=-1)
    with pytest.raises(UsageError, match="make_room_after_s is -1; expected at least 0"):
        MastParams(make_room_after_s=-1)
    with pytest.raises(UsageError, match=r"make_room_share is 1.5; expected 0 to 1"):
        MastParams(make_room_share=1.5)
    with pytest.raises(UsageError, match="promote_after_s is -1; expected at least 0"):
        MastParams(promote_after_s=-1)


if __name__ == "__main__":
    for form in FORMS:
        total = Counter[str]()
        for seed in range(int(sys.argv[1])):
            total += counts(form, seed, PARAMS[seed % len(PARAMS)], parts=seed % 2 == 1)
        print(form, dict(total))
