"""Limits of job placement's columns that its certificate uses: a running job frees what it holds once."""

from fractions import Fraction

from mast_opt.planner.proof.cuts import tightened
from mast_opt.planner.proof.exact_program import ExactProgram
from mast_opt.planner.proof.placement_rows import positions
from mast_opt.planner.proof.steps import Source, Step, completed, rounded

FREEING = ("capacity", "device")
"""Blocks of rows in which stopped and moved jobs free what they hold."""
TAKING = ("count", "on", "takes")
"""Blocks of columns that take it."""


def job_limits(program: ExactProgram) -> tuple[ExactProgram, list[Step]]:
    """The program of a job placement with tighter limits of ``TAKING``, and no rows."""
    rows, columns = program.mip.rows, program.mip.columns
    once: dict[int, tuple[Source, int]] = {}
    """Column of a move → the row that says that the job is not stopped too, and the column of that."""
    for row in positions(rows, "interrupted").values():
        move, preempt = sorted((column for column, _ in program.rows[row]), reverse=True)
        once[move] = ("row", row, 1), preempt
    if not once:
        return program, []
    taking = {column for name in TAKING for column in positions(columns, name).values()}
    found: dict[int, Step] = {}
    for row in (row for name in FREEING for row in positions(rows, name).values()):
        entries = dict(program.rows[row])
        using: dict[Source, Fraction] = {("row", row, 1): Fraction(1)}
        for move in entries.keys() & once.keys():
            interrupted, preempt = once[move]
            using[interrupted] = min(-entries[move], -entries.get(preempt, Fraction(0)))
        for column in entries.keys() & taking if len(using) > 1 else ():
            part = {source: factor / entries[column] for source, factor in using.items()}
            step = completed(program, "L", {column: Fraction(1)}, part)
            known = found[column].rhs if column in found else program.column_limits[column][1]
            if step is not None and (known is None or rounded(step).rhs < known):
                found[column] = rounded(step)
    return tightened(program.bounded(list(found.values()))) if found else program, []
