"""Sections of what changes: how two plans differ, and the steps that lead from one to the other."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from mast_opt.core.wording import UNKNOWN, gpus, in_gpus, percent, plain
from mast_opt.planner.analysis.plan_diff import Diff, TableDiff, Worth
from mast_opt.planner.report.result_sections import compared_rows, waiting_sections
from mast_opt.problems.kind.migration_plan import Move, Order, waits_for
from mast_opt.problems.kind.presentation import Cell, Form, Head, Section
from mast_opt.problems.registry import kind_named

GPUS = "GPUs"
"""The unit of steps with work."""
OVER_AFTER = "GPUs over the supply day by day"
SAME = 1e-6
"""Relative difference of two sums that comes from rounding."""
ONE_BY_ONE = "the changes one by one, added up"
ADDED_UP = (
    " One by one they do not add up to all together: each is undone while the others are made, so what needs two of "
    "them (a swap, room that one leaves to the other) counts in both rows, and what either brings alone in neither."
)
"""Note where the sum of what changes buy is not what they buy together."""


def diff_sections(found: Diff) -> tuple[Section, ...]:
    """Figures before and after, the rows of the inputs that differ, then those of each table of the plans."""
    figures = {"objective": found.objective, **found.terms, **found.metrics}
    rows = tuple((name, one.before, one.after, one.by) for name, one in figures.items() if one.before or one.after)
    heads = (Head("figure"), *Form.FIGURE.heads("before", "after", "change"))
    tables = [table_section(table) for table in found.tables if table.differs]
    shut = (Section("Why the first plan no longer holds", (Head("limit"),), tuple((one,) for one in found.shut)),)
    return (
        Section("Figures", heads, rows, " ".join(found.notes)),
        *input_sections(found),
        *(shut if found.shut else ()),
        *kept_sections(found),
        *worth_sections(found),
        *tables,
    )


def input_sections(found: Diff) -> tuple[Section, ...]:
    """The tables of the instance that differ: what a plan may have changed for."""
    sections = [table_section(table) for table in found.instance if table.differs]
    return tuple(replace(one, title=f"Changed input: {one.title}") for one in sections)


def kept_sections(found: Diff) -> tuple[Section, ...]:
    """Section on what keeping the first plan would come to in the second instance, where that is another one."""
    if found.kept is None:
        return ()
    before, after = found.kept, {name: one.after or 0.0 for name, one in {**found.terms, **found.metrics}.items()}
    measured = [{**before.terms, **before.metrics, **found.moves[0]}, {**after, **found.moves[1]}]
    rows: list[tuple[Cell, ...]] = [
        ("objective", plain(before.objective), plain(found.objective.after)),
        *compared_rows(kind_named(found.kind), measured),
        ("limits that it breaks", f"{len(before.violations):,}", f"{found.violations[1]:,}"),
    ]
    heads = Form.TEXT.heads("figure", "first plan, kept", "second plan")
    note = "Both in the second plan's instance: what keeping the first plan would come to."
    note += f" The first plan lacks {found.lacking}." if found.lacking else ""
    return (Section("If the first plan were kept", heads, tuple(rows), note),)


def worth_sections(found: Diff) -> tuple[Section, ...]:
    """Section on what each independent change buys, the most first, after all at once and the sum of the rows."""
    if not found.changes:
        return ()
    heads = (*Form.TEXT.heads("change"), Head("buys", Form.AMOUNT), *Form.TEXT.heads("of which", "keeps"))
    most = max(abs(one.buys) for one in found.changes)
    shown = [one for one in found.changes if one.keeps or abs(one.buys) > SAME * most or not most]
    rows: list[tuple[Cell, ...]] = [
        (one.change, one.buys, _of_which(one), "; ".join(one.keeps) or None) for one in shown
    ]
    note = "Growth of the objective if this change alone were undone, and limits that it keeps."
    rest = len(found.changes) - len(shown)
    note += f" {rest:,} more {'buys and keeps' if rest == 1 else 'buy and keep'} nothing." if rest else ""
    if found.together:
        whole = found.together
        total = sum(one.buys for one in found.changes)
        if abs(total - whole.buys) > SAME * max(abs(total), abs(whole.buys)):
            rows.insert(0, (ONE_BY_ONE, total, None, None))
            note += ADDED_UP
        rows.insert(0, (whole.change, whole.buys, _of_which(whole), "; ".join(whole.keeps) or None))
    return (Section("What each change buys", heads, tuple(rows), note),)


def _of_which(worth: Worth) -> str:
    """The three largest changes of terms in words, for a section, with the USD of those that are money."""
    largest = sorted(worth.terms.items(), key=lambda term: -abs(term[1]))[:3]
    usd = {name: f" ({value:+,.0f} USD)" for name, value in worth.usd.items()}
    return ", ".join(f"{name} {value:+.3g}{usd.get(name, '')}" for name, value in largest)


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
    """A cell of a difference in words: one value, or before → after."""
    return after if before == after else f"{before or UNKNOWN} → {after or UNKNOWN}"


def order_sections(order: Order) -> tuple[Section, ...]:
    """Sections on the steps to a plan, then work that stops on the way and what is stuck."""
    found = [moves_section(order)] if order.moves else []
    stuck = (stuck_section(order),) if order.stuck else ()
    return (*found, *over_sections(order), *stopped_sections(order), *waiting_sections(order), *stuck)


def over_sections(order: Order) -> tuple[Section, ...]:
    """Section with a row for today and for each day with steps: GPUs over the supply after it; nothing without any."""
    heads = (_day(order, "after"), Head("steps", Form.COUNT), Head("GPUs over", Form.GPUS))
    rows = tuple((_when(order, one.day), one.steps, one.gpus) for one in order.over_after)
    return (Section(OVER_AFTER, heads, rows, "The first row is today."),) if rows else ()


def stuck_section(order: Order) -> Section:
    """Section of what does not get where the plan wants it."""
    heads = (Head("stuck"), Head("should go to"), Head("why"))
    return Section("What is left", heads, tuple((one.what, one.target, one.reason) for one in order.stuck))


def stopped_sections(order: Order) -> tuple[Section, ...]:
    """Sections on work that stops on the way, and on work that is down from the start, as far as there is any."""
    return tuple(section for section in (stops_section(order), down_section(order)) if section.rows)


def down_section(order: Order) -> Section:
    """A row for all work that is down from the start, since it ran in a region that is lost."""
    down = [one for one in order.stopped if one.lost is not None]
    columns: list[tuple[Head, list[Cell]]] = [
        (Head("work"), [one.what for one in down]),
        (Head("tier", Form.COUNT), [one.tier for one in down]),
        (Head("lost with"), [one.lost for one in down]),
        (Head("share", Form.AMOUNT), [one.share for one in down] if any(one.share < 1 for one in down) else []),
        (Head("GPUs used", Form.GPUS), [one.gpus for one in down]),
        (_day(order, "starts on"), [_when(order, one.days) if one.runs else None for one in down]),
        (Head("days down", Form.COUNT), [one.days if one.runs else None for one in down]),
        (Head("GPUs missing", Form.GPUS), [one.gpus_missing or None for one in down]),
        (Head("waits for"), [waits_for(one) or None for one in down]),
    ]
    kept = [(head, cells) for head, cells in columns if _filled(cells)]
    rows = tuple(zip(*(cells for _, cells in kept), strict=True))
    refused = sum(one.days is None for one in down)
    note = "It runs nowhere until the wave in which it starts has ended; 0 days: less than one."
    note += f" The plan does not start {refused:,} of these again." if refused else ""
    without = sum(one.days is not None and not one.runs for one in down)
    note += f" No GPUs are free for {without:,} where they start." if without else ""
    return Section("Work down from the start", tuple(head for head, _ in kept), rows, note)


def stops_section(order: Order) -> Section:
    """A row for all work that has to stop on the way."""
    stopped = [stop for stop in order.stopped if stop.lost is None]
    heads = (
        Head("work"),
        Head("share", Form.AMOUNT),
        Head(GPUS, Form.GPUS),
        _day(order, "stops on"),
        Head("for days", Form.COUNT),
    )
    rows = tuple((stop.what, stop.share, stop.gpus, _when(order, stop.day), stop.days) for stop in stopped)
    note = "0 days: less than one. " if any(stop.days == 0 for stop in stopped) else ""
    note += "Without days: no plan has GPUs for it." if any(stop.days is None for stop in stopped) else ""
    return Section("Work that stops", heads, rows, note.strip())


def moves_section(order: Order, *, narrow: bool = False) -> Section:
    """Section with a row for each step to a plan; columns that no step fills are left out.

    Args:
        order: the steps.
        narrow: whether amounts of several units, and shares, are in one column, as text, and days are in one, as "3–4"
            or "Dec 7–8".
    """
    moves, amounts = order.moves, _amounts(order)
    long = any(move.days > 1 for move in moves)
    times: list[tuple[Head, list[Cell]]] = [
        (_day(order, ""), [_when(order, move.day) for move in moves]),
        (Head("days", Form.COUNT), [move.days if long else None for move in moves]),
    ]
    columns: list[tuple[Head, list[Cell]]] = [
        (Head("wave", Form.COUNT), [move.wave + 1 for move in moves]),
        *([(Head(times[0][0].title), [_span(order, move) for move in moves])] if narrow else times),
        (Head("step"), [move.action + (" (stopover)" if move.hop else "") for move in moves]),
        (Head("what"), [move.what for move in moves]),
        (Head("from"), [move.origin for move in moves]),
        (Head("to"), [move.destination for move in moves]),
        *([(Head("amount"), [*map(_amount, moves)])] if narrow and len(amounts) > 1 else amounts),
        (Head("USD", Form.AMOUNT), [None if narrow else move.usd or None for move in moves]),
    ]
    kept = [(head, cells) for head, cells in columns if _filled(cells)]
    rows = tuple(zip(*(cells for _, cells in kept), strict=True))
    note = "Amounts are those of each of the days." if long else ""
    note += " USD are those of all days." if long and order.usd and not narrow else ""
    note += f" The first day is {order.begin}." if narrow and order.begin else ""
    return Section("Steps", tuple(head for head, _ in kept), rows, note.strip())


def _span(order: Order, move: Move) -> str | None:
    """The days of a step, "3–4", or its dates without the year, "Dec 7–8"."""
    if move.day is None:
        return None
    days = move.day, move.day + move.days - 1
    if order.begin is None:
        return "–".join(dict.fromkeys(f"{day + 1}" for day in days))
    first, last = (order.begin + timedelta(days=day) for day in days)
    end = f"{last.day}" if last.month == first.month else f"{last:%b} {last.day}"
    return f"{first:%b} {first.day}" + ("" if move.days == 1 else f"–{end}")


def _day(order: Order, words: str) -> Head:
    """Head of a column of days, or of dates where the first is known."""
    dated = order.begin is not None
    return Head(f"{words} {'date' if dated else 'day'}".strip(), Form.TEXT if dated else Form.COUNT)


def _when(order: Order, day: int | None) -> Cell:
    """A day of the steps in a section: its date where that of the first is known, else its number from 1 on."""
    return None if day is None else order.date_of(day) or day + 1


def _amounts(order: Order) -> list[tuple[Head, list[Cell]]]:
    """Columns of the steps to a plan: one for each unit, and for shares of work where only a share of it moves."""
    moves = order.moves
    units = sorted(
        {move.unit for move in moves if move.amount is not None}, key=lambda unit: (unit != order.unit, unit)
    )
    columns: list[tuple[Head, list[Cell]]] = []
    for unit in units:
        amounts = [move.amount if move.unit == unit else None for move in moves]
        columns.append((Head(unit, Form.GPUS if unit == GPUS else Form.AMOUNT), [*amounts]))
    columns.append((Head("GPUs missing", Form.GPUS), [move.gpus_missing or None for move in moves]))
    if any(move.share not in (None, 1.0) for move in moves):
        columns.append((Head("share", Form.AMOUNT), [move.share for move in moves]))
    return columns


def _amount(move: Move) -> str | None:
    """The amount of a step with its unit, and the share of work where only a part moves: "32 GPUs (19%)", and where it
    is less than one GPU "below 1 GPU (0.4%)"."""
    if move.amount is None:
        return None
    if move.unit == GPUS and move.share is not None and 0 < move.amount < 1 and 0 < move.share < 1:
        return f"below 1 GPU ({percent(move.share, 1)})"
    number = in_gpus(move.amount) if move.unit == GPUS else f"{plain(move.amount)} {move.unit}"
    part = "" if move.share in (None, 1.0) else f" ({percent(move.share, 0)})"
    return f"{number}{part}" + (f", {gpus(move.gpus_missing)} missing" if move.gpus_missing else "")


def _filled(cells: Iterable[object]) -> bool:
    """Whether any cell of a section's column has a value."""
    return any(cell is not None for cell in cells)
