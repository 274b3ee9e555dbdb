"""``mast-opt template``."""

from pathlib import Path
from shlex import join
from typing import Annotated

from cyclopts import Parameter

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Console
from mast_opt.cli.options import Force, Json, TheRun
from mast_opt.planner.io import write_template


def command(
    kind: Annotated[str, Parameter(help="The kind of problem, such as data-placement.")],
    out: Annotated[Path, Parameter(help="The workbook to write, .xlsx.")],
    /,
    *,
    force: Force = False,
    json: Json = False,
    run: TheRun,
) -> Answer:
    """Write an Excel workbook to fill in and solve.

    One sheet a table: the head of each column says what it means and in which unit, cells are checked while you type
    (names come from lists of the other sheets), and a few example rows can be solved as they are.

        mast-opt template data-placement plan-me.xlsx
        mast-opt solve plan-me.xlsx
    """
    run.record["kind"] = kind
    write_template(kind, out, force=force)
    run.record["out"] = str(out)

    def show(console: Console) -> None:
        from mast_opt.planner.report.terminal.sections import print_words

        print_words(console, f"Fill in {out}, then solve it:\n  {join(['mast-opt', 'solve', str(out)])}")

    return Answer(Exit.OK, show)
