"""Report tables and charts of a server-assignment plan: who is guaranteed what, who gains and loses, where."""

import numpy as np

from mast_opt.core.units import MILLI
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
from mast_opt.problems.server_assignment.plan import Plan
from mast_opt.problems.server_assignment.problem import BUFFERS, Ints, ServerAssignment
from mast_opt.problems.server_assignment.verification.measures import Measure

NOBODY = "(nobody)"


def sections(problem: ServerAssignment, plan: Plan) -> tuple[Section, ...]:
    """Sections in the order of reading: reservations, who takes servers from whom, switchboards, types."""
    now, then = Measure(problem, problem.servers.owner), Measure(problem, plan.reservation)
    return (_reservations(problem, now, then), _moves(problem, then), _switchboards(problem, then), _types(now, then))


def _reservations(p: ServerAssignment, now: Measure, then: Measure) -> Section:
    """A row per reservation; the one that is shortest first, then the one with most moves."""
    width = len(p.reservations)
    changed = np.flatnonzero(then.reservation != p.servers.owner)
    gained = np.bincount(then.reservation[changed], minlength=width + 1)[:width]
    lost = np.bincount(p.servers.owner[changed], minlength=width + 1)[:width]
    worst, boards = then.held.max(axis=1, initial=0), p.switchboards.labels
    short = int((then.short > 0).sum())
    note = (
        f"{short} of {width} reservations are short of what they ask, by {then.short.sum() / MILLI:,.3f} RRU together."
        if short
        else "Every reservation is guaranteed what it asks."
    )
    return listed(
        "Reservations",
        np.lexsort((-(gained + lost), -then.short)).tolist(),
        ("reservation", Form.TEXT, lambda q: p.reservations.labels[q]),
        ("buffer", Form.TEXT, lambda q: BUFFERS[p.reservations.buffer[q]]),
        ("asked, RRU", Form.AMOUNT, lambda q: p.reservations.asked_mrru[q] / MILLI),
        ("guaranteed before", Form.AMOUNT, lambda q: now.guaranteed[q] / MILLI),
        ("guaranteed", Form.AMOUNT, lambda q: then.guaranteed[q] / MILLI),
        ("short", Form.AMOUNT, lambda q: then.short[q] / MILLI),
        ("servers gained", Form.COUNT, lambda q: int(gained[q])),
        ("servers lost", Form.COUNT, lambda q: int(lost[q])),
        ("buffer share", Form.FILL, lambda q: _share(then.lost[q], then.total[q]) if p.buffered[q] else None),
        ("worst share", Form.FILL, lambda q: _share(worst[q], then.total[q])),
        ("at switchboard", Form.TEXT, lambda q: boards[int(then.held[q].argmax())] if then.total[q] else None),
        note=note,
    )


def _moves(p: ServerAssignment, then: Measure) -> Section:
    """A row per pair of old and new owner; the busiest first."""
    width = len(p.reservations) + 1
    changed = np.flatnonzero(then.reservation != p.servers.owner)
    pair = p.servers.owner[changed] * width + then.reservation[changed]
    at, inverse, count = np.unique(pair, return_inverse=True, return_counts=True)
    in_use = np.bincount(inverse.reshape(-1), p.working[changed], len(at)).astype(np.int64)
    names = (*p.reservations.labels, NOBODY)
    rows = [
        (names[at[row] // width], names[at[row] % width], int(count[row]), int(in_use[row]))
        for row in np.argsort(-count, kind="stable").tolist()
    ]
    heads = (Head("from"), Head("to"), Head("servers", Form.COUNT), Head("in use", Form.COUNT))
    taken, used = len(then.taken), int(in_use.sum())
    note = f"{taken} of {len(p.servers)} servers are taken from a reservation, {used} of them in use."
    return Section("Moves", heads, tuple(rows), note)


def _switchboards(p: ServerAssignment, then: Measure) -> Section:
    """A row per switchboard; the one whose loss takes most first."""
    boards = len(p.switchboards)
    servers = np.bincount(p.server_switchboard, minlength=boards)
    given = np.bincount(p.server_switchboard[then.given], minlength=boards)
    takes = then.held.sum(axis=0)
    return listed(
        "Switchboards",
        np.argsort(-takes, kind="stable").tolist(),
        ("switchboard", Form.TEXT, lambda b: p.switchboards.labels[b]),
        ("datacenter", Form.TEXT, lambda b: p.datacenters[p.switchboards.datacenter[b]]),
        ("servers", Form.COUNT, lambda b: int(servers[b])),
        ("handed out", Form.FILL, lambda b: _share(given[b], servers[b])),
        ("RRU lost with it", Form.AMOUNT, lambda b: takes[b] / MILLI),
        ("share of all", Form.FILL, lambda b: _share(takes[b], takes.sum())),
    )


def _types(now: Measure, then: Measure) -> Section:
    """A row per type of server in the assignment; the scarcest first."""
    p = now.p
    kinds = len(p.types)
    servers = np.bincount(p.servers.type, minlength=kinds)
    before, after = (np.bincount(p.servers.type[side.given], minlength=kinds) for side in (now, then))
    fill = after / np.maximum(servers, 1)
    rows = [
        (p.types[t], int(servers[t]), _share(before[t], servers[t]), _share(after[t], servers[t]))
        for t in np.argsort(-fill, kind="stable").tolist()
    ]
    heads = (Head("type"), Head("servers", Form.COUNT), *Form.FILL.heads("handed out before", "handed out"))
    return Section("Types", heads, tuple(rows))


def _share(amount: float, of: float) -> float | None:
    """Share of a reservation's amount; None of nothing."""
    return float(amount / of) if of else None


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
    """Heat map of servers by datacenter and type, before and after the plan."""
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
        before=ratios(count(np.flatnonzero(p.owned)), there),
        after=ratios(count(np.flatnonzero(plan.reservation < len(p.reservations))), there),
        scale=Scale.FILL,
        note="As a share of the servers there are.",
    )


def _guarantees(problem: ServerAssignment, before: Measure, after: Measure) -> Bars:
    """Bars of guaranteed RRUs by reservation, before and after."""
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
    """Bars of each reservation's share at its fullest switchboard, before and after."""

    def share(side: Measure) -> Values:
        most, whole = side.held.max(axis=1, initial=0).tolist(), side.total.tolist()
        return tuple(part / all_of_it if all_of_it else None for part, all_of_it in zip(most, whole, strict=True))

    series = (("before", share(before)), ("after", share(after)))
    title = "Share of the fullest switchboard"
    return Bars(title, "reservation", problem.reservations.labels, series, scale=Scale.FILL)


def _changes(problem: ServerAssignment, plan: Plan) -> Flows:
    """Flows of servers between reservations."""
    p = problem
    names = (*p.reservations.labels, "nobody")
    moved = plan.reservation != p.servers.owner
    pair, count = np.unique(p.servers.owner[moved] * len(names) + plan.reservation[moved], return_counts=True)
    flows = tuple(
        (names[at // len(names)], names[at % len(names)], float(number))
        for at, number in zip(pair.tolist(), count.tolist(), strict=True)
    )
    note = f"{int(moved.sum()):,} of {len(p.servers):,} servers change hands."
    return Flows("Servers that change hands", "from", "to", flows, "servers", note)
