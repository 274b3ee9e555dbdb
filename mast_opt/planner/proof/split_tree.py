"""A tree of splits whose leaves are linear programs with exact duals: it proves a bound on a mixed-integer program."""

import heapq
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack

from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_result import SolveParams, SolveResult, Status
from mast_opt.planner.proof.exact_program import Combination, ExactProgram, Limits
from mast_opt.planner.proof.steps import Source, Step, split
from mast_opt.problems import backends
from mast_opt.problems.mip import Mip, unnamed

SOLVER = "highs"
EXACT = (("dual_feasibility_tolerance", 1e-9), ("primal_feasibility_tolerance", 1e-9))
"""Options of the solver: what its duals lack is repaired in exact numbers, and costs some of the bound."""
WHOLE = 1e-6
"""Distance from an integer up to which a column is not split."""


@dataclass(eq=False)
class Node:
    """A part of the tree: the columns that were split on the way here, and how it is proven."""

    assumed: dict[tuple[int, int], Step]
    """(column, 0 for a lower and 1 for an upper limit) → the step that assumes it."""
    split: Step | None = None
    """Assumption that this node adds to those of its parent; None at the root."""
    children: tuple["Node", ...] = ()
    proof: Combination | None = None
    """Proof of a leaf; its bound is on the objective, or on 0 where nothing is possible here."""
    impossible: bool = False
    guess: int | None = None
    """The column to be split next; None where none would help."""
    at: float = field(default=0.0)
    """Value of that column in the leaf's linear program."""
    x: FloatArray | None = None
    """The solution of the root's linear program."""

    def leaves(self) -> Iterator["Node"]:
        """The leaves below a node, or the node itself."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


def grow(program: ExactProgram, root: Node, target: Fraction, *, time_limit_s: float, most_leaves: int) -> None:
    """Split a proven root until the tree proves the target, or the limits are reached; the lowest leaf comes first."""
    began, order = time.monotonic(), count()
    waiting = [(_low(root), next(order), root)]
    leaves = 1
    while waiting and leaves < most_leaves and time.monotonic() - began < time_limit_s:
        low, _, node = waiting[0]
        if low >= target or node.guess is None:
            break
        heapq.heappop(waiting)
        node.children = _children(node)
        node.proof = None
        leaves += 1
        for child in node.children:
            prove(program, child)
            heapq.heappush(waiting, (_low(child), next(order), child))


def proven(root: Node) -> Fraction | None:
    """The bound that a tree proves; None where a leaf proves none, infinity being that of a tree without plans."""
    lows = [leaf.proof.bound if leaf.proof else None for leaf in root.leaves() if not leaf.impossible]
    return None if None in lows else min((low for low in lows if low is not None), default=None)


def _low(node: Node) -> float:
    """The bound of a leaf as a number to compare."""
    if node.impossible:
        return np.inf
    return float(node.proof.bound) if node.proof else -np.inf


def _children(node: Node) -> tuple[Node, Node]:
    """Both sides of a split: at most the value rounded down, or at least the next integer."""
    assert node.guess is not None
    below, above = (
        Node(node.assumed | {(node.guess, side): step}, step)
        for side, step in zip((1, 0), split({node.guess: Fraction(1)}, Fraction(int(np.floor(node.at)))), strict=True)
    )
    return below, above


def step_of(program: ExactProgram, root: Node, bound: Fraction) -> Step:
    """The step that states the bound of a tree."""
    done: dict[Node, Step] = {}
    waiting = [root]
    while waiting:
        node = waiting[-1]
        if missing := [child for child in node.children if child not in done]:
            waiting.extend(missing)
            continue
        waiting.pop()
        if node.children:
            parts = [step for child in node.children for step in (done[child], child.split) if step is not None]
            done[node] = Step("G", bound, None, "uns", parts=tuple(parts))
            continue
        assert node.proof is not None
        done[node] = combined(program, node.proof, node.assumed, costs=not node.impossible)
    return done[root]


def combined(
    program: ExactProgram,
    found: Combination,
    assumed: Mapping[tuple[int, int], Step] | None = None,
    *,
    costs: bool = True,
) -> Step:
    """The step that states the bound of a combination, where some limits of columns are assumed."""
    factors: dict[Source, Fraction] = {}
    for side, factor in found.multipliers.items():
        kind, at, end = side
        source = (assumed or {}).get((at, end)) if kind == "column" else None
        factors[source or program.source(side)] = factor
    return Step("G", found.bound, None if costs else {}, "lin", factors)


def prove(program: ExactProgram, node: Node) -> None:
    """Solve the linear program of a leaf, and keep its exact proof and the column to be split."""
    mip = program.mip
    lower, upper = mip.col_lower.copy(), mip.col_upper.copy()
    limits: list[Limits] = list(program.column_limits)
    for (column, side), step in node.assumed.items():
        limit = step.rhs
        (upper if side else lower)[column] = float(limit)
        limits[column] = (limits[column][0], limit) if side else (limit, limits[column][1])
    relaxed = replace(mip, integral=np.zeros(len(lower), np.bool_), col_lower=lower, col_upper=upper)
    result = _solve(relaxed)
    if result.status.is_infeasible:
        prices = _prices(_solve(_elastic(relaxed)))
        node.proof = None if prices is None else program.combination(prices, limits, costs=False)
        node.impossible = node.proof is not None and node.proof.bound > 0
        if not node.impossible:
            node.proof = None
        return
    prices = _prices(result)
    if prices is None or result.x is None:
        return
    node.proof = program.combination(prices, limits)
    node.x = None if node.assumed else result.x
    distance = np.where(mip.integral, np.abs(result.x - np.rint(result.x)), 0.0)
    if distance.max(initial=0.0) > WHOLE:
        node.guess = int(np.argmax(distance * (1.0 + np.abs(mip.cost))))
        node.at = float(result.x[node.guess])


def _solve(mip: Mip) -> SolveResult:
    """The answer to a linear program."""
    return backends.get(SOLVER).solve(mip, SolveParams(threads=1, options=EXACT))


def _prices(result: SolveResult) -> FloatArray | None:
    """Prices of the rows of a solved linear program."""
    return result.row_price if result.status is Status.OPTIMAL else None


def _elastic(mip: Mip) -> Mip:
    """The program that minimises by how much rows are broken."""
    rows, columns = mip.shape
    matrix = csr_array((mip.value, mip.index, mip.row_start), shape=mip.shape)
    wide = hstack([matrix, eye_array(rows), -eye_array(rows)], format="csr")
    return unnamed(
        f"elastic {mip.name}",
        wide,
        np.repeat([0.0, 1.0], [columns, 2 * rows]),
        col_lower=np.append(mip.col_lower, np.zeros(2 * rows)),
        col_upper=np.append(mip.col_upper, np.full(2 * rows, np.inf)),
        row_lower=mip.row_lower,
        row_upper=mip.row_upper,
    )
