"""Objective of one lexicographic stage of tetris: weights of its terms, and caps on earlier terms."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mast_opt.core.verdict import Verdict
from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.data_placement.verification.verifier import verify
from mast_opt.problems.mip import Mip

GPU_TERMS = frozenset(("peak", "overload", "idle"))
WORK_TERMS = GPU_TERMS | {"moved_work", "retyped_work", "unserved"}
"""Those that depend on where work runs, and on nothing else."""


@dataclass(frozen=True)
class StageObjective:
    """A weight for every term, and the most that the terms before may be: none without a lexicographic objective."""

    weights: Mapping[str, float]
    caps: Mapping[str, float]

    def stated(self, mip: Mip) -> Mip:
        """The program with this objective of tetris' stage for its objective and its last rows."""
        return self._capped(mip).minimise(self.weights)

    def staged(self, mip: Mip) -> Mip:
        """The program of tetris' stage with the terms before only capped by rows, and no weight on them beyond that."""
        return self._capped(mip).minimise(self._own)

    def _capped(self, mip: Mip) -> Mip:
        """The program of tetris' stage with rows that cap the terms before."""
        for term, most in self.caps.items():
            mip = mip.limit_term(term, most)
        return mip

    @property
    def _own(self) -> dict[str, float]:
        """Weights of the terms in tetris' stage without those before."""
        return {term: 0.0 if term in self.caps else weight for term, weight in self.weights.items()}

    @property
    def gpus_alone(self) -> bool:
        """Whether only GPU terms of tetris' stage have a weight of their own, so that what is read does not count."""
        return all(term in GPU_TERMS for term, weight in self._own.items() if weight)

    @property
    def work_alone(self) -> bool:
        """Whether only terms count in tetris' stage, and only terms have caps, that depend on where work runs."""
        return self.caps.keys() <= WORK_TERMS and all(term in WORK_TERMS for term, w in self._own.items() if w)

    def within_caps(self, verdict: Verdict) -> bool:
        """Whether in tetris' stages every earlier term of the plan that was judged is within its cap."""
        return all(verdict.terms[term] <= most for term, most in self.caps.items())

    def shown(self, verdict: Verdict) -> float:
        """Value minimised in tetris' stage of a judged plan, without the terms before."""
        return sum(weight * verdict.terms[term] for term, weight in self._own.items())

    def worth(self, problem: DataPlacement, plan: Plan) -> float:
        """Minimised value of a plan, as the verifier has it; infinite for a plan that breaks a rule or a cap."""
        verdict = verify(problem, plan)
        if not verdict.ok or not self.within_caps(verdict):
            return math.inf
        return sum(weight * verdict.terms[term] for term, weight in self.weights.items())
