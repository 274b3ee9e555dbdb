"""The data-placement MIP, read row by row as in ``models/data_placement.mod``, in base units."""

from dataclasses import fields

import numpy as np

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.core.units import HOURS_A_MONTH, MB_PER_TB, MICRO, MILLI
from mast_opt.problems.data_placement.formulation.codec import Codec, Columns
from mast_opt.problems.data_placement.formulation.index_sets import IndexSets, cells_of, joined
from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.prices import replica_usd, run_usd
from mast_opt.problems.data_placement.problem import NO_GPU, SHARE, DataPlacement, Ints
from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.mip import Axis, Mip, MipBuilder
from mast_opt.problems.mip.builder import RowBlock


def base(problem: DataPlacement) -> Formulation[Plan]:
    """The formulation of the .mod: shares are continuous."""
    return in_parts(problem, 1)


def exact_shares(problem: DataPlacement) -> Formulation[Plan]:
    """Formulation with every share an integer number of thousandths, as plans state them."""
    return in_parts(problem, SHARE)


def in_parts(problem: DataPlacement, parts: int) -> Formulation[Plan]:
    """The formulation with shares that are multiples of 1 / parts; parts = 1 leaves them continuous."""
    statement = Statement(problem, parts)
    mip, codec = statement.build()
    rounds = parts == 1 and statement.rounds
    return Formulation(mip, codec.decode, codec.encode, (lambda: exact_shares(problem)) if rounds else None)


