"""A policy's program: the arrays of a resource allocation, and what solving it gives."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Unpack

from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_limits import SolveLimits
from mast_opt.core.solve_result import Status
from mast_opt.core.verdict import Conflict
from mast_opt.planner.solving import solve
from mast_opt.problems.resource_allocation import ResourceAllocation
from mast_opt.problems.resource_allocation.arrays import Columns

GAP = 1e-6
"""Relative gap of an allocation unless the caller states one."""


@dataclass(frozen=True)
class Allocation:
    """Solution of a program. C counts configurations, J jobs, in the order of the tables.

    ``share``, ``rate`` and ``kept`` are None exactly when there is no allocation: ``status`` and ``conflicts`` say why.
    """

    status: Status
    objective: float | None
    bound: float | None
    """Proven limit on the objective, on its other side in the policy's own sense; None if unknown."""
    share: FloatArray | None
    """[C] share of the time that each configuration runs."""
    rate: FloatArray | None
    """[J] what that makes of each job's rate."""
    kept: FloatArray | None
    """[J] the part of its rate that a mechanism leaves to each job; 1 without one."""
    prices: Mapping[str, FloatArray] | None = None
    """Prices of limits, where they prove the bound: ``resource_price`` [K], ``floor_price`` [J], …; ``mast-opt verify``
    checks such a certificate."""
    conflicts: tuple[Conflict, ...] = ()
    """Limits seen to contradict one another before a solver ran."""


@dataclass(frozen=True)
class Program:
    """Arrays and header of a resource allocation, as ``ResourceAllocation.from_arrays`` takes them."""

    policy: str
    resources: Columns
    jobs: Columns
    configurations: Columns
    members: Columns
    uses: Columns
    groups: Columns | int = 0
    whole: bool = False
    """True if every share has to be 0 or 1."""
    inside: str = ""
    """Policy inside the groups of a hierarchical one."""
    mechanism: str = ""

    def problem(self, name: str = "instance") -> ResourceAllocation:
        """The policy's program as a validated instance. Raises InstanceError, which lists every fault."""
        fields = {field: getattr(self, field) for field in self.__dataclass_fields__}
        return ResourceAllocation.from_arrays(**fields, name=name)

    def solve(self, solver: str = "highs", **limits: Unpack[SolveLimits]) -> Allocation:
        """The allocation that a solver finds for the policy's program; see ``mast_opt.solve`` for the arguments and
        what it raises.
        """
        given: SolveLimits = {"gap": GAP, **limits}
        solution = solve(self.problem(), solver, **given)
        plan = solution.plan
        return Allocation(
            solution.status,
            solution.objective,
            solution.bound,
            None if plan is None else plan.share,
            None if plan is None else plan.rate,
            None if plan is None else plan.kept,
            None if solution.certificate is None else solution.certificate.arrays(),
            solution.conflicts,
        )
