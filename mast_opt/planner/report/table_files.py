"""Tables of an answer in a file: a workbook, CSV, JSON or Markdown, by the suffix of its name."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mast_opt.core.errors import UsageError
from mast_opt.core.wording import UNKNOWN, percent, plain
from mast_opt.planner.io.atomic import check_free, check_writable, new_file
from mast_opt.planner.io.writers.excel import new_workbook
from mast_opt.planner.report.workbook.sheets import ReportBook
from mast_opt.problems.kind.presentation import Form, Head, Section

SUFFIXES = (".xlsx", ".csv", ".json", ".md")


def check_table_file(path: Path, *, force: bool) -> None:
    """Raises UsageError for another suffix of an answer's table file, InputError where something is there already or
    nothing can be written.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"--out {path}: expected a name that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    check_free(path, force=force)
    check_writable(path.absolute())


def write_tables(title: str, sections: Sequence[Section], record: Mapping[str, Any], path: Path) -> None:
    """Write an answer; what is there already is replaced.

    Args:
        title: of a Markdown page.
        sections: a sheet or a heading each; a CSV file has the first one, with numbers as they are.
        record: what ``--json`` prints.
        path: ends in one of ``SUFFIXES``.

    Raises:
        InputError: the file cannot be written; what was there is unchanged.
    """
    with new_file(path.absolute()) as partial:
        suffix = path.suffix.lower()
        if suffix == ".xlsx":
            with new_workbook(partial) as book:
                sheets = ReportBook(book)
                for section in sections or (Section(title, (), ()),):
                    sheets.add(section.title, (section,))
        elif suffix == ".csv":
            _write_csv(partial, sections)
        elif suffix == ".json":
            partial.write_text(json.dumps(record, allow_nan=False, indent=1) + "\n", encoding="utf-8", newline="\n")
        else:
            text = "\n\n".join([f"# {_escaped(title)}", *map(markdown, sections)])
            partial.write_text(text + "\n", encoding="utf-8", newline="\n")


def _write_csv(path: Path, sections: Sequence[Section]) -> None:
    """Write the first section of an answer as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        for section in sections[:1]:
            rows.writerow([head.title for head in section.heads])
            rows.writerows(section.rows)


def markdown(section: Section) -> str:
    """The section as a heading and a table."""
    lines = [f"## {_escaped(section.title)}", *([_escaped(section.note)] if section.note else [])]
    if not section.heads:
        return "\n\n".join(lines)
    table = [
        _row([head.title for head in section.heads]),
        _row(["---" if head.form is Form.TEXT else "--:" for head in section.heads]),
        *(_row([_text(head, cell) for head, cell in zip(section.heads, cells, strict=True)]) for cells in section.rows),
    ]
    return "\n\n".join([*lines, "\n".join(table)])


def _row(cells: Sequence[str]) -> str:
    """Row of a Markdown table of an answer."""
    return f"| {' | '.join(map(_escaped, cells))} |"


def _text(head: Head, cell: str | float | int | None) -> str:
    """Cell of an answer as text, by the form of its column."""
    if cell is None:
        return UNKNOWN
    if isinstance(cell, str):
        return cell
    if head.form is Form.FILL:
        return percent(cell, 1)
    return f"{cell:,.0f}" if head.form is Form.COUNT else plain(cell)


def _escaped(text: str) -> str:
    """Text of a Markdown cell with its special characters escaped."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