class Statement:
    """The columns, then one method per group of rows. ``unit`` is what one step of a column is worth."""

    storage: RowBlock
    link: RowBlock | None = None

    def __init__(self, problem: DataPlacement, parts: int) -> None:
        self.p = problem
        self.cells: IndexSets = cells_of(problem)
        self.m = MipBuilder("data_placement")
        self.types = (*problem.gpu_types, NO_GPU)
        p, c = problem, self.cells
        whole_run = ~p.workloads.splittable[c.run_workload]
        self.rounds = bool(p.workloads.splittable.any()) or p.links is not None
        self.run_unit = np.where(whole_run, 1.0, 1.0 / parts)
        self.refuse_unit = np.where(p.workloads.splittable, 1.0 / parts, 1.0)
        self.flow_unit = 1.0 / parts if p.links is not None else 1.0
        exact = parts > 1

        self.place = self.m.columns(
            "place", [p.datasets.labels, p.regions.labels], lower=p.datasets.pinned, upper=~p.closed, integral=True
        )
        run_at = (c.run_workload, c.run_region, p.options.gpu_type[c.run_option])
        axes = (p.workloads.labels, p.regions.labels, self.types)
        self.run = self._whole_or_part("run", "part", axes, run_at, self.run_unit, exact)
        self.unserved: IntArray | None = None
        if p.may_refuse:
            every = (np.arange(len(p.workloads)),)
            self.unserved = self._whole_or_part("unserved", "unserved_part", axes[:1], every, self.refuse_unit, exact)
        self._remote_columns(exact)
        self._copy_columns(exact)
        self.service()
        self.replicas()
        self.collocation()
        self.capacities()
        self.network()
        self.gpu_balance()
        self.stability()
        self.costs()
        self.limits()

    def build(self) -> tuple[Mip, Codec]:
        """The data-placement program, and the way between its columns and a plan."""
        mip = self.m.build(self.p.objective.weights)
        return mip, Codec(self.p, self.cells, self.columns(), len(mip.cost))

    def _whole_or_part(
        self, whole: str, part: str, axes: tuple[Axis, ...], at: tuple[Ints, ...], unit: FloatArray, exact: bool
    ) -> IntArray:
        """One column of a replica or run a cell, in the order of the cells: binary, or a share of splittable work under
        its own name.
        """
        splits = self.p.workloads.splittable[at[0]]
        ids = np.empty(len(splits), np.int32)
        for name, kept, integral in ((whole, ~splits, True), (part, splits, exact)):
            cells = [positions[kept] for positions in at]
            ids[kept] = self.m.columns(name, axes, cells, upper=1 / unit[kept], integral=integral)
        return ids

    def _remote_columns(self, exact: bool) -> None:
        """remote[w,i,r], or remote_from[w,i,q,r] with links; none where remote reads are forbidden."""
        p, c = self.p, self.cells
        self.remote_row: IntArray = np.zeros(0, np.int32)
        self.remote_link: IntArray = np.zeros(0, np.int32)
        self.remote: IntArray = np.zeros(0, np.int32)
        if not p.remote_reads:
            return
        if p.links is None:
            self.remote_row = np.arange(len(c.local_read), dtype=np.int32)
            at = [c.local_workload, c.local_dataset, c.local_region]
            self.remote = self.m.columns(
                "remote", [p.workloads.labels, p.datasets.labels, p.regions.labels], at, upper=1
            )
        else:
            by_target = np.argsort(p.links.target, kind="stable")
            count = np.bincount(p.links.target, minlength=len(p.regions))
            self.remote_row, arriving = joined(c.local_region, np.cumsum(count) - count, count)
            self.remote_link = by_target[arriving]
            at = [
                c.local_workload[self.remote_row],
                c.local_dataset[self.remote_row],
                p.links.source[self.remote_link],
                c.local_region[self.remote_row],
            ]
            self.remote = self.m.columns(
                "remote_from",
                [p.workloads.labels, p.datasets.labels, p.regions.labels, p.regions.labels],
                at,
                upper=1 / self.flow_unit,
                integral=exact,
            )

    def _copy_columns(self, exact: bool) -> None:
        """Add the columns of copies over links."""
        p, c = self.p, self.cells
        self.copy: IntArray = np.zeros(0, np.int32)
        if p.links is not None:
            at = [c.copy_dataset, p.links.source[c.copy_link], p.links.target[c.copy_link]]
            axes = [p.datasets.labels, p.regions.labels, p.regions.labels]
            self.copy = self.m.columns("copy", axes, at, upper=1 / self.flow_unit, integral=exact)

    def columns(self) -> Columns:
        """Column ids of the data-placement program, by name."""
        return Columns(**{one.name: getattr(self, one.name) for one in fields(Columns)})

    def service(self) -> None:
        """served: Σ_{r,k} run[w,r,k] + unserved[w] = 1."""
        p, m = self.p, self.m
        served = m.equals("served", [p.workloads.labels], value=1)
        served.add(self.cells.run_workload, self.run, self.run_unit)
        m.term("unserved")
        if self.unserved is not None:
            served.add(np.arange(len(p.workloads)), self.unserved, self.refuse_unit)
            weight = p.tier_weight[p.workloads.tier] * p.demand_mgpu
            m.term("unserved", self.unserved, weight * self.refuse_unit / weight.sum() if weight.any() else 0.0)

    def replicas(self) -> None:
        """copies: copies_min[i] ≤ Σ_r place[i,r] ≤ copies_max[i]; terms copy, storage and moved_items."""
        p, m = self.p, self.m
        copies = m.rows("copies", [p.datasets.labels], lower=p.datasets.copies_min, upper=p.datasets.copies_max)
        copies.add(np.arange(len(p.datasets))[:, None], self.place)
        share = p.datasets.size_mb / max(int(p.datasets.size_mb.sum()), 1)
        m.term("storage", self.place, share[:, None])
        m.term(
            "copy",
            self.place[~p.datasets.stored],
            np.broadcast_to(share[:, None], p.datasets.stored.shape)[~p.datasets.stored],
        )
        m.term("moved_items", self.place[~p.datasets.stored], 1 / (len(p.datasets) + len(p.workloads)))

    def collocation(self) -> None:
        """local: Σ_k run[w,r,k] ≤ place[i,r] + Σ_q remote_from[w,i,q,r] for every dataset i that w reads."""
        p, m, c = self.p, self.m, self.cells
        axes, at = (
            [p.workloads.labels, p.datasets.labels, p.regions.labels],
            [c.local_workload, c.local_dataset, c.local_region],
        )
        local = m.rows("local", axes, at, upper=0)
        count = np.bincount(c.run_group, minlength=len(c.group_workload))
        row, runs = joined(c.local_group, np.cumsum(count) - count, count)
        every = np.arange(len(c.local_read), dtype=np.int32)
        local.add(every, self.place[c.local_dataset, c.local_region], -1)
        local.add(row, self.run[runs], self.run_unit[runs])
        local.add(self.remote_row, self.remote, -self.flow_unit)
        volume = p.reads.mb_per_day * (self.flow_unit / max(int(p.reads.mb_per_day.sum()), 1))
        m.term("remote", self.remote, volume[c.local_read[self.remote_row]])

    def capacities(self) -> None:
        """Add the hard rows ``storage``, ``cpu``, ``quota`` and ``ingress``."""
        p, m, c = self.p, self.m, self.cells
        everywhere = np.arange(len(p.regions))
        storage = self.storage = m.rows("storage", [p.regions.labels], upper=p.usable_storage_mb)
        storage.add(everywhere, self.place, p.datasets.size_mb[:, None])
        writes = p.workloads.output_mb[c.run_workload] > 0
        output = p.workloads.output_mb[c.run_workload] * self.run_unit
        storage.add(c.run_region[writes], self.run[writes], output[writes])

        need = p.workloads.cpu_mcores[c.run_workload] * self.run_unit
        cpu = m.rows("cpu", [p.regions.labels], upper=p.regions.cpu_mcores)
        cpu.add(c.run_region, self.run, need)

        quota = m.rows(
            "quota", [p.regions.labels, p.apps], [p.cpu_quotas.region, p.cpu_quotas.app], upper=p.cpu_quotas.cpu_mcores
        )
        row_of = np.full((len(p.regions), len(p.apps)), -1)
        row_of[p.cpu_quotas.region, p.cpu_quotas.app] = np.arange(len(p.cpu_quotas))
        row = row_of[c.run_region, p.workloads.app[c.run_workload]]
        quota.add(row[row >= 0], self.run[row >= 0], need[row >= 0])

        limited = np.flatnonzero(p.regions.ingress_limited)
        ingress = m.rows("ingress", [p.regions.labels], [limited], upper=p.ingress_mb[limited])
        at, dataset = np.nonzero(~p.datasets.stored.T[limited])
        ingress.add(at, self.place[dataset, limited[at]], p.datasets.size_mb[dataset])

    def network(self) -> None:
        """Rows of links. sourced: Σ_{w,r} remote_from[w,i,q,r] ≤ readers[i]·place[i,q]; copied: Σ_q copy[i,q,r] ≥
        place[i,r] where r holds none of i and another region does; link: remote volume · days + copied volume ≤
        capacity · days."""
        p, m, c = self.p, self.m, self.cells
        m.term("egress")
        if p.links is None:
            return
        read = c.local_read[self.remote_row]
        readers = np.bincount(p.reads.dataset, minlength=len(p.datasets))
        if p.remote_reads:
            sourced = m.rows("sourced", [p.datasets.labels, p.regions.labels], upper=0)
            row = p.reads.dataset[read] * len(p.regions) + p.links.source[self.remote_link]
            sourced.add(row, self.remote, self.flow_unit)
            sourced.add(np.arange(self.place.size).reshape(self.place.shape), self.place, -readers[:, None])

        stored_somewhere = p.datasets.stored.any(axis=1, keepdims=True)
        dataset, region = np.nonzero(~p.datasets.stored & stored_somewhere)
        copied = m.rows("copied", [p.datasets.labels, p.regions.labels], [dataset, region], lower=0)
        row_of = np.full(p.datasets.stored.shape, -1)
        row_of[dataset, region] = np.arange(len(dataset))
        copied.add(row_of[c.copy_dataset, p.links.target[c.copy_link]], self.copy, self.flow_unit)
        copied.add(np.arange(len(dataset)), self.place[dataset, region], -1)

        days = float(p.days)
        link = self.link = m.rows(
            "link",
            [p.regions.labels, p.regions.labels],
            [p.links.source, p.links.target],
            upper=[float(capacity * p.days) for capacity in p.links.capacity_mb_per_day.tolist()],
        )
        read_mb = p.reads.mb_per_day[read] * self.flow_unit
        copy_mb = p.datasets.size_mb[c.copy_dataset] * self.flow_unit
        link.add(self.remote_link, self.remote, read_mb * days)
        link.add(c.copy_link, self.copy, copy_mb)
        price = p.links.price_usd_per_tb / MB_PER_TB
        m.term("egress", self.remote, read_mb * price[self.remote_link])
        m.term("egress", self.copy, copy_mb * price[c.copy_link] / days)

    def gpu_balance(self) -> None:
        """tally: demand[r,k,p] = demand[r,k,p−1] + Σ_{w of tier p} gpus[w,k]·run[w,r,k], so that it is cumulative;
        gpu: demand ≤ supply + overload;  worst: demand ≤ supply · (level[p] + peak[k,p]);  under: supply ≤ demand +
        idle in the last tier. Stated where there is supply; work that needs GPUs runs nowhere else."""
        p, m, c = self.p, self.m, self.cells
        region, kind = np.nonzero(p.regions.supply_mgpu)
        pairs, tiers = len(region), len(p.tiers)
        supply = p.regions.supply_mgpu[region, kind]
        tier_names = tuple(str(tier) for tier in p.tiers)
        axes = [p.regions.labels, p.gpu_types, tier_names]
        at = [np.repeat(region, tiers), np.repeat(kind, tiers), np.tile(np.arange(tiers), pairs)]
        shape = (pairs, tiers)
        self.demand = m.columns("demand", axes, at).reshape(shape)
        self.overload = m.columns("overload", axes, at).reshape(shape)
        self.peak = m.columns("peak", [p.gpu_types, tier_names])
        self.idle = m.columns("idle", axes[:2], [region, kind])
        row = np.arange(pairs * tiers).reshape(shape)

        gpus = p.options.mgpu[c.run_option]
        needs = np.flatnonzero(gpus > 0)
        pair_of = np.full((len(p.regions), len(p.gpu_types)), -1)
        pair_of[region, kind] = np.arange(pairs)
        pair = pair_of[c.run_region[needs], p.options.gpu_type[c.run_option[needs]]]
        tally = m.equals("tally", axes, at)
        tally.add(
            row[pair, p.workloads.tier[c.run_workload[needs]]], self.run[needs], -gpus[needs] * self.run_unit[needs]
        )
        tally.add(row[:, 1:], self.demand[:, :-1], -1)
        tally.add(row, self.demand, 1)

        gpu = m.rows("gpu", axes, at, upper=np.repeat(supply, tiers))
        gpu.add(row, self.demand, 1).add(row, self.overload, -1)
        worst = m.rows("worst", axes, at, upper=(supply[:, None] * p.peak_level).ravel())
        worst.add(row, self.demand, 1).add(row, self.peak[kind], -supply[:, None])
        under = m.rows("under", axes[:2], [region, kind], lower=supply)
        under.add(np.arange(pairs), self.demand[:, -1], 1).add(np.arange(pairs), self.idle, 1)

        total: FloatArray = p.regions.supply_mgpu.sum(axis=0)[kind].astype(np.float64)
        m.term("peak", self.peak, p.tier_weight)
        m.term("overload", self.overload, p.tier_weight / total[:, None])
        m.term("idle", self.idle, 1 / total)

    def stability(self) -> None:
        """stays: left[w,r] ≥ share of w that runs in r today − Σ_k run[w,r,k]; terms moved_work and moved_items.
        keeps: retyped[w,k] ≥ share of w that runs on k today − Σ_r run[w,r,k], where k is known; term retyped_work."""
        p, c, today = self.p, self.cells, self.p.current_runs
        every, typed = np.arange(len(today)), np.flatnonzero(today.gpu_type < len(p.gpu_types))
        run_type = p.options.gpu_type[c.run_option]
        self.left_workload, self.left = self._departures(
            ("left", "stays", "moved_work"), p.regions.labels, every, today.region, c.run_region
        )
        _, self.retyped = self._departures(
            ("retyped", "keeps", "retyped_work"), self.types, typed, today.gpu_type, run_type
        )
        self.m.term("moved_items", self.left, 1 / (len(self.p.datasets) + len(self.p.workloads)))

    def _departures(
        self, names: tuple[str, str, str], axis: Axis, rows: IntArray, today: Ints, run: Ints
    ) -> tuple[IntArray, IntArray]:
        """(workload, column) of the shares of work that leave where they are on an axis today; rows and a term."""
        p, m = self.p, self.m
        columns, kept, term = names
        axes, width = [p.workloads.labels, axis], len(axis)
        pair, at = np.unique(p.current_runs.workload[rows] * width + today[rows], return_inverse=True)
        share = np.bincount(at, weights=p.current_runs.share[rows], minlength=len(pair)) / SHARE
        workload = pair // width
        ids = m.columns(columns, axes, [workload, pair % width], upper=1)
        stays = m.rows(kept, axes, [workload, pair % width], lower=share)
        stays.add(np.arange(len(pair)), ids, 1)
        key = self.cells.run_workload * width + run
        row = np.searchsorted(pair, key)
        ran = np.flatnonzero(np.append(pair, -1)[row] == key)
        stays.add(row[ran], self.run[ran], self.run_unit[ran])
        m.term(term, ids, p.demand_mgpu[workload] / p.demand_mgpu.sum())
        return workload, ids

    def costs(self) -> None:
        """Terms running_cost, USD a month: GPUs by the hour, what is stored, what is read over links;
        migration_cost, USD: new replicas by region, copies by link."""
        p, m, c = self.p, self.m, self.cells
        stored, arriving = replica_usd(p)
        m.term("running_cost", self.place, stored)
        m.term("running_cost", self.run, run_usd(p)[c.run_option, c.run_region] * self.run_unit)
        new = ~p.datasets.stored
        m.term("migration_cost", self.place[new], arriving[new])
        if p.links is not None:
            price = p.links.price_usd_per_tb / MB_PER_TB
            read = p.reads.mb_per_day[c.local_read[self.remote_row]] * self.flow_unit
            monthly = read * (HOURS_A_MONTH / 24)
            m.term("running_cost", self.remote, monthly * price[self.remote_link])
            copied = p.datasets.size_mb[c.copy_dataset] * self.flow_unit
            m.term("migration_cost", self.copy, copied * price[c.copy_link])

    def limits(self) -> None:
        """limit: what each limit of the instance counts is at most its value, in base units."""
        p, m = self.p, self.m
        if not p.limits:
            return
        most = [float(value) * limit_scale(p, name) for name, value in p.limits.items()]
        limit = m.rows("limit", [tuple(p.limits)], upper=most)
        for row, name in enumerate(p.limits):
            for columns, coefficients in self._counted(name):
                limit.add(row, columns, coefficients)

    def _counted(self, name: str) -> list[tuple[IntArray, FloatArray]]:
        """(columns, coefficients) of what a limit of data placement counts, in base units."""
        p, m = self.p, self.m
        new = ~p.datasets.stored
        size = np.broadcast_to(p.datasets.size_mb[:, None], new.shape).astype(np.float64)
        copied = [(self.place[new], size[new])]
        stored = [(self.place.ravel(), size.ravel())]
        read = self.cells.local_read[self.remote_row]
        remote = [(self.remote, np.asarray(p.reads.mb_per_day[read] * self.flow_unit, np.float64))]
        replicas, workloads = (self.place[new], np.ones(int(new.sum()))), (self.left, np.ones(len(self.left)))
        moved = p.demand_mgpu[self.left_workload].astype(np.float64)
        refused = np.zeros(0, np.int32) if self.unserved is None else self.unserved
        urgency = p.tier_weight[p.workloads.tier] * p.demand_mgpu * self.refuse_unit
        counted: dict[str, list[tuple[IntArray, FloatArray]]] = {
            "copied_tb": copied,
            "copy": copied,
            "stored_tb": stored,
            "storage": stored,
            "remote_tb_per_day": remote,
            "remote": remote,
            **{
                term: [(columns, MICRO * usd) for columns, usd in m.entries_of(term)]
                for term in ("egress", "running_cost", "migration_cost")
            },
            "moved_work": [(self.left, moved)],
            "unserved": [(refused, urgency[: len(refused)])],
            "unserved_gpus": [
                (refused, np.multiply(p.fewest_mgpu, self.refuse_unit, dtype=np.float64)[: len(refused)])
            ],
            "overload_gpus": [(self.overload[:, -1], np.ones(len(self.overload)))],
            "new_replicas": [replicas],
            "moved_workloads": [workloads],
            "moves": [replicas, workloads],
        }
        return counted[name]


def limit_scale(problem: DataPlacement, name: str) -> float:
    """Number of base units, in which the program counts it, in one unit of a limit."""
    p = problem
    if name in ("copied_tb", "stored_tb", "remote_tb_per_day"):
        return MB_PER_TB
    if name in ("unserved_gpus", "overload_gpus"):
        return MILLI
    if name in ("egress", "running_cost", "migration_cost"):
        return MICRO  # 2 MB for a month cost 4e-5 USD, which is less than what solvers overlook in a row
    whole = {
        "copy": p.datasets.size_mb,
        "storage": p.datasets.size_mb,
        "remote": p.reads.mb_per_day,
        "moved_work": p.demand_mgpu,
        "unserved": p.tier_weight[p.workloads.tier] * p.demand_mgpu,
    }
    return float(whole[name].sum()) if name in whole else 1.0
