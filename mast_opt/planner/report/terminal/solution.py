"""A solution as a planner reads it in a terminal."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mast_opt.core.solve_result import Limit, Status
from mast_opt.core.verdict import Verdict
from mast_opt.core.wording import as_shown, gap_text, of_term, percent, plain, seconds
from mast_opt.planner.analysis.goals import PLAN, Figures, figures_of
from mast_opt.planner.analysis.region_loss import RegionLoss
from mast_opt.planner.report.result_sections import goal_sections, least_loss_words
from mast_opt.planner.report.terminal.sections import TOP_ROWS, print_words, show_section, show_table
from mast_opt.planner.solving import Solution
from mast_opt.planner.solving.auto_strategy import solver_text
from mast_opt.planner.solving.search_route import UNGUIDED
from mast_opt.problems.kind.header import Term
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.plugin_heuristics import UNCHECKED
from mast_opt.problems.registry import kind_of
from mast_opt.problems.search.params import value_text

_STYLES = {Status.OPTIMAL: "bold green", Status.FEASIBLE: "bold cyan"}
_MEANING = {
    Status.OPTIMAL: "proven within the requested gap",
    Status.FEASIBLE: "a verified plan, not proven within the requested gap",
    Status.INFEASIBLE: "proven: no plan keeps every limit",
    Status.UNBOUNDED: "the objective has no minimum",
    Status.INFEASIBLE_OR_UNBOUNDED: "proven: no plan keeps every limit",
    Status.NO_SOLUTION: "no plan was found",
}
_STOPPED = {
    Limit.TIME: "the time limit",
    Limit.INTERRUPT: "an interrupt",
    Limit.ITERATIONS: "the limit of iterations",
    Limit.OTHER: "a limit of the solver",
}


def show_solution(
    console: Console,
    problem: Problem[PlanT],
    solution: Solution[PlanT],
    elapsed_s: float,
    rows: int | None = TOP_ROWS,
    figures: Mapping[str, Figures] | None = None,
) -> None:
    """Print the solution.

    Args:
        console: where to; its width is kept.
        problem: the instance that was solved.
        solution: what ``mast_opt.solve`` returned for it.
        elapsed_s: time that all of it took, reading included.
        rows: how many rows of a long table to show, other than that of figures before and after; None for all.
        figures: of doing nothing and of the plan, where they are known already.
    """
    plan = (figures or {}).get(PLAN)
    _headline(console, problem, solution, elapsed_s, None if plan is None else plan.loss)
    if solution.verdict is None or solution.plan is None:
        _reasons(console, solution)
        return
    if figures is None:
        figures = figures_of(problem, {PLAN: solution.plan}, with_steps=False)
    for number, section in enumerate(goal_sections(problem, figures)):
        show_section(console, section, rows if number else None)
    if solution.stages:
        _stages(console, solution, kind_of(problem).terms)
    elif solution.verdict.terms:
        _terms(console, problem.objective.weights, solution.verdict, kind_of(problem).terms)
    _metrics(console, solution.verdict.metrics)
    for section in kind_of(problem).presentation.sections(problem, solution.plan):
        show_section(console, section, rows)


def _headline(
    console: Console, problem: Problem[PlanT], solution: Solution[PlanT], elapsed_s: float, loss: RegionLoss | None
) -> None:
    """Print the head of a solution: status, solver, objective, bound, gap, and what was set."""
    status = solution.status
    solver = solver_text(solution.solver, solution.strategy, solution.versions)
    stopped = "" if solution.limit is None else f"; stopped by {_STOPPED[solution.limit]}"
    console.print(Text.assemble((problem.name, "bold"), f"  {solution.kind}"))
    near = status is Status.OPTIMAL and solution.last_pass is not None and solution.last_pass.reference == "near"
    meaning = "proven within 0.1%, or the gap asked for if larger, as near another plan" if near else _MEANING[status]
    meaning = f"with its replicas, {meaning}" if solution.is_second_stage else meaning
    console.print(Text.assemble((status.value, _STYLES.get(status, "bold red")), f"  {meaning}{stopped}"))
    figures = [("solver", solver), ("time", seconds(elapsed_s))]
    changed = ", ".join(f"{name}={value_text(value)}" for name, value in solution.params.items())
    figures += [("parameters", changed)] if changed else []
    figures += [("solved with", str(solution.overrides))] if solution.overrides else []
    figures += [("cross-check", str(solution.cross_check))] if solution.cross_check is not None else []
    if solution.is_second_stage:
        figures += [("worst loss of a region", least_loss_words(loss, solution.least_missing_gpus))]
    figures += [("plan", str(solution.last_pass))] if solution.last_pass is not None else []
    figures += [("reused", str(solution.reuse))] if solution.reuse is not None else []
    notes = [words for words in solution.message.split("; ") if words.startswith((UNGUIDED, UNCHECKED))]
    figures += [("note", "; ".join(notes))] if notes else []
    figures += [("policy", problem.objective.policy)] if problem.objective.policy else []
    if solution.verdict is not None:
        known = [("objective", of_term(solution.objective, solution.term)), ("bound", plain(solution.bound))]
        figures = [*known, ("gap", gap_text(solution.gap, solution.objective, solution.bound)), *figures]
    line = Text("   ").join(Text.assemble((f"{name} ", "dim"), value) for name, value in figures)
    console.print(line)


def _reasons(console: Console, solution: Solution[Any]) -> None:
    """Print why a solve found no plan: limits that contradict one another, or the solver's message."""
    if solution.conflicts:
        console.print("\nThese limits contradict one another, whatever the plan:")
        for conflict in solution.conflicts:
            print_words(console, f"- {conflict.message}")
    elif solution.message:
        print_words(console, f"The solver says: {solution.message}", style="dim")


