"""Replica moves of a data-placement migration: what goes from today's places to the plan's, under which limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.problem import SHARE, Bools, DataPlacement
from mast_opt.problems.data_placement.verification.measures import totals

Pair = tuple[int, int]
"""(dataset, region)"""
Sources = tuple[Pair, ...]
"""(region, share in thousandths) that a copy comes from; empty for an upload from outside."""


@dataclass(frozen=True, eq=False)
class Moving:
    """The replicas that come and go, and the limits on the way: what holds whatever is done so far."""

    problem: DataPlacement
    plan: Plan
    patient: bool = False
    """Whether a copy waits for a link of the plan that other copies take today, rather than come from elsewhere."""
    relays: Mapping[Pair, int] = field(default_factory=dict)
    """(dataset, region) → the region whose copy has to be there before, and which this one comes from."""

    @cached_property
    def incoming(self) -> tuple[Pair, ...]:
        """Replicas of the plan that are not there today."""
        return _pairs(self.plan.place & ~self.problem.datasets.stored)

    @cached_property
    def outgoing(self) -> tuple[Pair, ...]:
        """Replicas of today that the plan does not have."""
        return _pairs(self.problem.datasets.stored & ~self.plan.place)

    @cached_property
    def datasets(self) -> tuple[int, ...]:
        """Those with a replica that comes or goes."""
        return tuple(sorted({i for i, _ in (*self.incoming, *self.outgoing)}))

    @cached_property
    def incoming_of(self) -> dict[int, tuple[Pair, ...]]:
        """Replicas that come, by dataset."""
        return _by_dataset(self.datasets, self.incoming)

    @cached_property
    def outgoing_of(self) -> dict[int, tuple[Pair, ...]]:
        """Replicas that go, by dataset."""
        return _by_dataset(self.datasets, self.outgoing)

    @cached_property
    def incoming_at(self) -> tuple[tuple[int, ...], ...]:
        """[R] the datasets that come to each region."""
        new = self.plan.place & ~self.problem.datasets.stored
        return tuple(tuple(np.flatnonzero(new[:, r]).tolist()) for r in range(len(self.problem.regions)))

    @cached_property
    def incoming_pairs_at(self) -> tuple[tuple[Pair, ...], ...]:
        """[R] the replicas that come to each region."""
        return tuple(tuple((i, r) for i in datasets) for r, datasets in enumerate(self.incoming_at))

    @cached_property
    def size_mb(self) -> tuple[int, ...]:
        """Sizes [I] of the datasets."""
        return tuple(self.problem.datasets.size_mb.tolist())

    @cached_property
    def stored_at(self) -> dict[int, frozenset[int]]:
        """Regions that hold a replica today, by dataset; only datasets that move."""
        return {i: frozenset(np.flatnonzero(self.problem.datasets.stored[i]).tolist()) for i in self.datasets}

    @cached_property
    def floor(self) -> dict[int, int]:
        """Whole replicas that each dataset keeps all the way: as many as it must have, and never more than it has
        today or in the plan."""
        least, now = self.problem.datasets.copies_min, self.problem.datasets.stored.sum(axis=1)
        then = self.plan.place.sum(axis=1)
        return {i: int(min(max(least[i], 1), now[i], then[i])) for i in self.datasets}

    @cached_property
    def free_mb(self) -> tuple[int, ...]:
        """[R] room for data today less what the outputs of the plan's work take; below 0 where a region
        holds too much.
        """
        p, plan = self.problem, self.plan
        outputs = totals(plan.run_region, p.workloads.output_mb[plan.run_workload], plan.run_share, len(p.regions))
        held = (p.datasets.size_mb @ p.datasets.stored).tolist()
        usable = p.usable_storage_mb.tolist()
        return tuple(have - use - -(-out // SHARE) for have, use, out in zip(usable, held, outputs, strict=True))

    @cached_property
    def ingress_kb(self) -> tuple[int | None, ...]:
        """[R] MB of data that may be copied in each day; None without a limit."""
        p = self.problem
        limits = zip(p.regions.ingress_limited.tolist(), p.regions.ingress_mb_per_day.tolist(), strict=True)
        return tuple(SHARE * rate if limited else None for limited, rate in limits)

    @cached_property
    def link_kb(self) -> dict[Pair, int] | None:
        """(source, target) → data that the link carries each day; None where any region reaches any other."""
        links = self.problem.links
        if links is None:
            return None
        ends = zip(links.source.tolist(), links.target.tolist(), strict=True)
        return dict(zip(ends, [SHARE * mb for mb in links.capacity_mb_per_day.tolist()], strict=True))

    def may_read(self, i: int, r: int, q: int) -> bool:
        """Whether work in region r may read the dataset from a replica in region q. ``r == q``: from its own region."""
        if self._outside[i][r] or self._outside[i][q]:
            return False
        return r == q or (self.problem.remote_reads and (self.link_kb is None or (q, r) in self.link_kb))

    def readable(self, i: int, r: int, holders: frozenset[int]) -> bool:
        """Whether work in region r may read the dataset from one of the holders, whatever the links have to spare."""
        return any(self.may_read(i, r, q) for q in holders)

    def served(self, i: int, r: int, holders: frozenset[int]) -> bool:
        """Whether work that is in region r already can go on to read the dataset. From its own region it does so even
        outside the residency, today."""
        return r in holders or self.readable(i, r, holders)

    @cached_property
    def _outside(self) -> list[list[bool]]:
        """[I, R] the regions outside the residency of each dataset."""
        outside: list[list[bool]] = self.problem.outside.tolist()
        return outside

    @cached_property
    def planned(self) -> dict[Pair, Sources]:
        """(dataset, region) → where the plan, or a relay, copies from."""
        rows: dict[Pair, list[Pair]] = {}
        plan = self.plan
        columns = (plan.copy_dataset, plan.copy_target, plan.copy_source, plan.copy_share)
        for i, r, q, share in zip(*(column.tolist() for column in columns), strict=True):
            room = SHARE - sum(part for _, part in rows.setdefault((i, r), []))
            if room:
                rows[i, r].append((q, min(share, room)))
        relayed = {pair: ((q, SHARE),) for pair, q in self.relays.items()}
        return {pair: tuple(sources) for pair, sources in rows.items()} | relayed

    def sources(self, i: int, r: int, holders: frozenset[int]) -> Sources | None:
        """Sources of a copy of the dataset to the region: as planned if all of that is still there, else from the
        holder with the widest link. None where no holder reaches the region, or a relay is not there yet."""
        if not self.stored_at[i]:
            return ()
        planned = self.planned.get((i, r))
        if planned and all(q in holders for q, _ in planned):
            return planned
        if (i, r) in self.relays:
            return None
        if self.link_kb is None:
            return ((min(holders), SHARE),) if holders else None
        widths = [(-self.link_kb.get((q, r), 0), q) for q in holders]
        widest = min(widths, default=(0, -1))
        return ((widest[1], SHARE),) if widest[0] < 0 else None

    def hop_regions(self, i: int) -> tuple[int, ...]:
        """Regions where the dataset could stop over."""
        p = self.problem
        away = p.datasets.stored[i] | self.plan.place[i] | p.closed[i]
        return tuple(r for r in np.flatnonzero(~away).tolist() if self.ingress_kb[r] != 0)


def _by_dataset(datasets: tuple[int, ...], pairs: tuple[Pair, ...]) -> dict[int, tuple[Pair, ...]]:
    """Pairs of dataset and region, by dataset, in a migration."""
    groups: dict[int, list[Pair]] = {i: [] for i in datasets}
    for pair in pairs:
        groups[pair[0]].append(pair)
    return {i: tuple(group) for i, group in groups.items()}


def _pairs(grid: Bools) -> tuple[Pair, ...]:
    """Pairs of dataset and region that a grid marks."""
    return tuple((int(i), int(r)) for i, r in zip(*np.nonzero(grid), strict=True))
