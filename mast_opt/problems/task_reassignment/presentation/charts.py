"""Charts of a task reassignment: how full locations are, what is above safety capacity, what moves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.kind.presentation import Bars, Chart, Flows, HeatMap, Scale, Values, grid
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import Ints, TaskReassignment


def charts(problem: TaskReassignment, plan: Plan) -> tuple[Chart, ...]:
    """Charts in the order of reading: fill by location, fullest machines, amounts above safety capacity, moves."""
    p = problem
    after = np.zeros_like(p.machines.capacity)
    np.add.at(after, plan.machine, p.processes.need)
    moves = _moves(p, plan)
    return (_heat(p, after), _fullest(p, after), _over(p, after), *([moves] if moves.flows else []))


def _by_location(problem: TaskReassignment, amount: Ints) -> Ints:
    total = np.zeros((len(problem.locations), len(problem.resources)), np.int64)
    np.add.at(total, problem.machines.location, amount)
    return total


def _heat(problem: TaskReassignment, after: Ints) -> HeatMap:
    p = problem
    capacity = _by_location(p, p.machines.capacity)
    return HeatMap(
        title="Capacity in use",
        row_name="location",
        column_name="resource",
        rows=p.locations,
        columns=p.resources.labels,
        before=_ratios(_by_location(p, p.held), capacity),
        after=_ratios(_by_location(p, after), capacity),
        scale=Scale.FILL,
        note="All machines of a location together.",
    )


def _ratios(part: Ints, whole: Ints) -> tuple[Values, ...]:
    return grid([[a / b if b else None for a, b in zip(x, y)] for x, y in zip(part.tolist(), whole.tolist())])


def _fullest(problem: TaskReassignment, after: Ints) -> Bars:
    """The fill of each machine's fullest resource; the fullest machine first."""
    p = problem

    def fill(use: Ints) -> NDArray[np.float64]:
        return np.asarray(
            np.divide(use, p.machines.capacity, out=np.zeros(use.shape), where=p.machines.capacity > 0).max(axis=1)
        )

    now, then = fill(p.held), fill(after)
    order = np.argsort(-then, kind="stable")
    series = (("before", tuple(now[order].tolist())), ("after", tuple(then[order].tolist())))
    names = tuple(p.machines.labels[m] for m in order.tolist())
    return Bars("Fullest resource of each machine", "machine", names, series, scale=Scale.FILL)


def _over(problem: TaskReassignment, after: Ints) -> Bars:
    p = problem

    def over(use: Ints) -> Values:
        shares = np.maximum(use - p.machines.safety, 0).sum(axis=0) / np.maximum(p.machines.capacity.sum(axis=0), 1)
        return tuple(shares.tolist())

    series = (("before", over(p.held)), ("after", over(after)))
    note = "As a share of the capacity of all machines."
    return Bars("Use above safety capacity", "resource", p.resources.labels, series, scale=Scale.FILL, note=note)


def _moves(problem: TaskReassignment, plan: Plan) -> Flows:
    p = problem
    moved = plan.machine != p.processes.initial
    places = len(p.locations)
    pair = p.machines.location[p.processes.initial[moved]] * places + p.machines.location[plan.machine[moved]]
    at, count = np.unique(pair, return_counts=True)
    flows = tuple(
        (p.locations[a // places], p.locations[a % places], float(n))
        for a, n in zip(at.tolist(), count.tolist(), strict=True)
    )
    note = f"{int(moved.sum()):,} of {len(p.processes):,} processes move; to the same name means within the location."
    return Flows("Moves between locations", "from", "to", flows, "processes", note)
