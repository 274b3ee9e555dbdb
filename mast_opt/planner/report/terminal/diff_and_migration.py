"""Terminal output of what changed between two plans, and of the way to a plan."""

from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from mast_opt.core.wording import UNKNOWN, as_shown, counted, plain
from mast_opt.planner.analysis.plan_diff import Change, Diff
from mast_opt.planner.report import change_sections, result_sections
from mast_opt.planner.report.terminal.sections import TOP_ROWS, print_words, show_section, show_table
from mast_opt.problems.kind.migration_plan import Order


def show_diff(console: Console, found: Diff, rows: int | None = TOP_ROWS) -> None:
    """Print what differs: the inputs first, then figures, then a section for each table of the plans that differs."""
    for section in change_sections.input_sections(found):
        show_section(console, section, rows)
    sides = ("The present state", "The plan") if found.from_today else ("The first plan", "The second plan")
    for words, broken in zip(sides, found.violations, strict=True):
        if broken:
            console.print(Text(f"{words} breaks {counted(broken, 'limit')}.", "bold red"))
    _shut(console, found.shut, rows)
    if not found.differs:
        console.print("The plan changes nothing." if found.from_today else "The plans are the same.")
    partial = found.from_today and found.today is not None and not found.today.complete
    if found.from_today and found.today is not None:
        show_section(console, result_sections.today_section(found.today), rows)
    _figures(console, "Objective and terms", {"objective": found.objective, **found.terms}, partial=partial)
    _figures(console, "Metrics", found.metrics, partial=partial)
    for words in () if partial else found.notes:
        print_words(console, words, style="dim")
    for section in (*change_sections.kept_sections(found), *change_sections.worth_sections(found)):
        show_section(console, section, rows)
    for table in found.tables:
        if table.differs:
            show_section(console, change_sections.table_section(table), rows)


def _shut(console: Console, shut: tuple[str, ...], rows: int | None) -> None:
    """Print the limits that the first plan of a difference would break in the second instance."""
    if shut:
        console.print(Text("The first plan no longer holds:", "bold"))
    for words in shut[:rows]:
        print_words(console, f"- {words}")
    if rows is not None and len(shut) > rows:
        console.print(f"… and {len(shut) - rows:,} more (--full shows all)", style="dim")


def _figures(console: Console, title: str, changes: Mapping[str, Change], *, partial: bool) -> None:
    """Print a row for each figure of a difference; where only a part of today is known, the difference says nothing and
    is left out.
    """
    before, after = (
        as_shown({name: value for name, value in side.items() if value is not None})
        for side in (
            {name: change.before for name, change in changes.items()},
            {name: change.after for name, change in changes.items()},
        )
    )
    shown = {name: Change(before.get(name), after.get(name)) for name in changes}
    rows = [
        (name, plain(change.before), plain(change.after), UNKNOWN if partial else signed(change.by))
        for name, change in shown.items()
        if change.before or change.after
    ]
    show_table(console, title, ("", "known part before" if partial else "before", "after", "change"), rows)


def signed(value: float | None) -> str:
    """A change of a figure: with its sign, or = where nothing changed."""
    if value is None:
        return UNKNOWN
    return "=" if value == 0 else f"{'+' if value > 0 else ''}{plain(value)}"


def show_order(console: Console, order: Order, rows: int | None = TOP_ROWS) -> None:
    """Print the steps in order, what is stuck, and what would help."""
    if order.stuck:
        style, verb = "bold red", "is" if order.proven else "was found"
        console.print(Text.assemble(("STUCK", style), f"  there {verb} no order of steps within every limit"))
    else:
        console.print(Text.assemble(("DONE", "bold green"), f"  {_size(order)}"))
    for words in order.relief:
        print_words(console, f"- {words}" + ("" if order.proven else " (not proven least)"))
    for words in (*order.notes, *filter(None, [order.late, order.lost])):
        print_words(console, f"- {words}")
    by_day = change_sections.over_sections(order)
    for section in (*by_day, *change_sections.stopped_sections(order), *result_sections.waiting_sections(order)):
        show_section(console, section, rows)
    if order.stuck:
        show_section(console, change_sections.stuck_section(order))
    if order.moves:
        show_section(console, change_sections.moves_section(order, narrow=True), rows)


def _size(order: Order) -> str:
    """Words on the size of an order of steps: steps, waves, days and money."""
    count, waves, days = len(order.moves), order.waves, order.days
    if not count:
        return "nothing has to be done"
    times = "" if days is None else f", {counted(days, 'day')}"
    times += "" if order.last_date is None else f" from {order.date_of(0)} to {order.last_date}"
    times += f". {order.price}" if order.price else ""
    return f"{counted(count, 'step')} in {counted(waves, 'wave')}{times}"
