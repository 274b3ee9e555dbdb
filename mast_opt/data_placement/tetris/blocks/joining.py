"""Plan and certificate of the whole from those of its blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mast_opt.data_placement.plan import Plan, fill_copies, fill_remote
from mast_opt.data_placement.problem import SHARE, Bools, DataPlacement
from mast_opt.data_placement.tetris.blocks.instances import Block
from mast_opt.data_placement.tetris.incumbent import assignment_of
from mast_opt.data_placement.tetris.instance_arrays import TetrisArrays, arrays_of
from mast_opt.data_placement.tetris.replica_repair import repair_replicas
from mast_opt.data_placement.tetris.state import TetrisState, state_of
from mast_opt.data_placement.verification.certificate import Certificate
from mast_opt.data_placement.verification.certificate_bound import remote_cap
from mast_opt.data_placement.verification.certificate_tree_cuts import KeptTrees


def joined_plan(problem: DataPlacement, weights: Mapping[str, float], rows: Sequence[Block], plans: Sequence[Plan]) -> Plan:
    """The plans side by side. Replicas that no longer pay, now that others serve the same readers, go; others come
    where they pay and there is room."""
    place = np.zeros(problem.datasets.stored.shape, np.bool_)
    for block, plan in zip(rows, plans, strict=True):
        place[block.datasets] |= plan.place
    run = (
        np.concatenate([block.workloads[plan.run_workload] for block, plan in zip(rows, plans, strict=True)]),
        *(np.concatenate([getattr(plan, name) for plan in plans]) for name in ("run_region", "run_type", "run_share")),
    )
    order = np.argsort(run[0], kind="stable")
    run = tuple(column[order] for column in run)
    place = _better_replicas(problem, weights, place, run)
    return Plan(place, *run, *fill_copies(problem, place), *fill_remote(problem, place, *run))


def _better_replicas(problem, weights, place, run):
    a = arrays_of(problem, dict(weights))
    s = _state(problem, a, place, run)
    kept = _paying(a, s)
    s = _state(problem, a, kept, run)
    repair_replicas(a, s)
    return s.place.copy()


def _state(problem, a, place, run):
    """The state of a plan, in which shares of split work read their shares."""
    none = np.zeros(0, np.int64)
    s = state_of(a, *assignment_of(problem, Plan(place, *run, *(none,) * 9)), 1)
    workload, region, _, share = run
    count = np.diff(a.read_start)[workload]
    entry = np.repeat(np.arange(len(workload)), count)
    read = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count - a.read_start[workload], count)
    volume = np.zeros(s.volume.size)
    at = a.read_dataset[read] * s.volume.shape[1] + region[entry]
    volume = np.bincount(at, weights=a.read_volume[read] * share[entry] / SHARE, minlength=s.volume.size)
    s.volume[...] = np.rint(volume).astype(np.int64).reshape(s.volume.shape)
    return s


def _paying(a: TetrisArrays, s: TetrisState) -> Bools:
    """[I, R] the replicas that save their readers more than they cost, but no fewer or more than there must or may
    be."""
    price = np.where(a.stored, a.keep_price[:, None], a.new_price[:, None])
    saving = np.where(s.place, s.volume * a.remote_price - price, -np.inf)
    saving[a.pinned] = np.inf
    rank = np.empty_like(s.volume)
    order = np.argsort(-saving, axis=1, kind="stable")
    np.put_along_axis(rank, order, np.arange(saving.shape[1])[None, :], axis=1)
    kept = s.place & ((saving >= 0) | (rank < a.copies_min[:, None])) & (rank < a.copies_max[:, None])
    return kept | a.pinned


def joined_certificate(
    problem: DataPlacement, weights: Mapping[str, float], rows: Sequence[Block], parts: Sequence[Certificate]
) -> Certificate:
    """Each read at the price of its block; the limits of regions at the mean of the blocks' prices."""
    p = problem
    cap, blocks = remote_cap(p, weights), len(parts)
    kept = np.zeros(len(p.reads)) if cap is None else cap
    level = np.empty((len(p.reads), len(p.regions)), np.uint16)
    for block, part in zip(rows, parts, strict=True):
        level[block.reads] = part.read_level
        if cap is None:
            kept[block.reads] = part.read_cap
    peak = weights["peak"] * p.tier_weight
    worst = sum(part.worst.sum(axis=3) for part in parts)
    worst *= np.minimum(1.0, peak * (1 - 1e-12) / np.where((t := worst.sum(axis=0)) > 0, t, 1.0))
    highest = weights["overload"] * p.tier_weight / np.maximum(p.regions.supply_mgpu.sum(axis=0), 1)[:, None]
    over = np.minimum(sum(part.over.sum(axis=3) for part in parts) / blocks, highest * (1 - 1e-12))
    mean = {name: sum(getattr(part, name) for part in parts) / blocks for name in ("under", "cpu", "storage", "ingress", "quota")}
    return Certificate(
        weights=dict(weights),
        read_level=level,
        read_cap=kept,
        worst=worst[..., None],
        over=over[..., None],
        **mean,
        gang=np.ones((len(p.gpu_types), 0), np.int64),
        trees=KeptTrees.none(),
    )
