"""Codec of the data-placement MIP: between a plan and the columns, both ways; columns fixed to a plan's values."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.core.errors import UnsupportedOption
from mast_opt.problems.data_placement.formulation.index_sets import IndexSets
from mast_opt.problems.data_placement.plan import Plan, filled, gpu_demand
from mast_opt.problems.data_placement.problem import SHARE, Bools, DataPlacement, Ints
from mast_opt.problems.kind.formulation import FixedParts


@dataclass(frozen=True, eq=False)
class Columns:
    """Column ids, and what one unit of a column is worth (1, or a thousandth in the exact formulation)."""

    place: IntArray
    run: IntArray
    run_unit: FloatArray
    unserved: IntArray | None
    refuse_unit: FloatArray
    remote: IntArray
    remote_row: IntArray
    """[·] row of ``local`` that each remote column serves."""
    remote_link: IntArray
    copy: IntArray
    flow_unit: float
    demand: IntArray
    overload: IntArray
    peak: IntArray
    idle: IntArray
    left: IntArray
    retyped: IntArray


def apportion(weights: FloatArray, group: IntArray, total: Ints) -> Ints:
    """Split shares of work or data: total[g] into integers proportional to the weights of group g (largest remainder,
    ties by order).

    Groups whose weights are all zero receive nothing.
    """
    weights = np.maximum(weights, 0.0)
    sums = np.bincount(group, weights=weights, minlength=len(total))
    quota = np.where(sums[group] > 0, weights / np.where(sums > 0, sums, 1.0)[group] * total[group], 0.0)
    floor = np.floor(quota + 1e-9).astype(np.int64)
    short = total - np.bincount(group, weights=floor, minlength=len(total)).astype(np.int64)
    order = np.lexsort((-(quota - floor), group))
    rank = np.arange(len(group)) - np.searchsorted(group[order], group[order])
    extra = (rank < short[group[order]]) & (sums[group[order]] > 0) & (weights[order] > 0)
    floor[order[extra]] += 1
    return floor


@dataclass(frozen=True, eq=False)
class Codec:
    """The exact way between a plan and the columns of the formulation, both directions."""

    problem: DataPlacement
    cells: IndexSets
    columns: Columns
    width: int

    def decode(self, x: FloatArray) -> Plan:
        """The data-placement plan of a solution: integers rounded, shares in thousandths, flows recomputed
        from them.
        """
        p, c, at = self.problem, self.cells, self.columns
        place = x[at.place] > 0.5
        share = self._shares(x)
        kept = np.flatnonzero(share)
        run = (c.run_workload[kept], c.run_region[kept], p.options.gpu_type[c.run_option[kept]], share[kept])
        if p.links is None:
            return filled(p, place, run)
        return Plan(place, *run, *self._copies(x, place), *self._remote(x, place, share))

    def _shares(self, x: FloatArray) -> Ints:
        """Thousandths of every run cell; a workload's shares add up to SHARE less what is refused."""
        p, c, at = self.problem, self.cells, self.columns
        run = x[at.run] * at.run_unit
        whole = ~p.workloads.splittable[c.run_workload]
        share = np.where(whole, np.where(run > 0.5, SHARE, 0), 0).astype(np.int64)
        if whole.all():
            return share
        served = np.full(len(p.workloads), SHARE, np.int64)
        if at.unserved is not None:
            served -= np.rint(np.clip(x[at.unserved] * at.refuse_unit, 0, 1) * SHARE).astype(np.int64)
        part = np.flatnonzero(~whole)
        share[part] = apportion(run[part], c.run_workload[part], served)
        return share

    def _copies(self, x: FloatArray, place: Bools) -> tuple[Ints, Ints, Ints, Ints]:
        """Shares of the sources of every new replica, from the columns."""
        p, c, at = self.problem, self.cells, self.columns
        assert p.links is not None
        source, target = p.links.source[c.copy_link], p.links.target[c.copy_link]
        regions = len(p.regions)
        wanted = (place & ~p.datasets.stored)[c.copy_dataset, target]
        weight = np.where(wanted, x[at.copy] + 1e-9, 0.0)
        group = c.copy_dataset * regions + target
        share = apportion(weight, group, np.full(len(p.datasets) * regions, SHARE, np.int64))
        kept = np.flatnonzero(share)
        return c.copy_dataset[kept], source[kept], target[kept], share[kept]

    def _remote(self, x: FloatArray, place: Bools, share: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """Shares of the sources of every remote read, from the columns."""
        p, c, at = self.problem, self.cells, self.columns
        assert p.links is not None
        dataset, region = p.reads.dataset[c.local_read], c.group_region[c.local_group]
        there = np.bincount(c.run_group, weights=share, minlength=len(c.group_workload)).astype(np.int64)
        need = np.where(place[dataset, region], 0, there[c.local_group])
        source = p.links.source[at.remote_link]
        holds = place[dataset[at.remote_row], source]
        weight = np.where(holds, np.maximum(x[at.remote], 0.0) + 1e-9, 0.0)
        part = apportion(weight, at.remote_row, need)
        kept = np.flatnonzero(part)
        row = at.remote_row[kept]
        return p.reads.workload[c.local_read[row]], dataset[row], source[kept], region[row], part[kept]

    def encode(self, plan: Plan) -> FloatArray:
        """A value for every column of the data-placement program; what a plan does where there is no column is left
        out.
        """
        p, c, at = self.problem, self.cells, self.columns
        x = np.zeros(self.width)
        x[at.place] = plan.place
        share = _lookup(
            (c.run_workload, c.run_region, p.options.gpu_type[c.run_option]),
            (plan.run_workload, plan.run_region, plan.run_type),
            plan.run_share / SHARE,
        )
        x[at.run] = share / at.run_unit
        if at.unserved is not None:
            served = np.bincount(plan.run_workload, weights=plan.run_share, minlength=len(p.workloads))
            x[at.unserved] = (SHARE - served) / SHARE / at.refuse_unit
        self._encode_flows(plan, share, x)
        demand = gpu_demand(p, plan)
        region, kind = np.nonzero(p.regions.supply_mgpu)
        supply = p.regions.supply_mgpu[region, kind]
        held = demand[region, kind]
        x[at.demand] = held
        x[at.overload] = np.maximum(held - supply[:, None], 0)
        np.maximum.at(x, at.peak[kind], held / supply[:, None] - p.peak_level)
        x[at.idle] = np.maximum(supply - held[:, -1], 0)
        self._encode_left(plan, x)
        return x

    def _encode_flows(self, plan: Plan, share: FloatArray, x: FloatArray) -> None:
        """Set the columns of copies and remote reads from a data-placement plan."""
        p, c, at = self.problem, self.cells, self.columns
        dataset, region = p.reads.dataset[c.local_read], c.group_region[c.local_group]
        if p.links is None:
            there = np.bincount(c.run_group, weights=share, minlength=len(c.group_workload))
            if len(at.remote):
                x[at.remote] = np.where(plan.place[dataset, region], 0.0, there[c.local_group])
            return
        link_of = np.full((len(p.regions), len(p.regions)), -1)
        link_of[p.links.source, p.links.target] = np.arange(len(p.links))
        copied = _lookup(
            (c.copy_dataset, c.copy_link),
            (plan.copy_dataset, link_of[plan.copy_source, plan.copy_target]),
            plan.copy_share / SHARE,
        )
        x[at.copy] = copied / at.flow_unit
        row = at.remote_row
        read = _lookup(
            (p.reads.workload[c.local_read[row]], dataset[row], at.remote_link),
            (plan.remote_workload, plan.remote_dataset, link_of[plan.remote_source, plan.remote_target]),
            plan.remote_share / SHARE,
        )
        x[at.remote] = read / at.flow_unit

    def _encode_left(self, plan: Plan, x: FloatArray) -> None:
        """Set the columns of work that leaves its region or GPU type, from a data-placement plan."""
        p, at, today = self.problem, self.columns, self.problem.current_runs
        typed = today.gpu_type < len(p.gpu_types)
        for columns, width, rows, now, planned in (
            (at.left, len(p.regions), np.ones_like(typed), today.region, plan.run_region),
            (at.retyped, len(p.gpu_types) + 1, typed, today.gpu_type, plan.run_type),
        ):
            size, key = len(p.workloads) * width, today.workload[rows] * width + now[rows]
            there = np.bincount(key, weights=today.share[rows], minlength=size)
            kept = np.bincount(plan.run_workload * width + planned, weights=plan.run_share, minlength=size)
            pair = np.unique(key)
            x[columns] = np.maximum(there[pair] - kept[pair], 0) / SHARE


def _lookup(cells: tuple[IntArray, ...], listed: tuple[Ints, ...], values: FloatArray) -> FloatArray:
    """Values of a data-placement plan listed for the cells, 0 where none is."""
    inside = np.logical_and.reduce([positions >= 0 for positions in listed])
    listed = tuple(positions[inside] for positions in listed)
    shape = tuple(
        1 + max((int(positions.max()) for positions in both if len(positions)), default=0)
        for both in zip(cells, listed)
    )
    known, wanted = np.ravel_multi_index(listed, shape), np.ravel_multi_index(cells, shape)
    order = np.argsort(known, kind="stable")
    at = np.searchsorted(known[order], wanted)
    found = np.append(known[order], -1)[at] == wanted
    return np.where(found, np.append(values[inside][order], 0.0)[at], 0.0)


_RUN = ("workload", "region", "gpu_type")


def _rules(problem: DataPlacement, plan: Plan, parts: Mapping[str, Ints]) -> DataPlacement:
    """The problem with pins and bans that leave the named parts no choice.

    Raises:
        UnsupportedOption: work that is split, or that other GPU types would serve with fewer GPUs, since no rule says
            so; or a GPU type.
    """
    if "gpu_type" in parts:
        raise UnsupportedOption(
            "no rule of data placement keeps a GPU type as it is; use an exact solver, such as highs"
        )
    p = problem
    none: Ints = np.zeros(0, np.int64)
    fixed: Bools = np.zeros(p.datasets.stored.shape, np.bool_)
    fixed[parts.get("dataset", none)] = True
    fixed[:, parts.get("region", none)] = True
    held: Bools = np.zeros(p.allowed.shape, np.bool_)
    held[parts.get("workload", none)] = True
    held[:, parts.get("region", none)] = True
    runs: Bools = np.zeros(p.allowed.shape, np.bool_)
    runs[plan.run_workload, plan.run_region] = True
    stays = np.unique(plan.run_workload[held[plan.run_workload, plan.run_region]])
    split = stays[np.isin(stays, plan.run_workload[plan.run_share < SHARE])]
    if len(split):
        raise UnsupportedOption(
            f"{p.workloads.labels[split[0]]} runs in parts, which no rule of data placement can keep; "
            "use an exact solver"
        )
    work_pinned = p.workloads.pinned | (held & runs)
    return _with_types(p, plan, stays).with_columns(
        {
            "datasets.pinned": p.datasets.pinned | (fixed & plan.place),
            "datasets.forbidden": p.datasets.forbidden | (fixed & ~plan.place),
            "workloads.pinned": work_pinned,
            "workloads.forbidden": p.workloads.forbidden | (held & ~runs),
        }
    )


def _with_types(problem: DataPlacement, plan: Plan, stays: Ints) -> DataPlacement:
    """The problem in which work that stays accepts no type but the one that it runs on.

    The objective measures work by the fewest GPUs that it accepts, so a type may only go if that stays the same.
    """
    p = problem
    row = np.searchsorted(plan.run_workload, stays)
    type_of = np.full(len(p.workloads), -1, np.int64)
    type_of[stays] = plan.run_type[row]
    drop = (type_of[p.options.workload] >= 0) & (p.options.gpu_type != type_of[p.options.workload])
    region_of = np.zeros(len(p.workloads), np.int64)
    region_of[stays] = plan.run_region[row]
    drop &= p.option_regions[np.arange(len(drop)), region_of[p.options.workload]]
    edited = replace(p, options=p.options.rows(~drop))
    changed = np.flatnonzero(edited.demand_mgpu != p.demand_mgpu)
    for w in changed[:1].tolist():
        raise UnsupportedOption(
            f"{p.workloads.labels[w]} runs on a GPU type of which it needs more than of another that it accepts; no "
            "rule of data placement keeps it there; use an exact solver"
        )
    return edited


FREEZING: FixedParts[DataPlacement, Plan] = FixedParts(
    tables=("placements", "runs"),
    blocks={"place": ("dataset", "region"), "run": _RUN, "part": _RUN},
    rules=_rules,
    settles=True,
)
