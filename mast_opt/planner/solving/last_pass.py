"""Last pass of a solve: among equally good plans, find the one with the fewest rows that differ from another plan.

Many plans have the same objective. A planner wants the one closest to the present state, and the same one next week.
The pass minimises the number of differing rows over the program of the solve, the objective being limited to what was
found. Where the program is large, only rows in which the two plans differ are free.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mast_opt.core.arrays import IntArray
from mast_opt.core.errors import UnsupportedOption
from mast_opt.core.solve_result import SolveParams, Status, relative_gap
from mast_opt.core.verdict import Verdict
from mast_opt.core.wording import counted
from mast_opt.problems.backends.base import Backend
from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.kind.schema import Table, Tables
from mast_opt.problems.mip import Mip
from mast_opt.problems.mip.program import Term
from mast_opt.problems.registry import check_plan
from mast_opt.problems.search.lexicographic import with_slack

ROWS, WORTH = "differing rows", "objective"
SLACK = 1e-3
"""Largest relative increase of the objective by the pass if nothing is proven."""
OPEN_SHARE = 0.1
"""Share of an open gap by which a plan to stay near may be worse, since two searches differ by as much."""
FREE_COLUMNS = 20_000
"""Largest number of columns of a program that is searched beyond the two plans."""
LARGEST = 500_000
"""Largest number of columns of a program that is built for the pass."""
COLUMNS_A_SECOND = 50_000
"""Columns of a program that one idle core builds, and searches between two plans, per second."""
NODES = 2_000
"""Most nodes of branch and bound, so that the pass is short and its result does not depend on the clock."""
LONGEST_S = 20.0
KEPT = 0.05
"""Share of a time limit that is reserved for the pass."""


@dataclass(frozen=True)
class LastPass:
    """Change that the last pass made."""

    reference: str
    """The plan that it compares with: ``today`` or ``near``."""
    rows_before: int
    rows: int
    """Number of rows of decisions that are in only one of the two plans."""
    price: float
    """Increase of the objective."""

    def __str__(self) -> str:
        of = "today" if self.reference == "today" else "the plan to stay near"
        words = f"differs from {of} in {counted(self.rows, 'row')} after the last pass"
        if self.rows == self.rows_before:
            return f"{words}; this short search found none as good with fewer" if self.rows else words
        return f"{words}, in {self.rows_before:,} before it, for {self.price:.3g} in the objective"


@dataclass(frozen=True)
class Settling:
    """One solved problem, and the plan that the last pass compares with."""

    kind: Kind[Any, Any]
    problem: Problem[Any]
    reference: Any
    name: str
    between: bool = False
    """Search only between the two plans, however small the program is."""

    @cached_property
    def applies(self) -> bool:
        """Whether the kind's plans get a last pass and the program is small enough for it."""
        parts = self.kind.formulation.fixed_parts
        return parts is not None and parts.settles and self.columns <= LARGEST

    @cached_property
    def columns(self) -> int:
        """Number of columns of the program; above every limit of the pass if it is not known."""
        size = self.kind.formulation.size
        return LARGEST + 1 if size is None else size(self.problem).columns

    def has_time(self, left_s: float | None) -> bool:
        """Whether the program can be built in the time left. For a plan to stay near, which the user asks for, it is
        built in any case."""
        return left_s is None or self.name == "near" or self.columns <= COLUMNS_A_SECOND * left_s

    def settled(
        self, plan: PlanT, verdict: Verdict, most: float, backend: Backend, params: SolveParams
    ) -> tuple[PlanT, Verdict, LastPass]:
        """Best plan found: the one with the fewest differing rows whose objective is at most ``most``."""
        before = self.rows(plan)
        unchanged = plan, verdict, LastPass(self.name, before, before, 0.0)
        if not before:
            return unchanged
        own = self.kind.verification.verify(self.problem, self.reference)
        if own.ok and self._as_good(own, verdict, most):
            return self.reference, own, LastPass(self.name, before, 0, own.objective - verdict.objective)
        formulation = self.kind.formulate(self.problem, "base")
        result = backend.solve(
            self._stated(formulation, plan, verdict, most), replace(params, start=formulation.encode(plan))
        )
        if result.x is None:
            return unchanged
        found: PlanT = formulation.decode(result.x)
        judged = self.kind.verification.verify(self.problem, found)
        whole_shares = judged.ok and self._as_good(judged, verdict, most)
        if not whole_shares and formulation.exact is not None:
            exact, held = formulation.exact(), np.flatnonzero(formulation.mip.integral)
            whole = np.rint(exact.encode(found)[held])
            result = backend.solve(self._stated(exact, plan, verdict, most).fix(held, whole), params)
            if result.x is None:
                return unchanged
            found = exact.decode(result.x)
            judged = self.kind.verification.verify(self.problem, found)
        after = self.rows(found)
        if not judged.ok or after >= before or not self._as_good(judged, verdict, most):
            return unchanged
        return found, judged, LastPass(self.name, before, after, judged.objective - verdict.objective)

    def rows(self, plan: object) -> int:
        """Number of rows in which a plan differs from that of the last pass."""
        tables = [self.kind.tables.plan_to_tables(self.problem, one) for one in (plan, self.reference)]
        return differing_rows(self.kind, *tables)

    def _decided(self, mip: Mip) -> IntArray:
        """Columns of the program that hold the plan's decisions, for the last pass."""
        parts = self.kind.formulation.fixed_parts
        assert parts is not None
        return np.concatenate([block.ids.ravel() for block in mip.columns if block.name in parts.blocks])

    def _stated(
        self,
        formulation: Formulation[Any],
        plan: Any,  # noqa: ANN401 - a plan of any kind
        verdict: Verdict,
        most: float,
    ) -> Mip:
        """Program of the last pass, which minimises the number of differing rows."""
        mip, x, there = formulation.mip, formulation.encode(plan), formulation.encode(self.reference)
        decided = self._decided(mip)
        one = there[decided] > 1e-9
        rows = Term(decided, np.where(one, -1.0, 1.0), float(np.count_nonzero(one)))
        own = np.flatnonzero(mip.cost)
        terms = {**mip.terms, ROWS: rows, WORTH: Term(own, mip.cost[own], mip.offset)}
        mip = replace(mip, terms=terms)
        order = self.problem.objective.order
        for term in order:
            mip = mip.limit_term(term, with_slack(verdict.terms[term]))
        if not order:
            mip = mip.limit_term(WORTH, most)
        if self.between or len(mip.cost) > FREE_COLUMNS:
            same = decided[mip.integral[decided] & (abs(x[decided] - there[decided]) < 0.5)]
            mip = mip.fix(same, np.rint(x[same]))
        return mip.minimise({ROWS: 1.0})

    def _as_good(self, judged: Verdict, verdict: Verdict, most: float) -> bool:
        """Whether a plan of the last pass is as good as the plan before, by its objective or term by term."""
        order = self.problem.objective.order
        if order:
            return all(judged.terms[term] <= with_slack(verdict.terms[term]) for term in order)
        return judged.objective <= most


