"""What a page shows of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mast_opt.core.solve_result import Event
from mast_opt.core.verdict import Verdict
from mast_opt.kind.kind import Section
from mast_opt.kind.presentation import Chart
from mast_opt.registry import kind_of
from mast_opt.report.html.convergence import convergence
from mast_opt.report.html.picture_tables import table_of
from mast_opt.report.html.render import Picture, draw
from mast_opt.report.terminal.current_state import today_section
from mast_opt.solving import verify


@dataclass(frozen=True)
class Report:
    """The content of a page."""

    title: str
    kind: str
    kind_title: str
    verdict: Verdict
    """Every figure of the plan, by the verifier."""
    before: Verdict | None
    """The same of the present state; None where the instance states only a part of it, or nothing."""
    weights: Mapping[str, float]
    order: tuple[str, ...]
    """The terms that are minimised one after another; empty where they are weighed."""
    fields: Mapping[str, Any]
    """What ``plan.toml`` says: solver, bound, versions, …"""
    pictures: tuple[tuple[Picture, Section], ...]
    """Each with the table behind it."""
    sections: tuple[Section, ...]
    """Further tables of the plan."""
    provenance: str
    notes: tuple[str, ...] = ()
    """What a reader should know before the figures."""
    bound_checked: bool | None = None
    """Was the bound in ``fields`` computed again? None where that is not known, or there is none."""


def report(
    problem: Any,
    plan: Any,
    *,
    fields: Mapping[str, Any] | None = None,
    events: Iterable[Event] = (),
    notes: Iterable[str] = (),
    bound_checked: bool | None = None,
) -> Report:
    """What there is to show of a plan.

    Args:
        problem: the instance.
        plan: a plan of it; one that breaks limits is shown with what it breaks.
        fields: what ``plan.toml`` says.
        events: of the solve that found the plan.
        notes: sentences to stand above the figures.
        bound_checked: was the bound in ``fields`` computed again?
    """
    kind = kind_of(problem)
    today, state = kind.today(problem), kind.present(problem)
    charts: list[Chart] = list(kind.charts(problem, plan))
    search = convergence(events)
    if search is not None:
        charts.append(search)
    return Report(
        title=problem.name,
        kind=kind.name,
        kind_title=kind.title,
        verdict=verify(problem, plan),
        before=None if today is None or not (state is None or state.complete) else verify(problem, today),
        weights=problem.objective.weights,
        order=problem.objective.order,
        fields=fields or {},
        pictures=tuple((draw(chart), table_of(chart)) for chart in charts),
        sections=(*kind.sections(problem, plan), *(() if state is None else (today_section(state),))),
        provenance=problem.provenance,
        notes=tuple(notes),
        bound_checked=bound_checked,
    )
