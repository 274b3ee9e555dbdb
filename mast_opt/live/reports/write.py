"""The report of a run into a file."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from mast_opt.core.errors import UsageError
from mast_opt.live.reports.content import RunReport, run_report, tiles, versions
from mast_opt.live.simulation.run_folder import StoredRun
from mast_opt.planner.io.atomic import check_free, new_file
from mast_opt.planner.report.html.page import rendered


def run_page(report: RunReport) -> str:
    """The whole page of a run as HTML."""
    opened = tuple(section.title for section in report.sections if section.leads)
    return rendered(
        "run.html.j2", report=report, rest="in the log", opened=opened, metrics=tiles(report), versions=versions()
    )


def write_run_report(run: StoredRun, path: str | PathLike[str], *, force: bool = False) -> RunReport:
    """Write a run as one page that opens in any browser, without a network.

    Raises:
        UsageError: a name that does not end in ``.html``.
        LogError: the log of the run has faults.
        InputError: a file that cannot be read, is there already or cannot be written.
    """
    target = Path(path)
    if target.suffix.lower() != ".html":
        raise UsageError(f"{target}: expected a name that ends in .html")
    check_free(target, force=force)
    content = run_report(run)
    with new_file(target.absolute()) as partial:
        partial.write_text(run_page(content), encoding="utf-8", newline="\n")
    return content
