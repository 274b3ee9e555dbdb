"""The solver ``exhaustive+repair``: the fast path's batch, improved for as long as there is time.

1. The batch of ``exhaustive``, and a local search on it (``local``).
2. The relaxation of the whole batch (``relaxation``), by the exact solver that is handed in. It says which job should
   go where and who should be stopped, and its bound says how much there is left to win. The fast path's own search
   then finds the servers, and the local search takes it from there.
3. Rounds of ruin and recreate: jobs of one or two clusters and some others are taken out, victims that are no longer
   needed go on running, and the local search puts back what is worth it, in a somewhat random order. Every few
   rounds, two clusters and the jobs that wait are instead solved exactly (``subproblem``).
A round is kept if the objective is no worse.
"""

from __future__ import annotations

import numpy as np

from mast_opt.job_placement.heuristics.batch import admit_in_order
from mast_opt.job_placement.heuristics.chances import second_chances
from mast_opt.job_placement.heuristics.desk import Desk, open_desk
from mast_opt.job_placement.heuristics.local import Exchange
from mast_opt.job_placement.heuristics.pack import TIGHT
from mast_opt.job_placement.heuristics.place import NOBODY, on_servers
from mast_opt.job_placement.heuristics.score import prices_of
from mast_opt.job_placement.heuristics.search import search
from mast_opt.job_placement.heuristics.subproblem import Subproblems
from mast_opt.job_placement.plan import Plan
from mast_opt.job_placement.problem import JobPlacement
from mast_opt.job_placement.relaxation import relaxation
from mast_opt.job_placement.units import Ints
from mast_opt.job_placement.verify import verify
from mast_opt.result import Limit, SolveParams
from mast_opt.search import Found, Tools

RELAXATION_SHARE = 0.5
"""Part of the remaining time that the relaxation may take."""
RELAXATION_GAP = 1e-4
EXACT_EVERY = 8
"""Rounds from one exact sub-problem to the next."""
ROUNDS = 400
"""Rounds if no limit is given."""


def exhaustive_repair(problem: JobPlacement, tools: Tools, start: Plan | None) -> Found[Plan]:
    """Improve the batch of ``exhaustive``, or the start if that is better, until the watch says stop."""
    return _Repair(problem, tools).run(start)


class _Repair:
    def __init__(self, problem: JobPlacement, tools: Tools) -> None:
        self.p = problem
        self.tools = tools
        self.watch = tools.watch
        self.empty = open_desk(problem)
        self.prices = prices_of(problem, self.empty.layout)
        self.exchange = Exchange(self.prices)
        self.best = self.empty
        self.value = np.inf
        self.bound: float | None = None

    def run(self, start: Plan | None) -> Found[Plan]:
        desk = self.empty.copy()
        admit_in_order(desk, self.p.order, self.watch)
        desk = second_chances(desk, self.p.order, self.watch)
        self._offer(desk)
        self._offer(self._moved(desk.copy()))
        if start is not None:
            self._offer_plan(start)
        if self.watch.limit() is None:
            self._relax()
        rounds = self._rounds()
        proven = self.watch.gap is not None and self.watch.gap <= self.watch.stop.gap
        limit = None if proven else self.watch.limit() or Limit.ITERATIONS
        return Found(self.best.plan(), self.bound, limit, f"{rounds} rounds of ruin and recreate")

    def _offer(self, desk: Desk) -> None:
        """Keep the batch if it is no worse than the best."""
        value = desk.value(self.prices)
        if value <= self.value + 1e-12:
            self.best, self.value = desk, value
            self.watch.report(objective=value)

    def _offer_plan(self, plan: Plan) -> None:
        """Keep a plan that breaks no rule, if it is no worse than the best."""
        if verify(self.p, plan).ok:
            desk = self.empty.copy()
            desk.repeat(plan)
            self.exchange.price(desk)
            self._offer(desk)

    def _relax(self) -> None:
        program = relaxation(self.p)
        limit = self.watch.remaining_s * RELAXATION_SHARE
        params = SolveParams(
            time_limit_s=None if np.isinf(limit) else max(limit, 0.01),
            gap=RELAXATION_GAP,
            threads=self.tools.threads,
            cancel=self.watch.stop.cancel,
        )
        result = self.tools.mip_solver(program.mip, params)
        if result.bound is not None:
            self.bound = min(result.bound, self.value)
            self.watch.report(bound=self.bound)
        if result.x is not None:
            self._offer(self._realised(*program.choices(result.x)))

    def _realised(self, where: dict[int, tuple[int, int]], stopped: Ints) -> Desk:
        """Carry out what the relaxation chose, the widest tasks and largest gangs first, then place the rest."""
        p, desk = self.p, self.empty.copy()
        for v in stopped.tolist():
            desk.stop(v)
        pairs = zip(desk.layout.group_cluster.tolist(), desk.layout.group_type.tolist())
        group_of = {pair: g for g, pair in enumerate(pairs)}
        jobs = np.array(sorted(where), np.int64)
        width = np.array([p.need_mgpu[j, where[j][1]] for j in jobs.tolist()], np.int64)
        for j in jobs[np.lexsort((-p.tasks[jobs], -width))].tolist():
            only = np.zeros_like(desk.everywhere)
            only[group_of[where[j]]] = True
            job = desk.request(j)
            g, level = search(desk.state, job, only)
            if g >= 0:
                desk.admit(j, job, on_servers(desk.state, g, level, job, TIGHT, NOBODY), NOBODY)
        return self._moved(desk)

    def _moved(self, desk: Desk) -> Desk:
        """The desk after a local search for all that waits."""
        self.exchange.price(desk)
        self.exchange.settle(desk, desk.waiting().tolist(), self.watch)
        return self.exchange.move(desk, self.watch)

    def _rounds(self) -> int:
        watch, rng = self.watch, self.tools.rng
        endless = watch.stop.iterations is None and watch.stop.time_limit_s is None
        exact: Subproblems | None = None
        while not watch.done and not (endless and watch.round >= ROUNDS):
            watch.round += 1
            if watch.round % EXACT_EVERY == 0:
                exact = exact or Subproblems(self.p, self.tools)
                plan = exact.improved(self.best.plan(), self._clusters(rng, 2))
                if plan is not None:
                    self._offer_plan(plan)
            else:
                self._offer(self._recreated())
        return watch.round

    def _clusters(self, rng: np.random.Generator, most: int) -> Ints:
        count = len(self.p.clusters)
        return rng.choice(count, size=min(most, count), replace=False)

    def _recreated(self) -> Desk:
        """The best batch with a part taken out and put back in another order."""
        p, rng, desk = self.p, self.tools.rng, self.best.copy()
        chosen = set(self._clusters(rng, int(rng.integers(1, 3))).tolist())
        for j, at in list(desk.placed.items()):
            if desk.cluster_of(at) in chosen or rng.random() < 0.1:
                desk.remove(j)
        desk.restore_unneeded(self.exchange.stopped)
        noise = rng.normal(1, rng.choice([0.1, 0.3, 1.0]), len(p.jobs))
        rank = (-self.exchange.rejected * np.maximum(noise, 0.0)).astype(np.int64)
        self.exchange.settle(desk, desk.waiting().tolist(), self.watch, rank)
        return desk
