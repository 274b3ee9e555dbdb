"""Limits on what is read from a file, and the opening of files.

Each limit is checked before memory is allocated for what it limits. ``docs/security.md`` explains them.
"""

import errno
import gzip
import io
import os
import stat
from pathlib import Path
from typing import IO

from mast_opt.core.units import GIB, MIB

_PIECE = 4 * MIB

MOST_FILE_BYTES = 4 * GIB
"""Size of a table (CSV, Parquet), and of a public data set, plain or after gzip."""
MOST_DOCUMENT_BYTES = GIB
"""Size of a JSON file, and of an .xlsx workbook packed and unpacked."""
MOST_HEADER_BYTES = 4 * MIB
"""Size of ``instance.toml``, ``plan.toml`` and a file of scenarios."""
MOST_CERTIFICATE_BYTES = 512 * MIB
"""Size of the arrays of a certificate together."""
MOST_FREEZE_BYTES = 64 * MIB
"""Size of a file of names given as ``--freeze``."""
MOST_RESULTS_BYTES = 256 * MIB
"""Size of a file of benchmark results."""
MOST_EVENTS_BYTES = 256 * MIB
"""Size of ``events.jsonl``."""
MOST_RATIO = 100
"""Ratio of unpacked content to the size of its file that is allowed at most, beyond ``FREE_BYTES``."""
FREE_BYTES = 32 * MIB
"""Unpacked size up to which ``MOST_RATIO`` does not count."""
MOST_COLUMNS = 1_000
"""Columns of a table."""
MOST_KEY_PARTS = 64
"""Parts of a dotted key in TOML."""
FREE_CELLS = 2_000_000
"""Cells up to which ``CELLS_PER_CELL`` does not count."""
CELLS_PER_CELL = 8
"""Cells, empty ones included, that a sheet or a JSON table may span for each cell that it states."""
MOST_GPUS_A_NODE = 1_024
"""GPUs of one node in a node list; importers keep an entry for each GPU."""
MOST_FOOTER_BYTES = 16 * MIB
"""Size of the footer of a Parquet file."""
TABLE_CELL_BYTES = 40
"""Memory for each cell of a Parquet table while it is read: its text, its value, and marks."""
TABLE_ROW_BYTES = 128
"""Memory for each row while a column is converted and keys are compared."""
FREE_TABLE_BYTES = 512 * MIB
"""Memory that a Parquet table may take whatever the size of its file."""
TABLE_BYTES_PER_BYTE = 800
"""Memory that a larger one may take for each byte of its file. Workloads whose other columns are constant take 700."""
FREE_TEXT_BYTES = 64
"""Bytes of text of a Parquet table's cell, on average, up to which ``MOST_RATIO`` does not count."""


def read_regular(path: Path, most: int = MOST_FILE_BYTES, inside: Path | None = None) -> bytes:
    """The content of a regular file.

    Pipes and devices are refused without waiting for them. A file that grows meanwhile is cut at the limit.

    Args:
        most: bytes that it may have.
        inside: a folder that a symbolic link may not leave; None follows links anywhere.

    Raises OSError, whose ``strerror`` says what is wrong.
    """
    if inside is not None and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(inside)):
        raise OSError(errno.EPERM, "this is a link to a place outside the folder, which is not followed", str(path))
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "this is a pipe or a device, not a regular file", str(path))
        if found.st_size > most:
            raise OSError(errno.EFBIG, f"{found.st_size:,} bytes; at most {most:,} are read", str(path))
        data = _read(file, most)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"more than {most:,} bytes", str(path))
    return data


def _read(file: IO[bytes] | gzip.GzipFile, most: int) -> bytes:
    """The rest of an input file, cut after at least ``most`` + 1 bytes. ``read(n)`` would allocate n bytes at once."""
    pieces, size = [], 0
    while size <= most and (piece := file.read(_PIECE)):
        pieces.append(piece)
        size += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def unzipped(data: bytes, most: int = MOST_FILE_BYTES) -> bytes:
    """Content of gzip data. Raises OSError, EOFError or zlib.error for a file that is damaged or too large."""
    most = most_unpacked(len(data), most)
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        content = _read(file, most)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"more than {most:,} bytes unpacked")
    return content


def most_unpacked(packed: int, most: int | None = None) -> int:
    """Bytes that a packed file of this size may hold, ``most`` at the most."""
    allowed = max(FREE_BYTES, MOST_RATIO * packed)
    return allowed if most is None else min(most, allowed)


def most_cells(stated: int) -> int:
    """Cells that a table may span that states so many."""
    return FREE_CELLS + CELLS_PER_CELL * stated


def most_table_bytes(packed: int) -> int:
    """Bytes of memory that the table of a Parquet file of this size may take."""
    return FREE_TABLE_BYTES + TABLE_BYTES_PER_BYTE * packed
