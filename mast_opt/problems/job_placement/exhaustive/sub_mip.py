"""Sub-MIPs of exhaustive (job placement): some clusters, or some jobs, are re-optimised, the rest is fixed.

The strategy says whether there are any, and what limits them.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_result import SolveParams
from mast_opt.problems.job_placement.exhaustive.params import ExhaustiveRepairParams
from mast_opt.problems.job_placement.exhaustive.penalised_assignment import is_assignment
from mast_opt.problems.job_placement.formulation.formulation import PerServer, state
from mast_opt.problems.job_placement.formulation.strengthened import strong
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import Bools, Ints
from mast_opt.problems.job_placement.verification.verifier import verify
from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.search.interface import SearchContext, StoppingCriteria
from mast_opt.problems.search.strategy import Strategy
from mast_opt.problems.search.sub_mip import LEAST_S, NO_NODE_LIMIT, SubMip


@dataclass(frozen=True)
class ExhaustiveRepairStrategy(Strategy):
    """Decisions of exhaustive+repair on one instance."""

    sub_mips: bool
    """True if some clusters or jobs are solved exactly; False if the program is too large for that."""
    whole: bool
    """True if the whole program is solved before the rounds."""
    prices: bool
    """True if prices of capacity are computed, which prove a bound."""
    assignment: bool
    """True if every other round is a tabu search over single tasks."""
    sub_mip_nodes: int
    """Most nodes of one; at its greatest value there is no limit."""
    sub_mip_time_limit_s: float
    """Most seconds for one; 0 where rounds are counted, for no limit."""


def choose_strategy(
    pairs: int, assignment_cells: int | None, stop: StoppingCriteria, params: ExhaustiveRepairParams
) -> ExhaustiveRepairStrategy:
    """The strategy for a job-placement instance. Where rounds are counted, the clock must have no say, so nodes are
    limited and not seconds.

    Args:
        pairs: of a job and a server that it accepts, about the columns of the formulation.
        assignment_cells: jobs times servers of a generalised assignment problem; None if it is none.
    """
    counted, given = stop.iterations is not None, params.sub_mip
    sub_mips = pairs <= (params.sub_mip_columns_counted if counted else params.sub_mip_columns)
    return ExhaustiveRepairStrategy(
        sub_mips=sub_mips,
        whole=sub_mips and pairs <= params.whole_columns and params.whole_share > 0,
        prices=sub_mips and pairs <= params.whole_columns,
        assignment=assignment_cells is not None and assignment_cells <= params.assignment.cells,
        sub_mip_nodes=min(given.node_limit, params.sub_mip_nodes) if counted else given.node_limit,
        sub_mip_time_limit_s=0.0 if counted else given.time_limit_s,
    )


class FixAndOptimise:
    """Fix-and-optimise over the base formulation of a problem, which is built when it is first used."""

    def __init__(self, problem: JobPlacement, tools: SearchContext, params: ExhaustiveRepairParams) -> None:
        self._problem = problem.standing
        self._tools = tools
        self._params = params
        self.sub_mip = SubMip(tools, params.sub_mip)
        self.strategy = choose_strategy(
            _pairs(problem),
            len(problem.jobs) * len(problem.servers) if is_assignment(problem) else None,
            tools.watch.stop,
            params,
        )

    @cached_property
    def _statement(self) -> PerServer:
        """Statement of the problem server by server, made once."""
        return state(self._problem)

    @cached_property
    def _formulation(self) -> Formulation[Plan]:
        """Formulation of the problem server by server, made once."""
        return self._statement.finished()

    def linear_limits(self) -> SolveParams:
        """Limits of a linear relaxation of job placement: a share of the time that remains."""
        watch = self._tools.watch
        limit_s = watch.remaining_s * self._params.relaxation_share
        return SolveParams(
            time_limit_s=None if math.isinf(limit_s) else max(limit_s, LEAST_S),
            threads=self._tools.threads,
            cancel=watch.stop.cancel,
        )

    def joined(self, at: int, width: int) -> Ints:
        """Clusters to be solved as one: a cluster and the one after it while they are two, then any others."""
        clusters = np.arange(len(self._problem.clusters))
        if width <= 2:
            return np.unique((at + np.arange(width)) % len(clusters))
        return np.append(self._tools.rng.choice(np.delete(clusters, at), width - 1, replace=False), at)

    def of_clusters(self, plan: Plan, clusters: Ints) -> Plan | None:
        """The plan with these clusters, the jobs in them and those that wait solved again; None if the program is too
        large or nothing was found."""
        return self._solved(plan, self._in_clusters(plan, clusters)) if self.strategy.sub_mips else None

    def of_jobs(self, plan: Plan, jobs: Bools) -> Plan | None:
        """The plan with these jobs [J] and all victims solved again, likewise."""
        return self._solved(plan, self._of_jobs(jobs)) if self.strategy.sub_mips else None

    def whole(self, plan: Plan) -> tuple[Plan | None, float | None]:
        """The plan with everything solved again in a share of the remaining time, None if nothing was found; and a
        lower bound on the objective."""
        if not self.strategy.whole:
            return None, None
        formulation, watch = strong(self._problem), self._tools.watch
        seconds, counted = watch.remaining_s * self._params.whole_share, watch.stop.iterations is not None
        limits = replace(
            self.sub_mip.limits(start=formulation.encode(plan), gap=watch.stop.gap),
            node_limit=self._params.whole_nodes if counted else None,
            time_limit_s=None if math.isinf(seconds) else max(seconds, LEAST_S),
        )
        result = self.sub_mip(formulation.mip, limits)
        return None if result.x is None else formulation.decode(result.x), result.bound

    def _solved(self, plan: Plan, free: Bools) -> Plan | None:
        """Placement of jobs in which the free columns are solved exactly; None if nothing better was found."""
        formulation = self._formulation
        x = formulation.encode(plan)
        fixed = np.flatnonzero(~free & formulation.mip.integral)
        result = self.sub_mip(formulation.mip.fix(fixed, x[fixed]), self._limits(x))
        if result.x is None:
            return None
        better = formulation.decode(result.x)
        return better if verify(self._problem, better).ok else None

    def _limits(self, start: FloatArray) -> SolveParams:
        """Limits of a sub-MIP of job placement: those of the strategy, and what remains of the search's time."""
        nodes = self.strategy.sub_mip_nodes
        limit_s = min(self.strategy.sub_mip_time_limit_s or math.inf, self._tools.watch.remaining_s)
        return replace(
            self.sub_mip.limits(start=start),
            node_limit=None if nodes == NO_NODE_LIMIT else nodes,
            time_limit_s=None if math.isinf(limit_s) else max(limit_s, LEAST_S),
        )

    def _of_jobs(self, jobs: Bools) -> Bools:
        """Columns of the sub-MIP of job placement that may change: those of the jobs and of no job."""
        s, c = self._statement, self._statement.cells
        jobs = np.append(jobs, np.ones(len(s.p.jobs) - len(jobs), np.bool_))
        cell = jobs[c.job]
        free = np.ones(len(self._formulation.mip.cost), np.bool_)
        free[s.assign] = jobs[s.options.job]
        free[s.count] = cell
        free[s.uses_rack] = jobs[c.rack_job]
        free[s.uses_server] = cell[c.tied]
        free[s.on] = cell[c.fraction[c.part_fraction]]
        return free

    def _in_clusters(self, plan: Plan, clusters: Ints) -> Bools:
        """Columns that may change: those of the clusters, for jobs that are not placed elsewhere, and victims that
        hold something only there; likewise those that may be moved."""
        s = self._statement
        p, c, plan = s.p, s.cells, s.movers.joined(plan)
        elsewhere = np.zeros(len(p.jobs), np.bool_)
        elsewhere[plan.job[~np.isin(p.server_cluster[plan.server], clusters)]] = True
        near = np.isin(p.server_cluster, clusters)
        outside = np.zeros(len(p.running), np.bool_)
        outside[p.allocations.running[~near[p.allocations.server]]] = True
        free = np.zeros(len(self._formulation.mip.cost), np.bool_)
        cell = near[c.server] & ~elsewhere[c.job]
        free[s.assign] = np.isin(s.options.cluster, clusters) & ~elsewhere[s.options.job]
        free[s.count] = cell
        free[s.uses_rack] = np.isin(p.racks.cluster[c.rack], clusters) & ~elsewhere[c.rack_job]
        free[s.uses_server] = cell[c.tied]
        free[s.preempt] = ~outside[s.victims]
        free[s.move] = ~outside[s.movers.running]
        free[s.on] = cell[c.fraction[c.part_fraction]]
        free[s.takes] = near[s.whole_server[s.take_row]]
        free[s.fits] = near[s.common.servers]
        return free


def _pairs(problem: JobPlacement) -> int:
    """Jobs and servers of a type that the job accepts: about the columns of the formulation."""
    p = problem
    per_type = np.bincount(p.servers.gpu_type, minlength=len(p.gpu_types))
    return int(per_type[p.options.gpu_type].sum())
