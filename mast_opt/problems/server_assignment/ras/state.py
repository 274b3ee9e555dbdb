"""Incremental search state of ras: how many servers of each pair, and every sum that prices a change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mast_opt.core.by_reference import by_reference
from mast_opt.problems.server_assignment.problem import EMBEDDED, POOL, SHARED, Ints
from mast_opt.problems.server_assignment.ras.lagrangian.relaxation import Relaxed

NO_LIMIT = 2**62
FORBIDDEN = 1e12
"""Least ``RasArrays.forbidden``; more where today itself costs so much."""


@by_reference
class RasArrays(NamedTuple):
    """Instance of server assignment as flat arrays for kernels. P pairs by reservation, then switchboard; K stocks."""

    start: Ints
    """[Q + 1]"""
    reservation: Ints
    stock: Ints
    """Stock of each pair, [P]."""
    board: Ints
    worth: Ints
    in_use: Ints
    idle: Ints
    most: Ints
    datacenter: Ints
    """Datacenter of each switchboard, [B]."""
    asked: Ints
    """Amount that each reservation asks for, [Q]."""
    embedded: Ints
    backed: Ints
    """[Q] 1 where the pool stands in for it, and for the pool itself"""
    pool: int
    """Q where there is none."""
    limit: Ints
    """[Q] spread limit"""
    short_most: Ints
    """[Q] what short may be; NO_LIMIT where today lacks nothing"""
    excess_most: Ints
    """[Q, B]"""
    near_start: Ints
    """[Q + 1] affinities by reservation"""
    near_place: Ints
    near_share: Ints
    near_tolerance: Ints
    slack_most: Ints
    """[A] thousandths of mrru"""
    stock_start: Ints
    """[K + 1] pairs by stock: those of stock k are …"""
    stock_pairs: Ints
    """… ``stock_pairs[stock_start[k]:stock_start[k + 1]]``"""
    in_use_price: float
    idle_price: float
    use_price: float
    short_price: float
    largest_price: float
    excess_price: float
    slack_price: float
    """Price per thousandth of a mrru."""
    repair_price: float
    forbidden: float
    """Cost of a rule of today that is broken worse; no plan worth having costs so much."""


@by_reference
class RasState(NamedTuple):
    """Incremental state of one plan of ras: servers of each pair, and the sums; kernels change it in place."""

    servers: Ints
    """[P] of each pair"""
    free: Ints
    """[K] servers that nobody has"""
    held: Ints
    """[Q, B] mrru"""
    total: Ints
    """Total of each reservation, [Q]."""
    at: Ints
    """[Q, D] mrru in each datacenter"""
    risk: Ints
    """[B] what a switchboard takes from the pool and from those it backs"""


def ras_arrays_of(r: Relaxed) -> RasArrays:
    """The arrays of a problem; prices are the objective's weights per unit."""
    p, pairs, order = r.problem, r.pairs, r.order
    asked = int(p.reservations.asked_mrru.sum())
    by = np.argsort(p.affinities.reservation, kind="stable")
    dense = r.now.excess
    stock = pairs.stock[order]
    by_stock = np.argsort(stock, kind="stable")
    return RasArrays(
        start=r.offers.start,
        reservation=pairs.reservation[order],
        stock=stock,
        board=pairs.switchboard[order],
        worth=pairs.worth_mrru[order],
        in_use=pairs.in_use[order],
        idle=pairs.idle[order],
        most=pairs.most[order],
        datacenter=p.switchboards.datacenter,
        asked=p.reservations.asked_mrru,
        embedded=(p.reservations.buffer == EMBEDDED).astype(np.int64),
        backed=((p.reservations.buffer == SHARED) | (p.reservations.buffer == POOL)).astype(np.int64)
        * int(p.pool is not None),
        pool=len(p.reservations) if p.pool is None else p.pool,
        limit=np.where(p.reservations.spread_limited, p.spread_limit_mrru, NO_LIMIT),
        short_most=np.where(r.now.short > 0, r.now.short, NO_LIMIT),
        excess_most=np.where(dense > 0, dense, NO_LIMIT),
        near_start=np.searchsorted(p.affinities.reservation[by], np.arange(len(p.reservations) + 1)),
        near_place=p.affinities.datacenter[by],
        near_share=p.affinities.share_milli[by],
        near_tolerance=p.affinities.tolerance_milli[by],
        slack_most=np.where(r.now.slack_milli > 0, r.now.slack_milli, NO_LIMIT)[by],
        stock_start=np.searchsorted(stock[by_stock], np.arange(len(p.stocks) + 1)),
        stock_pairs=by_stock,
        in_use_price=r.in_use,
        idle_price=r.idle,
        use_price=r.use,
        short_price=r.shortfall,
        largest_price=r.buffer,
        excess_price=r.weights["spread"] / asked if asked else 0.0,
        slack_price=r.weights["affinity"] / asked / 1000 if asked else 0.0,
        repair_price=r.weights["repair"] / asked if asked else 0.0,
        forbidden=FORBIDDEN,
    )


def state_of(f: RasArrays, size: Ints, count: Ints) -> RasState:
    """The state of some counts, every sum computed from scratch. ``size``: [K] servers of each stock."""
    reservations, boards = len(f.asked), len(f.datacenter)
    held = np.zeros((reservations, boards), np.int64)
    np.add.at(held, (f.reservation, f.board), f.worth * count)
    named = max(f.datacenter.max(initial=0), f.near_place.max(initial=0))  # an affinity may name one without servers
    at = np.zeros((reservations, int(named) + 1), np.int64)
    np.add.at(at.T, f.datacenter, held.T)
    free = size.copy()
    np.subtract.at(free, f.stock, count)
    return RasState(
        count.astype(np.int64).copy(), free, held, held.sum(axis=1), at, held[f.backed > 0].sum(axis=0).astype(np.int64)
    )


def lacking(f: RasArrays, s: RasState) -> Ints:
    """[Q] what each reservation lacks of what it asks."""
    level = np.where(f.embedded > 0, s.held.max(axis=1, initial=0), 0)
    if f.pool < len(level):
        level[f.pool] = s.risk.max(initial=0)
    return np.asarray(np.maximum(f.asked + level - s.total, 0))


def infeasible_reservations(f: RasArrays, s: RasState) -> Ints:
    """Reservations that lack something, or still break a rule that today breaks."""
    short = lacking(f, s) > 0
    dense = ((f.excess_most < NO_LIMIT) & (s.held > f.limit[:, None])).any(axis=1)
    mine = np.repeat(np.arange(len(short)), np.diff(f.near_start))
    total = s.total[mine]
    off = np.abs(1000 * s.at[mine, f.near_place] - f.near_share * total) - f.near_tolerance * total
    far = np.bincount(mine, (off > 0) & (f.slack_most < NO_LIMIT), len(short)) > 0
    return np.flatnonzero(short | dense | far)
