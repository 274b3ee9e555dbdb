"""The solvers that tests run on: the open ones, which the tests' environment brings, and what else is installed.

What needs a commercial solver that is not there is not collected, and the head of the report names it.
"""

from __future__ import annotations

from collections.abc import Iterable

from mast_opt.core.errors import BackendUnavailable
from mast_opt.problems import backends

OPEN = ("highs", "cpsat", "scip", "cbc")


def is_here(name: str) -> bool:
    """Can the backend be used?"""
    try:
        backends.get(name).version()
    except BackendUnavailable:
        return False
    return True


HERE = tuple(name for name in backends.names() if name in OPEN or is_here(name))
"""An open one that is missing is a failure of its tests, with the words that say how to install it."""
MISSING = tuple(name for name in backends.names() if name not in HERE)


def here(names: Iterable[str]) -> list[str]:
    """Those of the solvers that tests run on."""
    return [name for name in names if name in HERE]
