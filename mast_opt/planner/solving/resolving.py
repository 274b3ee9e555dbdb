"""``resolve``: a changed instance is solved from what an earlier solve left, in a small part of the time.

Of the earlier solve the plan is the start and the plan to stay near, and its certificate gives the prices from which
the bound goes on. Rows are matched by their labels. The bound is computed for the new instance, so it is as valid as
any.
Where too much has changed, or the result is too far from proven, the instance is solved from scratch.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Generic

from numpy.typing import NDArray

from mast_opt.core.arguments import a_text, a_whole, checked, optional, refuse
from mast_opt.core.errors import PlanError, UsageError
from mast_opt.core.solve_result import Limit, SolveParams, Status, relative_gap
from mast_opt.core.wording import percent
from mast_opt.planner.solving.auto_strategy import AUTO
from mast_opt.planner.solving.clock import COMPILE, Clock
from mast_opt.planner.solving.dispatch import solve
from mast_opt.planner.solving.last_pass import SLACK, Settling
from mast_opt.planner.solving.portfolio import able
from mast_opt.planner.solving.solution import Reuse, Solution
from mast_opt.problems.kind.carried_axes import Continuation, Digests, Match
from mast_opt.problems.kind.carry_over import carried_over, matched
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.origin import Origin
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import SolverName, kind_of
from mast_opt.problems.search.interface import Carried

GAP = SolveParams().gap
"""Gap that is asked for by default."""
MOST_CHANGED, MOST_GROWTH = 0.5, 0.2
"""Largest share of a table's rows that may be new or gone, and by how much the sum of a column may change where more
rows have other values."""
GAP_GROWTH, GAP_SLACK = 2.0, 0.02
"""A re-solve may have so many times the gap of the last solve from scratch, and so much more."""


@dataclass(frozen=True)
class Earlier(Generic[PlanT]):
    """An earlier solve, its plan matched to the instance that is solved now."""

    solver: str
    plan: PlanT | None
    """None where the rows that match are no plan."""
    unmatched: tuple[str, ...]
    digests: Digests | None
    """Digests of its instance; None where they are not known."""
    certificate: Mapping[str, NDArray[Any]] | None
    gap: float | None
    """Gap of the last solve from scratch before it, or its own."""


@checked(solver=optional(a_text), again=optional(a_whole(1)))
def resolve(
    problem: Problem[PlanT],
    previous: Solution[PlanT] | str | PathLike[str],
    solver: SolverName | None = None,
    *,
    time_limit_s: float | None = None,
    gap: float = GAP,
    iterations: int | None = None,
    again: int | None = None,
    **asked: Any,  # noqa: ANN401 - the other arguments of ``solve``
) -> Solution[PlanT]:
    """Solve an instance that differs a little from one that is solved already.

        tomorrow = mast_opt.resolve(problem, today)
        print(tomorrow.reuse)

    The plan begins with the earlier one and stays near it, and the bound goes on from the earlier certificate. A label
    that is the same means the same thing. The instance is solved from scratch where more than half of a table's rows
    are new or gone, or have other values with a sum that is more than a fifth apart, where a region is new or gone, or
    where the gap comes out far above that of the last solve from scratch; ``Solution.reuse`` says so.

    Args:
        problem: the instance as it is now.
        previous: the solution of the earlier instance, or the folder of its plan.
        solver: as for ``solve``; the earlier one unless given, or the heuristic where that was ``auto``.
        time_limit_s: of the whole call. Without it and ``iterations`` a heuristic takes the few rounds that a small
            change needs.
        gap: as for ``solve``.
        iterations: of the heuristic.
        again: its iterations unless it has to begin from scratch.
        asked: other arguments of ``solve`` but ``start`` and ``near``.

    Raises:
        UsageError: ``previous`` is a solution without a plan, of another kind, or has no label in common.
        PlanError: the folder holds no plan of this kind.
    """
    clock, kind = Clock(time_limit_s), kind_of(problem)
    now = kind.tables.digests(problem)
    earlier = (
        _of_solution(kind, problem, previous) if isinstance(previous, Solution) else _of_folder(problem, previous, now)
    )
    chosen = solver or (able(kind, problem) or AUTO if earlier.solver == AUTO else earlier.solver)
    how = kind.solvers.continuation(chosen)
    match = None if earlier.digests is None else Match(earlier.digests, now)
    if match is not None and not match.shared():
        raise UsageError(f"the earlier plan has no label in common with {problem.name}; solve it without that plan")
    differing = {} if match is None else match.changed()
    changed = {table: rows for table, (rows, _) in differing.items() if rows}
    cold, found = _too_different(earlier, match, differing, how), None
    if not cold:
        carried = _carried(problem, earlier, match, how)
        rounds, within = iterations if again is None else again, gap
        if how is not None and how.rounds is not None and rounds is None and time_limit_s is None:
            rounds, within = how.rounds, max(within, earlier.gap or 0.0)
        near = (
            None if asked.get("freeze") or not Settling(kind, problem, earlier.plan, "near").applies else earlier.plan
        )
        begin = {**asked, "start": earlier.plan, "near": near, "carried": carried, "gap": within}
        found = solve(problem, chosen, iterations=rounds, time_limit_s=time_limit_s, **begin)
        asked_gap = max(gap, SLACK)
        if within > asked_gap and found.status is Status.OPTIMAL and (found.gap or 0.0) > asked_gap:
            found = replace(found, status=Status.FEASIBLE, limit=Limit.ITERATIONS)
        clock.spent_s[COMPILE] += found.runtime_s[COMPILE]
        cold = _too_far(found.gap, earlier.gap)
        reuse = Reuse(True, carried.certificate is not None, changed, "", earlier.gap)
        cancel = asked.get("cancel")
        if not cold or clock.remaining_s <= 0 or (cancel is not None and cancel.is_set()):
            return replace(found, reuse=reuse, unmatched=earlier.unmatched)
    fresh = solve(problem, chosen, iterations=iterations, time_limit_s=clock.budget_s(), gap=gap, **asked)
    if found is not None:
        fresh = _better(fresh, found)
    return replace(fresh, reuse=Reuse(False, False, changed, cold, fresh.gap), unmatched=())


def carried_from(problem: Problem[PlanT], previous: Solution[PlanT], solver: str) -> Carried | None:
    """Parts of an earlier solve besides its plan; None where the solver cannot go on from them, or there are none."""
    kind = kind_of(problem)
    how = kind.solvers.continuation((able(kind, problem) or AUTO) if solver == AUTO else solver)
    origin: Origin | None = getattr(previous.plan, "origin", None)
    if how is None or previous.certificate is None or origin is None or origin.problem is None:
        return None
    match = Match(kind.tables.digests(origin.problem), kind.tables.digests(problem))
    return Carried(how.certificate(problem, previous.certificate.arrays(), match))


def _of_solution(kind: Kind[Any, Any], problem: Problem[PlanT], previous: Solution[PlanT]) -> Earlier[PlanT]:
    """The earlier solve that a solution states."""
    if previous.kind != kind.name:
        raise UsageError(f"previous is a solution of {previous.kind}, the problem is a {kind.name} instance")
    if previous.plan is None:
        raise UsageError(f"previous ended {previous.status.value} without a plan; solve the instance without it")
    origin: Origin | None = getattr(previous.plan, "origin", None)
    there = None if origin is None else origin.problem
    known = None if there is None else kind.tables.digests(there)
    try:
        if there is None or known is None:
            plan, unmatched = carried_over(kind, problem, previous.plan)
        else:
            tables = kind.tables.plan_to_tables(there, previous.plan)
            plan, unmatched = matched(kind, problem, tables, Match(kind.tables.digests(problem), known).axis)
    except PlanError:
        plan, unmatched = None, ()
    certificate = None if previous.certificate is None else previous.certificate.arrays()
    gap = previous.gap if previous.reuse is None else previous.reuse.reference_gap
    return Earlier(previous.solver, plan, unmatched, known, certificate, gap)


def _of_folder(problem: Problem[PlanT], path: str | PathLike[str], now: Digests) -> Earlier[PlanT]:
    """The earlier solve whose plan a folder holds."""
    if not isinstance(path, str | PathLike):
        raise refuse("previous", path, "the Solution of mast_opt.solve, or the folder of a plan")
    from mast_opt.planner import io  # only where something is read

    reading = io.read_start(problem, path)
    fields = reading.fields
    objective, bound = (None if name not in fields else float(fields[name]) for name in ("objective", "bound"))
    reference = fields.get("reuse", {}).get("reference_gap")
    gap = relative_gap(objective, bound, problem.sense) if reference is None else float(reference)
    return Earlier(
        str(fields.get("solver", AUTO)),
        reading.plan,
        reading.unmatched,
        io.read_digests(path, now),
        io.read_certificate(path),
        gap,
    )


def _too_different(
    earlier: Earlier[Any], match: Match | None, differing: Mapping[str, tuple[int, int]], how: Continuation | None
) -> str:
    """Reason why there is nothing to go on from; "" where there is."""
    if earlier.plan is None:
        return "what is left of the earlier plan is none"
    fixed = () if match is None or how is None else [axis for axis in how.fixed if not match.same(axis)]
    if fixed:
        return f"a {fixed[0].replace('_', ' ')} is new or gone"
    for table, (rows, of) in differing.items():
        if match is None or rows <= MOST_CHANGED * of:
            continue
        if match.replaced(table) > MOST_CHANGED * of:
            return f"{percent(match.replaced(table) / of, 0)} of the rows of {table} are new or gone"
        if match.growth(table) > MOST_GROWTH:
            much = percent(match.growth(table), 0)
            return f"{percent(rows / of, 0)} of the rows of {table} have changed, in all by {much}"
    return ""


def _carried(problem: Problem[Any], earlier: Earlier[Any], match: Match | None, how: Continuation | None) -> Carried:
    """Parts that the solver is handed besides the plan."""
    if match is None or how is None or earlier.certificate is None:
        return Carried(None)
    return Carried(how.certificate(problem, earlier.certificate, match))


def _too_far(gap: float | None, before: float | None) -> str:
    """Reason why a re-solve is not good enough; "" where it is."""
    if before is None or (gap is not None and gap <= GAP_GROWTH * before + GAP_SLACK):
        return ""
    return f"the gap would have been {percent(gap)}, against {percent(before)} when it was last solved from scratch"


def _better(fresh: Solution[PlanT], found: Solution[PlanT]) -> Solution[PlanT]:
    """The better plan of two solves, with the better of their bounds."""

    def least(value: float | None, missing: float) -> float:
        return missing if value is None else fresh.sense.minimised(value)

    best = min(fresh, found, key=lambda one: least(one.objective, math.inf))
    proof = max(fresh, found, key=lambda one: least(one.bound, -math.inf))
    return replace(best, bound=proof.bound, certificate=proof.certificate)
