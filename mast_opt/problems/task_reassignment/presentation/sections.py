"""Report tables and charts of a task-reassignment plan: what it costs, how full, who moves."""

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.kind.presentation import (
    Bars,
    Chart,
    Flows,
    Form,
    Head,
    HeatMap,
    Scale,
    Section,
    Values,
    listed,
    ratios,
)
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import Ints, TaskReassignment


def sections(problem: TaskReassignment, plan: Plan) -> tuple[Section, ...]:
    """Sections in the order of reading: resources, machines, moves between machines, services that move."""
    before, after = problem.held, problem.used(plan.machine)
    return (
        _resources(problem, before, after),
        _machines(problem, before, after),
        _moves(problem, plan),
        _services(problem, plan),
    )


def _share(amount: float, of: float) -> float | None:
    """Share of a machine's amount; None of nothing."""
    return float(amount / of) if of else None


def _resources(problem: TaskReassignment, before: Ints, after: Ints) -> Section:
    """A row per resource; the one furthest above its safety capacity first."""
    p = problem
    over = np.maximum(after - p.machines.safety, 0).sum(axis=0)
    over_before = np.maximum(before - p.machines.safety, 0).sum(axis=0)
    total, use = p.machines.capacity.sum(axis=0), after.sum(axis=0)
    above = int((after > p.machines.safety).any(axis=1).sum())
    return listed(
        "Resources",
        np.argsort(-over * p.resources.load_weight, kind="stable").tolist(),
        ("resource", Form.TEXT, lambda k: p.resources.labels[k]),
        ("capacity", Form.AMOUNT, lambda k: float(total[k])),
        ("used", Form.FILL, lambda k: _share(use[k], total[k])),
        ("over safety before", Form.AMOUNT, lambda k: float(over_before[k])),
        ("over safety", Form.AMOUNT, lambda k: float(over[k])),
        ("machines over safety", Form.COUNT, lambda k: int((after[:, k] > p.machines.safety[:, k]).sum())),
        note=f"{above} of {len(p.machines)} machines are above a safety capacity.",
    )


def _machines(problem: TaskReassignment, before: Ints, after: Ints) -> Section:
    """A row per machine with its tightest resource; the one that costs most first."""
    p = problem
    has = p.machines.capacity > 0
    fill = np.divide(after, p.machines.capacity, out=np.zeros(after.shape), where=has)
    fill_before = np.divide(before, p.machines.capacity, out=np.zeros(after.shape), where=has)
    tightest = fill.argmax(axis=1)
    cost = np.maximum(after - p.machines.safety, 0) @ p.resources.load_weight
    cost_before = np.maximum(before - p.machines.safety, 0) @ p.resources.load_weight
    return listed(
        "Machines",
        np.lexsort((-fill.max(axis=1), -cost)).tolist(),
        ("machine", Form.TEXT, lambda m: p.machines.labels[m]),
        ("location", Form.TEXT, lambda m: p.locations[p.machines.location[m]]),
        ("tightest resource", Form.TEXT, lambda m: p.resources.labels[tightest[m]]),
        ("fullest before", Form.FILL, lambda m: float(fill_before[m].max())),
        ("fullest", Form.FILL, lambda m: float(fill[m].max())),
        ("load cost before", Form.AMOUNT, lambda m: float(cost_before[m])),
        ("load cost", Form.AMOUNT, lambda m: float(cost[m])),
    )


def _moves(problem: TaskReassignment, plan: Plan) -> Section:
    """A row per pair of locations; the busiest first."""
    flows = sorted(_flows(problem, plan).flows, key=lambda flow: -flow[2])
    rows = tuple((source, target, int(count)) for source, target, count in flows)
    heads = (Head("from location"), Head("to location"), Head("processes", Form.COUNT))
    note = f"{sum(count for *_, count in rows)} of {len(problem.processes)} processes move."
    return Section("Moves", heads, rows, note)


def _services(problem: TaskReassignment, plan: Plan) -> Section:
    """A row per service that moves; the one with most moves first."""
    p = problem
    moved = np.bincount(p.processes.service[plan.machine != p.processes.initial], minlength=len(p.services))
    order = np.argsort(-moved, kind="stable")
    rows = [
        (p.services.labels[s], int(p.service_size[s]), int(moved[s])) for s in order[: int((moved > 0).sum())].tolist()
    ]
    heads = (Head("service"), Head("processes", Form.COUNT), Head("moved", Form.COUNT))
    return Section("Services that move", heads, tuple(rows))


def charts(problem: TaskReassignment, plan: Plan) -> tuple[Chart, ...]:
    """Charts in the order of reading: fill by location, fullest machines, amounts above safety capacity, moves."""
    p = problem
    after, moves = p.used(plan.machine), _flows(p, plan)
    return (_heat(p, after), _fullest(p, after), _over(p, after), *([moves] if moves.flows else []))


def _by_location(problem: TaskReassignment, amount: Ints) -> Ints:
    """Amounts of machines added up by location [L, K]."""
    total = np.zeros((len(problem.locations), len(problem.resources)), np.int64)
    np.add.at(total, problem.machines.location, amount)
    return total


def _heat(problem: TaskReassignment, after: Ints) -> HeatMap:
    """Heat map of capacity in use by location and resource, before and after the plan."""
    p = problem
    capacity = _by_location(p, p.machines.capacity)
    return HeatMap(
        title="Capacity in use",
        row_name="location",
        column_name="resource",
        rows=p.locations,
        columns=p.resources.labels,
        before=ratios(_by_location(p, p.held), capacity),
        after=ratios(_by_location(p, after), capacity),
        scale=Scale.FILL,
        note="All machines of a location together.",
    )


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
    """Bars of use over the safety capacity of machines, by resource, before and after."""
    p = problem

    def over(use: Ints) -> Values:
        shares = np.maximum(use - p.machines.safety, 0).sum(axis=0) / np.maximum(p.machines.capacity.sum(axis=0), 1)
        return tuple(shares.tolist())

    series = (("before", over(p.held)), ("after", over(after)))
    note = "As a share of the capacity of all machines."
    return Bars("Use above safety capacity", "resource", p.resources.labels, series, scale=Scale.FILL, note=note)


def _flows(problem: TaskReassignment, plan: Plan) -> Flows:
    """Flows of processes between locations."""
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
