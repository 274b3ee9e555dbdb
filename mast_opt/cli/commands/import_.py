"""``mast-opt import``."""

import inspect
from pathlib import Path
from shlex import join
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.help_text import entry
from mast_opt.cli.invocation import Answer, Console
from mast_opt.cli.options import Force, Json, TheRun, at_least
from mast_opt.core.errors import UsageError
from mast_opt.core.plugins import Extensions
from mast_opt.live.simulation.traces.importers import TRACE_IMPORTERS
from mast_opt.live.simulation.traces.tables import TraceTables
from mast_opt.live.simulation.traces.trace import trace_from_tables, write_trace
from mast_opt.planner.importers import IMPORTERS as OF_PROBLEMS
from mast_opt.planner.importers.base import Importer
from mast_opt.planner.importers.notices import with_warnings
from mast_opt.planner.io import write


def command(
    importer: Annotated[str, Parameter(help="Which importer; see below.")],
    /,
    *paths: Annotated[Path, Parameter(help="Its inputs in order, then where to: a new folder, an .xlsx or a .json.")],
    seed: Annotated[int, at_least(0, "Of everything that the data lack.")] = 0,
    format: Annotated[Literal["csv", "parquet"] | None, Parameter(help="Of the tables in a folder.")] = None,
    force: Force = False,
    json: Json = False,
    run: TheRun,
    **settings: Annotated[str, Parameter(help="Settings of the importer, such as --regions 20; see below.")],
) -> Answer:
    """Make an instance, or a trace of jobs, from public data or from what another scheduler has recorded.

    The same files, settings and seed give the same instance; its provenance says which part is real and which is drawn.
    The importers, their inputs and their settings with defaults are listed below.

        mast-opt import cloud-regions georegions/ alibaba/ philly/ my-instance
        mast-opt import sacct sacct.json sinfo.txt my-trace
        mast-opt import tables mapping.toml my-instance
    """
    group = _group(importer)
    chosen = group.named(importer)
    run.record["kind"] = chosen.kind
    if not paths:
        inputs = " ".join(item.name.upper() for item in chosen.inputs)
        raise UsageError(f"nothing to import; expected: mast-opt import {importer} {inputs} OUT")
    *sources, out = paths
    if chosen.preview is not None and not json:
        for line in chosen.preview(sources):
            run.err.print(line, markup=False, highlight=False, soft_wrap=True)
    with run.phase("read", "importing"), group.blaming(importer):
        problem, found = with_warnings(lambda: chosen.run(sources, settings, seed))
    run.warn(found, strict=False)
    if isinstance(problem, TraceTables):
        trace_from_tables(problem.name, problem.provenance, problem.tables)  # finds what does not fit together
        if out.suffix.lower() in (".xlsx", ".json"):
            raise UsageError(f"{out}: a trace of jobs is written to a folder; leave out {out.suffix}")
        write_trace(out, problem.name, problem.provenance, problem.tables, format=format or "csv", force=force)
        words = ["mast-opt", "simulate", str(out), "--policy", "mast"]
    else:
        run.record["kind"] = problem.kind
        write(problem, out, format, force=force)
        words = ["mast-opt", "solve", str(out)]
    run.record.update(name=problem.name, out=str(out))
    verb = "Run" if isinstance(problem, TraceTables) else "Solve"

    def show(console: Console) -> None:
        from mast_opt.planner.report.terminal.sections import print_words

        print_words(console, f"{problem.name} is in {out}. {verb} it:\n  {join(words)}")

    return Answer(Exit.OK, show)


def _group(name: str) -> Extensions[Importer[Any]]:
    """The importers among which that name is, of problems or of traces.

    Raises:
        UsageError: there is none; lists those that there are.
    """
    if name in TRACE_IMPORTERS or name in TRACE_IMPORTERS.refused:
        return TRACE_IMPORTERS
    OF_PROBLEMS.named(name, also=TRACE_IMPORTERS)
    return OF_PROBLEMS


def _importers() -> str:
    """Help of ``mast-opt import``: importers with their inputs and settings."""
    lines = []
    for name, importer in (*OF_PROBLEMS.usable(), *TRACE_IMPORTERS.usable()):
        lines.append(entry(f"{name} ({importer.kind}): {importer.help}"))
        lines += [entry(f"{item.name.upper()}: {item.help}", indent=6) for item in importer.inputs]
        lines += [
            entry(f"{f'--{item.name} {item.default}'.rstrip()}: {item.help}", indent=6) for item in importer.settings
        ]
        lines.append("")
    return "\n".join(lines)


command.__doc__ = f"{inspect.cleandoc(command.__doc__ or '')}\n\n{_importers()}"
