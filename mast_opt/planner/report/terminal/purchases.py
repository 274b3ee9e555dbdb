"""Terminal output of ``buy``: what to order, what it costs, what it brings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from mast_opt.core.wording import plain
from mast_opt.planner.report.result_sections import purchase_sections
from mast_opt.planner.report.terminal.sections import show_section

if TYPE_CHECKING:
    from rich.console import Console

    from mast_opt.planner.analysis.purchase_question import Purchases


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
