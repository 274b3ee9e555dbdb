"""MIP export in the free MPS format.

Readers disagree about the constant of the objective: GLPK takes it with the other sign. So it is the cost of a column
that is fixed at 1, as in an .lp file.
"""

from pathlib import Path

import numpy as np
import polars as pl
from scipy.sparse import csr_array, vstack

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.core.fork_safety import use_tables
from mast_opt.problems.mip.export.lp import CONSTANT, mip_title
from mast_opt.problems.mip.export.names import NameRule, numbered_names, readable_names
from mast_opt.problems.mip.export.text import lines, number, words, write_whole
from mast_opt.problems.mip.program import Mip

KEYWORDS = "name rows columns rhs ranges bounds objsense objsec objname sos sets endata obj marker min max constant"
RULE = NameRule(
    forbidden=r"[\s\p{C}]",
    brackets="[]",
    reserved=rf"(?i:[*$&~]|(?:{'|'.join(KEYWORDS.split())})$)",
)


def write_mps(mip: Mip, path: Path | str, *, readable: bool = True) -> None:
    """Write ``mip`` in free MPS format.

    Args:
        readable: False is for a backend that knows its solver: columns are c0, c1, …, rows r0, r1, …, and the constant
            of the objective is minus its right-hand side, so that the file has the columns of the program alone.

    Raises:
        OSError: the file cannot be written; what stood there before is kept.
    """
    use_tables("write a program")
    notes: list[str] = []
    columns, rows = numbered_names("c", len(mip.cost)), numbered_names("r", len(mip.row_lower))
    if readable:
        columns, notes = readable_names(mip.columns, RULE)
        rows, row_notes = readable_names(mip.rows, RULE)
        notes += [note for note in row_notes if note not in notes]
    constant = mip.offset if readable else 0.0
    if constant:
        notes.append(CONSTANT)
    kind, rhs, span = row_limits(mip.row_lower, mip.row_upper)
    head = [f"* {line}" for line in (mip_title(mip), *notes)]
    blocks = [
        lines([*head, f"NAME {'_'.join(mip.name.split()) or 'program'} FREE", "ROWS", " N obj"]),
        words("", pl.Series(["N", "L", "G", "E"]).gather(kind), rows),
        lines(["COLUMNS"]),
        *_columns(mip, columns, rows),
        _values("constant", pl.Series(["obj"]), np.array([constant])),
        lines(["RHS"]),
        _values("RHS", pl.Series(["obj"]), np.array([constant - mip.offset])),
        _values("RHS", rows, rhs),
        lines(["RANGES"]),
        _values("RANGE", rows, span),
        lines(["BOUNDS"]),
        *_bounds(mip, columns),
        lines([" FX BOUND constant 1"] if constant else []),
        lines(["ENDATA"]),
    ]
    write_whole(Path(path), blocks)


def row_limits(lower: FloatArray, upper: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Kind of each row of an MPS file (0 N, 1 L, 2 G, 3 E), its right-hand side, and upper − lower where it has two
    limits, else 0.

    A row with two limits is stated from the side from which the other comes out exactly.
    """
    below, above = np.isfinite(lower), np.isfinite(upper)
    low, high = np.where(below, lower, 0.0), np.where(above, upper, 0.0)
    span = np.where(below & above, high - low, 0.0)
    from_above = above & (~below | (high - span == low))
    kind = np.where(from_above, 1, np.where(below, 2, 0))
    kind = np.where(below & above & (lower == upper), 3, kind)
    return kind, np.where(from_above, high, low), span


def _columns(mip: Mip, columns: pl.Series, rows: pl.Series) -> list[pl.DataFrame]:
    """Lines of an MPS file: cost and entries of each column; integer ones between markers."""
    width = len(mip.cost)
    every = np.arange(width + 1)
    costs = csr_array((mip.cost, every[:-1], np.array([0, width])), shape=(1, width))
    rest = csr_array((mip.value, mip.index, mip.row_start), shape=mip.shape)
    matrix = vstack([costs, rest]).tocsc()
    column = np.repeat(every[:-1], np.diff(matrix.indptr))
    names = pl.concat([pl.Series(["obj"]), rows])
    text = words("", columns.gather(column), names.gather(matrix.indices), number(matrix.data))
    changes = np.flatnonzero(np.diff(mip.integral.astype(np.int8), prepend=0, append=0))
    blocks, done = [], 0
    for turn, change in enumerate(changes.tolist()):
        at = int(matrix.indptr[change])
        blocks += [text[done:at], lines([f" MARKER{turn} 'MARKER' '{'INTEND' if turn % 2 else 'INTORG'}'"])]
        done = at
    return [*blocks, text[done:]]


def _values(word: str, rows: pl.Series, values: FloatArray) -> pl.DataFrame:
    """Lines of an MPS file that state a number for each row where it is not 0."""
    at = np.flatnonzero(values)
    return words("", word, rows.gather(at), number(values[at]))


def _bounds(mip: Mip, columns: pl.Series) -> list[pl.DataFrame]:
    """Lines of an MPS file: both bounds of every integer column, because readers disagree about what is understood;
    else all but 0 ≤ x.
    """
    lower, upper, integral = mip.col_lower, mip.col_upper, mip.integral
    free = np.isinf(lower) & np.isinf(upper)
    fixed = lower == upper

    def of(kind: str, chosen: BoolArray, values: FloatArray | None = None) -> pl.DataFrame:
        at = np.flatnonzero(chosen)
        named = ("", kind, "BOUND", columns.gather(at))
        return words(*named) if values is None else words(*named, number(values[at]))

    return [
        of("FR", free),
        of("FX", fixed, lower),
        of("MI", np.isinf(lower) & ~free),
        of("LO", ~np.isinf(lower) & ~fixed & ((lower != 0) | integral | (upper < 0)), lower),
        of("PL", np.isinf(upper) & ~free & integral),
        of("UP", ~np.isinf(upper) & ~fixed, upper),
    ]
