"""Data placement by enumeration, straight from the statement of the problem and the raw fields of an instance.

Shares are multiples of 1/parts, so that everything can be listed. Plain Python throughout: this is the oracle
that formulation, solvers and verifier are held against, and it shares no code with any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations, product

from mast_opt.problems.data_placement import DataPlacement

Runs = tuple[tuple[tuple[int, int, int], ...], ...]
"""For each workload, its (region, type, units) with units > 0; None counts as refused."""
Place = tuple[frozenset[int], ...]
"""For each dataset, the regions that hold it."""

Triples = list[tuple[int, int, int]]
Flow = tuple[int, list[int], int, Fraction, bool]
"""(units, regions that it may come from, region, MB of the whole): a copy, or what work reads remotely."""


@dataclass(frozen=True)
class Work:
    """What follows from the runs alone."""

    value: float
    output: list[int]
    """MB · parts in each region"""
    units: dict[tuple[int, int], int]
    """(workload, region) → units"""
    runs: Runs


class Brute:
    def __init__(self, problem: DataPlacement, parts: int) -> None:
        p = self.p = problem
        self.parts = parts
        self.R, self.K = len(p.regions), len(p.gpu_types)
        self.options: list[tuple[int, int, int]] = list(
            zip(p.options.workload.tolist(), p.options.gpu_type.tolist(), p.options.mgpu.tolist())
        )
        self.reads: list[tuple[int, int, int]] = list(
            zip(p.reads.workload.tolist(), p.reads.dataset.tolist(), p.reads.mb_per_day.tolist())
        )
        self.tier_weight = [p.objective.tier_weights.get(tier, 1.0) for tier in p.tiers]
        self.level = [p.objective.peak_levels[tier] for tier in p.tiers]
        self.weight = p.objective.weights
        self.links = {}
        if p.links is not None:
            ends = zip(p.links.source.tolist(), p.links.target.tolist())
            worth = zip(p.links.capacity_mb_per_day.tolist(), p.links.price_usd_per_tb.tolist())
            self.links = dict(zip(ends, worth))

    def optimum(self) -> float | None:
        """The smallest objective of any feasible plan; None where there is none."""
        works = [work for work in map(self.work, product(*map(self.runs_of, range(len(self.p.workloads))))) if work]
        places = product(*map(self.holders_of, range(len(self.p.datasets))))
        values = (self.value(place, work) for place in places if self.fits(place) for work in works)
        return min((value for value in values if value is not None), default=None)

    def holders_of(self, i: int) -> Iterator[frozenset[int]]:
        p = self.p
        for holders in chain.from_iterable(combinations(range(self.R), n) for n in range(self.R + 1)):
            pinned = all(r in holders for r in range(self.R) if p.datasets.pinned[i, r])
            banned = any(p.datasets.forbidden[i, r] or not self.resident(i, r) for r in holders)
            if pinned and not banned and p.datasets.copies_min[i] <= len(holders) <= p.datasets.copies_max[i]:
                yield frozenset(holders)

    def runs_of(self, w: int) -> Iterator[tuple[tuple[int, int, int], ...]]:
        cells = [(r, k) for v, k, gpus in self.options for r in range(self.R) if v == w and self.may_run(w, r, k, gpus)]
        served = [self.parts]
        if self.p.may_refuse:
            served = list(range(self.parts + 1)) if self.p.workloads.splittable[w] else [0, self.parts]
        for total in served:
            if self.p.workloads.splittable[w]:
                for shares in compositions(total, len(cells)):
                    yield tuple((r, k, n) for (r, k), n in zip(cells, shares) if n)
            elif total:
                yield from (((r, k, total),) for r, k in cells)
            else:
                yield ()

    def may_run(self, w: int, r: int, k: int, gpus: int) -> bool:
        p = self.p
        pins = [q for q in range(self.R) if p.workloads.pinned[w, q]]
        supplied = k == self.K or gpus == 0 or p.regions.supply_mgpu[r, k] > 0
        data = all(self.resident(i, r) for v, i, _ in self.reads if v == w)
        return not p.workloads.forbidden[w, r] and all(q == r for q in pins) and bool(supplied) and data

    def resident(self, i: int, r: int) -> bool:
        homes = [q for q in range(self.R) if self.p.datasets.residency[i, q]]
        return not homes or r in homes

    def work(self, runs: Runs) -> Work | None:
        """CPU and quotas of the runs, and the terms that they decide; None where they do not fit."""
        p, parts = self.p, self.parts
        units: dict[tuple[int, int], int] = {}
        for w, shares in enumerate(runs):
            for r, _, n in shares:
                units[w, r] = units.get((w, r), 0) + n
        cpu = p.workloads.cpu_mcores.tolist()
        for r in range(self.R):
            if sum(cpu[w] * n for (w, q), n in units.items() if q == r) > int(p.regions.cpu_mcores[r]) * parts:
                return None
        for r, a, most in zip(
            p.cpu_quotas.region.tolist(), p.cpu_quotas.app.tolist(), p.cpu_quotas.cpu_mcores.tolist()
        ):
            if sum(cpu[w] * n for (w, q), n in units.items() if q == r and p.workloads.app[w] == a) > most * parts:
                return None
        output = [
            sum(int(p.workloads.output_mb[w]) * n for (w, q), n in units.items() if q == r) for r in range(self.R)
        ]
        value = self.gpu_terms(runs) + self.work_terms(units) + self.type_term(runs)
        return Work(value, output, units, runs)

    def gpu_terms(self, runs: Runs) -> float:
        p, supply = self.p, self.p.regions.supply_mgpu.tolist()
        need = {(w, k): gpus for w, k, gpus in self.options}
        peak = overload = idle = 0.0
        for k in range(self.K):
            whole = sum(supply[r][k] for r in range(self.R))
            for tier, weight in enumerate(self.tier_weight):
                demand = [
                    sum(
                        need[w, k] * n
                        for w, s in enumerate(runs)
                        for q, kind, n in s
                        if (q, kind) == (r, k) and p.workloads.tier[w] <= tier
                    )
                    / self.parts
                    for r in range(self.R)
                ]
                have = [(demand[r], supply[r][k]) for r in range(self.R) if supply[r][k]]
                peak += weight * max(0.0, max((d / s for d, s in have), default=0.0) - self.level[tier])
                overload += weight * sum(max(d - s, 0) / whole for d, s in have)
            idle += sum(max(s - d, 0) / whole for d, s in have)
        return self.weight["peak"] * peak + self.weight["overload"] * overload + self.weight["idle"] * idle

    def work_terms(self, units: dict[tuple[int, int], int]) -> float:
        p, W = self.p, range(len(self.p.workloads))
        size = [self.size_of_work(w) for w in W]
        today: dict[tuple[int, int], int] = {}
        for w, r, share in zip(
            p.current_runs.workload.tolist(), p.current_runs.region.tolist(), p.current_runs.share.tolist()
        ):
            today[w, r] = today.get((w, r), 0) + share
        gone = [(w, max(0.0, share / 1000 - units.get((w, r), 0) / self.parts)) for (w, r), share in today.items()]
        moved = sum(size[w] * share for w, share in gone) / sum(size)
        urgency = [self.tier_weight[p.workloads.tier[w]] * size[w] for w in W]
        served = [sum(n for (v, _), n in units.items() if v == w) / self.parts for w in W]
        unserved = sum(u * (1 - s) for u, s in zip(urgency, served)) / sum(urgency) if sum(urgency) else 0.0
        items = sum(share for _, share in gone) / (len(p.datasets) + len(p.workloads))
        return (
            self.weight["moved_work"] * moved + self.weight["moved_items"] * items + self.weight["unserved"] * unserved
        )

    def type_term(self, runs: Runs) -> float:
        p, W = self.p, range(len(self.p.workloads))
        today, size = p.current_runs, [self.size_of_work(w) for w in W]
        gone = 0.0
        for w, k in product(W, range(self.K)):
            rows = zip(today.workload.tolist(), today.gpu_type.tolist(), today.share.tolist())
            before = sum(share for v, kind, share in rows if (v, kind) == (w, k)) / 1000
            after = sum(n for _, kind, n in runs[w] if kind == k) / self.parts
            gone += size[w] * max(0.0, before - after)
        return self.weight["retyped_work"] * gone / sum(size)

    def size_of_work(self, w: int) -> int:
        p = self.p
        fewest = min(gpus for v, _, gpus in self.options if v == w)
        per_core = int(p.regions.supply_mgpu.sum()) / max(1, int(p.regions.cpu_mcores.sum()))
        return fewest or max(1, int(int(p.workloads.cpu_mcores[w]) * per_core + 0.5))

    def fits(self, place: Place) -> bool:
        """Storage without outputs, and ingress."""
        p = self.p
        for r in range(self.R):
            copied = sum(
                int(p.datasets.size_mb[i]) for i, held in enumerate(place) if r in held and not p.datasets.stored[i, r]
            )
            if self.stored(place, r) > self.usable(r) or (
                p.regions.ingress_limited[r] and copied > int(p.regions.ingress_mb_per_day[r]) * p.days
            ):
                return False
        return True

    def stored(self, place: Place, r: int) -> int:
        return sum(int(self.p.datasets.size_mb[i]) for i, holders in enumerate(place) if r in holders)

    def usable(self, r: int) -> int:
        return int(self.p.regions.storage_mb[r]) * (1000 - int(self.p.regions.headroom_milli[r])) // 1000

    def value(self, place: Place, work: Work) -> float | None:
        """The objective of a plan whose network flows are chosen as well as possible; None if infeasible."""
        p = self.p
        for r in range(self.R):
            if self.stored(place, r) * self.parts + work.output[r] > self.usable(r) * self.parts:
                return None
        far = [
            (w, i, r, mb, n)
            for w, i, mb in self.reads
            for (v, r), n in work.units.items()
            if v == w and r not in place[i]
        ]
        if far and not p.remote_reads:
            return None
        size: list[int] = p.datasets.size_mb.tolist()
        copied = [size[i] for i, held in enumerate(place) for r in held if not p.datasets.stored[i, r]]
        kept = sum(size[i] * len(held) for i, held in enumerate(place))
        volume = sum(mb for _, _, mb in self.reads)
        other = (
            work.value
            + self.weight["remote"] * (sum(mb * n for *_, mb, n in far) / self.parts / volume if volume else 0.0)
            + (self.weight["copy"] * sum(copied) + self.weight["storage"] * kept) / (sum(size) or 1)
            + self.weight["moved_items"] * len(copied) / (len(p.datasets) + len(p.workloads))
        )
        carried = sum(mb * n for *_, mb, n in far)
        priced = [
            sum(self.weight[term] * float(cost) for term, cost in costs.items())
            for costs in self.costs(place, work, far)
            if self.within_limits(place, work, carried, costs)
        ]
        return other + min(priced) if priced else None

    def costs(
        self, place: Place, work: Work, far: Sequence[tuple[int, int, int, int, int]]
    ) -> Iterator[dict[str, Fraction]]:
        """The terms in USD, for every way to bring copies and remote reads over the links."""
        p, tb, micro, month = self.p, 1_000_000, 1_000_000, 730
        need = {(w, k): gpus for w, k, gpus in self.options}
        running = migration = Fraction(0)
        for w, shares in enumerate(work.runs):
            for r, k, n in shares:
                hourly = Fraction(need[w, k], 1000) * int(p.regions.gpu_price_micro[r, k]) if k < self.K else 0
                output = Fraction(int(p.workloads.output_mb[w]), tb) * int(p.regions.storage_price_micro[r])
                running += (hourly * month + output) * Fraction(n, self.parts) / micro
        for i, holders in enumerate(place):
            for r in holders:
                size = Fraction(int(p.datasets.size_mb[i]), tb)
                running += size * int(p.regions.storage_price_micro[r]) / micro
                if not p.datasets.stored[i, r]:
                    migration += size * int(p.regions.copy_price_micro[r]) / micro
        for read, copied in self.over_links(place, far):
            yield {
                "egress": read + copied / p.days,
                "running_cost": running + read * month / 24,
                "migration_cost": migration + copied,
            }

    def within_limits(self, place: Place, work: Work, far: int, costs: dict[str, Fraction]) -> bool:
        """Whether the plan keeps the limits on the whole of it; ``far``: MB · parts a day that are read remotely."""
        p, parts, tb = self.p, self.parts, 1_000_000
        W = range(len(p.workloads))
        size: list[int] = p.datasets.size_mb.tolist()
        copied = [size[i] for i, held in enumerate(place) for r in held if not p.datasets.stored[i, r]]
        kept = sum(size[i] * len(held) for i, held in enumerate(place))
        today: dict[tuple[int, int], Fraction] = {}
        rows = zip(p.current_runs.workload.tolist(), p.current_runs.region.tolist(), p.current_runs.share.tolist())
        for w, r, share in rows:
            today[w, r] = today.get((w, r), Fraction(0)) + Fraction(share, 1000)
        gone = [
            (w, max(Fraction(0), was - Fraction(work.units.get((w, r), 0), parts))) for (w, r), was in today.items()
        ]
        lost = [1 - Fraction(sum(n for (v, _), n in work.units.items() if v == w), parts) for w in W]
        need = {(w, k): gpus for w, k, gpus in self.options}
        asked = {
            (r, k): sum(need[w, k] * n for w, shares in enumerate(work.runs) for q, j, n in shares if (q, j) == (r, k))
            for r in range(self.R)
            for k in range(self.K)
        }
        over = sum(
            max(Fraction(mgpu, parts) - int(p.regions.supply_mgpu[at]), Fraction(0)) for at, mgpu in asked.items()
        )
        whole = [self.size_of_work(w) for w in W]
        urgency = [Fraction(self.tier_weight[p.workloads.tier[w]]) * whole[w] for w in W]
        fewest = [min(gpus for v, _, gpus in self.options if v == w) for w in W]
        moved = sum((share for _, share in gone), Fraction(0))
        used: dict[str, float | Fraction] = {
            "copied_tb": Fraction(sum(copied), tb),
            "copy": Fraction(sum(copied), sum(size) or 1),
            "stored_tb": Fraction(kept, tb),
            "storage": Fraction(kept, sum(size) or 1),
            "remote_tb_per_day": Fraction(far, parts * tb),
            "remote": Fraction(far, parts * (sum(mb for *_, mb in self.reads) or 1)),
            **costs,
            "moved_work": sum(whole[w] * share for w, share in gone) / Fraction(sum(whole)),
            "unserved": sum((u * one for u, one in zip(urgency, lost)), Fraction(0)) / (sum(urgency) or 1),
            "unserved_gpus": sum((gpus * one for gpus, one in zip(fewest, lost)), Fraction(0)) / 1000,
            "overload_gpus": Fraction(over) / 1000,
            "new_replicas": len(copied),
            "moved_workloads": moved,
            "moves": len(copied) + moved,
        }
        return all(used[name] <= most for name, most in p.limits.items())

    def over_links(self, place: Place, far: Sequence[tuple[int, int, int, int, int]]) -> set[tuple[Fraction, Fraction]]:
        """Costs (of remote reads, USD a day; of copies, USD) of every way to bring them over the links."""
        p, days = self.p, self.p.days
        if p.links is None:
            return {(Fraction(0), Fraction(0))}
        flows = [(n, self.sources(place[i], r), r, mb * days, False) for _, i, r, mb, n in far]
        for i, holders in enumerate(place):
            today = [q for q in range(self.R) if p.datasets.stored[i, q]]
            new = [r for r in sorted(holders) if today and r not in today]
            flows += [(self.parts, self.sources(today, r), r, Fraction(int(p.datasets.size_mb[i])), True) for r in new]
        room = {link: capacity * days * self.parts for link, (capacity, _) in self.links.items()}
        return self._ways(flows, room)

    def sources(self, holders: Iterable[int], r: int) -> list[int]:
        return [q for q in sorted(holders) if (q, r) in self.links]

    def _ways(self, flows: Sequence[Flow], room: dict[tuple[int, int], Fraction]) -> set[tuple[Fraction, Fraction]]:
        if not flows:
            return {(Fraction(0), Fraction(0))}
        (units, sources, r, mb, copied), *rest = flows
        found: set[tuple[Fraction, Fraction]] = set()
        for shares in compositions(units, len(sources)):
            left = dict(room)
            usd = Fraction(0)
            for q, n in zip(sources, shares):
                left[q, r] -= n * mb
                usd += Fraction(self.links[q, r][1]) * mb * n / (1_000_000 * self.parts)
            if all(free >= 0 for free in left.values()):
                own = (Fraction(0), usd) if copied else (usd / self.p.days, Fraction(0))
                found |= {(own[0] + read, own[1] + copy) for read, copy in self._ways(rest, left)}
        return found


def compositions(total: int, places: int) -> Iterator[tuple[int, ...]]:
    """Every way to write total as an ordered sum of that many non-negative integers."""
    if places == 0:
        if total == 0:
            yield ()
        return
    if places == 1:
        yield (total,)
        return
    for first in range(total + 1):
        yield from ((first, *rest) for rest in compositions(total - first, places - 1))
