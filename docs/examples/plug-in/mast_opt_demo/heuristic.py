"""Hill climbing for server assignment: a server changes hands where the verifier finds the plan better."""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt import ServerAssignment, verify
from mast_opt.problems.search.interface import HeuristicSolver, Pricing, SearchContext, SearchResult
from mast_opt.problems.search.params import Params, parameter
from mast_opt.problems.server_assignment.plan import Plan, today


@dataclass(frozen=True)
class HillClimbParams(Params):
    """Parameters of ``hill-climb``."""

    patience: int = parameter(500, "Changes in a row that do not help, after which it ends.", "Set by hand.", low=1)


def hill_climb(problem: ServerAssignment, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """Improve the start, or today's assignment, until nothing has helped for a while or a limit is reached."""
    params = tools.params_as(HillClimbParams)
    plan = today(problem) if start is None else start
    cost = verify(problem, plan).objective
    tools.watch.report(cost)
    since = 0
    while since < params.patience and not tools.watch.done:
        owner = plan.reservation.copy()
        owner[tools.rng.integers(len(owner))] = tools.rng.integers(len(problem.reservations) + 1)  # the last: nobody
        verdict = verify(problem, Plan(owner))
        tools.watch.round += 1
        since += 1
        if not verdict.violations and verdict.objective < cost:
            plan, cost, since = Plan(owner), verdict.objective, 0
            tools.watch.report(cost)
    return SearchResult(plan, None, tools.watch.limit(), "")


HILL_CLIMB = HeuristicSolver(hill_climb, Pricing(frozenset(ServerAssignment.WEIGHTS)), HillClimbParams)
