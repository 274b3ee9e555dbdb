"""The content of a report page: sections, pictures with their tables, and the convergence of the solve.

First screen of a report: what is asked first of a plan, each with its answer and where to read on.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, TypeVar

from mast_opt.core.dates import date_of
from mast_opt.core.sense import Sense
from mast_opt.core.solve_limits import SolveLimits
from mast_opt.core.solve_result import Event, relative_gap
from mast_opt.core.verdict import Verdict
from mast_opt.core.wording import counted, gpus, in_gpus, noticed
from mast_opt.planner.analysis.goals import LOSS_S, PLAN, Figures, figures_of
from mast_opt.planner.analysis.migration_plan import order_to
from mast_opt.planner.analysis.region_loss import stored_losses
from mast_opt.planner.report.change_sections import down_section, over_sections
from mast_opt.planner.report.html.render import Picture, draw
from mast_opt.planner.report.result_sections import (
    REGION_RISK,
    UNPROVEN,
    goal_sections,
    least_loss_words,
    lost_data_words,
    missing_words,
    region_risk_section,
    single_copy_section,
    today_section,
    waiting_sections,
)
from mast_opt.planner.solving import verify
from mast_opt.planner.solving.auto_strategy import solver_text
from mast_opt.problems.kind.analysis_hooks import Risk
from mast_opt.problems.kind.migration_plan import COPIES_TO_MAKE, Move, Order, Stopped
from mast_opt.problems.kind.presentation import (
    Answer,
    Bars,
    Chart,
    Flows,
    Form,
    Head,
    HeatMap,
    Lines,
    Scale,
    Section,
    Spans,
    Values,
)
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import kind_of

CALENDAR = "Migration day by day"
PartT = TypeVar("PartT", bound=Chart | Section)


@dataclass(frozen=True)
class Story:
    """Content of a page beyond charts and tables of the plan itself."""

    answers: tuple[Answer, ...]
    calendar: Spans | None
    """Calendar of copies and moves; None where steps take no days, or no order was made."""
    sections: tuple[Section, ...]
    """Long tables: what moves, what binds, what is at risk."""
    order: Order | None = None
    """Steps to the plan; None where none were made."""


def story(
    problem: Problem[PlanT],
    plan: PlanT,
    least: PlanT | None = None,
    begin: date | None = None,
    *,
    instance: Problem[PlanT] | None = None,
    figures: Figures | None = None,
    first: PlanT | None = None,
) -> Story:
    """The answers, the calendar and the tables behind them; only what the kind has something to say about.

    Args:
        problem: the instance by which the plan is judged.
        plan: a plan of it.
        least: the plan of the goal ``least-change``, where it is known.
        begin: date of the first day of the migration.
        instance: the instance by which today is judged: that of the plan before what was asked of its solve.
        figures: those of the plan, for the worst loss of a region.
        first: a plan that is carried out before this one.
    """
    kind = kind_of(problem)
    answers = list(kind.presentation.answers(instance or problem, plan))
    sections = list(kind.presentation.details(problem, plan))
    order = order_to(problem, plan, begin, first) if answers else None
    calendar = None if order is None else _calendar(order)
    if order is not None:
        answers.insert(2, replace(_days(order), more=CALENDAR if calendar else ""))
        sections += [*over_sections(order), down_section(order), *waiting_sections(order)]
    hooks = kind.analysis.hooks()
    if answers and hooks.risk is not None:
        risk = hooks.risk(problem, plan)
        answers.insert(3, _at_risk(risk, figures))
        sections += [single_copy_section(risk), region_risk_section(risk)]
    if answers and least is not None and least != plan:
        answers.insert(1, replace(kind.presentation.answers(problem, least)[1], topic="The least that helps", more=""))
    elif answers and least is None and "least-change" in kind.goals:
        answers[1] = replace(answers[1], detail=f"{answers[1].detail} 'solve --goals' finds the least that helps.")
    return Story(tuple(answers), calendar, tuple(section for section in sections if section.rows), order)


def with_copies_of(order: Order | None, parts: Iterable[PartT]) -> list[PartT]:
    """Charts or sections, those of the copies to make with the places between which the steps copy."""
    if order is None or order.stuck:
        return [*parts]
    copied = {pair: (sum(each.values()), len(each)) for pair, each in order.copied.items()}
    flows = tuple((*pair, tb) for pair, (tb, _) in sorted(copied.items(), key=lambda one: -one[1][0]))
    rows = tuple((*flow, copied[flow[:2]][1]) for flow in flows)
    words = f"By the steps, {sum(tb for *_, tb in flows):,.1f} {order.unit}"
    words += f" for {order.usd:,.0f} USD." if order.price else "."
    return [
        one
        if one.title != COPIES_TO_MAKE
        else replace(one, flows=flows, note=words)
        if isinstance(one, Flows)
        else replace(one, rows=rows, note=f"{one.note} {words}")
        if isinstance(one, Section)
        else one
        for one in parts
    ]


def _days(order: Order) -> Answer:
    """Answer in the report to when a plan is done: days, waves, and what is stuck or must stop."""
    if order.stuck:
        words = f"{counted(len(order.stuck), 'step')} cannot be carried out: 'mast-opt steps' says what is in the way."
        return Answer("When it is done", "blocked", words)
    waves = counted(order.waves, "wave")
    stops = _stops([one for one in order.stopped if one.lost is None])
    down = [one for one in order.stopped if one.lost is not None]
    if down:
        stops += _down(down) + (f" {order.lost[:1].upper()}{order.lost[1:]}" if order.lost else "")
    without = order.waiting[-1] if order.waiting else ()
    missing = f", but {in_gpus(sum(one.missing for one in without))} are missing" if without else ""
    paid = f" {order.price}." if order.price else ""
    late = f" {order.late[:1].upper()}{order.late[1:]}." if order.late else ""
    words = (
        f"{counted(len(order.moves), 'step')} in {waves}; every limit holds at each step{missing}.{paid}{stops}{late}"
    )
    value = "nothing to move" if not order.moves else waves if order.days is None else counted(order.days, "day")
    if order.last_date is not None:
        value, words = order.last_date, f"{value} from {order.date_of(0)}: {words}"
    return Answer("When it is done", value, words)


def _stops(halted: Sequence[Stopped]) -> str:
    """Words on the work that stops on the way, and the part of it for which no plan has GPUs."""
    if not halted:
        return ""
    ended = {one.what for one in halted if one.days is None}
    how = f"; no plan has the GPUs back for {len(ended):,} of them." if ended else " for a while."
    return f" {counted(len({one.what for one in halted}), 'workload')} must stop{how}"


def _down(down: Sequence[Stopped]) -> str:
    """Words on the work that ran in what is lost, and the part of it that starts again with all of its GPUs."""
    work = {one.what for one in down}
    some = {one.what for one in down if one.runs}
    whole = work - {one.what for one in down if not one.runs or one.gpus_missing}
    last = max((one.days or 0 for one in down if one.runs), default=0)
    until = f"the last after {counted(last, 'day')}" if last else "on the first day"
    words = f" {counted(len(work), 'workload')} ({in_gpus(sum(one.gpus for one in down))} used) ran in what is lost: "
    words += f"{len(whole):,} of them start again"
    words += f", {len(some - whole):,} more with fewer GPUs" if some - whole else ""
    return words + (f", {until}." if some else ".")


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
    dates = "" if order.last_date is None else f" from {order.date_of(0)} to {order.last_date}"
    note = f"{counted(order.days or 0, 'day')}{dates}; steps of one day in the order of 'mast-opt steps'."
    return Spans(
        CALENDAR,
        "what",
        "day",
        tuple((name, tuple(sorted(rows[name], key=lambda span: span[:2]))) for name in names),
        note,
        order.begin,
    )


def _words(move: Move) -> str:
    """Words on one step of a plan in the report's calendar."""
    way = " to ".join(filter(None, (move.origin, move.destination)))
    amount = (
        ""
        if move.amount is None
        else f", {noticed(move.amount, move.unit):,.4g} {move.unit}{' a day' if move.days > 1 else ''}"
        f"{f', {gpus(move.gpus_missing)} missing' if move.gpus_missing else ''}"
    )
    return f"{move.action} {way}{amount}"


