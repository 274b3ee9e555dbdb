"""Answers of the analyses as sections: what a terminal shows, and what is written into files."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from mast_opt.core.dates import date_of
from mast_opt.core.wording import NOTICED, UNKNOWN, as_shown, counted, gpus, in_gpus, noticed, percent, plain, ratio
from mast_opt.core.wording import listed as list_of
from mast_opt.planner.analysis.explain import Explanation
from mast_opt.planner.analysis.goals import NOTHING, PLAN, Figures
from mast_opt.planner.analysis.joint_periods import JointPeriods
from mast_opt.planner.analysis.marginal_values import Marginals
from mast_opt.planner.analysis.migration_plan import Way
from mast_opt.planner.analysis.pareto import Frontier
from mast_opt.planner.analysis.periods import Period, Periods
from mast_opt.planner.analysis.purchase_plans import GIVEN
from mast_opt.planner.analysis.purchase_question import Purchases
from mast_opt.planner.analysis.purchases_in_time import PurchasesInTime
from mast_opt.planner.analysis.region_loss import RegionLoss
from mast_opt.planner.analysis.whatif import Outcome, WhatIf
from mast_opt.planner.solving import Solution
from mast_opt.problems.kind.analysis_hooks import Loss, Risk
from mast_opt.problems.kind.current_state import CurrentState
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.migration_plan import Order, waits_for
from mast_opt.problems.kind.presentation import Cell, Form, Head, Section, listed
from mast_opt.problems.kind.problem import Problem
from mast_opt.problems.registry import kind_of

MANY = 1000.0
"""Figures from which on plans are compared without decimals."""
UNPROVEN = "not proven"
"""Words for a figure of a loss of which nothing is known."""
DAYS = "days until done"
OVER = (
    "Days over: those that the steps take beyond the 'days' of the instance; 'mast-opt steps' says what would mend it."
)
"""Note on days that are marked."""
PLANNED_AGAIN = (
    "Planned again, with the copies that limits allow, as after some days. 'report' and 'solve --goals' have the first "
    "days, before any copy, and 'explain --risk' the data of every region."
)
"""Note on the GPUs that are missing in scenarios that lose regions."""
FIRST_STAGE = (
    "The first stage copies nothing, and the plan is solved from there: its terms count from the first stage. 'steps' "
    "with both plans has the way."
)
"""Note on a first stage after the loss of regions."""
NEEDS = (
    "Work that stands still counts the fewest GPUs that it may use, and work that waits for GPUs those of the type "
    "that it waits for, so more replicas may leave more GPUs missing."
)
"""Note on GPUs missing, which more replicas do not always make fewer."""
AT_MOST = (
    "At most: a placement of the work that misses no more is known, and a better one may exist; 'solve --goals' with a "
    "longer --time-limit may prove it."
)
NOT_KNOWN = "Not proven: no placement is known; 'solve --goals' with a longer --time-limit may find one."
"""Notes where losses of regions are upper bounds, and where they are not known."""
BILL = (
    "GPUs by the hour and storage in use, and remote reads; GPUs over the supply are not billed. The price of the "
    "purchase is not in it."
)
"""Note on what it costs to run a plan of purchases."""
WIDE = 0.05
"""Gap of a plan above which the note says that more time finds better ones."""
OVER_BEFORE = "GPUs over before moves"
MOVE_FIRST = (
    "To move first: the latest date with which the moves of the period are done on the day it begins; ordered later, "
    f"GPUs are over the supply until the moves are done. {UNKNOWN} where no such date from today on is known."
)
"""Note on the dates of orders."""
CHAINED = (
    "Each plan is at the target and, unless a note says otherwise, begins with the one before, with all that is "
    "bought by then. In 'solve' and 'periods' GPUs over the supply only have a price: the limit overload_gpus = 0 "
    "holds a target of 1 there."
)
"""Note on the plans behind the orders."""
OVER_SUPPLY = (
    "Over the supply: {}. The status is that of the objective, in which a GPU over the supply has a price and may cost "
    "less than a copy or a move; 'limits = {{ overload_gpus = 0 }}' in a period forbids it. "
)
"""Note on periods whose plans ask for more GPUs than there are."""
WITHOUT_GPUS = (
    "More GPUs are asked for than there are. They go to the tiers in their order, then to work that runs there "
    "already, then to the largest; the rest waits."
)
"""Note on work that has no GPUs."""
NONE_FOR_IT = "the plan has none for it"
"""Words on work to which no plan gives GPUs."""
REMOTE = "Work that reads from other regions"
USED = "GPUs are those that it used; missing ones are counted by the fewest with which it can run."
"""Note on GPUs of work that ran in lost regions."""
STAGES = ("first stage", "then")
"""Plans after the loss of regions, where there is a first stage."""
ONCE = "migration_cost"
ONLY_TODAY = "the term migration_cost, for copies from today's replicas alone, is"
REMOTELY = "Before any copy, work may read remotely where the instance allows it."
MOST_DATA = "most TB of data lost with one region"
EACH_LOSS = "GPUs missing after the loss of each region, before any copy"
REGION_RISK, SINGLE_COPIES = "What depends on each region", "Data with a single copy"
PROOF = (Head("status"), Head("objective", Form.AMOUNT), Head("bound", Form.AMOUNT), Head("gap (%)", Form.AMOUNT))
"""Heads of what every table says of a plan that was solved for."""


def _proof(solution: Solution[Any]) -> tuple[Cell, ...]:
    """Cells of a solution in a section: outcome, objective, bound and gap in percent."""
    percent = None if solution.gap is None else 100 * solution.gap
    return solution.outcome, solution.objective, solution.bound, percent


def explanation_sections(answer: Explanation) -> tuple[Section, ...]:
    """Sections on a plan: each alternative of each thing that was questioned. Without a plan: the conflict and its
    repairs."""
    options = listed(
        "Alternatives",
        [(why, option) for why in answer.reasons for option in why.options],
        ("name", Form.TEXT, lambda one: one[0].name),
        ("now", Form.TEXT, lambda one: one[0].now),
        ("instead", Form.TEXT, lambda one: one[1].words),
        ("change", Form.AMOUNT, lambda one: one[1].change),
        ("of which", Form.TEXT, lambda one: _changes(one[1].parts or one[1].terms)),
        ("forbidden by", Form.TEXT, lambda one: "; ".join(one[1].forbidden)),
    )
    repairs = tuple(
        (number, change, repair.price, "yes" if repair.cheapest else "no")
        for number, repair in enumerate(answer.repairs, 1)
        for change in repair.changes
    )
    fix = (Head("repair", Form.COUNT), Head("change"), Head("price of the repair", Form.AMOUNT), Head("cheapest"))
    found = (
        options,
        Section("Conflict", (Head("limit"),), tuple((words,) for words in answer.conflict)),
        Section("Repairs", fix, repairs),
    )
    return tuple(section for section in found if section.rows)


def _changes(terms: Mapping[str, float]) -> str:
    """Changes of terms in words, for an explanation."""
    return ", ".join(f"{name} {value:+.4g}" for name, value in terms.items())


def whatif_sections(answer: WhatIf[Any]) -> tuple[Section, ...]:
    """A row a scenario with what it costs and moves, then terms and key figures with a column a scenario."""
    outcomes = (answer.base, *answer.outcomes)
    moved = list(dict.fromkeys(unit for one in outcomes for unit in one.moved))
    heads = (
        Head("scenario"),
        *PROOF,
        *Form.AMOUNT.heads(*moved),
        Head(DAYS),
        *Form.AMOUNT.heads("unavoidable part of the objective", "gap of the rest (%)"),
        Head("limits that the base plan breaks", Form.COUNT),
        Head("why there is no plan"),
    )
    rows = tuple(
        (
            one.name,
            *_proof(one.solution),
            *(one.moved.get(unit) for unit in moved),
            days_cell(one.way),
            one.unavoidable,
            None if one.open_gap is None else 100 * one.open_gap,
            one.base_breaks,
            None if one.solution.verdict is not None else one.solution.message or None,
        )
        for one in outcomes
    )
    verdicts = [one.solution.verdict for one in outcomes]
    names = [one.name for one in outcomes]
    terms = [{} if verdict is None else verdict.terms for verdict in verdicts]
    metrics = [{} if verdict is None else verdict.metrics for verdict in verdicts]
    found = [
        Section(
            "Scenarios", heads, rows, f"{answer.base_words[:1].upper()}{answer.base_words[1:]} {over_words(answer)}"
        ),
        _side_by_side("Terms", names, terms),
        _side_by_side("Key figures", names, metrics),
    ]
    losses = {one.name: one.lost for one in outcomes if one.lost is not None and one.lost.datasets}
    if losses:
        noun = next(iter(losses.values())).noun
        lost = (Head("scenario"), Head("lost datasets"), Head("lost TB", Form.AMOUNT), Head(f"lost {noun}s"))
        names_of = [(name, ", ".join(one.datasets), one.tb, ", ".join(one.work)) for name, one in losses.items()]
        found.append(Section("Lost data", lost, tuple(names_of)))
    found += [*missing_sections(answer), *recovery_sections(answer)]
    robust = answer.robust
    if robust is not None:
        columns = (Head("scenario"), Head(f"with these {robust.decided}", Form.AMOUNT), Head("base plan", Form.AMOUNT))
        values = [
            (name, robust.robust[name].objective if name in robust.robust else None, solution.objective)
            for name, solution in robust.base.items()
        ]
        values.append((robust.objective_kind, robust.objective, robust.base_objective))
        found.append(Section("One plan for all scenarios", columns, tuple(values)))
    return tuple(found)


def over_words(answer: WhatIf[Any]) -> str:
    """Sentence on days that are marked in a scenario analysis; empty for none."""
    return OVER if any(one.way.days_over for one in (answer.base, *answer.outcomes)) else ""


def missing_sections(answer: WhatIf[Any]) -> tuple[Section, ...]:
    """The GPUs that are missing in scenarios that lose regions; nothing without such scenarios."""
    lost = {one.name: one.after_loss for one in answer.outcomes if one.after_loss is not None}
    rows = _missing_rows("GPUs missing, planned again", tuple(lost.values()))
    heads = (Head("figure"), *Form.TEXT.heads(*lost))
    return (Section("What is missing where regions are lost", heads, rows, PLANNED_AGAIN),) if lost else ()


def recovery_sections(answer: WhatIf[Any]) -> tuple[Section, ...]:
    """Sections on the starts of work of lost regions, and on work without GPUs, as far as there are any."""
    found = []
    for one in answer.outcomes:
        rows = _starts(one)
        if rows:
            heads = (
                Head("work"),
                Head("tier", Form.COUNT),
                Head("GPUs used", Form.GPUS),
                Head("days down", Form.COUNT),
            )
            note = USED + (f" {FIRST_STAGE}" if one.first is not None else "")
            found.append(Section(f"Work of lost regions, {one.name}", (*heads, Head("how")), rows, note))
        if one.order is not None and one.after_loss is not None:
            found += waiting_sections(one.order, f", {one.name}", STAGES)
    return tuple(found)


def waiting_sections(order: Order, of: str = "", stages: Sequence[str] = ()) -> list[Section]:
    """Sections on work without GPUs and on remote reads once plans are carried out, as far as there are any.

    Args:
        order: the steps to the plans.
        of: words that follow the title.
        stages: a word for each plan; its number unless given.
    """
    waiting, rows = order.waiting, dict[tuple[Cell, ...], list[Cell]]()
    tiers: dict[tuple[int, str], list[float]] = {}
    asked: dict[tuple[Cell, ...], float] = {}
    days: dict[tuple[Cell, ...], tuple[Cell, Cell]] = {}
    for number, found in enumerate(waiting):
        for one in found:
            key = one.what, one.tier, one.region, one.gpu_type
            row = rows.setdefault(key, [0.0, *(None for _ in waiting)])
            asked[key] = max(asked.get(key, 0.0), one.gpus)
            row[0], row[number + 1] = asked[key], one.missing
            days.setdefault(key, (on_day(order, one.day), on_day(order, one.until) or NONE_FOR_IT))
            tiers.setdefault((one.tier, one.gpu_type), [0.0] * len(waiting))[number] += one.missing
    names = stages or [f"plan {number}" for number in range(1, len(waiting) + 1)]
    after = ("GPUs missing",) if len(waiting) == 1 else [f"missing, {name}" for name in names]
    heads = (Head("work"), Head("tier", Form.COUNT), Head("region"), Head("type"), *Form.GPUS.heads("GPUs", *after))
    heads += (Head("from"), Head("until"))
    by_tier = ", ".join(
        f"tier {tier} {kind}: {' then '.join(map(gpus, each))}" for (tier, kind), each in sorted(tiers.items())
    )
    note = f"{WITHOUT_GPUS} GPUs missing: {by_tier}."
    table = tuple((*key, *row, *days[key]) for key, row in sorted(rows.items(), key=lambda one: one[0][1:2]))
    return [*([Section(f"Work without GPUs{of}", heads, table, note)] if rows else []), *_remote_sections(order, of)]


def _remote_sections(order: Order, of: str) -> list[Section]:
    """Section on work that reads from other regions on the way or in the plan; nothing without."""
    heads = (Head("work"), Head("runs in"), Head("reads from"), *Form.AMOUNT.heads("TB a day", "USD a day"))
    rows = tuple(
        (
            *(one.what, one.region, ", ".join(one.sources), one.tb_a_day, one.usd_a_day),
            *(on_day(order, one.day), on_day(order, one.until) or "stays", one.usd),
        )
        for one in order.remote
    )
    a_day = (sum(one.tb_a_day for one in order.remote), sum(one.usd_a_day for one in order.remote))
    ends = sum(one.usd or 0.0 for one in order.remote)
    note = f"Together {plain(a_day[0])} TB and {a_day[1]:,.0f} USD a day; {ends:,.0f} USD for those that end."
    heads += (Head("from"), Head("until"), Head("USD until then", Form.AMOUNT))
    return [Section(f"{REMOTE}{of}", heads, rows, note)] if rows else []


def on_day(order: Order, day: int | None) -> str | None:
    """A day of the steps in words: its date where that of the first is known, else its number from 1 on."""
    return None if day is None else order.date_of(day) or f"day {day + 1}"


def _starts(one: Outcome[Any]) -> tuple[tuple[Cell, ...], ...]:
    """Rows of the work that is down from the start in a scenario; work whose data is lost in one row a tier."""
    down = [] if one.order is None else [row for row in one.order.stopped if row.lost is not None]
    names = set() if one.lost is None else set(one.lost.work)
    gone: dict[int | None, list[float]] = {}
    rows: list[tuple[Cell, ...]] = []
    for row in down:
        if row.days is None and row.what in names:
            gone.setdefault(row.tier, []).append(row.gpus)
            continue
        early = "first stage" if one.first is not None else "at once"
        how = "refused" if row.days is None else f"after {waits_for(row)}" if waits_for(row) else early
        if row.gpus_missing:
            short = f"no GPUs free: {gpus(row.gpus_missing)} of {gpus(row.gpus_asked)} wait"
            how = f"{how}; {short}" if row.runs else short
        rows.append((row.what, row.tier, row.gpus, row.days if row.runs else None, how))
    lost = ((counted(len(each), "workload"), tier, sum(each), None, "data is lost") for tier, each in gone.items())
    return (*rows, *lost)


def _missing_rows(
    title: str, losses: Sequence[RegionLoss | None], *, worst: bool = False
) -> tuple[tuple[str, ...], ...]:
    """Rows on the GPUs that are missing after losses of regions, in the words of every table.

    Args:
        title: of the first row.
        losses: a loss a column; None where it is not known.
        worst: whether each is the worst of several, which the first row names.
    """

    rows: list[tuple[str, Callable[[RegionLoss], float]]] = [
        (title, lambda one: one.missing_gpus),
        ("of these, work that stands still", lambda one: one.unserved_gpus),
        ("of these, work whose data is lost", lambda one: one.lost_gpus),
    ]

    def cell(one: RegionLoss | None, gpus: Callable[[RegionLoss], float], first: bool) -> str:
        """A figure with its marks, and the region in the first row."""
        if one is None:
            return UNPROVEN
        return missing_words(one, f" ({one.region})" if worst else "") if first else _part(one, gpus(one))

    if worst:
        rows.pop()
    shown_rows = rows if any(losses) else rows[:1]
    table = tuple((words, *(cell(one, gpus, words == title) for one in losses)) for words, gpus in shown_rows)
    data = [_most_data(one) for one in losses] if worst else []
    return (*table, (MOST_DATA, *data)) if set(data) - {UNKNOWN} else table


def _most_data(worst: RegionLoss | None) -> str:
    """TB of the region with which most data is lost, and its name."""
    known = [
        (float(one.lost_tb), one.region) for one in (() if worst is None else worst.regions) if one.lost_tb is not None
    ]
    tb, region = max(known, default=(None, ""))
    return UNKNOWN if tb is None else f"{shown(tb, 'tb')}{f' ({region})' if tb else ''}"


def missing_words(one: RegionLoss, words: str = "") -> str:
    """GPUs that are missing after a loss, and more words. No placement misses less than the work whose data is lost,
    so that figure needs no proof; any other without one is an upper bound."""
    if math.isinf(one.missing_gpus):
        return UNPROVEN
    certain = one.proven or one.missing_gpus - one.lost_gpus < NOTICED
    return f"{'' if certain else 'at most '}{shown(one.missing_gpus, 'gpus')}{words}"


def _doubt(losses: Sequence[RegionLoss | None]) -> str:
    """Notes on the losses of regions that are not proven."""
    found = [one for one in losses if one is not None and not math.isinf(one.missing_gpus)]
    notes = (AT_MOST * (not all(one.proven for one in found)), NOT_KNOWN * (len(found) < len(losses)))
    return " ".join(filter(None, notes))


def least_loss_words(loss: RegionLoss | None, least: float | None) -> str:
    """Words on the worst loss of a region by a plan whose replicas are to make it small, and on what is proven.

    Args:
        loss: after which most GPUs are missing; None where that is not known.
        least: GPUs that are missing at least, wherever the replicas are; None where the replicas were not chosen by it.
    """
    if loss is None:
        return UNPROVEN if least is None else f"at least {shown(least, 'gpus')} GPUs wherever the replicas are (proven)"
    words = missing_words(loss, f" GPUs missing ({loss.region})")
    if least is None:
        return f"{words}, not proven least, since the replicas were not chosen by it"
    if shown(loss.missing_gpus, "gpus") == shown(least, "gpus"):
        return f"{words}, proven least"
    return f"{words}, at least {shown(least, 'gpus')} proven; not proven least"


def _part(one: RegionLoss, gpus: float) -> str:
    """A part of the missing GPUs; unknown where those are an upper bound, but for the work whose data is lost."""
    return shown(gpus, "gpus") if one.proven or gpus - one.lost_gpus < NOTICED else UNKNOWN


def each_loss_sections(figures: Mapping[str, Figures]) -> tuple[Section, ...]:
    """A row for each region with the GPUs that are missing after its loss, today and by each plan, the worst of the
    first column first; nothing where no loss is known."""
    known = {name: one.loss.regions for name, one in figures.items() if one.loss is not None and one.loss.regions}
    rows = [
        (
            losses[0].region,
            *(missing_words(one, f", {shown(one.unserved_gpus, 'gpus')} still" * one.proven) for one in losses),
        )
        for losses in sorted(zip(*known.values(), strict=True), key=lambda losses: -losses[0].missing_gpus)
    ]
    note = (
        f"{REMOTELY} Still: part of these whose work stands still until copies come, since its data is lost (what "
        "'explain --risk' counts) or no region that is left has its data and may run it. "
        f"{NEEDS}"
    )
    note = f"{note} {_doubt([one for losses in known.values() for one in losses])}".strip()
    return (Section(EACH_LOSS, (Head("region"), *Form.TEXT.heads(*known)), tuple(rows), note),) if rows else ()


def _side_by_side(title: str, names: list[str], figures: list[Mapping[str, float]]) -> Section:
    """Section with figures of several plans side by side, a row for each figure."""
    shown = list(dict.fromkeys(name for column in figures for name in column))
    rows = tuple((name, *(column.get(name) for column in figures)) for name in shown)
    return Section(title, (Head("figure"), *Form.FIGURE.heads(*names)), rows)


def goal_sections(
    problem: Problem[Any], figures: Mapping[str, Figures], begin: date | None = None
) -> tuple[Section, ...]:
    """Plans side by side, after doing nothing; a row a figure that is not 0 in all; then the loss of each region.
    Nothing for one column."""
    if len(figures) < 2:
        return ()
    marks = (1.0, *problem.objective.peak_levels.values())
    measured = [{**one.terms, **one.verdict.metrics, **one.moves} for one in figures.values()]
    rows = compared_rows(kind_of(problem), measured, marks)
    rows += [
        (title, *(UNKNOWN if value is None else f"{value:,}" for value in values))
        for title, values in (
            ("limits that it breaks", [one.broken for one in figures.values()]),
            ("steps", [one.way.steps for one in figures.values()]),
            ("steps that are blocked", [one.way.stuck for one in figures.values()]),
        )
        if any(values)
    ]
    ways = [Way(days=0) if name == NOTHING else one.way for name, one in figures.items()]
    if any(one.days for one in ways):
        rows.append((_days_title(ways), *map(days_cell, ways)))
    if begin is not None:
        ends = [None if not one.days or one.stuck else date_of(begin, one.days - 1) for one in ways]
        rows.append(("done on", *(end or UNKNOWN for end in ends)))
    losses = [one.loss for one in figures.values() if one.judged]
    if losses:
        rows += _missing_rows("GPUs missing after the worst loss of a region, before any copy", losses, worst=True)
    title = "Before and after" if PLAN in figures else "Plans side by side"
    note = _doubt(losses)
    once = {name: (one.verdict.terms.get(ONCE, 0.0), one.terms.get(ONCE, 0.0)) for name, one in figures.items()}
    others = {name: f"{term:,.0f}" for name, (term, usd) in once.items() if noticed(term - usd, "usd")}
    if others:
        words = list_of([f"{usd} ({name})" for name, usd in others.items()] if len(others) > 1 else [*others.values()])
        note = f"USD once is what the steps cost; {ONLY_TODAY} {words}. {note}".strip()
    heads = (Head("figure"), *(Head(name, numeric=True) for name in figures))
    side_by_side = Section(title, heads, tuple(rows), note)
    return side_by_side, *each_loss_sections(figures)


def compared_rows(
    kind: Kind[Any, Any], measured: Sequence[Mapping[str, float]], marks: Collection[float] = (1.0,)
) -> list[tuple[str, ...]]:
    """Figures of plans side by side, a row a figure that is not 0 in all of them.

    Args:
        kind: that of the plans.
        measured: the terms and metrics of each plan.
        marks: limits of ratios.
    """
    names = kind.presentation.compared or {name: name for one in measured for name in one if name not in kind.terms}
    units = {name: kind.terms[name].unit if name in kind.terms else name for name in names}
    return [
        (title, *(shown(one[name], units[name], marks) for one in map(as_shown, measured)))
        for name, title in names.items()
        if any(noticed(one.get(name, 0.0), units[name]) for one in measured)
    ]


def _days_title(ways: Iterable[Way]) -> str:
    """Name of the days until plans are carried out."""
    return DAYS + (", and those over the instance's" if any(one.days_over for one in ways) else "")


def days_cell(way: Way) -> str:
    """Days until a plan is carried out, with those that are more than the instance states: "18 (4 over)"."""
    if way.days is None or way.stuck:
        return "blocked" if way.stuck else UNKNOWN
    return f"{way.days:,} ({plain(way.days_over)} over)" if way.days_over else f"{way.days:,}"


def shown(value: float, unit: str, marks: Collection[float] = (1.0,)) -> str:
    """A figure as text where plans are compared: shares in percent, nothing where it rounds to nothing, GPUs whole, and
    ratios on their side of limits.

    Args:
        unit: its unit, or its name where that says the unit.
        marks: limits of ratios.
    """
    if unit.startswith("share"):
        return percent(value, 1)
    if abs(value) >= MANY:
        return f"{value:,.0f}"
    text = ratio(noticed(value, unit), marks)
    return plain(float(text)) if len(text.partition(".")[2]) == 2 else text


def frontier_sections(answer: Frontier[Any]) -> tuple[Section, ...]:
    """A row a point: both terms first, the bound, then every other term and metric; nothing without points."""
    if not answer.points:
        return ()
    first = answer.points[0]
    others = [name for name in first.terms if name not in answer.terms]
    heads = (
        *Form.AMOUNT.heads(*answer.terms, "cap", "bound"),
        Head("proven"),
        *Form.AMOUNT.heads(*others, *first.metrics),
    )
    rows = tuple(
        (
            *(point.terms[name] for name in answer.terms),
            point.cap,
            point.bound,
            "true" if point.proven else "false",
            *(point.terms[name] for name in others),
            *point.metrics.values(),
        )
        for point in answer.points
    )
    return (Section(f"{answer.terms[0]} against {answer.terms[1]}", heads, rows),)


def marginal_sections(answer: Marginals) -> tuple[Section, ...]:
    """A row for each resource and place with the value of one more unit."""
    heads = (
        *Form.TEXT.heads("resource", "where", "unit"),
        *Form.AMOUNT.heads("value of one more unit", "at least", "at most"),
        *((Head(answer.usd_unit, Form.AMOUNT),) if answer.usd_unit else ()),
    )
    rows = tuple(
        (one.resource, one.place, one.unit, one.value, one.low, one.high, *((one.usd,) if answer.usd_unit else ()))
        for one in answer.values
    )
    return (Section("Marginal values", heads, rows),)


def period_sections(answer: Periods[Any], begin: date | None = None) -> tuple[Section, ...]:
    """A row for each period: its plan in figures, and what moves to get there."""
    units = list(dict.fromkeys(unit for one in answer.periods for unit in one.moved))
    verdicts = [one.solution.verdict for one in answer.periods]
    metrics = list(dict.fromkeys(name for found in verdicts if found is not None for name in found.metrics))
    heads = (Head("period"), *_days(begin, "begins on"), *PROOF, *Form.AMOUNT.heads(*units))
    heads += (Head(OVER_BEFORE, Form.GPUS), Head("stops", Form.COUNT), *_days(begin, "moves until"), Head(DAYS))
    rows = tuple(
        (
            *(one.name, date_of(begin, one.begins_day) or one.begins_day, *_proof(one.solution)),
            *(*map(one.moved.get, units), one.over_before_gpus, len(one.way.stopped)),
            *(date_of(begin, one.moves_until_day) or one.moves_until_day, days_cell(one.way)),
        )
        for one in answer.periods
    )
    figures = tuple(
        (name, *(None if found is None else found.metrics.get(name) for found in verdicts)) for name in metrics
    )
    names = (Head("figure"), *Form.FIGURE.heads(*(one.name for one in answer.periods)))
    prepared = [one.name for one in answer.periods if one.prepares]
    note = f"{answer.periods[0].name} begins today, with its changes in it. " if answer.periods else ""
    note += f"Planned again to have ready what the next period needs: {', '.join(prepared)}. " if prepared else ""
    over = [
        (one.name, found.metrics.get("overload_gpus", 0.0)) for one, found in zip(answer.periods, verdicts) if found
    ]
    missing = [f"{in_gpus(most)} in {name}" for name, most in over if noticed(most, "gpus")]
    note += OVER_SUPPLY.format(", ".join(missing)) if missing else ""
    note += OVER if any(one.way.days_over for one in answer.periods) else ""
    note = " ".join((note.strip(), *_costs_of_the_way(answer.periods))).strip()
    return (Section("Periods", heads, rows, note), Section("Key figures", names, figures))


def _costs_of_the_way(periods: Sequence[Period[Any]]) -> list[str]:
    """Sentences on work that stops, remote reads, and steps that take longer than they may, by period."""
    words = []
    for one in periods:
        gpus_of = defaultdict[str, float](float)
        for row in one.way.stopped:
            gpus_of[row.what] += row.gpus
        stopped = [f"{what} ({in_gpus(amount)})" for what, amount in gpus_of.items() if noticed(amount, "gpus")]
        parts = [f"stops {list_of(stopped)} on the way"] if stopped else []
        remote = one.solution.verdict.metrics.get("remote_tb_per_day", 0.0) if one.solution.verdict else 0.0
        parts += [f"reads {plain(remote)} TB a day remotely"] if noticed(remote, "remote_tb_per_day") else []
        days = f"{counted(one.way.days or 0, 'day')}, {plain(one.way.days_over)} more than 'days'"
        parts += [f"takes {days}"] if one.way.days_over else []
        words += [f"{one.name} {list_of(parts)}."] if parts else []
    return words


def joint_sections(answer: Periods[Any], together: JointPeriods[Any]) -> tuple[Section, ...]:
    """A row for each period: its objective in both runs, and what moves where all are planned together."""
    alone = {one.name: one.solution.objective for one in answer.periods}
    units = list(dict.fromkeys(unit for one in together.periods for unit in one.moved))
    heads = (Head("period"), *Form.AMOUNT.heads("in turn", "together", *(f"{unit} (together)" for unit in units)))
    rows = tuple(
        (one.name, alone.get(one.name), one.solution.objective, *(one.moved.get(unit) for unit in units))
        for one in together.periods
    )
    rows += (("all", answer.objective, together.objective, *(None for _ in units)),)
    note = f"{together.status.value}: no plans of these periods have a sum below {plain(together.bound)}."
    if not together.periods:
        note = f"No plans of all periods together: {together.status.value}."
    return (Section("All periods in one program", heads, rows, note),)


def purchase_sections(answer: Purchases[Any]) -> tuple[Section, ...]:
    """A row for each offer that is bought."""
    bought = listed(
        "What to buy",
        answer.bought,
        ("candidate", Form.TEXT, lambda row: row.offer.name),
        ("what", Form.TEXT, lambda row: row.offer.what),
        ("where", Form.TEXT, lambda row: row.offer.place),
        ("steps", Form.COUNT, lambda row: row.steps),
        ("amount", Form.AMOUNT, lambda row: row.amount),
        ("unit", Form.TEXT, lambda row: row.offer.unit),
        ("USD", Form.AMOUNT, lambda row: float(row.usd)),
        ("days to use", Form.COUNT, lambda row: row.offer.lead_days),
    )
    bill, none = answer.bill, answer.bill.bought is None
    rows = (
        ("today", bill.today),
        ("with this plan, after the purchase", bill.after),
        ("what is bought, while all of it is in use", bill.bought),
    )
    heads = (Head("running cost"), Head("USD a month", Form.AMOUNT))
    return (bought, *(() if none else (Section("What it costs to run", heads, rows, BILL),)))


def order_date_sections(answer: PurchasesInTime[Any], begin: date | None = None) -> tuple[Section, ...]:
    """A row for each order; the worst ratio and the price of each period; its plan in figures."""
    heads = (
        *_days(begin, "order on", "to move first, order on", "in use on"),
        *Form.TEXT.heads("for", "candidate", "where"),
        Head("amount", Form.AMOUNT),
        Head("unit"),
        Head("USD", Form.AMOUNT),
    )
    rows = [
        (
            *(date_of(begin, day) or day for day in (one.order_day(row), one.early_order_day(row), one.begins_day)),
            *(one.name, row.offer.name, row.offer.place),
            *(row.amount, row.offer.unit, float(row.usd)),
        )
        for one in answer.periods
        for row in one.bought
    ]
    prices = [float(sum(row.usd for row in one.bought)) for one in answer.periods]
    priced = any(one.bill.bought is not None for one in answer.periods)
    ratios: list[tuple[Cell, ...]] = [
        (
            *(one.name, date_of(begin, one.begins_day) or one.begins_day, float(one.worst_after), usd),
            *((one.bill.after, one.bill.bought) if priced else ()),
        )
        for one, usd in zip(answer.periods, prices, strict=True)
    ]
    ratios.append(("all", None, None, sum(prices), *((None, None) if priced else ())))
    columns = (
        Head("period"),
        *_days(begin, "begins on"),
        Head("worst ratio, moves done", Form.FIGURE),
        Head("USD", Form.AMOUNT),
    )
    columns += Form.AMOUNT.heads("USD a month", "of what is bought") if priced else ()
    note = MOVE_FIRST if rows else "Nothing has to be bought."
    plans, figures = period_sections(Periods(answer.kind, tuple(one.planned for one in answer.periods), 0), begin)
    notes = [CHAINED, *(f"{one.name}: {one.from_today}." for one in answer.periods if one.from_today)]
    notes += [f"{one.name} has the given plan." for one in answer.periods if one.planned.solution.solver == GIVEN]
    wide = [f"{one.name} {_open(one.planned.solution)}" for one in answer.periods if _is_wide(one.planned.solution)]
    notes += [f"More time (--time-limit) may find better ones: {'; '.join(wide)}."] if wide else []
    found = (
        Section("What to order when", heads, tuple(sorted(rows)), note),
        Section("Periods", columns, tuple(ratios), BILL if priced else ""),
        replace(plans, title="Plans", note=" ".join((*notes, plans.note))),
        figures,
    )
    return found if answer.periods else ()


def _is_wide(solution: Solution[Any]) -> bool:
    """Whether the gap of a period's plan is wide, which the status of the price says nothing about."""
    return solution.solver != GIVEN and (solution.gap is None or solution.gap > WIDE)


