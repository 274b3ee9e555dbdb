"""The answer of ``explain --risk`` in a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from mast_opt.core.wording import counted
from mast_opt.planner.report.terminal.sections import TOP_ROWS, show_section
from mast_opt.problems.kind.analysis_hooks import Risk
from mast_opt.problems.kind.presentation import Form, Head, Section


def show_risk(console: Console, name: str, answer: Risk, *, full: bool = False) -> None:
    """Print what depends on each region, then the data with a single copy."""
    of = "the plan" if answer.of == "plan" else "today"
    console.print(Text.assemble((name, "bold"), f"  risk of {of}"))
    rows = None if full else TOP_ROWS
    show_section(console, _regions(answer), rows)
    show_section(console, _single_copies(answer), rows)


def _regions(answer: Risk) -> Section:
    heads = (
        Head("region"),
        Head("workloads running", Form.COUNT),
        Head("GPUs running", Form.AMOUNT),
        Head("lost datasets", Form.COUNT),
        Head("lost TB", Form.AMOUNT),
        Head("lost workloads", Form.COUNT),
        Head("their GPUs", Form.AMOUNT),
        Head("of all GPUs", Form.FILL),
    )
    rows = tuple(
        (
            one.region,
            None if one.running is None else len(one.running),
            one.running_gpus,
            len(one.loss.datasets),
            one.loss.tb,
            len(one.loss.work),
            one.lost_gpus,
            one.lost_gpus / answer.gpus if answer.gpus else 0.0,
        )
        for one in answer.regions
    )
    note = "Lost: data of which no replica is elsewhere, and the workloads that read it."
    if not answer.complete:
        note += " Where work runs today is known in part only; the columns of running work count that part."
    return Section("What depends on each region", heads, rows, note)


def _single_copies(answer: Risk) -> Section:
    heads = (
        *Form.TEXT.heads("dataset", "region"),
        Head("TB", Form.AMOUNT),
        Head("workloads", Form.COUNT),
        Head("their GPUs", Form.AMOUNT),
    )
    rows = tuple((one.dataset, one.region, one.tb, len(one.work), one.gpus) for one in answer.single_copies)
    return Section("Data with a single copy", heads, rows, f"{counted(len(rows), 'dataset')}.")
