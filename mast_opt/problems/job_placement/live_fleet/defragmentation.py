"""Defragmentation of the live fleet (job placement): which running jobs move, and where, so that waiting ones fit.

For each waiting job that fits nowhere, the search for victims (``engine.preemption``) finds the cheapest set of jobs
that have another place and whose going makes room. The job takes that room, each of them the best free place that is
left, and the moves are ordered so that each finds its target free. Where a job of the set finds no place, or there is
no such order, it may not be moved for this one, and the search is repeated. If that leads nowhere, two jobs may change
places, so that the third one fits.

If no job waits, single moves are made while the free capacity gains value by one (``engine.fill_value``), each time the
one that gains most for its cost.

Parts of GPUs that are free on two of them are of use on one: the smaller job comes to the GPU of the larger one, which
has then room for the third. Only jobs of one task that are on one GPU take part, each stays on its GPU type and in its
region, and they are on different servers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mast_opt.core.units import MILLI
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine import fill_value as fill
from mast_opt.problems.job_placement.engine.arrival_mix import ArrivalMix
from mast_opt.problems.job_placement.engine.best_bid import NOBODY, BestBid, Prices, groups_by_price, place_free
from mast_opt.problems.job_placement.engine.best_bid import bid_of as best_bid_of
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.preemption.victim_search import cheapest
from mast_opt.problems.job_placement.engine.server_selection import LEAST_LOSS, TIGHT
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.bids import bid_of, holdings_in, shares_in
from mast_opt.problems.job_placement.live_fleet.inventory import FleetInventory
from mast_opt.problems.job_placement.live_fleet.movable_work import MovableWork, has_room, moved_holdings
from mast_opt.problems.job_placement.live_fleet.move_plan import JobMove, MoveBudget, MovePlan
from mast_opt.problems.job_placement.live_fleet.running_job import Holding, Running
from mast_opt.problems.job_placement.live_fleet.types import Job, Share
from mast_opt.problems.job_placement.units import WHOLE, Bools

Pair = tuple[int, int]


class Exchanges:
    """N jobs that may change places, and what is free where each is; the fleet must stay as it is."""

    def __init__(self, books: FleetInventory, work: MovableWork, may: Bools) -> None:
        """``may`` [M]: jobs that may be moved."""
        state = books.state
        usable = may & (work.server >= 0) & (work.need[:, fill.TASKS] == 1)
        usable &= (state.server[col.S_BLOCKED, work.server] == 0) & (state.server[col.S_SIZE, work.server] == WHOLE)
        held = state.row_device[state.job[col.J_ROW, work.place]]
        self.m = np.flatnonzero(usable & ((held > 0).sum(axis=1) == 1))
        self.need, self.server = work.need[self.m], work.server[self.m]
        self.device = held[self.m].argmax(axis=1)
        last = state.room.shape[1] - 1
        self.free = state.slack_device[self.server, self.device, 0].astype(np.int64)
        """[N] milli-GPUs of the same GPU."""
        self.cores, self.mib = state.room[col.A_CPU, last, self.server], state.room[col.A_MEMORY, last, self.server]
        self.names = [books.server_at(at) for at in self.server.tolist()]

    def pairs(self, request: Request, most: int) -> Iterator[Pair]:
        """Pairs whose exchange leaves room for one task of the request where the first one was.

        Args:
            most: first jobs that are tried, those for which the least is lacking.
        """
        need, mgpu = self.need, request.mgpu[self.need[:, fill.TYPE]]
        lacking = mgpu - self.free
        first = (mgpu >= 0) & (mgpu <= WHOLE) & request.open[need[:, fill.REGION]] & (need[:, fill.MGPU] > lacking)
        first &= (self.cores + need[:, fill.CORES] >= request.cpu) & (self.mib + need[:, fill.MIB] >= request.memory)
        first &= lacking <= self.free.max(initial=0)
        chosen = np.flatnonzero(first)
        for u in chosen[np.argsort(lacking[chosen], kind="stable")][:most].tolist():
            found = np.flatnonzero(self._fits(u, int(lacking[u]), request))
            if len(found):
                left = self.free[found] + need[found, fill.MGPU]
                yield u, int(found[left.argmin()])

    def _fits(self, u: int, lacking: int, request: Request) -> Bools:
        """[N] jobs that have room for a job where they are, and leave room for the request where it is."""
        need, own = self.need, self.need[u]
        there: Bools = (need[:, [fill.REGION, fill.TYPE]] == own[[fill.REGION, fill.TYPE]]).all(axis=1) & (
            self.server != self.server[u]
        )
        there &= (need[:, fill.MGPU] <= own[fill.MGPU] - lacking) & (self.free + need[:, fill.MGPU] >= own[fill.MGPU])
        for column, free, asked in ((fill.CORES, self.cores, request.cpu), (fill.MIB, self.mib, request.memory)):
            there &= (free + need[:, column] >= own[column]) & (free[u] + own[column] - asked >= need[:, column])
        return there

    def target(self, job: int, other: int) -> tuple[Share, ...]:
        """Shares of a running job that takes the place of another one."""
        return (Share(self.names[other], 1, {int(self.device[other]): int(self.need[job, fill.MGPU])}),)


Target = tuple[tuple[Share, ...], tuple[Holding, ...]]


@dataclass(frozen=True)
class _Stuck:
    """A movable job for which there is no place, or no turn."""

    m: int


class Defragmentation:
    """The search on books of its own, which it changes as its plan does."""

    def __init__(self, books: FleetInventory, work: MovableWork, budget: MoveBudget) -> None:
        self.books, self.work, self.budget = books, work, budget
        self.style = TIGHT if books.mix is None else LEAST_LOSS
        self.cost = work.costs(budget)
        self.number = np.full(books.state.job.shape[1], -1)
        """[V] place in the state → movable job."""
        self.number[work.place] = np.arange(len(work.name))
        self.stays = np.zeros(len(work.name), np.bool_)
        """[M] jobs that have been moved."""
        self.kinds, self.kind = work.kinds()
        self.left = len(work.name) if budget.moves is None else budget.moves
        self.mgpu_hours_left = float("inf") if budget.gpu_hours is None else round(budget.gpu_hours * MILLI, 3)
        self.moves: list[JobMove] = []
        self.steps = 0

    def plan(self, waiting: Sequence[Job], version: int, fleet: str) -> MovePlan:
        """The plan for these jobs, the more important ones first, or for none."""
        starts: list[Bid] = []
        refused: list[str] = []
        gained = 0.0 if waiting else self._gather()
        for job in sorted(waiting, key=lambda job: job.tier):
            bid = self._admit(job, version, fleet)
            if bid is None:
                refused.append(job.name)
            else:
                starts.append(bid)
        return MovePlan(tuple(self.moves), tuple(starts), tuple(refused), gained, version, fleet)

    def _admit(self, job: Job, version: int, fleet: str) -> Bid | None:
        """Let a waiting job in, by moves where it does not fit; returns its bid, None if there is none."""
        books = self.books
        price = books.price_of(job)
        for option in books.options(job):
            (request,) = option.requests
            offer = place_free(books.state, request, books.everywhere, self.style, price)
            if offer is None and self.left > 0:
                offer = self._room_for(job, request, price) or self._by_exchange(request, price)
            if offer is not None:
                bid = bid_of(job, option.right, (offer,), offer.victims, price, books, version, fleet)
                books.hold(books.starting(job, bid.shares), holdings_in(books, [offer.placed], [request]))
                return bid
        return None

    def _room_for(self, job: Job, request: Request, price: Prices) -> BestBid | None:
        """Make the moves that let a job in; None, and none is made, if there are none."""
        books = self.books
        groups = groups_by_price(books.state, request, books.everywhere, price)
        may = self._candidates(request)
        for _ in range(self.budget.tries):
            if not may.any():
                return None
            fill.let_go(books.state, self.work.place, may, self.cost)
            found = cheapest(books.state, request, groups, books.ranks.levels, books.limits)
            if found is None:
                return None
            offer = best_bid_of(books.state, request, TIGHT, found)
            movers = self.number[offer.victims].tolist()
            if not self._within_budget(movers):
                return None
            steps = self._steps(job, request, offer, movers)
            if not isinstance(steps, _Stuck):
                for m, target in steps:
                    self._move((m, target))
                return replace(offer, victims=NOBODY, threshold=None)
            may[steps.m] = False
        return None

    def _by_exchange(self, request: Request, price: Prices) -> BestBid | None:
        """Let two jobs change places so that a job of one task gets in; None, with nothing moved, if there are none."""
        books, work = self.books, self.work
        if request.tasks > 1 or self.left < 2 or self.budget.exchanges == 0:
            return None
        exchanges = Exchanges(books, work, ~self.stays & (work.mgpu_hours <= self.mgpu_hours_left))
        for u, v in exchanges.pairs(request, self.budget.exchanges):
            pair = [int(exchanges.m[u]), int(exchanges.m[v])]
            if not self._within_budget(pair):
                continue
            targets = [exchanges.target(u, v), exchanges.target(v, u)]
            moves = [(m, (target, self._moved(m, target))) for m, target in zip(pair, targets)]
            with books.undoing():
                for m, target in moves:
                    self._swap(m, target)
                fits = place_free(books.state, request, books.everywhere, self.style, price) is not None
            if fits:
                self._move(*moves)
                return place_free(books.state, request, books.everywhere, self.style, price)
        return None

    def _moved(self, m: int, target: tuple[Share, ...]) -> tuple[Holding, ...]:
        """Holdings of a running job at the target of its move."""
        return moved_holdings(self.books.running[self.work.name[m]], target, self.books)

    def _candidates(self, request: Request) -> Bools:
        """[M] jobs that may be moved and have another place now; those on several servers may have one."""
        first, second = fill.homes(self.books.state, self.kinds, request).T[:, self.kind]
        fraction = self.work.need[:, fill.MGPU] % WHOLE > 0
        elsewhere = (second >= 0) | ((first >= 0) & ((first != self.work.server) | fraction))
        may: Bools = ~self.stays & ((self.work.server < 0) | elsewhere)
        may &= self.work.mgpu_hours <= self.mgpu_hours_left
        return may

    def _within_budget(self, movers: Sequence[int]) -> bool:
        """Whether a plan may still move these jobs, by their number and by the GPU-hours that it costs."""
        return len(movers) <= self.left and int(self.work.mgpu_hours[movers].sum()) <= self.mgpu_hours_left

    def _steps(
        self, job: Job, request: Request, offer: BestBid, movers: Sequence[int]
    ) -> list[tuple[int, Target]] | _Stuck:
        """The moves of these jobs in order, once the job has its room; or the first one that cannot move."""
        books, work, targets = self.books, self.work, dict[int, Target]()
        with books.undoing():
            running = {m: books.running[work.name[m]] for m in movers}
            for m in movers:
                books.end(work.name[m])
            taken = holdings_in(books, [offer.placed], [request])
            books.hold(books.starting(job, shares_in(books, job, [offer])), taken)
            for m in sorted(movers, key=lambda m: (-self._size(m), m)):
                target = self._target(m, running[m])
                if target is None:
                    return _Stuck(m)
                targets[m] = target
                books.hold(replace(running[m], shares=target[0]), target[1])
        return self._in_order(targets)

    def _size(self, m: int) -> int:
        """Milli-GPUs that a running job which may be moved holds in all tasks."""
        need = self.work.need[m]
        return int(need[fill.MGPU] * need[-1])

    def _target(self, m: int, running: Running) -> Target | None:
        """The best free place for a job that has left its own."""
        request, books = self.work.request(m, self.books), self.books
        found = place_free(books.state, request, books.everywhere, self.style, books.price_of(running.job))
        if found is None:
            return None
        return shares_in(books, running.job, [found]), holdings_in(books, [found.placed], [request])

    def _in_order(self, targets: dict[int, Target]) -> list[tuple[int, Target]] | _Stuck:
        """The moves of running jobs such that each finds its target free; which one goes first of those that can
        changes nothing.
        """
        order: list[tuple[int, Target]] = []
        waiting = sorted(targets)
        with self.books.undoing():
            while waiting:
                ready = [m for m in waiting if has_room(self.books, self.work.name[m], targets[m][1])]
                if not ready:
                    return _Stuck(waiting[0])
                self._swap(ready[0], targets[ready[0]])
                order.append((ready[0], targets[ready[0]]))
                waiting.remove(ready[0])
        return order

    def _swap(self, m: int, target: Target) -> None:
        """Put a running job in the fleet's inventory at the target of its move."""
        running = self.books.running[self.work.name[m]]
        self.books.swap(replace(running, shares=target[0]), target[1], False)

    def _move(self, *moves: tuple[int, Target]) -> None:
        """Make the moves of running jobs of one step."""
        self.steps += 1
        for m, target in moves:
            hours = int(self.work.mgpu_hours[m])
            source = self.books.running[self.work.name[m]].shares
            self.moves.append(JobMove(self.work.name[m], source, target[0], hours / MILLI, self.steps))
            self._swap(m, target)
            self.stays[m] = True
            self.left -= 1
            self.mgpu_hours_left -= hours

    def _gather(self) -> float:
        """Make the moves of running jobs by which the free capacity gains value; returns how many GPUs more arrivals
        would fill.
        """
        self._value_capacity()
        samples, gained = len(self.books.state.sample), 0
        while self.left > 0 and samples:
            best = self._best_move()
            if best is None:
                break
            m, gain, target = best
            self._move((m, target))
            gained += gain
        return gained / (WHOLE * samples) if samples else 0.0

    def _value_capacity(self) -> None:
        """Expect arrivals like the running jobs where no mix of arrivals is known."""
        if self.books.mix is None:
            self.books.mix, self.style = ArrivalMix(), LEAST_LOSS
            self.books.expect(running.job for running in self.books.running.values())

    def _best_move(self) -> tuple[int, int, Target] | None:
        """(job, gain, target) of the move of a running job with the most gain for its cost; None if none gains
        anything.
        """
        free = np.flatnonzero(~self.stays & (self.work.mgpu_hours <= self.mgpu_hours_left))
        gains = fill.removal_gains(self.books.state, self.work.place[free])
        rate = gains / self.cost[free]
        best, best_rate, seen = None, 0.0, set[tuple[int, int, int]]()
        for at in np.argsort(-rate, kind="stable").tolist():
            m, gain = int(free[at]), int(gains[at])
            if rate[at] <= best_rate or len(seen) == self.budget.candidates:
                break
            alike = (int(self.kind[m]), gain, int(self.cost[m]))
            if alike in seen:
                continue
            seen.add(alike)
            lost, target = self._least_loss(m)
            if target is not None and (gain - lost) / self.cost[m] > best_rate:
                best, best_rate = (m, gain - lost, target), (gain - lost) / self.cost[m]
        return best

    def _least_loss(self, m: int) -> tuple[int, Target | None]:
        """Loss of value at the best place for a running job once it has left its own, and that place."""
        books = self.books
        with books.undoing():
            running = books.running[self.work.name[m]]
            books.end(self.work.name[m])
            request, target = self.work.request(m, books), self._target(m, running)
            if target is None:
                return 0, None
            s = books.position[target[0][0].server]
            kind = int(books.state.group[col.G_TYPE, books.state.server[col.S_GROUP, s]])
            return int(fill.loss_on_server(books.state, s, int(request.mgpu[kind]), request)), target
