"""Exact migration order of a small data-placement plan: best-first search over all steps that stops the least work.

States are what is done so far; a state's cost is the GPUs that stopped, then the volume of replicas in between. Where
the search ends without an order, and not because of its budget, there is none.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from mast_opt.problems.data_placement.migration.loads import Loads
from mast_opt.problems.data_placement.migration.replica_moves import Moving
from mast_opt.problems.data_placement.migration.state import MigrationState, Where
from mast_opt.problems.data_placement.migration.steps import Operation
from mast_opt.problems.data_placement.problem import SHARE

MOST_STEPS = 10_000
"""Steps that are tried; fewer where the plan has more than ``SIZE`` steps, in proportion."""
SIZE = 50
MOST_SIZE = 1_000
"""Steps, workloads and datasets of a plan for which the search is worth beginning."""

Cost = tuple[int, int]
"""(GPUs that stop, MB of replicas in between)"""


@dataclass(frozen=True)
class Found:
    """The cheapest order; None where none was found."""

    ops: tuple[Operation, ...] | None
    cost: Cost
    exhaustive: bool
    """True: it is a cheapest one, or there is none."""


@dataclass(frozen=True, eq=False)
class _State:
    world: MigrationState
    done: frozenset[Operation]
    hops: frozenset[tuple[int, int]]
    trail: tuple[Operation, object]
    """The last step, and the trail before it."""


def least_stops(moving: Moving, loads: Loads, hops: bool, most_cost: int | None = None) -> Found:
    """The order that stops the fewest GPUs and, with ``hops``, copies the least to regions in between.

    Args:
        most_cost: GPUs that an order must stop fewer than to be of use.
    """
    return _Search(moving, loads, hops, most_cost).run()


class _Search:
    def __init__(self, moving: Moving, loads: Loads, hops: bool, most_cost: int | None) -> None:
        self.m, self.loads, self.with_hops, self.most_cost = moving, loads, hops, most_cost
        self.copies = [Operation("copy", i, r) for i, r in moving.incoming]
        self.deletes = [Operation("delete", i, r) for i, r in moving.outgoing]
        world = MigrationState(moving, loads)
        self.enters = [
            Operation("enter", u)
            for u, part in enumerate(loads.parts)
            if world.where[u] is Where.TODAY and part.runs_then
        ]
        self.ends = [Operation("stop", u) for u, part in enumerate(loads.parts) if not part.runs_then]
        self.stays = [u for u, part in enumerate(loads.parts) if part.stays]
        self.start = _State(world, frozenset(), frozenset(), (Operation("", 0), None))
        size = len(self.copies) + len(self.deletes) + len(loads.parts) + len(moving.problem.datasets)
        self.budget = MOST_STEPS // (1 + size // SIZE) if size <= MOST_SIZE else 0
        self.simple = moving.link_kb is None and not hops and not moving.problem.outside.any()

    def run(self) -> Found:
        """Search for the cheapest order of a migration's moves of data and work (A*)."""
        count = 0
        queue: list[tuple[Cost, int, int, _State]] = [((0, 0), 0, 0, self.start)]
        best: dict[object, Cost] = {}
        while queue:
            cost, _, _, state = heapq.heappop(queue)
            state = self._run_ahead(state)
            key = (state.done, state.hops)
            if key in best and best[key] <= cost:
                continue
            best[key] = cost
            if not self._left(state):
                return Found(_trail(state), cost, True)
            for extra, following in self._steps(state):
                count += 1
                if count > self.budget:
                    return Found(None, (0, 0), False)
                total = cost[0] + extra[0], cost[1] + extra[1]
                if self.most_cost is None or total[0] < self.most_cost:
                    heapq.heappush(queue, (total, self._left(following), count, following))
        return Found(None, (0, 0), True)

    def _left(self, state: _State) -> int:
        """Number of a migration's operations that are left in a state."""
        every = len(self.copies) + len(self.deletes) + len(self.enters) + len(self.ends)
        stays = sum(state.world.where[u] is Where.STOPPED for u in self.stays)
        known = sum(op.kind != "stop" or not self.loads.parts[op.at].runs_then for op in state.done)
        again = sum(op.kind == "enter" and self.loads.parts[op.at].stays for op in state.done)
        return every - known + again + stays + len(state.hops)

    def _steps(self, state: _State) -> Iterator[tuple[Cost, _State]]:
        """Next states of the migration of the search with the costs of their steps."""
        for op in self._open(state):
            following = self._after(state, op)
            if following is not None:
                yield (0, 0), following
        world = state.world
        for u, part in enumerate(self.loads.parts):
            there = Where.THERE if part.stays else Where.TODAY
            if (
                part.runs_today
                and part.runs_then
                and world.where[u] is there
                and Operation("stop", u) not in state.done
            ):
                following = self._after(state, Operation("stop", u))
                assert following is not None
                yield (self.loads.loads[u].cost, 0), following
        if self.with_hops:
            yield from self._hops(state)

    def _open(self, state: _State) -> Iterator[Operation]:
        """Operations of the migration that are open in a state."""
        done = state.done
        yield from (op for op in (*self.ends, *self.deletes, *self.enters, *self.copies) if op not in done)
        yield from (Operation("delete", i, r) for i, r in sorted(state.hops))
        yield from (Operation("enter", u) for u in self.stays if state.world.where[u] is Where.STOPPED)

    def _hops(self, state: _State) -> Iterator[tuple[Cost, _State]]:
        """Next states by stopovers of replicas."""
        for i in self.m.datasets:
            if any(Operation("delete", *pair) not in state.done for pair in self.m.outgoing_of[i]):
                for r in self.m.hop_regions(i):
                    if (i, r) not in state.hops and self.m.stored_at[i]:
                        following = self._after(state, Operation("copy", i, r))
                        if following is not None:
                            yield (0, self.m.size_mb[i]), following

    def _after(self, state: _State, op: Operation) -> _State | None:  # noqa: C901 - one branch for each sort of step
        """State of the migration after an operation; None if it is not possible."""
        world = state.world
        if op.kind == "copy":
            if not world.may_begin(op.at, op.region):
                return None
            world = world.copy()
            world.begin(op.at, op.region)
            world.arrive(op.at, op.region)
        elif op.kind == "delete":
            if len(world.held[op.at]) <= self.m.floor[op.at]:
                return None
            world = world.copy()
            if not world.delete(op.at, op.region):
                return None
            world.deleted(op.at, op.region)
        elif op.kind == "enter":
            if not world.fits(op.at) or not world.has_data(op.at, local=False):
                return None
            world = world.copy()
            if not world.enter(op.at):
                return None
            world.leave(op.at)
        else:
            world = world.copy()
            world.stop(op.at)
        pair = (op.at, op.region)
        hops = state.hops
        if op.kind == "delete" and pair in hops:
            return _State(world, state.done, hops - {pair}, (op, state.trail))
        if op.kind == "copy" and not self.m.plan.place[pair]:
            return _State(world, state.done, hops | {pair}, (op, state.trail))
        return _State(world, state.done | {op}, hops, (op, state.trail))

    def _run_ahead(self, state: _State) -> _State:
        """Make the steps of the migration that can do no harm, whatever comes later."""
        before = None
        while self.simple and state is not before:
            before = state
            for op in self._harmless(state):
                state = self._after(state, op) or state
        return state

    def _harmless(self, state: _State) -> list[Operation]:
        """Operations of a migration's state that can be done at once without harm."""
        world, done = state.world, state.done
        ops = [op for op in self.ends if op not in done]
        for op in self.deletes:
            if op not in done:
                going = sum(Operation("delete", *pair) not in done for pair in self.m.outgoing_of[op.at])
                if len(world.held[op.at]) - going >= self.m.floor[op.at]:
                    ops.append(op)
        wanted = dict.fromkeys(range(len(world.free)), 0)
        for op in self.copies:
            if op not in done:
                wanted[op.region] += SHARE * self.m.size_mb[op.at]
        waiting = [op for op in (*self.enters, *(Operation("enter", u) for u in self.stays)) if op not in done]
        waiting = [op for op in waiting if world.where[op.at] is not Where.THERE]
        for op in waiting:
            for limit, amount in self.loads.loads[op.at].enters:
                wanted[limit] += amount
        over = {limit: amount for op in waiting for limit, amount in self.loads.over[op.at].items()}
        roomy = {limit for limit, amount in wanted.items() if amount + over.get(limit, 0) <= world.free[limit]}
        ops += [op for op in waiting if all(limit in roomy for limit, _ in self.loads.loads[op.at].enters)]
        return ops + [op for op in self.copies if op not in done and op.region in roomy]


def _trail(state: _State) -> tuple[Operation, ...]:
    """Operations that led to a state of the migration search, first to last."""
    ops = []
    trail: object = state.trail
    while isinstance(trail, tuple) and trail[1] is not None:
        ops.append(trail[0])
        trail = trail[1]
    return tuple(reversed(ops))