def _stages(console: Console, solution: Solution[Any], stated: Mapping[str, Term]) -> None:
    """Print the terms of a solution that were minimised one after another, then those that just came out as
    they did.
    """
    assert solution.verdict is not None
    rows = [
        (
            *(stage.term, plain(stage.objective), plain(stage.bound)),
            *(gap_text(stage.gap, stage.objective, stage.bound), stated[stage.term].unit),
        )
        for stage in solution.stages
    ]
    staged = {stage.term for stage in solution.stages}
    others = [
        [Text(cell, "dim") for cell in (name, plain(value), "", "not minimised", stated[name].unit)]
        for name, value in solution.verdict.terms.items()
        if name not in staged and value
    ]
    heads = ("term", "value", "bound", "gap", "value in")
    show_table(console, "Terms, minimised one after another", heads, [*rows, *others], ("term", "value in"))


def _terms(console: Console, weights: Mapping[str, float], verdict: Verdict, stated: Mapping[str, Term]) -> None:
    """Print a solution's terms: value, weight, contribution and unit of every term that is weighed or not zero; the
    largest contribution first.
    """
    heads = ("term", "value", "weight", "contribution", "share", "value in")
    rows = []
    parts = {name: value * weights[name] for name, value in verdict.terms.items()}
    total = sum(parts.values())
    for name in sorted(parts, key=lambda name: -parts[name]):
        value, weight = verdict.terms[name], weights[name]
        if value or weight:
            share = percent(parts[name] / total, 1) if total and weight else ""
            style = "" if weight else "dim"
            cells = (name, plain(value), plain(weight), plain(parts[name]), share, stated[name].unit)
            rows.append([Text(cell, style) for cell in cells])
    rows.append([Text(cell, "bold") for cell in ("total", "", "", plain(total), "", "")])
    show_table(console, "What the objective is made of", heads, rows, ("term", "value in"))


def _metrics(console: Console, metrics: Mapping[str, float]) -> None:
    """Print a solution's key figures, two a line where the terminal is wide enough."""
    console.print()
    console.print(_in_pairs(as_shown(metrics).items(), console.width))


def _in_pairs(items: Iterable[tuple[str, float]], width: int) -> Table:
    """Table of key figures of a solution for the terminal, two figures abreast where there is room."""
    cells = [cell for name, value in items for cell in (name, plain(value))]
    abreast = 4 if width >= 72 else 2
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 3, 0, 0), title="Key figures")
    table.title_style, table.title_justify = "bold", "left"
    for position in range(abreast):
        table.add_column(justify="right" if position % 2 else "left", style="" if position % 2 else "dim")
    for start in range(0, len(cells), abreast):
        table.add_row(*cells[start : start + abreast])
    return table
