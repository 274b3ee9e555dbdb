"""Instance of a block: its workloads, the datasets that they read, and its share of every region.

Limits are divided so that plans of the blocks, side by side, keep those of the whole: storage by what is stored today
and by size, cores and quotas by need, GPUs by demand. Weights are scaled so that a GPU, a core, a TB stored, copied or
read remotely costs what it costs in the whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.problem import Bools, DataPlacement, Ints


@dataclass(frozen=True, eq=False)
class Block:
    """Positions in the whole of what a block has."""

    workloads: Ints
    datasets: Ints
    """Those that it reads, ascending, and those that it owns."""
    owned: Bools
    """[datasets] does the block read most of it?"""
    reads: Ints


def block_rows(problem: DataPlacement, block: Ints, owner: Ints, number: int) -> Block:
    """Rows of block ``number``, where ``block`` [W] and ``owner`` [I] assign workloads and datasets to blocks."""
    reads = np.flatnonzero(block[problem.reads.workload] == number)
    has = owner == number
    has[problem.reads.dataset[reads]] = True
    datasets = np.flatnonzero(has)
    return Block(np.flatnonzero(block == number), datasets, owner[datasets] == number, reads)


def block_instance(problem: DataPlacement, weights: Mapping[str, float], rows: Block) -> DataPlacement:
    """The instance of a block of a problem with these weights."""
    p = problem
    work = np.zeros(len(p.workloads), np.bool_)
    work[rows.workloads] = True
    number, data = np.cumsum(work) - 1, np.full(len(p.datasets), -1)
    data[rows.datasets] = np.arange(len(rows.datasets))
    options = p.options.rows(work[p.options.workload])
    runs = p.current_runs.rows(work[p.current_runs.workload])
    reads = p.reads.rows(rows.reads)
    copies = p.datasets.copies_min[rows.datasets]
    cores, quotas = _cores(p, rows)
    part = p.with_columns(
        {
            "name": f"{p.name} block",
            "provenance": "",
            "limits": {},
            "workloads": p.workloads.rows(rows.workloads, labels=_numbers(len(rows.workloads))),
            "datasets": p.datasets.rows(
                rows.datasets,
                labels=_numbers(len(rows.datasets)),
                copies_min=np.where(rows.owned, copies, np.minimum(copies, 1)),
            ),
            "options": replace(options, workload=number[options.workload]),
            "reads": replace(reads, workload=number[reads.workload], dataset=data[reads.dataset]),
            "current_runs": replace(runs, workload=number[runs.workload]),
            "regions.storage_mb": _storage(p, rows),
            "regions.headroom_milli": np.zeros(len(p.regions), np.int64),
            "regions.cpu_mcores": cores,
            "regions.ingress_mb_per_day": _floor(p.regions.ingress_mb_per_day, _size_share(p, rows)),
            "regions.supply_mgpu": _supply(p, rows),
            "cpu_quotas.cpu_mcores": quotas,
        }
    )
    return replace(part, objective=replace(p.objective, weights=_weights(p, weights, part)))


def share_of_costs(problem: DataPlacement, rows: Block) -> FloatArray:
    """[datasets] the part of a replica's cost that the block bears in the bound: that of the volume it reads."""
    reads, datasets = problem.reads, len(problem.datasets)
    volume = reads.mb_per_day + 1.0
    whole = np.bincount(reads.dataset, weights=volume, minlength=datasets)[rows.datasets]
    mine = np.bincount(reads.dataset[rows.reads], weights=volume[rows.reads], minlength=datasets)[rows.datasets]
    return np.where(whole > 0, mine / np.maximum(whole, 1e-300), 1.0)


def plan_of_block(problem: DataPlacement, rows: Block, plan: Plan) -> Plan:
    """A plan's part for a block: its replicas and runs."""
    number = np.full(len(problem.workloads), -1)
    number[rows.workloads] = np.arange(len(rows.workloads))
    mine = number[plan.run_workload] >= 0
    run = (number[plan.run_workload[mine]], plan.run_region[mine], plan.run_type[mine], plan.run_share[mine])
    none = np.zeros(0, np.int64)
    return Plan(plan.place[rows.datasets], *run, *(none,) * 4, *(none,) * 5)


