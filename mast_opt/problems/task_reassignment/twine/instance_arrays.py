"""Task-reassignment instance as flat arrays for twine's kernels, with each process's nearest neighbours by needs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from mast_opt.core.by_reference import by_reference
from mast_opt.problems.task_reassignment.problem import Bools, Ints, TaskReassignment
from mast_opt.problems.task_reassignment.twine.params import OperatorParams


def alike(price: NDArray[np.float64], params: OperatorParams) -> NDArray[np.int64]:
    """[P, ·] those whose exchange with a process changes the least, the most alike first.

    ``price`` [P, J] is what each process adds to a machine where everything is above its safety capacity. Processes
    that are equal are not listed for one another, as their exchange changes nothing, and of several equal ones only
    one is listed for another process.
    """
    distinct, kind = np.unique(price, axis=0, return_inverse=True)
    kind = kind.ravel()
    count = min(params.similar_processes, len(distinct) - 1)
    if count < 1 or len(price) > params.similar_below:
        return np.zeros((len(price), 0), np.int64)
    near: NDArray[np.int64] = cKDTree(distinct).query(distinct, k=count + 1, p=1)[1][kind, 1:]
    by_kind = np.argsort(kind, kind="stable")
    equals = np.bincount(kind)
    first = np.cumsum(equals) - equals
    turn = np.arange(len(price))[:, None] % equals[near]
    listed: NDArray[np.int64] = by_kind[first[near] + turn]
    return listed


Floats = NDArray[np.float64]
Small = NDArray[np.int32]


@by_reference
class TwineArrays(NamedTuple):
    """Instance of task reassignment as flat arrays for kernels.

    P processes, M machines, K resources, J levels, S services.
    """

    home: Small
    """[P] machine of today."""
    service: Small
    """Service of each process, [P]."""
    feature: Floats
    """[P, J] the needs, then what the process adds to the levels of the balance goals."""
    price: Floats
    """[J] cost of a unit of a level above 0."""
    slack: Floats
    """[M, K] capacity less safety capacity: the level at which excess begins."""
    firm: Small
    """[·] transient resources, whose capacity is never exceeded during the search."""
    scarcity: Floats
    """[K] whole weights that make excesses of different resources comparable: the most plentiful has 1, transient
    ones, which are never exceeded, have 0."""
    size: Floats
    """[P] the largest cost that a process alone can cause on a machine."""
    by_size: Small
    """[P] processes, the largest first."""
    alike: Small
    """[P, ·] processes that need almost the same, the most alike first; no columns where there are too many."""
    reach_start: NDArray[np.int64]
    """[P + 1] into ``reach``; an empty list means any machine."""
    reach: Small
    """[·] machines that a process fits on if nothing else moves there."""
    fits: Bools
    """[P, M] the same as a table; no rows where it would be too large."""
    location: Small
    """Location of each machine, [M]."""
    neighbourhood: Small
    """Neighbourhood of each machine, [M]."""
    group: Small
    """[M] move group."""
    move_price: Floats
    """[P] cost of being anywhere but at home."""
    group_price: Floats
    """[G, G]"""
    service_price: float
    """Cost of each moved process of the service with most of them."""
    member_start: Small
    """[S + 1] into ``member``."""
    member: Small
    """[P] processes by service."""
    spread_row: Small
    """[S] row of the location counts, or −1 where any location will do."""
    spread_min: Small
    """Least number of locations of each row, [rows]."""
    near_row: Small
    """[S] row of the neighbourhood counts, or −1 for a service in no dependency."""
    asks_start: Small
    """[rows + 1] into ``asks``."""
    asks: Small
    """[·] rows of the services that a row's service depends on."""
    asked_start: Small
    """[rows + 1] into ``asked``."""
    asked: Small
    """[·] rows of the services that depend on a row's service."""


