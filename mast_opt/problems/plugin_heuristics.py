"""Heuristics of other packages: entry points called ``KIND.NAME``, in addition to those of a kind."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mast_opt.core.errors import PluginError, PluginWarning
from mast_opt.core.plugins import Extensions, PlugIn
from mast_opt.problems import backends
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.search.interface import HeuristicSolver, SearchContext, SearchResult

HEURISTICS: Extensions[HeuristicSolver] = Extensions("mast_opt.heuristics", "heuristic", {}, HeuristicSolver)
"""``KIND.NAME`` → heuristic, of all kinds."""


def with_plug_ins(kind: Kind[Any, Any]) -> Kind[Any, Any]:
    """The kind with the heuristics that other packages add to it; the kind itself where there are none.

    Warns:
        PluginWarning: one of them has the name of another solver, and is not used.
    """
    found = {full: full.removeprefix(f"{kind.name}.") for full in HEURISTICS if full.startswith(f"{kind.name}.")}
    for full in found:
        if reason := _refused(full, kind):
            warnings.warn(reason, PluginWarning, stacklevel=2)
    names = {name: full for full, name in found.items() if not _refused(full, kind)}
    if not names:
        return kind
    return replace(kind, solvers=replace(kind.solvers, heuristics=_Heuristics(kind.solvers.heuristics, names)))


def plug_ins(kinds: Mapping[str, Kind[Any, Any]]) -> Iterator[PlugIn]:
    """Description of each heuristic of another package. Loads all of them."""
    for one in HEURISTICS.plug_ins():
        yield one if one.reason is not None else replace(one, reason=_no_kind(one.name, kinds))


def _no_kind(full: str, kinds: Mapping[str, Kind[Any, Any]]) -> str | None:
    """Reason why a heuristic of another package is not used, as far as its name tells; None where there is none."""
    kind = kinds.get(full.partition(".")[0])
    if kind is not None:
        return _refused(full, kind)
    return f"{HEURISTICS.words(full)} is for no kind of problem; expected KIND.NAME with one of: {', '.join(kinds)}"


def _refused(full: str, kind: Kind[Any, Any]) -> str | None:
    """Reason why a heuristic is not used: its name is that of another solver."""
    if full.removeprefix(f"{kind.name}.") not in (*kind.solvers.heuristics, *backends.names(), "auto"):
        return None
    return f"{HEURISTICS.words(full)} has the name of another solver; it is not used"


class _Heuristics(Mapping[str, HeuristicSolver]):
    """Heuristics of a kind; those of other packages are loaded when they are first asked for."""

    def __init__(self, own: Mapping[str, HeuristicSolver], others: Mapping[str, str]) -> None:
        self.own, self._others = own, others

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from self._others

    def __len__(self) -> int:
        return len(self.own) + len(self._others)

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self._others

    def __getitem__(self, name: str) -> HeuristicSolver:
        """The heuristic of that name. Raises PluginError where it is a plug-in that cannot be loaded."""
        return self.own[name] if name in self.own else _guarded(self._others[name])


def _guarded(full: str) -> HeuristicSolver:
    """A heuristic whose failures end as errors that name it and its package."""
    solver = HEURISTICS[full]

    def search(problem: Any, tools: SearchContext, start: Any | None) -> SearchResult[Any]:  # noqa: ANN401 - of a kind
        with HEURISTICS.blaming(full):
            found = solver.search(problem, tools, start)
        if not isinstance(found, SearchResult):
            raise PluginError(f"{HEURISTICS.words(full)} returned a {type(found).__name__}; expected a SearchResult")
        return found

    return replace(solver, search=search, package=HEURISTICS.package(full))
