"""The results of a suite as a table in the terminal."""

from __future__ import annotations

from rich.console import Console

from mast_opt.core.number_format import percent, seconds
from mast_opt.planner.bench.execution.runner import RunPlan
from mast_opt.planner.bench.reporting.chapters import chapter
from mast_opt.planner.bench.reporting.tables import seeds
from mast_opt.planner.bench.results import metrics as figures
from mast_opt.planner.bench.results.store import load
from mast_opt.planner.report.terminal.layout import light_table, print_table


def show_summary(console: Console, work: RunPlan) -> None:
    """Counts, means and worst gaps of every contestant over the latest results in the suite's file."""
    results = chapter(work.suite, load(work.file))
    best = results.best
    heads = ("contestant", "runs", "seeds", "plans", "proven", "best plan", "gap to best", "worst gap", "time")
    table = light_table(work.suite.title, heads)
    solves = [result for result in results.results if "figures" not in result and result["source"].get("kind")]
    for name in figures.names_of(solves):
        mine = [result for result in solves if figures.contestant(result) == name]
        known = figures.known_gaps(mine, best)
        winners = figures.winners(mine, solves, best)
        counts = (sum(map(figures.feasible, mine)), sum(map(figures.solved, mine)), winners)
        time = figures.shifted_geometric_mean(map(figures.time_s, mine))
        gaps = (percent(figures.shifted_geometric_mean(known, 0.01)), percent(max(known, default=None)))
        shown = "" if time is None else seconds(time)
        table.add_row(name, str(len(mine)), seeds(mine), *map(str, counts), *gaps, shown)
    if solves:
        print_table(console, table)
    console.print(f"\n{work.file} holds the results.", soft_wrap=True)
