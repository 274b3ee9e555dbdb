"""The order of moves: it ends at the plan, and on the way nobody falls below its guarantee but as the relief says."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import mast_opt
from mast_opt.planner.report.change_sections import moves_section
from mast_opt.problems.server_assignment import Plan, ServerAssignment
from mast_opt.problems.server_assignment.formulation.formulation import base
from mast_opt.problems.server_assignment.migration.planner import Guarantees, Steps, _mixtures, migration_plan, steps
from mast_opt.problems.server_assignment.problem import EMBEDDED, NONE, POOL, SHARED
from mast_opt.problems.server_assignment.verification.measures import Measure
from tests.examples import examples
from tests.server_assignment.brute import Brute
from tests.server_assignment.strategies import plans, problems
from tests.server_assignment.support import proven


def shorts(brute: Brute, assigned: list[int]) -> dict[str, int]:
    return {rule[1]: int(degree) for rule, degree in brute.degrees(assigned).items() if rule[0] == "short"}


def carry_out(problem: ServerAssignment, plan: Plan, found: Steps) -> None:
    """Wave by wave, what happens in a wave in any order: each server leaves, is nobody's for a while, and arrives."""
    brute, nobody, rng = Brute(problem), len(problem.reservations), np.random.default_rng(len(found.server))
    now = problem.servers.owner.tolist()
    before, after = shorts(brute, now), shorts(brute, plan.reservation.tolist())
    allowed = {name: max(before[name], after[name]) for name in before}
    for deadlock in found.deadlocks:
        name = problem.reservations.labels[deadlock.reservation]
        allowed[name] = max(allowed[name], max(before[name], after[name]) + deadlock.below_mrru)

    worst: dict[str, int] = {}

    def check() -> None:
        short = shorts(brute, now)
        worst.update({name: max(worst.get(name, 0), amount) for name, amount in short.items()})
        assert all(short[name] <= allowed[name] for name in short), (short, allowed)

    assert found.wave.tolist() == sorted(found.wave.tolist())
    for wave in range(found.waves):
        rows = np.flatnonzero(found.wave == wave).tolist()
        assert rows
        left: set[int] = set()
        worst.clear()
        for row in rng.permutation(rows + rows).tolist():
            server = int(found.server[row])
            if row not in left:
                assert now[server] == found.source[row]
                now[server] = nobody
                left.add(row)
            else:
                now[server] = int(found.target[row])
            check()
        for deadlock in found.deadlocks:
            if deadlock.wave == wave and not deadlock.loan:
                name = problem.reservations.labels[deadlock.reservation]
                assert worst[name] == max(before[name], after[name]) + deadlock.below_mrru
    assert now == plan.reservation.tolist()
    own = ~found.loan
    assert len(set(found.server[own].tolist())) == own.sum() == (plan.reservation != problem.servers.owner).sum()


@examples(150)
@given(data=st.data(), problem=problems(servers=9))
def test_any_plan_can_be_carried_out(data: st.DataObject, problem: ServerAssignment) -> None:
    plan: Plan = data.draw(plans(problem))
    found = steps(problem, plan)
    event(f"deadlocks: {min(len(found.deadlocks), 2)}, loans: {any(lock.loan for lock in found.deadlocks)}")
    carry_out(problem, plan, found)


@examples(300)
@given(data=st.data(), problem=problems(servers=10))
def test_where_nothing_is_to_spare_rings_are_broken(data: st.DataObject, problem: ServerAssignment) -> None:
    """Everything that today guarantees is asked, and servers change hands at random."""
    problem = replace(
        problem,
        reservations=replace(
            problem.reservations, asked_mrru=np.maximum(Measure(problem, problem.servers.owner).guaranteed, 0)
        ),
    )
    plan = Plan(np.array(data.draw(st.permutations(problem.servers.owner.tolist())), np.int64))
    found = steps(problem, plan)
    loans = sum(bool(lock.loan) for lock in found.deadlocks)
    event(f"falls: {min(len(found.deadlocks) - loans, 2)}, loans: {min(loans, 2)}")
    carry_out(problem, plan, found)


