"""Fixed parts of a plan in a solve: fixed columns for exact solvers, rules for heuristics."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import IntArray
from mast_opt.core.errors import UnsupportedOption, UsageError
from mast_opt.core.wording import did_you_mean
from mast_opt.problems.kind.formulation import FixedParts, Formulation
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.kind.schema import Table, Tables
from mast_opt.problems.mip.program import Block

Positions = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Frozen:
    """The part of a plan that a solve keeps."""

    kind: Kind[Any, Any]
    freezing: FixedParts[Any, Any]
    problem: Problem[Any]
    plan: Any
    parts: Mapping[str, tuple[str, ...]]
    """Names by kind of part (``region``, ``workload``, …)."""
    positions: Mapping[str, Positions]
    """Positions of the names on their axis, or among its groups, by kind of part."""

    def formulation(self, formulation: Formulation[Any]) -> Formulation[Any]:
        """The formulation with every column of the part fixed at the plan's value.

        Raises:
            UsageError: the part breaks a rule of its own.
            UnsupportedOption: the formulation lacks the columns.
        """
        mip, exact = formulation.mip, formulation.exact
        blocks = {block.name: block for block in mip.columns}
        lacking = [name for name in self.freezing.blocks if name not in blocks]
        if lacking:
            raise UnsupportedOption(f"this formulation has no columns {', '.join(lacking)} to freeze; use the base one")
        frozen = [self._columns(blocks[name], axes) for name, axes in self.freezing.blocks.items()]
        columns = np.concatenate(frozen)
        values = formulation.encode(self.plan)[columns]
        off = np.flatnonzero((values < mip.col_lower[columns] - 1e-9) | (values > mip.col_upper[columns] + 1e-9))
        if len(off):
            broken = mip.column_name(int(columns[off[0]]))
            raise UsageError(f"the part to keep breaks a rule: {broken} cannot be {values[off[0]]:g}; keep less")
        return replace(
            formulation,
            mip=mip.fix(columns, values),
            exact=None if exact is None else lambda: self.formulation(exact()),
        )

    def _columns(self, block: Block, axes: Sequence[str | None]) -> IntArray:
        """The columns of a block that belong to the fixed part of a plan."""
        member = np.zeros(block.shape, np.bool_)
        cells = np.indices(block.shape) if block.cells is None else block.cells
        for what, wanted in self.positions.items():
            for axis, cell, labels in zip(axes, cells, block.axes, strict=True):
                belongs = self._belongs(what, axis, wanted, len(labels))
                if belongs is not None:
                    member |= belongs[cell]
        return block.ids[member]

    def _belongs(self, what: str, axis: str | None, wanted: Positions, size: int) -> NDArray[np.bool_] | None:
        """Mask of the positions of an axis that the fixed part of a plan has; None where it does not speak of that
        axis.
        """
        if axis is None:
            return None
        if what == axis:
            return np.isin(np.arange(size), wanted)
        if what in self.groups and self.groups[what][0] == axis:
            return np.isin(self.groups[what][2], wanted)
        return None

    @cached_property
    def groups(self) -> Mapping[str, tuple[str, tuple[str, ...], Positions]]:
        """Name of a group of fixed parts → its axis, its labels, and the group of each member of the axis."""
        return {name: group(self.problem) for name, group in self.freezing.groups.items()}

    def rules(self, solver: str) -> Problem[Any]:
        """The problem with rules that keep the part. Raises UnsupportedOption where rules cannot say so."""
        if self.freezing.rules is None:
            raise UnsupportedOption(
                f"{solver} cannot keep parts of a plan; --freeze needs an exact solver, such as highs"
            )
        stated: Problem[Any] = self.freezing.rules(self.problem, self.plan, self.positions)
        return stated

    def check(self, plan: object) -> None:
        """Raises UsageError where a plan does not keep the part: its rows cannot be distinguished from equal ones, or
        break a rule."""
        unbuild = self.kind.tables.plan_to_tables
        before, after = unbuild(self.problem, self.plan), unbuild(self.problem, plan)
        for name in self.freezing.tables:
            table = self.kind.tables.plan_schema.table(name)
            lost = self._rows(table, before) ^ self._rows(table, after)
            if lost:
                raise UsageError(
                    f"the part to freeze cannot be frozen: {name} has other rows ({len(lost):,}); it breaks a rule, or "
                    "the solver cannot distinguish it from an equal one"
                )

    def _rows(self, table: Table, tables: Tables) -> set[tuple[int | None, ...]]:
        """The rows of the fixed part of a plan, as positions and base units."""
        member = np.zeros(tables.rows(table.name), np.bool_)
        for what, wanted in self.positions.items():
            for column in table.columns:
                belongs = self._belongs(what, column.axis, wanted, len(tables.axes.get(column.axis or "", ())))
                if belongs is not None:
                    member |= belongs[tables.get(table.name, column.name)] & tables.has(table.name, column.name)
        cells = [
            [value if there else None for value, there in zip(values.tolist(), present.tolist(), strict=True)]
            for column in table.columns
            for values, present in [
                (tables.get(table.name, column.name)[member], tables.has(table.name, column.name)[member])
            ]
        ]
        return set(zip(*cells, strict=True))


def frozen(
    kind: Kind[Any, PlanT], problem: Problem[PlanT], start: PlanT | None, parts: Mapping[str, Iterable[str]]
) -> Frozen:
    """The part of a plan to keep in a solve: of ``start``, or of the present state, that has these names.

    Raises:
        UsageError: there is nothing to keep, or no such part or name.
    """
    freezing = kind.formulation.fixed_parts
    if freezing is None:
        raise UsageError(f"parts of a plan for {kind.name} cannot be frozen")
    plan = kind.analysis.current_plan(problem) if start is None else start
    if plan is None:
        raise UsageError(f"{problem.name} states no present state; give the plan whose part is frozen as start")
    axes = _axes(kind, problem)
    labels = {axis: axes[axis] for block in freezing.blocks.values() for axis in block if axis is not None}
    labels |= {name: group(problem)[1] for name, group in freezing.groups.items()}
    for what, names in parts.items():
        if what not in labels:
            raise UsageError(f"{kind.name} has nothing called {what!r} to freeze; expected one of: {', '.join(labels)}")
        if isinstance(names, str):
            raise UsageError(f"freeze: {what} is {names!r}; expected a collection of names, as in [{names!r}]")
    named = {what: tuple(dict.fromkeys(names)) for what, names in parts.items()}
    positions = {what: _positions(what, names, labels[what]) for what, names in named.items()}
    return Frozen(kind, freezing, problem, plan, named, positions)


def _axes(kind: Kind[Any, Any], problem: Problem[Any]) -> Mapping[str, tuple[str, ...]]:
    """Axis → labels of an instance, by which the fixed parts of a plan are named."""
    return kind.tables.problem_to_tables(problem)[1].axes


def _positions(what: str, names: Sequence[str], labels: Sequence[str]) -> Positions:
    """Positions of the named parts of a plan that stay fixed. Raises UsageError for an unknown name."""
    place = {label: at for at, label in enumerate(labels)}
    for name in names:
        if name not in place:
            raise UsageError(f"there is no {what} called {name!r}{did_you_mean(name, labels)}")
    return np.array(sorted(place[name] for name in names), np.int64)
