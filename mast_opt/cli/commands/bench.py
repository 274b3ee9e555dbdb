"""``mast-opt bench``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Console, Run
from mast_opt.cli.options import Json, TheRun, at_least, flag
from mast_opt.core.errors import InputError, UsageError

if TYPE_CHECKING:
    from mast_opt.planner.bench.execution.runner import FinishedRun, RunPlan

RESULTS = Path("out/bench")
PAGE = Path("docs/benchmarks/results.md")
PATIENCE_S = 120.0
IMAGES = "images"
"""Folder of the plots, in the folder that has the name of the page."""


def command(
    suite: Annotated[
        str, Parameter(help="A suite: the path of a .toml, or one of mast-opt's, such as small. Or: report.")
    ],
    /,
    *results: Annotated[Path, Parameter(help="With report: result files, or folders of them.")],
    out: Annotated[Path | None, Parameter(help="Folder of the results; with report, the page.")] = None,
    filter: Annotated[str, Parameter(help="Only runs whose label has all these words; see --list.")] = "",
    list: Annotated[bool, flag("List the runs and how many of them are done, and run none.")] = False,
    data: Annotated[Path | None, Parameter(help="Folder of public data, for the entries that import it.")] = None,
    again: Annotated[bool, flag("Run also what has a result already.")] = False,
    update_best_known: Annotated[
        bool, flag("Let a strictly better verified plan replace the best known one next to its instance.")
    ] = False,
    patience: Annotated[float, at_least(0, "Seconds beyond twice its limit after which a run is killed.")] = PATIENCE_S,
    json: Json = False,
    run: TheRun,
) -> Answer:
    """Run a suite of benchmarks, one run after another, and keep one JSON line a run; or make the page of results.

    A run is a process of its own on processors of its own. One that has a result with the same settings, versions
    and commit from the same machine is left out, so an interrupted suite goes on where it stopped. A crash is a result
    too: the others are still run, and the exit code is 1. Results are in out/bench, one file a suite, unless --out
    says otherwise.

        mast-opt bench smoke
        mast-opt bench small --list
        mast-opt bench small --filter 'tetris seed0'
        mast-opt bench gap --data gap-instances/ --out benchmarks/results
        mast-opt bench report benchmarks/results --out page.md
    """
    if suite == "report":
        of_runs = {"filter": filter, "list": list, "data": data, "again": again}
        of_runs |= {"update-best-known": update_best_known, "patience": patience != PATIENCE_S}
        if unused := [f"--{name}" for name, given in of_runs.items() if given]:
            raise UsageError(f"a report runs nothing; leave out {', '.join(unused)}")
        return _report(run, results, out or PAGE)
    if results:
        raise UsageError(f"{results[0]}: only 'mast-opt bench report' takes results; --out says where they go")
    from mast_opt.planner.bench.execution.runner import plan
    from mast_opt.planner.bench.suites.toml_reader import read_suite, suite_path

    chosen = read_suite(suite_path(suite), data)
    for name in chosen.skipped:
        run.say(f"{name} is left out: it imports public data; say where these are with --data", label="note:")
    if chosen.absent:
        words = f"left out, since only the repository has what they need: {', '.join(chosen.absent)}"
        run.say(words, label="note:")
    work = plan(chosen, out or RESULTS, filter, again=again)
    run.record["suite"] = chosen.name
    run.record["runs"] = {"todo": len(work.todo), "done": work.done}
    if list:
        run.record["labels"] = [trial.label for _, trial in work.todo]
        return Answer(Exit.OK, lambda console: _show_list(console, work))
    return _execute(run, work, patience, update_best_known)


def _execute(run: Run, work: "RunPlan", patience_s: float, update_best_known: bool) -> Answer:
    """Make the runs of a suite for ``mast-opt bench``, with progress, and show the summary."""
    from mast_opt.planner.bench.execution.progress import BenchProgress
    from mast_opt.planner.bench.execution.runner import execute
    from mast_opt.planner.bench.results.store import BROKEN

    with BenchProgress(run.err, len(work.todo), sum(trial.time_limit_s for _, trial in work.todo)) as progress:

        def report(finished: "FinishedRun") -> None:
            progress.done(finished)

        results = execute(
            work,
            report,
            progress.starts,
            progress.announce,
            patience_s=patience_s,
            update_best_known=update_best_known,
        )
    broken = [result for result in results if result["status"] in BROKEN]
    run.record.update(results=str(work.file), broken=len(broken))

    def show(console: Console) -> None:
        from mast_opt.planner.bench.reporting.chapters import show_summary

        show_summary(console, work)

    return Answer(Exit.UNEXPECTED if broken else Exit.OK, show)


def _show_list(console: Console, work: "RunPlan") -> None:
    """Print the runs of a suite that ``mast-opt bench`` would make."""
    for _, trial in work.todo:
        console.print(trial.label, soft_wrap=True)
    limits_s = sum(trial.time_limit_s for _, trial in work.todo)
    console.print(
        f"{len(work.todo)} runs to do, limits {limits_s:,.0f} s in all; {work.done} done already", style="dim"
    )


def _report(run: Run, results: tuple[Path, ...], out: Path) -> Answer:
    """Write the page of benchmark results for ``mast-opt bench report``."""
    from mast_opt.planner.bench.reporting.chapters import chapters_of
    from mast_opt.planner.bench.reporting.page import overview, page, suite_page
    from mast_opt.planner.bench.reporting.plots import draw
    from mast_opt.planner.io.atomic import new_file

    if not results:
        raise UsageError("nothing to report; expected: mast-opt bench report RESULTS…, files or folders")
    chapters, folder = chapters_of(results), out.with_suffix("")
    if len(chapters) == 1:
        pages = {out: page(chapters, f"{folder.name}/{IMAGES}")}
    else:
        pages = {folder / f"{chapter.suite.name}.md": suite_page(chapter, IMAGES) for chapter in chapters}
        pages[out] = overview(chapters, folder.name)
    for target in pages:
        _refuse_anything_but_a_page(target)
    for chapter in chapters:
        if chapter.suite.plots:
            draw(folder / IMAGES, chapter.suite.name, chapter.suite.plots, chapter.results, chapter.best)
    for target, text in pages.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        with new_file(target) as partial:
            partial.write_text(text, encoding="utf-8", newline="\n")
    run.record.update(out=str(out), suites=[chapter.suite.name for chapter in chapters])

    def show(console: Console) -> None:
        console.print(f"{out} reports the results of {', '.join(chapter.suite.name for chapter in chapters)}.")

    return Answer(Exit.OK, show)


def _refuse_anything_but_a_page(out: Path) -> None:
    """Raises InputError where something stands that is no earlier page of results."""
    from mast_opt.planner.bench.reporting.page import GENERATED

    if not out.exists():
        return
    if out.is_file():
        with out.open(encoding="utf-8", errors="replace") as there:
            if there.readline().startswith("# ") and there.read(1 + len(GENERATED)) == f"\n{GENERATED}":
                return
    raise InputError(f"{out} exists already and is no page of results; choose another path (--out)")
