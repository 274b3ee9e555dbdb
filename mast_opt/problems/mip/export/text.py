"""Text output of MIP export: many lines at a time, and a file that is either written whole or not at all."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import polars as pl

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray


def lines(texts: Iterable[str]) -> pl.DataFrame:
    """Lines of an exported program as they are."""
    return pl.DataFrame({"line": pl.Series(list(texts), dtype=pl.String)})


def words(*parts: str | pl.Series) -> pl.DataFrame:
    """Lines of an exported program made of words: a word of each part, a text being the same word on every line. Nulls
    are empty words.
    """
    length = next(len(part) for part in parts if isinstance(part, pl.Series))
    words = [part if isinstance(part, pl.Series) else pl.repeat(part, length, eager=True) for part in parts]
    return pl.DataFrame([word.alias(str(at)) for at, word in enumerate(words)])


def number(values: FloatArray) -> pl.Series:
    """Numbers of an exported program: the shortest decimals that read back as the same floats; integers without a
    point.
    """
    return pl.Series(values + 0.0, dtype=pl.Float64).cast(pl.String).str.strip_suffix(".0")


def sign(values: FloatArray) -> pl.Series:
    """Signs of an exported program's numbers, ``-`` or ``+``."""
    return pl.Series(["+", "-"]).gather((values < 0).astype(np.uint32))


def either(condition: BoolArray, yes: pl.Series, no: pl.Series) -> pl.Series:
    """Texts of an exported program: ``yes`` where the condition holds, ``no`` elsewhere."""
    return yes.zip_with(pl.Series(condition), no)


def spread(texts: pl.Series, at: IntArray, length: int) -> pl.Series:
    """Texts of an exported program: ``texts`` at the given places of ``length`` lines, nothing in the others."""
    source = np.full(length, len(texts), np.uint32)
    source[at] = np.arange(len(texts))
    return pl.concat([texts, pl.Series([None], dtype=pl.String)]).gather(source)


def write_whole(path: Path, blocks: Iterable[pl.DataFrame]) -> None:
    """Write an exported program's lines to a temporary file next to ``path``, then rename it; on failure nothing is
    left behind.

    Raises:
        OSError: the file cannot be written; what stood there before is kept.
    """
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            for block in blocks:
                block.write_csv(file, include_header=False, separator=" ", quote_style="never")
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """The permissions that this process denies to new files; mkstemp denies more."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
