"""List of the solvers: MIP backends with their versions, and the heuristics of each kind of problem."""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.problems import backends
from mast_opt.problems.registry import KindName, kind_named, kind_names


@dataclass(frozen=True, slots=True)
class SolverInfo:
    """A solver by name: which problems it takes, and whether it can be used here."""

    name: str
    kinds: tuple[str, ...]
    """Hyphenated names of the kinds of problem that it takes."""
    exact: bool
    """A MIP backend, which proves an optimum if it has time enough; False for a heuristic of mast-opt."""
    package: str | None = None
    """Name for ``pip install``; None where nothing is to be installed or that is not known."""
    version: str | None = None
    """Version of the backend's library; None for a heuristic and for a backend that cannot be used."""
    reason: str | None = None
    """Reason why the backend cannot be used here, and how to install it; None if it can."""

    @property
    def available(self) -> bool:
        """Whether it can be used here."""
        return self.reason is None


def solvers(kind: KindName | None = None) -> tuple[SolverInfo, ...]:
    """Every solver, or those that take a kind of problem: the MIP backends, then the heuristics.

    Loads every solver library there is, so it takes a moment.

    Raises:
        UsageError: there is no such kind.
    """
    kinds = kind_names() if kind is None else (kind_named(kind).name,)
    exact = tuple(
        SolverInfo(found.name, kinds, True, found.package, found.version, found.reason) for found in backends.describe()
    )
    taken: dict[str, list[str]] = {}
    for one in kinds:
        for name in kind_named(one).solvers.heuristics:
            taken.setdefault(name, []).append(one)
    return (*exact, *(SolverInfo(name, tuple(of), False) for name, of in taken.items()))
