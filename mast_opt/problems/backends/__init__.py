"""The solvers by name. Importing this loads no solver library; each is imported when it is first used.

Another package adds a backend with an entry point in the group ``mast_opt.backends`` that names a class (or
function) which, called without arguments, gives a ``Backend``.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from mast_opt.core.errors import BackendError, BackendUnavailable, MastOptError, UsageError
from mast_opt.problems.backends.base import Backend
from mast_opt.problems.backends.foreign import Foreign, one_line

GROUP = "mast_opt.backends"

BUILT_IN = {
    "highs": "mast_opt.problems.backends.highs:Highs",
    "cpsat": "mast_opt.problems.backends.cpsat:CpSat",
    "scip": "mast_opt.problems.backends.scip:Scip",
    "cbc": "mast_opt.problems.backends.cbc:Cbc",
    "gurobi": "mast_opt.problems.backends.gurobi:Gurobi",
    "xpress": "mast_opt.problems.backends.xpress:Xpress",
    "copt": "mast_opt.problems.backends.copt:Copt",
    "cplex": "mast_opt.problems.backends.cplex:Cplex",
}
"""Name → module and class of each backend of ours, in the order in which they are listed."""


@dataclass(frozen=True, slots=True)
class Description:
    """Whether a backend can be used here."""

    name: str
    package: str | None
    """Name for ``pip install``; None for another package's backend that cannot be loaded."""
    version: str | None
    """None if it cannot be used."""
    reason: str | None
    """The reason why it cannot be used, and how to install it; None if it can."""


def names() -> tuple[str, ...]:
    """Every backend by name, installed or not: ours first, then those of other packages."""
    return (*BUILT_IN, *_others())


def get(name: str) -> Backend:
    """The backend of that name; its library is loaded only when it is used.

    Raises:
        UsageError: there is no such backend; lists those that there are.
        BackendUnavailable: it is another package's, and that cannot be loaded.
    """
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        backend: Backend = getattr(importlib.import_module(module), attribute)()
        return backend
    others = _others()
    if name not in others:
        raise UsageError(f"no solver backend is called {name!r}; expected one of: {', '.join(names())}")
    try:
        backend = others[name].load()()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too
        raise BackendUnavailable(f"{name} ({others[name].value}) cannot be loaded: {one_line(error)}") from error
    if not isinstance(backend, Backend):
        raise BackendUnavailable(
            f"{name} ({others[name].value}) is no backend: it lacks name, package, version or solve"
        )
    return Foreign(name, others[name].value, backend)


def describe() -> tuple[Description, ...]:
    """Every backend with its version, or the reason why it cannot be used here. Loads every library there is.

    Nothing that another package's backend raises ends the list.
    """
    return tuple(_description(name) for name in names())


def _description(name: str) -> Description:
    package: str | None = None
    try:
        backend = get(name)
        package = backend.package
        return Description(name, package, backend.version(), None)
    except BackendError as error:
        if name in BUILT_IN and not isinstance(error, BackendUnavailable):
            raise
        return Description(name, package, None, str(error))
    except MastOptError as error:
        if name in BUILT_IN:
            raise
        return Description(name, package, None, one_line(error))


def _others() -> dict[str, EntryPoint]:
    return {point.name: point for point in _installed(tuple(sys.path)) if point.name not in BUILT_IN}


@cache
def _installed(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Backends of the packages on a search path, by name. Looking through all packages takes milliseconds: once."""
    return tuple(sorted(entry_points(group=GROUP), key=lambda point: point.name))
