"""``mast-opt validate`` on a trace of jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Run
from mast_opt.core.input_warning import InputWarning
from mast_opt.live.simulation.traces.fit import warnings_of
from mast_opt.live.simulation.traces.schema import KIND
from mast_opt.live.simulation.traces.trace import JobTrace, read_trace
from mast_opt.problems.job_placement.units import WHOLE

if TYPE_CHECKING:
    from rich.console import Console

DAY_MS = 86_400_000


def check_trace(path: Path, run: Run, *, strict: bool) -> Answer:
    """Show what a trace holds, and what in it was probably not meant.

    Raises:
        InstanceError: lists every fault of its files.
        InputError: there are warnings, and ``strict`` makes them errors.
    """
    with run.phase("read", f"reading {path}"):
        trace = read_trace(path)
    with run.phase("verify", "checking"):
        found = warnings_of(trace)
    run.record.update(kind=KIND, name=trace.name, trace=_figures(trace))
    run.warn(found, strict=strict, show=False)
    return Answer(Exit.OK, lambda console: _show(console, trace, found))


def _figures(trace: JobTrace) -> dict[str, int | float]:
    jobs = trace.submissions
    known = jobs.duration_ms >= 0
    gpus, span = sum(server.gpus for server in trace.servers), int(jobs.submitted_ms[-1] - jobs.submitted_ms[0])
    work = int((jobs.gang_mgpu[known].astype(object) * jobs.duration_ms[known]).sum()) / WHOLE
    return {
        "jobs": len(jobs),
        "servers": len(trace.servers),
        "gpus": gpus,
        "regions": len(trace.regions),
        "days": span / DAY_MS,
        "gpu_days": work / DAY_MS,
    }


def _show(console: Console, trace: JobTrace, found: list[InputWarning]) -> None:
    from rich.text import Text

    from mast_opt.core.number_format import plain
    from mast_opt.planner.report.terminal.layout import light_table, print_table, print_words

    console.print(Text.assemble((trace.name, "bold"), f"  {KIND}"))
    console.print(Text.assemble(("VALID", "bold green"), "  no fault"))
    for warning in found:
        print_words(console, f"Warning: {warning}", style="yellow")
    words = {
        "jobs": "jobs",
        "servers": "servers",
        "gpus": "GPUs",
        "regions": "regions",
        "days": "days from the first submission to the last",
        "gpu_days": "GPU-days of work, where durations are known",
    }
    table = light_table("", ("what", "amount"))
    for name, value in _figures(trace).items():
        table.add_row(words[name], f"{value:,}" if isinstance(value, int) else plain(value))
    print_table(console, table)
