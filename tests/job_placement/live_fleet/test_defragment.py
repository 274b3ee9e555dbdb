"""Plans that move running jobs of a live fleet: what they make room for, their order, budgets, and stale ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import StaleBid, UsageError
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.movable_work import moved_holdings
from mast_opt.problems.job_placement.live_fleet.move_plan import JobMove, MoveBudget, MovePlan
from mast_opt.problems.job_placement.live_fleet.types import Job, Server, Share
from tests.job_placement.operations import new_job, random_operation, small_fleet
from tests.job_placement.reference import assert_exact
from tests.job_placement.test_moves import fleet as instance
from tests.narrowing import some

BIG = Job("big", 0, mgpu=4000)


def fleet(held: Iterable[tuple[str, str, dict[int, int]]], servers: int = 3, placement: str = "fragmentation") -> Fleet:
    """Servers of four GPUs, two to a rack, on which jobs (name, server, GPUs) run; each loses an hour if it moves."""
    live = Fleet(
        [Server(f"s{n}", "east", "c", f"b{n // 2}", "a100", 4, 16, 64) for n in range(servers)],
        tiers=(0, 1),
        placement=placement,
    )
    for name, server, gpus in held:
        job = Job(name, 1, mgpu=sum(gpus.values()), cpu_mcores=2, preemptible=True, gpu_hours_at_risk=1)
        live.adopt(job, (Share(server, 1, gpus),))
    return live


def whole(*devices: int) -> dict[int, int]:
    return dict.fromkeys(devices, 1000)


def scattered() -> Fleet:
    return fleet([("a", "s0", whole(0, 1)), ("b", "s1", whole(0, 1)), ("c", "s2", whole(0, 1))])


def moves(plan: MovePlan) -> list[tuple[str, str, str]]:
    return [(move.job, move.source[0].server, move.target[0].server) for move in plan.moves]


def test_one_move_lets_a_waiting_job_in_and_nothing_happens_before() -> None:
    live = scattered()
    before = live.snapshot_bytes()
    plan = live.defragment(MoveBudget(), [BIG])
    assert moves(plan) == [("a", "s0", "s1")]
    assert (plan.gpu_hours, plan.refused, [bid.job for bid in plan.starts]) == (1, (), [BIG])
    assert live.snapshot_bytes() == before
    live.apply(plan)
    assert live.shares("a") == (Share("s1", 1, whole(2, 3)),)
    assert live.shares("big") == (Share("s0", 1, whole(0, 1, 2, 3)),)
    assert_exact(live._books)


@pytest.mark.parametrize("budget", [MoveBudget(moves=0), MoveBudget(gpu_hours=0.999), MoveBudget(5, 0.999)])
def test_a_budget_that_is_too_small_makes_no_room(budget: MoveBudget) -> None:
    plan = scattered().defragment(budget, [BIG])
    assert (plan.moves, plan.starts, plan.refused) == ((), (), ("big",))
    assert len(scattered().defragment(MoveBudget(1, 1.0), [BIG]).moves) == 1


def test_what_is_scarce_decides_between_moves() -> None:
    """Two small moves of s0 at little loss, or one of s1 at more."""
    live = fleet([("a", "s0", whole(0)), ("b", "s0", whole(1)), ("c", "s1", whole(0, 1)), ("d", "s2", whole(0, 1))])
    hours = {"a": 1.0, "b": 1.0, "c": 3.0}
    for budget, jobs in ((MoveBudget(), "ab"), (MoveBudget(9), "c"), (MoveBudget(9, 3), "ab")):
        assert [move.job for move in live.defragment(budget, [BIG], movable=hours).moves] == list(jobs)
    assert live.defragment(MoveBudget(moves=1), [BIG], movable={"a": 0.0, "b": 0.0}).starts == ()


def test_only_what_may_be_moved_is() -> None:
    live = scattered()
    live.release("a")
    live.adopt(Job("a", 1, mgpu=2000), (Share("s0", 1, whole(0, 1)),))
    assert moves(live.defragment(MoveBudget(), [BIG])) == [("b", "s1", "s0")]
    assert moves(live.defragment(MoveBudget(), [BIG], movable={"c": 0})) == [("c", "s2", "s0")]
    live.cordon("s1")
    assert moves(live.defragment(MoveBudget(), [BIG])) == [("c", "s2", "s0")]


def test_a_gang_gets_several_servers_and_the_more_important_one_comes_first() -> None:
    live = fleet([(f"j{n}", f"s{n}", whole(0, 1)) for n in range(4)], servers=4)
    gang = Job("gang", 0, tasks=2, mgpu=4000)
    plan = live.defragment(MoveBudget(), [replace(BIG, name="late", tier=1), gang])
    assert [bid.job.name for bid in plan.starts] == ["gang"]
    assert (len(plan.moves), plan.refused) == (2, ("late",))
    live.apply(plan)
    assert {share.server for share in live.shares("gang")} | {live.shares(f"j{n}")[0].server for n in range(4)} == {
        f"s{n}" for n in range(4)
    }


def test_a_gang_moves_as_one_and_stays_as_close_as_it_is() -> None:
    live = fleet([("x", "s2", whole(0, 1, 2))], servers=4)
    pair = Job("pair", 1, tasks=2, mgpu=2000, preemptible=True)
    live.adopt(pair, (Share("s0", 1, whole(0, 1)), Share("s1", 1, whole(0, 1))))
    assert live.defragment(MoveBudget(), [Job("three", 0, tasks=3, mgpu=4000)]).refused == ("three",)
    plan = live.defragment(MoveBudget(), [Job("two", 0, tasks=2, mgpu=4000, within="rack")], movable={"pair": 0})
    assert [(move.job, [share.server for share in move.target]) for move in plan.moves] == [("pair", ["s3"])]
    live.apply(plan)
    assert live.shares("pair") == (Share("s3", 2, whole(0, 1, 2, 3)),)


def test_moves_wait_for_one_another() -> None:
    """Only if b leaves s1 is there room for a."""
    live = fleet([("a", "s0", whole(0, 1, 2)), ("b", "s1", whole(0, 1)), ("c", "s2", whole(0, 1))])
    live.adopt(Job("fixed", 0, mgpu=1000), (Share("s0", 1, whole(3)),))
    three = Job("three", 0, mgpu=3000, cpu_mcores=15)
    live.release("fixed")
    plan = live.defragment(MoveBudget(), [three, replace(three, name="second", cpu_mcores=0)])
    taken = {bid.job.name for bid in plan.starts}
    assert taken == {"three", "second"} - set(plan.refused)
    step_by_step(live, plan)


def test_fractions_come_together() -> None:
    live = fleet([("a", "s0", {0: 500}), ("b", "s0", {1: 500})], servers=1)
    plan = live.defragment(MoveBudget(), [Job("three", 0, mgpu=3000)])
    assert [(move.job, move.target) for move in plan.moves] == [("a", (Share("s0", 1, {1: 500}),))]
    step_by_step(live, plan)


PARTS = [("a", "s0", 650), ("b", "s0", 230), ("c", "s1", 550), ("d", "s1", 320)]


def of_one_gpu(parts: Iterable[tuple[str, str, int]] = PARTS, cores: int = 16, other: str = "a100") -> Fleet:
    """Two servers of one GPU, of which 0.12 and 0.13 are free; each job loses an hour if it moves."""
    live = Fleet(
        [Server(f"s{n}", "east", "c", "b", kind, 1, cores, 64) for n, kind in enumerate(("a100", other))], tiers=(0, 1)
    )
    for name, server, mgpu in parts:
        job = Job(name, 1, mgpu=mgpu, cpu_mcores=4, preemptible=True, gpu_hours_at_risk=1)
        live.adopt(job, (Share(server, 1, {0: mgpu}),))
    return live


def test_two_jobs_change_places_where_no_free_place_is_large_enough() -> None:
    live, waits = of_one_gpu(), Job("waits", 0, mgpu=220)
    plan = live.defragment(MoveBudget(), [waits])
    assert sorted(moves(plan)) == [("b", "s0", "s1"), ("d", "s1", "s0")]
    assert (len({move.step for move in plan.moves}), plan.gpu_hours) == (1, 2)
    step_by_step(live, plan)
    live.apply(plan)
    assert live.shares("waits") == (Share("s1", 1, {0: 220}),)
    assert_exact(live._books)


@pytest.mark.parametrize(
    ("live", "budget", "mgpu"),
    [
        (of_one_gpu(), MoveBudget(exchanges=0), 220),
        (of_one_gpu(), MoveBudget(moves=1), 220),
        (of_one_gpu(), MoveBudget(gpu_hours=1.5), 220),
        (of_one_gpu(), MoveBudget(), 251),
        (of_one_gpu(other="h100"), MoveBudget(), 220),
        (of_one_gpu(cores=9), MoveBudget(), 220),
    ],
)
def test_jobs_do_not_change_places_where_that_is_not_allowed(live: Fleet, budget: MoveBudget, mgpu: int) -> None:
    plan = live.defragment(budget, [Job("waits", 0, mgpu=mgpu, cpu_mcores=2)])
    assert (plan.moves, plan.starts, plan.refused) == ((), (), ("waits",))


def test_half_of_an_exchange_has_no_room() -> None:
    live = of_one_gpu()
    plan = live.defragment(MoveBudget(), [Job("waits", 0, mgpu=220)])
    before = live.snapshot_bytes()
    apart = tuple(replace(move, step=n) for n, move in enumerate(plan.moves))
    for wrong in (apart, plan.moves[:1], plan.moves[1:]):
        with pytest.raises(UsageError, match="has no room"):
            live.apply(replace(plan, moves=wrong))
    assert live.snapshot_bytes() == before


def test_a_job_leaves_cores_to_one_that_waits() -> None:
    """The GPU of s0 has room for it, its cores do not: a with eight cores and c with two change places."""
    live = Fleet([Server(f"s{n}", "east", "c", "b", "a100", 1, 8, 64) for n in range(2)], tiers=(0, 1))
    for name, server, mgpu, cores in (("a", "s0", 500, 8), ("c", "s1", 500, 2), ("e", "s1", 500, 0)):
        job = Job(name, 1, mgpu=mgpu, cpu_mcores=cores, preemptible=name != "e")
        live.adopt(job, (Share(server, 1, {0: mgpu}),))
    plan = live.defragment(MoveBudget(), [Job("waits", 0, mgpu=500, cpu_mcores=6)])
    assert sorted(moves(plan)) == [("a", "s0", "s1"), ("c", "s1", "s0")]
    step_by_step(live, plan)


@pytest.mark.parametrize("placement", ["fragmentation", "best-fit"])
def test_without_waiting_jobs_free_capacity_is_gathered(placement: str) -> None:
    held = [(f"j{n}", f"s{n}", whole(0, 1) if n < 4 else whole(0, 1, 2, 3)) for n in range(44)]
    live = fleet(held, 44, placement)
    plan = live.defragment(MoveBudget(moves=1))
    assert len(plan.moves) == 1
    assert plan.value_gained > 0
    live.apply(plan)
    assert sorted(len(live.jobs_on(f"s{n}")) for n in range(4)) == [0, 1, 1, 2]
    live.apply(live.defragment(MoveBudget()))
    assert sorted(len(live.jobs_on(f"s{n}")) for n in range(4)) == [0, 0, 2, 2]
    assert live.defragment(MoveBudget()).moves == ()


def test_a_plan_is_stale_once_what_it_touches_has_changed() -> None:
    live = fleet([*((name, f"s{n}", whole(0, 1)) for n, name in enumerate("abc")), ("d", "s3", whole(0))], 4)
    plan = live.defragment(MoveBudget(), [BIG])
    touched = {share.server for move in plan.moves for share in (*move.source, *move.target)}
    assert touched == {"s0", "s1"}
    with live.trial():
        live.release("d")
        live.apply(plan)
    for change, name in ((live.release, "b"), (live.cordon, "s1"), (live.release, "a")):
        with live.trial():
            change(name)
            before = live.snapshot_bytes()
            with pytest.raises(StaleBid, match="older state"):
                live.apply(plan)
            assert live.snapshot_bytes() == before
    with live.trial():
        live.adopt(BIG, (Share("s3", 1, whole(0, 1, 2, 3)),))
        with pytest.raises(StaleBid, match="older state"):
            live.apply(plan)
    with live.trial():
        inner = live.defragment(MoveBudget(), [BIG])
    with pytest.raises(StaleBid, match="trial that has ended"):
        live.apply(inner)
    with pytest.raises(UsageError, match="the plan is another fleet's"):
        scattered().apply(plan)
    live.apply(plan)


def test_a_plan_that_was_changed_is_refused_and_changes_nothing() -> None:
    live = scattered()
    plan = live.defragment(MoveBudget(), [BIG])
    (move,) = plan.moves
    before = live.snapshot_bytes()
    for wrong, words in (
        (replace(move, job="x"), "no job called x runs"),
        (replace(move, source=move.target), "not where the plan has it"),
        (replace(move, target=(Share("s9", 1, whole(0, 1)),)), "no server called s9"),
        (replace(move, target=(Share("s1", 2, whole(2, 3)),)), "not all of its 1 tasks"),
        (replace(move, target=(Share("s1", 1, whole(2)),)), "need 2000 milli-GPUs"),
        (replace(move, target=(Share("s1", 1, whole(0, 1)),)), "has no room"),
    ):
        with pytest.raises(UsageError, match=words):
            live.apply(replace(plan, moves=(wrong,)))
    with pytest.raises(UsageError, match="has no room"):
        live.apply(replace(plan, moves=()))
    assert live.snapshot_bytes() == before


def test_bad_questions_are_refused() -> None:
    live = scattered()
    for budget, waiting, movable, words in (
        (MoveBudget(), [Job("a", 0)], None, "a job called a runs already"),
        (MoveBudget(), [BIG, BIG], None, "each job once"),
        (MoveBudget(), [Job("j", 7)], None, "has tier 7"),
        (MoveBudget(), [], {"x": 1.0}, "no job called x runs"),
    ):
        with pytest.raises(UsageError, match=words):
            live.defragment(budget, waiting, movable=movable)
    with live.round(), pytest.raises(UsageError, match="only between rounds"):
        live.defragment(MoveBudget())


def step_by_step(live: Fleet, plan: MovePlan) -> None:
    """Carry a plan out step by step, as hosts report it; no server may have too much on it after any of them."""
    over = live.over_booked()
    with live.trial():
        for _, step in groupby(plan.moves, key=lambda move: move.step):
            for move in step:
                job = live.job(move.job)
                assert job.name in live.running()
                assert live.shares(move.job) == move.source
                books, running = live._books, live._books.running[move.job]
                books.swap(replace(running, shares=move.target), moved_holdings(running, move.target, books), False)
            assert live.over_booked() == over
        for bid in plan.starts:
            assert bid.victims == ()
            live._commit(bid)
    with live.trial():
        live.apply(plan)
        assert_exact(live._books)


def _stays_near(live: Fleet, move: JobMove) -> bool:
    """Whether a job keeps its region and type, and is no further apart than it was."""
    servers = live._books.servers
    now, then = ([servers[share.server] for share in shares] for shares in (move.source, move.target))
    kept = {(server.region, server.gpu_type) for server in (*now, *then)}
    spread = [(len({(s.cluster, s.rack) for s in place}) > 1, len(place) > 1) for place in (now, then)]
    return len(kept) == 1 and spread[1] <= spread[0] and len({s.cluster for s in then}) == 1


@pytest.mark.parametrize("seed", [2, 7, 4, 8])
def test_plans_for_random_fleets_hold_every_limit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    live = small_fleet(rng)
    moved = started = 0
    for number in range(60):
        random_operation(rng, live, number)
        waiting = [new_job(rng, f"waits-{number}-{at}") for at in range(int(rng.integers(4)))]
        most, hours = (None if rng.random() < 0.5 else int(rng.integers(5)) for _ in range(2))
        budget = MoveBudget(most, hours)
        before = live.snapshot_bytes()
        alike = [name for name in live.running() if not live.job(name).parts]
        movable = None if rng.random() < 0.3 else dict.fromkeys(alike, 1.0)
        plan = live.defragment(budget, waiting, movable=movable)
        assert live.snapshot_bytes() == before
        assert plan == live.defragment(budget, waiting, movable=movable)
        assert len(plan.moves) <= (99 if budget.moves is None else budget.moves)
        assert plan.gpu_hours <= (1e9 if budget.gpu_hours is None else budget.gpu_hours) + 1e-9
        assert len({move.job for move in plan.moves}) == len(plan.moves)
        assert all(_stays_near(live, move) for move in plan.moves)
        assert {bid.job.name for bid in plan.starts} | set(plan.refused) == {job.name for job in waiting}
        step_by_step(live, plan)
        moved += len(plan.moves)
        started += len(plan.starts)
        if rng.random() < 0.3:
            live.apply(plan)
            assert_exact(live._books)
    assert moved > 5
    assert started > 20


def random_instance(rng: np.random.Generator) -> mast_opt.JobPlacement:
    """Up to four jobs on the three servers of one region; one job waits for three or four GPUs."""
    held, free = list[tuple[int, int, int, int, int, int]](), [4, 4, 4]
    while len(held) < 4 and sum(free) > 5:
        s, gpus = int(rng.integers(3)), int(rng.choice([1, 1, 2, 3]))
        if free[s] >= gpus + 1:
            held.append((len(held), s, 1, gpus * 1000, 1000, 1))
            free[s] -= gpus
    return instance(held, wanted=int(rng.choice([3000, 4000])))


def test_nearly_all_that_an_exact_solver_lets_in_is_let_in() -> None:
    rng = np.random.default_rng(5)
    best = ours = fewest = made = 0
    for _ in range(25):
        problem = random_instance(rng)
        verdict = some(mast_opt.solve(problem, "highs", threads=1).verdict)
        live = Fleet.of(problem)
        plan = live.defragment(MoveBudget(), [Job.of(problem, 0)], movable=dict.fromkeys(problem.running.labels, 1.0))
        best += int(verdict.metrics["admitted_jobs"])
        ours += len(plan.starts)
        if plan.starts:
            fewest += int(verdict.metrics["moved_jobs"])
            made += len(plan.moves)
    assert best > 10
    assert ours >= 0.9 * best
    assert made <= 1.1 * fewest
