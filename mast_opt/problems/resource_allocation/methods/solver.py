"""Solver of resource allocation: which method solves which policy, and what is said where there is no allocation.

Nash welfare and the harmonic mean of speedups are solved by linear programs with tangents (Kelley's cutting planes).
Each job's value is a concave function of its own rate, so tangents at a few rates enclose it; every round adds one at
the rate of each job. The prices of the rates prove a bound that is at least as good as that of the program: for
example Σ w·ln r ≤ Σ w·(ln(w/p) − 1) + max Σ p·r, for every p > 0.

With whole shares each job has the rate of one configuration, so every policy but water filling is one program.

Partial allocation: each job keeps the part of its rate that the others lose by its presence (Cole et al., EC'13).

On top of an allocation of the highest Π rate^weight, job j keeps

    kept[j] = Π_{k≠j} (rate[k] / rate of k in the best allocation without j)^(weight[k]/weight[j])

What j keeps is worth Π_k rate[k]^(weight[k]/weight[j]) over a number that j's report does not enter. The allocation
maximises that product, so the truth is best. Themis uses it for auctions, Gavel for strategy-proof shares.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from mast_opt.core.errors import InstanceError
from mast_opt.core.solve_result import AGREEMENT, Basis, Limit, Status
from mast_opt.problems.kind.problem_data import Floats, Ints
from mast_opt.problems.mip import Mip
from mast_opt.problems.resource_allocation import policies
from mast_opt.problems.resource_allocation.formulation.formulation import LINEAR, gains, slopes
from mast_opt.problems.resource_allocation.formulation.program import LEXIMIN, OBJECTIVE, AllocationProgram, Utility
from mast_opt.problems.resource_allocation.methods.carried_prices import basis_of
from mast_opt.problems.resource_allocation.methods.columns import Columns
from mast_opt.problems.resource_allocation.methods.incumbent import Incumbent
from mast_opt.problems.resource_allocation.methods.levels import (
    finish_time,
    later_level,
    leximin,
    one_level,
    water_filling,
)
from mast_opt.problems.resource_allocation.methods.params import AllocationParams
from mast_opt.problems.resource_allocation.methods.pop import pop
from mast_opt.problems.resource_allocation.methods.prices import gain_of_shares
from mast_opt.problems.resource_allocation.methods.solves import Solved, Solves, Stopped
from mast_opt.problems.resource_allocation.methods.subproblems import equal_jobs, without_job
from mast_opt.problems.resource_allocation.plan import Plan, job_rates
from mast_opt.problems.resource_allocation.problem import ResourceAllocation
from mast_opt.problems.search.interface import SearchContext, SearchMonitor, SearchResult


def kept_parts(weight: Floats, rate: Floats, rate_without: Floats) -> Floats:
    """[J] the part of its rate that each job keeps, from 0 to 1.

    Args:
        weight: [J] above 0.
        rate: [J] of the best allocation, above 0.
        rate_without: [J, J] in row j, the rates of the best allocation without j, above 0; the entry of j itself
            is not looked at.
    """
    lost = weight * np.log(rate / np.where(np.eye(len(rate), dtype=np.bool_), rate, rate_without))
    parts: Floats = np.minimum(np.exp(lost.sum(axis=1) / weight), 1.0)
    return parts


def partial_allocation(weight: Floats, rate: Floats, best_without: Callable[[int], Floats]) -> Floats:
    """[J] the parts that the jobs keep.

    Args:
        weight, rate: as in ``kept_parts``.
        best_without: position of a job → [J − 1] the rates of the others in the best allocation without it.
    """
    without = np.ones((len(rate), len(rate)))
    for job in range(len(rate)):
        without[job, np.arange(len(rate)) != job] = best_without(job)
    return kept_parts(weight, rate, without)


SAME = 1e-12
"""Relative difference up to which two levels are one."""
ONE_JOB = 0.5
"""Gap of a number of jobs that proves it."""


def whole(problem: ResourceAllocation, solves: Solves, incumbent: Incumbent, start: Plan | None) -> Solved:
    """Solve one program with whole shares.

    Raises:
        Stopped: no allocation keeps all limits, or a limit of the solve came first.
    """
    policy = problem.objective.policy
    program = AllocationProgram(problem)
    maximise = policy not in (policies.COST, policies.MAKESPAN, policies.FINISH_TIME, policies.HARMONIC)
    if policy in LINEAR:
        program.linear(gains(problem))
    elif policy in (policies.MAKESPAN, policies.FINISH_TIME):
        program.worst_outcome(_worth(problem))
    elif policy in (policies.NASH, policies.HARMONIC):
        program.sum_of_outcomes(_worth(problem))
    else:
        slope = slopes(problem)
        program.level(slope, np.zeros(len(slope)))
    mip = program.build(maximise)
    values = None if start is None else _with_start(problem, mip.shape[1], start)
    solved = solves(mip, start=values)
    incumbent.offer(solved.x[: len(problem.configurations)])
    if solved.bound is not None:
        incumbent.claim(-solved.bound if maximise else solved.bound)
    return solved


def raise_levels(problem: ResourceAllocation, solves: Solves, incumbent: Incumbent) -> str:
    """Make the incumbent of a policy in ``LEXIMIN`` leximin; returns what stopped it, or nothing.

    A choice is leximin where the number of jobs up to a level is the smallest possible, for every level in ascending
    order, which is linear in the shares and says nothing of which jobs these are. The levels are the utilities in the
    incumbent, the next higher one after each program. Every job has the level 0, in a configuration or in none.
    """
    members, jobs, width = problem.members, len(problem.jobs), len(problem.configurations)
    utility = Utility.of(problem)
    of_member = utility.of_rates(members.rate, members.job)
    levels: list[float] = []
    least: list[int] = []
    """Jobs that have each level, or a higher one."""
    while incumbent.plan is not None:
        reached = utility.of_rates(incumbent.plan.rate)
        higher = reached[reached > levels[-1] * (1 + SAME)] if levels else reached
        if not len(higher):
            break
        levels.append(float(higher.min()))
        least.append(len(higher))
        program = AllocationProgram(problem)
        first = int(levels[0] <= 0)
        above = np.array(levels[first:])
        rows = program.m.rows("at_least", [[str(at) for at in range(len(above))]], lower=np.array(least[first:], float))
        level, row = np.nonzero(of_member >= above[:, None] * (1 - SAME))
        rows.add(level, program.share[members.configuration[row]])
        over = of_member > levels[-1] * (1 + SAME)
        program.linear(np.bincount(members.configuration[over], minlength=width).astype(np.float64))
        try:
            solved = solves(program.build(maximise=True), start=incumbent.plan.share, gap=ONE_JOB / jobs)
        except Stopped as stopped:
            return later_level(stopped)
        if solved.limit is not None:
            return f"stopped at a later level: {solved.message}"
        if not incumbent.settle(incumbent.offer(solved.x[:width])):
            return "rounding breaks a limit at a later level"
        if least[-1] == jobs and (utility.of_rates(incumbent.plan.rate) <= levels[-1] * (1 + SAME)).any():
            incumbent.claim(incumbent.objective)  # in integers: not all jobs can have more
    return ""


def _worth(problem: ResourceAllocation) -> Floats:
    """[M] the policy's function of a job's rate, at the rate of each row of ``members``; 0 where that is 0."""
    jobs, members, policy = problem.jobs, problem.members, problem.objective.policy
    of = members.job
    rate = np.where(members.rate > 0, members.rate, 1.0)
    worth = {
        policies.MAKESPAN: lambda: jobs.steps[of] / rate,
        policies.FINISH_TIME: lambda: (jobs.elapsed_s[of] + jobs.steps[of] / rate) / problem.fair_finish_s[of],
        policies.NASH: lambda: jobs.weight[of] * np.log(rate),
        policies.HARMONIC: lambda: problem.normal_rate[of] / rate,
    }[policy]()
    return np.where(members.rate > 0, worth, 0.0)


def _with_start(problem: ResourceAllocation, columns: int, start: Plan) -> Floats:
    """A value for every column: the shares, and what the level or the worst outcome is with them."""
    x = np.zeros(columns)
    x[: len(start.share)] = start.share
    if columns > len(start.share):
        policy = problem.objective.policy
        with np.errstate(divide="ignore"):
            if policy in (policies.MAKESPAN, policies.FINISH_TIME):
                ratio = problem.jobs.elapsed_s + problem.jobs.steps / start.rate
                worst = (
                    problem.jobs.steps / start.rate if policy == policies.MAKESPAN else ratio / problem.fair_finish_s
                )
                x[-1] = worst.max() if np.isfinite(worst).all() else 0.0
            else:
                x[-1] = (start.rate / slopes(problem)).min()
    return x


APART = 1e-9
"""Tangents closer together than this, relative to the rate, are one."""


def concave(problem: ResourceAllocation, columns: Columns, incumbent: Incumbent, params: AllocationParams) -> str:
    """Iterate until objective and bound agree; returns what stopped it, or nothing."""
    jobs = len(problem.jobs)
    level, found = one_level(columns, problem.jobs.fair_rate)
    best = incumbent.offer(found.share).share
    if level <= 0:
        return ""
    most = np.zeros(jobs)
    np.maximum.at(most, problem.members.job, problem.members.rate)
    parts = np.geomspace(params.least_tangent, 1.0, params.first_tangents)
    at_job, at_part = np.repeat(np.arange(jobs), len(parts)), np.tile(parts, jobs)
    at_job, at_part = _with(at_job, at_part, job_rates(problem, best) / most)
    for _ in range(params.most_rounds):
        nash = problem.objective.policy == policies.NASH
        tangents = partial(_tangents, at_job, at_part, most)
        try:
            found = columns.solve(tangents, maximise=nash, block="progress", unit=most)
        except Stopped as stopped:
            return f"a limit stopped the iteration: {stopped}"
        incumbent.prove(found.prices)
        best = _on_segment(problem, best, found.share)
        incumbent.offer(best)
        if incumbent.gap() <= params.iteration_gap:
            return ""
        before = len(at_job)
        at_job, at_part = _with(at_job, at_part, job_rates(problem, found.share) / most)
        at_job, at_part = _with(at_job, at_part, job_rates(problem, best) / most)
        if len(at_job) == before:
            return "the tangents can no longer be distinguished"
    return f"the iteration took {params.most_rounds} rounds (most_rounds)"


def _tangents(job: Ints, part: Floats, most: Floats, problem: ResourceAllocation, program: AllocationProgram) -> None:
    """Values of the jobs' rates under tangents; for ``harmonic``, costs above them.

    Rates are parts of each job's largest one, so that a program does not depend on the unit in which a job counts its
    steps. The objective of ``nash`` is then less by a constant.
    """
    m, jobs = program.m, problem.jobs
    rates = program.rates(most)
    value = m.columns("value", [jobs.labels], lower=-np.inf)
    labels = tuple(str(at) for at in range(len(job)))
    if problem.objective.policy == policies.NASH:
        tangent = m.rows("tangent", [labels], upper=np.log(part) - 1.0)
        tangent.add(np.arange(len(job)), rates[job], -1.0 / part)
        m.term(OBJECTIVE, value, jobs.weight)
    else:
        tangent = m.rows("tangent", [labels], lower=2.0 / part)
        tangent.add(np.arange(len(job)), rates[job], 1.0 / part**2)
        m.term(OBJECTIVE, value, problem.normal_rate / most)
    tangent.add(np.arange(len(job)), value[job])


def _with(job: Ints, rate: Floats, more: Floats) -> tuple[Ints, Floats]:
    """The tangents, and behind them one at each of these rates [J] that is above 0 and not there yet."""
    close = np.abs(rate - more[job]) <= APART * more[job]
    new = np.flatnonzero((more > 0) & (np.bincount(job, close, minlength=len(more)) == 0))
    return np.append(job, new), np.append(rate, more[new])


def _on_segment(problem: ResourceAllocation, one: Floats, other: Floats) -> Floats:
    """The best shares between two, by bisection on the derivative: the objective is concave."""
    start, end = job_rates(problem, one), job_rates(problem, other)
    step = end - start
    nash = problem.objective.policy == policies.NASH

    def slope(part: float) -> float:
        rate = start + part * step
        if (rate <= 0).any():
            return -np.inf
        if nash:
            return float((problem.jobs.weight * step / rate).sum())
        return float((problem.normal_rate * step / rate**2).sum())

    low, high = 0.0, 1.0
    if slope(1.0) >= 0:
        return other
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return one + low * (other - one)


def solve_policy(problem: ResourceAllocation, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """Solve the policy of a problem by programs that ``tools.mip_solver`` solves, and apply its mechanism.

    Args:
        start: a plan to begin with; a MIP backend gets it as an incumbent where shares are whole. With fractional
            shares its configurations are in the first program, and it is what remains if a limit comes before that is
            solved.
    """
    params = tools.params_as(AllocationParams)
    if params.pop > 1:
        return pop(problem, replace(tools, certificate=None), start, _allocation, _by_method)
    result = _allocation(problem, tools, start)
    if problem.objective.mechanism != policies.PARTIAL_ALLOCATION or result.plan is None:
        return result
    return _partial(problem, tools, result, result.plan)


def _partial(
    problem: ResourceAllocation, tools: SearchContext, result: SearchResult[Plan], plan: Plan
) -> SearchResult[Plan]:
    """The result with the parts that the jobs keep; it takes one more allocation for each job, or each set of equal
    jobs."""
    gap = tools.params_as(AllocationParams).iteration_gap
    stop = replace(tools.watch.stop, gap=min(tools.watch.stop.gap, gap))
    rates: list[Floats] = []
    like = equal_jobs(problem).tolist() if problem.objective.policy == policies.NASH else list(range(len(problem.jobs)))
    for job, label in enumerate(problem.jobs.labels if len(problem.jobs) > 1 else ()):
        if like[job] < job:
            rates.append(_exchanged(rates[like[job]], like[job], job))
            continue
        left = None if stop.time_limit_s is None else max(tools.watch.remaining_s, 0.01)
        watch = SearchMonitor(replace(stop, time_limit_s=left), sense=problem.sense, gap_scale=problem.gap_scale)
        try:
            other = _allocation(without_job(problem, job), replace(tools, watch=watch), None)
        except InstanceError as error:  # another job runs only next to this one
            other = SearchResult(None, None, Limit.OTHER, str(error))
        if other.plan is None or not _known(watch, float(problem.jobs.weight.sum()), gap):
            words = (
                f"what the jobs keep is not known, since the best allocation without {label} is not: {other.message}"
            )
            return SearchResult(None, result.bound, other.limit or Limit.OTHER, words, result.certificate)
        rates.append(other.plan.rate)
    kept = partial_allocation(problem.jobs.weight, plan.rate, rates.__getitem__) if rates else plan.kept
    return replace(result, plan=Plan.of_shares(problem, plan.share, kept))


def _exchanged(rate: Floats, one: int, other: int) -> Floats:
    """[J − 1] the rates without the one job as those without the other, which is equal to it."""
    every = np.insert(rate, one, 0.0)
    every[one] = every[other]
    without: Floats = np.delete(every, other)
    return without


def _known(watch: SearchMonitor, weights: float, gap: float) -> bool:
    """Whether Σ weight·ln rate is known well enough for what the jobs keep, which is its exponential.

    It may be 0, so the gap is compared with the sum of the weights.
    """
    if watch.objective is None or watch.bound is None:
        return False
    return abs(watch.objective - watch.bound) <= gap * max(weights, abs(watch.objective)) * (1 + AGREEMENT)


def _allocation(problem: ResourceAllocation, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """Solve a resource allocation from a start, by the method that its policy asks for."""
    incumbent, params = Incumbent(problem, tools.watch), tools.params_as(AllocationParams)
    prices = None if problem.objective.policy in (policies.NASH, policies.HARMONIC) else tools.certificate
    all_at_once = prices is not None and len(problem.configurations) <= params.direct_configurations
    used = None if start is None or all_at_once or not start.share.any() else start.share > 0

    def first_basis(mip: Mip) -> Basis | None:
        if start is None or prices is None:
            return None
        return basis_of(columns.restricted(), mip, start.share[columns.chosen], prices)

    columns = Columns(problem, Solves(tools, first_basis), params, used)
    if start is not None:
        incumbent.settle(start)
    return _by_method(problem, tools, start, columns, incumbent)


def _by_method(
    problem: ResourceAllocation, tools: SearchContext, start: Plan | None, columns: Columns, incumbent: Incumbent
) -> SearchResult[Plan]:
    """The result of the policy's method, which begins with these columns and this incumbent."""
    solves, params = columns.solves, tools.params_as(AllocationParams)
    leveled = problem.objective.policy in (*LEXIMIN, policies.HIERARCHICAL)
    limit: Limit | None = None
    finished = not leveled
    try:
        if problem.whole:
            solved = whole(problem, solves, incumbent, start)
            limit, words = solved.limit, solved.message
            if leveled and limit is None:
                open_level = raise_levels(problem, solves, incumbent)
                finished, words = not open_level, open_level or words
        else:
            words = _fractional(problem, columns, incumbent, params)
            finished = not leveled or (not words and columns.complete)
    except Stopped as stopped:
        result = stopped.result
        if result.status.is_infeasible:
            return SearchResult(None, None, None, result.message, status=Status.INFEASIBLE)
        limit, words = result.limit or Limit.OTHER, result.message
    if incumbent.plan is None and incumbent.bound is None and limit is None:
        return SearchResult(None, None, None, _nobody_runs(problem, columns), status=Status.INFEASIBLE)
    limit = limit or tools.watch.limit() or (Limit.OTHER if words else None)
    return SearchResult(incumbent.plan, incumbent.bound, limit, words, incumbent.prices, finished=finished)


