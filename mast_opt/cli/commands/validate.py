"""``mast-opt validate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer
from mast_opt.cli.json_record import today_keys
from mast_opt.cli.options import Instance, Json, Strict, TheRun
from mast_opt.cli.trace_check import check_trace
from mast_opt.core.solve_result import Status
from mast_opt.live.simulation.traces.schema import KIND as TRACE
from mast_opt.planner.io import validate
from mast_opt.planner.io.plain_tables import is_of_kind

if TYPE_CHECKING:
    from rich.console import Console


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
    if is_of_kind(path, TRACE):
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
        from mast_opt.planner.report.terminal.current_state import today_section
        from mast_opt.planner.report.terminal.sections import show_section
        from mast_opt.planner.report.terminal.validation import show_reading

        show_reading(out, reading)
        if today is not None:
            show_section(out, today_section(today))

    return Answer(Exit.INFEASIBLE if conflicts else Exit.OK, show)
