"""POP: the jobs are drawn into parts, each with its share of every resource, and each part is solved by itself.

Narayanan et al., "Solving Large-Scale Granular Resource Allocation Problems Efficiently with POP", SOSP 2021. The
allocations of the parts, side by side, keep every limit of the whole. Configurations whose jobs are in different parts
stay unused there. The prices of the parts, joined, prove a bound on what any allocation of the whole reaches. They also
say which of the unused configurations pay, so a few rounds of column generation over all jobs make good most of what
the division costs.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from mast_opt.core.errors import UnsupportedOption
from mast_opt.core.parallel import in_parallel
from mast_opt.core.solve_result import Limit, Status
from mast_opt.problems.resource_allocation.formulation.program import LEXIMIN
from mast_opt.problems.resource_allocation.methods.columns import Columns
from mast_opt.problems.resource_allocation.methods.incumbent import Incumbent
from mast_opt.problems.resource_allocation.methods.params import AllocationParams
from mast_opt.problems.resource_allocation.methods.prices import Prices, gain_of_shares, without_profit
from mast_opt.problems.resource_allocation.methods.solves import Solves
from mast_opt.problems.resource_allocation.methods.subproblems import Rows, parts_of, subproblem
from mast_opt.problems.resource_allocation.plan import Plan
from mast_opt.problems.resource_allocation.policies import FINISH_TIME, HARMONIC, HIERARCHICAL, NASH, SCALE_FREE
from mast_opt.problems.resource_allocation.problem import ResourceAllocation
from mast_opt.problems.search.interface import SearchContext, SearchMonitor, SearchResult

ENDS_BY_GAP = frozenset({FINISH_TIME, NASH, HARMONIC})
"""Policies whose method goes on until its bound is tight, which it does not become over some of the configurations."""
NAMED = 3
"""Jobs of a part that a message names."""
Solve = Callable[[ResourceAllocation, SearchContext, Plan | None], SearchResult[Plan]]
"""The solve of a part; its certificate, if any, are ``Prices``."""
Improve = Callable[[ResourceAllocation, SearchContext, Plan | None, Columns, Incumbent], SearchResult[Plan]]
"""(problem, tools, plan to begin with, columns, incumbent) → what the policy's method finds."""


def pop(
    problem: ResourceAllocation, tools: SearchContext, start: Plan | None, solve: Solve, improve: Improve
) -> SearchResult[Plan]:
    """The allocations of the parts side by side, what becomes of them over all jobs, and a bound for the whole.

    Parts are drawn by ``tools.rng`` and solved by ``tools.threads`` threads; the result does not depend on how many
    these are, unless time runs out. A part without an allocation proves nothing about the whole.

    Args:
        solve: solves a part.
        improve: continues from a plan of the whole.

    Raises:
        UnsupportedOption: the problem does not split in so many parts.
    """
    params = tools.params_as(AllocationParams)
    _check(problem, params.pop)
    parts = _drawn(problem, params.pop, tools.rng)
    incumbent = Incumbent(problem, tools.watch)
    if start is not None:
        incumbent.settle(start)
    results = _solved(problem, tools, start, solve, parts)
    words = f"POP in {len(parts)} parts"
    prices = [result.certificate for result in results if isinstance(result.certificate, Prices)]
    joined = joined_prices(problem, parts, prices) if len(prices) == len(parts) else None
    gain = gain_of_shares(problem)
    if joined is not None:
        incumbent.prove(without_profit(problem, joined, gain))
    share = np.zeros(len(problem.configurations))
    for rows, result in zip(parts, results, strict=True):
        if result.plan is None:
            failed = f"{words}: {_without_plan(problem, rows, result)}"
            stopped = tools.watch.limit() or result.limit or Limit.OTHER
            return SearchResult(incumbent.plan, incumbent.bound, stopped, failed, incumbent.prices)
        share[rows.configurations] = result.plan.share
    plan = incumbent.offer(share)
    if joined is None or not params.pop_rounds or problem.objective.policy in ENDS_BY_GAP:
        limit = tools.watch.limit() or next((result.limit for result in results if result.limit is not None), None)
        finished = problem.objective.policy not in LEXIMIN
        return SearchResult(incumbent.plan, incumbent.bound, limit, words, incumbent.prices, finished=finished)
    columns = Columns(problem, Solves(tools), params, first=plan.share > 0, rounds=params.pop_rounds - 1)
    columns.include_paying(joined, gain)
    found = improve(problem, tools, plan, columns, incumbent)
    return replace(found, message=f"{words}; {found.message}".removesuffix("; "))


