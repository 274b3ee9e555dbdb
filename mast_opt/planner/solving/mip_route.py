"""MIP route of a solve, through a backend: formulation, stages, decoding, verification, repair."""

import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import BackendError, VerificationError
from mast_opt.core.solve_result import AGREEMENT, Event, Limit, SolveParams, SolveResult, Status, within_gap
from mast_opt.core.verdict import Verdict
from mast_opt.planner.solving.clock import Clock
from mast_opt.planner.solving.exchange import PlanExchange
from mast_opt.planner.solving.solution import Stage
from mast_opt.problems.backends.base import Backend
from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.mip import Mip
from mast_opt.problems.search.lexicographic import with_slack

REPAIR_ROUNDS = 6
"""Repairs of one row after which the solver is not believed any more."""
REPAIR_GROWTH = 10.0
"""A limit that is broken again is pulled in so many times further: what a plan is over by may be far less than what
the solver does not see, which is about a millionth of the limit."""
LAST_REPAIR_S = 2.0
"""Seconds for the repair of a plan that an interrupt has left."""
FIRST_SHARE = 0.8
"""Share of the time for the continuous program where rounding its shares may take more."""
FAILURES = (BackendError, VerificationError, MemoryError)
"""Failures in which a solve may end without costing a plan that there is already."""


@dataclass(frozen=True)
class Answer:
    """Answer of the exact route."""

    status: Status
    plan: Any | None
    verdict: Verdict | None
    objective: float | None
    bound: float | None
    limit: Limit | None
    message: str
    stages: tuple[Stage, ...] = ()
    term: str | None = None
    """The term of a lexicographic objective that ``objective`` and ``bound`` are of."""


@dataclass(frozen=True)
class _Checked:
    """A backend's result with its plan verified (plan and verdict are None without a solution)."""

    result: SolveResult
    plan: Any | None
    verdict: Verdict | None


