"""Operations of a live fleet that are interrupted at any step: they have done everything or nothing.

``python -m tests.job_placement.live_fleet.test_interrupted SEED OPERATIONS`` runs so many random ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from inspect import CO_GENERATOR
from types import FrameType
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import UsageError
from mast_opt.core.ledger import Ledger
from mast_opt.core.ranks import Reclaim
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.move_plan import MoveBudget
from mast_opt.problems.job_placement.live_fleet.types import Job, Part, Server, Share
from tests.job_placement.fleets import bid_for
from tests.job_placement.operations import random_operation, small_fleet
from tests.job_placement.reference import assert_exact

PACKAGE = str(mast_opt.__path__[0])
Operation = Callable[[Fleet], Callable[[], object]]


class Interruption:
    """Raises MemoryError at one step of the package: a call, a line or a return.

    Args:
        at: how many steps go on before; None to count them only.
    """

    def __init__(self, at: int | None = None) -> None:
        self.at, self.seen = at, 0

    def __enter__(self) -> Interruption:
        self._before = sys.gettrace()
        sys.settrace(self._step)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(self._before)

    def _step(self, frame: FrameType, event: str, value: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE) or code.co_name == "<genexpr>" or event == "exception":
            return self._step
        if event == "return" and code.co_flags & CO_GENERATOR:  # an error there skips the handlers around a yield
            return self._step
        self.seen += 1
        if self.at is not None and self.seen > self.at:
            sys.settrace(self._before)
            raise MemoryError(f"{frame.f_code.co_name} {frame.f_lineno} {event}")
        return self._step


def assert_consistent(fleet: Fleet) -> None:
    """Everything is as it would be recomputed from the running jobs; outside rounds."""
    books = fleet._books
    assert_exact(books)
    again = Ledger(books.ledger.quotas)
    for name in fleet.running():
        one = books.running[name]
        amounts = books.amounts(one.shares) if one.job.tenant else {}
        again.add(name, one.job.tenant, books.tiers.index(one.job.tier), one.number, amounts)
        assert books.name[books.place[name]] == name
    assert len(books.place) == len(books.name) == len(books.running)
    for name in fleet.running():
        assert again.standing(name) == books.ledger.standing(name)
        assert fleet.is_over_quota(name) == bool(again.standing(name))
        tenant = fleet.job(name).tenant
        assert (again.free(tenant), again.use(tenant)) == (books.ledger.free(tenant), books.ledger.use(tenant))


SERVERS = [Server(f"s{n}", "r", f"c{n % 2}", f"b{n}", "AB"[n % 2], 4, 40, 40) for n in range(4)]


def crowded(*, calm: bool = False) -> Fleet:
    """A fleet of four servers, most of it in use by work within and beyond quotas that may be stopped."""
    fleet = Fleet(SERVERS, tiers=(0, 1, 2), quotas={"t": 6000, "u": 3000}, replicas={"d": ("r",)})
    for number in range(7):
        name, tenant = f"j{number}", "tuv"[number % 3]
        job = Job(name, 1 + number % 2, mgpu=2000, tenant=tenant, preemptible=not calm, gpu_hours_at_risk=number)
        fleet.place_and_commit(job)
    fleet.place_and_commit(Job("gang", 2, tasks=2, mgpu=500, cpu_mcores=3, tenant="u", within="server"))
    fleet.set_at_risk({"j0": 1.5})
    return fleet


URGENT = Job("urgent", 0, tasks=2, mgpu=4000, tenant="v")
PARTS = Job("parts", 0, tenant="v", within="region", parts=(Part("a", mgpu=3000), Part("b", 2, mgpu=1000)))
CLOSE = replace(PARTS, within="rack", parts=(Part("a", mgpu=3000), Part("b", mgpu=500)))


def on(server: str, tasks: int = 1) -> tuple[Share, ...]:
    return (Share(server, tasks, {0: 1000 * tasks}),)


def commit(job: Job) -> Operation:
    return lambda fleet: partial(fleet.commit, bid_for(fleet, job))


OPERATIONS: dict[str, Operation] = {
    "commit": commit(Job("small", 1, mgpu=500, cpu_mcores=2, tenant="v")),
    "commit with victims": commit(URGENT),
    "commit parts": commit(PARTS),
    "place and commit": lambda fleet: partial(fleet.place_and_commit, URGENT),
    "ask for parts": lambda fleet: partial(fleet.place, PARTS),
    "ask for parts in a rack": lambda fleet: partial(fleet.place, CLOSE, avoid=["s3"]),
    "all bids for parts": lambda fleet: partial(fleet.bids, CLOSE),
    "adopt": lambda fleet: partial(fleet.adopt, Job("new", 0, mgpu=1000, tenant="t"), on("s0")),
    "adopt what runs": lambda fleet: partial(fleet.adopt, Job("j1", 0, mgpu=1000, tenant="t"), on("s2")),
    "count": lambda fleet: partial(fleet.count_arrival, URGENT),
    "grow": lambda fleet: partial(fleet.resize, "gang", 3),
    "shrink": lambda fleet: partial(fleet.resize, "gang", 1),
    "release": lambda fleet: partial(fleet.release, "j0"),
    "risk": lambda fleet: partial(fleet.set_at_risk, {"j1": 9.0, "j2": 2.0}),
    "fail": lambda fleet: partial(fleet.fail, "s0"),
    "cordon": lambda fleet: partial(fleet.cordon, "s1"),
    "uncordon": lambda fleet: partial(fleet.uncordon, "s3"),
    "drain": lambda fleet: partial(fleet.drain, "s1"),
    "add": lambda fleet: partial(fleet.add_servers, [replace(SERVERS[0], name="new", gpu_type="C")]),
    "remove": lambda fleet: partial(fleet.remove_server, "s3"),
    "replace": lambda fleet: partial(fleet.replace_server, replace(SERVERS[3], gpus=6)),
    "other cores": lambda fleet: partial(fleet.set_capacity, "s0", cpu_mcores=50, gpus=5),
    "wider": lambda fleet: partial(fleet.set_capacity, "s3", gpus=8),
    "replicas": lambda fleet: partial(fleet.set_replicas, "d", ()),
    "lower quota": lambda fleet: partial(fleet.set_quota, "t", 2000),
    "quota of a type": lambda fleet: partial(fleet.set_quota, "v", 1000, "A"),
    "no quota": lambda fleet: partial(fleet.set_quota, "u", None),
    "moves": lambda fleet: partial(
        fleet.apply,
        fleet.defragment(MoveBudget(), [Job("wide", 1, mgpu=4000)], movable=dict.fromkeys(fleet.running(), 0.0)),
    ),
}
PRELUDE: dict[str, Callable[[Fleet], object]] = {
    "uncordon": lambda fleet: fleet.cordon("s3"),
    "remove": lambda fleet: fleet.fail("s3"),
    "replace": lambda fleet: fleet.fail("s3"),
    "moves": lambda fleet: [fleet.release(name) for name in ("j1", "j2", "j4", "j5", "gang")],
}


def prepared(what: str) -> Fleet:
    fleet = crowded()
    PRELUDE.get(what, Fleet.running)(fleet)
    fleet.snapshot_bytes()
    return fleet


def taken(fleet: Fleet, operation: Operation, at: int | None) -> int:
    """Do an operation, interrupted after so many steps; returns how many there were."""
    step = Interruption(at)
    with suppress(MemoryError, UsageError):
        call = operation(fleet)
        with step:
            call()
    return step.seen


LEARN: dict[str, tuple[Callable[[Fleet], None], float]] = {
    "set": (lambda fleet: fleet.set_at_risk({"j1": 9.0, "j2": 2.0}), 9.0),
    "looked at": (lambda fleet: fleet.look_at_work(["r"], 3_600_001), 2.0),
}
ASK: dict[str, Callable[[Fleet], object]] = {"one": lambda fleet: fleet.job("j1"), "all": Fleet.snapshot_bytes}


@pytest.mark.parametrize("learn", LEARN)
@pytest.mark.parametrize("ask", ASK)
def test_what_is_at_risk_is_not_lost_when_who_asks_is_interrupted(learn: str, ask: str) -> None:
    """The engine knows it first, and the jobs when somebody asks for them."""
    tell, gpu_hours = LEARN[learn]
    for at in range(60):
        fleet = crowded()
        for name in ("j1", "j2"):
            fleet.set_work(name, 1, 1 << 40)
        tell(fleet)
        with suppress(MemoryError), Interruption(at) as step:
            ASK[ask](fleet)
        assert_consistent(fleet)
        assert fleet.job("j1").gpu_hours_at_risk == gpu_hours
        if step.seen <= at:
            break


STEPS = [pytest.param(1, marks=pytest.mark.second_tier, id="every step"), pytest.param(149, id="some steps")]


@pytest.mark.parametrize("what", OPERATIONS)
@pytest.mark.parametrize("every", STEPS)
def test_an_interrupted_operation_has_done_everything_or_nothing(what: str, every: int) -> None:
    operation, fleet, outcomes = OPERATIONS[what], prepared(what), set()
    before, steps = fleet.snapshot_bytes(), taken(fleet, operation, None)
    done, fleet = fleet.snapshot_bytes(), prepared(what)
    for at in range(0, steps, every):
        taken(fleet, operation, at)
        assert_consistent(fleet)
        now = fleet.snapshot_bytes()
        assert now in (before, done), (at, steps)
        outcomes.add(now)
        if now != before:
            fleet = prepared(what)
    assert before in outcomes


@pytest.mark.parametrize("what", OPERATIONS)
@pytest.mark.parametrize("in_round", [False, True])
@pytest.mark.parametrize("every", STEPS)
def test_an_operation_that_is_interrupted_in_a_trial_or_a_round(what: str, in_round: bool, every: int) -> None:
    fleet, asked = prepared(what), Job("asked", 0, mgpu=3000, tenant="u")
    before = fleet.snapshot_bytes()

    def outcome(at: int | None, *, act: bool = True) -> tuple[tuple[object, ...], int]:
        steps = 0
        with fleet.trial():
            with fleet.round() if in_round else nullcontext():
                fleet.place_and_commit(Job("first", 1, mgpu=1000, tenant="t"))
                if act:
                    steps = taken(fleet, OPERATIONS[what], at)
                fleet.place_and_commit(Job("next", 1, mgpu=1000, tenant="t"))
                answer = fleet.place(asked)
            assert_consistent(fleet)
            found = fleet.snapshot_bytes(), getattr(answer, "shares", None), getattr(answer, "victims", None)
        assert fleet.snapshot_bytes() == before
        return found, steps

    undone, (done, steps) = outcome(None, act=False)[0], outcome(None)
    for at in range(0, steps, every):
        assert outcome(at)[0] in (undone, done), (at, steps)
    assert_consistent(fleet)


def test_a_job_that_is_resized_has_at_risk_what_its_gpus_had() -> None:
    """Nobody has asked since that was looked at, so that only the engine knows it."""
    fleet = crowded(calm=True)
    fleet.set_work("gang", 1, 1 << 40)
    fleet.look_at_work(["r"], 3_600_001)
    fleet.resize("gang", 1)
    assert fleet.job("gang").gpu_hours_at_risk == 1.0
    fleet.look_at_work(["r"], 3_600_001)
    assert fleet.job("gang").gpu_hours_at_risk == 0.5
    assert_consistent(fleet)


def test_jobs_that_are_put_in_order_in_a_trial_are_undone() -> None:
    """A new layout keeps the tables of before; what is released then is released in them, whatever replaces them."""
    fleet = crowded()
    before = fleet.snapshot_bytes()
    with fleet.trial():
        fleet.add_servers([replace(SERVERS[0], name="new")])
        fleet.release("j1")
        with fleet.trial():
            fleet.release("j0")
        fleet.running()
    assert fleet.snapshot_bytes() == before
    assert_consistent(fleet)


def test_a_round_that_is_interrupted_at_any_step_has_ended() -> None:
    fleet = crowded()
    before, step = fleet.snapshot_bytes(), Interruption()
    with step, fleet.round():
        pass
    for at in range(step.seen):
        with suppress(MemoryError), Interruption(at), fleet.round():
            pass
        assert fleet.snapshot_bytes() == before, "only between rounds"
        assert_consistent(fleet)


def change_tree(rng: np.random.Generator, fleet: Fleet) -> None:
    """Another quota, in all or of a type, of a tenant or of the group above it, and now and then another rule."""
    kind = str(rng.choice(["a100", "h100"])) if rng.random() < 0.6 else None
    mgpu = int(rng.integers(0, 12)) * 1000
    borrowing = int(rng.integers(0, 6)) * 1000 if rng.random() < 0.4 else None
    lending = int(rng.integers(0, mgpu + 1)) if rng.random() < 0.4 else None
    tenant = str(rng.choice(["group", "lab", "shop"]))
    if fleet.quotas.limits("group"):
        parent = "" if tenant == "group" or rng.random() < 0.2 else "group"
        fleet.set_quota(tenant, mgpu, kind, borrowing=borrowing, lending=lending, parent=parent)
    else:
        fleet.set_quota("group", mgpu)
    if rng.random() < 0.1:
        fleet.set_reclaim(str(rng.choice(list(Reclaim))))


def look_at_work(rng: np.random.Generator, fleet: Fleet, number: int) -> None:
    """Say since when some jobs work, and look at what they would lose now."""
    for name in fleet.running()[:: int(rng.integers(1, 4))]:
        fleet.set_work(name, max(-1, int(rng.integers(-number, number + 1)) * 60_000), int(rng.integers(4)) * 3_600_000)
    fleet.look_at_work(sorted(fleet._books.regions)[: int(rng.integers(1, 3))], number * 60_000)


def random_run(seed: int, operations: int) -> int:
    """Random operations on typed trees of quotas, every other one to be interrupted at a random step; returns how many
    were. What is left is consistent, and trials and rounds around it end as they should."""
    rng, interrupted = np.random.default_rng(seed), 0
    fleet = small_fleet(rng)
    for number in range(operations):
        with Interruption(int(rng.integers(3000))) if rng.random() < 0.5 else nullcontext():
            try:
                if number % 25 == 24:
                    change_tree(rng, fleet)
                elif number % 25 == 12:
                    look_at_work(rng, fleet, number)
                else:
                    random_operation(rng, fleet, number)
            except MemoryError:
                interrupted += 1
        if number % 5 == 0:
            assert_consistent(fleet)
        if number % 10_000 == 9999:
            print(seed, number + 1, interrupted, flush=True)
    assert_consistent(fleet)
    return interrupted


def test_random_operations_that_are_interrupted() -> None:
    assert random_run(51, 600) > 50


if __name__ == "__main__":
    print(random_run(int(sys.argv[1]), int(sys.argv[2])))
