"""The answers of ``explain``, ``marginal``, ``whatif`` and ``pareto`` in a terminal."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from mast_opt.core.solve_result import Status
from mast_opt.core.wording import RESTORE, UNKNOWN, as_shown, counted, gpus, listed, named, of_term, percent, plain
from mast_opt.planner.analysis.alternatives import Reasons, grouped
from mast_opt.planner.analysis.explain import Explanation
from mast_opt.planner.analysis.marginal_values import Marginals
from mast_opt.planner.analysis.pareto import Frontier
from mast_opt.planner.analysis.purchase_question import Purchases
from mast_opt.planner.analysis.two_stage import Robust
from mast_opt.planner.analysis.whatif import Outcome, WhatIf
from mast_opt.planner.report.result_sections import (
    DAYS,
    days_cell,
    missing_sections,
    over_words,
    purchase_sections,
    recovery_sections,
    region_risk_section,
    single_copy_section,
)
from mast_opt.planner.report.terminal.sections import TOP_ROWS, print_words, show_section, show_table
from mast_opt.problems.kind.analysis_hooks import Loss, Risk

TOP = 6
"""Alternatives, values or violations that are shown unless all are asked for."""


def show_explanation(console: Console, name: str, answer: Explanation, *, full: bool = False) -> None:
    """Print a conflict with its repairs, or why things run where they run."""
    console.print(Text.assemble((name, "bold"), f"  {answer.kind}"))
    if answer.reasons:
        if answer.status is not Status.FEASIBLE:
            console.print("The plan breaks limits already; 'mast-opt verify' lists them.", style="bold red")
        for one in answer.reasons:
            _show_reasons(console, one, None if full else TOP)
        return
    if answer.status is Status.FEASIBLE:
        console.print(Text.assemble(("FEASIBLE", "bold green"), "  there is a plan, so there is nothing to explain"))
        return
    if answer.status is Status.NO_SOLUTION:
        console.print(Text.assemble(("UNDECIDED", "bold yellow"), "  neither a plan nor a contradiction was found"))
        return
    _show_conflict(console, answer)


def _show_conflict(console: Console, answer: Explanation) -> None:
    """Print a conflict with its repairs."""
    about = "these limits contradict one another:" if answer.conflict else "the limits that contradict one another"
    about += "" if answer.conflict else " were not found in time; raise --time-limit to see them."
    console.print(Text.assemble(("INFEASIBLE", "bold red"), f"  {about}"))
    for words in answer.conflict:
        print_words(console, f"- {words}")
    if answer.conflict:
        print_words(console, _minimality(answer), style="dim")
    if answer.repairs:
        console.print("\nWhat would help, the cheapest first (each was tried out):", style="bold")
    for repair in answer.repairs:
        proof = "" if repair.cheapest else ", perhaps not the cheapest of its sort"
        print_words(console, f"- {'; and '.join(repair.changes)}  (price {plain(repair.price)}{proof})")
    if answer.at_least:
        console.print("\nThe least value that is feasible was not found in time:", style="bold")
    for words in answer.at_least:
        print_words(console, f"- {words}")
    if not answer.repairs and not answer.at_least:
        print_words(console, "No repair was found; one may exist, so raise --time-limit if it is set.")


def _minimality(answer: Explanation) -> str:
    """Sentence on how many of the conflict's limits are known to be needed."""
    if answer.minimal:
        return "Dropping any one of these makes the rest feasible (each was tested)."
    if answer.proven and answer.limits is not None:
        count = sum(map(len, answer.limits.values()))
        return (
            f"Of these {count:,} limits {answer.proven:,} are needed: without any one of them there is a plan for "
            f"the others. Of the other {count - answer.proven:,} that was not found out in time."
        )
    return "Some of them may not be needed for that: the time did not suffice to try each."


def _show_reasons(console: Console, one: Reasons, rows: int | None) -> None:
    """Print why a workload or dataset is where it is, with a table of the alternatives."""
    console.print()
    print_words(console, one.sentence, style="bold")
    groups = grouped(one.options)
    shown = groups if rows is None else groups[:rows]
    with_terms = any(option.terms for option, _ in shown)
    weighted = any(option.parts for option, _ in shown)
    words_of = ("of which" if weighted else "terms that change", "forbidden by")[0 if with_terms else 1 :]
    rows_shown = []
    for option, others in shown:
        terms = ", ".join(
            f"{name} {value:+.4g}" for name, value in (option.parts if weighted else option.terms).items()
        )
        style = "dim" if option.forbidden else ""
        change = UNKNOWN if option.change is None else f"{option.decides or ''} {option.change:+.4g}".lstrip()
        cells = (terms, "; ".join(option.forbidden))[0 if with_terms else 1 :]
        words = f"{option.words} (and {counted(others, 'place')} alike)" if others else option.words
        rows_shown.append([Text(cell, style) for cell in (words, change, *cells)])
    show_table(console, "", ("instead", "change", *words_of), rows_shown, ("instead", *words_of))
    if len(shown) < len(groups):
        console.print(f"… and {len(groups) - len(shown):,} more (--full shows all)", style="dim")