class ExactSolve:
    """One problem, one backend, one clock."""

    def __init__(
        self,
        kind: Kind[Any, Any],
        problem: Problem[Any],
        backend: Backend,
        params: SolveParams,
        clock: Clock,
        offers: PlanExchange | None = None,
        others: PlanExchange | None = None,
    ) -> None:
        self._offers = offers
        self._others = others
        self._kind = kind
        self._problem = problem
        self._backend = backend
        self._params = params
        self._clock = clock

    def run(self, formulate: Callable[[Any], Formulation[Any]], start: object) -> Answer:
        """Minimise, by the backend, the problem's objective, weighted or lexicographic."""
        with self._clock.phase("formulate"):
            formulation = formulate(self._problem)
            if start is not None:
                self._params = replace(self._params, start=formulation.encode(start))
        self._params = replace(self._params, time_limit_s=self._clock.budget_s())
        if self._problem.objective.lexicographic:
            return self._lexicographic(formulation)
        if self._others is not None:
            self._params = replace(self._params, incumbents=partial(_offered, self._others, formulation))
        if self._offers is not None:
            self._params = replace(self._params, on_solution=partial(_offer, self._offers, formulation))
        return self._weighted(formulation)

    def within(
        self, formulation: Formulation[Any], weights: Mapping[str, float], caps: Mapping[str, float], start: object
    ) -> Answer:
        """Minimise, by the backend, a weighted sum of terms while other terms stay at most at the given values
        (ε-constraints).
        """
        params = replace(self._params, time_limit_s=self._clock.budget_s())
        if start is not None:
            params = replace(params, start=formulation.encode(start))

        def stated(mip: Mip) -> Mip:
            for name, cap in caps.items():
                mip = mip.limit_term(name, cap)
            return mip.minimise(weights)

        def value(verdict: Verdict) -> float:
            return sum(weight * verdict.terms[name] for name, weight in weights.items())

        checked = self._checked(formulation, stated, params, value)
        return _answer(checked, value(checked.verdict) if checked.verdict else None, params.gap)

    def _weighted(self, formulation: Formulation[Any]) -> Answer:
        """Answer for a weighted objective."""
        checked = self._checked(formulation, lambda mip: mip, self._params, lambda verdict: verdict.objective)
        return _answer(checked, checked.verdict.objective if checked.verdict else None, self._params.gap)

    def _lexicographic(self, formulation: Formulation[Any]) -> Answer:
        """Answer for an order of terms: a solve for each, which keeps the plan before it where it finds none."""
        order = self._problem.objective.order
        caps: dict[str, float] = {}
        stages: list[Stage] = []
        answers: list[Answer] = []
        params, failed = self._params, ""
        for position, term in enumerate(order):

            def stated(mip: Mip, term: str = term) -> Mip:
                for name, cap in caps.items():
                    mip = mip.limit_term(name, cap)
                return mip.minimise({term: 1.0})

            params = replace(
                params,
                time_limit_s=self._clock.budget_s(1 / (len(order) - position)),
                on_event=_labelled(self._params.on_event, term),
            )
            try:
                checked = self._checked(formulation, stated, params, partial(_term, term))
            except FAILURES as failure:
                if not answers:
                    raise
                failed = f"{term} was given up: {str(failure) or type(failure).__name__}"
                answer = replace(answers[-1], limit=Limit.OTHER)
                stages.append(Stage(term, None, None))
                break
            kept = checked.verdict is None and bool(answers)
            if kept:
                checked = replace(checked, plan=answers[-1].plan, verdict=answers[-1].verdict)
            value = checked.verdict.terms[term] if checked.verdict else None
            answer = replace(_answer(checked, value, params.gap), term=term)
            answer = replace(answer, status=Status.FEASIBLE) if kept else answer
            stages.append(Stage(term, value, answer.bound))
            answers.append(answer)
            if value is None or self._params.cancel.is_set():
                break
            caps[term] = with_slack(value)
            params = replace(params, start=formulation.encode(checked.plan))
        last = answers[-1]
        headline = next((answer for answer in answers if answer.status is not Status.OPTIMAL), last)
        unfinished = len(answers) < len(order) and last.plan is not None
        if unfinished and headline.status is Status.OPTIMAL:
            stopped = Limit.INTERRUPT if self._params.cancel.is_set() else answer.limit or Limit.OTHER
            headline = replace(last, status=Status.FEASIBLE, limit=stopped)
        message = failed or headline.message
        return replace(headline, plan=last.plan, verdict=last.verdict, stages=tuple(stages), message=message)

    def _checked(
        self,
        formulation: Formulation[Any],
        state: Callable[[Mip], Mip],
        params: SolveParams,
        value: Callable[[Verdict], float],
    ) -> _Checked:
        """Solve, decode and verify; where rounding of shares spoils the plan, settle them as whole thousandths."""
        kept_s = _kept_s(params, self._clock)
        if formulation.exact is not None:
            params = replace(params, time_limit_s=self._clock.budget_s(FIRST_SHARE, kept_s))
        checked = self._solved(formulation, state, params)
        if checked.verdict is None or formulation.exact is None or self._good(checked, checked, value):
            return checked
        with self._clock.phase("formulate"):
            exact = formulation.exact()
            held = np.flatnonzero(formulation.mip.integral)
            whole = np.rint(exact.encode(checked.plan)[held])
        on_event = _bounded(params.on_event, checked.result.bound)
        params = replace(params, incumbents=None, on_solution=None)
        half = replace(params, start=None, time_limit_s=self._clock.budget_s(0.5, kept_s), on_event=on_event)
        valid = checked if checked.verdict.ok else None
        half = half if valid is not None else _despite_interrupt(half)
        repaired = self._solved(exact, lambda mip: state(mip).fix(held, whole), half, valid)
        best = min(
            (known for known in (checked, repaired) if known.verdict is not None and known.verdict.ok),
            key=lambda known: value(known.verdict) if known.verdict else math.inf,
            default=None,
        )
        unproven = checked.result.status is not Status.OPTIMAL
        if best is not None and (unproven or self._good(best, checked, value) or self._params.cancel.is_set()):
            return _with_proof(best, checked.result, checked.result.bound)
        start = None if best is None else exact.encode(best.plan)
        params = replace(params, start=start, time_limit_s=self._clock.budget_s(1.0, kept_s))
        again = self._solved(exact, state, params, best)
        bound = max((b for b in (checked.result.bound, again.result.bound) if b is not None), default=None)
        return _with_proof(best if again.verdict is None and best is not None else again, again.result, bound)

    def _good(self, known: _Checked, proven: _Checked, value: Callable[[Verdict], float]) -> bool:
        """Whether a plan is valid, and as good as the solver's proof of the continuous program asks for; without a
        proof, as good as what the solver found."""
        if known.verdict is None or not known.verdict.ok:
            return False
        result = proven.result
        least = result.bound if result.status is Status.OPTIMAL else result.objective
        return within_gap(value(known.verdict), least, self._params.gap)

    def _solved(
        self,
        formulation: Formulation[Any],
        state: Callable[[Mip], Mip],
        params: SolveParams,
        known: _Checked | None = None,
    ) -> _Checked:
        """``_attempt``, or what is known already where that fails."""
        try:
            return self._attempt(formulation, state, params)
        except FAILURES:
            if known is None:
                raise
            return known

    def _attempt(self, formulation: Formulation[Any], state: Callable[[Mip], Mip], params: SolveParams) -> _Checked:
        """Solve and verify; rows that the plan breaks by solver tolerance are tightened and solved again."""
        mip = state(formulation.mip)
        kept_s = _kept_s(params, self._clock)
        slack: dict[str, float] = {}
        broken: Counter[str] = Counter()
        bound: float | None = None
        interrupted = False
        while True:
            with self._clock.phase("solve"):
                result = self._backend.solve(mip, params)
            if result.x is None:
                if slack:
                    limit = Limit.INTERRUPT if interrupted else result.limit or Limit.OTHER
                    result = replace(result, status=Status.NO_SOLUTION, bound=bound, limit=limit)
                return _Checked(result, None, None)
            bound = result.bound if not slack else bound
            with self._clock.phase("verify"):
                plan = formulation.decode(result.x)
                verdict = self._kind.verification.verify(self._problem, plan)
            if verdict.ok or formulation.exact is not None:
                self._agree(mip, result, formulation, plan, verdict)
                return _Checked(replace(result, bound=bound), plan, verdict)
            for violation in verdict.violations:
                broken[violation.name] += 1
                if broken[violation.name] > REPAIR_ROUNDS:
                    raise VerificationError(
                        f"after {REPAIR_ROUNDS} repairs {self._backend.name} still returns plans that break {violation}"
                    )
                pulled = REPAIR_GROWTH * slack.get(violation.name, 0.0)
                slack[violation.name] = pulled + 2 * violation.amount
            interrupted = interrupted or params.cancel.is_set()
            try:
                mip = state(formulation.mip.tighten(slack))
                if interrupted:
                    held = np.flatnonzero(mip.integral)
                    mip = mip.fix(held, np.rint(result.x[held]))
            except (KeyError, ValueError) as error:
                raise VerificationError(
                    f"{self._backend.name} calls a plan feasible that breaks {verdict.violations[0]}"
                ) from error
            on_event = _bounded(params.on_event, bound)
            left_s = self._clock.budget_s(1.0, kept_s)
            params = replace(
                params, start=None, incumbents=None, on_solution=None, time_limit_s=left_s, on_event=on_event
            )
            params = _despite_interrupt(params)

    def _agree(
        self, mip: Mip, result: SolveResult, formulation: Formulation[PlanT], plan: PlanT, verdict: Verdict
    ) -> None:
        """The decoded plan, put back into the program, must not cost more than the solver says."""
        if formulation.exact is not None or result.objective is None:
            return
        value = mip.objective(formulation.encode(plan))
        if value - result.objective > 10 * AGREEMENT * max(1.0, abs(result.objective)):
            raise VerificationError(
                f"{self._backend.name} reports objective {result.objective:.9g}; the plan it gave costs {value:.9g}"
            )


