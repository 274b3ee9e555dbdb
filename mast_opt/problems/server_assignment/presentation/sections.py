"""Report tables of a server-assignment plan: who is guaranteed what, who gains and loses, where."""

from __future__ import annotations

import numpy as np

from mast_opt.core.units import MILLI
from mast_opt.problems.kind.presentation import Form, Head, Section
from mast_opt.problems.server_assignment.plan import Plan
from mast_opt.problems.server_assignment.problem import BUFFERS, ServerAssignment
from mast_opt.problems.server_assignment.verification.measures import Measure

NOBODY = "(nobody)"
Cell = str | float | int | None


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
    worst = then.held.max(axis=1, initial=0)
    rows: list[tuple[Cell, ...]] = [
        (
            p.reservations.labels[q],
            BUFFERS[p.reservations.buffer[q]],
            p.reservations.asked_mrru[q] / MILLI,
            now.guaranteed[q] / MILLI,
            then.guaranteed[q] / MILLI,
            then.short[q] / MILLI,
            int(gained[q]),
            int(lost[q]),
            _share(then.lost[q], then.total[q]) if p.buffered[q] else None,
            _share(worst[q], then.total[q]),
            p.switchboards.labels[int(then.held[q].argmax())] if then.total[q] else None,
        )
        for q in np.lexsort((-(gained + lost), -then.short)).tolist()
    ]
    heads = (
        *Form.TEXT.heads("reservation", "buffer"),
        *Form.AMOUNT.heads("asked, RRU", "guaranteed before", "guaranteed", "short"),
        *Form.COUNT.heads("servers gained", "servers lost"),
        *Form.FILL.heads("buffer share", "worst share"),
        Head("at switchboard"),
    )
    short = int((then.short > 0).sum())
    note = (
        f"{short} of {width} reservations are short of what they ask, by {then.short.sum() / MILLI:,.3f} RRU together."
        if short
        else "Every reservation is guaranteed what it asks."
    )
    return Section("Reservations", heads, tuple(rows), note)


def _moves(p: ServerAssignment, then: Measure) -> Section:
    """A row per pair of old and new owner; the busiest first."""
    width = len(p.reservations) + 1
    changed = np.flatnonzero(then.reservation != p.servers.owner)
    pair = p.servers.owner[changed] * width + then.reservation[changed]
    at, inverse, count = np.unique(pair, return_inverse=True, return_counts=True)
    in_use = np.bincount(inverse.reshape(-1), p.working[changed], len(at)).astype(np.int64)
    names = (*p.reservations.labels, NOBODY)
    rows: list[tuple[Cell, ...]] = [
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
    rows: list[tuple[Cell, ...]] = [
        (
            p.switchboards.labels[b],
            p.datacenters[p.switchboards.datacenter[b]],
            int(servers[b]),
            _share(given[b], servers[b]),
            takes[b] / MILLI,
            _share(takes[b], takes.sum()),
        )
        for b in np.argsort(-takes, kind="stable").tolist()
    ]
    heads = (
        *Form.TEXT.heads("switchboard", "datacenter"),
        Head("servers", Form.COUNT),
        Head("handed out", Form.FILL),
        Head("RRU lost with it", Form.AMOUNT),
        Head("share of all", Form.FILL),
    )
    return Section("Switchboards", heads, tuple(rows))


def _types(now: Measure, then: Measure) -> Section:
    """A row per type of server; the scarcest first."""
    p = now.p
    kinds = len(p.types)
    servers = np.bincount(p.servers.type, minlength=kinds)
    before, after = (np.bincount(p.servers.type[side.given], minlength=kinds) for side in (now, then))
    fill = after / np.maximum(servers, 1)
    rows: list[tuple[Cell, ...]] = [
        (p.types[t], int(servers[t]), _share(before[t], servers[t]), _share(after[t], servers[t]))
        for t in np.argsort(-fill, kind="stable").tolist()
    ]
    heads = (Head("type"), Head("servers", Form.COUNT), *Form.FILL.heads("handed out before", "handed out"))
    return Section("Types", heads, tuple(rows))


def _share(amount: float, of: float) -> float | None:
    return float(amount / of) if of else None
