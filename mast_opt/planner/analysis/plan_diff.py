"""Plan difference: what changed from one plan to another, row by row, in the labels and units of files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from mast_opt.core.arrays import labels_of
from mast_opt.core.errors import PlanError, UsageError
from mast_opt.core.fork_safety import use_tables
from mast_opt.core.summary import Summarised, Summary
from mast_opt.core.verdict import Verdict, Violation
from mast_opt.core.wording import ROUNDING, counted, plain
from mast_opt.planner.io.validation.frames import table_frames
from mast_opt.planner.solving.last_pass import differing_rows
from mast_opt.problems.kind.carry_over import matched
from mast_opt.problems.kind.current_state import CurrentState
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.kind.schema import Schema, Table, Tables
from mast_opt.problems.registry import check_plan, kind_of

Cells = tuple[str | None, ...]
"""Text as in files; None for an empty cell."""


@dataclass(frozen=True)
class TableDiff:
    """The rows of one table that are not the same."""

    name: str
    key: tuple[str, ...]
    """Columns by which rows are distinguished."""
    values: tuple[str, ...]
    """The other columns."""
    added: tuple[tuple[Cells, Cells], ...]
    """(key, values) of each row that only the second has."""
    removed: tuple[tuple[Cells, Cells], ...]
    changed: tuple[tuple[Cells, Cells, Cells], ...]
    """(key, values before, values after) of each row that both have."""
    same: int
    """Number of rows that are equal."""

    @property
    def differs(self) -> bool:
        """Whether the two tables have any different row."""
        return bool(self.added or self.removed or self.changed)


@dataclass(frozen=True)
class Change:
    """A figure before and after; None where one side does not have it."""

    before: float | None
    after: float | None

    @property
    def by(self) -> float | None:
        """The difference, after less before; None where either value is unknown."""
        return None if self.before is None or self.after is None else self.after - self.before


TOGETHER = "all of these together"
MOST_CHANGES = 500
"""Independent changes beyond which none is measured: each takes a verification."""


@dataclass(frozen=True)
class Worth:
    """One independent change between two plans, and what undoing it alone would cost."""

    change: str
    buys: float
    """The objective of the second plan without the change, less that with it."""
    terms: Mapping[str, float]
    """Contribution of each term to that, where there is any."""
    keeps: tuple[str, ...]
    """Limits that the plan would break without it, in words with amounts."""
    usd: Mapping[str, float]
    """Change of each of these terms that is in USD, without its weight."""


@dataclass(frozen=True, repr=False)
class Diff(Summarised):
    """Differences between two plans."""

    kind: str
    tables: tuple[TableDiff, ...]
    """Every table of the plan."""
    rows: int
    """Decisions that only one of the plans has, as the last pass of ``solve`` counts them: ``differing_rows``."""
    instance: tuple[TableDiff, ...]
    """The tables of the instance that differ; empty where both plans are for the same."""
    objective: Change
    """Σ weight · term, by the verifier; each side with the weights of its own instance."""
    terms: Mapping[str, Change]
    metrics: Mapping[str, Change]
    violations: tuple[int, int]
    """Numbers of limits that each plan breaks."""
    from_today: bool = False
    """True if the first plan is the present state."""
    today: CurrentState | None = None
    """The present state as the first plan's instance states it; None where its kind has none."""
    changes: tuple[Worth, ...] = ()
    """Independent changes by what each buys, the most first; none where a kind does not tell them apart."""
    together: Worth | None = None
    """All of these changes at once: what a swap buys is what its two moves buy together. None with fewer than two."""
    kept: Verdict | None = None
    """Verdict of the first plan, matched by label, in the second instance: what keeping it would come to. None where
    both plans are of the same instance, or its rows do not carry over."""
    moves: tuple[Mapping[str, float], Mapping[str, float]] = ({}, {})
    """Terms on moves without work that stands still: by the plan that is kept, and by the second one."""
    lacking: str = ""
    """Words on the GPUs that are missing if the first plan is kept, and where; empty for none."""
    shut: tuple[str, ...] = ()
    """Limits of the second instance that the first plan, matched by label, would break, in words with amounts."""
    notes: tuple[str, ...] = ()
    """Sentences on figures that could be confused."""

    @property
    def differs(self) -> bool:
        """Whether plans or instances differ in any row of any table."""
        return any(table.differs for table in (*self.tables, *self.instance))

    def _summary(self) -> Summary:
        """Summary of the differences."""
        before, after = self.objective.before, self.objective.after
        facts = (
            ("kind", self.kind),
            ("objective", f"{plain(before)} → {plain(after)}"),
            ("violations", f"{self.violations[0]:,} → {self.violations[1]:,}"),
        )
        rows = tuple(
            (
                table.name,
                f"{len(table.added):,}",
                f"{len(table.removed):,}",
                f"{len(table.changed):,}",
                f"{table.same:,}",
            )
            for table in (*self.tables, *self.instance)
        )
        return Summary("Diff", facts, ("table", "added", "removed", "changed", "same"), rows)


