"""Packing in rounds: two jobs on the same GPUs, by hand and at random."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.commands import Start, Stop
from mast_opt.live.loop.engine import Engine
from mast_opt.live.loop.event_log import log_lines
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.loop.speeds import Speeds
from mast_opt.live.loop.state import State
from mast_opt.live.policies.central_shares import Demand, at_least, largest_fraction, least_ratio
from mast_opt.live.policies.pair_table import SharedPace, candidates
from mast_opt.live.policies.preset_rules import TimeSlices
from mast_opt.live.policies.presets import preset_policy
from mast_opt.live.policies.round_params import PackingParams, RoundParams
from mast_opt.live.policies.share_rules import PACKING, Competing
from mast_opt.live.policies.shared_rounds import Rounds, gavel
from mast_opt.live.simulation.driver import simulate
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.problems.job_placement.live_fleet.types import Server, Share

KINDS = ("fast", "slow")
ALONE = {(model, kind, n): 10 if kind == "fast" else 5 for model in ("a", "b") for kind in KINDS for n in (1, 2)}
PACKED = {
    (model, other, kind, n): (8 if kind == "fast" else 2) if model != other else 4
    for model in ("a", "b") for other in ("a", "b") for kind in KINDS for n in (1, 2)
}  # fmt: skip
"""On the same GPUs of the fast type, jobs of two models lose a fifth; two of one model are worth less than turns."""
SPEEDS = Speeds(ALONE, PACKED)
GPU = (Share("s", 1, {0: 1000}),)


def rate(job: str, server: str, other: str, tasks: int) -> int:
    return SPEEDS.rate(spec(job[0]), "fast", spec(other[0]) if other else None)


def spec(model: str, **changed: object) -> JobSpec:
    given = {"tier": 1, "preemptible": True, "model": model, "duration_ms": 80_000, **changed}
    return JobSpec(**given)  # type: ignore[arg-type]


def test_the_host_works_at_the_rate_of_each_time() -> None:
    host = SimulatedHost({"a1": Work(80, 30), "b1": Work(100, 0)}, rate)
    host.carry_out(0, Start("a1", 1, GPU))
    host.answers(0)
    host.carry_out(20, Start("b1", 1, GPU, "a1"))
    assert host.answers(20) == [ev.Started("b1", 1)]
    host.carry_out(70, Stop("a1", 1, ""))
    assert host.answers(70) == [ev.Stopped("a1", 1, 52, 8, 60, 10)]  # checkpoint at 60: 20 + 40 x 0.8
    host.carry_out(80, Start("a1", 2, GPU, "b1"))
    assert host.answers(95) == [ev.Started("a1", 2)]
    assert host.answers(114) == []
    assert host.answers(115) == [ev.Finished("a1", 2, 35)]  # 80 - 52 = 28 at 0.8
    assert host.answers(136) == []
    assert host.answers(137) == [ev.Finished("b1", 1, 117)]  # 40 + 10 + 28 done at 115, 22 alone


def test_two_jobs_on_one_gpu() -> None:
    """Together they take 125 % of the time of one; in turns they would take twice as long."""
    log = played(gavel(RoundParams(packing=True), SPEEDS), {"a1": spec("a"), "b1": spec("b")}, servers=1)
    assert ends(log) == {"a1": 100_000, "b1": 100_000}
    turns = played(gavel(RoundParams(), SPEEDS), {"a1": spec("a"), "b1": spec("b")}, servers=1)
    assert max(ends(turns).values()) == 160_000


def test_a_pair_worth_less_than_turns_is_not_packed() -> None:
    log = played(gavel(RoundParams(packing=True), SPEEDS), {"a1": spec("a"), "a2": spec("a")}, servers=1)
    assert not any(isinstance(stored.event, ev.Shared) for stored in log)


def test_work_that_is_left_is_known_while_gpus_are_shared() -> None:
    """The estimate of a policy, against what the host says in the end."""
    policy = gavel(RoundParams(packing=True, round_s=7, reset_s=0), SPEEDS)
    seen: list[tuple[int, float]] = []
    original = policy._left_s

    def left_s(record: JobRecord, snapshot: object) -> float:
        found = original(record, snapshot)  # type: ignore[arg-type]
        if record.name == "a1":
            seen.append((snapshot.now_ms, found))  # type: ignore[attr-defined]
        return found

    policy._left_s = left_s  # type: ignore[method-assign]
    jobs = {"a1": spec("a"), "b1": spec("b", duration_ms=20_000), "b2": spec("b")}
    played(policy, jobs, servers=1, arrivals={"b2": 60_000})
    assert dict(seen)[28_000] == pytest.approx(57.0)  # 20 s shared with b1 until 25 s, then alone


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", [*PACKING, "throughput", "hierarchical", "gandiva"])
def test_random_jobs(name: str, seed: int) -> None:
    rng = np.random.default_rng([seed, 7])
    jobs = {
        f"{model}{n}": spec(
            model, tasks=int(rng.choice([1, 1, 2])), duration_ms=int(rng.integers(1_000, 90_000)), restart_ms=300,
            checkpoint_ms=700, preemptible=bool(rng.random() < 0.9), namespace=f"n{n % 3}",
        )
        for n, model in enumerate(rng.choice(["a", "b"], 24).tolist())
    }  # fmt: skip
    arrivals = {job: int(rng.integers(0, 60_000)) for job in jobs}

    def run() -> list[ev.Stored]:
        if name in PACKING:
            policy = gavel(RoundParams(objective=name, packing=True, round_s=5, reset_s=10), SPEEDS)
        else:
            policy = preset_policy(name, PackingParams(packing=True, round_s=5, reset_s=10), SPEEDS)
        return played(policy, jobs, servers=3, arrivals=arrivals)

    log = run()
    assert set(ends(log)) == set(jobs)
    assert any(isinstance(stored.event, ev.Shared) for stored in log)
    assert list(log_lines(log)) == list(log_lines(run()))
    faster = {key: speed - 1 for key, speed in PACKED.items()}
    assert check_log(log, durations=True, speeds=ALONE, packed=faster) != ()


def played(
    policy: Rounds, jobs: dict[str, JobSpec], *, servers: int, arrivals: dict[str, int] | None = None
) -> list[ev.Stored]:
    """The log of jobs on servers of one GPU of each type, checked."""
    kinds = {f"{kind}-{n}": kind for kind in KINDS for n in range(servers)}
    if servers == 1:
        kinds = {"s": "fast"}
    fleet = tuple(Server(name, "r", "c", "k", kind, 2 if servers > 1 else 1, 0, 0) for name, kind in kinds.items())
    work = {name: Work(one.duration_ms or 0, one.checkpoint_ms, one.restart_ms) for name, one in jobs.items()}
    host = SimulatedHost(work, lambda job, server, other, tasks: SPEEDS.rate(jobs[job], kinds[server], jobs.get(other)))
    state = State(fleet, tiers=(1,))
    log: list[ev.Stored] = []
    coming = sorted(((arrivals or {}).get(name, 0), name) for name in jobs)
    simulate(
        Engine(state, policy),
        host,
        [(at, ev.Submitted(name, jobs[name])) for at, name in coming],
        on_turn=lambda turn: log.extend(turn.events),
    )
    assert check_log(log, all_end=True, durations=True, speeds=ALONE, packed=PACKED) == ()
    assert state.fleet.running() == ()
    assert set(state.inventory.used_mgpu.values()) == {0}
    return log


def ends(log: list[ev.Stored]) -> dict[str, int]:
    return {stored.event.job: stored.at_ms for stored in log if isinstance(stored.event, ev.Finished)}


# --- shares ---

PAIR = {"pairs": np.array([[0, 1]]), "pair_rate": np.array([[[0.8], [0.8]]])}


def test_shares_of_a_pair() -> None:
    demand = Demand(np.ones((2, 1)), np.ones((2, 1)), np.ones(1), **PAIR)
    assert largest_fraction(demand, np.ones(2)) == pytest.approx(np.array([[0.0], [0.0], [1.0]]), abs=1e-6)
    assert at_least(demand, np.array([0.8, 0.8])) is not None
    assert at_least(demand, np.array([0.9, 0.8])) is None
    ratio = least_ratio(demand, np.array([80.0, 80.0]), np.zeros(2), np.array([160.0, 160.0]))
    assert ratio[2, 0] == pytest.approx(1.0, abs=0.01)  # both end after 100 s


def test_gandiva_packs_where_gpus_are_short() -> None:
    def shares(gpus: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        pairs = np.array([[0, 1], [0, 2], [1, 2]])
        rates = np.array([[[0.6], [0.6]], [[0.9], [0.9]], [[0.6], [0.6]]])
        demand = Demand(np.ones((3, 1)), np.ones((3, 1)), np.array([gpus]), pairs, rates)
        return TimeSlices().shares(Competing(("x", "y", "z"), demand, np.ones(3), np.ones(3))).ravel()

    assert shares(3.0).tolist() == [1, 1, 1, 0, 0, 0]
    assert shares(2.0).tolist() == [0, 1, 0, 0, 1, 0]
    assert shares(1.0).tolist() == [0, 0.5, 0, 0, 0.5, 0]


def records(*specs: JobSpec) -> list[JobRecord]:
    state = State((Server("s", "r", "c", "k", "fast", 8, 64, 512),), tiers=(1,))
    for n, one in enumerate(specs):
        state.apply(state.seq + 1, 0, ev.Submitted(f"j{n}", one))
    return list(state.jobs.values())


def test_candidates() -> None:
    found = records(
        spec("a"), spec("b"), spec("a", tasks=2), spec("b", tasks=2), spec("b", cpu_mcores=1),
        spec("b", preemptible=False), spec("b", mgpu=500), spec(""),
    )  # fmt: skip
    pairs, rates = candidates(found, np.ones((8, 1), np.bool_), KINDS, SPEEDS)
    assert pairs.tolist() == [[0, 1], [2, 3]]
    assert rates.tolist() == [[[0.8, 0.0], [0.8, 0.0]]] * 2
    apart = np.array([[True, False], [False, True]])
    assert len(candidates(found[:2], apart, KINDS, SPEEDS)[0]) == 0


def test_pace_of_an_attempt() -> None:
    one, other = records(spec("a"), spec("b"))
    one.attempt = other.attempt = 1
    pace = SharedPace(SPEEDS)
    pace.note(0, iter([(one, other, "fast")]))
    pace.note(10, iter([]))
    pace.note(30, iter([]))
    assert pace.missed(one) == 10 * 200_000
    one.attempt = 2
    assert pace.missed(one) == 0


def test_what_packing_needs() -> None:
    with pytest.raises(UsageError, match="packing needs aware"):
        RoundParams(packing=True, aware=False)
    with pytest.raises(UsageError, match="fifo packs no jobs"):
        RoundParams(packing=True, objective="fifo")
    with pytest.raises(UsageError, match="pair_speeds"):
        gavel(RoundParams(packing=True), Speeds(ALONE))