def _at_risk(risk: Risk, figures: Figures | None) -> Answer:
    """Answer in the report to what can go wrong: GPUs missing after the worst loss of a region, as in the table next to
    it, and data that is lost."""
    value, words = f"{counted(len(risk.single_copies), 'dataset')} with one copy", [_data_lost(risk)]
    if figures is not None and figures.loss is not None:
        words = [f"After the worst loss of a region, {figures.loss.region}, before any copy.", *words, f"{value}."]
        value = f"{missing_words(figures.loss)} GPUs missing"
    elif figures is not None and figures.judged:
        words += [f"GPUs missing after the worst loss of a region: {UNPROVEN}."]
    return Answer("What can go wrong", value, " ".join(words), REGION_RISK)


def _data_lost(risk: Risk) -> str:
    """Sentence in the report on the region that takes most data with it: work that reads it first, then its size."""
    worst = max(risk.regions, key=lambda one: (one.loss.gpus or 0.0, one.loss.tb or 0.0), default=None)
    if worst is None or not worst.loss.datasets:
        return "No region takes data with it that no other region holds."
    return f"Most data is lost with {worst.region}: {lost_data_words(worst.loss)}."


GAP, ABSOLUTE_GAP = "gap, %", "gap, absolute"


def convergence(events: Iterable[Event], sense: Sense) -> Lines | None:
    """The chart of a solve's events; None where there were none. An incumbent goes before its bound, for its colour.

    A solve may begin its search again, whose first plans and bounds are worse than what is known: they are not drawn.
    """
    seen: dict[str, dict[float, float]] = {}
    best: dict[str, float] = {}
    for event in events:
        stage = "" if event.stage is None else f" of {event.stage}"
        for name, value in (("incumbent", event.incumbent), ("bound", event.bound)):
            points = seen.setdefault(name + stage, {})
            if value is not None:
                better = sense if name == "incumbent" else sense.opposite
                best[name + stage] = points[event.elapsed_s] = better.best(value, best.get(name + stage, value))
    known = {name: points for name, points in seen.items() if points}
    if not known:
        return None
    last = max(at for points in known.values() for at in points)
    for points in known.values():
        points.setdefault(last, points[max(points)])
    ordered = tuple((name, tuple(sorted(points.items()))) for name, points in known.items())
    note = "The incumbent is the best plan so far; no plan is better than the bound."
    return Lines("How the search went", "seconds", "objective", ordered, note)


