"""Greedy initial solution of tetris: today's replicas made feasible, then each workload where it costs least."""

from __future__ import annotations

import numpy as np

from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.data_placement.problem import Bools, Ints
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.data_placement.tetris.operators.delta_costs import gpu_change, option_worth, region_worth
from mast_opt.problems.data_placement.tetris.operators.induced_moves import apply_induced_moves
from mast_opt.problems.data_placement.tetris.operators.workload_moves import add_load, has_room
from mast_opt.problems.data_placement.tetris.operators.workspace import Workspace, workspace_for
from mast_opt.problems.data_placement.tetris.replica_repair import evict_excess
from mast_opt.problems.data_placement.tetris.state import TetrisState, replica_fits, state_of


def first_state(a: TetrisArrays, refuse: bool, seed: int) -> TetrisState:
    """A state close to today's; it may exceed limits where that is hard to avoid."""
    return _filled(a, feasible_replicas(a), refuse, seed)


def randomised_state(a: TetrisArrays, refuse: bool, rng: np.random.Generator) -> TetrisState:
    """A state that forgets where data is today, with each workload where it costs least. Like ``first_state`` it may
    exceed limits."""
    return _filled(a, scattered(a, rng), refuse, 1)


def scattered(a: TetrisArrays, rng: np.random.Generator) -> Bools:
    """Replicas as few as may be, the largest datasets first, each in a region drawn at random among those with room."""
    place = a.pinned.copy()
    room = a.storage - place.T @ a.size
    arriving = a.ingress - (place & ~a.stored).T @ a.size
    for i in np.lexsort((rng.random(len(a.size)), -a.size)).tolist():
        new = np.where(a.stored[i], 0, a.size[i])
        for r in rng.permutation(place.shape[1]).tolist():
            if place[i].sum() >= a.copies_min[i]:
                break
            if not (place[i, r] or a.forbidden[i, r]) and room[r] >= a.size[i] and arriving[r] >= new[r]:
                place[i, r] = True
                room[r] -= a.size[i]
                arriving[r] -= new[r]
    return place


def _filled(a: TetrisArrays, place: Bools, refuse: bool, seed: int) -> TetrisState:
    """The state with these replicas and each workload where it costs least: by GPUs, then cores, the largest first;
    where that exceeds cores or quotas, first of all what few regions could hold even if they were empty."""
    option, out = a.option_start[:-1], np.full(len(a.tier), place.shape[1])
    by_gpus = np.lexsort((-a.cpu_need, -a.option_mgpu[option]))
    s = greedy_state(a, option, out, place, by_gpus, refuse, seed)
    if not _lacks_cores(a, s):
        return s
    rooms = len(a.cpu) - np.searchsorted(np.sort(a.cpu), a.cpu_need)
    again = greedy_state(a, option, out, place, by_gpus[np.argsort(rooms[by_gpus], kind="stable")], refuse, seed)
    return s if _lacks_cores(a, again) else again


def greedy_state(
    a: TetrisArrays, option: Ints, region: Ints, place: Bools, order: Ints, refuse: bool, seed: int = 1
) -> TetrisState:
    """The state of a plan that leaves the workloads of ``order`` out, with each of them where it then costs least."""
    s = state_of(a, option, region, place, seed)
    _place_greedily(a, s, order, refuse, workspace_for(a))
    evict_excess(a, s)
    return _without_forbidden_reads(a, s, seed) if refuse and not a.remote_reads else s


def _without_forbidden_reads(a: TetrisArrays, s: TetrisState, seed: int) -> TetrisState:
    """The state with the work left out that would read data of another region."""
    regions = s.place.shape[1]
    reader = np.repeat(np.arange(len(s.region)), np.diff(a.read_start))
    away = ~np.pad(s.place, ((0, 0), (0, 1)), constant_values=True)[a.read_dataset, s.region[reader]]
    region = s.region.copy()
    region[reader[away]] = regions
    return state_of(a, s.option, region, s.place, seed)


def _lacks_cores(a: TetrisArrays, s: TetrisState) -> bool:
    """Whether a start of tetris uses more cores or quota than regions have."""
    return bool((s.cpu > a.cpu).any() or (s.quota > a.quota).any())


