"""The option ``--out`` of commands whose answer is tables: a workbook, CSV, JSON or Markdown."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Console, Run
from mast_opt.cli.options import check_force
from mast_opt.problems.kind.presentation import Section

TableOut = Annotated[
    Path | None, Parameter(help="Write the answer to this .xlsx, .csv, .json or .md file; CSV has its main table.")
]


def check_table_output(out: Path | None, force: bool, *others: Path | None) -> None:
    """Raises UsageError or InputError where the answer could not be written there.

    ``others`` are further outputs of the command that ``force`` may be about.
    """
    check_force(force, next((one for one in (out, *others) if one is not None), None))
    if out is not None:
        from mast_opt.planner.report.table_files import check_table_file

        check_table_file(out, force=force)


def is_table_file(out: Path) -> bool:
    """Whether the name is one of a file with tables."""
    from mast_opt.planner.report.table_files import SUFFIXES

    return out.suffix.lower() in SUFFIXES


def answered(
    run: Run,
    title: str,
    sections: Sequence[Section],
    out: Path | None,
    show: Callable[[Console], None],
    ending: tuple[Exit, str] = (Exit.OK, ""),
    where: Sequence[str] = (),
) -> Answer:
    """Write an answer as tables, if it is to be written, and end the command.

    After ``show`` follow the words of the ending, which are the error of the record where the exit code is one, and
    the sentences that say where things are.
    """
    code, words = ending
    if words and code is not Exit.OK:
        run.record["error"] = words
    run.record.setdefault("out", None if out is None else str(out))
    if out is not None:
        from mast_opt.planner.report.table_files import write_tables

        write_tables(title, sections, run.record, out)
        where = (*where, f"The tables are in {out}.")

    def shown(console: Console) -> None:
        show(console)
        for one in filter(None, (words, *where)):
            console.print(one, soft_wrap=True, markup=False)

    return Answer(code, shown)
