"""The kinds of problem there are. A further one is a package beside the others and a line here."""

from __future__ import annotations

import importlib
from typing import Any

from mast_opt.errors import UsageError
from mast_opt.kind import Kind

_MODULES = {
    "data-placement": "mast_opt.data_placement.kind",
    "task-reassignment": "mast_opt.task_reassignment.kind",
}


def kind_names() -> tuple[str, ...]:
    """Every kind's hyphenated name."""
    return tuple(_MODULES)


def kind_named(name: str) -> Kind[Any, Any]:
    """The kind of that name. Raises UsageError, listing the kinds there are."""
    if name not in _MODULES:
        raise UsageError(f"there is no kind of problem called {name!r}; expected one of: {', '.join(_MODULES)}")
    kind: Kind[Any, Any] = importlib.import_module(_MODULES[name]).KIND
    return kind


def kind_of(problem: object) -> Kind[Any, Any]:
    """The kind that a problem is of. Raises UsageError if it is no problem at all."""
    name = getattr(type(problem), "kind", None)
    if not isinstance(name, str) or name not in _MODULES:
        raise UsageError(f"a {type(problem).__name__} is not a problem; use mast_opt.read or a generator to make one")
    return kind_named(name)