def smaller_loan(problem: ServerAssignment, plan: Plan, found: Steps, at: int) -> int | None:
    """The fewest servers that nobody needs which, lent to one of a deadlock's ring, let a waiting server start; by
    trying every set of them."""
    brute, nobody, deadlock = Brute(problem), len(problem.reservations), found.deadlocks[at]
    now = problem.servers.owner.tolist()
    before, after = shorts(brute, now), shorts(brute, plan.reservation.tolist())
    allowed = {name: max(before[name], after[name]) for name in before}
    for row in np.flatnonzero(found.wave < deadlock.wave).tolist():
        now[int(found.server[row])] = int(found.target[row])
    lent = {int(server) for server in found.server[found.loan & (found.wave < deadlock.wave)]}
    own = np.flatnonzero(~found.loan & (found.wave >= deadlock.wave)).tolist()
    spare = [s for s, q in enumerate(now) if q == nobody and plan.reservation[s] == nobody and s not in lent]
    if len(spare) > 6:
        return None

    def kept(assigned: list[int]) -> bool:
        return all(short <= allowed[name] for name, short in shorts(brute, assigned).items())

    for count in range(1, len(spare) + 1):
        for loan, who in itertools.product(itertools.combinations(spare, count), deadlock.ring):
            with_loan = [who if s in loan else q for s, q in enumerate(now)]
            if not kept(with_loan):
                continue
            for row in own:
                gone, come = [*with_loan], [*with_loan]
                gone[int(found.server[row])] = nobody
                come[int(found.server[row])] = int(found.target[row])
                if kept(gone) and kept(come) and now[int(found.server[row])] in (who, *deadlock.ring):
                    return count
    return 0


@examples(150)
@given(data=st.data(), problem=problems(servers=9))
def test_no_smaller_loan_would_do(data: st.DataObject, problem: ServerAssignment) -> None:
    """Nobody shares a buffer, and nothing is above what its owner needs, so that rings occur."""
    buffer = np.array([NONE if kind in (SHARED, POOL) else kind for kind in problem.reservations.buffer.tolist()])
    problem = replace(problem, reservations=replace(problem.reservations, buffer=buffer))
    problem = replace(
        problem,
        reservations=replace(
            problem.reservations, asked_mrru=np.maximum(Measure(problem, problem.servers.owner).guaranteed, 0)
        ),
    )
    plan = Plan(np.array(data.draw(st.permutations(problem.servers.owner.tolist())), np.int64))
    found = steps(problem, plan)
    carry_out(problem, plan, found)
    first = next((at for at, one in enumerate(found.deadlocks) if one.wave == found.deadlocks[0].wave), None)
    if first is None:
        return
    fewest = smaller_loan(problem, plan, found, first)
    loan = len(found.deadlocks[first].loan)
    event(f"loan: {loan}, kinds: {len(set(problem.servers.type[list(found.deadlocks[first].loan)].tolist()))}")
    assert fewest is None or fewest == loan


def test_mixtures_are_every_choice_of_so_many_servers() -> None:
    left = {(0, 0): 3, (0, 1): 1, (2, 0): 2}
    for count in range(7):
        mixtures = [tuple(sorted(mixture.items())) for mixture in _mixtures(left, count)]
        choices = [dict(zip(left, numbers)) for numbers in itertools.product(range(4), range(2), range(3))]
        expected = [
            tuple(sorted((cell, n) for cell, n in one.items() if n)) for one in choices if sum(one.values()) == count
        ]
        assert sorted(mixtures) == sorted(expected)


def test_a_loan_mixes_types_where_one_is_not_enough() -> None:
    """ads lacks 1000 while its server is away; the two spare ones are of two types, worth 500 each."""
    problem = swap(free=2)
    value = np.array([[1000, 1000, 500, 500], [1000, 1000, 0, 0]])
    problem = replace(
        problem,
        types=("a", "b", "c", "d"),
        servers=replace(problem.servers, type=np.array([0, 1, 2, 3])),
        reservations=replace(problem.reservations, value_mrru=value),
    )
    plan = Plan(np.array([1, 0, 2, 2]))
    found = steps(problem, plan)
    (deadlock,) = found.deadlocks
    assert (deadlock.reservation, sorted(deadlock.loan), deadlock.below_mrru) == (0, [2, 3], 0)
    carry_out(problem, plan, found)
    more = swap(free=3)
    value = np.array([[1000, 1000, 500, 500, 100], [1000, 1000, 0, 0, 0]])
    more = replace(
        more,
        types=("a", "b", "c", "d", "e"),
        servers=replace(more.servers, type=np.array([0, 1, 2, 3, 4])),
        reservations=replace(more.reservations, value_mrru=value),
    )
    (deadlock,) = steps(more, Plan(np.array([1, 0, 2, 2, 2]))).deadlocks
    assert (deadlock.reservation, sorted(deadlock.loan), deadlock.below_mrru) == (0, [2, 3], 0)


