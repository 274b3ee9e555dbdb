"""The server-assignment MIP, read row by row as in ``models/server_assignment.mod``."""

import numpy as np

from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.mip import MipBuilder
from mast_opt.problems.server_assignment.formulation.codec import Codec, Holdings
from mast_opt.problems.server_assignment.formulation.index_sets import pairs_of
from mast_opt.problems.server_assignment.plan import Plan
from mast_opt.problems.server_assignment.problem import SHARE, SHARED, Ints, ServerAssignment


def base(problem: ServerAssignment) -> Formulation[Plan]:
    """The formulation of the .mod: how many servers of each stock each reservation has."""
    statement = _Statement(problem)
    statement.servers()
    statement.capacity()
    statement.spread()
    statement.affinity()
    statement.no_worse()
    mip = statement.m.build(problem.objective.weights)
    codec = Codec(
        problem,
        statement.pairs,
        len(mip.cost),
        statement.n,
        statement.left_in_use,
        statement.left_idle,
        statement.short,
        statement.largest,
        statement.excess,
        statement.slack,
    )
    return Formulation(mip, codec.decode, codec.encode)


class _Statement:
    """The columns, then one method per group of rows. ``rru`` is what a column of ``n`` is worth to its reservation."""

    def __init__(self, problem: ServerAssignment) -> None:
        p = self.p = problem
        m = self.m = MipBuilder("server_assignment")
        pairs = self.pairs = pairs_of(problem)
        self.now = Holdings(p, pairs, pairs.today)
        self.rru = pairs.worth_mrru
        self.buffered, self.limited = np.flatnonzero(p.buffered), np.flatnonzero(p.reservations.spread_limited)
        self.asked = max(int(p.reservations.asked_mrru.sum()), 1)
        """The denominator of what is in RRU; where nothing is asked, costs are 0."""
        self.priced = float(p.reservations.asked_mrru.any())
        self.per_pair = [p.types, p.switchboards.labels, p.reservations.labels]
        self.at_pair = np.stack([pairs.type, pairs.switchboard, pairs.reservation])
        self.n = m.columns("n", self.per_pair, list(self.at_pair), upper=pairs.most, integral=True)
        self.works, self.idles = np.flatnonzero(pairs.in_use), np.flatnonzero(pairs.idle)
        self.left_in_use = m.columns(
            "left_in_use", self.per_pair, list(self.at_pair[:, self.works]), upper=pairs.in_use[self.works]
        )
        self.left_idle = m.columns(
            "left_idle", self.per_pair, list(self.at_pair[:, self.idles]), upper=pairs.idle[self.idles]
        )
        self.short = m.columns("short", [p.reservations.labels])
        self.largest = m.columns("largest", [p.reservations.labels], [self.buffered])
        self.per_board = [p.reservations.labels, p.switchboards.labels]
        self.excess = m.columns("excess", self.per_board, self._at_boards(self.limited)).reshape(
            len(self.limited), len(p.switchboards)
        )
        self.per_affinity = [p.reservations.labels, p.datacenters]
        self.at_affinity = [p.affinities.reservation, p.affinities.datacenter]
        self.slack = m.columns("slack", self.per_affinity, self.at_affinity)

    def servers(self) -> None:
        """once: Σ_q n[t,b,q] ≤ size[t,b];   stays: n + left_in_use + left_idle ≥ what it has today;
        terms moves_in_use, moves_idle, use."""
        p, m, pairs = self.p, self.m, self.pairs
        stocks = p.stocks
        at = [p.servers.type[stocks.first], p.server_switchboard[stocks.first]]
        once = m.rows("once", [p.types, p.switchboards.labels], at, upper=stocks.size)
        once.add(pairs.stock, self.n)
        held = np.flatnonzero(pairs.today)
        stays = m.rows("stays", self.per_pair, list(self.at_pair[:, held]), lower=pairs.today[held])
        row = np.arange(len(held))
        stays.add(row, self.n[held])
        stays.add(row[pairs.in_use[held] > 0], self.left_in_use)
        stays.add(row[pairs.idle[held] > 0], self.left_idle)
        m.term("moves_in_use", self.left_in_use, 1 / len(p.servers))
        m.term("moves_idle", self.left_idle, 1 / len(p.servers))
        m.term("use", self.n, 1 / len(p.servers))

    def capacity(self) -> None:
        """survive: Σ rru·n − largest[q] + short[q] ≥ asked[q];   loss: Σ_{t} rru·n at b ≤ largest[q], for the pool
        together with those that share it;   terms shortfall, buffer."""
        p, m, pairs = self.p, self.m, self.pairs
        survive = m.rows("survive", [p.reservations.labels], lower=p.reservations.asked_mrru)
        survive.add(pairs.reservation, self.n, self.rru)
        survive.add(self.buffered, self.largest, -1)
        survive.add(np.arange(len(p.reservations)), self.short)
        boards = len(p.switchboards)
        loss = m.rows("loss", self.per_board, self._at_boards(self.buffered), upper=0)
        row = np.full(len(p.reservations), -1)
        row[self.buffered] = np.arange(len(self.buffered))
        if p.pool is not None:
            row[p.reservations.buffer == SHARED] = row[p.pool]
        counts = row[pairs.reservation] >= 0
        loss.add((row[pairs.reservation] * boards + pairs.switchboard)[counts], self.n[counts], self.rru[counts])
        loss.add(np.arange(len(self.buffered) * boards), np.repeat(self.largest, boards), -1)
        m.term("shortfall", self.short, self.priced / self.asked)
        m.term("buffer", self.largest, self.priced / self.asked)

    def spread(self) -> None:
        """spread: Σ_t rru·n at b ≤ limit[q] + excess[q,b];   terms spread and (where it is broken today) repair."""
        p, m, pairs = self.p, self.m, self.pairs
        limit = np.repeat(p.spread_limit_mrru[self.limited], len(p.switchboards))
        spread = m.rows("spread", self.per_board, self._at_boards(self.limited), upper=limit)
        row = np.full(len(p.reservations), -1)
        row[self.limited] = np.arange(len(self.limited))
        counts = row[pairs.reservation] >= 0
        cell = row[pairs.reservation] * len(p.switchboards) + pairs.switchboard
        spread.add(cell[counts], self.n[counts], self.rru[counts])
        spread.add(np.arange(self.excess.size), self.excess.ravel(), -1)
        m.term("spread", self.excess, self.priced / self.asked)
        m.term("repair", self.excess[self.now.excess[self.limited] > 0], self.priced / self.asked)

    def affinity(self) -> None:
        """affinity_most, affinity_least: Σ (1000·[b in d] − share)·rru·n within ±(tolerance · Σ rru·n + 1000·slack);
        terms affinity and (where it is broken today) repair."""
        p, m, pairs = self.p, self.m, self.pairs
        most = m.rows("affinity_most", self.per_affinity, self.at_affinity, upper=0)
        least = m.rows("affinity_least", self.per_affinity, self.at_affinity, lower=0)
        by_reservation = np.argsort(pairs.reservation, kind="stable")
        start = np.searchsorted(pairs.reservation[by_reservation], np.arange(len(p.reservations) + 1))
        for a, (q, d) in enumerate(zip(*(at.tolist() for at in self.at_affinity), strict=True)):
            mine = by_reservation[start[q] : start[q + 1]]
            here = np.where(p.switchboards.datacenter[pairs.switchboard[mine]] == d, SHARE, 0)
            off, tolerance = here - p.affinities.share_milli[a], p.affinities.tolerance_milli[a]
            most.add(a, self.n[mine], (off - tolerance) * self.rru[mine])
            least.add(a, self.n[mine], (off + tolerance) * self.rru[mine])
        every = np.arange(len(self.slack))
        most.add(every, self.slack, -SHARE)
        least.add(every, self.slack, SHARE)
        m.term("affinity", self.slack, self.priced / self.asked)
        m.term("repair", self.slack[self.now.slack_milli > 0], self.priced / self.asked)

    def no_worse(self) -> None:
        """no_shorter, no_denser, no_farther: short, excess and slack ≤ what they are today, where that is above 0."""
        p, m, now = self.p, self.m, self.now
        q = np.flatnonzero(now.short)
        m.rows("no_shorter", [p.reservations.labels], [q], upper=now.short[q]).add(np.arange(len(q)), self.short[q])
        at = np.nonzero(now.excess[self.limited])
        denser = m.rows("no_denser", self.per_board, [self.limited[at[0]], at[1]], upper=now.excess[self.limited][at])
        denser.add(np.arange(len(at[0])), self.excess[at])
        a = np.flatnonzero(now.slack_milli)
        cells = [position[a] for position in self.at_affinity]
        farther = m.rows("no_farther", self.per_affinity, cells, upper=now.slack_milli[a] / SHARE)
        farther.add(np.arange(len(a)), self.slack[a])

    def _at_boards(self, reservations: Ints) -> list[Ints]:
        """Cells of every switchboard for each of the reservations."""
        boards = len(self.p.switchboards)
        return [np.repeat(reservations, boards), np.tile(np.arange(boards), len(reservations))]
