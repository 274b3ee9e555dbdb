"""Options that several commands share, and their parsers.

Annotations are evaluated here, since the parser looks those of inherited fields up in the module of the subclass.
"""

import csv
import io
import math
import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, Token
from cyclopts.validators import Number

from mast_opt.cli.invocation import Run
from mast_opt.core.errors import UsageError
from mast_opt.core.limits import MOST_FREEZE_BYTES, read_regular
from mast_opt.core.solve_limits import SolveLimits, TimeLimits
from mast_opt.planner.io.readers.folder import read_toml
from mast_opt.planner.solving.solver_params import params_class
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.overrides import Overrides, stated_limit
from mast_opt.problems.search.params import Params


def flag(words: str) -> Parameter:
    """A switch of a command that is off unless given."""
    return Parameter(help=words, negative=(), show_default=False)


def repeated(words: str) -> Parameter:
    """An option of a command that may be given several times."""
    return Parameter(help=f"{words} Repeatable.", negative=())


def at_least(least: float, words: str, name: str | None = None) -> Parameter:
    """An option of a command for a number with a least value; ``name`` as for ``Parameter``."""
    return Parameter(help=words, name=name, validator=Number(gte=least))


def above(limit: float, words: str) -> Parameter:
    """An option of a command for a number above a limit."""
    return Parameter(help=words, validator=Number(gt=limit))


Instance = Annotated[Path, Parameter(help="The instance: a folder of tables, an .xlsx or a .json file.")]
Json = Annotated[bool, flag("Print one JSON object on stdout and nothing else.")]


def _a_date(_: object, tokens: Sequence[Token]) -> date:
    """The date that an option states. Raises ValueError for another form."""
    try:
        return date.fromisoformat(tokens[0].value)
    except ValueError:
        raise ValueError(f"expected a date such as 2026-12-07, not {tokens[0].value}") from None


Begin = Annotated[
    date | None, Parameter(help="The date of the first day, YYYY-MM-DD: days get dates.", converter=_a_date)
]
Full = Annotated[bool, flag("Show every row of long tables.")]
Force = Annotated[bool, flag("Overwrite an existing output of the same type.")]
Strict = Annotated[bool, flag("Treat warnings about the input as errors (exit code 2).")]
Param = Annotated[
    list[str] | None, repeated("NAME=VALUE: a parameter of a heuristic; 'mast-opt backends SOLVER' lists them.")
]
Weight = Annotated[
    list[str] | None, repeated("TERM=VALUE: another weight for a term of the objective than the instance states.")
]
Order = Annotated[
    str | None,
    Parameter(help="TERM,TERM,…: minimise these one after another. 'weighted': the weighted sum of all terms."),
]
LimitOption = Annotated[
    list[str] | None,
    repeated("NAME=VALUE: the most that a whole plan may have, such as copied_tb=12; NAME=none: no limit."),
]
ParamFile = Annotated[Path | None, Parameter(help="A TOML file of such parameters; --param wins over it.")]
WEIGHTED = "weighted"
"""Value of --order that asks for a weighted sum."""
TheRun = Annotated[Run, Parameter(parse=False)]


def check_force(force: bool, out: Path | None) -> None:
    """Raises UsageError where nothing is written that --force could be about."""
    if force and out is None:
        raise UsageError("--force is about what is at --out; leave it out, or say where to write")


def named_values(option: str, texts: Sequence[str] | None, example: str, form: str = "NAME=VALUE") -> dict[str, str]:
    """Values of a repeated option by their names. Raises UsageError for a text of another form, or a name twice."""
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"{option} {text}: expected {form}, as in {option} {example}")
        if name in found:
            raise UsageError(f"{option} {text}: {name} is given twice")
        found[name] = value
    return found