def twine_arrays_of(problem: TaskReassignment, params: OperatorParams) -> TwineArrays:
    """The arrays of an instance; ``params`` say which lists and tables they have."""
    p = problem
    weights = p.objective.weights
    feature, price = _features(p)
    size = (np.abs(feature) * price).max(axis=1, initial=0.0) + p.processes.move_cost * weights["process_move"]
    fits = _fits(p, params.listed_pairs)
    reach_start, reach = _reach(p, fits, params.listed_share)
    several = np.flatnonzero((p.services.spread_min > 1) & (p.service_size > 0))
    distinct = p.dependencies.service != p.dependencies.needs
    dependent, dependency = p.dependencies.service[distinct], p.dependencies.needs[distinct]
    involved = np.unique(np.concatenate([dependent, dependency]))
    near_row = _rows(len(p.services), involved)
    asks_start, asks = _lists(near_row[dependent], near_row[dependency], len(involved))
    asked_start, asked = _lists(near_row[dependency], near_row[dependent], len(involved))
    member_start, member = _lists(p.processes.service, np.arange(len(p.processes)), len(p.services))
    total = p.machines.capacity.sum(axis=0)
    return TwineArrays(
        home=_small(p.processes.initial),
        service=_small(p.processes.service),
        feature=feature,
        price=price,
        slack=(p.machines.capacity - _safety(p)).astype(np.float64),
        firm=_small(np.flatnonzero(p.resources.transient)),
        scarcity=np.rint(total.max() / np.maximum(total, 1)) * ~p.resources.transient,
        size=size,
        by_size=_small(np.argsort(-size, kind="stable")),
        alike=_small(alike(feature * price, params)),
        reach_start=reach_start,
        reach=reach,
        fits=fits if fits.size <= params.table_pairs else fits[:0],
        location=_small(p.machines.location),
        neighbourhood=_small(p.machines.neighbourhood),
        group=_small(p.machines.move_group),
        move_price=np.asarray(p.processes.move_cost * weights["process_move"], np.float64),
        group_price=np.asarray(p.move_groups.move_cost * weights["machine_move"], np.float64),
        service_price=float(weights["service_move"]),
        member_start=member_start,
        member=member,
        spread_row=_small(_rows(len(p.services), several)),
        spread_min=_small(p.services.spread_min[several]),
        near_row=_small(near_row),
        asks_start=asks_start,
        asks=asks,
        asked_start=asked_start,
        asked=asked,
    )


def base_levels(problem: TaskReassignment) -> Floats:
    """[M, J] the levels of empty machines; where balance goals do not count, no processes lift them above 0."""
    p = problem
    wanted = p.balances.target * p.machines.capacity[:, p.balances.first] - p.machines.capacity[:, p.balances.second]
    asked = p.processes.need[:, p.balances.second] - p.balances.target * p.processes.need[:, p.balances.first]
    never = -np.maximum(asked, 0).sum(axis=0)
    wanted = np.where(p.machines.balanced[:, None], wanted, never)
    return np.concatenate([-_safety(p), wanted], axis=1).astype(np.float64)


def _safety(problem: TaskReassignment) -> Ints:
    """[M, K] safety capacities, of which what is above all needs together means nothing more."""
    most: Ints = np.minimum(problem.machines.safety, problem.processes.need.sum(axis=0))
    return most


def _features(problem: TaskReassignment) -> tuple[Floats, Floats]:
    """Features of processes for twine's balance, needs and balance terms, and the price of each."""
    p = problem
    weights = p.objective.weights
    asked = p.processes.need[:, p.balances.second] - p.balances.target * p.processes.need[:, p.balances.first]
    price = np.concatenate([p.resources.load_weight * weights["load"], p.balances.weight * weights["balance"]])
    return np.concatenate([p.processes.need, asked], axis=1).astype(np.float64), price


def _fits(problem: TaskReassignment, most: int) -> Bools:
    """[P, M] has the machine room for the process alone? No rows where the table would be too large."""
    p = problem
    processes, machines = len(p.processes), len(p.machines)
    if processes * machines > most:
        return np.zeros((0, machines), np.bool_)
    room = p.machines.capacity - p.held * p.resources.transient
    fits: Bools = np.ones((processes, machines), np.bool_)
    for k in range(len(p.resources)):
        fits &= p.processes.need[:, k, None] <= room[:, k]
    fits[np.arange(processes), p.processes.initial] = True
    return fits


def _reach(problem: TaskReassignment, fits: Bools, share: float) -> tuple[NDArray[np.int64], Small]:
    """Lists of machines for the processes that few machines have room for."""
    if not len(fits):
        return np.zeros(len(problem.processes) + 1, np.int64), np.zeros(0, np.int32)
    count = fits.sum(axis=1)
    count[count > share * len(problem.machines)] = 0
    listed = fits & (count > 0)[:, None]
    return np.concatenate([[0], np.cumsum(count)]), _small(np.nonzero(listed)[1])


def _rows(count: int, members: Ints) -> Ints:
    """[count] position in ``members``, or −1."""
    row = np.full(count, -1)
    row[members] = np.arange(len(members))
    return row


def _lists(owner: Ints, item: Ints, owners: int) -> tuple[Small, Small]:
    """(start, items) of a list for every owner, sorted."""
    order = np.lexsort((item, owner))
    start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=owners))])
    return _small(start), _small(item[order])


def _small(values: Ints) -> Small:
    """Array of a task reassignment as contiguous 32-bit integers, for twine's kernels."""
    return np.ascontiguousarray(values, np.int32)
