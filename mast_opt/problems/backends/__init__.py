"""The solvers by name. Importing this loads no solver library; each is imported when it is first used.

Another package adds a backend with an entry point in the group ``mast_opt.backends`` that names a class (or
function) which, called without arguments, gives a ``Backend``; see ``docs/how-to/plug-ins.md``.

Backends of other packages: whatever goes wrong in one ends as an error of mast-opt that names it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from mast_opt.core.errors import BackendError, BackendUnavailable, MastOptError, PluginError, UsageError
from mast_opt.core.plugins import Extensions
from mast_opt.core.solve_result import SolveParams, SolveResult
from mast_opt.core.wording import one_line, shown
from mast_opt.problems.backends.base import Backend
from mast_opt.problems.mip import Mip

AnswerT = TypeVar("AnswerT")


class Foreign:
    """A backend of another package, behind a guard.

    Args:
        value: where it comes from, as its entry point says: ``module:class``.

    Raises:
        BackendError: its package is not text.
    """

    def __init__(self, name: str, value: str, backend: Backend) -> None:
        self.name = name
        self.value = value
        self._backend = backend
        self.package = self._text("package", lambda: backend.package)

    def version(self) -> str:
        """Version of the library of another package's backend.

        Raises:
            BackendError: it failed, or the version is not text.
        """
        return self._text("version", self._backend.version)

    def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
        """Result of the other package's backend, checked.

        Raises:
            BackendError: it failed, or what it returned is no result for this program.
        """
        result = self._guarded("solve", lambda: self._backend.solve(mip, params))
        if not isinstance(result, SolveResult):
            raise self._error("solve", f"returned a {type(result).__name__}; expected a SolveResult")
        if result.status.has_solution and (
            not isinstance(result.x, np.ndarray) or result.x.shape != mip.cost.shape or not np.isfinite(result.x).all()
        ):
            raise self._error("solve", f"returned a solution without {len(mip.cost):,} finite values, one for a column")
        return result

    def _text(self, what: str, call: Callable[[], str]) -> str:
        """Text that another package's backend answers with. Raises BackendError for anything else."""
        text = self._guarded(what, call)
        if not isinstance(text, str):
            raise self._error(what, f"is a {type(text).__name__}; expected text")
        return text

    def _guarded(self, what: str, call: Callable[[], AnswerT]) -> AnswerT:
        """Answer of another package's backend; its failures become BackendError."""
        try:
            return call()
        except (MastOptError, KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:  # SystemExit too
            raise self._error(what, f"failed with {one_line(error)}") from error

    def _error(self, what: str, words: str) -> BackendError:
        """Error of another package's backend, which names it."""
        return BackendError(f"{what} of the backend {shown(self.name)} ({shown(self.value)}) {words}")


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
BACKENDS: Extensions[Callable[[], Any]] = Extensions("mast_opt.backends", "solver backend", BUILT_IN)
"""name → what makes a backend."""


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
    return tuple(BACKENDS)


def get(name: str) -> Backend:
    """The backend of that name; its library is loaded only when it is used.

    Raises:
        UsageError: there is no such backend; lists those that there are.
        BackendUnavailable: it is another package's, and that cannot be loaded.
    """
    if name in BUILT_IN:
        own: Backend = BACKENDS[name]()
        return own
    if name not in BACKENDS:
        raise UsageError(f"no solver backend is called {name!r}; expected one of: {', '.join(BACKENDS)}")
    value = BACKENDS.others[name].value
    try:
        backend = BACKENDS[name]()
    except (KeyboardInterrupt, MemoryError):
        raise
    except PluginError as error:
        raise BackendUnavailable(str(error)) from error
    except BaseException as error:  # SystemExit too
        raise BackendUnavailable(f"{name} ({value}) cannot be loaded: {one_line(error)}") from error
    if not isinstance(backend, Backend):
        raise BackendUnavailable(f"{name} ({value}) is no backend: it lacks name, package, version or solve")
    return Foreign(name, value, backend)


def describe() -> tuple[Description, ...]:
    """Every backend with its version, or the reason why it cannot be used here. Loads every library there is.

    Nothing that another package's backend raises ends the list.
    """
    return tuple(_description(name) for name in names())


def _description(name: str) -> Description:
    """Description of a backend: its version, or the reason why it cannot be used."""
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