def _despite_interrupt(params: SolveParams) -> SolveParams:
    """Parameters of a short repair where the solve has been interrupted: the interrupt is to keep what was found."""
    if not params.cancel.is_set():
        return params
    left_s = LAST_REPAIR_S if params.time_limit_s is None else min(LAST_REPAIR_S, params.time_limit_s)
    return replace(params, cancel=threading.Event(), time_limit_s=left_s)


def _offer(exchange: PlanExchange, formulation: Formulation[Any], objective: float, x: FloatArray) -> None:
    """Offer an incumbent of the backend to the other solvers as a plan."""
    exchange.offer(objective, lambda: formulation.decode(x))


def _offered(exchange: PlanExchange, formulation: Formulation[Any]) -> FloatArray | None:
    """Columns of a plan that another solver has offered; None where there is none."""
    plan = exchange.take()
    return None if plan is None else formulation.encode(plan)


def _with_proof(checked: _Checked, of: SolveResult, bound: float | None) -> _Checked:
    """The plan with a bound that holds for the whole program, and with what stopped the proof; OPTIMAL is for
    ``_answer`` to say again."""
    result = replace(checked.result, limit=of.limit)
    if bound is not None and result.objective is not None:
        bound = min(bound, result.objective)
    return replace(checked, result=replace(result, bound=bound))


def _kept_s(params: SolveParams, clock: Clock) -> float:
    """Seconds that the caller's limit leaves for others."""
    return 0.0 if params.time_limit_s is None else max(0.0, clock.remaining_s - params.time_limit_s)


def _answer(checked: _Checked, objective: float | None, gap: float) -> Answer:
    """The answer of a MIP solve with the verifier's objective; OPTIMAL only if that is within the asked gap of the
    bound.

    Every term is a penalty ≥ 0, so 0 is a bound where the solver has a worse one.
    """
    result = checked.result
    status, limit = result.status, result.limit
    bound = None if result.bound is None else max(0.0, result.bound)
    bound = bound if objective is None or bound is None else min(bound, objective)
    if status is Status.OPTIMAL and not within_gap(objective, bound, gap, claimed=True):
        status = Status.FEASIBLE
    limit = None if status is Status.OPTIMAL else limit
    return Answer(status, checked.plan, checked.verdict, objective, bound, limit, result.message)


def _term(name: str, verdict: Verdict) -> float:
    """Value of a stage's term in a verdict, for a lexicographic solve."""
    return verdict.terms[name]


def _labelled(on_event: Callable[[Event], None] | None, stage: str) -> Callable[[Event], None] | None:
    """Listener for the events of one stage of a solve, which names the stage; None without a listener."""
    if on_event is None:
        return None
    return lambda event: on_event(replace(event, stage=stage))


def _bounded(on_event: Callable[[Event], None] | None, bound: float | None) -> Callable[[Event], None] | None:
    """Listener for events of a narrower program, which reports them with what is proven of the whole one."""
    if on_event is None:
        return None
    return lambda event: on_event(replace(event, bound=bound))
