"""Resource loads of workload parts in a data-placement migration: what each takes of limits, what it reads where."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np

from mast_opt.problems.data_placement.migration.replica_moves import Moving
from mast_opt.problems.data_placement.migration.workload_moves import Part, Piece, parts
from mast_opt.problems.data_placement.problem import SHARE

Amounts = tuple[tuple[int, int], ...]
"""(limit, amount) with an amount above 0, in thousandths of the base unit."""
Reads = tuple[tuple[int, int, int, int], ...]
"""(dataset, region, readers, thousandths of a MB a day)"""


@dataclass(frozen=True)
class Load:
    """Amounts that one part needs, on today's side and on the plan's."""

    leaves: Amounts
    """All that it uses today."""
    enters: Amounts
    """All that it uses in the plan."""
    gives: Amounts
    """Amounts of ``leaves`` that are free after a move: where both sides use the same limit, the difference."""
    takes: Amounts
    reads_now: Reads
    reads_then: Reads
    reads_gives: Reads
    reads_takes: Reads
    cost: int
    """Cost of a stop: the GPUs of today (for CPU-only work those that would take its share of all cores), in millionths
    of a GPU."""


@dataclass(frozen=True, eq=False)
class Loads:
    """The limits by number, what is free of each today, and the load of every part.

    The limits are, in this order: storage and cores of each region, the quotas, and for each region, GPU type and tier
    the GPUs that work of this tier or a more important one may use: those that are there, or today's or the plan's
    demand where that is more. Work of the tier itself enters within supply and plan only: see ``over``.
    """

    moving: Moving

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Every part of every workload that runs today or in the plan."""
        return parts(self.moving.problem, self.moving.plan)

    @cached_property
    def loads(self) -> tuple[Load, ...]:
        """[U] loads of every part of the migrating work."""
        return tuple(self._load(part) for part in self.parts)

    @cached_property
    def free(self) -> tuple[int, ...]:
        """Free amount of each limit of the regions today; below 0 where today uses more than there is."""
        p = self.moving.problem
        held = (
            (p.datasets.size_mb.astype(object) @ p.datasets.stored).tolist()
            if len(p.datasets)
            else [0] * len(p.regions)
        )
        room = [have - use for have, use in zip(p.usable_storage_mb.tolist(), held, strict=True)]
        limits = [*room, *p.regions.cpu_mcores.tolist(), *p.cpu_quotas.cpu_mcores.tolist()]
        now, most = self._used_now, self._planned_mgpu
        first = len(limits)
        most = [max(have, now[first + n]) for n, have in enumerate(most)]
        return tuple(amount - now[n] for n, amount in enumerate([*(SHARE * have for have in limits), *most]))

    @cached_property
    def over(self) -> tuple[Mapping[int, int], ...]:
        """[U] limit of GPUs in a part's own tier → what must be free beyond what the part takes: today's demand above
        both the supply and the plan's. Only limits where that is above 0."""
        p, most, tiers = self.moving.problem, self._planned_mgpu, len(self.moving.problem.tiers)
        first = len(self.free) - len(most)
        over = {first + n: self._used_now[first + n] - have for n, have in enumerate(most)}
        over = {limit: amount for limit, amount in over.items() if amount > 0}
        return tuple(
            {limit: over[limit] for limit, _ in load.enters if limit in over and (limit - first) % tiers == tier}
            for load, tier in zip(self.loads, (p.workloads.tier[part.workload] for part in self.parts), strict=True)
        )

    @cached_property
    def _used_now(self) -> list[int]:
        """Use of every limit by the work that runs today."""
        return self._used(load.leaves for load in self.loads)

    @cached_property
    def _planned_mgpu(self) -> list[int]:
        """GPUs of each region, type and tier: those that are there, or the plan's demand where that is more."""
        p = self.moving.problem
        supply = np.repeat(p.regions.supply_mgpu.ravel(), len(p.tiers)).tolist()
        then = self._used(load.enters for load in self.loads)
        return [max(SHARE * have, asked) for have, asked in zip(supply, then[len(then) - len(supply) :], strict=True)]

    @cached_property
    def into(self) -> tuple[tuple[int, ...], ...]:
        """[R] the parts of workloads that run in each region in the plan."""
        regions: list[list[int]] = [[] for _ in self.moving.problem.regions.labels]
        for u, part in enumerate(self.parts):
            for r in sorted({piece.target[0] for piece in part.pieces if piece.target is not None}):
                regions[r].append(u)
        return tuple(map(tuple, regions))

    @cached_property
    def storing_into(self) -> tuple[tuple[int, ...], ...]:
        """[R] parts of workloads of ``into`` that need storage there."""
        outputs = self.moving.problem.workloads.output_mb
        return tuple(tuple(u for u in regions if outputs[self.parts[u].workload]) for regions in self.into)

    @cached_property
    def reading_then(self) -> dict[int, list[int]]:
        """Dataset → parts that read it in the plan."""
        found: dict[int, list[int]] = defaultdict(list)
        for u, load in enumerate(self.loads):
            for i in {i for i, *_ in load.reads_then}:
                found[i].append(u)
        return found

    @cached_property
    def reading_now(self) -> dict[tuple[int, int], list[int]]:
        """(dataset, region) → parts that read it there today."""
        found: dict[tuple[int, int], list[int]] = defaultdict(list)
        for u, load in enumerate(self.loads):
            for i, r, readers, _ in load.reads_now:
                if readers:
                    found[i, r].append(u)
        return found

    @cached_property
    def using_now(self) -> dict[int, list[int]]:
        """Limit → parts of workloads that use it today, the cheapest to stop first."""
        found: dict[int, list[int]] = defaultdict(list)
        for u in sorted(range(len(self.loads)), key=lambda u: self.loads[u].cost):
            for limit, _ in self.loads[u].leaves:
                found[limit].append(u)
        return found

    @cached_property
    def _quota(self) -> dict[tuple[int, int], int]:
        """Position in a migration of each quota, by region and application."""
        p = self.moving.problem
        return {
            pair: n for n, pair in enumerate(zip(p.cpu_quotas.region.tolist(), p.cpu_quotas.app.tolist(), strict=True))
        }

    @cached_property
    def _reads_of(self) -> dict[int, list[tuple[int, int]]]:
        """Reads of each workload in a migration: (dataset, MB a day)."""
        p = self.moving.problem
        reads: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for w, i, mb in zip(
            p.reads.workload.tolist(), p.reads.dataset.tolist(), p.reads.mb_per_day.tolist(), strict=True
        ):
            reads[w].append((i, mb))
        return reads

    def mgpu(self, w: int, k: int) -> int:
        """GPUs that the workload needs on a type; 0 on one that it does not accept."""
        return int(self.moving.problem.option_mgpu[w, k])

    def _load(self, part: Part) -> Load:
        """Load of one part of a workload, on both sides."""
        p, w = self.moving.problem, part.workload
        now, then = self._side(part, today=True), self._side(part, today=False)
        reads_now, reads_then = self._reads(part, today=True), self._reads(part, today=False)
        fewest = int(p.demand_mgpu[w])
        cost = sum(
            (self.mgpu(w, piece.source[1]) or fewest) * piece.share for piece in part.pieces if piece.source is not None
        )
        return Load(
            *(_positive(now), _positive(then), _positive(now - then), _positive(then - now)),
            *(_readers(reads_now, {}), _readers(reads_then, {})),
            *(_readers(reads_now, reads_then), _readers(reads_then, reads_now)),
            cost,
        )

    def _side(self, part: Part, today: bool) -> Counter[int]:
        """Limit → what a part of a workload uses of it."""
        p, w = self.moving.problem, part.workload
        regions, types, tiers = len(p.regions), len(p.gpu_types), len(p.tiers)
        gpus = 2 * regions + len(p.cpu_quotas)
        used: Counter[int] = Counter()
        for r, k, share in _cells(part.pieces, today):
            used[r] += int(p.workloads.output_mb[w]) * share
            cores = int(p.workloads.cpu_mcores[w]) * share
            used[regions + r] += cores
            quota = self._quota.get((r, int(p.workloads.app[w])))
            if quota is not None:
                used[2 * regions + quota] += cores
            if k < types:
                for tier in range(int(p.workloads.tier[w]), tiers):
                    used[gpus + (r * types + k) * tiers + tier] += self.mgpu(w, k) * share
        return used

    def _reads(self, part: Part, today: bool) -> dict[tuple[int, int], int]:
        """Volume that a part reads of each dataset in each region, today or in the plan."""
        read: Counter[tuple[int, int]] = Counter()
        for r, _, share in _cells(part.pieces, today):
            for i, mb in self._reads_of[part.workload]:
                read[i, r] += mb * share
        return read

    def _used(self, sides: Iterable[Amounts]) -> list[int]:
        """Use of every limit of the migration by these amounts together."""
        p = self.moving.problem
        *_, size = accumulate((2 * len(p.regions), len(p.cpu_quotas), p.regions.supply_mgpu.size * len(p.tiers)))
        used = [0] * size
        for side in sides:
            for limit, amount in side:
                used[limit] += amount
        return used


def _cells(pieces: tuple[Piece, ...], today: bool) -> list[tuple[int, int, int]]:
    """Places and shares of a workload's parts in a migration, today or then."""
    sides = ((piece.source if today else piece.target, piece.share) for piece in pieces)
    return [(*cell, share) for cell, share in sides if cell is not None]


def _positive(used: Counter[int]) -> Amounts:
    """Amounts above 0 that a part of a workload uses of limits in a migration."""
    return tuple((limit, amount) for limit, amount in sorted(used.items()) if amount > 0)


def _readers(read: Mapping[tuple[int, int], int], other: Mapping[tuple[int, int], int]) -> Reads:
    """Reads beyond those of the other side; a reader counts where the other side has none."""
    return tuple(
        (*pair, int(pair not in other), max(volume - other.get(pair, 0), 0)) for pair, volume in sorted(read.items())
    )
