"""The events of a solve as JSON lines: in a file of their own, and next to a plan."""

import json
import math
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from mast_opt.core.errors import Fault, PlanError
from mast_opt.core.limits import MOST_EVENTS_BYTES, read_regular
from mast_opt.core.solve_result import Event

EVENTS = "events.jsonl"
"""The file in a plan's folder that holds the events of the solve that found it."""

LONGEST = 1000
"""Bytes that a line is at most."""
NO_EVENT = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""Exceptions that a line can raise that is no event."""


def event_line(event: Event) -> str:
    """An event as one line of JSON, without the end of the line."""
    return json.dumps(
        {
            "elapsed_s": round(event.elapsed_s, 6),
            "incumbent": event.incumbent,
            "bound": event.bound,
            "gap": event.gap,
            "stage": event.stage,
            "compiling": event.compiling,
        }
    )


def write_events(folder: Path, events: Iterable[Event]) -> None:
    """Write the events next to a plan; no file without events."""
    lines = [event_line(event) + "\n" for event in events]
    if lines:
        (folder / EVENTS).write_text("".join(lines), encoding="utf-8", newline="\n")


def read_events(plan: str | PathLike[str]) -> tuple[Event, ...]:
    """The events next to a plan; none where it keeps none. Raises PlanError, which names each line that is none."""
    path = Path(plan) / EVENTS
    if not path.is_file():
        return ()
    try:
        lines = read_regular(path, MOST_EVENTS_BYTES, inside=path.parent).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError([Fault(EVENTS, f"lines of JSON ({error})")]) from None
    events: list[Event] = []
    faults: list[Fault] = []
    for number, line in enumerate(lines, start=1):
        try:
            events.append(_event(json.loads(line)))
        except NO_EVENT:
            expected = "an object with elapsed_s, incumbent, bound and stage"
            faults.append(Fault(EVENTS, expected, row=number, value=line[:60]))
    if faults:
        raise PlanError(faults)
    return tuple(events)


def has_events(path: Path) -> bool:
    """Whether a file of events is empty or its first line is an event. Raises OSError where it cannot be read."""
    with path.open("rb") as file:
        first = file.readline(LONGEST)
    try:
        return not first or bool(_event(json.loads(first)))
    except NO_EVENT:
        return False


def _event(fields: dict[str, object]) -> Event:
    """Event of a solve from a line of JSON. Raises ValueError."""
    elapsed, stage = _number(fields["elapsed_s"]), fields.get("stage")
    if elapsed is None or not (stage is None or isinstance(stage, str)):
        raise ValueError(fields)
    return Event(
        elapsed, _number(fields.get("incumbent")), _number(fields.get("bound")), stage, fields.get("compiling") is True
    )


def _number(value: object) -> float | None:
    """Finite number in an event's line, or None. Raises ValueError."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(value)
    return float(value)
