"""Stopped work in a data-placement migration: the cheapest parts that stand in the way when nothing else can go on."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice

from mast_opt.problems.data_placement.migration.loads import Amounts
from mast_opt.problems.data_placement.migration.replica_moves import Pair
from mast_opt.problems.data_placement.migration.state import MigrationState, Where
from mast_opt.problems.data_placement.problem import SHARE

MOST_TRIED = 400
"""Steps of each sort for which it is worked out what stands in their way."""

Choice = tuple[int, tuple[int, ...]]
"""(cost, parts to stop)"""


@dataclass(frozen=True, eq=False)
class Stoppable:
    """Parts that wait, and parts that may stop."""

    world: MigrationState
    may_stop: AbstractSet[int]
    enters: AbstractSet[int]
    copies: AbstractSet[Pair]
    deletes: AbstractSet[Pair]
    reserved: Sequence[int]
    """[R] room that is kept for outputs."""
    urgent: bool
    """True if a deletion counts although nothing waits for its room."""

    def runs(self, u: int) -> bool:
        """Whether a part of a workload may stop and runs where it runs today."""
        part = self.world.loads.parts[u]
        there = Where.THERE if part.stays else Where.TODAY
        return u in self.may_stop and part.runs_today and self.world.where[u] is there


def cheapest_stop(wanted: Stoppable) -> tuple[int, ...]:
    """The parts of workloads that cost least among those whose stop lets some step be made, or takes reads off a link
    that a copy waits for; none where no stop helps.
    """
    choices = [*islice(_for_work(wanted), MOST_TRIED), *islice(_for_copies(wanted), MOST_TRIED)]
    choices += islice(_for_deletions(wanted), MOST_TRIED)
    return min(choices, default=(0, ()))[1]


def _for_work(wanted: Stoppable) -> Iterator[Choice]:
    """Stops that let waiting work of a migration start, one choice for each."""
    world = wanted.world
    for u in sorted(wanted.enters):
        if world.has_data(u, local=False):
            if not world.fits(u):
                choice = _without(wanted, world.needed(u), but=u)
            else:
                choice = _cheapest(wanted, _far_readers(wanted, {r for _, r, _, _ in world.loads.loads[u].reads_then}))
            if choice is not None:
                yield choice


def _for_copies(wanted: Stoppable) -> Iterator[Choice]:
    """Stops that let waiting copies of a migration begin, one choice for each."""
    world = wanted.world
    for i, r in sorted(wanted.copies):
        if world.m.sources(i, r, world.held[i]) is not None:
            choice = _without(wanted, ((r, SHARE * world.m.size_mb[i] + wanted.reserved[r]),), but=-1)
            choice = choice or _cheapest(wanted, _readers_in_the_way(wanted, i, r))
            if choice is not None:
                yield choice


def _for_deletions(wanted: Stoppable) -> Iterator[Choice]:
    """Stops that free replicas which are only kept for their readers, where something waits for room."""
    world = wanted.world
    m = world.m
    short = {r for i, r in wanted.copies if SHARE * m.size_mb[i] + wanted.reserved[r] > world.free[r]}
    for u in wanted.enters:
        short |= {limit for limit, amount in world.needed(u) if amount > world.free[limit]}
    for i, r in sorted(wanted.deletes):
        stay = world.held[i] - {r}
        if len(stay) < m.floor[i] or (i, r) in world.sending or not (wanted.urgent or r in short):
            continue
        readers = world.readers.get(i, {})
        cut_off = [to for to in readers if m.served(i, to, world.held[i]) and not m.served(i, to, stay)]
        in_the_way = [u for to in cut_off for u in world.loads.reading_now.get((i, to), ()) if wanted.runs(u)]
        if cut_off and len(in_the_way) == sum(readers[to] for to in cut_off):
            parts = tuple(sorted(set(in_the_way)))
            yield sum(world.loads.loads[u].cost for u in parts), parts
        elif not cut_off and world.remote is not None:
            choice = _cheapest(wanted, _far_readers(wanted, set(readers)))
            if choice is not None:
                yield choice


def _without(wanted: Stoppable, amounts: Amounts, but: int) -> Choice | None:
    """Parts of workloads whose stop leaves room for the amounts; None where no stop does."""
    world, loads = wanted.world, wanted.world.loads
    chosen: dict[int, None] = {}
    for limit, amount in amounts:
        missing = amount - world.free[limit] - sum(dict(loads.loads[u].leaves).get(limit, 0) for u in chosen)
        if missing <= 0:
            continue
        several: list[int] = []
        got = 0
        for u in loads.using_now.get(limit, ()):
            if u == but or u in chosen or not wanted.runs(u):
                continue
            uses = dict(loads.loads[u].leaves)[limit]
            if uses >= missing and (got < missing or loads.loads[u].cost <= sum(loads.loads[v].cost for v in several)):
                several, got = [u], uses
                break
            if got < missing:
                several.append(u)
                got += uses
            elif loads.loads[u].cost > sum(loads.loads[v].cost for v in several):
                break
        if got < missing:
            return None
        chosen |= dict.fromkeys(several)
    return (sum(loads.loads[u].cost for u in chosen), tuple(chosen)) if chosen else None


def _far_readers(wanted: Stoppable, regions: Iterable[int]) -> Iterator[int]:
    """Parts of today's workloads that read over the links into the regions."""
    world = wanted.world
    if world.remote is not None:
        for r in sorted(regions):
            for i in world.remote.flow[r]:
                yield from world.loads.reading_now.get((i, r), ())


def _readers_in_the_way(wanted: Stoppable, i: int, r: int) -> Iterator[int]:
    """Parts of today's workloads that read over the links which a copy could take, where reads leave it no room."""
    world = wanted.world
    if world.remote is None or not world.links_full(i, r):
        return
    for j, sources in world.remote.flow[r].items():
        if world.held[i] & sources.keys():
            yield from world.loads.reading_now.get((j, r), ())
    for j in world.remote.short[r]:
        yield from world.loads.reading_now.get((j, r), ())


def _cheapest(wanted: Stoppable, parts: Iterable[int]) -> Choice | None:
    """The cheapest part of running work that can stop in a migration; None if none runs."""
    return min(((wanted.world.loads.loads[u].cost, (u,)) for u in parts if wanted.runs(u)), default=None)
