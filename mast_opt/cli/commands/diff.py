"""``mast-opt diff``, of two plans or of two runs."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Console, Run
from mast_opt.cli.json_record import today_keys
from mast_opt.cli.options import Force, Full, Json, TheRun
from mast_opt.cli.table_output import TableOut, answered, check_table_output
from mast_opt.core.errors import UsageError
from mast_opt.planner.analysis.plan_diff import Change, TableDiff, diff
from mast_opt.planner.io import PlanReading, read
from mast_opt.planner.io.plain_tables import is_run
from mast_opt.planner.report.terminal.sections import TOP_ROWS, print_words

if TYPE_CHECKING:
    from mast_opt.live.reports.comparison import RunDiff
    from mast_opt.live.simulation.run_folder import StoredRun

SECOND_MS, HOUR_MS = 1000, 3_600_000


def command(
    path: Annotated[Path, Parameter(help="The instance; or a run, the folder of 'mast-opt simulate --out'.")],
    plan: Annotated[Path, Parameter(help="A plan of the instance; or another run of the same jobs.")],
    other: Annotated[
        Path | None, Parameter(help="A later plan; without it the change is from the present state to PLAN.")
    ] = None,
    /,
    *,
    before: Annotated[
        Path | None, Parameter(help="The instance of the earlier plan, where it is another one (yesterday's).")
    ] = None,
    out: TableOut = None,
    force: Force = False,
    full: Full = False,
    json: Json = False,
    run: TheRun,
) -> Answer:
    """Show what changed: from one plan to another, from the present state to a plan, or from one run to another.

    Rows that came, went or changed in every table, and objective, terms and metrics before and after, all by the
    verifier. Where the two plans are for different instances, the differences of these are shown too.

        mast-opt diff my-instance my-plan
        mast-opt diff my-instance my-plan new-plan
        mast-opt diff today plan-of-yesterday plan-of-today --before yesterday
        mast-opt diff my-instance my-plan new-plan --out changes.xlsx
        mast-opt diff my-instance my-plan new-plan --json | jq .tables.placements.added
        mast-opt diff fifo-run sjf-run

    Of two simulated runs of the same jobs: their figures side by side, and the jobs whose waits differ most.
    """
    check_table_output(out, force)
    if is_run(path):
        if other is not None or before is not None:
            raise UsageError("two runs are compared; leave out the third path and --before")
        if out is not None:
            raise UsageError("--out writes what differs between plans; of two runs, take --json")
        return diff_runs(path, plan, run, None if full else TOP_ROWS)
    with run.phase("read", f"reading {path}"):
        problem = read(path)
        run.record["kind"] = problem.kind
        first = problem if before is None else read(before)
        early = None if other is None else run.plan_of(first, plan)
        late = run.plan_of(problem, plan if other is None else other)
        problem, first = late.problem, late.overrides.applied_to(first)
    with run.phase("verify", "comparing"):
        earlier = None if early is None else early.plan
        found = diff(problem, earlier, late.plan, problem_before=None if before is None else first)
    judged = _judged(early, late)
    run.record.update(
        judged_by=late.overrides.fields(),
        shut=list(found.shut),
        differing_rows=found.rows,
        kept=None
        if found.kept is None
        else {"objective": found.kept.objective, **found.kept.terms, **found.kept.metrics},
        objective=found.objective.after,
        changes={"objective": _change(found.objective), "terms": _all(found.terms), "metrics": _all(found.metrics)},
        tables={table.name: _rows(table) for table in found.tables},
        instance={table.name: _rows(table) for table in found.instance},
        same=not found.differs,
        worth=[asdict(one) for one in found.changes],
        worth_together=None if found.together is None else asdict(found.together),
        today=today_keys(found.today),
    )

    from mast_opt.planner.report.change_sections import diff_sections

    def show(console: Console) -> None:
        from mast_opt.planner.report.terminal.diff_and_migration import show_diff

        print_words(console, judged)
        show_diff(console, found, None if full else TOP_ROWS)

    return answered(run, f"{problem.name}: what changed", diff_sections(found), out, show)


def _judged(early: PlanReading[Any] | None, late: PlanReading[Any]) -> str:
    """A sentence on the objective and limits by which both sides are judged."""
    if not late.overrides:
        words = "Both are judged by the objective of the instance"
    else:
        words = f"Both are judged as the later plan was solved: {late.overrides}"
    if early is not None and early.overrides != late.overrides:
        words += f"; the earlier one was solved with {early.overrides or 'the objective of its instance'}"
    return f"{words}."


def _change(change: Change) -> dict[str, float | None]:
    """JSON of the change of one figure, for ``mast-opt diff``."""
    return {"before": change.before, "after": change.after, "by": change.by}


def _all(changes: Mapping[str, Change]) -> dict[str, Any]:
    """JSON of the changes of figures by name, for ``mast-opt diff``."""
    return {name: _change(change) for name, change in changes.items()}


def _rows(table: TableDiff) -> dict[str, Any]:
    """JSON of the rows of a table that differ, for ``mast-opt diff``."""
    names = (*table.key, *table.values)
    return {
        "added": [dict(zip(names, (*key, *values), strict=True)) for key, values in table.added],
        "removed": [dict(zip(names, (*key, *values), strict=True)) for key, values in table.removed],
        "changed": [
            {
                **dict(zip(table.key, key, strict=True)),
                "before": dict(zip(table.values, old, strict=True)),
                "after": dict(zip(table.values, new, strict=True)),
            }
            for key, old, new in table.changed
        ],
        "same": table.same,
    }


def diff_runs(first: Path, second: Path, run: Run, most: int | None) -> Answer:
    """Two runs of the same jobs side by side.

    Args:
        most: jobs that are shown; None for all.

    Raises:
        UsageError: the runs are of different jobs.
        InputError: a folder holds no run, or one with faults.
    """
    from mast_opt.live.reports.comparison import compare
    from mast_opt.live.simulation.run_folder import read_run

    with run.phase("read", f"reading {first} and {second}"):
        runs = read_run(first), read_run(second)
        found = compare(*runs)
    run.record.update(
        kind="run",
        name=runs[0].facts.trace,
        changes={
            name: {"before": pair.first, "after": pair.second, "by": pair.by} for name, pair in found.metrics.items()
        },
        jobs={"longer": found.longer, "shorter": found.shorter, "same": found.same},
        changed_jobs=[
            {
                "job": job.job,
                "regions": list(job.regions),
                "before_s": job.waited_ms[0] / SECOND_MS,
                "after_s": job.waited_ms[1] / SECOND_MS,
                "still_waits": list(job.open),
            }
            for job in found.jobs
        ],
        same=not found.jobs,
    )
    return Answer(Exit.OK, lambda console: _show(console, runs, found, most))


def _show(console: Console, runs: "tuple[StoredRun, StoredRun]", found: "RunDiff", most: int | None) -> None:
    """Print the comparison of two runs of the same jobs."""
    from mast_opt.core.wording import plain
    from mast_opt.live.reports.content import metric_text, metric_words
    from mast_opt.planner.report.terminal.sections import print_words, show_table
    from mast_opt.problems.job_placement.units import WHOLE

    names = [f"{one.path} ({one.policy})" for one in runs]
    print_words(
        console,
        f"{runs[0].facts.trace}: {names[0]} against {names[1]}. {found.longer:,} jobs wait longer in the second run, "
        f"{found.shorter:,} shorter, {found.same:,} as long.",
    )
    figures = [
        (metric_words(name), *(metric_text(name, value) for value in (pair.first, pair.second, pair.by)))
        for name, pair in found.metrics.items()
        if pair.first or pair.second
    ]
    show_table(console, "Figures", ("figure", "first", "second", "second − first"), figures)
    if not found.jobs:
        return
    shown = found.jobs if most is None else found.jobs[:most]
    jobs = []
    for job in shown:
        regions = " → ".join(dict.fromkeys(region or "–" for region in job.regions))
        waits = (f"{plain(ms / HOUR_MS)}{'+' * still}" for ms, still in zip(job.waited_ms, job.open, strict=True))
        amounts = (*waits, plain(job.by_ms / HOUR_MS))
        jobs.append((job.job, str(job.tier), plain(job.mgpu / WHOLE), regions, *amounts))
    heads = ("job", "tier", "GPUs", "region", "first", "second", "second − first")
    show_table(console, "Waits that differ most, hours", heads, jobs, ("job", "region"))
    if any(any(job.open) for job in shown):
        console.print("+: the job still waits at the end of the run", style="dim")
    if len(shown) < len(found.jobs):
        console.print(f"… and {len(found.jobs) - len(shown):,} more (--full shows all)", style="dim")