def _open(solution: Solution[Any]) -> str:
    """Words on the gap of a period's plan."""
    if solution.objective is None or solution.bound is None:
        return "nothing proven"
    return f"by at most {plain(solution.objective - solution.bound)} ({percent(solution.gap)})"


def _days(begin: date | None, *words: str) -> tuple[Head, ...]:
    """Heads of columns of days, or of dates where the first is known."""
    if begin is None:
        return Form.COUNT.heads(*(f"{one} day" for one in words))
    return Form.TEXT.heads(*words)


def lost_data_words(lost: Loss) -> str:
    """Words on what is lost with a region: "2 datasets (7.5 TB), and with them 3 workloads (824 GPUs)"."""
    data = counted(len(lost.datasets), "dataset") + ("" if lost.tb is None else f" ({plain(lost.tb)} TB)")
    gpus = f" ({shown(lost.gpus, 'gpus')} GPUs)" if noticed(lost.gpus or 0.0, "gpus") and lost.gpus else ""
    them = "it" if len(lost.datasets) == 1 else "them"
    work = f"and with {them} {counted(len(lost.work), lost.noun)}{gpus}" if lost.work else f"which no {lost.noun} reads"
    return f"{data}, {work}"


def region_risk_section(answer: Risk) -> Section:
    """Region → what is lost with it."""
    note = (
        "Lost: data of which no replica is elsewhere, and the workloads that read it. Other work is not lost, and may "
        "lack GPUs: 'solve --goals' says how many before any copy, 'whatif' with new copies."
    )
    if not answer.complete:
        note += " Where work runs today is known in part only; the columns of running work count that part."
    return listed(
        REGION_RISK,
        answer.regions,
        ("region", Form.TEXT, lambda one: one.region),
        ("workloads running", Form.COUNT, lambda one: None if one.running is None else len(one.running)),
        ("GPUs running", Form.GPUS, lambda one: one.running_gpus),
        ("lost datasets", Form.COUNT, lambda one: len(one.loss.datasets)),
        ("lost TB", Form.AMOUNT, lambda one: one.loss.tb),
        ("lost workloads", Form.COUNT, lambda one: len(one.loss.work)),
        ("their GPUs", Form.GPUS, lambda one: one.loss.gpus),
        ("of all GPUs", Form.FILL, lambda one: (one.loss.gpus or 0.0) / answer.gpus if answer.gpus else 0.0),
        note=note,
    )


