"""Chapters of the report from result files (suite, latest results, best plans kept), and a table in the terminal."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from mast_opt.core.errors import InputError, UsageError
from mast_opt.planner.bench.execution.runner import RunPlan
from mast_opt.planner.bench.reporting.page import Chapter
from mast_opt.planner.bench.reporting.tables import SUMMARY, summary_rows
from mast_opt.planner.bench.results import best_known
from mast_opt.planner.bench.results import metrics as figures
from mast_opt.planner.bench.results.metrics import Instance
from mast_opt.planner.bench.results.store import Result, latest, load
from mast_opt.planner.bench.suites.instances import Stored
from mast_opt.planner.bench.suites.suite import Suite
from mast_opt.planner.bench.suites.toml_reader import read_suite, suite_path
from mast_opt.planner.report.terminal.sections import show_table


def chapters_of(paths: Sequence[Path]) -> list[Chapter]:
    """A chapter for each result file; a folder stands for every one in it.

    Where no suite here has the name of a file, as with a suite that was run by its path, the chapter has the results
    and lacks the suite's words and plots.

    Raises:
        InputError: there are no results at a path.
        SuiteError: the suite of a file has faults.
    """
    files: list[Path] = []
    for path in paths:
        found = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
        files += [file for file in found if file.exists()]
        if not found or not found[0].exists():
            raise InputError(
                f"{path}: expected results, a .jsonl file or a folder of them (mast-opt bench SUITE --out …)"
            )
    return [replace(chapter(_suite_of(file.stem), load(file)), sources=tuple(paths)) for file in files]


def _suite_of(name: str) -> Suite:
    """Suite of this name; an empty one where there is no such file."""
    try:
        path = suite_path(name)
    except UsageError:
        return Suite(name, Path(f"{name}.toml"), title=name, about="", trials=())
    return read_suite(path)


def chapter(suite: Suite, results: Sequence[Result]) -> Chapter:
    """The latest result of each trial, next to what is known."""
    known: dict[Instance, float] = {}
    for trial in suite.trials:
        if isinstance(trial.source, Stored):
            objective = best_known.objective_of(trial.source.path)
            if objective is not None:
                known[figures.identity(trial.facts["source"]), trial.source.label] = objective
    return Chapter(suite, figures.with_orders(latest(results)), known)


def show_summary(console: Console, work: RunPlan) -> None:
    """Counts, means and worst gaps of every contestant over the latest results in the suite's file."""
    results = chapter(work.suite, load(work.file))
    solves = [result for result in results.results if "figures" not in result and result["source"].get("kind")]
    if solves:
        show_table(console, work.suite.title, SUMMARY, summary_rows(solves, results.best))
    console.print(f"\n{work.file} holds the results.", soft_wrap=True)
