"""The present state of an instance for a person."""

from __future__ import annotations

from mast_opt.core.wording import counted
from mast_opt.problems.kind.current_state import CurrentState
from mast_opt.problems.kind.presentation import Form, Head, Section


def today_section(state: CurrentState) -> Section:
    """Section on how much of today is known, with a row for each limit that it breaks."""
    parts = [f"{one.known:,.6g} of {one.of:,.6g} {one.what} ({one.share:.0%})" for one in state.known]
    breaks = f"It breaks {counted(len(state.broken), 'limit')}." if state.broken else "It breaks no limit."
    partial = "" if state.complete else " Figures of today count this part only."
    note = " ".join((f"Known: {', '.join(parts)}.{partial}", breaks, *state.notes))
    rows = tuple((one.limit, ", ".join(one.index), one.message) for one in state.broken)
    return Section("Today", (Head("limit", Form.TEXT), Head("where", Form.TEXT), Head("what", Form.TEXT)), rows, note)
