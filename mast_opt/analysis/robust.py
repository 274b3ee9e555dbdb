"""One plan for several scenarios: a two-stage stochastic program in extensive form.

What is decided beforehand has one column for all scenarios, everything else a copy in each (Birge & Louveaux,
Introduction to Stochastic Programming, 2011, chapter 2). The copies together are one MIP that any backend solves.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mast_opt import backends
from mast_opt.kind import Formulation, Kind
from mast_opt.mip import Block, FloatArray, IntArray, Mip, frozen
from mast_opt.mip.extending import Extension, extended
from mast_opt.questions import TwoStage
from mast_opt.result import SolveParams, Status
from mast_opt.solving import Solution, solve
from mast_opt.solving.clock import Clock


@dataclass(frozen=True)
class Robust:
    """A plan for all scenarios, and what it and the base plan are worth in each.

    The solutions hold what was decided beforehand and decide the rest anew; each is verified.
    """

    objective_kind: str
    """``worst`` or ``weighted``."""
    decided: str
    """What is the same in all scenarios."""
    status: Status
    plan: Any | None
    """For the instance as it is; None if none was found in time."""
    objective: float | None
    """Largest or mean objective of the plan over the scenarios, from the verified solutions."""
    bound: float | None
    """Proven: no plan has less."""
    base_objective: float | None
    """The same of the base plan."""
    robust: Mapping[str, Solution]
    """Scenario → the rest decided anew beside what this plan decides."""
    base: Mapping[str, Solution]
    """Scenario → the same beside what the base plan decides."""


@dataclass(frozen=True, eq=False)
class Extensive:
    """The joint program and where each scenario's columns are in it."""

    mip: Mip
    columns: tuple[IntArray, ...]


def extensive(mips: Sequence[Mip], shared: Sequence[IntArray], alive: Sequence[np.ndarray[Any, Any]]) -> Extensive:
    """The programs side by side, with the shared columns of each that are alive in it being those of the first.

    Its terms are the objectives of the programs, named by position.
    """
    from scipy.sparse import block_array, csr_array

    width = len(mips[0].cost)
    maps: list[IntArray] = [np.arange(width)]
    for mip, ids, lives in zip(mips[1:], shared[1:], alive[1:], strict=True):
        own = np.ones(len(mip.cost), np.bool_)
        own[ids[lives]] = False
        place: IntArray = np.empty(len(mip.cost), np.int64)
        place[own] = width + np.arange(int(own.sum()))
        place[ids[lives]] = shared[0][lives]
        maps.append(place)
        width += int(own.sum())
    lower, upper, integral = np.full(width, -np.inf), np.full(width, np.inf), np.zeros(width, np.bool_)
    for mip, place in zip(mips, maps, strict=True):
        np.maximum.at(lower, place, mip.col_lower)
        np.minimum.at(upper, place, mip.col_upper)
        np.logical_or.at(integral, place, mip.integral)
    pieces = [
        csr_array((mip.value, place[mip.index], mip.row_start), shape=(len(mip.row_lower), width))
        for mip, place in zip(mips, maps, strict=True)
    ]
    matrix = csr_array(block_array([[piece] for piece in pieces]))
    matrix.sort_indices()
    start = 0
    rows: list[Block] = []
    for position, mip in enumerate(mips):
        rows.append(_numbered(f"scenario_{position}", start, len(mip.row_lower)))
        start += len(mip.row_lower)
    first = mips[0]
    return Extensive(
        replace(
            first,
            name=f"{first.name}_robust",
            cost=frozen(np.zeros(width)),
            offset=0.0,
            col_lower=frozen(lower),
            col_upper=frozen(upper),
            integral=frozen(integral),
            row_lower=frozen(np.concatenate([mip.row_lower for mip in mips])),
            row_upper=frozen(np.concatenate([mip.row_upper for mip in mips])),
            row_start=frozen(matrix.indptr.astype(np.int32 if matrix.nnz < np.iinfo(np.int32).max else np.int64)),
            index=frozen(matrix.indices.astype(np.int32)),
            value=frozen(matrix.data),
            columns=(*first.columns, _numbered("recourse", len(first.cost), width - len(first.cost))),
            rows=tuple(rows),
            terms={},
        ),
        tuple(maps),
    )


def _numbered(name: str, start: int, size: int) -> Block:
    return Block(name, (tuple(str(member) for member in range(size)),), None, start, size)


