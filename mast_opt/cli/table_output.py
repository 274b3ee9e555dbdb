"""The option ``--out`` of commands whose answer is tables: a workbook, CSV, JSON or Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

from cyclopts import Parameter

from mast_opt.cli.invocation import Run
from mast_opt.cli.options import check_force
from mast_opt.problems.kind.presentation import Section

TableOut = Annotated[
    Path | None, Parameter(help="Write the answer to this .xlsx, .csv, .json or .md file; CSV has its main table.")
]


def check_table_output(out: Path | None, force: bool) -> None:
    """Raises UsageError or InputError where the answer could not be written there."""
    check_force(force, out)
    if out is not None:
        from mast_opt.planner.report.table_files import check_table_file

        check_table_file(out, force=force)


def is_table_file(out: Path) -> bool:
    """Whether the name is one of a file with tables."""
    from mast_opt.planner.report.table_files import SUFFIXES

    return out.suffix.lower() in SUFFIXES


AnswerT = TypeVar("AnswerT")


def write_answer(
    run: Run, title: str, sections: Callable[[AnswerT], Sequence[Section]], answer: AnswerT, out: Path | None
) -> str:
    """Write an answer, if it is to be written; returns the sentence that says where it is."""
    run.record["out"] = None if out is None else str(out)
    if out is None:
        return ""
    from mast_opt.planner.report.table_files import write_tables

    write_tables(title, sections(answer), run.record, out)
    return f"The tables are in {out}."