def single_copy_section(answer: Risk) -> Section:
    """Data of which only one region has a replica."""
    return listed(
        SINGLE_COPIES,
        answer.single_copies,
        ("dataset", Form.TEXT, lambda one: one.dataset),
        ("region", Form.TEXT, lambda one: one.region),
        ("TB", Form.AMOUNT, lambda one: one.tb),
        ("workloads", Form.COUNT, lambda one: len(one.work)),
        ("their GPUs", Form.GPUS, lambda one: one.gpus),
        note=f"{counted(len(answer.single_copies), 'dataset')}.",
    )


def today_section(state: CurrentState) -> Section:
    """Section on how much of today is known, with a row for each limit that it breaks."""
    parts = [f"{one.known:,.6g} of {one.of:,.6g} {one.what} ({one.share:.0%})" for one in state.known]
    breaks = f"It breaks {counted(len(state.broken), 'limit')}." if state.broken else "It breaks no limit."
    partial = "" if state.complete else " Figures of today count this part only."
    note = " ".join((f"Known: {', '.join(parts)}.{partial}", breaks, *state.notes))
    rows = tuple((one.limit, ", ".join(one.index), one.message) for one in state.broken)
    return Section("Today", (Head("limit", Form.TEXT), Head("where", Form.TEXT), Head("what", Form.TEXT)), rows, note)