def stated(joint: Extensive, mips: Sequence[Mip], weights: FloatArray, aim: str) -> Mip:
    """The joint program with its objective: the mean by weight, or a column that is at least every objective."""
    width = len(joint.mip.cost)
    if aim == "weighted":
        cost = np.zeros(width)
        share = weights / weights.sum()
        for mip, place, weight in zip(mips, joint.columns, share.tolist(), strict=True):
            np.add.at(cost, place, weight * mip.cost)
        return replace(joint.mip, cost=frozen(cost), offset=float(sum(s * mip.offset for s, mip in zip(share, mips))))
    row = len(joint.mip.row_lower)
    entries: list[tuple[IntArray, IntArray, Any]] = [
        (np.full(len(place), row + position), place, mip.cost)
        for position, (mip, place) in enumerate(zip(mips, joint.columns, strict=True))
    ]
    entries.append((row + np.arange(len(mips)), np.full(len(mips), width), -1.0))
    limits = np.array([-mip.offset for mip in mips])
    more = Extension("worst", columns=1, col_lower=-np.inf, rows=len(mips), row_upper=limits, entries=entries)
    program = extended(joint.mip, more)
    cost = np.zeros(width + 1)
    cost[width] = 1.0
    return replace(program, cost=frozen(cost), offset=0.0)


def robust_plan(
    kind: Kind[Any, Any],
    stages: TwoStage,
    instances: Mapping[str, Any],
    weights: Sequence[float],
    before: Any,
    aim: str,
    solver: str,
    gap: float,
    seed: int,
    threads: int | None,
    clock: Clock,
    cancel: threading.Event,
) -> Robust:
    """The robust plan; the first instance is the base, whose formulation decides for all."""
    names = list(instances)
    base = names[0]

    def recourse(plan: Any, starts: Mapping[str, Any], share: float) -> dict[str, Solution]:
        found = {}
        for position, name in enumerate(names):
            found[name] = solve(
                stages.recourse(instances[name], plan, name == base),
                solver,
                time_limit_s=clock.budget_s(share / (len(names) - position)),
                gap=gap,
                seed=seed,
                threads=threads,
                start=starts.get(name),
                cancel=cancel,
            )
        return found

    formulations = [
        kind.formulations["base"](instances[name]) if name == base else stages.formulate(instances[name])
        for name in names
    ]
    mips = [formulation.mip for formulation in formulations]
    shared = [stages.shared(mip) for mip in mips]
    joint = extensive(mips, shared, [stages.alive(instances[name]) for name in names])
    weight = np.array(weights, np.float64)
    if weight.sum() <= 0:
        weight = np.ones(len(names))
    program = stated(joint, mips, weight, aim)
    beside_base = recourse(before, {base: before}, 0.25)
    params = SolveParams(
        time_limit_s=clock.budget_s(0.75),
        gap=gap,
        seed=seed,
        threads=threads,
        cancel=cancel,
        start=_start(program, joint, formulations, [beside_base[name] for name in names], mips),
    )
    result = backends.get(solver).solve(program, params)
    plan, beside = None, {}
    if result.x is not None:
        pieces = zip(names, formulations, joint.columns, strict=True)
        starts = {name: one.decode(result.x[columns]) for name, one, columns in pieces}
        plan = starts[base]
        beside = recourse(plan, starts, 1.0)
        plan = beside[base].plan
    value = _value(list(beside.values()), weight, aim)
    return Robust(
        objective_kind=aim,
        decided=stages.decided,
        status=result.status,
        plan=plan,
        objective=value,
        bound=result.bound,
        base_objective=_value([beside_base[name] for name in names], weight, aim),
        robust=beside,
        base=beside_base,
    )


def _start(
    program: Mip,
    joint: Extensive,
    formulations: Sequence[Formulation[Any]],
    solutions: Sequence[Solution],
    mips: Sequence[Mip],
) -> FloatArray | None:
    """The base plan with its recourse, as a value for every column."""
    if any(solution.plan is None for solution in solutions):
        return None
    x = np.zeros(len(program.cost))
    values = [one.encode(solution.plan) for one, solution in zip(formulations, solutions, strict=True)]
    for place, columns in zip(reversed(joint.columns), reversed(values)):
        x[place] = columns
    if len(x) > len(joint.mip.cost):
        x[-1] = max(mip.objective(columns) for mip, columns in zip(mips, values, strict=True))
    return x


def _value(solutions: Sequence[Solution], weights: FloatArray, aim: str) -> float | None:
    objectives = [solution.objective for solution in solutions]
    known = [objective for objective in objectives if objective is not None]
    if not known or len(known) < len(objectives):
        return None
    return max(known) if aim == "worst" else float(np.dot(known, weights) / weights.sum())
