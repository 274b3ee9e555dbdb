"""Backends of other packages: whatever goes wrong in one ends as an error of mast-opt that names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from mast_opt.core.errors import BackendError, MastOptError
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
        """Version of the other package's library.

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
        text = self._guarded(what, call)
        if not isinstance(text, str):
            raise self._error(what, f"is a {type(text).__name__}; expected text")
        return text

    def _guarded(self, what: str, call: Callable[[], AnswerT]) -> AnswerT:
        try:
            return call()
        except (MastOptError, KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:  # SystemExit too
            raise self._error(what, f"failed with {one_line(error)}") from error

    def _error(self, what: str, words: str) -> BackendError:
        return BackendError(f"{what} of the backend {shown(self.name)} ({shown(self.value)}) {words}")