def _solved(
    problem: ResourceAllocation, tools: SearchContext, start: Plan | None, solve: Solve, parts: Sequence[Rows]
) -> list[SearchResult[Plan]]:
    """The result of each part."""
    watch, waiting, size = tools.watch, iter(range(len(parts), 0, -1)), min(tools.threads, len(parts))

    def result(given: tuple[Rows, np.random.Generator]) -> SearchResult[Plan]:
        rows, rng = given
        part = subproblem(problem, rows, problem.resources.amount * (len(rows.jobs) / len(problem.jobs)))
        begin = None if start is None else Plan.of_shares(part, start.share[rows.configurations])
        left, stop = next(waiting), watch.stop
        if stop.time_limit_s is not None:
            stop = replace(stop, time_limit_s=max(watch.remaining_s * min(1.0, size / left), 0.01))
        return solve(part, replace(tools, rng=rng, watch=SearchMonitor(stop, sense=part.sense)), begin)

    given = zip(parts, tools.rng.spawn(len(parts)), strict=True)
    return in_parallel(result, given, size, watch.stop.cancel)


def _drawn(problem: ResourceAllocation, count: int, rng: np.random.Generator) -> list[Rows]:
    """Parts of equal size, drawn at random."""
    job_part = np.empty(len(problem.jobs), np.int64)
    for at, jobs in enumerate(np.array_split(rng.permutation(len(problem.jobs)), count)):
        job_part[jobs] = at
    parts = parts_of(problem, job_part, count)
    left = np.zeros(len(job_part), np.bool_)
    for rows in parts:
        left[problem.members.job[rows.members]] = True
    lone = np.flatnonzero(~left)
    if len(lone):
        raise UnsupportedOption(
            f"pop = {count} leaves {problem.jobs.labels[lone[0]]} without a configuration: all of its own have "
            "jobs of other parts; leave pop at 1, or give each job a configuration in which it is alone"
        )
    return parts


def _without_plan(problem: ResourceAllocation, rows: Rows, result: SearchResult[Plan]) -> str:
    """Reason why a part of POP has no allocation, in words."""
    named = ", ".join(problem.jobs.labels[job] for job in rows.jobs[:NAMED].tolist())
    more = ", …" if len(rows.jobs) > NAMED else ""
    if result.status is Status.INFEASIBLE:
        return f"the part with {named}{more} has no allocation, fewer parts may have one ({result.message})"
    return f"the part with {named}{more} was not solved ({result.message})"


def joined_prices(problem: ResourceAllocation, parts: Sequence[Rows], prices: Sequence[Prices]) -> Prices:
    """The prices of the whole: those of each part's jobs, and of resources the mean, by the number of jobs.

    Where the policy does not say what a unit of rate is worth, the prices of each part are first scaled so that its
    resources are worth the same for each job.
    """
    jobs, amount = len(problem.jobs), problem.resources.amount
    weight = np.array([len(rows.jobs) / jobs for rows in parts])
    worth = np.array([float(one.resource_price @ amount) for one in prices])
    factor = np.ones(len(parts))
    if problem.objective.policy in SCALE_FREE and (worth > 0).all():
        factor = (weight @ worth) / worth
    rate_weight, job_price, floor_price = np.zeros(jobs), np.zeros(jobs), np.zeros(jobs)
    for rows, one, scale in zip(parts, prices, factor.tolist(), strict=True):
        rate_weight[rows.jobs] = scale * one.rate_weight
        job_price[rows.jobs] = scale * one.job_price
        floor_price[rows.jobs] = scale * one.floor_price
    resource_price = (weight * factor) @ np.array([one.resource_price for one in prices])
    return Prices(rate_weight, job_price, floor_price, resource_price, np.zeros(len(problem.groups)))


def _check(problem: ResourceAllocation, count: int) -> None:
    """Raise UsageError where POP cannot draw the jobs of an allocation into parts."""
    reasons = {
        f"there are {len(problem.jobs)} jobs; expected at most as many parts": count > len(problem.jobs),
        "shares are whole, and a part of a resource may be too little for any": problem.whole,
        f"the policy {HIERARCHICAL} shares between groups, which parts would cut": (
            problem.objective.policy == HIERARCHICAL
        ),
        "groups have floors, which parts would cut": bool((problem.groups.min_rate > 0).any()),
        f"the mechanism {problem.objective.mechanism} compares allocations of the whole": bool(
            problem.objective.mechanism
        ),
    }
    for reason, there in reasons.items():
        if there:
            raise UnsupportedOption(f"pop = {count} cannot be used here: {reason}; leave pop at 1")
