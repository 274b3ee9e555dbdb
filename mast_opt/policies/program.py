"""A policy's program: tables of a resource allocation, and what solving them gives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_result import Status
from mast_opt.core.verdict import Conflict
from mast_opt.io import from_tables
from mast_opt.solving import solve

if TYPE_CHECKING:
    from mast_opt.resource_allocation import ResourceAllocation

Columns = Mapping[str, Sequence[str] | Sequence[bool] | FloatArray]
"""Name of a column → its cells."""
_TOKEN = re.compile(r"(?<![A-Za-z0-9])[a-z][0-9]+(?![A-Za-z0-9])")
"""A letter and a position."""


@dataclass(frozen=True)
class Allocation:
    """What solving a program gives. C counts configurations, J jobs, in the order of the tables.

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
    """Of limits, where they prove the bound: ``resource_price`` [K], ``floor_price`` [J], …; ``mast-opt verify`` checks
    such a certificate."""
    conflicts: tuple[Conflict, ...] = ()
    """Limits seen to contradict one another before a solver ran."""


@dataclass(frozen=True)
class Program:
    """Tables and header of a resource allocation, as ``docs/problems/resource-allocation.md`` defines them."""

    policy: str
    resources: Columns
    jobs: Columns
    configurations: Columns
    members: Columns
    uses: Columns
    groups: Columns = field(default_factory=dict)
    """Empty where there are no groups."""
    whole: bool = False
    """Is every share 0 or 1?"""
    inside: str | None = None
    """Policy inside the groups of a hierarchical one."""
    mechanism: str | None = None

    def problem(self, name: str = "instance") -> ResourceAllocation:
        """The validated instance. Raises InstanceError, which lists every fault."""
        tables = {
            "resources": self.resources,
            "jobs": self.jobs,
            "configurations": self.configurations,
            "members": self.members,
            "uses": self.uses,
            "groups": self.groups,
        }
        header = {"policy": self.policy, "inside": self.inside, "mechanism": self.mechanism}
        return from_tables(
            "resource-allocation",
            {table: columns for table, columns in tables.items() if columns},
            name=name,
            rules={"shares": "whole" if self.whole else "fractional"},
            objective={key: value for key, value in header.items() if value is not None},
        )

    def named(self, **labels: Sequence[str]) -> Program:
        """The program with labels of the caller's, where ``tables`` gave a letter and a position.

        Args:
            labels: letter → labels: ``j=("bert", "resnet")`` makes ``j1-4`` to ``resnet-4``. Where configurations
                would have equal labels then, they keep their own.
        """
        known = {f"{letter}{at}": label for letter, given in labels.items() for at, label in enumerate(given)}

        def new(cells: Iterable[object]) -> list[str]:
            return [_TOKEN.sub(lambda token: known.get(token[0], token[0]), str(cell)) for cell in cells]

        every = self.configurations["configuration"]
        distinct = len(set(new(every))) == len(every)
        wanted = ("job", "resource", "group", "configuration") if distinct else ("job", "resource", "group")

        def renamed(columns: Columns) -> Columns:
            return {name: new(cells) if name in wanted else cells for name, cells in columns.items()}

        return replace(
            self,
            resources=renamed(self.resources),
            jobs=renamed(self.jobs),
            configurations=renamed(self.configurations),
            members=renamed(self.members),
            uses=renamed(self.uses),
            groups=renamed(self.groups),
        )

    def solve(self, solver: str = "highs", *, time_limit_s: float | None = None, gap: float = 1e-6) -> Allocation:
        """The allocation that a solver finds; see ``mast_opt.solve`` for the arguments and what it raises."""
        solution = solve(self.problem(), solver, time_limit_s=time_limit_s, gap=gap)
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


def names(prefix: str, count: int) -> list[str]:
    """Labels of so many entities: the prefix and a number from 0."""
    return [f"{prefix}{number}" for number in range(count)]
