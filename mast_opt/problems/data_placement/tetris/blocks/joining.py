"""Plan and certificate of the whole from those of its blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mast_opt.problems.data_placement.plan import Plan, fill_copies, fill_remote
from mast_opt.problems.data_placement.problem import SHARE, Bools, DataPlacement, Ints
from mast_opt.problems.data_placement.tetris.blocks.instances import Block
from mast_opt.problems.data_placement.tetris.incumbent import assignment_of
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays, arrays_of
from mast_opt.problems.data_placement.tetris.replica_repair import repair_replicas
from mast_opt.problems.data_placement.tetris.state import TetrisState, replica_prices, state_of
from mast_opt.problems.data_placement.verification.certificate import Certificate
from mast_opt.problems.data_placement.verification.certificate_bound import remote_cap
from mast_opt.problems.data_placement.verification.certificate_tree_cuts import KeptTrees

Runs = tuple[Ints, Ints, Ints, Ints]
"""Workload, region, type and share of each run."""


def joined_plan(
    problem: DataPlacement, weights: Mapping[str, float], rows: Sequence[Block], plans: Sequence[Plan]
) -> Plan:
    """The plans side by side. Replicas that no longer pay, now that others serve the same readers, go; others come
    where they pay and there is room."""
    place = np.zeros(problem.datasets.stored.shape, np.bool_)
    for block, plan in zip(rows, plans, strict=True):
        place[block.datasets] |= plan.place
    workload = np.concatenate([block.workloads[plan.run_workload] for block, plan in zip(rows, plans, strict=True)])
    order = np.argsort(workload, kind="stable")
    columns = ("run_region", "run_type", "run_share")
    region, kind, share = (np.concatenate([getattr(plan, name) for plan in plans])[order] for name in columns)
    run = workload[order], region, kind, share
    a = arrays_of(problem, dict(weights))
    state = _state(problem, a, _paying(a, _state(problem, a, place, run)), run)
    repair_replicas(a, state)
    place = state.place
    return Plan(place, *run, *fill_copies(problem, place), *fill_remote(problem, place, *run))


def _state(problem: DataPlacement, a: TetrisArrays, place: Bools, run: Runs) -> TetrisState:
    """The state of a plan; what split work reads is counted by its shares."""
    none = np.zeros(0, np.int64)
    state = state_of(a, *assignment_of(problem, Plan(place, *run, *(none,) * 4, *(none,) * 5)), 1)
    workload, region, _, share = run
    count = np.diff(a.read_start)[workload]
    entry = np.repeat(np.arange(len(workload)), count)
    read = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count - a.read_start[workload], count)
    cell = a.read_dataset[read] * place.shape[1] + region[entry]
    volume = np.bincount(cell, weights=a.read_volume[read] * share[entry] / SHARE, minlength=place.size)
    state.volume[...] = np.rint(volume).astype(np.int64).reshape(place.shape)
    return state


def _paying(a: TetrisArrays, s: TetrisState) -> Bools:
    """[I, R] the replicas that save their readers more than they cost, but no fewer or more than there must or may
    be."""
    saving = np.where(s.place, s.volume * a.remote_price - replica_prices(a), -np.inf)
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
    worst = np.sum([part.worst.sum(axis=3) for part in parts], axis=0)
    total = worst.sum(axis=0)
    worst *= np.minimum(1.0, peak * (1 - 1e-12) / np.where(total > 0, total, 1.0))
    per_gpu = 1 / np.maximum(p.regions.supply_mgpu.sum(axis=0), 1)
    over = np.sum([part.over.sum(axis=3) for part in parts], axis=0) / blocks
    over = np.minimum(over, weights["overload"] * p.tier_weight * per_gpu[:, None] * (1 - 1e-12))
    names = ("under", "cpu", "storage", "ingress", "quota")
    mean = {name: np.sum([getattr(part, name) for part in parts], axis=0) / blocks for name in names}
    mean["under"] = np.minimum(mean["under"], weights["idle"] * per_gpu)
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