def settling_of(
    kind: Kind[Any, Any], problem: Problem[Any], near: object, freeze: object, *, between: bool = False
) -> Settling | None:
    """The last pass of a problem: to a plan to stay near, or else to the present state; None where there is neither.

    Raises:
        UnsupportedOption: a plan to stay near, where plans are not settled.
        PlanError: it was made for another instance.
    """
    if near is not None:
        check_plan(kind, problem, near)
    reference = near if near is not None or freeze else kind.analysis.current_plan(problem)
    settling = Settling(kind, problem, reference, "today" if near is None else "near", between)
    if reference is not None and not freeze and settling.applies:
        return settling
    if near is not None:
        why = "not together with a part to freeze" if freeze else f"up to {LARGEST:,} columns, in data placement"
        raise UnsupportedOption(f"a plan to stay near is possible {why}")
    return None


def params_of_pass(asked: SolveParams, left_s: float | None) -> SolveParams:
    """Parameters of the pass after a solve; ``left_s`` is None where the time is not limited."""
    limit_s = LONGEST_S if left_s is None else max(min(LONGEST_S, left_s), 0.01)
    nodes = (("mip_max_nodes", NODES),)
    return SolveParams(limit_s, seed=asked.seed, threads=asked.threads, cancel=asked.cancel, options=nodes)


def most_allowed(status: Status, objective: float, bound: float | None, gap: float, *, near: bool = False) -> float:
    """The largest objective after the pass: a proof within the gap stays one, and nothing else grows by more than
    ``SLACK``, or the gap asked for where that is larger.

    Args:
        near: is a plan to stay near asked for? Without a proof it counts as as good within ``OPEN_SHARE`` of the gap.
    """
    slack = max(SLACK, gap, OPEN_SHARE * (relative_gap(objective, bound) or 0.0) if near else 0.0)
    most = objective + slack * abs(objective)
    if status is Status.OPTIMAL:
        proven = bound if bound is not None else objective
        most = min(most, max(objective, proven / (1 - gap) if gap < 1 else most))
        if (relative_gap(most, bound) or 0.0) > gap:
            most = objective
    return most


def as_good(problem: Problem[Any], one: Verdict, other: Verdict, most: float) -> bool:
    """Whether a plan is valid and as good as another one: by each term of an order, or with an objective of at most
    ``most``.
    """
    order = problem.objective.order
    good = all(one.terms[term] <= other.terms[term] for term in order) if order else one.objective <= most
    return one.ok and good


def differing_rows(kind: Kind[Any, Any], one: Tables, other: Tables) -> int:
    """Number of decisions that only one of two plans has: rows, matched by their labels, of the tables that do not
    follow from others. A run with another share in the same place is the same row.

    Args:
        kind: that of the plans.
        one, other: the tables of the plans.
    """
    parts = kind.formulation.fixed_parts
    decided = [table for table in kind.tables.plan_schema.tables if parts is None or table.name in parts.tables]
    return sum(len(_keys(table, one) ^ _keys(table, other)) for table in decided)


def _keys(table: Table, tables: Tables) -> set[tuple[object, ...]]:
    """The keys of a plan's table, with labels; None where a cell is empty."""
    axes = {column.name: column.axis for column in table.columns}
    columns = []
    for name in table.key:
        values, known = tables.get(table.name, name).tolist(), tables.has(table.name, name).tolist()
        labels = tables.axes.get(axes[name] or "")
        columns.append([(labels[at] if labels else at) if has else None for at, has in zip(values, known, strict=True)])
    return set(zip(*columns, strict=True))