_FORMS = {Scale.RATIO: Form.RATIO, Scale.FILL: Form.FILL, Scale.AMOUNT: Form.AMOUNT}


def table_of(chart: Chart) -> Section:
    """The figures of a chart, all of them."""
    if isinstance(chart, HeatMap):
        return _heat(chart)
    if isinstance(chart, Spans):
        return _spans(chart)
    if isinstance(chart, Bars):
        heads = [Head(chart.category_name)]
        unit = f", {chart.unit}" if chart.unit else ""
        form = Form.GPUS if chart.unit == "GPUs" else _FORMS[chart.scale]
        heads += [Head(f"{name}{unit}", form) for name, _ in chart.series]
        rows = [(category, *(values[at] for _, values in chart.series)) for at, category in enumerate(chart.categories)]
        return Section(chart.title, tuple(heads), tuple(rows))
    if isinstance(chart, Flows):
        heads = [Head(chart.source_name), Head(chart.target_name), Head(chart.unit, Form.AMOUNT)]
        largest_first = sorted(chart.flows, key=lambda flow: -flow[2])
        return Section(chart.title, tuple(heads), tuple(largest_first))
    heads = [Head("line"), Head(chart.x_name, Form.AMOUNT), Head(chart.y_name, Form.FIGURE)]
    return Section(chart.title, tuple(heads), tuple((name, x, y) for name, points in chart.lines for x, y in points))


def _spans(chart: Spans) -> Section:
    """Rows of a chart's spans, by their begin."""
    form, unit = (Form.COUNT, f" {chart.unit}") if chart.first is None else (Form.TEXT, "")
    heads = (Head(chart.row_name), *form.heads(f"from{unit}", f"to{unit}"), Head("step"))
    rows = [
        (name, *(date_of(chart.first, int(day)) or day + 1 for day in (begin, end - 1)), words)
        for name, spans in chart.rows
        for begin, end, words, _ in spans
    ]
    return Section(chart.title, heads, tuple(sorted(rows, key=lambda row: row[1:3])))


def _heat(chart: HeatMap) -> Section:
    """Rows of a heat map's cells that there are."""
    form = _FORMS[chart.scale]
    nothing: tuple[Values, ...] = tuple((None,) * len(chart.columns) for _ in chart.rows)
    before = nothing if chart.before is None else chart.before
    heads = [Head(chart.row_name), Head(chart.column_name)]
    heads += [Head("before", form)] if chart.before is not None else []
    heads.append(Head(chart.after_name, form))
    rows = [
        (row, column, *((before[r][k],) if chart.before is not None else ()), chart.after[r][k])
        for r, row in enumerate(chart.rows)
        for k, column in enumerate(chart.columns)
        if chart.after[r][k] is not None or before[r][k] is not None
    ]
    return Section(chart.title, tuple(heads), tuple(rows))


@dataclass(frozen=True)
class Report:
    """The content of a page."""

    title: str
    kind: str
    kind_title: str
    verdict: Verdict
    """Every figure of the plan, by the verifier."""
    before: Verdict | None
    """Verdict of the present state; None where the instance states only a part of it, or nothing."""
    weights: Mapping[str, float]
    order: tuple[str, ...]
    """The terms that are minimised one after another; empty where they are weighed."""
    fields: Mapping[str, Any]
    """Fields of ``plan.toml``: solver, bound, versions, …"""
    pictures: tuple[tuple[Picture, Section], ...]
    """Pictures, each with the table behind it."""
    sections: tuple[Section, ...]
    """Further tables of the plan."""
    provenance: str
    notes: tuple[str, ...] = ()
    """Notes that a reader should know before the figures."""
    bound_checked: bool | None = None
    """True if the bound in ``fields`` was computed again; None where that is not known, or there is none."""
    sense: Sense = Sense.MIN
    policy: str = ""
    """Name of the policy, for a kind whose objective has a name instead of terms."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Term → its unit."""
    answers: tuple[Answer, ...] = ()
    """Answers to the first questions of a reader, above all else."""
    migration: Order | None = None
    """Steps to the plan; None where none were made."""
    compared: tuple[Section, ...] = ()
    """The plan next to doing nothing and to other plans; empty where there is nothing to compare."""