def show_marginals(console: Console, name: str, answer: Marginals, *, full: bool = False) -> None:
    """Print what more is worth, without the rows that are worth nothing unless all are asked for; no more than a title
    where there is no plan."""
    console.print(Text.assemble((name, "bold"), f"  {answer.kind}"))
    if answer.objective is None:
        return
    fixed = answer.integers == "fixed"
    note = "all integer decisions fixed" if fixed else "everything decided again"
    console.print(Text.assemble(("objective ", "dim"), plain(answer.objective), f"   value of one more unit, {note}"))
    shown = [one for one in answer.values if full or one.value]
    heads = ("resource", "where", "unit", "worth") if fixed else ("resource", "where", "unit", "worth", "proven range")
    usd = (answer.usd_unit,) if answer.usd_unit else ()
    rows = [
        (
            *(one.resource, one.place, one.unit, plain(one.value)),
            *(() if fixed else (f"{plain(one.low)} … {plain(one.high)}",)),
            *((plain(one.usd),) if usd else ()),
        )
        for one in shown
    ]
    if rows:
        show_table(console, "", (*heads, *usd), rows, heads[:3])
    unknown = sum(one.value is None for one in answer.values)
    nothing = len(answer.values) - unknown - sum(bool(one.value) for one in answer.values)
    for count, words in ((nothing, "have no value by themselves"), (unknown, "were not found out in time")):
        if count and not full:
            console.print(f"{count:,} more {words} (--full shows them)", style="dim")


def show_whatif(console: Console, name: str, answer: WhatIf[Any]) -> None:
    """Print a row a scenario, what scenarios lose, the terms, then the plan for all of them."""
    console.print(Text.assemble((name, "bold"), f"  {answer.kind}"))
    outcomes = (answer.base, *answer.outcomes)
    moved = list(dict.fromkeys(unit for one in outcomes for unit in one.moved))
    rows = []
    for one in outcomes:
        breaks = UNKNOWN if one.base_breaks is None else f"{one.base_breaks:,}"
        figures = [plain(one.moved.get(unit)) for unit in moved]
        objective, gap = of_term(one.solution.objective, one.solution.term), percent(one.solution.gap)
        rows.append((one.name, one.solution.outcome, objective, plain(one.solution.bound), gap, *figures, breaks))
    heads = ("scenario", "status", "objective", "bound", "gap", *moved, "base breaks")
    show_table(console, "Every scenario planned again", heads, rows, heads[:2])
    print_words(console, f"{answer.base_words} {over_words(answer)}".strip(), style="dim")
    for one in outcomes:
        if one.down_gpus:
            when = "once the base plan is carried out" if answer.given else "today, before any plan"
            words = f"{one.name}: {when}, work that uses {gpus(one.down_gpus)} GPUs runs in the lost regions"
            print_words(console, f"{words}; it stops with them.")
        if one.base_breaks and one.base_verdict is not None:
            words = f"{one.name}: nothing planned again, the base plan breaks {one.base_verdict.violations[0]}"
            more = one.base_breaks - 1
            print_words(console, words + (f"; and {counted(more, 'more limit')}" if more else ""))
        if one.unavoidable:
            words = (
                f"{one.name}: {plain(one.unavoidable)} of the objective is work whose data is lost, whatever the plan"
            )
            print_words(console, f"{words}; the gap of the rest is {percent(one.open_gap)}.")
    _show_losses(console, outcomes)
    for one in outcomes:
        if one.solution.verdict is None:
            reasons = [conflict.message for conflict in one.solution.conflicts] or [one.solution.message]
            print_words(console, f"{one.name}: {'; '.join(reasons)}", style="yellow")
    _show_figures(console, outcomes)
    for section in (*missing_sections(answer), *recovery_sections(answer)):
        show_section(console, section, TOP_ROWS if section.title.startswith("Work") else None)
    if answer.robust is not None:
        show_robust(console, answer.robust)


def _show_figures(console: Console, outcomes: Sequence[Outcome[Any]]) -> None:
    """Print terms, then key figures with the days until a plan is carried out, a column a scenario."""
    verdicts = [one.solution.verdict for one in outcomes]
    for title, columns in (
        ("Terms", [{} if found is None else found.terms for found in verdicts]),
        ("Key figures", [{} if found is None else found.metrics for found in verdicts]),
    ):
        names = dict.fromkeys(name for column in columns for name in column)
        seen = [as_shown(column) for column in columns]
        rows = [(name, *(plain(column.get(name)) for column in seen)) for name in names]
        kept = [row for row in rows if any(column.get(row[0]) for column in seen)]
        if title == "Key figures" and any(one.way.days for one in outcomes):
            kept.append((DAYS, *(days_cell(one.way) for one in outcomes)))
        if kept:
            show_table(console, title, ("", *(one.name for one in outcomes)), kept)