def diff(
    problem: Problem[PlanT], before: PlanT | None, after: PlanT, *, problem_before: Problem[PlanT] | None = None
) -> Diff:
    """Compare two plans, of one instance or of two.

    Args:
        problem: the instance of the second plan.
        before: the first plan; None for the present state, as the instance gives it.
        after: the second plan.
        problem_before: the instance of the first plan, where that is another one (yesterday's).

    Raises:
        UsageError: the instances are of different kinds, or the instance does not give the present state.
    """
    use_tables("compare plans")
    kind = kind_of(problem)
    first = problem if problem_before is None else problem_before
    from_today = before is None
    if kind_of(first).name != kind.name:
        raise UsageError(f"a plan for {kind_of(first).name} and one for {kind.name} have nothing to compare")
    if before is None:
        before = kind.analysis.current_plan(first)
        if before is None:
            raise UsageError(f"{first.name} states no present state; pass two plans")
    check_plan(kind, first, before)
    check_plan(kind, problem, after)
    verdicts = kind.verification.verify(first, before), kind.verification.verify(problem, after)
    kept = _as_plan_of(kind, problem, first, before)
    instance: tuple[TableDiff, ...] = ()
    keeping: Verdict | None = None
    moved: tuple[Mapping[str, float], Mapping[str, float]] = {}, {}
    if problem_before is not None:
        if kept is not None:
            keeping = kind.verification.verify(problem, kept)
            moves = kind.presentation.moves
            moved = moves(problem, kept, keeping), moves(problem, after, verdicts[1])
        found = tables_diff(
            kind.tables.schema, kind.tables.problem_to_tables(first)[1], kind.tables.problem_to_tables(problem)[1]
        )
        instance = tuple(table for table in found if table.differs)
    changes, together = ((), None) if kept is None else _worths(kind, problem, kept, after, verdicts[1])
    plans = kind.tables.plan_to_tables(first, before), kind.tables.plan_to_tables(problem, after)
    tables = tables_diff(kind.tables.plan_schema, *plans)
    rows = differing_rows(kind, *plans)
    return Diff(
        kind=kind.name,
        tables=tables,
        rows=rows,
        instance=instance,
        objective=Change(verdicts[0].objective, verdicts[1].objective),
        terms=_changes(verdicts[0].terms, verdicts[1].terms),
        metrics=_changes(verdicts[0].metrics, verdicts[1].metrics),
        violations=(len(verdicts[0].violations), len(verdicts[1].violations)),
        from_today=from_today,
        today=kind.analysis.current_state(first),
        changes=changes,
        together=together,
        notes=(*kind.presentation.change_notes(*verdicts), *_rows_note(tables, rows)),
        kept=keeping,
        moves=moved,
        lacking="" if keeping is None or kept is None else kind.presentation.lacking(problem, kept),
        shut=() if keeping is None else tuple(dict.fromkeys(_phrase(kind, problem, one) for one in keeping.violations)),
    )


def _rows_note(tables: Sequence[TableDiff], rows: int) -> tuple[str, ...]:
    """A sentence on how many decisions differ, and which rows that are listed are none."""
    listed = sum(len(one.added) + len(one.removed) + len(one.changed) for one in tables)
    if not listed:
        return ()
    words = f"{counted(rows, 'decision')} {'is' if rows == 1 else 'are'} in only one of the plans, which 'solve' counts"
    more = f"; the other {listed - rows:,} rows below have another share, or follow from these"
    return (f"{words}{more if listed > rows else ''}.",)


def _as_plan_of(kind: Kind[Any, PlanT], problem: Problem[PlanT], first: Problem[PlanT], plan: PlanT) -> PlanT | None:
    """A plan of another instance as one of this, without copies of what is there by now; None where its rows do not
    carry over."""
    if labels_of(first) != labels_of(problem):
        try:
            plan = matched(kind, problem, kind.tables.plan_to_tables(first, plan))[0]
        except PlanError:
            return None
    adapted: PlanT = kind.analysis.hooks().adapted(problem, plan)
    return plan if problem is first else adapted


def _phrase(kind: Kind[Any, Any], problem: Problem[Any], violation: Violation) -> str:
    """A broken limit in the words of the domain, with its amounts."""
    choices = kind.analysis.hooks().choices
    return choices[0].phrase(problem, violation) if choices else str(violation)


