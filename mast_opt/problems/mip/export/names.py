"""Names of MIP columns and rows for export: a whole block at a time, unique, and within what a format allows."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from mast_opt.problems.mip.export.text import either
from mast_opt.problems.mip.program import Block

LONGEST = 255
"""Characters in a name; what CPLEX LP files and several MPS readers allow."""


@dataclass(frozen=True)
class NameRule:
    """Restrictions of a file format on names."""

    forbidden: str
    """Pattern of the characters that become ``_``."""
    brackets: str
    """Replacement for ``[`` and ``]``."""
    reserved: str
    """Pattern of the names that would be taken for something else; they get a ``_`` in front."""


def readable_names(blocks: Iterable[Block], rule: NameRule) -> tuple[pl.Series, list[str]]:
    """The names of all members, as ``place[logs,eu-west]``, and notes on how they differ from that.

    Returns:
        One string per column (or row), none twice, and a note per kind of change, for the head of the file.
    """
    parts = [_block_names(block) for block in blocks]
    opening, closing = rule.brackets[0], rule.brackets[1]
    wanted = pl.concat(parts) if parts else pl.Series([], dtype=pl.String)
    wanted = wanted.str.replace_all("[", opening, literal=True).str.replace_all("]", closing, literal=True)
    allowed = wanted.str.replace_all(rule.forbidden, "_").str.replace(f"^({rule.reserved})", "_$1")
    clash = allowed.is_duplicated() | (allowed.str.len_bytes() > LONGEST)
    numbered = allowed.str.slice(0, LONGEST // 5) + "~" + numbered_names("", len(allowed))
    notes = []
    if opening != "[":
        notes.append(f"name[a,b] is written name{opening}a,b{closing}.")
    if (wanted != allowed).any():
        notes.append("What this format does not allow in a name is written _.")
    if clash.any():
        notes.append("name~7 is number 7, counted from 0: its name alone is too long or not the only one.")
    return either(clash.to_numpy(), numbered, allowed), notes


def numbered_names(letter: str, count: int) -> pl.Series:
    """Names of exported columns or rows with a letter and a number from 0 on, as in c0, c1, c2."""
    return letter + pl.int_range(count, eager=True).cast(pl.String)


def _block_names(block: Block) -> pl.Series:
    """Names of a block's members, such as ``place[logs,eu-west]``."""
    if not block.axes:
        return pl.Series([block.name], dtype=pl.String)
    cells = block.cells
    if cells is None:
        shape = [len(axis) for axis in block.axes]
        cells = tuple(np.unravel_index(np.arange(block.size), shape) if block.size else np.zeros((len(shape), 0), int))
    labels = [
        pl.Series(list(axis), dtype=pl.String).gather(np.asarray(cell, np.uint32))
        for axis, cell in zip(block.axes, cells, strict=True)
    ]
    frame = pl.DataFrame({str(position): label for position, label in enumerate(labels)})
    inner = pl.concat_str(pl.all(), separator=",")
    return frame.select(pl.concat_str(pl.lit(f"{block.name}["), inner, pl.lit("]"))).to_series()
