"""The results of a suite as a table in the terminal."""

from __future__ import annotations

from rich.console import Console

from mast_opt.bench import figures
from mast_opt.bench.report import chapter
from mast_opt.bench.results import load
from mast_opt.bench.running import Plan
from mast_opt.report.numbers import percent, seconds
from mast_opt.report.parts import light_table, print_table


def show_summary(console: Console, work: Plan) -> None:
    """Counts and means of every contestant over the latest results in the suite's file."""
    told = chapter(work.suite, load(work.file))
    best = told.best
    table = light_table(work.suite.title, ("contestant", "runs", "plans", "proven", "best plan", "gap to best", "time"))
    solves = [result for result in told.results if "figures" not in result and result["source"].get("kind")]
    for name in figures.names_of(solves):
        mine = [result for result in solves if figures.contestant(result) == name]
        gaps = [figures.gap_to(figures.objective(result), best.get(figures.instance(result))) for result in mine]
        known = [gap for gap in gaps if gap is not None]
        winners = figures.winners(mine, solves, best)
        counts = (len(mine), sum(map(figures.feasible, mine)), sum(map(figures.solved, mine)), winners)
        time = figures.shifted_geometric_mean(map(figures.time_s, mine))
        mean = figures.shifted_geometric_mean(known, 0.01)
        table.add_row(name, *map(str, counts), percent(mean), "" if time is None else seconds(time))
    if solves:
        print_table(console, table)
    console.print(f"\n{work.file} holds the results.", soft_wrap=True)
