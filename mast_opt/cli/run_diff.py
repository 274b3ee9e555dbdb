"""``mast-opt diff`` of two runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Run

if TYPE_CHECKING:
    from rich.console import Console

    from mast_opt.live.reports.comparison import RunDiff
    from mast_opt.live.simulation.run_folder import StoredRun

SECOND_MS, HOUR_MS = 1000, 3_600_000


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


def _show(console: Console, runs: tuple[StoredRun, StoredRun], found: RunDiff, most: int | None) -> None:
    from mast_opt.core.number_format import plain
    from mast_opt.live.reports.content import metric_text, metric_words
    from mast_opt.planner.report.terminal.layout import light_table, print_table, print_words
    from mast_opt.problems.job_placement.units import WHOLE

    names = [f"{one.path} ({one.policy})" for one in runs]
    print_words(
        console,
        f"{runs[0].facts.trace}: {names[0]} against {names[1]}. {found.longer:,} jobs wait longer in the second run, "
        f"{found.shorter:,} shorter, {found.same:,} as long.",
    )
    figures = light_table("Figures", ("figure", "first", "second", "second − first"))
    for name, pair in found.metrics.items():
        if pair.first or pair.second:
            figures.add_row(
                metric_words(name), *(metric_text(name, value) for value in (pair.first, pair.second, pair.by))
            )
    print_table(console, figures)
    if not found.jobs:
        return
    shown = found.jobs if most is None else found.jobs[:most]
    jobs = light_table(
        "Waits that differ most, hours",
        ("job", "tier", "GPUs", "region", "first", "second", "second − first"),
        ("job", "region"),
    )
    for job in shown:
        regions = " → ".join(dict.fromkeys(region or "–" for region in job.regions))
        waits = (f"{plain(ms / HOUR_MS)}{'+' * still}" for ms, still in zip(job.waited_ms, job.open, strict=True))
        amounts = (*waits, plain(job.by_ms / HOUR_MS))
        jobs.add_row(job.job, str(job.tier), plain(job.mgpu / WHOLE), regions, *amounts)
    print_table(console, jobs)
    if any(any(job.open) for job in shown):
        console.print("+: the job still waits at the end of the run", style="dim")
    if len(shown) < len(found.jobs):
        console.print(f"… and {len(found.jobs) - len(shown):,} more (--full shows all)", style="dim")
