"""A report into files."""

from collections.abc import Iterable, Mapping
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any

from mast_opt.core.arguments import a, a_flag, a_path, a_text, anything, checked, each, mapping_of, optional
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import Event
from mast_opt.planner.io.atomic import check_free, new_file
from mast_opt.planner.report.html.content import report
from mast_opt.planner.report.html.page import page
from mast_opt.planner.report.html.png import png
from mast_opt.problems.kind.overrides import NO_OVERRIDES, Overrides
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import check_plan, kind_of


@checked(
    path=a_path,
    picture=optional(a_path),
    fields=optional(mapping_of(anything)),
    events=each(a(Event)),
    notes=each(a_text),
    bound_checked=optional(a_flag),
    others=optional(mapping_of(anything)),
    begin=optional(a(date)),
    first=optional(anything),
    overrides=a(Overrides),
    force=a_flag,
)
def write_report(  # noqa: PLR0913 - what a page can say is said in one call
    problem: Problem[PlanT],
    plan: PlanT,
    path: str | PathLike[str],
    *,
    picture: str | PathLike[str] | None = None,
    fields: Mapping[str, Any] | None = None,
    events: Iterable[Event] = (),
    notes: Iterable[str] = (),
    bound_checked: bool | None = None,
    others: Mapping[str, PlanT] | None = None,
    begin: date | None = None,
    first: PlanT | None = None,
    overrides: Overrides = NO_OVERRIDES,
    force: bool = False,
) -> None:
    """Write a plan as one page that opens in any browser, without a network; and, if asked, as a picture.

    Args:
        problem: the instance.
        plan: a plan of it.
        path: the page, ``.html``.
        picture: the picture, ``.png``: the same charts below one another, for slides.
        fields: what ``plan.toml`` says, for the solver and the bound.
        events: of the solve (``Solution.events``), for the convergence.
        notes: sentences to stand above the figures.
        bound_checked: was the bound in ``fields`` computed again? If False, the page says that it was not.
        others: name → plan, to stand side by side on the page; name this one too.
        begin: date of the first day of the migration; without it, days are counted.
        first: a plan that is carried out before this one, such as the first stage after the loss of regions.
        overrides: what the plan was solved with instead of what the instance says, where the plan does not know it;
            the plan is judged by them, and today by the instance alone.
        force: replace files that are there.

    Raises:
        UsageError: a name that does not end in ``.html`` or ``.png``.
        PlanError: the plan was made for another instance.
        InputError: a file that is there already or cannot be written; nothing is then left half-written.
    """
    judged = check_plan(kind_of(problem), problem, plan)
    asked = overrides.applied_to(problem) if overrides else judged
    targets = [(Path(path), ".html")] + ([] if picture is None else [(Path(picture), ".png")])
    for target, suffix in targets:
        if target.suffix.lower() != suffix:
            raise UsageError(f"{target}: expected a name that ends in {suffix}")
        check_free(target, force=force)
    said: dict[str, Any] = {"fields": fields, "events": events, "notes": notes, "bound_checked": bound_checked}
    content = report(asked, plan, others=others, begin=begin, instance=problem, first=first, **said)
    with new_file(Path(path).absolute()) as partial:
        partial.write_text(page(content), encoding="utf-8", newline="\n")
    if picture is not None:
        with new_file(Path(picture).absolute()) as partial:
            partial.write_bytes(png(content))
