"""Volume algorithm of ras (server assignment): prices for the Lagrangian bound, with their fractional plan.

Every round solves the reservations at the current prices, averages what they buy, and moves the best prices found so
far along what the average buys too much or guarantees too little (Barahona & Anbil, "The volume algorithm",
Mathematical Programming 87, 2000). Each price has steps of its own size, because a server and an mRRU differ by orders.
"""

from dataclasses import fields

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.problems.server_assignment.problem import POOL, SHARE, SHARED
from mast_opt.problems.server_assignment.ras.lagrangian.relaxation import Relaxed
from mast_opt.problems.server_assignment.ras.params import VolumeParams
from mast_opt.problems.server_assignment.verification.certificate import Prices

NAMES = tuple(item.name for item in fields(Prices))


class PriceSearch:
    """Volume algorithm: ``step`` improves the prices ``best`` and their ``bound``; ``servers`` is the average plan."""

    def __init__(self, relaxed: Relaxed, params: VolumeParams, start: Prices | None = None) -> None:
        r, self._params = relaxed, params
        self._r = relaxed
        p, order = r.problem, r.order
        self._reservation, self._stock = r.pairs.reservation[order], r.pairs.stock[order]
        self._board = r.pairs.switchboard[order]
        self._cell = self._reservation * len(p.datacenters) + p.switchboards.datacenter[self._board]
        backed = ((p.reservations.buffer == SHARED) | (p.reservations.buffer == POOL)) & (p.pool is not None)
        self._backed = np.flatnonzero(backed[self._reservation])
        useful = p.reservations.value_mrru > 0
        typical = np.where(
            useful.any(axis=1), p.reservations.value_mrru.sum(axis=1) / np.maximum(useful.sum(axis=1), 1), 1000.0
        )
        unit = (r.use + r.idle + r.buffer) / 2 or 1 / max(len(p.servers), 1)
        size = np.maximum(p.reservations.asked_mrru, typical)
        near = unit / typical / size
        near = near[p.affinities.reservation] / SHARE**2 * params.affinity_step
        held = max(float(size[backed].sum()) / max(len(p.switchboards), 1), 1.0)
        self._scale = {
            "once": unit / p.stocks.size,
            "survive": unit / typical / size,
            "loss": np.full(len(p.switchboards), unit / 1000 / held),
            "affinity_most": near,
            "affinity_least": near,
        }
        first = Prices(
            np.zeros(len(p.stocks)),
            params.first_price * r.use / typical,
            np.zeros(len(p.switchboards)),
            *np.zeros((2, len(p.affinities))),
        )
        self._at = self.best = r.within(first if start is None else start)
        self.bound = -np.inf
        self.servers: FloatArray = np.zeros(len(order))
        self.level: FloatArray = np.zeros(len(p.reservations))
        self._mean: dict[str, FloatArray] | None = None
        self._pace, self._still = 1.0, 0

    def step(self, target: float) -> None:
        """One round of ras' prices; ``target`` is what the bound might reach."""
        r, c, params = self._r, self._at, self._params
        least, level = r.solved(c)
        value = r.bound(c, least)
        servers = r.bought(c, level)
        now = self._residuals(c, servers, level)
        if self._mean is None:
            self._mean, self.servers, self.level = now, servers, level
        else:
            new, old = params.newest_share, 1 - params.newest_share
            self._mean = {name: new * now[name] + old * self._mean[name] for name in NAMES}
            self.servers = new * servers + old * self.servers
            self.level = new * level + old * self.level
        if value > self.bound + params.improvement * abs(self.bound) or not np.isfinite(self.bound):
            self.bound, self.best = value, c
            self._pace, self._still = self._pace * params.growth, 0
        else:
            self._still += 1
            if self._still >= params.patience:
                self._pace, self._still = max(self._pace * params.shrinkage, params.least_pace), 0
        self._move(target)

    def _move(self, target: float) -> None:
        """Move ras' prices by the mean of the residuals."""
        assert self._mean is not None
        prices = self.best.arrays()
        ways = {name: np.where((prices[name] <= 0) & (self._mean[name] < 0), 0.0, self._mean[name]) for name in NAMES}
        size = sum(float((self._scale[name] * ways[name] ** 2).sum()) for name in NAMES)
        if size <= 0:
            return
        reach = self._pace * max(target - self.bound, self._params.least_reach * abs(self.bound)) / size
        moved = {name: prices[name] + reach * self._scale[name] * ways[name] for name in NAMES}
        self._at = self._r.within(Prices(**moved))

    def _residuals(self, c: Prices, servers: FloatArray, level: FloatArray) -> dict[str, FloatArray]:
        """Residuals of ras' priced rows: how far each is broken by what is bought."""
        p, amount = self._r.problem, self._r.offers.worth * servers
        total = np.bincount(self._reservation, amount, len(p.reservations))
        there = np.bincount(self._cell, amount, len(p.reservations) * len(p.datacenters))
        there = there.reshape(len(p.reservations), len(p.datacenters))
        mine = p.affinities.reservation
        off = SHARE * there[mine, p.affinities.datacenter] - p.affinities.share_milli * total[mine]
        tolerated = p.affinities.tolerance_milli * total[mine]
        short = np.where(c.survive > self._r.shortfall, self._r.short_today, 0)
        loss = np.bincount(self._board[self._backed], amount[self._backed], len(p.switchboards))
        lost = np.zeros(len(p.reservations))
        if p.pool is not None:
            lost[p.pool] = loss @ c.loss / (c.loss.sum() or 1.0)
            loss = loss - lost[p.pool]
        return {
            "once": np.bincount(self._stock, servers, len(p.stocks)) - p.stocks.size,
            "survive": p.reservations.asked_mrru + level + lost - total - short,
            "loss": loss,
            "affinity_most": off - tolerated,
            "affinity_least": -off - tolerated,
        }
