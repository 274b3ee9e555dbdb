"""List of the solvers: MIP backends with their versions, and the heuristics of each kind of problem."""

from dataclasses import dataclass

from mast_opt.problems import backends
from mast_opt.problems.registry import KindName, kind_named
from mast_opt.problems.registry import kinds as every_kind


@dataclass(frozen=True, slots=True)
class SolverInfo:
    """A solver by name: which problems it takes, and whether it can be used here."""

    name: str
    kinds: tuple[str, ...]
    """Hyphenated names of the kinds of problem that it takes."""
    exact: bool
    """A MIP backend, which proves an optimum if it has time enough; False for a heuristic."""
    package: str | None = None
    """Name for ``pip install``; package and version of a plug-in's heuristic; None where nothing is to be installed or
    that is not known."""
    version: str | None = None
    """Version of the backend's library; None for a heuristic and for a backend that cannot be used."""
    reason: str | None = None
    """Reason why the backend cannot be used here, and how to install it; None if it can."""

    @property
    def available(self) -> bool:
        """Whether a listed solver can be used here."""
        return self.reason is None


def solvers(kind: KindName | None = None) -> tuple[SolverInfo, ...]:
    """Every solver, or those that take a kind of problem: the MIP backends, then the heuristics.

    Loads every solver library there is, so it takes a moment.

    Raises:
        UsageError: there is no such kind.
    """
    found = tuple(every_kind()) if kind is None else (kind_named(kind),)
    kinds = tuple(one.name for one in found)
    exact = tuple(
        SolverInfo(one.name, kinds, True, one.package, one.version, one.reason) for one in backends.describe()
    )
    taken: dict[tuple[str, str | None], list[str]] = {}
    for each in found:
        for name, heuristic in each.solvers.usable():
            taken.setdefault((name, heuristic.package), []).append(each.name)
    return (*exact, *(SolverInfo(name, tuple(of), False, package) for (name, package), of in taken.items()))