def numbers_by_name(option: str, texts: Sequence[str] | None, example: str) -> dict[str, float]:
    """Numbers by name from a repeatable NAME=NUMBER option. Raises UsageError for anything else, or a name twice."""
    found: dict[str, float] = {}
    for name, text in named_values(option, texts, example, "NAME=NUMBER").items():
        try:
            found[name] = float(text)
        except ValueError:
            found[name] = math.nan
        if math.isnan(found[name]):
            raise UsageError(f"{option} {name}={text}: expected NAME=NUMBER, as in {option} {example}")
    return found


def params_given(kind: Kind[Any, Any], solver: str, texts: Sequence[str] | None, file: Path | None) -> Params | None:
    """Parameters of a heuristic from --param and --params; None where neither is given.

    Raises:
        UsageError: the solver has no parameters, or a name or value does not fit.
        InputError: the file cannot be read, or is not TOML.
    """
    if not texts and file is None:
        return None
    cls, table = params_class(kind, solver), {} if file is None else read_toml(file, "parameters")
    try:
        return cls.parse(texts or (), table)
    except UsageError as error:
        owner = solver if solver in kind.solvers.params else kind.name
        raise UsageError(f"{error}\n'mast-opt backends {owner}' lists its parameters") from None


def overrides_given(
    weights: Sequence[str] | None, order: str | None = None, limits: Sequence[str] | None = None
) -> Overrides:
    """Overrides from --weight, --order and --limit. Raises UsageError for anything that is not of their form."""
    names = None if order is None else tuple(name.strip() for name in order.split(","))
    most = named_values("--limit", limits, "copied_tb=12")
    return Overrides(
        weights=numbers_by_name("--weight", weights, "remote=500"),
        order=() if names == (WEIGHTED,) else names,
        limits={name: stated_limit(name, value) for name, value in most.items()},
    )


HEAD = ["what", "name"]


def parts_to_freeze(texts: Iterable[str]) -> dict[str, list[str]]:
    """Names by kind of part (``region``, ``workload``, …), of all mentions together.

    Raises:
        UsageError: something that is neither WHAT=NAME nor a CSV file with the columns what and name.
    """
    parts: dict[str, list[str]] = {}
    for text in texts:
        for what, name in _pairs(text):
            parts.setdefault(what, []).append(name)
    return parts


def listed(names: str) -> list[str]:
    """The names in an option's list with commas."""
    return [name for name in names.split(",") if name]


def _pairs(text: str) -> list[tuple[str, str]]:
    """Pairs of names in one text of an option, or in the file that it names."""
    what, equals, names = text.partition("=")
    if equals and not os.path.exists(text):  # noqa: PTH110 — Path.exists raises where many names make it too long
        found = [(what.strip(), name) for name in listed(names)]
        if not what.strip() or not found:
            raise UsageError(f"--freeze {text}: expected WHAT=NAME, as in --freeze region=us-east,us-west")
        return found
    return _rows(Path(text))


def _rows(path: Path) -> list[tuple[str, str]]:
    """The rows of an option's CSV file; names may hold commas there."""
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


Threads = at_least(1, "Of each solve; left to the solver unless stated.")


@Parameter(name="*")
@dataclass(frozen=True)
class TimeOptions:
    """Options of a command that answers a question by solves; a subclass states those that differ in one command."""

    time_limit: Annotated[float | None, above(0, "Seconds for each solve.")] = None
    threads: Annotated[int | None, Threads] = None

    def keywords(self, cancel: threading.Event) -> TimeLimits:
        """Keywords from the options of a command for a function that solves."""
        return {"time_limit_s": self.time_limit, "threads": self.threads, "cancel": cancel}


@Parameter(name="*")
@dataclass(frozen=True)
class SolveOptions(TimeOptions):
    """Options of a command that hands an instance to a solver."""

    gap: Annotated[float, at_least(0, "Relative gap of each solve.")] = 1e-4
    seed: Annotated[int, at_least(0, "Seed for all random choices.")] = 0

    def keywords(self, cancel: threading.Event) -> SolveLimits:
        """Keywords from the options of a command for a function that solves."""
        return {**super().keywords(cancel), "gap": self.gap, "seed": self.seed}
