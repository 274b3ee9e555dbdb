"""Carries out the steps of a migration, row by row, and checks every limit at every moment.

Written from the statement of the problem alone; nothing is shared with what makes the steps. Within a wave, everything
that a row takes counts at once and nothing that a row gives does, so that the rows may run in any order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.migration.planner import Steps
from mast_opt.problems.data_placement.migration.steps import RunStep, Step

Cell = tuple[int, int]
Runs = dict[int, Counter[Cell]]
Amounts = Counter[tuple[Any, ...]]
"""(limit, region, …) → amount; or (dataset, region) → volume."""


class Replay:
    """The state in between."""

    def __init__(self, problem: DataPlacement, plan: Plan, order: Steps) -> None:
        self.p, self.plan, self.order = problem, plan, order
        p = problem
        self.whole = {(int(i), int(r)) for i, r in zip(*p.datasets.stored.nonzero())}
        self.there = set(self.whole)
        """Replicas that take room: whole, arriving, or being deleted."""
        self.arrived_kb: Counter[tuple[int, int]] = Counter()
        self.accepted: dict[int, dict[int, int]] = defaultdict(dict)
        for w, k, mgpu in zip(p.options.workload.tolist(), p.options.gpu_type.tolist(), p.options.mgpu.tolist()):
            self.accepted[w][k] = mgpu
        self.reads: dict[int, dict[int, int]] = defaultdict(dict)
        for w, i, mb in zip(p.reads.workload.tolist(), p.reads.dataset.tolist(), p.reads.mb_per_day.tolist()):
            self.reads[w][i] = mb
        self.then: Runs = defaultdict(Counter)
        for w, r, k, s in zip(
            *(c.tolist() for c in (plan.run_workload, plan.run_region, plan.run_type, plan.run_share))
        ):
            self.then[w][r, k] += s
        self.running = self.today()
        self.now = {w: Counter(cells) for w, cells in self.running.items()}
        self.before = self.usage(self.running)
        self.start = dict(self.before)
        self.end = self.usage(self.then)
        self.caps = {}
        if p.links is not None:
            ends = zip(p.links.source.tolist(), p.links.target.tolist())
            self.caps = {pair: 1000 * mb for pair, mb in zip(ends, p.links.capacity_mb_per_day.tolist())}
        self.copied: Counter[tuple[int, int, int]] = Counter()
        """(source, target, day)"""
        for step in order.steps:
            if step.source is not None:
                for day in range(step.day, step.day + step.days):
                    self.copied[step.source, step.region, day] += step.kb
        self.unreadable = {
            (i, r)
            for w, cells in self.running.items()
            for r, _ in cells
            for i in self.reads[w]
            if not self.served(i, r)
        }
        self.shortfall = {r: self.short(r, self.demand(self.running), {}) for r in range(len(p.regions))}

    def today(self) -> Runs:
        p, none = self.p, len(self.p.gpu_types)
        runs: Runs = defaultdict(Counter)
        rows = (p.current_runs.workload, p.current_runs.region, p.current_runs.gpu_type, p.current_runs.share)
        for w, r, k, share in zip(*(column.tolist() for column in rows)):
            if k == none and none not in self.accepted[w]:
                planned = [kind for (at, kind) in self.then[w] if at == r]
                supplied = [kind for kind in sorted(self.accepted[w]) if p.regions.supply_mgpu[r, kind]]
                listed = [int(kind) for kind in p.options.gpu_type[p.options.workload == w]]
                assert sorted(listed) == listed
                k = next(iter([*planned, *supplied, *listed]))
            if share:
                runs[w][r, k] += share
        return runs

    # limits

    def use(self, w: int, r: int, k: int, share: int) -> Amounts:
        p = self.p
        used: Amounts = Counter()
        used["storage", r] = int(p.workloads.output_mb[w]) * share
        used["cpu", r] = used["quota", r, int(p.workloads.app[w])] = int(p.workloads.cpu_mcores[w]) * share
        for tier in range(int(p.workloads.tier[w]), len(p.tiers)):
            used["gpu", r, k, tier] = self.accepted[w].get(k, 0) * share
        return used

    def usage(self, runs: Mapping[int, Mapping[Cell, int]]) -> Amounts:
        used: Amounts = Counter()
        for i, r in self.there:
            used["storage", r] += 1000 * int(self.p.datasets.size_mb[i])
        for w, cells in runs.items():
            for (r, k), share in cells.items():
                used.update(self.use(w, r, k, share))
        return used

    def limit(self, key: tuple[Any, ...]) -> int | None:
        p, (name, r) = self.p, key[:2]
        if name == "storage":
            return 1000 * (int(p.regions.storage_mb[r]) * (1000 - int(p.regions.headroom_milli[r])) // 1000)
        if name == "cpu":
            return 1000 * int(p.regions.cpu_mcores[r])
        if name == "quota":
            quota = p.cpu_quotas.cpu_mcores[(p.cpu_quotas.region == r) & (p.cpu_quotas.app == key[2])]
            return 1000 * int(quota[0]) if len(quota) else None
        _, _, k, _ = key
        if k == len(p.gpu_types):
            return None
        return max(1000 * int(p.regions.supply_mgpu[r, k]), self.start.get(key, 0), self.end_gpu(key))

    def end_gpu(self, key: tuple[Any, ...]) -> int:
        return int(self.end.get(key, 0))

    def check_limits(self, used: Amounts) -> None:
        for key, amount in used.items():
            limit = self.limit(key)
            assert limit is None or amount <= limit or amount <= self.before[key], (key, amount, limit)

    def check_entries(self, entering: Sequence[tuple[int, tuple[Any, ...], int]], used: Amounts) -> None:
        """Work of no tier enters a place whose GPUs are asked for, up to that tier, by more than supply and plan; what
        more important work takes at the same time may displace it."""
        for tier, key, _ in entering:
            if key[0] == "gpu" and key[2] < len(self.p.gpu_types) and key[3] == tier:
                above = sum(amount for other, at, amount in entering if at == key and other < tier)
                most = max(1000 * int(self.p.regions.supply_mgpu[key[1], key[2]]), self.end_gpu(key))
                assert used[key] - above <= most, (key, used[key], most)

    # reads

    def readable(self, i: int, r: int) -> bool:
        return any(self.legal(i, r, q) for j, q in self.whole if j == i)

    def served(self, i: int, r: int) -> bool:
        """Work that is there reads what its region holds, residency or not."""
        return (i, r) in self.whole or self.readable(i, r)

    def legal(self, i: int, r: int, q: int) -> bool:
        """The statement: local, or remote where remote reads are allowed, over a link if there is a table of links."""
        listed = self.p.datasets.residency[i]
        if listed.any() and not (listed[r] and listed[q]):
            return False
        return q == r or (self.p.remote_reads and (self.p.links is None or (q, r) in self.caps))

    def demand(self, runs: Mapping[int, Mapping[Cell, int]]) -> Amounts:
        """(dataset, region) → what is read, in thousandths of a MB a day."""
        wanted: Amounts = Counter()
        for w, cells in runs.items():
            for (r, _), share in cells.items():
                for i, mb in self.reads[w].items():
                    wanted[i, r] += mb * share
        return wanted

    def short(self, r: int, wanted: Amounts, copied: Mapping[int, int]) -> int:
        """What the region cannot read however its remote reads are spread over links: total less the largest flow."""
        if self.p.links is None:
            return 0
        needs = {i: v for (i, to), v in wanted.items() if to == r and v and (i, r) not in self.whole}
        room = {q: cap - copied.get(q, 0) for (q, to), cap in self.caps.items() if to == r}
        assert all(left >= 0 for left in room.values())
        edges = {i: {q for q in room if (i, q) in self.whole and self.legal(i, r, q)} for i in needs}
        flow: Amounts = Counter()
        missing = 0
        for i, need in needs.items():
            while need:
                parent: dict[int, tuple[Any, int]] = dict.fromkeys(edges[i], ("need", i))
                todo = list(parent)
                end = None
                for q in todo:
                    if room[q] > 0:
                        end = q
                        break
                    for j in needs:
                        if flow[j, q]:
                            for other in edges[j] - parent.keys():
                                parent[other] = (q, j)
                                todo.append(other)
                if end is None:
                    missing += need
                    break
                path, q = [], end
                while True:
                    before, j = parent[q]
                    path.append((j, before, q))
                    if before == "need":
                        break
                    q = before
                amount = min([need, room[end], *(flow[j, before] for j, before, _ in path if before != "need")])
                for j, before, q in path:
                    flow[j, q] += amount
                    if before != "need":
                        flow[j, before] -= amount
                room[end] -= amount
                need -= amount
        return missing

    def check_reads(self, runs: Mapping[int, Mapping[Cell, int]], days: set[int]) -> None:
        for w, cells in runs.items():
            for r, _ in cells:
                for i in self.reads[w]:
                    assert self.served(i, r) or (i, r) in self.unreadable, (w, i, r)
        wanted = self.demand(runs)
        for r, before in self.shortfall.items():
            for day in days:
                copied = {q: kb for (q, to, at), kb in self.copied.items() if to == r and at == day}
                assert self.short(r, wanted, copied) <= before, (r, day)

    # waves

    def run(self) -> None:
        p, order = self.p, self.order
        rows: list[Step | RunStep] = sorted([*order.steps, *order.runs], key=lambda row: row.wave)
        assert [row.day for row in rows] == sorted(row.day for row in rows)
        assert {row.wave for row in rows} == set(range(order.waves))
        floor = [
            min(max(int(least), 1), int(now), int(then))
            for least, now, then in zip(
                p.datasets.copies_min, p.datasets.stored.sum(axis=1), self.plan.place.sum(axis=1)
            )
        ]
        self.check_moment(self.running, {0})
        for wave in range(order.waves):
            self.spend([s for s in order.steps if s.wave == wave], [s for s in order.runs if s.wave == wave], floor)
        ingress: Amounts = Counter()
        for step in order.steps:
            for day in range(step.day, step.day + step.days):
                ingress[step.region, day] += step.kb
        for (r, _), kb in ingress.items():
            assert not p.regions.ingress_limited[r] or kb <= 1000 * p.regions.ingress_mb_per_day[r]
        if not order.blocked and not order.waiting:
            assert self.whole == self.there == {(int(i), int(r)) for i, r in zip(*self.plan.place.nonzero())}
            assert {w: +cells for w, cells in self.running.items() if +cells} == {
                w: +c for w, c in self.then.items() if +c
            }

    def check_moment(self, runs: Mapping[int, Mapping[Cell, int]], days: set[int], used: Amounts | None = None) -> None:
        used = self.usage(runs) if used is None else used
        self.check_limits(used)
        self.check_reads(runs, days)

    def spend(self, data: Sequence[Step], work: Sequence[RunStep], floor: list[int]) -> None:
        p = self.p
        days = {step.day for step in data} | {run.day for run in work}
        assert len(days) == 1
        days |= {step.day + step.days - 1 for step in data}
        going = {(s.dataset, s.region) for s in data if s.deletes}
        assert not going & {(s.dataset, s.source) for s in data if not s.deletes}
        for step in data:
            pair = (step.dataset, step.region)
            if step.deletes:
                assert pair in self.whole
                assert not p.datasets.pinned[pair]
                self.whole.remove(pair)
            else:
                assert pair not in self.whole
                stored = p.datasets.stored[step.dataset].any()
                assert (step.dataset, step.source) in self.whole if stored else step.source is None
                assert self.plan.place[pair] or step.hop
                assert not p.datasets.forbidden[pair]
                self.there.add(pair)
                self.arrived_kb[pair] += step.kb * step.days
        for i, least in enumerate(floor):
            assert sum(j == i for j, _ in self.whole) >= least
        # everything that is taken
        both = {w: Counter(cells) for w, cells in self.running.items()}
        used = self.usage(self.running)
        entering: list[tuple[int, tuple[Any, ...], int]] = []
        for w in {row.workload for row in work}:
            mine = [row for row in work if row.workload == w]
            for part in [mine] if not p.workloads.splittable[w] else [[row] for row in mine]:
                more: Amounts = Counter()
                for row in part:
                    if row.target is not None:
                        more.update(self.use(w, *row.target, row.share))
                        for i in self.reads[w]:
                            assert self.readable(i, row.target[0]), (w, i)
                    if row.source is not None:
                        more.subtract(self.use(w, *row.source, row.share))
                used.update({key: amount for key, amount in more.items() if amount > 0})
                entering += [(int(p.workloads.tier[w]), key, amount) for key, amount in more.items() if amount > 0]
                both.setdefault(w, Counter())
                for row in part:
                    if row.target is not None and (row.source is None or row.source[0] != row.target[0]):
                        both[w][row.target] += row.share
        self.check_moment({w: +cells for w, cells in both.items()}, days, used)
        self.check_entries(entering, used)
        # everything that is given
        self.there -= going
        for pair in [pair for pair, kb in self.arrived_kb.items() if kb >= 1000 * p.datasets.size_mb[pair[0]]]:
            assert self.arrived_kb.pop(pair) == 1000 * p.datasets.size_mb[pair[0]]
            self.whole.add(pair)
        for row in work:
            cells = self.running.setdefault(row.workload, Counter())
            if row.source is not None:
                assert cells[row.source] >= row.share
                cells[row.source] -= row.share
            if row.target is not None:
                assert self.then[row.workload][row.target] > 0
                cells[row.target] += row.share
        for w, cells in self.running.items():
            self.running[w] = cells = +cells
            assert sum(cells.values()) <= 1000
            if not p.workloads.splittable[w]:
                today, then = self.now.get(w, Counter()), self.then[w]
                assert all(share <= today.get(cell, 0) for cell, share in cells.items()) or all(
                    share <= then.get(cell, 0) for cell, share in cells.items()
                )
        self.check_moment(self.running, days)
        self.before = self.usage(self.running)


def replay(problem: DataPlacement, plan: Plan, order: Steps) -> None:
    """Raises AssertionError at the first limit that the steps break."""
    Replay(problem, plan, order).run()
