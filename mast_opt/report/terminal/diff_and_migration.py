"""What changed between two plans, and the way to a plan, for a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.text import Text

from mast_opt.analysis.plan_diff import Change, Diff, TableDiff
from mast_opt.core.number_format import UNKNOWN, plain
from mast_opt.core.wording import counted
from mast_opt.kind.migration_plan import Move, Order
from mast_opt.kind.presentation import Form, Head, Section
from mast_opt.report.terminal.current_state import today_section
from mast_opt.report.terminal.layout import light_table, print_table, print_words
from mast_opt.report.terminal.sections import TOP_ROWS, show_section


def show_diff(console: Console, found: Diff, rows: int | None = TOP_ROWS) -> None:
    """Print what differs: figures first, then a section for each table with a difference."""
    sides = ("The present state", "The plan") if found.from_today else ("The first plan", "The second plan")
    for words, broken in zip(sides, found.violations, strict=True):
        if broken:
            console.print(Text(f"{words} breaks {counted(broken, 'limit')}.", "bold red"))
    if not found.differs:
        console.print("The plan changes nothing." if found.from_today else "The plans are the same.")
    partial = found.from_today and found.today is not None and not found.today.complete
    if found.from_today and found.today is not None:
        show_section(console, today_section(found.today), rows)
    _figures(console, "Objective and terms", {"objective": found.objective, **found.terms}, partial=partial)
    _figures(console, "Metrics", found.metrics, partial=partial)
    for table in (*found.tables, *found.instance):
        if table.differs:
            show_section(console, table_section(table), rows)


def _figures(console: Console, title: str, changes: Mapping[str, Change], *, partial: bool) -> None:
    """A row for each figure; where only a part of today is known, the difference says nothing and is left out."""
    table = light_table(title, ("", "known part before" if partial else "before", "after", "change"))
    for name, change in changes.items():
        if change.before or change.after:
            table.add_row(name, plain(change.before), plain(change.after), UNKNOWN if partial else signed(change.by))
    print_table(console, table)


def signed(value: float | None) -> str:
    """A change: with its sign, or = where nothing changed."""
    if value is None:
        return UNKNOWN
    return "=" if value == 0 else f"{'+' if value > 0 else ''}{plain(value)}"


def table_section(table: TableDiff) -> Section:
    """The differences of a table, what is added first; a cell that changed shows both values."""
    plus = [("+", *key, *values) for key, values in table.added]
    minus = [("−", *key, *values) for key, values in table.removed]
    other = [("~", *key, *map(_both, before, after)) for key, before, after in table.changed]
    note = (
        f"{len(table.added):,} added, {len(table.removed):,} removed, {len(table.changed):,} changed, "
        f"{table.same:,} the same."
    )
    heads = tuple(Head(name, Form.TEXT) for name in ("", *table.key, *table.values))
    return Section(table.name, heads, (*plus, *other, *minus), note)


def _both(before: str | None, after: str | None) -> str | None:
    return after if before == after else f"{before or UNKNOWN} → {after or UNKNOWN}"


def show_order(console: Console, order: Order, rows: int | None = TOP_ROWS) -> None:
    """Print the steps in order, what is stuck, and what would help."""
    if order.stuck:
        style, verb = "bold red", "is" if order.proven else "was found"
        console.print(Text.assemble(("STUCK", style), f"  there {verb} no order of steps within every limit"))
    else:
        console.print(Text.assemble(("DONE", "bold green"), f"  {_size(order)}"))
    for words in order.relief:
        print_words(console, f"- {words}" + ("" if order.proven else " (there may be less)"))
    for words in order.notes:
        print_words(console, f"- {words}")
    if order.stopped:
        show_section(console, stops_section(order), rows)
    if order.stuck:
        heads = (Head("stuck"), Head("should go to"), Head("why"))
        show_section(console, Section("What is left", heads, tuple((s.what, s.target, s.reason) for s in order.stuck)))
    if order.moves:
        show_section(console, moves_section(order), rows)


def _size(order: Order) -> str:
    count, waves, days = len(order.moves), order.waves, order.days
    if not count:
        return "nothing has to be done"
    times = "" if days is None else f", {counted(days, 'day')}"
    return f"{counted(count, 'step')} in {counted(waves, 'wave')}{times}"


def stops_section(order: Order) -> Section:
    """A row for all work that has to stop for a while."""
    heads = (
        Head("work"),
        Head("share", Form.AMOUNT),
        Head("GPUs", Form.AMOUNT),
        Head("stops on day", Form.COUNT),
        Head("for days"),
    )
    rows = tuple(
        (stop.what, stop.share, stop.gpus, stop.day + 1, f"{stop.days:,}" if stop.days else "less than one")
        for stop in order.stopped
    )
    return Section("Work that stops for a while", heads, rows)


def moves_section(order: Order) -> Section:
    """A row a step; columns that no step fills are left out."""
    moves = order.moves
    columns: list[tuple[Head, list[str | float | int | None]]] = [
        (Head("wave", Form.COUNT), [move.wave + 1 for move in moves]),
        (Head("day"), [_days(move) for move in moves]),
        (Head("step"), [move.action + (" (stopover)" if move.hop else "") for move in moves]),
        (Head("what"), [move.what for move in moves]),
        (Head("from"), [move.source for move in moves]),
        (Head("to"), [move.target for move in moves]),
        *_amounts(order),
    ]
    kept = [(head, cells) for head, cells in columns if _filled(cells)]
    rows = tuple(zip(*(cells for _, cells in kept), strict=True))
    return Section("Steps", tuple(head for head, _ in kept), rows)


def _amounts(order: Order) -> list[tuple[Head, list[str | float | int | None]]]:
    """A column for each unit, and for shares of work where only a share of it moves."""
    moves = order.moves
    units = sorted(
        {move.unit for move in moves if move.amount is not None}, key=lambda unit: (unit != order.unit, unit)
    )
    columns: list[tuple[Head, list[str | float | int | None]]] = [
        (Head(unit, Form.AMOUNT), [move.amount if move.unit == unit else None for move in moves]) for unit in units
    ]
    if any(move.share not in (None, 1.0) for move in moves):
        columns.append((Head("share", Form.AMOUNT), [move.share for move in moves]))
    return columns


def _days(move: Move) -> str | None:
    if move.day is None:
        return None
    return str(move.day + 1) if move.days == 1 else f"{move.day + 1}–{move.day + move.days}, each"


def _filled(cells: Iterable[object]) -> bool:
    return any(cell is not None for cell in cells)
