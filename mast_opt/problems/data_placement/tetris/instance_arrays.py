"""Data-placement instance as flat arrays, in the layout that the compiled kernels of tetris read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.core.by_reference import by_reference
from mast_opt.problems.data_placement.prices import most_usd, replica_usd, run_usd
from mast_opt.problems.data_placement.problem import SHARE, Bools, DataPlacement, Ints

Singles = NDArray[np.float32]

UNLIMITED = np.iinfo(np.int64).max // 4
"""Stands for a capacity that is not limited; far above any sum of needs, far from overflow."""
FORBIDDEN_READ, RELIEF = 1e3, 100.0
"""Price of a remote read where those are forbidden, which few plans can save by one; and worth of bringing an exceeded
limit back by its own size. Both grow with the weights of the objective: see ``_penalty_scale``."""


@by_reference
class TetrisArrays(NamedTuple):
    """One problem. R, K, P count regions, GPU types, tiers; region R stands for "left out"."""

    option_start: Ints
    """[W+1] options of a workload."""
    option_type: Ints
    option_mgpu: Ints
    option_region: Bools
    """[O, R+1] where each option may run."""
    tier: Ints
    cpu_need: Ints
    app: Ints
    output: Ints
    twin_start: Ints
    """[C+1] classes of workloads with equal tier and options, for swaps."""
    twin: Ints
    """[W] workloads by class."""
    twin_class: Ints
    """Class of twins of each workload, [W]."""
    read_start: Ints
    """[W+1] reads of a workload."""
    read_dataset: Ints
    read_volume: Ints
    """[N] MB a day; 1 where remote reads are forbidden."""
    reader_start: Ints
    """[I+1] readers of a dataset."""
    reader: Ints
    reader_read: Ints
    """[N] the same reads as positions in ``read_dataset``."""
    today_start: Ints
    """[W+1] where a workload runs today."""
    today_region: Ints
    today_share: FloatArray
    size: Ints
    copies_min: Ints
    copies_max: Ints
    stored: Bools
    pinned: Bools
    forbidden: Bools
    supply: Ints
    """[R, K]"""
    storage: Ints
    cpu: Ints
    ingress: Ints
    quota_row: Ints
    """[A, R] row of the quota, or −1."""
    quota: Ints
    peak_price: FloatArray
    """[P] per unit of demand over supply."""
    peak_level: FloatArray
    """[P] demand over supply that costs nothing."""
    overload_price: FloatArray
    """[K, P] per milli-GPU."""
    idle_price: FloatArray
    """[K] per milli-GPU."""
    replica_price: FloatArray
    """[I, R] of a replica of each dataset in every region."""
    run_price: FloatArray
    """[O, R] of a workload on each option in every region: dollars by their weight."""
    remote_reads: bool
    """True if remote reads are allowed. If not, a start may have some, but no incumbent has any."""
    remote_price: float
    """Price per unit of ``read_volume``."""
    relief: float
    """Worth of bringing an exceeded limit back by its own size."""
    refuse_price: FloatArray
    """Price of leaving out each workload, [W]."""
    move_price: FloatArray
    """[W] for leaving today's regions altogether."""
    retype_price: FloatArray
    """[W] for leaving today's GPU types altogether."""
    typed_share: FloatArray
    """[W] the share that runs on a known GPU type today."""
    kept_share: FloatArray
    """[O] the share that runs on the option's GPU type today."""
    stakes: FloatArray
    """[W] the most that its reads and replicas can save when a workload moves."""