def _worths(
    kind: Kind[Any, Any], problem: Problem[PlanT], before: PlanT, after: PlanT, found: Verdict
) -> tuple[tuple[Worth, ...], Worth | None]:
    """The independent changes, those that keep limits first, then by what they buy, the most first; and all at once."""
    groups = kind.analysis.hooks().change_groups
    changes = None if groups is None else groups(problem, before, after)
    if changes is None or len(changes.words) > MOST_CHANGES:
        return (), None
    every, weights = frozenset(range(len(changes.words))), problem.objective.weights

    def worth(words: str, undone: frozenset[int]) -> Worth:
        """The worth of changes that are undone."""
        without = kind.verification.verify(problem, changes.only(every - undone))
        terms = {name: weight * (without.terms[name] - found.terms[name]) for name, weight in weights.items()}
        terms = {name: value for name, value in terms.items() if abs(value) > ROUNDING}
        usd = {
            name: without.terms[name] - found.terms[name] for name in terms if kind.terms[name].unit.startswith("USD")
        }
        anyway = {violation.name for violation in found.violations}
        kept = {_phrase(kind, problem, one) for one in without.violations if one.name not in anyway}
        return Worth(words, without.objective - found.objective, terms, tuple(sorted(kept)), usd)

    worths = [worth(words, frozenset([at])) for at, words in enumerate(changes.words)]
    together = worth(TOGETHER, every) if len(worths) > 1 else None
    return tuple(sorted(worths, key=lambda one: (not one.keeps, -one.buys))), together


def first_changes(problem: Problem[PlanT], plan: PlanT, count: int) -> PlanT:
    """A plan with the first changes of another, those that keep limits first, then by what each buys.

    Args:
        problem: the instance, which gives the present state.
        plan: a plan of it without violations.
        count: how many independent changes to make, as ``diff`` lists them.

    Raises:
        UsageError: the changes depend on one another, the instance does not give the present state, or fewer than all
            changes break a limit; it says how many do not.
    """
    kind = kind_of(problem)
    problem = check_plan(kind, problem, plan)
    before: PlanT | None = kind.analysis.current_plan(problem)
    groups = kind.analysis.hooks().change_groups
    if before is None or groups is None:
        raise UsageError(
            f"{problem.name} states no present state, or single changes of {kind.name} cannot be separated"
        )
    changes = groups(problem, before, plan)
    worths, _ = _worths(kind, problem, before, plan, kind.verification.verify(problem, plan))
    if len(worths) < len(changes.words):
        raise UsageError(f"the plan has {len(changes.words):,} changes; at most {MOST_CHANGES:,} are put in order")
    order = [changes.words.index(worth.change) for worth in worths]
    for made in range(min(count, len(order)), len(order) + 1):
        found: PlanT = changes.only(frozenset(order[:made]))
        verdict = kind.verification.verify(problem, found)
        if verdict.ok and made == min(count, len(order)):
            return found
        if verdict.ok:
            raise UsageError(f"the first {count:,} changes alone break a limit; the first {made:,} break none")
    raise UsageError("the plan breaks a limit; 'mast-opt verify' lists every violation")


def tables_diff(schema: Schema, before: Tables, after: Tables) -> tuple[TableDiff, ...]:
    """Every table of a schema, compared by its key; a table that is missing has no rows."""
    frames = [{table.name: frame for table, frame in table_frames(schema, tables)} for tables in (before, after)]
    return tuple(
        _table_diff(table, *(_rows(table, side.get(table.name)) for side in frames)) for table in schema.tables
    )


def _rows(table: Table, frame: pl.DataFrame | None) -> dict[Cells, Cells]:
    """The rows of a compared table by their keys: key → other columns."""
    if frame is None:
        return {}
    others = [column.name for column in table.columns if column.name not in table.key]

    def cells(names: tuple[str, ...] | list[str]) -> list[Cells]:
        columns = [
            frame[name].cast(pl.String).to_list() if name in frame.columns else [None] * frame.height for name in names
        ]
        return list(zip(*columns, strict=True)) if names else [()] * frame.height

    return dict(zip(cells(table.key), cells(others), strict=True))


def _table_diff(table: Table, before: Mapping[Cells, Cells], after: Mapping[Cells, Cells]) -> TableDiff:
    """Rows of a table that one plan adds, removes or changes against another."""
    both = [key for key in before if key in after]
    changed = tuple((key, before[key], after[key]) for key in both if before[key] != after[key])
    return TableDiff(
        name=table.name,
        key=table.key,
        values=tuple(column.name for column in table.columns if column.name not in table.key),
        added=tuple((key, values) for key, values in after.items() if key not in before),
        removed=tuple((key, values) for key, values in before.items() if key not in after),
        changed=changed,
        same=len(both) - len(changed),
    )


def _changes(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, Change]:
    """Name → change of each figure from one plan to another."""
    names = dict.fromkeys((*before, *after))
    return {name: Change(before.get(name), after.get(name)) for name in names}