@pytest.mark.parametrize("first", [0, 320, 943, 1200])
def test_pools_and_those_that_share_them_wait_for_one_another_too(first: int) -> None:
    for seed in range(first, first + 12):
        rng = np.random.default_rng(seed)
        sizes = {"servers": int(rng.integers(8, 40)), "reservations": int(rng.integers(3, 7)), "datacenters": 2}
        problem = mast_opt.generate("server-assignment", "features", seed=seed, **sizes)
        problem = replace(
            problem,
            reservations=replace(
                problem.reservations, asked_mrru=np.maximum(Measure(problem, problem.servers.owner).guaranteed, 0)
            ),
        )
        after = problem.servers.owner.copy()
        some = rng.choice(len(after), rng.integers(2, len(after)), replace=False)
        after[some] = after[rng.permutation(some)]
        carry_out(problem, Plan(after), steps(problem, Plan(after)))


@examples(25)
@given(problem=problems(servers=9, default_weights=True))
def test_optimal_plans_can_be_carried_out(problem: ServerAssignment) -> None:
    formulation = base(problem)
    result = proven(formulation.mip)
    assert result.x is not None
    plan = formulation.decode(result.x)
    carry_out(problem, plan, steps(problem, plan))


def swap(free: int) -> ServerAssignment:
    """Two claims without buffers that each hold one server and shall exchange them; next to them free servers."""
    fleet: ServerAssignment = mast_opt.generate(
        "server-assignment", "fresh", servers=2 + free, reservations=2, datacenters=1
    )
    width = len(fleet.types)
    return replace(
        fleet,
        reservations=replace(
            fleet.reservations,
            labels=("ads", "feed"),
            buffer=np.full(2, NONE),
            asked_mrru=np.array([1000, 1000]),
            spread_limited=np.zeros(2, np.bool_),
            value_mrru=np.full((2, width), 1000),
        ),
        servers=replace(fleet.servers, type=np.array([0, 1] + [0] * free), owner=np.array([0, 1] + [2] * free)),
        affinities=replace(fleet.affinities, reservation=np.zeros(0, np.int64)),
    )


def test_a_ring_is_broken_by_a_loan() -> None:
    problem = swap(free=1)
    plan = Plan(np.array([1, 0, 2]))
    found = steps(problem, plan)
    (deadlock,) = found.deadlocks
    assert sorted(deadlock.ring) == [0, 1]
    assert (deadlock.loan, deadlock.below_mrru) == ((2,), 0)
    assert found.server[found.loan].tolist() == [2, 2]
    carry_out(problem, plan, found)
    plan_steps = migration_plan(problem, plan)
    assert [move.hop for move in plan_steps.moves].count(True) == 2
    who, other = (problem.reservations.labels[q] for q in (deadlock.reservation, 1 - deadlock.reservation))
    lent = problem.servers.labels[2]
    assert plan_steps.relief == (
        f"wave 1: {who} waits for {other} waits for {who}; {lent} is lent to {who} for a while",
    )
    assert plan_steps.relief[0].startswith(f"wave {moves_section(plan_steps).rows[0][0]}: ")
    assert not plan_steps.stuck


def test_without_a_spare_server_one_falls_below_its_guarantee() -> None:
    problem = swap(free=0)
    plan = Plan(np.array([1, 0]))
    found = steps(problem, plan)
    (deadlock,) = found.deadlocks
    assert (deadlock.loan, deadlock.below_mrru) == ((), 1000)
    carry_out(problem, plan, found)
    plan_steps = migration_plan(problem, plan)
    assert plan_steps.relief[0].startswith(f"wave {moves_section(plan_steps).rows[0][0]}: ")
    assert "falls 1 RRU below its guarantee" in plan_steps.relief[0]


def two_switchboards(rack: list[int], owner: list[int]) -> ServerAssignment:
    """Six servers of one type, two reservations, and a rack at each of two switchboards: left and right."""
    problem = swap(free=4)
    return replace(
        problem,
        datacenters=("d",),
        switchboards=replace(problem.switchboards, labels=("left", "right"), datacenter=np.zeros(2, np.int64)),
        racks=replace(problem.racks, labels=("left", "right"), switchboard=np.arange(2)),
        servers=replace(problem.servers, type=np.zeros(6, np.int64), rack=np.array(rack), owner=np.array(owner)),
    )


