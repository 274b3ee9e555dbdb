"""The order of copies and deletions: replayed, it keeps every limit; enumeration finds none where it finds none."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mast_opt.problems.data_placement import DataPlacement, Links, Plan
from mast_opt.problems.data_placement.migration.planner import Steps, steps
from mast_opt.problems.data_placement.migration.replica_moves import Moving
from mast_opt.problems.data_placement.migration.replica_search import Assistance, search
from tests.data_placement.workshop import PLAN, PROBLEM, ints
from tests.examples import examples

NONE = np.zeros(0, np.int64)
Held = frozenset[tuple[int, int]]


def shelf(sizes: list[int], room: list[int], stored: np.ndarray, links: Links | None = None) -> DataPlacement:
    """Datasets and nothing that reads them; sizes and room in MB."""
    regions = tuple("abcdef"[: len(room)])
    nobody = np.zeros((3, len(regions)), np.bool_)
    return PROBLEM.with_columns(
        {
            "regions.labels": regions,
            "regions.storage_mb": ints(*room),
            "regions.headroom_milli": np.zeros(len(room), np.int64),
            "regions.storage_price_micro": np.zeros(len(room), np.int64),
            "regions.copy_price_micro": np.zeros(len(room), np.int64),
            "regions.gpu_price_micro": np.zeros((len(room), 2), np.int64),
            "regions.cpu_mcores": np.full(len(room), 10**6),
            "regions.ingress_mb_per_day": np.zeros(len(room), np.int64),
            "regions.ingress_limited": np.zeros(len(room), np.bool_),
            "regions.supply_mgpu": np.zeros((len(room), 2), np.int64),
            "datasets.labels": tuple(f"d{i}" for i in range(len(sizes))),
            "datasets.size_mb": ints(*sizes),
            "datasets.copies_min": np.zeros(len(sizes), np.int64),
            "datasets.copies_max": np.full(len(sizes), len(room)),
            "datasets.stored": stored,
            "datasets.pinned": np.zeros_like(stored),
            "datasets.forbidden": np.zeros_like(stored),
            "datasets.residency": np.zeros_like(stored),
            "workloads.pinned": nobody,
            "workloads.forbidden": nobody,
            "workloads.output_mb": ints(0, 0, 0),
            "reads.workload": NONE,
            "reads.dataset": NONE,
            "reads.mb_per_day": NONE,
            "current_runs.workload": NONE,
            "current_runs.region": NONE,
            "current_runs.gpu_type": NONE,
            "current_runs.share": NONE,
            "cpu_quotas.region": NONE,
            "cpu_quotas.app": NONE,
            "cpu_quotas.cpu_mcores": NONE,
            "links": links,
        }
    )


def plan_of(problem: DataPlacement, place: np.ndarray) -> Plan:
    """The replicas, copied from any region that holds them and has a link (the first one)."""
    rows = []
    for i, r in zip(*np.nonzero(place & ~problem.datasets.stored)):
        for q in np.flatnonzero(problem.datasets.stored[i]).tolist():
            if problem.links is None or (q, r) in zip(problem.links.source.tolist(), problem.links.target.tolist()):
                rows.append((i, q, r, 1000))
                break
    copies = [column.copy() for column in np.array(rows, np.int64).reshape(-1, 4).T]
    return Plan(place, *(NONE.copy() for _ in range(4)), *copies, *(NONE.copy() for _ in range(5)))


def replay(problem: DataPlacement, plan: Plan, order: Steps) -> None:
    """Carry the steps out, wave by wave, and check every limit on the way."""
    p = problem
    whole: set[tuple[int, int]] = {(int(i), int(r)) for i, r in zip(*np.nonzero(p.datasets.stored))}
    arriving: dict[tuple[int, int], int] = {}
    usable = p.usable_storage_mb.tolist()
    size = p.datasets.size_mb.tolist()
    floor = np.minimum(
        np.minimum(np.maximum(p.datasets.copies_min, 1), p.datasets.stored.sum(axis=1)), plan.place.sum(axis=1)
    )
    links: Counter[tuple[int, int, int]] = Counter()
    ingress: Counter[tuple[int, int]] = Counter()

    def load(r: int) -> int:
        return sum(size[i] for i, at in {*whole, *arriving} if at == r)

    assert [step.wave for step in order.steps] == sorted(step.wave for step in order.steps)
    for wave in range(order.waves):
        now = [step for step in order.steps if step.wave == wave]
        assert now or any(run.wave == wave for run in order.runs)
        assert len({step.day for step in now}) <= 1
        for step in now:
            pair = (step.dataset, step.region)
            if step.deletes:
                assert pair in whole
            else:
                assert step.source is None or (step.dataset, step.source) in whole
                assert pair not in whole
                if pair not in arriving:
                    before = load(step.region)
                    arriving[pair] = 0
                    assert load(step.region) <= usable[step.region] or not size[step.dataset], before
                arriving[pair] += step.kb * step.days
                for day in range(step.day, step.day + step.days):
                    ingress[step.region, day] += step.kb
                    if step.source is not None:
                        links[step.source, step.region, day] += step.kb
        leaving = {(step.dataset, step.region) for step in now if step.deletes}
        busy = {(step.dataset, step.source) for step in now if not step.deletes}
        assert not leaving & busy
        whole -= leaving
        for pair in [pair for pair, kb in arriving.items() if kb >= 1000 * size[pair[0]]]:
            assert arriving.pop(pair) == 1000 * size[pair[0]]
            whole.add(pair)
        for i, least in enumerate(floor.tolist()):
            assert sum(j == i for j, _ in whole) >= least
    for (r, _), kb in ingress.items():
        assert not p.regions.ingress_limited[r] or kb <= 1000 * p.regions.ingress_mb_per_day[r]
    if p.links is not None:
        rates = dict(zip(zip(p.links.source.tolist(), p.links.target.tolist()), p.links.capacity_mb_per_day.tolist()))
        read_mb = {(w, i): mb for w, i, mb in zip(p.reads.workload, p.reads.dataset, p.reads.mb_per_day)}
        reads: Counter[tuple[int, int]] = Counter()
        for w, i, q, r, share in zip(
            plan.remote_workload, plan.remote_dataset, plan.remote_source, plan.remote_target, plan.remote_share
        ):
            reads[int(q), int(r)] += int(share * read_mb[w, i])
        for (q, r, _), kb in links.items():
            assert kb + reads[q, r] <= 1000 * rates[q, r]
    wanted = {(int(i), int(r)) for i, r in zip(*np.nonzero(plan.place))}
    missing = {(blocked.dataset, blocked.region) for blocked in order.blocked}
    assert not arriving
    assert wanted - whole == missing
    if not missing:
        assert whole == wanted
    assert bool(order.deadlock) == (bool(missing) or any(step.hop for step in order.steps))


class Brute:
    """The cheapest way between two sets of replicas by enumeration of all sets, straight from the rules."""

    def __init__(self, problem: DataPlacement, place: np.ndarray) -> None:
        self.p = problem
        self.size = problem.datasets.size_mb.tolist()
        self.usable = problem.usable_storage_mb.tolist()
        self.start: Held = frozenset((int(i), int(r)) for i, r in zip(*np.nonzero(problem.datasets.stored)))
        self.goal: Held = frozenset((int(i), int(r)) for i, r in zip(*np.nonzero(place)))
        self.floor = [
            min(1, sum(j == i for j, _ in self.start), sum(j == i for j, _ in self.goal)) for i in range(len(self.size))
        ]

    def load(self, held: Held, r: int) -> int:
        return sum(self.size[i] for i, at in held if at == r)

    def cheapest(self, *, hops: bool, room: bool) -> int | None:
        """Least volume of replicas in between, or least temporary room in all regions together."""
        lent = (0,) * len(self.usable)
        ticket = count()
        queue = [(0, next(ticket), self.start, lent)]
        closed = set()
        while queue:
            cost, _, held, lent = heapq.heappop(queue)
            if (held, lent) in closed:
                continue
            closed.add((held, lent))
            if held == self.goal:
                return cost
            for price, after, more in self.moves(held, lent, hops, room):
                heapq.heappush(queue, (cost + price, next(ticket), after, more))
        return None

    def moves(
        self, held: Held, lent: tuple[int, ...], hops: bool, room: bool
    ) -> Iterator[tuple[int, Held, tuple[int, ...]]]:
        for i, r in held - self.goal:
            if sum(j == i for j, _ in held) > self.floor[i]:
                yield 0, held - {(i, r)}, lent
        for i in range(len(self.size)):
            there = any(j == i for j, _ in held) or not any(j == i for j, _ in self.start)
            for r in range(len(self.usable)):
                between = (i, r) not in self.goal
                if not there or (i, r) in held or (between and (not hops or (i, r) in self.start)):
                    continue
                if between and not any(j == i for j, _ in held):
                    continue
                after = held | {(i, r)}
                over = max(0, self.load(after, r) - self.usable[r])
                if over and not room:
                    continue
                more = tuple(max(amount, over) if at == r else amount for at, amount in enumerate(lent))
                yield (self.size[i] * between if not room else sum(more) - sum(lent)), after, more


@st.composite
def shelves(draw: st.DrawFn) -> tuple[DataPlacement, Plan]:
    """Full regions that exchange datasets: the plan fits, the way to it may not."""
    R, D = draw(st.integers(2, 3)), draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(1, 4), min_size=D, max_size=D))

    def grid(least: int) -> np.ndarray:
        rows = [draw(st.sets(st.integers(0, R - 1), min_size=least, max_size=2)) for _ in range(D)]
        return np.array([[r in row for r in range(R)] for row in rows])

    stored, place = grid(0), grid(0)
    need = np.maximum(np.array(sizes) @ stored, np.array(sizes) @ place)
    slack = draw(st.lists(st.sampled_from((0, 0, 1, 2, 4)), min_size=R, max_size=R))
    problem = shelf(sizes, (need + slack).tolist(), stored)
    return problem, plan_of(problem, place)


@examples(150)
@given(shelves())
def test_enumeration_agrees(case: tuple[DataPlacement, Plan]) -> None:
    problem, plan = case
    order = steps(problem, plan)
    replay(problem, plan, order)
    assert order.proven
    brute = Brute(problem, plan.place)
    plain = brute.cheapest(hops=False, room=False)
    assert (plain is None) == bool(order.deadlock)
    if order.deadlock:
        assert sum(room.mb for room in order.room) == brute.cheapest(hops=False, room=True)
        least = brute.cheapest(hops=True, room=False)
        assert (least is None) == bool(order.blocked)
        if not order.blocked:
            hop_mb = sum(step.kb * step.days for step in order.steps if step.hop and not step.deletes) // 1000
            assert hop_mb == least


@examples(60)
@given(shelves(), st.data())
def test_days_keep_ingress_and_links(case: tuple[DataPlacement, Plan], data: st.DataObject) -> None:
    problem, plan = case
    R = len(problem.regions)
    rates = st.integers(1, 5)
    source, target = np.nonzero(~np.eye(R, dtype=bool))
    kept = np.array([data.draw(st.integers(0, 4)) > 0 for _ in source], bool)
    source, target = source[kept], target[kept]
    links = Links(source, target, ints(*(data.draw(rates) for _ in source)), np.zeros(len(source)))
    problem = problem.with_columns(
        {
            "links": links,
            "regions.ingress_limited": np.array([data.draw(st.booleans()) for _ in range(R)]),
            "regions.ingress_mb_per_day": ints(*(data.draw(rates) for _ in range(R))),
        }
    )
    plan = plan_of(problem, plan.place)
    known = set(zip(plan.copy_dataset.tolist(), plan.copy_target.tolist()))
    new = zip(*np.nonzero(plan.place & ~problem.datasets.stored & problem.datasets.stored.any(axis=1, keepdims=True)))
    assume(all((int(i), int(r)) in known for i, r in new))
    replay(problem, plan, steps(problem, plan))


def exchange(spare: int) -> tuple[DataPlacement, Plan]:
    """Two full regions that swap their datasets of 5 MB, and a third one."""
    stored = np.array([[True, False, False], [False, True, False]])
    problem = shelf([5, 5], [5, 5, spare], stored)
    return problem, plan_of(problem, np.array([[False, True, False], [True, False, False]]))


def test_a_stopover_breaks_a_deadlock() -> None:
    problem, plan = exchange(5)
    order = steps(problem, plan)
    replay(problem, plan, order)
    assert [(step.region, step.deletes, step.hop) for step in order.steps] == [
        (2, False, True),
        (0, True, False),
        (0, False, False),
        (1, True, False),
        (1, False, False),
        (2, True, True),
    ]
    assert [(room.mb) for room in order.room] == [5]


def test_an_order_of_data_says_whether_it_is_a_cheapest_one() -> None:
    """Without help, with replicas in between, and with temporary room."""
    free = Moving(*exchange(5))
    assert [(one.complete, one.exhaustive) for one in (search(free, help) for help in Assistance)] == [
        (False, True),
        (True, True),
        (True, True),
    ]
    roomy, plan = exchange(5)
    roomy = replace(roomy, regions=replace(roomy.regions, storage_mb=ints(10, 10, 5)))
    found = search(Moving(roomy, plan), Assistance.NOTHING)
    assert found.complete
    assert found.exhaustive is True
    assert {(move.dataset, move.region, move.arrives) for move in found.moves} == {
        (0, 1, True),
        (1, 0, True),
        (0, 0, False),
        (1, 1, False),
    }


def test_a_deadlock_says_what_is_missing_and_the_least_room() -> None:
    problem, plan = exchange(4)
    order = steps(problem, plan)
    assert order.steps == ()
    assert [(blocked.dataset, blocked.region, blocked.missing_mb) for blocked in order.blocked] == [
        (0, 1, 5),
        (1, 0, 5),
    ]
    assert [room.mb for room in order.room] == [5]
    assert order.proven


def test_a_long_copy_takes_one_row_for_its_equal_days() -> None:
    stored = np.array([[True, False]])
    problem = shelf([100], [100, 100], stored, Links(ints(0), ints(1), ints(7), np.zeros(1)))
    plan = plan_of(problem, np.array([[False, True]]))
    order = steps(problem, plan)
    replay(problem, plan, order)
    assert order.days == 15
    assert len(order.steps) == 4


def test_the_workshop_in_days() -> None:
    """logs crosses a link of 4 TB a day into a region that takes in 4 TB a day; video is uploaded next to it."""
    order = steps(PROBLEM, PLAN)
    replay(PROBLEM, PLAN, order)
    assert order.days == 1


@pytest.mark.parametrize("slack", [1.0, 1.005, 1.03])
def test_many_datasets_in_regions_that_are_nearly_full(slack: float) -> None:
    rng = np.random.default_rng(2)
    D, R = 150, 6
    sizes = 1 + rng.lognormal(6, 1.2, D).astype(np.int64)
    stored, place = np.zeros((2, D, R), np.bool_)
    stored[np.arange(D), rng.integers(0, R, D)] = True
    place[np.arange(D), rng.integers(0, R, D)] = True
    room = np.ceil(np.maximum(sizes @ stored, sizes @ place) * slack).astype(np.int64)
    problem = shelf(sizes.tolist(), room.tolist(), stored)
    plan = plan_of(problem, place)
    order = steps(problem, plan)
    replay(problem, plan, order)
    assert not order.blocked


def test_a_ring_of_full_regions_needs_the_room_of_one_dataset() -> None:
    D, R = 60, 6
    at = np.arange(D) % R
    stored, place = np.zeros((2, D, R), np.bool_)
    stored[np.arange(D), at] = True
    place[np.arange(D), (at + 1) % R] = True
    problem = shelf([5] * D, [5 * D // R] * R, stored)
    plan = plan_of(problem, place)
    order = steps(problem, plan)
    replay(problem, plan, order)
    assert len(order.blocked) == D
    assert sum(room.mb for room in order.room) == 5
