"""Incumbent of a method: the best plan so far and the best proven bound, in the policy's own sense."""

from collections.abc import Mapping

from mast_opt.core.sense import Sense
from mast_opt.core.solve_result import ROUND_OFF
from mast_opt.problems.kind.problem_data import Floats
from mast_opt.problems.resource_allocation.formulation.feasibility import within_limits
from mast_opt.problems.resource_allocation.methods.prices import Prices
from mast_opt.problems.resource_allocation.plan import Plan
from mast_opt.problems.resource_allocation.problem import ResourceAllocation
from mast_opt.problems.resource_allocation.verification.price_bound import certified_bound
from mast_opt.problems.resource_allocation.verification.verifier import verify
from mast_opt.problems.search.interface import SearchMonitor

NEAR_0 = 0.1
"""Share of the gap scale that replaces smaller objectives, since linear programs are solved to nine digits."""


class Incumbent:
    """Best plan and bound of one solve so far."""

    def __init__(self, problem: ResourceAllocation, watch: SearchMonitor) -> None:
        self._problem, self._watch = problem, watch
        self.plan: Plan | None = None
        self.objective: float | None = None
        self.bound: float | None = None
        self.prices: Prices | None = None
        """Prices that prove the bound; None if a solver states it."""

    @property
    def sense(self) -> Sense:
        """Sense of the policy that allocates resources."""
        return self._problem.sense

    def offer(self, share: Floats) -> Plan:
        """Make a plan of ``share`` [C] feasible and return it; keep it if it is valid and better than the incumbent."""
        plan = Plan.of_shares(self._problem, within_limits(self._problem, share))
        verdict = verify(self._problem, plan)
        if verdict.ok and (self.objective is None or self._less(verdict.objective, self.objective)):
            self.plan, self.objective = plan, verdict.objective
            self._watch.report(objective=verdict.objective)
        return plan

    def settle(self, plan: Plan) -> bool:
        """Make this plan the incumbent allocation if it is valid. The caller knows that it is better in a respect that
        the objective does not measure.
        """
        verdict = verify(self._problem, plan)
        if verdict.ok:
            self.plan, self.objective = plan, verdict.objective
        return verdict.ok

    def prove(self, prices: Prices) -> float:
        """Compute the bound that ``prices`` prove on an allocation; keep it if it is tighter."""
        arrays: Mapping[str, Floats] = prices.arrays()
        bound = certified_bound(self._problem, arrays)
        if self._claimed(bound):
            self.prices = prices
        return bound

    def claim(self, bound: float | None) -> None:
        """Keep a bound on the allocation that a solver states, if it is tighter."""
        if bound is not None and self._claimed(bound):
            self.prices = None

    def gap(self) -> float:
        """Gap of the allocation relative to the objective; infinite while objective or bound is missing.

        With a gap scale S (``nash``: Σ weight) it is relative to at most S, and to at least ``NEAR_0`` of S: a sum of
        logarithms depends on the unit of the rates, and the gap of their mean, gap/S, does not.
        """
        if self.objective is None or self.bound is None:
            return float("inf")
        size, scale = abs(self.objective), self._problem.gap_scale
        over = min(max(size, NEAR_0 * scale), scale) if scale else size
        return max(0.0, self.sense.minimised(self.objective - self.bound)) / max(over, ROUND_OFF)

    def _claimed(self, bound: float) -> bool:
        """Whether a bound on the allocation is finite and tighter than the present one; if so, keep it."""
        if self.sense.minimised(bound) == float("inf") or abs(bound) == float("inf"):
            return False
        if self.bound is not None and not self._less(self.bound, bound):
            return False
        self.bound = bound
        self._watch.report(bound=bound)
        return True

    def _less(self, one: float, other: float) -> bool:
        """Whether one allocation's objective value is better than another."""
        return self.sense.minimised(one) < self.sense.minimised(other)
