"""``mast-opt validate``, of an instance or of a trace of jobs."""

from pathlib import Path
from typing import TYPE_CHECKING

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Console, Run
from mast_opt.cli.json_record import today_keys
from mast_opt.cli.options import Instance, Json, Strict, TheRun
from mast_opt.core.input_warning import InputWarning
from mast_opt.core.solve_result import Status
from mast_opt.planner.io import validate
from mast_opt.planner.io.plain_tables import JOB_TRACE, is_of_kind
from mast_opt.problems.job_placement.units import WHOLE

if TYPE_CHECKING:
    from mast_opt.live.simulation.traces.trace import JobTrace

DAY_MS = 86_400_000


def command(path: Instance, /, *, strict: Strict = False, json: Json = False, run: TheRun) -> Answer:
    """Check an instance or a trace of jobs: every fault, and every conflict that can be seen without solving.

    Faults in the files are listed all at once, each with file, row, column, value and what was expected (exit code
    2). Limits that contradict one another mean that no plan can exist (exit code 3). Values that are allowed and were
    probably not meant, such as a misspelt GPU type or GB in a column of TB, are warnings; --strict makes them errors.

        mast-opt validate my-instance
        mast-opt validate fleet.xlsx --strict
        mast-opt validate fleet.xlsx --json | jq .conflicts
        mast-opt validate my-trace
    """
    if is_of_kind(path, JOB_TRACE):
        return check_trace(path, run, strict=strict)
    with run.phase("read", f"reading {path}"):
        reading = validate(path)
        run.record["kind"] = reading.kind.name
        run.warn(reading.warnings, strict=strict, show=False)
    with run.phase("verify", "checking"):
        conflicts = reading.conflicts
        today = reading.kind.analysis.current_state(reading.problem)
    problem = reading.problem
    run.record.update(
        kind=reading.kind.name,
        name=problem.name,
        format=reading.format,
        rows=dict(reading.rows),
        notes=list(reading.notes),
        today=today_keys(today),
        conflicts=[
            {"constraint": conflict.constraint, "index": list(conflict.index), "message": conflict.message}
            for conflict in conflicts
        ],
    )
    if conflicts:
        run.record.update(
            status=Status.INFEASIBLE.value,
            error="no plan can exist: " + "; ".join(conflict.message for conflict in conflicts),
        )

    def show(out: Console) -> None:
        from mast_opt.planner.report.result_sections import today_section
        from mast_opt.planner.report.terminal.sections import show_section
        from mast_opt.planner.report.terminal.validation import show_reading

        show_reading(out, reading)
        if today is not None:
            show_section(out, today_section(today))

    return Answer(Exit.INFEASIBLE if conflicts else Exit.OK, show)


def check_trace(path: Path, run: Run, *, strict: bool) -> Answer:
    """Show what a trace holds, and what in it was probably not meant.

    Raises:
        InstanceError: lists every fault of its files.
        InputError: there are warnings, and ``strict`` makes them errors.
    """
    from mast_opt.live.simulation.traces.fit import warnings_of
    from mast_opt.live.simulation.traces.trace import read_trace

    with run.phase("read", f"reading {path}"):
        trace = read_trace(path)
    with run.phase("verify", "checking"):
        found = warnings_of(trace)
    run.record.update(kind=JOB_TRACE, name=trace.name, trace=_figures(trace))
    run.warn(found, strict=strict, show=False)
    return Answer(Exit.OK, lambda console: _show(console, trace, found))


def _figures(trace: "JobTrace") -> dict[str, int | float]:
    """Counts of a trace that ``mast-opt validate`` shows: jobs, servers, GPUs and the like."""
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


def _show(console: Console, trace: "JobTrace", found: list[InputWarning]) -> None:
    """Print what a trace of jobs holds, for ``mast-opt validate``."""
    from rich.text import Text

    from mast_opt.core.wording import plain
    from mast_opt.planner.report.terminal.sections import print_words, show_table

    console.print(Text.assemble((trace.name, "bold"), f"  {JOB_TRACE}"))
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
    figures = _figures(trace).items()
    rows = [(words[name], f"{value:,}" if isinstance(value, int) else plain(value)) for name, value in figures]
    show_table(console, "", ("what", "amount"), rows)