def given_state(a: TetrisArrays, option: Ints, region: Ints, place: Bools, refuse: bool, seed: int) -> TetrisState:
    """The state of a given plan; work that the plan leaves out, or runs where it may not, is placed greedily."""
    regions = a.stored.shape[1]
    allowed = a.option_region[option, region]
    region = np.where(allowed & ((region < regions) | refuse), region, regions)
    out = np.flatnonzero((region == regions) & (not refuse))
    return greedy_state(a, option, region, place & ~a.forbidden | a.pinned, out, refuse, seed)


def feasible_replicas(a: TetrisArrays) -> Bools:
    """Today's replicas within pins, bans and the limits on copies, as far as storage allows."""
    place = (a.stored & ~a.forbidden) | a.pinned
    used = np.array([int(a.size[place[:, r]].sum()) for r in range(place.shape[1])], np.int64)
    count = place.sum(axis=1)
    for i in np.flatnonzero((count < a.copies_min) | (count > a.copies_max)).tolist():
        for r in np.argsort(used - a.storage, kind="stable").tolist():
            if count[i] >= a.copies_min[i]:
                break
            if not place[i, r] and not a.forbidden[i, r]:
                place[i, r] = True
                used[r] += a.size[i]
                count[i] += 1
        for r in np.argsort(a.storage - used, kind="stable").tolist():
            if count[i] <= a.copies_max[i]:
                break
            if place[i, r] and not a.pinned[i, r]:
                place[i, r] = False
                used[r] -= a.size[i]
                count[i] -= 1
    return place


@kernel
def _reads_price(a: TetrisArrays, s: TetrisState, w: int, r: int) -> float:
    """Price of reads of w in r that miss data: a replica each, or remote if that is cheaper or none may be added.

    Whether a replica fits counts only where reads have to be local; elsewhere the search makes room for it.
    """
    price = 0.0
    for n in range(a.read_start[w], a.read_start[w + 1]):
        i = a.read_dataset[n]
        if not s.place[i, r]:
            remote = a.read_volume[n] * a.remote_price
            holds = s.copies[i] < a.copies_max[i] and (a.remote_reads or replica_fits(a, s, i, r))
            price += min(remote, a.replica_price[i, r]) if holds else remote
    return price


@kernel
def _cheapest(a: TetrisArrays, s: TetrisState, w: int, refuse: bool) -> tuple[int, int]:
    """(option, region) where w adds least cost, or with room nowhere, where most cores are free; region −1: out, which
    may also be cheapest where reads have to be local."""
    regions = s.place.shape[1]
    best, best_o, best_r = np.inf, -1, -1
    spare, spare_o, spare_r = -np.inf, -1, -1
    for o in range(a.option_start[w], a.option_start[w + 1]):
        k, g = a.option_type[o], a.option_mgpu[o]
        for r in range(regions):
            if not a.option_region[o, r]:
                continue
            free = (a.cpu[r] - s.cpu[r]) / max(a.cpu[r], 1)
            if free > spare:
                spare, spare_o, spare_r = free, o, r
            if not has_room(a, s, w, r):
                continue
            cost = gpu_change(a, s, a.tier[w], regions, k, 0, r, k, g, False)
            cost -= region_worth(a, w, r) + option_worth(a, w, o, r)
            cost += _reads_price(a, s, w, r)
            if cost < best:
                best, best_o, best_r = cost, o, r
    if best_r < 0 and not refuse:
        return spare_o, spare_r
    if refuse and not a.remote_reads and best > a.refuse_price[w]:
        return best_o, -1
    return best_o, best_r


@compiled
def _place_greedily(a: TetrisArrays, s: TetrisState, order: Ints, refuse: bool, workspace: Workspace) -> None:
    """Put each workload of ``order`` where it is cheapest."""
    regions = s.place.shape[1]
    for w in order:
        o, r = _cheapest(a, s, w, refuse)
        if r >= 0:
            gpu_change(a, s, a.tier[w], regions, 0, 0, r, a.option_type[o], a.option_mgpu[o], True)
            add_load(a, s, w, r, 1)
            apply_induced_moves(a, s, w, regions, r, workspace.first)
            s.option[w], s.region[w] = o, r
