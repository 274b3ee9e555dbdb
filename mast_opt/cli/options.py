"""Options that several commands share, and their parsers."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mast_opt.cli.invocation import Run
from mast_opt.core.errors import UsageError
from mast_opt.core.limits import MOST_FREEZE_BYTES, read_regular


def flag(words: str) -> Parameter:
    """A switch that is off unless given."""
    return Parameter(help=words, negative=(), show_default=False)


Instance = Annotated[Path, Parameter(help="The instance: a folder of tables, an .xlsx or a .json file.")]
Json = Annotated[bool, flag("Print one JSON object on stdout and nothing else.")]
Full = Annotated[bool, flag("Show every row of long tables.")]
Force = Annotated[bool, flag("Overwrite what is there, if it is of the same sort.")]
Strict = Annotated[bool, flag("Treat warnings about the input as errors (exit code 2).")]
TheRun = Annotated[Run, Parameter(parse=False)]


def check_force(force: bool, out: Path | None) -> None:
    """Raises UsageError where nothing is written that --force could be about."""
    if force and out is None:
        raise UsageError("--force is about what is at --out; leave it out, or say where to write")


def numbers_by_name(option: str, texts: Sequence[str] | None, example: str) -> dict[str, float]:
    """What a repeatable NAME=NUMBER option says. Raises UsageError for anything else, or a name twice."""
    found: dict[str, float] = {}
    for text in texts or ():
        name, equals, number = text.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = float("nan")
        if not name or not equals or value != value:
            raise UsageError(f"{option} {text}: expected NAME=NUMBER, as in {option} {example}")
        if name in found:
            raise UsageError(f"{option} {text}: {name} is given twice")
        found[name] = value
    return found


HEAD = ["what", "name"]


def parts_to_keep(texts: Iterable[str]) -> dict[str, list[str]]:
    """What (``region``, ``workload``, …) → names, of all mentions together.

    Raises:
        UsageError: something that is neither WHAT=NAME nor a CSV file with the columns what and name.
    """
    parts: dict[str, list[str]] = {}
    for text in texts:
        for what, name in _pairs(text):
            parts.setdefault(what, []).append(name)
    return parts


def _pairs(text: str) -> list[tuple[str, str]]:
    what, equals, names = text.partition("=")
    if equals and not os.path.exists(text):  # noqa: PTH110 — Path.exists raises where many names make it too long
        found = [(what.strip(), name) for name in names.split(",") if name]
        if not what.strip() or not found:
            raise UsageError(f"--freeze {text}: expected WHAT=NAME, as in --freeze region=us-east,us-west")
        return found
    return _rows(Path(text))


def _rows(path: Path) -> list[tuple[str, str]]:
    """The rows of a CSV file; names may hold commas there."""
    try:
        text = read_regular(path, MOST_FREEZE_BYTES).decode("utf-8-sig")
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(
            f"--freeze {path}: expected WHAT=NAME, as in --freeze region=us-east, or a CSV file with the columns "
            f"{' and '.join(HEAD)} ({getattr(error, 'strerror', None) or error})"
        ) from None
    if not rows or rows[0] != HEAD:
        raise UsageError(f"--freeze {path}: expected a first row with {','.join(HEAD)}")
    for number, row in enumerate(rows[1:], start=1):
        if len(row) != 2 or not all(row):
            raise UsageError(
                f"--freeze {path}, row {number}: expected what to keep and its name; found {','.join(row)!r}"
            )
    return [(what, name) for what, name in rows[1:]]
