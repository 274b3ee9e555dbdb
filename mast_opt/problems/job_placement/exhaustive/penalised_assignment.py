"""Jobs of one task as a generalised assignment problem (exhaustive): moves and exchanges with prices and penalties.

A job goes to one server, or waits. Capacity that is exceeded costs a penalty, which rises while the assignment is
infeasible and falls while it is feasible, so that the search crosses from one feasible assignment to the next
(strategic oscillation; Díaz and Fernández, A tabu search heuristic for the generalized assignment problem, EJOR 132,
2001). Each step takes the best move or exchange that is not tabu. Some rounds look only at the places that are cheap
under the Lagrangian prices of capacity, and some begin with the linear relaxation over these places, whose plan splits
at most as many jobs as there are limits of capacity. J jobs, S servers, R resources; place S is the queue.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from mast_opt.problems.job_placement.engine.server_layout import Layout
from mast_opt.problems.job_placement.exhaustive.objective import TermPrices
from mast_opt.problems.job_placement.exhaustive.params import AssignmentParams
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import GPU, WHOLE, Bools, Ints
from mast_opt.problems.job_placement.verification.certificate import CapacityPrices
from mast_opt.problems.mip import Mip, unnamed
from mast_opt.problems.search.interface import SearchMonitor

Floats = NDArray[np.float64]
LOOK = 32
"""Steps between two looks at the clock."""


def is_assignment(problem: JobPlacement) -> bool:
    """Whether the objective adds up over pairs of a job and a server, and amounts say what fits: jobs of one task,
    whole GPUs, no parts, and no weight on terms of several jobs."""
    p = problem
    whole = not (p.options.mgpu % WHOLE).any() and not (p.allocations.need[:, GPU] % WHOLE).any()
    alone = not p.objective.weights["balance"] and not p.objective.weights["fragmentation"]
    return bool(len(p.jobs) and (p.jobs.tasks == 1).all() and whole and alone and not len(p.parts))


class PenalisedAssignment:
    """Tabu search over assignments of one problem, for which ``is_assignment`` holds; nobody is stopped."""

    def __init__(
        self,
        problem: JobPlacement,
        prices: TermPrices,
        layout: Layout,
        rng: np.random.Generator,
        params: AssignmentParams,
        solve: Callable[[Mip], Floats | None],
    ) -> None:
        """``solve``: a plan of a linear program, None where there was no time for one."""
        p, self._params, self._rng = problem, params, rng
        kind, region, jobs = p.servers.gpu_type, p.server_region, len(p.jobs)
        need = np.stack(
            [
                p.need_mgpu[:, kind],
                np.repeat(p.jobs.cpu_mcores[:, None], len(kind), axis=1),
                np.repeat(p.jobs.memory_mib[:, None], len(kind), axis=1),
            ],
            axis=2,
        )
        asked: Bools = np.asarray(need.any(axis=(0, 1)))
        allowed = p.accepts[:, kind] & p.open_region[:, region] & (need <= p.free).all(axis=2)
        self._allowed: Bools = np.column_stack([allowed, np.ones(jobs, np.bool_)])
        """[J, S + 1]"""
        self._need: Floats = np.pad(need[:, :, asked].astype(np.float64), ((0, 0), (0, 1), (0, 0)))
        """[J, S + 1, R]"""
        self._asked, self._tiers = asked, len(p.tiers)
        self._room: Floats = np.pad(p.free[:, asked].astype(np.float64), ((0, 1), (0, 0)), constant_values=np.inf)
        """[S + 1, R]"""
        self._scale = 1 / np.maximum(p.free[:, asked].mean(axis=0), 1.0)
        cost = prices.admitted[:, layout.group[layout.position]]
        self._cost: Floats = np.where(self._allowed, np.column_stack([cost, prices.rejected]), 0.0)
        """[J, S + 1]"""
        self._first_penalty = params.penalty * max(float(self._cost.mean()), 1e-12)
        self._solve = solve
        self._priced: Floats | None = None
        """[J, S + 1] costs with what capacity costs at the Lagrangian prices, once they are known."""
        self.prices: CapacityPrices | None = None
        """Prices of capacity that prove a bound, once a round has begun."""
        self._relaxed: Ints
        """[J] where the linear relaxation has most of each job, likewise."""
        self._victims = len(p.running)

    def improved(self, plan: Plan, watch: SearchMonitor) -> Plan | None:
        """The best feasible assignment of pending jobs to servers of one round; it begins with the plan, or with the
        linear relaxation. None where the plan stops running jobs, whose room is not known here.
        """
        if plan.preempt.any():
            return None
        at = np.full(len(self._cost), len(self._room) - 1)
        at[plan.job] = plan.server
        first = self._priced is None
        if self._priced is None:
            price = self._prices()
            self._priced = self._with_prices(price)
            self.prices = CapacityPrices(np.zeros((len(price) - 1, self._tiers, len(self._asked))))
            self.prices.capacity[:, 0, self._asked] = price[:-1]
            self._relaxed = self._relaxation(self._priced)
        if self._rng.random() < self._params.from_prices or first:
            at = self._relaxed
        best = self._search(at, self._core(self._priced, int(self._rng.choice(self._params.core))), watch)
        if best is None:
            return None
        placed = np.flatnonzero(best < len(self._room) - 1)
        none, nobody = np.zeros(len(placed), np.int64), np.zeros(self._victims, np.bool_)
        return Plan(placed, best[placed], none + 1, none, none > 0, nobody)

    def _with_prices(self, price: Floats) -> Floats:
        """[J, S + 1] costs of jobs on servers with what capacity costs."""
        return np.where(self._allowed, self._cost + (self._need * price).sum(axis=2), np.inf)

    def _prices(self) -> Floats:
        """[S + 1, R] from the subgradients of the relaxation in which capacity is only priced; each step aims at a
        share of the best bound above that."""
        price = best_price = np.zeros_like(self._room)
        best, aim, failures = -np.inf, self._params.price_aim, 0
        limited = np.isfinite(self._room)
        for _ in range(self._params.price_steps):
            priced = self._with_prices(price)
            at = priced.argmin(axis=1)
            value = priced.min(axis=1).sum() - (price[limited] * self._room[limited]).sum()
            over = np.where(limited, self._load(at) - np.where(limited, self._room, 0.0), 0.0)
            over[(price == 0) & (over < 0)] = 0.0
            if value > best:
                best, best_price, failures = value, price, 0
            else:
                failures += 1
                if failures == self._params.price_failures:
                    price, aim, failures = best_price, aim / 2, 0
            length = (over * over).sum()
            if length == 0:
                break
            price = np.maximum(price + aim * abs(best) / length * over, 0.0)
        return best_price

    def _relaxation(self, priced: Floats) -> Ints:
        """[J] server where the linear relaxation over the cheapest places has most of each job; the cheapest places
        where it is not solved.
        """
        job, to = np.nonzero(self._core(priced, self._params.relaxed_places))
        limited, column = np.isfinite(self._room), np.arange(len(job))
        amount = np.where(limited[to], self._need[job, to], 0.0)
        row = len(self._cost) + to[:, None] * amount.shape[1] + np.arange(amount.shape[1])
        matrix = csr_array(
            (
                np.append(np.ones(len(job)), amount),
                (np.append(job, row), np.append(column, np.repeat(column, amount.shape[1]))),
            ),
            shape=(len(self._cost) + self._room.size, len(job)),
        )
        matrix.eliminate_zeros()
        once = np.ones(len(self._cost))
        program = unnamed(
            "generalised_assignment",
            matrix,
            self._cost[job, to],
            col_upper=np.ones(len(job)),
            row_lower=np.append(once, np.full(self._room.size, -np.inf)),
            row_upper=np.append(once, self._room),
        )
        plan = self._solve(program)
        share = -priced
        if plan is not None:
            share = np.zeros_like(self._cost)
            share[job, to] = plan
        most: Ints = share.argmax(axis=1)
        return most

    def _core(self, priced: Floats, width: int) -> Bools:
        """[J, S + 1] servers that count: all (0), or so many a job, the cheapest of all jobs together, and
        the queue.
        """
        if width == 0:
            return self._allowed
        extra = priced - priced.min(axis=1, keepdims=True)
        last = min(width * len(extra), extra.size) - 1
        core: Bools = self._allowed & (extra <= np.partition(extra, last, axis=None)[last])
        core[:, -1] = True
        return core

    def _load(self, at: Ints) -> Floats:
        """Load of each server by an assignment."""
        load = np.zeros_like(self._room)
        np.add.at(load, at, self._need[np.arange(len(at)), at])
        return load

    def _over(self, load: Floats, at: Ints) -> Floats:
        """[·] what exceeds the room of servers [·] that are loaded so [·, R]."""
        over: Floats = (np.maximum(load - self._room[at], 0.0) * self._scale).sum(axis=-1)
        return over

    def _search(self, at: Ints, core: Bools, watch: SearchMonitor) -> Ints | None:
        """[J] the best feasible assignment of jobs after so many steps from one [J], None if there was none."""
        params, cost, job = self._params, self._cost, np.arange(len(at))
        at, load, penalty = at.copy(), self._load(at), self._first_penalty
        tabu, best, least = np.zeros(cost.shape, np.int64), None, np.inf
        moves = np.nonzero(core)
        for step in range(1, params.steps + 1):
            if step % LOOK == 0 and watch.limit() is not None:
                break
            for j, to in self._step(at, load, penalty, core, tabu < step, moves):
                tabu[j, at[j]] = step + int(self._rng.integers(params.tabu_least, params.tabu_most + 1))
                load[at[j]] -= self._need[j, at[j]]
                load[to] += self._need[j, to]
                at[j] = to
            if self._over(load, np.arange(len(load))).any():
                penalty *= params.penalty_rise
                continue
            penalty *= params.penalty_fall
            value = float(cost[job, at].sum())
            if value < least:
                best, least = at.copy(), value
        return best

    def _step(
        self, at: Ints, load: Floats, penalty: float, core: Bools, free: Bools, moves: tuple[Ints, ...]
    ) -> list[tuple[int, int]]:
        """The best move of a job to a place, or exchange of two jobs, as moves; none where all are excluded.

        Args:
            core: [J, S + 1] places that count.
            free: [J, S + 1] places that are not tabu.
            moves: jobs and places of ``core``.
        """
        cost, need, job = self._cost, self._need, np.arange(len(at))
        over, here, mine = self._over(load, np.arange(len(load))), self._cost[job, at], need[job, at]
        leaves = self._over(load[at] - mine, at) - over[at]
        counts = free[moves] & (moves[1] != at[moves[0]])
        j, to = moves[0][counts], moves[1][counts]
        change = cost[j, to] - here[j] + penalty * (self._over(load[to] + need[j, to], to) - over[to] + leaves[j])

        rows = job if len(job) <= self._params.exchanged else self._rng.choice(len(job), self._params.exchanged, False)
        here_of = at[rows]
        mutual = core[rows][:, at] & core[:, here_of].T & (here_of[:, None] != at)
        r, k = np.nonzero(mutual)
        i = rows[r]
        one, other = at[i], at[k]
        counts = free[i, other] & free[k, one]
        i, k, one, other = i[counts], k[counts], one[counts], other[counts]
        there = self._over(load[other] + need[i, other] - mine[k], other) - over[other]
        back = self._over(load[one] + need[k, one] - mine[i], one) - over[one]
        swap = cost[i, other] + cost[k, one] - here[i] - here[k] + penalty * (there + back)
        best_move, best_swap = change.min(initial=np.inf), swap.min(initial=np.inf)
        if min(best_move, best_swap) == np.inf:
            return []
        if best_move <= best_swap:
            n = int(change.argmin())
            return [(int(j[n]), int(to[n]))]
        n = int(swap.argmin())
        return [(int(i[n]), int(other[n])), (int(k[n]), int(one[n]))]
