"""Answer of a portfolio of solvers: the best plan of all members with the tightest bound, or their contradiction."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mast_opt.core.errors import MastOptError, UsageError, VerificationError
from mast_opt.core.sense import Sense
from mast_opt.core.solve_result import AGREEMENT, ROUND_OFF, Event, Limit, Status
from mast_opt.core.verdict import Verdict
from mast_opt.planner.solving.auto_strategy import AUTO, AutoParams, Portfolio
from mast_opt.planner.solving.cross_check import contradiction
from mast_opt.planner.solving.solution import UNIMPROVED, Solution
from mast_opt.problems.search.strategy import LOG


@dataclass(frozen=True)
class KeptPlan:
    """A plan of a solver that was still at work when the verifier accepted it."""

    solver: str
    plan: Any
    verdict: Verdict

    def as_solution(self, like: Solution[Any]) -> Solution[Any]:
        """The plan of a portfolio with nothing proven; what was asked is that of another answer."""
        return replace(
            like,
            solver=self.solver,
            status=Status.FEASIBLE,
            plan=self.plan,
            verdict=self.verdict,
            objective=self.verdict.objective,
            bound=None,
            limit=Limit.INTERRUPT,
            strategy={},
            certificate=None,
        )


@dataclass(frozen=True)
class Outcomes:
    """How the members of a portfolio ended."""

    found: list[tuple[str, Solution[Any]]]
    failures: list[tuple[str, BaseException]]
    kept: list[KeptPlan]
    finder: str
    """Name of the member that stated the best incumbent first."""
    events: tuple[Event, ...]
    interrupted: bool
    """True if the caller interrupted the solve."""
    timed: bool
    """True if the solve had a time limit; a member that was stopped without a proof has then run out of it."""


def refuses(error: BaseException | None) -> bool:
    """Whether what is asked makes no sense for any solver; the subclasses speak of one solver."""
    return type(error) is UsageError


def together(
    ended: Outcomes, strategy: Portfolio, params: AutoParams, near: Callable[[float | None, float | None], bool]
) -> Solution[Any]:
    """The portfolio's best plan with the tightest bound, and who found them.

    Raises:
        MastOptError: no member came to an answer, or what is asked makes no sense; the error of the first one.
        VerificationError: the members contradict one another.
    """
    refusal = next((error for _, error in ended.failures if refuses(error)), None)
    if refusal is not None or not ended.found:
        raise refusal or ended.failures[0][1]
    for name, error in ended.failures:
        if not isinstance(error, (MastOptError, MemoryError)):
            LOG.error("%s failed", name, exc_info=error)
    found = [*ended.found, *((one.solver, one.as_solution(ended.found[0][1])) for one in ended.kept)]
    sense = found[0][1].sense
    fault = contradiction(found, sense)
    if fault is not None:
        raise VerificationError(fault)
    order = max(([stage.term for stage in known.stages] for _, known in found), key=len)
    ranked = sorted(found, key=lambda one: _rank(one[1], sense, order))
    planner, best = next((one for one in ranked if one[0] == ended.finder and _ties(one[1], ranked[0][1])), ranked[0])
    if best.plan is None:
        best = next((known for _, known in found if known.status.is_infeasible), best)
    prover, bound = _tightest(found, best, sense)
    status, limit = best.status, best.limit
    if best.plan is not None and best.term is None:
        proven = near(best.objective, bound) or any(
            known.status is Status.OPTIMAL and _ties(known, best) for _, known in found
        )
        status = Status.OPTIMAL if proven else Status.FEASIBLE
        limit = None if proven else Limit.INTERRUPT if ended.interrupted else best.limit
    if limit is Limit.INTERRUPT and not ended.interrupted:
        limits, stopped = (known.limit for _, known in found), Limit.TIME if ended.timed else Limit.OTHER
        limit = next((one for one in limits if one not in (None, Limit.INTERRUPT)), stopped)
    words = [f"plan by {planner}"] if best.plan is not None else []
    words += [f"bound by {prover}"] if prover else []
    unimproved = best.unimproved and status is Status.FEASIBLE
    words += [UNIMPROVED] if unimproved else []
    words += [f"{name} failed: {_said(error)}" for name, error in ended.failures]
    by_heuristic = next((known.certificate for name, known in found if name == prover), None)
    return replace(
        best,
        solver=AUTO,
        status=status,
        bound=bound,
        limit=limit,
        unimproved=unimproved,
        message="; ".join(words) or best.message,
        versions={name: text for _, known in found for name, text in known.versions.items()},
        params=params.differences(),
        strategy={
            **best.strategy,
            **strategy.facts,
            "plan_by": planner if best.plan is not None else "",
            "bound_by": prover,
        },
        events=ended.events,
        certificate=by_heuristic,
    )


def _said(error: BaseException) -> str:
    """An error of a portfolio's member in words; an unexpected one with its type."""
    return str(error) if isinstance(error, MastOptError) else f"{type(error).__name__}: {error}"


def _rank(solution: Solution[Any], sense: Sense, order: list[str]) -> tuple[Any, ...]:
    """Order of the portfolio's solutions: plans before none; then term by term, all that any member came to and to the
    slack of later terms, then by how many it came to; or by the objective."""
    if solution.plan is None or solution.objective is None or solution.verdict is None:
        return (1,)
    if order:
        return (0, *(float(f"{solution.verdict.terms[term]:.6g}") for term in order), -len(solution.stages))
    return (0, sense.minimised(solution.objective))


def _ties(one: Solution[Any], best: Solution[Any]) -> bool:
    """Whether a plan of the portfolio is as good as the best; the other solver may have been given it."""
    if one.objective is None or best.objective is None or best.stages:
        return one is best
    return math.isclose(one.objective, best.objective, rel_tol=AGREEMENT, abs_tol=ROUND_OFF)


def _tightest(found: list[tuple[str, Solution[Any]]], best: Solution[Any], sense: Sense) -> tuple[str, float | None]:
    """Member that proved most of the objective of the best plan, and its bound; a term's bound is that of the plan's
    own solve."""
    if best.term is not None:
        return next(name for name, known in found if known is best), best.bound
    proofs = [(name, known.bound) for name, known in found if known.bound is not None and known.term is None]
    if not proofs:
        return "", None
    name, bound = max(proofs, key=lambda one: sense.minimised(one[1]))
    return name, bound if best.objective is None else sense.within(bound, best.objective)
