"""Charts of a server assignment: what is handed out, what is guaranteed, what changes hands.

Every figure comes from the verifier's half of the problem (``measure``), none from a solver.
"""

from __future__ import annotations

import numpy as np

from mast_opt.core.units import MILLI
from mast_opt.problems.kind.presentation import Bars, Chart, Flows, HeatMap, Scale, Values, grid
from mast_opt.problems.server_assignment.plan import Plan
from mast_opt.problems.server_assignment.problem import Ints, ServerAssignment
from mast_opt.problems.server_assignment.verification.measures import Measure

NOBODY = "nobody"


def charts(problem: ServerAssignment, plan: Plan) -> tuple[Chart, ...]:
    """Charts in the order of reading: servers in use, guarantees, the largest loss, servers that change hands."""
    p = problem
    before, after = Measure(p, p.servers.owner), Measure(p, plan.reservation)
    changes = _changes(p, plan)
    return (
        _heat(p, plan),
        _guarantees(p, before, after),
        _largest(p, before, after),
        *([changes] if changes.flows else []),
    )


def _heat(problem: ServerAssignment, plan: Plan) -> HeatMap:
    p = problem

    def count(servers: Ints) -> Ints:
        total = np.zeros((len(p.datacenters), len(p.types)), np.int64)
        place = p.switchboards.datacenter[p.server_switchboard[servers]]
        np.add.at(total, (place, p.servers.type[servers]), 1)
        return total

    there = count(np.arange(len(p.servers)))
    return HeatMap(
        title="Servers handed out",
        row_name="datacenter",
        column_name="server type",
        rows=p.datacenters,
        columns=p.types,
        before=_ratios(count(np.flatnonzero(p.owned)), there),
        after=_ratios(count(np.flatnonzero(plan.reservation < len(p.reservations))), there),
        scale=Scale.FILL,
        note="As a share of the servers there are.",
    )


def _ratios(part: Ints, whole: Ints) -> tuple[Values, ...]:
    return grid([[a / b if b else None for a, b in zip(x, y)] for x, y in zip(part.tolist(), whole.tolist())])


def _guarantees(problem: ServerAssignment, before: Measure, after: Measure) -> Bars:
    p = problem
    named = (
        ("asked", p.reservations.asked_mrru),
        ("guaranteed before", before.guaranteed),
        ("guaranteed", after.guaranteed),
    )
    series = tuple((name, tuple((np.maximum(amount, 0) / MILLI).tolist())) for name, amount in named)
    missing = float(after.short.sum()) / MILLI
    note = (
        f"What is left whichever switchboard is lost. {f'{missing:,.6g} RRU are' if missing else 'Nothing is'} missing."
    )
    return Bars("Capacity asked and guaranteed", "reservation", p.reservations.labels, series, "RRU", note=note)


def _largest(problem: ServerAssignment, before: Measure, after: Measure) -> Bars:
    def share(side: Measure) -> Values:
        most, whole = side.held.max(axis=1, initial=0).tolist(), side.total.tolist()
        return tuple(part / all_of_it if all_of_it else None for part, all_of_it in zip(most, whole, strict=True))

    series = (("before", share(before)), ("after", share(after)))
    title = "Share of the fullest switchboard"
    return Bars(title, "reservation", problem.reservations.labels, series, scale=Scale.FILL)


def _changes(problem: ServerAssignment, plan: Plan) -> Flows:
    p = problem
    names = (*p.reservations.labels, NOBODY)
    moved = plan.reservation != p.servers.owner
    pair, count = np.unique(p.servers.owner[moved] * len(names) + plan.reservation[moved], return_counts=True)
    flows = tuple(
        (names[at // len(names)], names[at % len(names)], float(number))
        for at, number in zip(pair.tolist(), count.tolist(), strict=True)
    )
    note = f"{int(moved.sum()):,} of {len(p.servers):,} servers change hands."
    return Flows("Servers that change hands", "from", "to", flows, "servers", note)
