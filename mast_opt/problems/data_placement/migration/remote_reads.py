"""Remote reads over links during a data-placement migration: the replica each region reads from, within link capacity.

The reads of a region share the links into it. Each region's reads are a flow from replicas over links to datasets, kept
maximal by augmenting paths, so a read is refused only if no choice of sources has room for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from mast_opt.problems.data_placement.migration.replica_moves import Pair

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

    def copy(self) -> RemoteReads:
        """A copy whose changes leave this one as it is."""
        twin = RemoteReads(self.link_kb, self.may_read, 0)
        twin.demand = [dict(one) for one in self.demand]
        twin.flow = [{i: dict(sources) for i, sources in one.items()} for one in self.flow]
        twin.used = [dict(one) for one in self.used]
        twin.short = [dict(one) for one in self.short]
        twin.copied = dict(self.copied)
        return twin

    def spare(self, q: int, r: int) -> int:
        """Room of a link now, next to its reads and the day's copies."""
        return self.link_kb.get((q, r), 0) - self.used[r].get(q, 0) - self.copied.get((q, r), 0)

    def missing(self, r: int) -> int:
        """Volume that the region reads and finds no way for."""
        return sum(self.short[r].values())

    def save(self, r: int) -> Saved:
        """Everything about the reads of a region, for ``restore``."""
        flow = {i: dict(sources) for i, sources in self.flow[r].items()}
        return dict(self.demand[r]), flow, dict(self.used[r]), dict(self.short[r])

    def restore(self, r: int, saved: Saved) -> None:
        """The reads of a region as they were when saved."""
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
        """Move reads off a link to others, for a copy that has no other way. Returns whether any moved."""
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
        """Move read volume to or from a source."""
        sources = self.flow[r].setdefault(i, {})
        for amounts, key in ((sources, q), (self.used[r], q)):
            amounts[key] = amounts.get(key, 0) + amount
            if not amounts[key]:
                del amounts[key]

    def _push(self, i: int, r: int, wanted: int, held: Holders) -> int:
        """Read that much more; returns what does not fit whatever is read from where."""
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