def arrays_of(problem: DataPlacement, weights: dict[str, float], share: Ints | None = None) -> TetrisArrays:
    """The arrays with each term priced by its weight. Shares are not modelled: work runs in one place.

    Args:
        problem: the instance, or the one of its workloads' parts.
        weights: a weight for every term.
        share: [W] thousandths of a whole workload that each is; None where all are whole.
    """
    p = problem
    share = np.full(len(p.workloads), SHARE) if share is None else share
    item_price = weights["moved_items"] / (len(p.datasets) + share.sum() / SHARE)
    workloads, datasets, regions = len(p.workloads), len(p.datasets), len(p.regions)
    by_dataset = np.argsort(p.reads.dataset, kind="stable")
    total = p.regions.supply_mgpu.sum(axis=0)
    per_gpu = np.where(total > 0, 1 / np.maximum(total, 1), 0.0)
    size_share = p.datasets.size_mb / max(int(p.datasets.size_mb.sum()), 1)
    tier_weight = p.tier_weight
    may_run = np.zeros((len(p.options), regions + 1), np.bool_)
    may_run[:, :regions] = p.option_regions
    may_run[:, regions] = p.may_refuse
    quota_row = np.full((len(p.apps), regions), -1)
    quota_row[p.cpu_quotas.app, p.cpu_quotas.region] = np.arange(len(p.cpu_quotas))
    refuse = tier_weight[p.workloads.tier] * p.demand_mgpu
    today = np.lexsort((p.current_runs.region, p.current_runs.workload))
    volume = p.reads.mb_per_day if p.remote_reads else np.ones_like(p.reads.mb_per_day)
    penalty_scale = _penalty_scale(p, weights)
    read_price = weights["remote"] / max(int(p.reads.mb_per_day.sum()), 1)
    if not p.remote_reads:
        read_price = FORBIDDEN_READ * penalty_scale
    twin_class, twin, twin_start = _interchangeable(p)
    keep_price = weights["storage"] * size_share
    new_price = keep_price + weights["copy"] * size_share + item_price
    run_price, replica_price = _dollars(p, weights)
    replica_price += np.where(p.datasets.stored, keep_price[:, None], new_price[:, None])
    typed = p.current_runs.gpu_type < len(p.gpu_types)
    shares = np.zeros((workloads, len(p.gpu_types) + 1))
    at = (p.current_runs.workload[typed], p.current_runs.gpu_type[typed])
    np.add.at(shares, at, p.current_runs.share[typed] / SHARE)
    stakes = np.zeros(workloads)
    np.add.at(stakes, p.reads.workload, volume * read_price + replica_price.max(axis=1)[p.reads.dataset])
    arrays = TetrisArrays(
        option_start=np.searchsorted(p.options.workload, np.arange(workloads + 1)),
        option_type=p.options.gpu_type,
        option_mgpu=p.options.mgpu,
        option_region=may_run,
        tier=p.workloads.tier,
        cpu_need=p.workloads.cpu_mcores,
        app=p.workloads.app,
        output=p.workloads.output_mb,
        twin_start=twin_start,
        twin=twin,
        twin_class=twin_class,
        read_start=np.searchsorted(p.reads.workload, np.arange(workloads + 1)),
        read_dataset=p.reads.dataset,
        read_volume=volume,
        reader_start=np.searchsorted(p.reads.dataset[by_dataset], np.arange(datasets + 1)),
        reader=p.reads.workload[by_dataset],
        reader_read=by_dataset,
        today_start=np.searchsorted(p.current_runs.workload[today], np.arange(workloads + 1)),
        today_region=p.current_runs.region[today],
        today_share=p.current_runs.share[today] / SHARE,
        size=p.datasets.size_mb,
        copies_min=p.datasets.copies_min,
        copies_max=p.datasets.copies_max,
        stored=p.datasets.stored,
        pinned=p.datasets.pinned,
        forbidden=p.closed,
        supply=p.regions.supply_mgpu,
        storage=p.usable_storage_mb,
        cpu=p.regions.cpu_mcores,
        ingress=np.where(p.regions.ingress_limited, p.ingress_mb, UNLIMITED),
        quota_row=quota_row,
        quota=p.cpu_quotas.cpu_mcores,
        peak_price=weights["peak"] * tier_weight,
        peak_level=p.peak_level,
        overload_price=weights["overload"] * tier_weight[None, :] * per_gpu[:, None],
        idle_price=weights["idle"] * per_gpu,
        replica_price=replica_price,
        run_price=run_price,
        remote_reads=p.remote_reads,
        remote_price=float(read_price),
        relief=RELIEF * penalty_scale,
        refuse_price=weights["unserved"] * refuse / (refuse.sum() or 1.0),
        move_price=weights["moved_work"] * p.demand_mgpu / p.demand_mgpu.sum() + item_price * share / SHARE,
        retype_price=weights["retyped_work"] * p.demand_mgpu / p.demand_mgpu.sum(),
        typed_share=shares.sum(axis=1),
        kept_share=shares[p.options.workload, p.options.gpu_type],
        stakes=stakes * (1 + 1e-9),
    )
    fields: dict[str, Any] = arrays._asdict()
    for name, value in fields.items():
        if isinstance(value, np.ndarray):
            fields[name] = _one_layout(value)
    return TetrisArrays(**fields)


