"""A Parquet file as a raw table, with its memory counted before it is read.

Size of a Parquet file as its footer and the headers of its pages declare it, without unpacking anything.

The structures are those of ``parquet.thrift`` in Thrift's compact protocol. Numbers in brackets are its field numbers.
"""

import io
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import polars as pl

from mast_opt.core import limits
from mast_opt.core.memory import available_bytes
from mast_opt.planner.io.faults import Faults, shortened
from mast_opt.planner.io.raw_table import RawTable, is_cell_type, raw_table
from mast_opt.planner.io.readers.base import panics_as_text

_MARK = b"PAR1"
_TAIL = 8
"""Bytes after the footer: its length and the mark."""
_MOST_DEPTH = 12
"""Nesting of Thrift structures; Parquet has 6."""
_DICTIONARY_PAGE = 2
DELTA_BYTE_ARRAY = 7
"""An encoding of text that repeats the start of the text before; its size is announced nowhere."""

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)
_SEVEN_BITS = 0x7F


@dataclass(frozen=True)
class Chunk:
    """One column of one group of rows."""

    column: str
    """Name of the table's column; several chunks of a group may share it where it is nested."""
    rows: int
    """Rows of the group."""
    start: int
    """First byte of its first page in the file."""
    packed: int
    """Bytes in the file."""
    unpacked: int
    """Bytes, as the footer states them."""


@dataclass(frozen=True)
class Page:
    """The header of a page."""

    unpacked: int
    """Bytes that the reader allocates for it."""
    values: int
    """Values, empty ones included; 0 for a dictionary."""
    encoding: int | None
    """None for a dictionary."""


@dataclass(frozen=True)
class Footer:
    """Footer of a Parquet file."""

    rows: int
    """The larger of the number for the whole table and of the sum over its groups."""
    chunks: tuple[Chunk, ...]


def read_footer(data: bytes) -> Footer:
    """The footer of a Parquet file. Raises ValueError where it is damaged, or longer than allowed."""
    size = int.from_bytes(data[-_TAIL:-4], "little")
    if not (data[:4] == data[-4:] == _MARK) or size > len(data) - _TAIL - len(_MARK):
        raise ValueError("its beginning or its end is missing")
    if size > limits.MOST_FOOTER_BYTES:
        raise ValueError(f"its footer has {size:,} bytes; at most {limits.MOST_FOOTER_BYTES:,} are read")
    with _damage("part of its footer"):
        content, _ = _Thrift(data).structure_at(len(data) - _TAIL - size)
        columns = _column_names(content[2])  # [2] schema
        groups = content[4]  # [4] row_groups
        chunks = tuple(chunk for group in groups for chunk in _chunks(group, columns))
        rows = max(_size(content[3]), sum(_size(group[3]) for group in groups))  # [3] num_rows, of both
    return Footer(rows, chunks)


def pages(data: bytes, chunk: Chunk) -> Iterator[Page]:
    """The headers of the pages of a chunk. Raises ValueError where one is damaged."""
    position, end, content = chunk.start, chunk.start + chunk.packed, _Thrift(data)
    if end > len(data):
        raise ValueError(f"column {chunk.column} lies beyond its end")
    while position < end:
        with _damage("header of a page"):
            header, position = content.structure_at(position)
            packed, unpacked = _size(header[3]), _size(header[2])
            position += packed
            if header[1] == _DICTIONARY_PAGE:
                page = Page(unpacked, 0, None)
            elif 5 in header:  # [5] data_page_header: [1] num_values, [2] encoding
                page = Page(unpacked, _size(header[5][1]), _size(header[5][2]))
            elif 8 in header:  # [8] data_page_header_v2: [1] num_values, [4] encoding
                page = Page(unpacked, _size(header[8][1]), _size(header[8][4]))
            else:  # an index, which readers skip
                continue
        yield page


@contextmanager
def _damage(what: str) -> Iterator[None]:
    """Turns what damaged structures make Python raise into ValueError."""
    try:
        yield
    except (KeyError, IndexError, TypeError, AttributeError, UnicodeDecodeError, OverflowError) as error:
        raise ValueError(f"a {what} is damaged") from error


def _size(value: object) -> int:
    """Size in a Parquet file's footer. Raises ValueError for what is none."""
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is no size")
    return value


def _column_names(schema: list[Any]) -> list[str]:
    """Name of the table's column for each leaf of the schema, which lists its tree from the root, depth first."""
    found: list[str] = []
    open_children: list[int] = []
    top = ""
    for element in schema[1:]:  # the first is the root
        if not open_children:
            top = element[4].decode("utf-8")  # [4] name
        children = _size(element.get(5, 0))  # [5] num_children
        if children == 0:
            found.append(top)
        if open_children:
            open_children[-1] -= 1
        if children:
            open_children.append(children)
        while open_children and open_children[-1] == 0:
            open_children.pop()
    return found


def _chunks(group: dict[int, Any], columns: list[str]) -> Iterator[Chunk]:
    """Chunks of the columns in a Parquet file's group of rows. Raises ValueError where they do not match
    the columns.
    """
    chunks = group[1]  # [1] columns, each with [3] meta_data
    if len(chunks) != len(columns):
        raise ValueError(f"a group of rows has {len(chunks)} columns of {len(columns)}")
    for column, chunk in zip(columns, chunks):
        stated = chunk[3]
        start = stated.get(11, stated[9])  # [11] dictionary_page_offset, [9] data_page_offset
        yield Chunk(column, _size(group[3]), _size(start), _size(stated[7]), _size(stated[6]))