def test_by_how_much_a_pool_would_fall() -> None:
    """The pool holds 2000 at each of two switchboards, and ads, which shares it, 1000 on the right: without the right
    one 2000 are left, of which the pool stands in for 1000."""
    problem = two_switchboards(rack=[1, 0, 0, 1, 1, 0], owner=[0, 1, 1, 1, 1, 2])
    problem = replace(
        problem,
        reservations=replace(problem.reservations, buffer=np.array([SHARED, POOL])),
    )
    guarantees = Guarantees(problem, problem.servers.owner)
    assert guarantees.floor.tolist() == [1000, 1000]
    ads, pool, nobody, left, right = 0, 1, 2, 0, 1
    assert [guarantees.pool_below(ads, nobody, 0, board) for board in (left, right)] == [0, 1000]
    assert [guarantees.may_come(ads, nobody, 0, board) for board in (left, right)] == [1, 0]
    assert guarantees.may_come(pool, nobody, 0, right) is None


def test_the_smallest_fall_is_chosen() -> None:
    """Half of what ads holds is more than it asks: it has to fall by 300 only, feed by 1000."""
    problem = swap(free=0).with_columns({"reservations.asked_mrru": np.array([300, 1000])})
    (deadlock,) = steps(problem, Plan(np.array([1, 0]))).deadlocks
    assert (deadlock.reservation, deadlock.below_mrru) == (0, 300)


def test_nothing_to_do_takes_no_wave() -> None:
    problem = swap(free=1)
    found = steps(problem, Plan(problem.servers.owner.copy()))
    assert (found.waves, len(found.server), found.deadlocks) == (0, 0, ())


def test_a_plan_of_another_length_is_an_error() -> None:
    with pytest.raises(ValueError, match="shape"):
        steps(swap(free=1), Plan(np.array([0])))


def in_some_order(problem: ServerAssignment, plan: Plan) -> bool:
    """Is there an order of single moves in which nobody falls short? By trying every set of moved servers."""
    brute, nobody = Brute(problem), len(problem.reservations)
    before, after = shorts(brute, problem.servers.owner.tolist()), shorts(brute, plan.reservation.tolist())
    allowed = {name: max(before[name], after[name]) for name in before}
    moving = frozenset(np.flatnonzero(plan.reservation != problem.servers.owner).tolist())
    none: frozenset[int] = frozenset()
    seen, todo = {none}, [none]
    while todo:
        moved = todo.pop()
        if moved == moving:
            return True
        for server in moving - moved:
            now = [
                int((plan.reservation if s in moved else problem.servers.owner)[s]) for s in range(len(problem.servers))
            ]
            now[server] = nobody
            reached = moved | {server}
            if reached not in seen and all(short <= allowed[name] for name, short in shorts(brute, now).items()):
                seen.add(reached)
                todo.append(reached)
    return False


@examples(150)
@given(data=st.data(), problem=problems(servers=8))
def test_a_deadlock_is_one_of_every_order(data: st.DataObject, problem: ServerAssignment) -> None:
    buffer = np.array([NONE if kind in (SHARED, POOL) else kind for kind in problem.reservations.buffer.tolist()])
    problem = replace(problem, reservations=replace(problem.reservations, buffer=buffer))
    problem = replace(
        problem,
        reservations=replace(
            problem.reservations, asked_mrru=np.maximum(Measure(problem, problem.servers.owner).guaranteed, 0)
        ),
    )
    plan = Plan(np.array(data.draw(st.permutations(problem.servers.owner.tolist())), np.int64))
    found = steps(problem, plan)
    carry_out(problem, plan, found)
    event(f"deadlocks: {bool(found.deadlocks)}")
    assert bool(found.deadlocks) != in_some_order(problem, plan)


def test_another_order_of_the_earlier_moves_needs_no_loan() -> None:
    """Moving whatever may move, large groups first, ends in a ring; the same moves in another order do not."""
    problem = two_switchboards(rack=[1, 0, 0, 1, 0, 1], owner=[1, 0, 0, 2, 1, 0])
    problem = replace(
        problem,
        reservations=replace(
            problem.reservations,
            buffer=np.array([EMBEDDED, NONE]),
            value_mrru=np.array([2000, 1000])[:, None] * np.ones((2, len(problem.types)), np.int64),
        ),
    )
    problem = replace(
        problem,
        reservations=replace(
            problem.reservations, asked_mrru=np.maximum(Measure(problem, problem.servers.owner).guaranteed, 0)
        ),
    )
    plan = Plan(np.array([0, 1, 0, 2, 0, 1]))
    assert in_some_order(problem, plan)
    found = steps(problem, plan)
    carry_out(problem, plan, found)
    assert not found.deadlocks
    assert not found.loan.any()
