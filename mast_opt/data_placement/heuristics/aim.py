"""What one search is after: the weights of its terms, and the values that terms before must keep."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mast_opt.data_placement.plan import Plan
from mast_opt.data_placement.problem import DataPlacement
from mast_opt.data_placement.verify import verify
from mast_opt.mip import Mip

EARLIER = 1e3
"""Weight of the terms that come before, when the objective is lexicographic."""


@dataclass(frozen=True)
class Aim:
    """A weight for every term, and the most that the terms before may be: none without a lexicographic objective."""

    weights: Mapping[str, float]
    caps: Mapping[str, float]

    def stated(self, mip: Mip) -> Mip:
        """The program with this aim for its objective and its last rows."""
        for term, most in self.caps.items():
            mip = mip.limit_term(term, most)
        return mip.minimise(self.weights)

    def worth(self, problem: DataPlacement, plan: Plan) -> float:
        """What is minimised, as the verifier has it; infinite for a plan that breaks a rule or a cap."""
        verdict = verify(problem, plan)
        if not verdict.ok or any(verdict.terms[term] > most for term, most in self.caps.items()):
            return math.inf
        return sum(weight * verdict.terms[term] for term, weight in self.weights.items())
