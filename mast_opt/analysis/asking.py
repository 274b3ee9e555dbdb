"""What every question begins with: the kind, what it can be asked, and which solvers may answer."""

from __future__ import annotations

from typing import Any

from mast_opt import backends
from mast_opt.errors import UsageError
from mast_opt.kind import Kind
from mast_opt.kinds import kind_of
from mast_opt.questions import Questions


def asked(problem: Any) -> tuple[Kind[Any, Any], Questions]:
    """The problem's kind and what it can be asked."""
    kind = kind_of(problem)
    return kind, kind.questions()


def exact_solver(kind: Kind[Any, Any], solver: str) -> str:
    """The name of a MIP backend. Raises UsageError for anything else."""
    if solver in kind.heuristics:
        known = ", ".join(backends.names())
        raise UsageError(f"{solver} searches for plans and cannot prove that there is none; use one of: {known}")
    if solver not in backends.names():
        raise UsageError(f"there is no MIP solver called {solver!r}; expected one of: {', '.join(backends.names())}")
    return solver
