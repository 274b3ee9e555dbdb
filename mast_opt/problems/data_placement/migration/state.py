"""State of a data-placement migration: what regions hold and run, and which step keeps every limit.

A step has two sides. What it takes (room, cores, replicas that others might read) counts from its beginning, what it
gives from its end. So steps that are each possible after what the others take may run at the same time, in any order.

Remote reads over links during a data-placement migration: the replica each region reads from, within link capacity.

The reads of a region share the links into it. Each region's reads are a flow from replicas over links to datasets, kept
maximal by augmenting paths, so a read is refused only if no choice of sources has room for it.
"""

import enum
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from mast_opt.problems.data_placement.migration.loads import Amounts, Load, Loads, Reads
from mast_opt.problems.data_placement.migration.replica_moves import Moving, Pair
from mast_opt.problems.data_placement.problem import SHARE

Holders = Sequence[frozenset[int]]
"""[I] the regions that hold each dataset."""
Saved = tuple[dict[int, int], dict[int, dict[int, int]], dict[int, int], dict[int, int]]


class RemoteReads:
    """Volumes are in thousandths of a MB a day."""

    def __init__(self, link_kb: dict[Pair, int], may_read: Callable[[int, int, int], bool], regions: int) -> None:
        self.link_kb = link_kb
        self.may_read = may_read
        self.demand: list[dict[int, int]] = [{} for _ in range(regions)]
        """[R] dataset → what work in the region reads, from wherever."""
        self.flow: list[dict[int, dict[int, int]]] = [{} for _ in range(regions)]
        """[R] dataset → source → what is read over the link."""
        self.used: list[dict[int, int]] = [{} for _ in range(regions)]
        """[R] source → what is read over the link."""
        self.short: list[dict[int, int]] = [{} for _ in range(regions)]
        """[R] dataset → what finds no way; only what finds none today either."""
        self.copied: dict[Pair, int] = {}
        """(source, region) → copied over the link since the day began."""

    def copy(self) -> "RemoteReads":
        """A copy of the remote reads whose changes leave this one as it is."""
        twin = RemoteReads(self.link_kb, self.may_read, 0)
        twin.demand = [dict(one) for one in self.demand]
        twin.flow = [{i: dict(sources) for i, sources in one.items()} for one in self.flow]
        twin.used = [dict(one) for one in self.used]
        twin.short = [dict(one) for one in self.short]
        twin.copied = dict(self.copied)
        return twin

    def spare(self, q: int, r: int) -> int:
        """Room of a link between regions now, next to its reads and the day's copies."""
        return self.link_kb.get((q, r), 0) - self.used[r].get(q, 0) - self.copied.get((q, r), 0)

    def missing(self, r: int) -> int:
        """Volume that a region reads remotely and finds no way for."""
        return sum(self.short[r].values())

    def save(self, r: int) -> Saved:
        """Everything about the remote reads of a region, for ``restore``."""
        flow = {i: dict(sources) for i, sources in self.flow[r].items()}
        return dict(self.demand[r]), flow, dict(self.used[r]), dict(self.short[r])

    def restore(self, r: int, saved: Saved) -> None:
        """Restore the remote reads of a region as they were when saved."""
        self.demand[r], self.flow[r], self.used[r], self.short[r] = saved

    def add(self, i: int, r: int, volume: int) -> None:
        """Change what the region reads of a dataset; ``fit`` finds sources for it."""
        amount = self.demand[r].get(i, 0) + volume
        self.demand[r][i] = amount
        if not amount:
            del self.demand[r][i]

    def fit(self, r: int, datasets: Iterable[int], held: Holders) -> None:
        """Find sources for the region's reads of the datasets, which changed, and for what is short."""
        todo = list(dict.fromkeys([*datasets, *self.short[r]]))
        for i in todo:
            self._cut(i, r, held)
        for i in todo:
            sources = self.flow[r].get(i, {})
            wanted = self._wanted(i, r, held) - sum(sources.values())
            self.short[r].pop(i, None)
            left = self._push(i, r, wanted, held)
            if left:
                self.short[r][i] = left

    def make_room(self, q: int, r: int, held: Holders) -> bool:
        """Move remote reads off a link to others, for a copy that has no other way. Returns whether any moved."""
        moved = False
        for i in list(self.flow[r]):
            for other in self._sources(i, r, held):
                amount = min(self.flow[r][i].get(q, 0), self.spare(other, r))
                if other != q and amount > 0:
                    self._shift(i, r, q, -amount)
                    self._shift(i, r, other, amount)
                    moved = True
        return moved

    def _wanted(self, i: int, r: int, held: Holders) -> int:
        """Volume that the region wants to read remotely of a dataset."""
        return 0 if r in held[i] else self.demand[r].get(i, 0)

    def _sources(self, i: int, r: int, held: Holders) -> list[int]:
        """Regions from which the dataset may be read, the widest link first."""
        sources = [q for q in held[i] if q != r and self.may_read(i, r, q)]
        return sorted(sources, key=lambda q: (-self.spare(q, r), q))

    def _cut(self, i: int, r: int, held: Holders) -> None:
        """Give up reads from replicas that are gone, and what is no longer read."""
        sources = self.flow[r].get(i)
        if sources is None:
            return
        for q in [q for q in sources if q not in held[i]]:
            self._shift(i, r, q, -sources[q])
        over = sum(sources.values()) - self._wanted(i, r, held)
        for q in list(sources):
            if over > 0:
                amount = min(over, sources[q])
                self._shift(i, r, q, -amount)
                over -= amount
        if not sources:
            del self.flow[r][i]

    def _shift(self, i: int, r: int, q: int, amount: int) -> None:
        """Move the volume of a remote read to or from a source."""
        sources = self.flow[r].setdefault(i, {})
        for amounts, key in ((sources, q), (self.used[r], q)):
            amounts[key] = amounts.get(key, 0) + amount
            if not amounts[key]:
                del amounts[key]

    def _push(self, i: int, r: int, wanted: int, held: Holders) -> int:
        """Read that much more of a dataset remotely; returns what does not fit whatever is read from where."""
        while wanted > 0:
            path = self._path(i, r, held)
            if path is None:
                return wanted
            amount = min(wanted, self.spare(path[-1][1], r))
            for (_, q), (j, _) in pairwise(path):
                amount = min(amount, self.flow[r][j][q])
            for at, (j, q) in enumerate(path):
                self._shift(j, r, q, amount)
                if at:
                    self._shift(j, r, path[at - 1][1], -amount)
            wanted -= amount
        return 0

    def _path(self, i: int, r: int, held: Holders) -> list[tuple[int, int]] | None:
        """(dataset, new source), …: the first dataset reads from a source, another reads less there and more elsewhere,
        …, down to a link with room."""
        came: dict[int, tuple[int, int | None]] = {}
        queue: deque[int] = deque()
        for q in self._sources(i, r, held):
            came[q] = (i, None)
            queue.append(q)
        while queue:
            q = queue.popleft()
            if self.spare(q, r) > 0:
                path = []
                at: int | None = q
                while at is not None:
                    j, before = came[at]
                    path.append((j, at))
                    at = before
                return path[::-1]
            for j, sources in self.flow[r].items():
                if q in sources:
                    for other in self._sources(j, r, held):
                        if other not in came:
                            came[other] = (j, q)
                            queue.append(other)
        return None


