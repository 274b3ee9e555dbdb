"""First screen of a report: what is asked first of a plan, each with its answer and where to read on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mast_opt.core.errors import UsageError
from mast_opt.core.wording import counted
from mast_opt.planner.analysis.migration_plan import steps
from mast_opt.planner.report.result_sections import (
    REGION_RISK,
    SINGLE_COPIES,
    region_risk_section,
    single_copy_section,
)
from mast_opt.problems.kind.analysis_hooks import Risk
from mast_opt.problems.kind.migration_plan import Move, Order
from mast_opt.problems.kind.presentation import Answer, Section, Spans
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import kind_of

CALENDAR = "Migration day by day"


@dataclass(frozen=True)
class Story:
    """Content of a page beyond charts and tables of the plan itself."""

    answers: tuple[Answer, ...]
    calendar: Spans | None
    """Calendar of copies and moves; None where steps take no days, or no order was made."""
    sections: tuple[Section, ...]
    """Long tables: what moves, what binds, what is at risk."""


def story(problem: Problem[PlanT], plan: PlanT) -> Story:
    """The answers, the calendar and the tables behind them; only what the kind has something to say about."""
    kind = kind_of(problem)
    answers = list(kind.presentation.answers(problem, plan))
    sections = list(kind.presentation.details(problem, plan))
    order = _order(problem, plan) if answers else None
    calendar = None if order is None else _calendar(order)
    if order is not None:
        answers.insert(2, replace(_days(order), more=CALENDAR if calendar else ""))
    hooks = kind.analysis.hooks()
    if answers and hooks.risk is not None:
        risk = hooks.risk(problem, plan)
        answers.insert(3, _at_risk(risk))
        sections += [single_copy_section(risk), region_risk_section(risk)]
    return Story(tuple(answers), calendar, tuple(section for section in sections if section.rows))


def _order(problem: Problem[PlanT], plan: PlanT) -> Order | None:
    """The steps to the plan; None where the kind has none or the plan breaks a limit."""
    try:
        return steps(problem, plan)
    except UsageError:
        return None


def _days(order: Order) -> Answer:
    if order.stuck:
        words = f"{counted(len(order.stuck), 'step')} cannot be carried out: 'mast-opt steps' says what is in the way."
        return Answer("When it is done", "blocked", words)
    waves = counted(order.waves, "wave")
    stops = f" {counted(len(order.stopped), 'workload')} must stop for a while." if order.stopped else ""
    words = f"{counted(len(order.moves), 'step')} in {waves}; every limit holds at each step.{stops}"
    value = "nothing to move" if not order.moves else waves if order.days is None else counted(order.days, "day")
    return Answer("When it is done", value, words)


def _calendar(order: Order) -> Spans | None:
    """A row for each thing that moves: when it is copied, moved, deleted."""
    rows: dict[str, list[tuple[float, float, str, str]]] = {}
    for move in order.moves:
        if move.day is not None:
            rows.setdefault(move.what, []).append((move.day, move.day + move.days, _words(move), move.action))
    if not rows:
        return None
    last = {name: max(end for _, end, *_ in spans) for name, spans in rows.items()}
    names = sorted(rows, key=lambda name: (min(rows[name])[0], last[name]))
    note = f"{counted(order.days or 0, 'day')}; steps of one day in the order of 'mast-opt steps'."
    return Spans(
        CALENDAR,
        "what",
        "day",
        tuple((name, tuple(sorted(rows[name], key=lambda span: span[:2]))) for name in names),
        note,
    )


def _words(move: Move) -> str:
    way = " to ".join(filter(None, (move.origin, move.destination)))
    amount = "" if move.amount is None else f", {move.amount:,.4g} {move.unit}{' a day' if move.days > 1 else ''}"
    return f"{move.action} {way}{amount}"


def _at_risk(risk: Risk) -> Answer:
    worst = max(risk.regions, key=lambda one: (one.lost_gpus, len(one.loss.datasets)), default=None)
    value = counted(len(risk.single_copies), "dataset") + " with one copy"
    if worst is None or not worst.loss.datasets:
        return Answer(
            "What can go wrong", value, "No region takes data with it that no other region holds.", SINGLE_COPIES
        )
    words = (
        f"Losing {worst.region} would cost most: {counted(len(worst.loss.datasets), 'dataset')} and "
        f"{counted(len(worst.loss.work), 'workload')}{f' ({worst.lost_gpus:,.0f} GPUs)' if worst.lost_gpus else ''}."
    )
    return Answer("What can go wrong", value, words, SINGLE_COPIES if risk.single_copies else REGION_RISK)