def _penalty_scale(p: DataPlacement, weights: dict[str, float]) -> float:
    """Factor by which the weights are larger than usual; 1 with the default weights and tier weights up to 10.

    What one change saves of a term that is a share, such as overload, is a small part of its weight.
    """
    largest = [
        weights["peak"] * p.tier_weight.max(initial=0.0),
        weights["overload"] * p.tier_weight.max(initial=0.0) / 10,
        *(weights[term] / 10 for term in ("idle", "remote", "copy", "storage")),
        *(weights[term] / 10 for term in ("moved_work", "retyped_work", "moved_items")),
        weights["unserved"] / 100 if p.may_refuse else 0.0,
        float(np.dot(most_usd(p), [weights["running_cost"], weights["migration_cost"]])) / 10,
    ]
    return max(1.0, float(max(largest)) / 10)


def _dollars(p: DataPlacement, weights: dict[str, float]) -> tuple[FloatArray, FloatArray]:
    """Prices [O, R] of runs and [I, R] of replicas in dollars, by the weights of the terms; links have none here."""
    stored, arriving = replica_usd(p)
    return weights["running_cost"] * run_usd(p), weights["running_cost"] * stored + weights["migration_cost"] * arriving


def unavoidable_dollars(problem: DataPlacement, weights: dict[str, float]) -> float:
    """Cost of every plan in dollars, by the weights of the terms, but for work that may be left out: the cheapest place
    of each workload, and as few replicas as there must be where they cost least."""
    p = problem
    run, replica = _dollars(p, weights)
    cheapest = np.full(len(p.workloads), np.inf)
    np.minimum.at(cheapest, p.options.workload, np.where(p.option_regions, run, np.inf).min(axis=1))
    total = 0.0 if p.may_refuse else float(cheapest[np.isfinite(cheapest)].sum())
    least = np.cumsum(np.sort(np.where(p.closed, np.inf, replica), axis=1), axis=1)
    rank = np.minimum(p.datasets.copies_min, len(p.regions))
    needed = np.take_along_axis(least, np.maximum(rank - 1, 0)[:, None], axis=1)[:, 0]
    return total + float(needed[(rank > 0) & np.isfinite(needed)].sum())


def _one_layout(array: NDArray[Any]) -> NDArray[Any]:
    """Contiguous and read-only: kernels are compiled again for every other combination, which takes a minute."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def _interchangeable(problem: DataPlacement) -> tuple[Ints, Ints, Ints]:
    """Classes of workloads that ask the same of GPUs: (class of each, workloads by class, class starts)."""
    p = problem
    workloads, types = len(p.workloads), len(p.gpu_types) + 1
    asks = np.full((workloads, types), -1, np.int64)
    asks[p.options.workload, p.options.gpu_type] = p.options.mgpu
    _, twin_class = np.unique(np.column_stack([p.workloads.tier, asks]), axis=0, return_inverse=True)
    twin_class = twin_class.astype(np.int64).ravel()
    twin = np.argsort(twin_class, kind="stable")
    starts = np.searchsorted(twin_class[twin], np.arange(int(twin_class.max(initial=-1)) + 2))
    return twin_class, twin, starts
