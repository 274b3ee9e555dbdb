"""Shapes of the keys of a suite's file, checked before anything is made of it."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, TypeAlias

from mast_opt.core.wording import did_you_mean
from mast_opt.planner.bench.reporting.plots import PLOTS
from mast_opt.planner.io.faults import Faults

Shape: TypeAlias = tuple[Callable[[Any], bool], str]
"""Is a value one, and what one is in words."""


LARGEST = 1e300
"""Whole numbers may be longer than a floating-point number can be."""


def _whole(value: object, least: int = 0) -> bool:
    """Whether a value of a suite's key is a whole number of at least ``least``."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**31


def _number(value: object) -> bool:
    """Whether a value of a suite's key is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def _all(is_one: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Shape of a suite's key that is a list of values of one shape."""
    return lambda value: isinstance(value, list) and all(is_one(item) for item in value)


def _text(value: object) -> bool:
    """Whether a value of a suite's key is text."""
    return isinstance(value, str)


def _table(value: object) -> bool:
    """Whether a value of a suite's key is a table."""
    return isinstance(value, dict)


def _pattern(value: object) -> bool:
    """Whether a suite's data are named by a path below a folder, perhaps with wildcards, that ``Path.glob`` of every
    Python accepts.
    """
    if not isinstance(value, str) or "\0" in value:
        return False
    path = PurePath(value)
    wrong = [part for part in path.parts if part == ".." or ("**" in part and part != "**")]
    return bool(path.parts) and not path.anchor and not wrong


TEXT: Shape = (_text, "text in quotes")
TEXTS: Shape = (_all(_text), "a list of texts in quotes")
TABLE: Shape = (_table, "a table")
TABLES: Shape = (_all(_table), "tables headed [[…]]")
SEEDS: Shape = (_all(_whole), "a list of whole numbers from 0")

_SETTINGS: Mapping[str, Shape] = {
    "solvers": TEXTS,
    "time_limits_s": (_all(lambda value: _number(value) and value > 0), "a list of numbers of seconds above 0"),
    "seeds": SEEDS,
    "threads": (lambda value: _whole(value, 1), "a whole number of at least 1"),
    "gap": (lambda value: _number(value) and value >= 0, "a number of at least 0, as in 1e-4"),
}
TOP: Mapping[str, Shape] = {
    **_SETTINGS,
    **dict.fromkeys(("title", "about"), TEXT),
    "plots": (_all(lambda value: _text(value) and value in PLOTS), f"a list with some of: {', '.join(PLOTS)}"),
    **dict.fromkeys(("entry", "known_issue"), TABLES),
    **dict.fromkeys(("contestants", "reference"), TABLE),
}
ENTRY: Mapping[str, Shape] = {
    **_SETTINGS,
    **dict.fromkeys(("name", "kind", "family", "importer", "program"), TEXT),
    **dict.fromkeys(("settings", "arguments", "objective", "rules"), TABLE),
    "sizes": (
        lambda value: _table(value) and all(_whole(size, 1) for size in value.values()),
        "a table of whole numbers of at least 1",
    ),
    "instances": TEXTS,
    "instance_seeds": SEEDS,
    "data": (
        _all(lambda value: _pattern(value) or _all(_pattern)(value)),
        "a list of paths below the folder of data, or of lists of them: relative, without .., ** only between slashes",
    ),
}
CONTESTANT: Mapping[str, Shape] = {
    **dict.fromkeys(("solver", "formulation", "peer"), TEXT),
    **dict.fromkeys(("options", "params"), TABLE),
    "seeds": SEEDS,
    **dict.fromkeys(("iterations", "threads"), (lambda value: _whole(value, 1), "a whole number of at least 1")),
}
ISSUE = dict.fromkeys(("words", "contestant", "entry"), TEXT)
REFERENCE = dict.fromkeys(("file", "column", "best", "bound"), TEXT)


def check_shapes(file: str, stated: Mapping[str, Any], unknown: Faults, wrong: Faults) -> None:
    """Note every key that suites do not have, and every value that is not of the shape that its key asks for."""
    for where, given, shapes in _parts(file, stated):
        if not isinstance(given, Mapping):
            wrong.add(where, "a table", value=given)
            continue
        for key, value in given.items():
            if key not in shapes:
                hint = did_you_mean(key, shapes) or f"; the keys are: {', '.join(sorted(shapes))}"
                unknown.add(where, f"a key that suites have{hint}", value=key)
            elif not shapes[key][0](value):
                wrong.add(f"{where}: {key}", shapes[key][1], value=value)


def _parts(file: str, stated: Mapping[str, Any]) -> Iterator[tuple[str, Any, Mapping[str, Shape]]]:
    """Parts of the suite's file, each with its place and its allowed keys; parts that are no tables are the fault of
    the part around.
    """
    yield file, stated, TOP
    for position, entry in enumerate(stated.get("entry", []) if TABLES[0](stated.get("entry")) else []):
        yield f"{file}, entry {entry.get('name', position + 1)!r}", entry, ENTRY
    for position, issue in enumerate(stated.get("known_issue", []) if TABLES[0](stated.get("known_issue")) else []):
        yield f"{file}, known_issue {position + 1}", issue, ISSUE
    if _table(stated.get("contestants")):
        for name, given in stated["contestants"].items():
            yield f"{file}, contestants.{name}", given, CONTESTANT
    if _table(stated.get("reference")):
        yield f"{file}, reference", stated["reference"], REFERENCE
