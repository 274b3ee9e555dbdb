"""Sub-MIPs of exhaustive (job placement): some clusters, or some jobs, are re-optimised, the rest is fixed."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mast_opt.core.solve_result import SolveParams
from mast_opt.job_placement.formulation.formulation import PerServer, state
from mast_opt.job_placement.plan import Plan
from mast_opt.job_placement.problem import JobPlacement
from mast_opt.job_placement.units import Bools, Ints
from mast_opt.job_placement.verification.verifier import verify
from mast_opt.kind.kind import Formulation
from mast_opt.search.interface import SearchContext

MOST_COLUMNS = 200_000
"""Programs beyond this are not built."""
SECONDS = 2.0
"""For one sub-problem."""
NODES, COUNTED = 300, 20_000
"""Where rounds are counted instead, most nodes of its tree, so that the answer does not depend on the machine; and most
columns of a program that has no clock."""


class SubMip:
    """The base formulation of a problem, of which parts are solved with the rest held fixed; made when first used."""

    def __init__(self, problem: JobPlacement, tools: SearchContext) -> None:
        self._problem = problem
        self._tools = tools
        self._counted = tools.watch.stop.iterations is not None
        self._large = _pairs(problem) > (COUNTED if self._counted else MOST_COLUMNS)

    @cached_property
    def _statement(self) -> PerServer:
        return state(self._problem)

    @cached_property
    def _formulation(self) -> Formulation[Plan]:
        return self._statement.finished()

    def of_clusters(self, plan: Plan, clusters: Ints) -> Plan | None:
        """The plan with these clusters, the jobs in them and those that wait solved anew; None if the program is too
        large or nothing was found."""
        return None if self._large else self._solved(plan, self._in_clusters(plan, clusters))

    def of_jobs(self, plan: Plan, jobs: Bools) -> Plan | None:
        """The plan with these jobs [J] and all victims solved anew, likewise."""
        return None if self._large else self._solved(plan, self._of_jobs(jobs))

    def _solved(self, plan: Plan, free: Bools) -> Plan | None:
        formulation = self._formulation
        x = formulation.encode(plan)
        fixed = np.flatnonzero(~free & formulation.mip.integral)
        limit = min(np.inf if self._counted else SECONDS, self._tools.watch.remaining_s)
        params = SolveParams(
            time_limit_s=None if np.isinf(limit) else max(limit, 0.01),
            threads=self._tools.threads,
            start=x,
            cancel=self._tools.watch.stop.cancel,
            options=(("mip_max_nodes", NODES),) if self._counted else (),
        )
        result = self._tools.mip_solver(formulation.mip.fix(fixed, x[fixed]), params)
        if result.x is None:
            return None
        better = formulation.decode(result.x)
        return better if verify(self._problem, better).ok else None

    def _of_jobs(self, jobs: Bools) -> Bools:
        """Columns that may change: those of the jobs and of no job."""
        s, c = self._statement, self._statement.cells
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
        hold something only there."""
        p, s = self._problem, self._statement
        c = s.cells
        elsewhere = np.zeros(len(p.jobs), np.bool_)
        elsewhere[plan.job[~np.isin(p.server_cluster[plan.server], clusters)]] = True
        near = np.isin(p.server_cluster, clusters)
        outside = np.zeros(len(p.running), np.bool_)
        outside[p.held_job[~near[p.held_server]]] = True
        free = np.zeros(len(self._formulation.mip.cost), np.bool_)
        cell = near[c.server] & ~elsewhere[c.job]
        free[s.assign] = np.isin(s.options.cluster, clusters) & ~elsewhere[s.options.job]
        free[s.count] = cell
        free[s.uses_rack] = np.isin(p.rack_cluster[c.rack], clusters) & ~elsewhere[c.rack_job]
        free[s.uses_server] = cell[c.tied]
        free[s.preempt] = ~outside[s.victims]
        free[s.on] = cell[c.fraction[c.part_fraction]]
        free[s.takes] = near[s.whole_server[s.take_row]]
        free[s.fits] = near[s.common.servers]
        return free


def _pairs(problem: JobPlacement) -> int:
    """Jobs and servers of a type that the job accepts: about the columns of the formulation."""
    p = problem
    per_type = np.bincount(p.server_type, minlength=len(p.gpu_types))
    return int(per_type[p.option_type].sum())
