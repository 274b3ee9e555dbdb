"""Checks of a zip archive (.xlsx, .npz) that measure its content before it is unpacked."""

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator

from mast_opt.core.limits import most_cells, most_unpacked
from mast_opt.core.units import MIB

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_PIECE = MIB
_ROW = re.compile(rb"<(?:[\w-]+:)?row(?=[\s/>])")
_CELL = re.compile(rb"<(?:[\w-]+:)?c(?=[\s/>])")
_PLACE = re.compile(rb"""\sr\s*=\s*["']\s*([A-Za-z]*)(\d*)""")
_MOST_LETTERS, _MOST_DIGITS = len("XFD"), len("1048576")


class TooLarge(ValueError):
    """An archive that unpacks to more than is allowed; the message says what it has and what is allowed."""


def check_archive(data: bytes, most: int) -> None:
    """Raises TooLarge where the content of an input's archive is larger than allowed, or than the archive says.

    Raises ValueError, zlib.error, struct.error or BadZipFile for a damaged one.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
    allowed = most_unpacked(len(data), most)
    stated = sum(entry.file_size for entry in entries)
    if stated > allowed:
        raise TooLarge(f"it unpacks to {stated:,} bytes; at most {allowed:,} are read")
    for entry in entries:
        if entry.compress_type not in _METHODS:
            raise ValueError(f"{entry.filename} is packed by a method other than deflate")
        if sum(map(len, _pieces(data, entry))) != entry.file_size:
            raise TooLarge(f"{entry.filename} is larger than the archive says")


def _pieces(data: bytes, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """The content of an entry in pieces, at most one piece longer than the archive says."""
    name, extra = struct.unpack_from("<HH", data, entry.header_offset + 26)
    start = entry.header_offset + 30 + name + extra
    packed = data[start : start + entry.compress_size]
    if entry.compress_type == zipfile.ZIP_STORED:
        yield packed
        return
    unpack, left = zlib.decompressobj(-15), entry.file_size
    while not unpack.eof and left >= 0:
        piece = unpack.decompress(packed, _PIECE)
        if not piece and not unpack.unconsumed_tail:
            return
        packed, left = unpack.unconsumed_tail, left - len(piece)
        yield piece


def check_sheet(name: str, sheet: bytes) -> None:
    """Raises TooLarge where the cells of a sheet span far more room than there are cells.

    Readers allocate the whole rectangle up to the last row and the last column.
    """
    rows = _ROW.split(sheet)
    stated = [len(_CELL.findall(row)) for row in rows]
    width, height = max(stated), len(rows)
    for letters, digits in _PLACE.findall(sheet):
        if len(letters) > _MOST_LETTERS or len(digits) > _MOST_DIGITS:
            place = (letters + digits)[:20].decode("ascii")
            raise TooLarge(f"{name} has a cell at {place}; the last cell of a sheet is XFD1048576")
        height = max(height, int(digits or 0))
        width = max(width, column_number(letters.upper()) + 1 if letters else 0)
    allowed = most_cells(sum(stated))
    if width * height > allowed:
        raise TooLarge(f"{name} has {sum(stated):,} cells that span {height:,} rows and {width:,} columns")


def column_number(letters: bytes) -> int:
    """Number of a spreadsheet's column: 0 for A, 25 for Z, 26 for AA."""
    number = 0
    for letter in letters:
        number = number * 26 + letter - ord("A") + 1
    return number - 1