def _show_losses(console: Console, outcomes: Sequence[Outcome[Any]]) -> None:
    """A row for every scenario that destroys data, and the names of what is lost."""
    for one in outcomes:
        if one.lost is not None and one.lost.fewer_copies:
            few = named("dataset", one.lost.fewer_copies)
            print_words(console, f"{one.name}: {few} may do with the copies that are left, fewer than copies_min.")
    losses = {one.name: one.lost for one in outcomes if one.lost is not None and one.lost.datasets}
    if not losses:
        return
    some = next(iter(losses.values()))
    size = [] if some.tb is None else ["lost_tb"]
    rows = [
        (name, f"{len(lost.datasets):,}", *(plain(lost.tb) for _ in size), f"{len(lost.work):,}")
        for name, lost in losses.items()
    ]
    show_table(console, "Lost data", ("scenario", "lost_datasets", *size, f"lost_{some.noun}s"), rows)
    for name, lost in losses.items():
        print_words(console, f"{name}: {loss_words(lost)}", style="yellow")
    if size:
        print_words(console, RESTORE)


def loss_words(lost: Loss) -> str:
    """Losses of a scenario by name, for the terminal: "clicks is lost (4 TB), and with it the workloads
    rank and spam".
    """
    size = "" if lost.tb is None else f" ({plain(lost.tb)} TB)"
    verb = "is" if len(lost.datasets) == 1 else "are"
    them = "it" if len(lost.datasets) == 1 else "them"
    work = f"and with {them} {named(lost.noun, lost.work)}" if lost.work else f"which no {lost.noun} reads"
    return f"{listed(lost.datasets)} {verb} lost{size}, {work}"


def show_robust(console: Console, robust: Robust[Any]) -> None:
    """Print what the plan for all scenarios is worth in each, next to the base plan."""
    words = "the worst scenario" if robust.objective_kind == "worst" else "the scenarios' mean by weight"
    rows = [
        (name, plain(robust.robust[name].objective if name in robust.robust else None), plain(solution.objective))
        for name, solution in robust.base.items()
    ]
    total = (robust.objective_kind, plain(robust.objective), plain(robust.base_objective))
    show_table(
        console,
        f"One set of {robust.decided} for all scenarios, best in {words}",
        ("scenario", f"with these {robust.decided}", f"with the base plan's {robust.decided}"),
        [*rows, [Text(cell, "bold") for cell in total]],
    )
    for words, losses in (
        (f"with these {robust.decided}", robust.robust_lost),
        (f"with the base plan's {robust.decided}", robust.base_lost),
    ):
        for name, lost in losses.items():
            if lost is not None and lost.datasets:
                print_words(console, f"{name}, {words}: {loss_words(lost)}", style="yellow")
    least = f"no set of {robust.decided} has less than {plain(robust.bound)}"
    note = f"{robust.status.value}; {'nothing is proven' if robust.bound is None else f'proven: {least}'}."
    print_words(console, note, style="dim")


def show_frontier(console: Console, name: str, answer: Frontier[Any]) -> None:
    """Print a row a point, with what is proven and the key figures that differ."""
    first, second = answer.terms
    console.print(Text.assemble((name, "bold"), f"  {answer.kind}, {first} against {second}"))
    varying = [
        metric
        for metric in (answer.points[0].metrics if answer.points else ())
        if metric not in answer.terms and len({plain(point.metrics[metric]) for point in answer.points}) > 1
    ]
    bound = f"{second} proven ≥" if answer.method == "epsilon" else "weighted sum ≥"
    rows = [
        (
            *(plain(point.terms[first]), plain(point.terms[second]), plain(point.bound)),
            "yes" if point.proven else "no",
            *(plain(point.metrics[metric]) for metric in varying),
        )
        for point in answer.points
    ]
    if rows:
        show_table(console, "", (first, second, bound, "proven", *varying), rows, ())
    for count, words in (
        (answer.dominated, "left out: another has no more of either term"),
        (answer.missing, "not found in time"),
    ):
        if count:
            console.print(f"{counted(count, 'point')} {words}", style="dim")


def show_risk(console: Console, name: str, answer: Risk, *, full: bool = False) -> None:
    """Print what depends on each region, then the data with a single copy."""
    of = "the plan" if answer.of == "plan" else "today"
    console.print(Text.assemble((name, "bold"), f"  risk of {of}"))
    for section in (region_risk_section(answer), single_copy_section(answer)):
        show_section(console, section, None if full else TOP_ROWS)


def show_purchases(console: Console, name: str, answer: Purchases[Any]) -> None:
    """Print the purchases, their price with the proven bound, and the worst ratio before and after."""
    console.print(Text.assemble((name, "bold"), f"  {answer.kind}"))
    if answer.usd is None:
        return
    bound = f"; proven: none is cheaper than {answer.bound_usd:,.0f} USD" if answer.bound_usd else ""
    bound = bound or ("; nothing is proven of cheaper ones" if answer.usd else "")
    console.print(f"{float(answer.usd):,.0f} USD{bound}")
    before = "" if answer.worst_before is None else f" (was {plain(float(answer.worst_before))})"
    if answer.worst_after is not None:
        console.print(f"worst ratio {plain(float(answer.worst_after))}{before}, target {plain(float(answer.target))}")
    if not answer.bought:
        console.print("Nothing has to be bought: a plan without purchases is at the target.")
        return
    for section in purchase_sections(answer):
        show_section(console, section)