class Where(enum.Enum):
    """Place of a part of a workload during the migration."""

    TODAY = "where it runs today, if anywhere"
    STOPPED = "nowhere, until it starts where the plan has it"
    THERE = "where the plan has it, or ended if the plan does not serve it"


class MigrationState:
    """The state in between; every method that takes says whether the limits allow it, and changes nothing if not."""

    def __init__(self, moving: Moving, loads: Loads) -> None:
        self.m, self.loads = moving, loads
        stored = moving.problem.datasets.stored
        self.held: list[frozenset[int]] = [frozenset() for _ in range(len(stored))]
        for i, r in zip(*(axis.tolist() for axis in stored.nonzero()), strict=True):
            self.held[i] |= {r}
        self.free = list(loads.free)
        self.where = [Where.THERE if part.stays else Where.TODAY for part in loads.parts]
        """[U] parts that stay are there from the beginning."""
        self.to_come = {i: {r for _, r in pairs} for i, pairs in moving.incoming_of.items()}
        """Dataset → regions that the copies still to begin go to."""
        self.sending: dict[Pair, int] = {}
        """(dataset, region) → copies under way from there."""
        self.readers: dict[int, dict[int, int]] = {}
        """Dataset → region → parts that read it from there."""
        self.leaving: dict[Pair, int] = {}
        """(dataset, region) → parts that read it there today and have not left."""
        self.remote = self._first_reads()

    def _first_reads(self) -> RemoteReads | None:
        """Remote reads over links at the begin of a migration; None without a network."""
        m = self.m
        remote = None
        if m.link_kb is not None:
            remote = RemoteReads(m.link_kb, m.may_read, len(m.problem.regions))
        for part, load in zip(self.loads.parts, self.loads.loads, strict=True):
            for i, r, count, volume in load.reads_now:
                self._count(i, r, count)
                if not part.stays:
                    self.leaving[i, r] = self.leaving.get((i, r), 0) + count
                if remote is not None:
                    remote.add(i, r, volume)
        if remote is not None:
            for r, demand in enumerate(remote.demand):
                remote.fit(r, list(demand), self.held)
        return remote

    def copy(self) -> "MigrationState":
        """A copy of the migration's state whose changes leave this one as it is."""
        twin = MigrationState.__new__(MigrationState)
        twin.m, twin.loads = self.m, self.loads
        twin.held, twin.free, twin.where = list(self.held), list(self.free), list(self.where)
        twin.to_come = {i: set(regions) for i, regions in self.to_come.items()}
        twin.sending, twin.leaving = dict(self.sending), dict(self.leaving)
        twin.readers = {i: dict(regions) for i, regions in self.readers.items()}
        twin.remote = None if self.remote is None else self.remote.copy()
        return twin

    # replicas

    def may_begin(self, i: int, r: int) -> bool:
        """Whether there is room for a replica, and somewhere to copy it from."""
        size = SHARE * self.m.size_mb[i]
        return (not size or size <= self.free[r]) and self.m.sources(i, r, self.held[i]) is not None

    def begin(self, i: int, r: int) -> None:
        """Keep the room for a replica that may come."""
        self.free[r] -= SHARE * self.m.size_mb[i]
        self.to_come.get(i, set()).discard(r)

    def arrive(self, i: int, r: int) -> None:
        """The replica is whole."""
        self.held[i] |= {r}
        if self.remote is not None:
            for region in self.readers.get(i, {}):
                self.remote.fit(region, (i,), self.held)

    def delete(self, i: int, r: int) -> bool:
        """Give up a replica if enough stay, nothing is copied from it, copies to come have another source, and whoever
        can read the dataset now still can."""
        m, held = self.m, self.held[i]
        stay = held - {r}
        if len(stay) < m.floor[i] or (i, r) in self.sending:
            return False
        for to in self.to_come.get(i, ()):
            if m.sources(i, to, held) is not None and m.sources(i, to, stay) is None:
                return False
        readers = self.readers.get(i, {})
        if any(m.served(i, to, held) and not m.served(i, to, stay) for to in readers):
            return False
        self.held[i] = stay
        if self.remote is None or all(self._refit(to, (), (i,)) for to in readers):
            return True
        self.held[i] = held
        for to in readers:
            self.remote.fit(to, (i,), self.held)
        return False

    def deleted(self, i: int, r: int) -> None:
        """The room of a replica is free."""
        self.free[r] += SHARE * self.m.size_mb[i]

    def local_readers_leave(self, i: int, r: int) -> bool:
        """Whether work reads the replica that will soon run somewhere else."""
        return self.leaving.get((i, r), 0) > 0

    # work

    def taken(self, u: int) -> Amounts:
        """Amounts that a part of a workload takes when it starts where the plan has it."""
        load = self.loads.loads[u]
        return load.takes if self.where[u] is Where.TODAY else load.enters

    def needed(self, u: int) -> Amounts:
        """Amounts that must be free for a part of a workload to start where the plan has it: in its own tier it gets
        its GPUs, whatever waits there today."""
        over = self.loads.over[u]
        return tuple((limit, amount + over.get(limit, 0)) for limit, amount in self.taken(u)) if over else self.taken(u)

    def fits(self, u: int) -> bool:
        """Whether there is room for a part of a workload to start where the plan has it."""
        return all(amount <= self.free[limit] for limit, amount in self.needed(u))

    def has_data(self, u: int, local: bool) -> bool:
        """Whether a part of a workload can read all its data where the plan has it. ``local``: in the same region,
        where the plan does so.
        """
        m = self.m
        for i, r, _, _ in self.loads.loads[u].reads_then:
            if local and m.plan.place[i, r] and r not in self.held[i]:
                return False
            if not m.readable(i, r, self.held[i]):
                return False
        return True

    def links_full(self, i: int, r: int) -> bool:
        """Whether reads take all of each link over which a copy of the dataset could come."""
        remote = self.remote
        links = [] if remote is None else [q for q in self.held[i] if remote.link_kb.get((q, r), 0)]
        return remote is not None and bool(links) and all(remote.spare(q, r) <= 0 for q in links)

    def enter(self, u: int) -> bool:
        """Begin to run where the plan has it, if there is room, data and a way for remote reads."""
        load = self.loads.loads[u]
        if not self.fits(u) or not self.has_data(u, local=False):
            return False
        reads = load.reads_takes if self.where[u] is Where.TODAY else load.reads_then
        if self.remote is not None and not self._refit_all(reads):
            return False
        for limit, amount in self.taken(u):
            self.free[limit] -= amount
        for i, r, count, _ in reads:
            self._count(i, r, count)
        return True

    def leave(self, u: int) -> None:
        """End the run of a part of a workload where it runs today; ``enter`` comes first."""
        load = self.loads.loads[u]
        if self.where[u] is Where.TODAY:
            self._give(load, load.gives, load.reads_gives)
        self.where[u] = Where.THERE

    def stop(self, u: int) -> None:
        """Let a part of a workload no longer run today's way, and not yet the plan's; also a part that stays, once."""
        load = self.loads.loads[u]
        self._give(load, load.leaves, load.reads_now, stays=self.loads.parts[u].stays)
        self.where[u] = Where.STOPPED if self.loads.parts[u].runs_then else Where.THERE

    def _give(self, load: Load, amounts: Amounts, reads: Reads, stays: bool = False) -> None:
        """Give back the amounts and reads of a part of a workload that leaves."""
        for limit, amount in amounts:
            self.free[limit] += amount
        if not stays:
            for i, r, count, _ in load.reads_now:
                self.leaving[i, r] -= count
        for i, r, count, volume in reads:
            self._count(i, r, -count)
            if self.remote is not None:
                self.remote.add(i, r, -volume)
        if self.remote is not None:
            for r, datasets in _by_region(reads).items():
                self.remote.fit(r, datasets, self.held)

    def _count(self, i: int, r: int, more: int) -> None:
        """Count more or fewer readers of a dataset in a region."""
        if more:
            regions = self.readers.setdefault(i, {})
            regions[r] = regions.get(r, 0) + more
            if not regions[r]:
                del regions[r]

    def _refit_all(self, reads: Reads) -> bool:
        """Find sources for more remote reads in several regions, or leave all as it was."""
        assert self.remote is not None
        done: list[tuple[int, Saved]] = []
        for r in _by_region(reads):
            saved = self.remote.save(r)
            if not self._refit(r, [(i, volume) for i, region, _, volume in reads if region == r], ()):
                for region, before in done:
                    self.remote.restore(region, before)
                return False
            done.append((r, saved))
        return True

    def _refit(self, r: int, more: Iterable[Pair], changed: Iterable[int]) -> bool:
        """Find sources for datasets that a region reads and is to read; False, and all as it was, where more would be
        short.
        """
        assert self.remote is not None
        saved, before = self.remote.save(r), self.remote.missing(r)
        datasets = [*changed]
        for i, volume in more:
            self.remote.add(i, r, volume)
            datasets.append(i)
        self.remote.fit(r, datasets, self.held)
        if self.remote.missing(r) <= before:
            return True
        self.remote.restore(r, saved)
        return False


def _by_region(reads: Reads) -> dict[int, list[int]]:
    """Datasets that a part of a workload reads, by region."""
    regions: dict[int, list[int]] = {}
    for i, r, _, _ in reads:
        regions.setdefault(r, []).append(i)
    return regions
