"""MIP export in the CPLEX LP format, in the form that every solver reads the same way.

Readers disagree about a row with two limits and about a constant in the objective. So such a row is written as
two, and the constant as the cost of a column that is fixed at 1.
"""

from pathlib import Path

import numpy as np
import polars as pl

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.core.fork_safety import use_tables
from mast_opt.problems.mip.export.names import NameRule, readable_names
from mast_opt.problems.mip.export.text import either, lines, number, sign, spread, words, write_whole
from mast_opt.problems.mip.program import Mip

KEYWORDS = (
    "min max minimize maximize minimise maximise minimum maximum subject such st bound bounds free gen general "
    "generals int integer integers bin binary binaries semi semis sos end obj constant"
)
CONSTANT = "The column constant is fixed at 1; its cost is the constant of the objective."
RULE = NameRule(
    forbidden=r"[^A-Za-z0-9_(),.!#%&@{}?;~]",
    brackets="()",
    reserved=rf"(?i:[0-9.~]|e[0-9.]|inf|nan|(?:s\.t\.|{'|'.join(KEYWORDS.split())})$)",
)


def write_lp(mip: Mip, path: Path | str) -> None:
    """Write ``mip`` in CPLEX LP format. Rows without any limit are left out.

    Raises:
        OSError: the file cannot be written; what stood there before is kept.
    """
    use_tables("write a program")
    columns, notes = readable_names(mip.columns, RULE)
    rows, row_notes = readable_names(mip.rows, RULE)
    notes += [note for note in row_notes if note not in notes]
    offset = np.array([mip.offset])
    if mip.offset:
        notes.append(CONSTANT)
    notes.append("row~lower and row~upper are the two limits of one row.")
    blocks = [
        lines([*(f"\\ {line}" for line in (mip_title(mip), *notes)), "Minimize", " obj:"]),
        _objective(mip, columns),
        lines([f" {sign(offset)[0]} {number(np.abs(offset))[0]} constant"] if mip.offset else []),
        lines(["Subject To"]),
        _rows(mip, columns, rows),
        lines(["Bounds"]),
        _bounds(mip, columns),
        lines([" constant = 1"] if mip.offset else []),
        lines(["General"]),
        words("", columns.gather(np.flatnonzero(mip.integral))),
        lines(["End"]),
    ]
    write_whole(Path(path), blocks)


def mip_title(mip: Mip) -> str:
    """One line that names a program and its size."""
    rows, columns = mip.shape
    return f"{' '.join(mip.name.split())}: {rows} rows, {columns} columns, {len(mip.value)} entries"


def _objective(mip: Mip, columns: pl.Series) -> pl.DataFrame:
    """Lines of an LP file: every column that costs something, and those that no row would mention."""
    mentioned = np.zeros(len(mip.cost), np.bool_)
    limited = np.isfinite(mip.row_lower) | np.isfinite(mip.row_upper)
    mentioned[mip.index[np.repeat(limited, np.diff(mip.row_start))]] = True
    wanted = np.flatnonzero((mip.cost != 0) | ~mentioned)
    cost = mip.cost[wanted]
    return words("", sign(cost), number(np.abs(cost)), columns.gather(wanted))


def _rows(mip: Mip, columns: pl.Series, rows: pl.Series) -> pl.DataFrame:
    """Lines of an LP file's rows: one per entry; the first of a row also bears its name, the last its limit."""
    if not len(columns):
        return lines([])
    below, above = np.isfinite(mip.row_lower), np.isfinite(mip.row_upper)
    twice = below & above & (mip.row_lower != mip.row_upper)
    at = np.repeat(np.arange(len(rows)), (below | above).astype(np.int64) + twice)
    second = np.diff(at, prepend=-1) == 0
    lower = below[at] & ~second
    limit = np.where(lower, mip.row_lower[at], mip.row_upper[at])
    kind = np.where(mip.row_lower[at] == mip.row_upper[at], 0, np.where(lower, 1, 2))
    column, value, first, last = _entries(mip, at)
    names = rows.gather(at) + pl.Series(["", "~lower", "~upper"]).gather(np.where(twice[at], 1 + second, 0)) + ":\n"
    ends = "\n " + pl.Series(["=", ">=", "<="]).gather(kind) + " " + number(limit)
    size = len(value)
    return words(
        spread(" " + names, first, size),
        sign(value),
        number(np.abs(value)),
        columns.gather(column),
        spread(ends, last, size),
    )


def _entries(mip: Mip, at: IntArray) -> tuple[IntArray, FloatArray, IntArray, IntArray]:
    """A program's columns and coefficients of the rows ``at``, one after the other, and where each row begins and ends.

    A row without entries gets a 0 for the first column, because the format has no empty row.
    """
    stored = np.diff(mip.row_start)[at].astype(np.int64)
    count = np.maximum(stored, 1)
    last = np.cumsum(count) - 1
    first = last - count + 1
    entry = np.repeat(mip.row_start[at].astype(np.int64) - first, count) + np.arange(count.sum())
    filler = np.repeat(stored == 0, count)
    entry = np.where(filler, 0, entry)
    index, value = (mip.index, mip.value) if len(mip.index) else (np.zeros(1, np.int32), np.zeros(1))
    return np.where(filler, 0, index[entry]), np.where(filler, 0.0, value[entry]), first, last


def _bounds(mip: Mip, columns: pl.Series) -> pl.DataFrame:
    """Lines of an LP file's bounds: everything but 0 ≤ x, which is understood."""
    at = np.flatnonzero((mip.col_lower != 0) | (mip.col_upper != np.inf))
    lower, upper, names = mip.col_lower[at], mip.col_upper[at], columns.gather(at)
    free, fixed = np.isinf(lower) & np.isinf(upper), lower == upper
    low = either(np.isinf(lower), pl.repeat("-inf", len(at), eager=True), number(lower))
    before = either(free | fixed, pl.repeat("", len(at), eager=True), low + " <=")
    kinds = pl.Series(["", "<=", "=", "free"])
    kind = kinds.gather(np.where(free, 3, np.where(fixed, 2, np.where(np.isinf(upper), 0, 1))))
    after = either(np.isinf(upper), pl.repeat("", len(at), eager=True), number(upper))
    return words("", before, names, kind, after)
