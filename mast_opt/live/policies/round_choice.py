"""Choice of the jobs that run in a round, and where: each GPU type in turn gives its GPUs to the jobs, and pairs, with
the highest share over time received there (Gavel, OSDI'20, section 5)."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from mast_opt.core.arrays import IntArray
from mast_opt.live.policies.pair_table import PairTable
from mast_opt.live.policies.round_table import RoundTable

ROWS = 256
"""Rows that are turned into Python's numbers at once."""
Cell = tuple[str, int]
"""Region and position of a GPU type."""


class Choice:
    """A round that is being filled.

    Args:
        table, pairs: what jobs and pairs take, are to have and have had.
        supply: milli-GPUs of each cell.
        target: job → where it ran in the round before.
        fixed: job → where it goes on.
        regions: job → where it may run.
    """

    def __init__(
        self,
        table: RoundTable,
        pairs: PairTable,
        supply: Mapping[Cell, int],
        target: Mapping[str, Cell],
        fixed: Mapping[str, Cell],
        regions: Callable[[str], tuple[str, ...]],
    ) -> None:
        self._table, self._pairs, self._target, self._regions = table, pairs, target, regions
        self._left = dict(supply)
        self._idle = np.ones(len(table), np.bool_)
        self.chosen: dict[str, Cell] = dict(fixed)
        """Job → where it runs, in the order of choice."""
        self.mates: dict[str, str] = {}
        """Each of two jobs on the same GPUs → the other."""
        for name, cell in fixed.items():
            self._idle[table.at[name]] = False
            self._left[cell] = self._left.get(cell, 0) - int(table.need[table.at[name], cell[1]])

    def take(self, kind: int, may_run: Callable[[int], bool], *, only_shared: bool) -> None:
        """Let a GPU type give its GPUs to the jobs of this round, as far as they go.

        Args:
            may_run: whether a job that has been chosen, by position, runs; it has its GPUs either way.
            only_shared: whether jobs without a share are passed over.
        """
        table, idle = self._table, self._idle
        order, least = self._by_priority(kind, only_shared=only_shared)
        for one, other in _rows(order):
            if self._most_left(kind) < least:
                return
            if not idle[one] or (other >= 0 and not idle[other]):
                continue
            names = (table.names[one],) if other < 0 else (table.names[one], table.names[other])
            need = int(table.need[one, kind])
            region = self._region_of(names, need, kind)
            if region is None:
                continue
            self._left[region, kind] -= need
            idle[one] = False
            if other >= 0:
                idle[other] = False
                self.mates[names[0]], self.mates[names[-1]] = names[-1], names[0]
            if may_run(one):
                self.chosen.update(dict.fromkeys(names, (region, kind)))

    def _most_left(self, kind: int) -> int:
        """Largest number of GPUs of a type that a region has left in this round."""
        return max((left for (_, of), left in self._left.items() if of == kind), default=0)

    def _by_priority(self, kind: int, *, only_shared: bool) -> tuple[IntArray, int]:
        """[n, 2] idle jobs, and pairs (-1: none), that may run in this round on a GPU type, by share over time
        received; ties by what they are owed, then by share. And the least that one of them needs.
        """
        table, pairs, idle = self._table, self._pairs, self._idle
        share = np.r_[table.share[:, kind], pairs.share[:, kind]]
        received = np.r_[table.received[:, kind], pairs.received[:, kind]]
        deficit = np.r_[table.deficit[:, kind], pairs.deficit[:, kind]]
        able = np.r_[idle & (table.rate[:, kind] > 0), idle[pairs.jobs].all(axis=1)]
        shared = share > 0
        able &= shared if only_shared else shared | (np.arange(len(share)) < len(table))
        order = np.lexsort((-share, -deficit, -share / received))
        alone = np.c_[np.arange(len(table)), np.full(len(table), -1)]
        found = np.r_[alone, pairs.jobs][order[able[order]]]
        return found, int(table.need[found[:, 0], kind].min()) if len(found) else 0

    def _region_of(self, names: tuple[str, ...], need: int, kind: int) -> str | None:
        """Region where a job, or a pair, would run on a type: where it does, else where least is left over."""
        for name in names:
            region, at = self._target.get(name, ("", -1))
            stays = at == kind and self._left.get((region, kind), 0) >= need
            if stays and all(region in self._regions(other) for other in names if other != name):
                return region
        regions = self._regions(names[0])
        if len(names) > 1:
            others = self._regions(names[1])
            regions = tuple(one for one in regions if one in others)
        fits = [region for region in regions if self._left.get((region, kind), 0) >= need]
        return min(fits, key=lambda region: self._left[region, kind]) if fits else None


def _rows(table: IntArray) -> Iterator[tuple[int, int]]:
    """The rows of a round's candidates, a few at a time: most are never looked at."""
    for at in range(0, len(table), ROWS):
        yield from table[at : at + ROWS].tolist()
