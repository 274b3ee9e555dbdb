"""Heuristics of other packages: entry points called ``KIND.NAME``, in addition to those of a kind."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mast_opt.core.errors import PlanError, PluginError, UsageError
from mast_opt.core.plugins import Extensions, PlugIn, warn
from mast_opt.core.solve_result import AGREEMENT, ROUND_OFF
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
            warn(reason)
    names = {name: full for full, name in found.items() if not _refused(full, kind)}
    if not names:
        return kind
    return replace(kind, solvers=replace(kind.solvers, heuristics=_Heuristics(kind, names)))


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

    def __init__(self, kind: Kind[Any, Any], others: Mapping[str, str]) -> None:
        self.own, self._kind, self._others = kind.solvers.heuristics, kind, others

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from self._others

    def __len__(self) -> int:
        return len(self.own) + len(self._others)

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self._others

    def __getitem__(self, name: str) -> HeuristicSolver:
        """The heuristic of that name. Raises PluginError where it is a plug-in that cannot be loaded."""
        return self.own[name] if name in self.own else _guarded(self._kind, self._others[name])


UNCHECKED = "the bound has no certificate: it is what"
"""Beginning of a note on the bound of a plug-in, which nobody checks."""


def _guarded(kind: Kind[Any, Any], full: str) -> HeuristicSolver:
    """A heuristic whose failures, and results that are none, end as errors that name it and its package."""
    solver, package = HEURISTICS[full], HEURISTICS.package(full)

    def search(problem: Any, tools: SearchContext, start: Any | None) -> SearchResult[Any]:  # noqa: ANN401 - of a kind
        with HEURISTICS.blaming(full):
            found = solver.search(problem, tools, start)
        if fault := _fault(kind, problem, found):
            raise PluginError(f"{HEURISTICS.words(full)} {fault}")
        if found.bound is None or found.certificate is not None:
            return found
        words = (found.message, f"{UNCHECKED} {package} states")
        return replace(found, message="; ".join(word for word in words if word))

    return replace(solver, search=search, package=package)


def _fault(kind: Kind[Any, Any], problem: Any, found: object) -> str:  # noqa: ANN401 - of a kind
    """The fault of what a heuristic of another package returned for a problem; empty for a sound result.

    A plan has to fit the problem and to keep its limits. A bound has to be a number, and not worse for the plan than
    the objective that the verifier computes, but for rounding.
    """
    if not isinstance(found, SearchResult):
        return f"returned a {type(found).__name__}; expected a SearchResult"
    bounds = [found.bound, *(stage.bound for stage in found.stages)]
    if not all(bound is None or (isinstance(bound, (int, float)) and math.isfinite(bound)) for bound in bounds):
        return f"states the bound {next(one for one in bounds if one is not None)!r}; expected a finite number or None"
    if found.plan is None:
        return ""
    if not isinstance(found.plan, kind.plan_type):
        return f"returned a plan of type {type(found.plan).__name__}; expected {kind.plan_type.__module__}.Plan"
    try:
        kind.verification.check_plan(problem, found.plan)
        verdict = kind.verification.verify(problem, found.plan)
    except (PlanError, UsageError, ValueError, IndexError, AttributeError, TypeError) as error:
        return f"returned a plan that does not fit the problem: {error}"
    if not verdict.ok:
        return f"returned a plan that breaks {verdict.violations[0]}"
    if found.bound is None or found.stages or problem.objective.lexicographic:
        return ""
    excess = problem.sense.minimised(found.bound - verdict.objective)
    if excess > AGREEMENT * abs(verdict.objective) + ROUND_OFF:
        return f"states the bound {found.bound:g}, but its own plan has the objective {verdict.objective:g}"
    return ""
