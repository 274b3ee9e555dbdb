"""The bound that prices of some rows prove: without these rows a program falls apart into blocks, and each block has a
proof of its own, by the duals of linear programs, rounded rows and splits.

That is Lagrangian duality: every plan costs at least Σ price · limit of the priced rows, and in each block at least
the least of what its columns cost at these prices.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mast_opt.core.arrays import BoolArray, FloatArray
from mast_opt.planner.proof.cuts import strengthened
from mast_opt.planner.proof.exact_program import Entries, ExactProgram
from mast_opt.planner.proof.split_tree import Node, combined, grow, proven, step_of
from mast_opt.planner.proof.steps import Side, Source, Step, completed, ordered
from mast_opt.problems.mip import unnamed

UNREACHED = Fraction(10**30)
"""A target that no block reaches: it is solved to its end."""
FIRST_LEAVES = 8
"""Linear programs of a block's tree in the first pass, and by how many times more in each later one."""


@dataclass(frozen=True, eq=False)
class Prices:
    """Prices of the rows of a program, and the rows that are not priced and stay in the blocks."""

    price: FloatArray
    """[rows] above 0 of a lower limit, below 0 of an upper one, 0 of a row that is left out or stays in its block"""
    kept: BoolArray
    """[rows] of those that stay in the blocks"""


@dataclass(eq=False)
class _Block:
    """Columns that kept rows connect, as a program of their own."""

    program: ExactProgram
    rows: list[int]
    """Positions in the whole program of the block's rows."""
    columns: list[int]
    """Positions of its columns there."""
    root: Node = field(default_factory=lambda: Node({}))

    @property
    def done(self) -> bool:
        """Whether its optimum is proven."""
        leaves = [leaf for leaf in self.root.leaves() if not leaf.impossible]
        return min(leaves, key=lambda leaf: leaf.proof.bound if leaf.proof else -UNREACHED).guess is None


def priced(
    program: ExactProgram, prices: Prices, target: Fraction, *, time_limit_s: float, most_leaves: int
) -> tuple[Step, int] | None:
    """The step that states a bound on the objective, at least the target if the limits allow, and the number of linear
    programs in its proof. None where a column without a limit, or a block without plans, stands in the way.
    """
    if not prices.kept.any():
        found = program.combination(prices.price, program.column_limits)
        return None if found is None else (combined(program, found), 1)
    began = time.monotonic()
    factors: dict[Source, Fraction] = {}
    reduced = list(program.cost)
    for row in np.flatnonzero(prices.price).tolist():
        side = int(prices.price[row] < 0)
        if program.row_limits[row][side] is not None:
            price = factors["row", row, side] = Fraction(f"{prices.price[row]:.14g}")
            for column, number in program.rows[row]:
                reduced[column] -= price * number
    blocks = _blocks(program, prices.kept, reduced)
    for block in blocks:
        left_s = time_limit_s - (time.monotonic() - began)
        block.program, block.root = strengthened(block.program, (), UNREACHED, time_limit_s=left_s)
    last, most = _last(program, blocks, factors), FIRST_LEAVES
    while last is not None and last.rhs < target and most <= most_leaves and time.monotonic() - began < time_limit_s:
        for block in blocks:
            if not block.done:
                left_s = time_limit_s - (time.monotonic() - began)
                grow(block.program, block.root, UNREACHED, time_limit_s=left_s, most_leaves=most)
        last, most = _last(program, blocks, factors), most * FIRST_LEAVES
    return None if last is None else (last, sum(1 for block in blocks for _ in block.root.leaves()))


def _last(program: ExactProgram, blocks: list[_Block], factors: Mapping[Source, Fraction]) -> Step | None:
    """The step that adds up the blocks and the priced limits; None where a bound is missing."""
    used = dict(factors)
    for block in blocks:
        bound = proven(block.root)
        if bound is None:
            return None
        used[_lifted(program, block, step_of(block.program, block.root, bound))] = Fraction(1)
    last = completed(program, "G", {at: number for at, number in enumerate(program.cost) if number}, used)
    return None if last is None else replace(last, entries=None)


def _blocks(program: ExactProgram, kept: BoolArray, reduced: list[Fraction]) -> list[_Block]:
    """The parts into which the kept rows fall that have a cost, each with its least first."""
    mip = program.mip
    rows = np.flatnonzero(kept & (np.diff(mip.row_start) > 0))
    matrix = csr_array((np.ones(len(mip.index)), mip.index, mip.row_start), shape=mip.shape)[rows]
    joint = csr_array(matrix.T @ matrix)
    part = connected_components(joint, directed=False)[1]
    of_row = part[mip.index[mip.row_start[rows]]]
    order, row_order = np.argsort(part, kind="stable"), np.argsort(of_row, kind="stable")
    found = []
    for number in np.unique(of_row).tolist():
        columns, mine = (
            some[slice(*np.searchsorted(labels[some], [number, number + 1]))]
            for some, labels in ((order, part), (row_order, of_row))
        )
        if any(reduced[column] for column in columns.tolist()):
            found.append(_block(program, rows[mine].tolist(), columns.tolist(), reduced))
    return found


def _block(program: ExactProgram, rows: list[int], columns: list[int], reduced: list[Fraction]) -> _Block:
    """Some rows and columns of a program, at reduced costs."""
    mip, at = program.mip, {column: number for number, column in enumerate(columns)}
    entries: list[Entries] = [[(at[column], number) for column, number in program.rows[row]] for row in rows]
    cost = [reduced[column] for column in columns]
    start = np.cumsum([0, *map(len, entries)])
    value = np.array([float(number) for row in entries for _, number in row])
    small = unnamed(
        "block",
        csr_array((value, [column for row in entries for column, _ in row], start), shape=(len(rows), len(columns))),
        [float(number) for number in cost],
        col_lower=mip.col_lower[columns],
        col_upper=mip.col_upper[columns],
        integral=mip.integral[columns],
        row_lower=mip.row_lower[rows],
        row_upper=mip.row_upper[rows],
    )
    limits = [program.row_limits[row] for row in rows]
    return _Block(
        ExactProgram(small, cost, entries, limits, [program.column_limits[column] for column in columns]), rows, columns
    )


def _lifted(program: ExactProgram, block: _Block, root: Step) -> Step:
    """The step of the whole program that states what one of a block does."""
    found: dict[Step, Step] = {}

    def source(one: Source) -> Source:
        if isinstance(one, Step):
            return found[one]
        kind, at, side = one
        whole: Side = (kind, (block.rows if kind == "row" else block.columns)[at], side)
        return program.source(whole)

    for step in ordered(root):
        entries = dict(enumerate(block.program.cost)) if step.entries is None else step.entries
        found[step] = Step(
            step.sense,
            step.rhs,
            {block.columns[at]: number for at, number in entries.items() if number},
            step.rule,
            None if step.factors is None else {source(one): factor for one, factor in step.factors.items()},
            tuple(found[part] for part in step.parts),
        )
    return found[root]