def report(  # noqa: PLR0913 - what a page can say is said in one call
    problem: Problem[PlanT],
    plan: PlanT,
    *,
    fields: Mapping[str, Any] | None = None,
    events: Iterable[Event] = (),
    notes: Iterable[str] = (),
    bound_checked: bool | None = None,
    others: Mapping[str, PlanT] | None = None,
    begin: date | None = None,
    losses: bool = True,
    instance: Problem[PlanT] | None = None,
    first: PlanT | None = None,
) -> Report:
    """Content of the report on a plan.

    Args:
        problem: the instance, with what was asked of the plan's solve.
        plan: a plan of it; one that breaks limits is shown with what it breaks.
        fields: what ``plan.toml`` says; losses of regions by the name of each plan, which are not looked for again.
        events: of the solve that found the plan.
        notes: sentences to stand above the figures.
        bound_checked: was the bound in ``fields`` computed again?
        others: name → a plan to stand next to it, such as that of another goal.
        begin: date of the first day of the migration.
        losses: find the worst loss of a region for each plan, in at most ``LOSS_S`` seconds each?
        instance: the instance without what was asked of the solve, by whose limits today is judged; ``problem`` unless
            given.
        first: a plan that is carried out before this one and the others.
    """
    kind, instance = kind_of(problem), instance or problem
    now: Any = replace(instance, objective=problem.objective)  # type: ignore[type-var]
    today, state = kind.analysis.current_plan(problem), kind.analysis.current_state(now)
    compared = others or {PLAN: plan}
    judging: SolveLimits | None = {"time_limit_s": LOSS_S * (1 + len(compared))} if losses else None
    known = stored_losses(fields or {})
    figures = figures_of(instance, compared, judging=judging, first=first, known=known)
    own = next((figures[name] for name, one in compared.items() if one == plan), None)
    answered = story(
        problem, plan, (others or {}).get("least-change"), begin, instance=instance, figures=own, first=first
    )
    charts: list[Chart] = with_copies_of(answered.order, kind.presentation.charts(problem, plan))
    if answered.calendar is not None:
        charts.insert(1, answered.calendar)
    sections = (*answered.sections, *with_copies_of(answered.order, kind.presentation.sections(problem, plan)))
    shown_there = {one.title for one in (*charts, *sections)}
    answers = tuple(one if one.more in shown_there else replace(one, more="") for one in answered.answers)
    search = convergence(events, problem.sense)
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
        sections=(
            *sections,
            *(() if state is None else (today_section(state),)),
        ),
        provenance=problem.provenance,
        notes=tuple(notes),
        bound_checked=bound_checked,
        sense=problem.sense,
        policy=problem.objective.policy,
        units={name: term.unit for name, term in kind.terms.items()},
        answers=answers,
        compared=goal_sections(problem, figures, begin),
        migration=answered.order,
    )


def headline(report: Report) -> list[tuple[str, str | float | None]]:
    """Key figures of what was reached and proven: (name, text or number); a gap is in percent."""
    fields = report.fields
    bound, objective = fields.get("bound"), fields.get("objective")
    stated: list[tuple[str, str | float | None]] = [
        ("objective", report.verdict.objective if objective is None else float(objective)),
        ("bound", None if bound is None else float(bound)),
    ]
    if objective is not None and bound is not None:
        gap = relative_gap(float(objective), float(bound), report.sense)
        stated += [(GAP, None if gap is None else 100 * gap), (ABSOLUTE_GAP, abs(float(objective) - float(bound)))]
    least, copies = fields.get("least_missing_gpus"), (fields.get("overrides") or {}).get("copies_min")
    if least is not None or copies:
        loss = stored_losses(fields).get(PLAN)
        words = least_loss_words(loss, None if least is None else float(least))
        stated.append(("worst loss of a region", f"{words}; bound, gap and status are those of the rest"))
    stated += [("policy", report.policy)] if report.policy else []
    if fields.get("solver") is not None:
        stated.append(("solver", solver_text(str(fields["solver"]), fields.get("strategy") or {}, {})))
    stated += [("status", str(fields["status"]))] if fields.get("status") is not None else []
    checked = fields.get("cross_check") or {}
    stated += [("cross-check", f"{checked['outcome']} by {checked['solver']}")] if checked else []
    return stated
