"""Terminal output of what was read and of the verifier's verdict."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from mast_opt.core.verdict import Verdict, Violation
from mast_opt.core.wording import counted, plain
from mast_opt.planner.io import Reading
from mast_opt.planner.report.terminal.sections import print_words, show_table
from mast_opt.problems.kind.problem import Problem

LISTED = 20
"""Violations that are shown unless all are asked for."""


def show_reading(console: Console, reading: Reading) -> None:
    """Print what an instance holds, what to know about it, and whether a plan can exist."""
    console.print(Text.assemble((reading.problem.name, "bold"), f"  {reading.kind.name}, {reading.format}"))
    if reading.conflicts:
        console.print(Text.assemble(("INFEASIBLE", "bold red"), "  the files are well-formed, but no plan can exist:"))
        for conflict in reading.conflicts:
            print_words(console, f"- {conflict.message}")
    else:
        console.print(Text.assemble(("VALID", "bold green"), "  no fault, and no conflict that shows without solving"))
    for warning in reading.warnings:
        print_words(console, f"Warning: {warning}", style="yellow")
    show_table(console, "", ("table", "rows"), [(name, f"{rows:,}") for name, rows in reading.rows.items()])
    if reading.notes:
        console.print()
        for note in reading.notes:
            print_words(console, f"Note: {note}", style="dim")


def show_verdict(
    console: Console,
    problem: Problem[Any],
    verdict: Verdict,
    claims: Sequence[Violation],
    notes: Sequence[str],
    *,
    right: str,
    full: bool,
) -> None:
    """Print whether a plan keeps every limit, and where it does not.

    Args:
        console: where to.
        problem: the instance.
        verdict: the verifier's.
        claims: figures that the plan states about itself and that are wrong.
        notes: what to know first.
        right: what to say of the stated figures if nothing is wrong, to be added to a sentence.
        full: list every violation, not only the first.
    """
    found = (*verdict.violations, *claims)
    for note in notes:
        print_words(console, f"Note: {note}")
    if not found:
        console.print(Text.assemble(("VERIFIED", "bold green"), f"  every limit holds{right}"))
    else:
        wrong = (
            f"{counted(len(claims), 'figure')} of plan.toml {'is' if len(claims) == 1 else 'are'} not the verifier's"
        )
        if verdict.violations:
            wrong = f"{len(verdict.violations):,} found{f'; {wrong}' if claims else ''}"
        name = "VIOLATIONS" if verdict.violations else "WRONG FIGURES"
        console.print(Text.assemble((name, "bold red"), f"  {wrong}"))
        shown = found if full or len(found) <= LISTED + 1 else found[:LISTED]
        rows = [(one.name, plain(one.amount), plain(one.limit), one.unit) for one in shown]
        show_table(console, "", ("constraint", "off by", "limit", "unit"), rows, ("constraint", "unit"))
        if len(shown) < len(found):
            console.print(f"… and {len(found) - len(shown):,} more (--full shows all)", style="dim")
        console.print()
    order = problem.objective.order
    figures = [(term, verdict.terms[term]) for term in order] or [("objective", verdict.objective)]
    console.print(Text("   ").join(Text.assemble((f"{name} ", "dim"), plain(value)) for name, value in figures))
