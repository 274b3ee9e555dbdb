"""Incumbent and bound over the time of the solve."""

from __future__ import annotations

from collections.abc import Iterable

from mast_opt.core.solve_result import Event
from mast_opt.kind.presentation import Lines


def convergence(events: Iterable[Event]) -> Lines | None:
    """The chart of a solve's events; None where there were none. An incumbent goes before its bound, for its colour."""
    seen: dict[str, dict[float, float]] = {}
    for event in events:
        stage = "" if event.stage is None else f" of {event.stage}"
        for name, value in (("incumbent", event.incumbent), ("bound", event.bound)):
            points = seen.setdefault(name + stage, {})
            if value is not None:
                points[event.elapsed_s] = value
    known = {name: points for name, points in seen.items() if points}
    if not known:
        return None
    last = max(at for points in known.values() for at in points)
    for points in known.values():
        points.setdefault(last, points[max(points)])
    ordered = tuple((name, tuple(sorted(points.items()))) for name, points in known.items())
    note = "The incumbent is the best plan so far; no plan is better than the bound."
    return Lines("How the search went", "seconds", "objective", ordered, note)
