"""Question of purchases (``buy``): offers, target and budget, and the answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Generic

import numpy as np

from mast_opt.core.arguments import refuse
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import Status
from mast_opt.core.summary import Summarised, Summary
from mast_opt.core.verdict import Verdict, Violation
from mast_opt.core.wording import plain
from mast_opt.problems.kind.analysis_hooks import Expansion, Offer, Steps
from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.kind.interfaces import FormulationInterface
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.origin import made_for
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.search.params import Params, parameter

SLACK = 1e-6
"""Part of the price by which a bound may be above it through rounding."""


@dataclass(frozen=True)
class BuyParams(Params):
    """Parameters of ``buy``: how its time is divided, and how its heuristic searches."""

    first_share: ClassVar[float] = 0.2
    """Part of the remaining time for a plan without any purchase, and then for one with every purchase. Set by hand: a
    plan that need not be good is found soon or hardly at all."""

    purchase_share: float = parameter(
        0.7,
        "Part of the time limit that a MIP solver has for the purchases; the plan gets the rest.",
        "Set by hand: the plan is the easier program, as its purchases are fixed.",
        above=0.0,
        high=1.0,
    )
    plan_gap: float = parameter(
        1e-3,
        "Least gap to which the plan for the purchases is solved.",
        "Set by hand: the plan shows that the purchases suffice; how good it is otherwise is for 'solve'.",
        low=0.0,
    )
    rounds: int = parameter(
        8, "Plans that a heuristic makes, each with what the last one lacked.", "Set by hand.", low=1
    )
    bound_share: float = parameter(
        0.2, "Part of the time limit that a heuristic's bound has.", "Set by hand.", above=0.0, high=1.0
    )
    overload_weight: ClassVar[float] = 1000.0
    """Weight of overload while a heuristic looks for a plan at the target. Set by hand, so that it outweighs every
    other term of the default weights but remote reads and refused work."""


OUT_OF_REACH = "the target is out of reach, even with everything that may be bought"


@dataclass(frozen=True)
class Purchase:
    """Steps bought of one offer."""

    offer: Offer
    steps: int

    @property
    def amount(self) -> float:
        """Amount bought of an offer, in its units."""
        return self.offer.step * self.steps

    @property
    def usd(self) -> Fraction:
        """Price of the steps bought of this offer of purchases."""
        return self.offer.usd * self.steps


@dataclass(frozen=True)
class Bill:
    """USD a month, for GPUs and storage in use and remote reads; None where there are no prices."""

    today: float | None = None
    """Amount of the present state; None also where it is not known where all work runs."""
    after: float | None = None
    """Amount of the plan with the purchase."""
    bought: float | None = None
    """Amount of what is bought, while all of it is in use."""


@dataclass(frozen=True, eq=False, repr=False)
class Purchases(Summarised, Generic[PlanT]):
    """The answer of ``buy``."""

    kind: str
    status: Status
    """OPTIMAL: nothing cheaper will do. FEASIBLE: it will do, and ``bound_usd`` is proven. INFEASIBLE: proven, with
    ``least_usd`` where only the budget is too small. NO_SOLUTION: none was found in time."""
    target: Fraction
    budget_usd: Fraction | None
    bought: tuple[Purchase, ...] = ()
    """Purchases to make, the most expensive first."""
    usd: Fraction | None = None
    """Price of it all; None without a plan."""
    bound_usd: float | None = None
    """Proven: no purchase that reaches the target is cheaper."""
    least_usd: Fraction | None = None
    """The least budget that works, where the given one is too small; proven if ``least_proven``."""
    least_proven: bool = False
    worst_before: Fraction | None = None
    """The worst ratio of the plan that was given; None without one."""
    worst_after: Fraction | None = None
    instance: Problem[PlanT] | None = None
    """The instance after the purchase."""
    plan: PlanT | None = None
    """A plan of that instance at the target."""
    bill: Bill = Bill()
    """Running costs, next to the price of the purchase."""
    message: str = ""
    params: BuyParams = field(default_factory=BuyParams)
    """Parameters with which the question was answered."""

    def _summary(self) -> Summary:
        """Summary of the purchases: target, price, bound, and the steps bought of each offer."""
        facts = (
            ("kind", self.kind),
            ("status", self.status.value),
            ("target", plain(float(self.target))),
            ("usd", plain(None if self.usd is None else float(self.usd))),
            ("bound_usd", plain(self.bound_usd)),
        )
        rows = tuple(
            (one.offer.name, f"{one.steps:,}", plain(one.amount), plain(float(one.usd))) for one in self.bought
        )
        return Summary("Purchases", facts, ("offer", "steps", "amount", "USD"), rows)


def params_given(given: BuyParams | Mapping[str, object] | None) -> BuyParams:
    """Parameters of ``buy`` as an object. Raises UsageError for what are none."""
    if given is None or isinstance(given, BuyParams):
        return given or BuyParams()
    if not isinstance(given, Mapping):
        raise refuse("params", given, 'BuyParams, or a mapping as in {"rounds": 4}')
    return BuyParams.of(given)


class Question:
    """A question about purchases: the target, and the steps that may be bought."""

    def __init__(
        self,
        kind: Kind[Any, Any],
        hooks: Expansion,
        problem: Problem[Any],
        ratio: Fraction,
        tier: int | None,
        budget: Fraction | None,
        within_days: int | None,
        params: BuyParams,
    ) -> None:
        self.kind, self.hooks, self.stated, self.ratio, self.budget = kind, hooks, problem, ratio, budget
        self.params = params
        self.problem = hooks.served(problem)
        self.tier = hooks.tier(problem, tier)
        self.offers = hooks.offers(problem)
        in_time = [within_days is None or one.lead_days <= within_days for one in self.offers]
        steps = [one.most_steps if timely else 0 for one, timely in zip(self.offers, in_time, strict=True)]
        self.most_steps: Steps = np.array(steps, np.int64)

    @cached_property
    def kind_at_target(self) -> Kind[Any, Any]:
        """The kind with the target as one more hard limit of plans, so that rounded shares do not pass it."""
        verification = replace(self.kind.verification, verify=self.judged)
        return replace(self.kind, verification=verification, formulation=self._formulation_at_target)

    @property
    def _formulation_at_target(self) -> FormulationInterface[Any, Any]:
        """How the kind is formulated, with the target as a hard limit."""
        formulation = self.kind.formulation

        def within(problem: Problem[Any]) -> Formulation[Any]:
            found: Formulation[Any] = self.hooks.within(problem, self.ratio, self.tier)
            return found

        return replace(formulation, formulations={**formulation.formulations, "base": within})

    def judged(self, instance: Problem[Any], plan: Any) -> Verdict:  # noqa: ANN401 - a plan of the kind
        """The verdict on a plan, with the target as one more hard limit."""
        verdict = self.kind.verification.verify(instance, plan)
        over = self.hooks.worst(instance, plan, self.tier) - self.ratio if verdict.ok else Fraction(0)
        broken = (Violation("target", (), float(over), float(self.ratio)),) if over > 0 else ()
        return replace(verdict, violations=(*verdict.violations, *broken))

    def price(self, steps: Steps) -> Fraction:
        """Price of so many steps of purchases, in USD."""
        return sum((one.usd * int(n) for one, n in zip(self.offers, steps.tolist(), strict=True)), Fraction(0))

    def nothing(self, status: Status, message: str, bound: float | None = None) -> Purchases[Any]:
        """Answer to the question of purchases without any."""
        return Purchases(self.kind.name, status, self.ratio, self.budget, bound_usd=bound, message=message)

    def answer(self, steps: Steps, plan: object, bound: float | None, proven: bool, message: str) -> Purchases[Any]:
        """The purchases with these steps, or that the budget is too small for them."""
        usd = self.price(steps)
        bound = None if bound is None else max(0.0, min(bound, float(usd)))
        if self.budget is not None and usd > self.budget:
            beyond = bound is not None and bound > float(self.budget) * (1 + SLACK)
            words = f"the budget of {plain(float(self.budget))} USD is too small: {plain(float(usd))} USD "
            words += "is the least that works" if proven else "is the least that was found to work"
            status = Status.INFEASIBLE if proven or beyond else Status.NO_SOLUTION
            return replace(self.nothing(status, words, bound), least_usd=usd, least_proven=proven)
        rows = [Purchase(one, int(n)) for one, n in zip(self.offers, steps.tolist(), strict=True) if n]
        after = self.hooks.bought(self.stated, steps)
        return replace(
            self.nothing(Status.OPTIMAL if proven else Status.FEASIBLE, message, bound),
            bought=tuple(sorted(rows, key=lambda row: -row.usd)),
            usd=usd,
            worst_after=self.hooks.worst(after, plan, self.tier),
            instance=after,
            plan=made_for(after, plan),
            bill=replace(self.bill(steps, plan), today=self.hooks.bill(self.stated, None)),
        )

    def bill(self, steps: Steps, plan: object) -> Bill:
        """The bill of a plan once so many steps are bought, without that of today."""
        after, of_use = self.hooks.bought(self.stated, steps), self.hooks.bill_of_use(self.stated, steps)
        return Bill(after=self.hooks.bill(after, plan), bought=of_use)


def positive(name: str, value: Fraction | float) -> Fraction:
    """Argument of ``buy`` as a fraction. Raises UsageError for a number that is not above 0."""
    number = amount(name, value)
    if number == 0:
        raise UsageError(f"{name} is {value}; expected a number above 0")
    return number


def amount(name: str, value: Fraction | float) -> Fraction:
    """Argument of ``buy`` as a fraction, decimals as they are written. Raises UsageError for a negative number."""
    number = Fraction(str(value)) if isinstance(value, float) else Fraction(value)
    if number < 0:
        raise UsageError(f"{name} is {value}; expected a number of at least 0")
    return number