def _numbers(count: int) -> tuple[str, ...]:
    """Numbers as labels in the instance of a block."""
    return tuple(map(str, range(count)))


def _floor(limit: Ints, share: float | FloatArray) -> Ints:
    """Share of a region's limit that a block gets, rounded down."""
    given: Ints = np.floor(limit * np.asarray(share)).astype(np.int64)
    return given


def _size_share(p: DataPlacement, rows: Block) -> float:
    """Share of all data that the block owns."""
    return float(p.datasets.size_mb[rows.datasets[rows.owned]].sum() / max(int(p.datasets.size_mb.sum()), 1))


def _storage(p: DataPlacement, rows: Block) -> Ints:
    """[R] room for what the block stores today, and its share of what is free."""
    own = rows.datasets[rows.owned]
    stored = p.datasets.size_mb @ p.datasets.stored
    mine = p.datasets.size_mb[own] @ p.datasets.stored[own]
    free = np.maximum(p.usable_storage_mb - stored, 0)
    room = np.where(stored > p.usable_storage_mb, p.usable_storage_mb / np.maximum(stored, 1), 1.0) * mine
    pinned = rows.datasets[~rows.owned]
    held_elsewhere = p.datasets.size_mb[pinned] @ p.datasets.pinned[pinned]
    given: Ints = np.floor(room).astype(np.int64) + _floor(free, _size_share(p, rows)) + held_elsewhere
    return given


def _cores(p: DataPlacement, rows: Block) -> tuple[Ints, Ints]:
    """([R] cores, [Q] quotas): shares by what the block's work needs, of each application."""
    need = p.workloads.cpu_mcores.astype(np.float64)
    whole = np.bincount(p.workloads.app, weights=need, minlength=len(p.apps))
    mine = np.bincount(p.workloads.app[rows.workloads], weights=need[rows.workloads], minlength=len(p.apps))
    share = mine / np.maximum(whole, 1.0)
    cores = _floor(p.regions.cpu_mcores, float(mine.sum() / max(float(whole.sum()), 1.0)))
    return cores, _floor(p.cpu_quotas.cpu_mcores, share[p.cpu_quotas.app])


def _demand(p: DataPlacement, options: Bools | slice) -> FloatArray:
    """[K] milli-GPUs of each type, where work that accepts several asks equally of each."""
    count = np.bincount(p.options.workload, minlength=len(p.workloads))
    of = p.options.workload[options]
    amount = p.options.mgpu[options] / count[of]
    asked = np.bincount(p.options.gpu_type[options], weights=amount, minlength=len(p.gpu_types) + 1)
    return asked[:-1].astype(np.float64)


def _supply(p: DataPlacement, rows: Block) -> Ints:
    """[R, K] GPUs by the demand for each type."""
    work = np.zeros(len(p.workloads), np.bool_)
    work[rows.workloads] = True
    mine, whole = _demand(p, work[p.options.workload]), _demand(p, slice(None))
    given = _floor(p.regions.supply_mgpu, mine / np.maximum(whole, 1.0))
    return np.where(p.regions.supply_mgpu > 0, np.maximum(given, 1), 0)


def _weights(p: DataPlacement, weights: Mapping[str, float], part: DataPlacement) -> dict[str, float]:
    """Weights of the block, whose terms have other denominators."""

    def ratio(mine: float, whole: float) -> float:
        return mine / whole if whole > 0 else 1.0

    gpus = ratio(float(part.regions.supply_mgpu.sum()), float(p.regions.supply_mgpu.sum()))
    size = ratio(float(part.datasets.size_mb.sum()), float(p.datasets.size_mb.sum()))
    refused = [float((one.tier_weight[one.workloads.tier] * one.demand_mgpu).sum()) for one in (part, p)]
    scale = {
        **dict.fromkeys(("peak", "overload", "idle"), gpus),
        **dict.fromkeys(("copy", "storage"), size),
        "remote": ratio(float(part.reads.mb_per_day.sum()), float(p.reads.mb_per_day.sum())),
        **dict.fromkeys(
            ("moved_work", "retyped_work"), ratio(float(part.demand_mgpu.sum()), float(p.demand_mgpu.sum()))
        ),
        "unserved": ratio(*refused),
    }
    return {term: weight * scale.get(term, 1.0) for term, weight in weights.items()}
