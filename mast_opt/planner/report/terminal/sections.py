"""A section of a report as a table in the terminal."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mast_opt.core.wording import UNKNOWN, amounts, gpus, percent, plain, ratio
from mast_opt.problems.kind.presentation import Cell, Form, Head, Section

TOP_ROWS = 12
"""Rows of a long table that are shown unless all are asked for."""

GAP = 2
"""Blanks between columns."""
LABEL, SHORT_LABEL = 24, 12
"""Characters after which a label folds, and where the room is scarce."""

_HEAT = ((1.2, "bold red"), (1.0, "red"), (0.9, "yellow"), (0.0, "green"))
"""Demand over supply, above which value, and its colour."""
_FILL = ((1.0, "bold red"), (0.95, "yellow"), (0.0, ""))


def show_section(console: Console, section: Section, rows: int | None = TOP_ROWS) -> None:
    """Print a section with its first ``rows`` rows (None: all), numbers aligned and ratios in colours of heat."""
    console.print()
    console.print(section.title, style="bold")
    if section.note:
        console.print(section.note, style="dim")
    if not section.rows:
        return
    # A table that is one row too long is shown in full: the line that says so would take the same room.
    shown = len(section.rows) if rows is None or len(section.rows) <= rows + 1 else rows
    columns = [_column([row[at] for row in section.rows[:shown]], head) for at, head in enumerate(section.heads)]
    _print_columns(console, section.heads, columns)
    if shown < len(section.rows):
        console.print(f"… and {len(section.rows) - shown:,} more (--full shows all)", style="dim")


def show_table(
    console: Console,
    title: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    text: Sequence[str] | None = None,
) -> None:
    """Print a table of words and figures that are written already; ``text`` names the heads of the columns of words,
    the first one unless given."""
    console.print()
    if title:
        console.print(title, style="bold")
    left = heads[:1] if text is None else text
    forms = tuple(Head(head, Form.TEXT if head in left else Form.COUNT) for head in heads)
    lines = [[cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in rows]
    _print_columns(console, forms, [[line[at] for line in lines] for at in range(len(heads))], whole_heads=True)


def print_words(console: Console, words: str, style: str = "") -> None:
    """Print sentences folded to the terminal's width; lines that begin with two spaces are commands and stay whole."""
    for line in words.splitlines():
        console.print(line, style=style, soft_wrap=line.startswith("  ") or not console.is_terminal)


def _print_columns(
    console: Console, heads: tuple[Head, ...], columns: list[list[Text]], whole_heads: bool = False
) -> None:
    """Columns of numbers are as wide as they must be; labels share what is left, and fold. What does not fit next to
    one another is printed below one another, with the first label again."""
    for whole, most in ((whole_heads, LABEL), *((False, most) for most in range(LABEL, SHORT_LABEL - 1, -1))):
        widths = [_width(head, cells, most, whole) for head, cells in zip(heads, columns, strict=True)]
        if _needed(widths) <= console.width:
            break
    label = next((at for at, head in enumerate(heads) if head.form is Form.TEXT), 0)
    for number, part in enumerate(_parts(widths, label, console.width)):
        if number:
            console.print()
        _print_part(console, [heads[at] for at in part], [columns[at] for at in part], [widths[at] for at in part])


def _parts(widths: Sequence[int], label: int, room: int) -> list[list[int]]:
    """Positions of the columns that fit side by side, in groups; each further group begins with the label."""
    parts: list[list[int]] = [[]]
    for at in range(len(widths)):
        if parts[-1] not in ([], [label]) and _needed([widths[known] for known in (*parts[-1], at)]) > room:
            parts.append([label])
        if at not in parts[-1]:
            parts[-1].append(at)
    return parts


def _needed(widths: Sequence[int]) -> int:
    """Width of a table in the terminal with gaps between its columns."""
    return sum(widths) + GAP * (len(widths) - 1)


def _print_part(console: Console, heads: Sequence[Head], columns: Sequence[list[Text]], widths: Sequence[int]) -> None:
    """Print columns of a section that fit side by side in the terminal."""
    needed = _needed(widths)
    # Where a terminal is too narrow even for that, its own way to break lines garbles less than squeezed columns would.
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, GAP, 0, 0),
        header_style="dim",
        width=needed if needed > console.width else None,
    )
    for head, width in zip(heads, widths, strict=True):
        if head.form is Form.TEXT:
            table.add_column(head.title, min_width=width, overflow="fold")
        else:
            table.add_column(head.title, justify="right", width=width, overflow="fold")
    for row in zip(*columns, strict=True):
        table.add_row(*row)
    console.print(table, soft_wrap=True)


def _width(head: Head, cells: list[Text], label: int, whole: bool) -> int:
    """Width that a terminal table's column needs: its widest number, or the widest word of its head. A label may fold
    after so many characters.
    """
    word = max(map(cell_len, [head.title] if whole else head.title.split()), default=0)
    widest = max((cell_len(cell.plain) for cell in cells), default=0)
    return max(word, min(label, widest) if head.form is Form.TEXT else widest)


def _column(values: list[Cell], head: Head) -> list[Text]:
    """Cells of a section's column as text for the terminal, with colours of heat."""
    if head.form is Form.TEXT:
        return [Text(UNKNOWN if value is None else str(value)) for value in values]
    numbers = [None if value is None else float(value) for value in values]
    if head.form is Form.RATIO:
        texts = [UNKNOWN if number is None else ratio(number, head.marks) for number in numbers]
        return [Text(text, style=_style(number, _HEAT)) for text, number in zip(texts, numbers, strict=True)]
    if head.form is Form.GPUS:
        return [*map(Text, map(gpus, numbers))]
    if head.form is Form.FILL:
        return [Text(percent(number, 1), style=_style(number, _FILL)) for number in numbers]
    if head.form is Form.COUNT:
        return [Text(UNKNOWN if number is None else f"{number:,.0f}") for number in numbers]
    return [Text(text) for text in (map(plain, numbers) if head.form is Form.FIGURE else amounts(numbers))]


def _style(number: float | None, steps: tuple[tuple[float, str], ...]) -> str:
    """Style of a number in the terminal by the step of heat that it exceeds."""
    if number is None:
        return "dim"
    return next((style for least, style in steps if number > least), "")
