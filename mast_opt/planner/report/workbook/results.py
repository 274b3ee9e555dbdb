"""Results of a solve as a workbook: what a planner shows, and the plan and the instance as they are read again."""

from collections.abc import Iterable, Mapping
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any

from mast_opt.core.arguments import a, a_flag, a_path, a_text, anything, checked, each, mapping_of, optional
from mast_opt.core.solve_result import Event
from mast_opt.planner.analysis.migration_plan import order_to
from mast_opt.planner.analysis.region_loss import STORED
from mast_opt.planner.io.atomic import new_file
from mast_opt.planner.io.header import to_fields
from mast_opt.planner.io.write import RESERVED, check_workbook_target, stated_fields
from mast_opt.planner.io.writers.excel import add_tables, checked_frames, new_workbook
from mast_opt.planner.report.change_sections import order_sections
from mast_opt.planner.report.html.content import Report, headline, report, table_of, with_copies_of
from mast_opt.planner.report.workbook.sheets import ReportBook
from mast_opt.problems.kind.overrides import Overrides
from mast_opt.problems.kind.presentation import Form, Head, HeatMap, Section
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import check_plan, kind_of

UNCHANGED = Overrides()
UNCHECKED = "The bound was not checked."
NO_CERTIFICATE = "A workbook holds no certificate of the bound; 'mast-opt verify' checks the bound of a plan folder."


@checked(
    path=a_path,
    fields=optional(mapping_of(anything)),
    events=each(a(Event)),
    notes=each(a_text),
    bound_checked=optional(a_flag),
    others=optional(mapping_of(anything)),
    overrides=a(Overrides),
    begin=optional(a(date)),
    first=optional(anything),
)
def write_workbook(  # noqa: PLR0913 - what a workbook can say is said in one call
    problem: Problem[PlanT],
    plan: PlanT,
    path: str | PathLike[str],
    *,
    fields: Mapping[str, Any] | None = None,
    events: Iterable[Event] = (),
    notes: Iterable[str] = (),
    bound_checked: bool | None = None,
    others: Mapping[str, PlanT] | None = None,
    overrides: Overrides = UNCHANGED,
    begin: date | None = None,
    first: PlanT | None = None,
) -> None:
    """Write an ``.xlsx`` workbook with summary, charts as coloured cells, steps, the plan and the instance.

    Sheets whose names begin with ``#`` are for people. The others are read: the workbook is an instance and a plan of
    it, wherever a path of one is expected. An earlier workbook of results at this path is replaced.

    Args:
        problem: the instance.
        plan: a plan of it; one that breaks limits is shown with what it breaks.
        path: of the file.
        fields: what a ``plan.toml`` says (solver, bound, …).
        events: of the solve, for its convergence.
        notes: sentences to stand below the title.
        bound_checked: was the bound in ``fields`` computed again?
        others: name → plan, to stand side by side; name this one too.
        overrides: what the plan was solved with instead of what the instance says; figures are by them.
        begin: date of the first day of the migration; without it, days are counted.
        first: a plan that is carried out before this one, such as the first stage after the loss of regions.

    Raises:
        UsageError: a table or a label that does not fit in a sheet.
        PlanError: the plan was made for another instance.
        InputError: the file cannot be written, or something else is at the path; that is unchanged then.
    """
    kind = kind_of(problem)
    check_plan(kind, problem, plan)
    target = Path(path).absolute()
    check_workbook_target(target)
    header, instance = kind.tables.problem_to_tables(problem)
    frames = checked_frames(kind.tables.schema, instance)
    plan_frames = checked_frames(kind.tables.plan_schema, kind.tables.plan_to_tables(problem, plan))
    meant = overrides.applied_to(problem)
    solved_with = (f"Solved with {overrides}",) if overrides else ()
    said: dict[str, Any] = {"fields": fields, "events": events, "notes": (*solved_with, *notes)}
    said |= {"bound_checked": bound_checked, "others": others, "losses": bool(others)}
    content = report(meant, plan, begin=begin, instance=problem, first=first, **said)
    order = content.migration if content.answers else order_to(meant, plan, begin, first)
    charts = [
        chart if isinstance(chart, HeatMap) else table_of(chart)
        for chart in with_copies_of(order, kind.presentation.charts(meant, plan))
    ]
    ordered = () if order is None else order_sections(order)
    sections = [section for section in content.sections if section.rows and section not in ordered]
    compared = content.compared if others else ()
    by_title: dict[str, list[Section | HeatMap]] = {}
    for part in (*compared, *charts, *ordered, *sections):
        by_title.setdefault(part.title, []).append(part)
    with new_file(target) as partial, new_workbook(partial) as book:
        sheets = ReportBook(book)
        sheets.add("Summary", _summary(content))
        for title, parts in by_title.items():
            sheets.add(title, parts)
        stated = {name: value for name, value in (fields or {}).items() if name not in (*RESERVED, STORED)}
        add_tables(book, "plan", stated_fields(problem, stated), plan_frames)
        add_tables(book, "instance", to_fields(header), frames)


def _summary(content: Report) -> list[Section]:
    """Sections of the workbook's first sheet: what was reached and proven, before and after, and the parts of the
    objective.
    """
    figures = [("kind", content.kind), *headline(content)]
    unchecked = [UNCHECKED] if content.bound_checked is False else []
    stated = content.fields.get("bound") is not None and content.bound_checked is not True
    notes = [*content.notes, *unchecked, *([NO_CERTIFICATE] if stated else [])]
    note = " ".join(one if one.endswith(".") else f"{one}." for one in notes)
    found = [Section(content.title, (Head("figure"), Head("value", Form.AMOUNT)), tuple(figures), note)]
    if content.verdict.violations:
        broken = tuple((one.constraint, ", ".join(one.index), one.amount) for one in content.verdict.violations)
        heads = (Head("limit"), Head("where"), Head("by", Form.AMOUNT))
        found.append(Section("Limits that the plan breaks", heads, broken))
    found.append(_terms(content))
    metrics = tuple(
        (name, None if content.before is None else content.before.metrics.get(name), value)
        for name, value in content.verdict.metrics.items()
    )
    heads = (Head("figure"), Head("before", Form.AMOUNT), Head("after", Form.AMOUNT))
    found.append(Section("Key figures", heads, metrics))
    return found


def _terms(content: Report) -> Section:
    """Section of the workbook with a row for every term that is weighed or not zero; contributions add up to the
    objective.
    """
    heads = (
        Head("term"),
        *Form.AMOUNT.heads("before", "after"),
        Head("unit"),
        *Form.AMOUNT.heads("weight", "contribution"),
    )
    rows: list[tuple[str | float | int | None, ...]] = []
    for name, after in content.verdict.terms.items():
        weight = content.weights.get(name, 0.0)
        if after or weight:
            before = None if content.before is None else content.before.terms.get(name)
            unit = content.units[name]
            rows.append((name, before, after, unit, None if content.order else weight, after * weight))
    rows.sort(key=lambda row: -float(row[5] or 0.0))
    if content.order:
        place = {name: at for at, name in enumerate(content.order)}
        rows.sort(key=lambda row: place.get(str(row[0]), len(place)))
        return Section("Terms, minimised one after another", heads[:4], tuple(row[:4] for row in rows))
    total = sum(float(row[5] or 0.0) for row in rows)
    before_total = None if content.before is None else content.before.objective
    rows.append(("objective", before_total, content.verdict.objective, None, None, total))
    return Section("What the objective is made of", heads, tuple(rows))