def _fractional(problem: ResourceAllocation, columns: Columns, incumbent: Incumbent, params: AllocationParams) -> str:
    """Solve by linear programs; returns what stopped the method, or nothing."""
    policy = problem.objective.policy
    if policy in LINEAR:
        return _linear(problem, columns, incumbent)
    if policy == policies.FINISH_TIME:
        return finish_time(problem, columns, incumbent, params)
    if policy in (policies.NASH, policies.HARMONIC):
        return concave(problem, columns, incumbent, params)
    return (
        water_filling(problem, columns, incumbent)
        if policy == policies.HIERARCHICAL
        else leximin(problem, columns, incumbent)
    )


def _linear(problem: ResourceAllocation, columns: Columns, incumbent: Incumbent) -> str:
    """Solve a policy of resource allocation that is one linear program, and prove its value."""
    policy, none = problem.objective.policy, np.zeros(len(problem.jobs))
    rates = policy == policies.TOTAL_RATE
    found = columns.solve(
        lambda part, program: program.linear(gains(part)),
        maximise=policy != policies.COST,
        gain=gain_of_shares(problem),
        weight=problem.jobs.weight if rates else none,
    )
    incumbent.offer(found.share)
    incumbent.prove(found.prices)
    return ""


def _nobody_runs(problem: ResourceAllocation, columns: Columns) -> str:
    """The jobs that no allocation lets run: those whose rates have a price at the level 0."""
    _, found = one_level(columns, problem.jobs.fair_rate)
    names = [problem.jobs.labels[at] for at in np.flatnonzero(found.prices.rate_weight > 0).tolist()]
    return f"{problem.objective.policy} needs every job to run, and no allocation lets these run: {', '.join(names)}"