class _Thrift:
    """Structures of Thrift's compact protocol in a file; IndexError at its end."""

    def __init__(self, data: bytes) -> None:
        self._file, self._size = io.BytesIO(data), len(data)

    def structure_at(self, position: int) -> tuple[dict[int, Any], int]:
        """Field → value, and the position after the structure."""
        self._file.seek(position)
        return self._structure(0), self._file.tell()

    def _structure(self, depth: int) -> dict[int, Any]:
        """Structure of a Parquet footer: field → value. Raises ValueError if it is nested too deeply."""
        if depth > _MOST_DEPTH:
            raise ValueError("its headers are nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> object:
        """Value of a Parquet footer, by its type in Thrift's compact protocol."""
        if kind in _INTEGERS:
            return self._integer()
        if kind == _BINARY:
            return self._bytes(self._unsigned())
        if kind in (_LIST, _SET):
            return self._list(depth)
        if kind == _STRUCT:
            return self._structure(depth + 1)
        if kind in (_BYTE, _TRUE, _FALSE):
            return self._byte()
        if kind == _DOUBLE:
            return self._bytes(8)
        raise TypeError(kind)

    def _list(self, depth: int) -> list[Any]:
        """List of values in a Parquet footer."""
        if depth > _MOST_DEPTH:
            raise ValueError("its headers are nested too deeply")
        head = self._byte()
        count = self._unsigned() if head >> 4 == 15 else head >> 4
        if count > self._size - self._file.tell():
            raise IndexError(count)
        return [self._value(head & 15, depth + 1) for _ in range(count)]

    def _byte(self) -> int:
        """Next byte of a Parquet footer."""
        return self._file.read(1)[0]

    def _bytes(self, size: int) -> bytes:
        """Next bytes of a Parquet footer. Raises IndexError where there are fewer."""
        found = self._file.read(size)
        if len(found) < size:
            raise IndexError(size)
        return found

    def _unsigned(self) -> int:
        """Next variable-length number of a Parquet footer, at least 0."""
        number = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            number |= (byte & _SEVEN_BITS) << shift
            if byte <= _SEVEN_BITS:
                return number
        raise IndexError(number)

    def _integer(self) -> int:
        """Next variable-length number of a Parquet footer, with its sign (zigzag)."""
        number = self._unsigned()
        return (number >> 1) ^ -(number & 1)


def parse_parquet(data: bytes, file: str, faults: Faults) -> RawTable | None:
    """The table in a Parquet file's bytes, or None with a fault."""
    columns: list[pl.Series] | None = None
    reason = ""
    with panics_as_text() as panics:
        try:
            columns = _columns(data)
        except (pl.exceptions.PolarsError, OSError, ValueError, MemoryError) as error:
            reason = str(error)
    if columns is None:
        faults.add(file, f"a complete Parquet file ({shortened(panics[0] if panics else reason, 200)})")
        return None
    return raw_table(file, [column.name for column in columns], columns, faults)


def _columns(data: bytes) -> list[pl.Series]:
    """The columns of the table; without content where they have a type that no cell can have."""
    footer = read_footer(data)
    schema = pl.read_parquet_schema(io.BytesIO(data))
    if len(schema) > limits.MOST_COLUMNS:
        raise ValueError(f"it has {len(schema):,} columns; at most {limits.MOST_COLUMNS:,} are read")
    readable = [name for name, dtype in schema.items() if is_cell_type(dtype)]
    check_memory(data, footer, readable)
    frame = pl.read_parquet(io.BytesIO(data), columns=readable, hive_partitioning=False) if readable else pl.DataFrame()
    check_text(frame, len(data))
    return [frame[name] if name in frame.columns else pl.Series(name, [], dtype) for name, dtype in schema.items()]


def check_memory(data: bytes, footer: Footer, columns: Collection[str]) -> None:
    """Raises ValueError where reading these columns takes more memory than is allowed or there is.

    The sizes are those that the footer and the headers of the pages announce, whichever are larger.
    """
    wanted = set(columns)
    unpacked = 0
    allowed = limits.most_unpacked(len(data))
    for chunk in footer.chunks:
        if chunk.column not in wanted:
            continue
        size = values = 0
        for page in pages(data, chunk):
            size += page.unpacked
            values += page.values
            if page.encoding == DELTA_BYTE_ARRAY:
                raise ValueError(
                    f"column {chunk.column} is encoded as DELTA_BYTE_ARRAY; write it with another encoding"
                )
        if values > chunk.rows:
            raise ValueError(f"column {chunk.column} has more values than rows")
        unpacked += max(size, chunk.unpacked)
        if unpacked > allowed:
            raise ValueError(f"it unpacks to more than {allowed:,} bytes")
    memory = unpacked + footer.rows * (len(wanted) * limits.TABLE_CELL_BYTES + limits.TABLE_ROW_BYTES)
    extent = f"{footer.rows:,} rows of {len(wanted)} columns"
    allowed = limits.most_table_bytes(len(data))
    if memory > allowed:
        raise ValueError(f"{extent} take about {memory:,} bytes of memory; at most {allowed:,} for a file of this size")
    there = available_bytes()
    if there is not None and memory > there:
        raise ValueError(f"{extent} take about {memory:,} bytes of memory; {there:,} are available")


def check_text(frame: pl.DataFrame, packed: int) -> None:
    """Raises ValueError where text that repeats is far longer than its file: it is stored once, but copied later."""
    allowed = max(limits.most_unpacked(packed), frame.height * frame.width * limits.FREE_TEXT_BYTES)
    size = 0
    for column in frame:
        if column.dtype == pl.String:
            size += int(column.str.len_bytes().cast(pl.UInt64).sum())
        elif column.dtype in (pl.Categorical, pl.Enum):
            size += int(column.cat.len_bytes().cast(pl.UInt64).sum())
    if size > allowed:
        raise ValueError(f"its cells have {size:,} bytes of text; at most {allowed:,} are read")
