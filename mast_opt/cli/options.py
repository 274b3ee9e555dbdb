"""Options that several commands share, spelt and explained the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mast_opt.cli.invocation import Run
from mast_opt.core.errors import UsageError


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
