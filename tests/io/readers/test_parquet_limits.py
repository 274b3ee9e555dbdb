"""Parquet files whose content is far larger than they are: refused before they are unpacked."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from mast_opt.core import limits
from mast_opt.planner.io.faults import Faults
from mast_opt.planner.io.readers import parquet
from mast_opt.planner.io.readers.parquet import pages, parse_parquet, read_footer

LONG = "x" * 1_000_000


def packed(frame: pl.DataFrame, **options: Any) -> bytes:
    content = io.BytesIO()
    frame.write_parquet(content, **options)
    return content.getvalue()


def refusal(data: bytes) -> str:
    """What the only fault says; nothing may be read."""
    faults = Faults()
    assert parse_parquet(data, "a.parquet", faults) is None
    (fault,) = faults.found
    return fault.expected


def number(value: int) -> bytes:
    """An integer in Thrift's compact protocol."""
    value, found = value << 1, []
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def smaller(value: int) -> int:
    """A number that takes as many bytes."""
    return int(2 ** (7 * (len(number(value)) - 1) - 1))


def changed(data: bytes, old: bytes, new: bytes) -> bytes:
    assert old in data
    assert len(old) == len(new)
    return data.replace(old, new)


@pytest.mark.parametrize("compression", ["zstd", "snappy", "gzip", "lz4", "uncompressed", "brotli"])
@pytest.mark.parametrize("size", [None, 7])
def test_the_footer_and_the_pages_say_what_is_there(compression: Any, size: int | None) -> None:
    frame = pl.DataFrame({
        "a": [f"w{n}" for n in range(100)],
        "nested": [{"x": n, "y": {"z": [str(n)]}} for n in range(100)],
        "b": pl.Series([None, *range(99)], dtype=pl.Int64),
    })  # fmt: skip
    data = packed(frame, compression=compression, row_group_size=size)
    footer = read_footer(data)
    assert footer.rows == 100
    assert [chunk.column for chunk in footer.chunks[:4]] == ["a", "nested", "nested", "b"]
    for name in ("a", "b"):
        chunks = [chunk for chunk in footer.chunks if chunk.column == name]
        assert sum(chunk.rows for chunk in chunks) == 100
        for chunk in chunks:
            assert sum(page.values for page in pages(data, chunk)) == chunk.rows
            assert sum(page.unpacked for page in pages(data, chunk)) <= chunk.unpacked


def test_text_that_unpacks_to_a_hundred_times_its_size() -> None:
    frame = pl.DataFrame({"a": [f"{n}{LONG[:100_000]}" for n in range(400)]})
    data = packed(frame)
    assert len(data) < 100_000
    assert "unpacks to more than 33,554,432 bytes" in refusal(data)


def test_a_footer_that_understates_what_its_pages_hold() -> None:
    frame = pl.DataFrame({"a": [f"{n}{LONG[:100_000]}" for n in range(400)]})
    data = packed(frame)
    for chunk in read_footer(data).chunks:
        data = changed(data, number(chunk.unpacked), number(smaller(chunk.unpacked)))
    assert all(chunk.unpacked < 40_000_000 for chunk in read_footer(data).chunks)
    assert "unpacks to more than 33,554,432 bytes" in refusal(data)


def test_a_page_that_announces_more_than_it_holds() -> None:
    data = packed(pl.DataFrame({"a": [LONG * 3]}))
    (chunk,) = read_footer(data).chunks
    page = max(pages(data, chunk), key=lambda page: page.unpacked)  # the other is the dictionary
    old, new = number(page.unpacked), number(2**27 - 1)
    assert len(old) == len(new)
    start = data.index(old, chunk.start)
    assert "unpacks to more than" in refusal(data[:start] + new + data[start + len(old) :])


def parse_or_refuse(data: bytes) -> bool:
    faults = Faults()
    return parse_parquet(data, "a.parquet", faults) is not None or bool(faults.found)


def test_a_page_with_more_values_than_its_group_has_rows() -> None:
    data = packed(pl.DataFrame({"a": [1] * 1000}))
    (chunk,) = read_footer(data).chunks
    old = b"\x15" + number(1000)
    start = data.index(old, chunk.start)
    data = data[:start] + b"\x15" + number(8000) + data[start + len(old) :]
    assert "more values than rows" in refusal(data)


def test_long_text_that_is_stored_once() -> None:
    data = packed(pl.DataFrame({"a": [LONG[:20_000]] * 5_000}))
    assert len(data) < 100_000
    assert "100,000,000 bytes of text" in refusal(data)


def test_an_encoding_that_announces_no_size() -> None:
    data = packed(pl.DataFrame({"a": ["x", "y"]}))
    assert "DELTA_BYTE_ARRAY" in refusal(changed(data, bytes.fromhex("151015061506"), bytes.fromhex("150e15061506")))


def test_many_rows_in_a_small_file() -> None:
    data = packed(pl.select(pl.repeat(1, 10_000_000, dtype=pl.Int64)))
    assert len(data) < 60_000
    assert "10,000,000 rows of 1 columns" in refusal(data)


def test_columns_that_no_cell_can_have_are_not_read() -> None:
    data = packed(pl.DataFrame({"a": [1, 2], "b": [f"{n}{LONG}".encode() * 20 for n in range(2)], "c": [[1], [2]]}))
    faults = Faults()
    raw = parse_parquet(data, "a.parquet", faults)
    assert raw is not None
    assert raw.frame["a"].to_list() == ["1", "2"]
    assert [(fault.column, fault.value) for fault in faults.found] == [("b", "Binary"), ("c", "List(Int64)")]


def test_more_than_the_memory_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    data = packed(pl.DataFrame({"a": range(100_000)}))
    needed = 100_000 * (limits.TABLE_CELL_BYTES + limits.TABLE_ROW_BYTES)
    monkeypatch.setattr(parquet, "available_bytes", lambda: needed)
    assert f"{needed:,} are available" in refusal(data)
    monkeypatch.setattr(parquet, "available_bytes", lambda: 2 * needed)
    assert parse_parquet(data, "a.parquet", Faults()) is not None


MILLION = 1_000_000


@pytest.mark.parametrize(
    "frame",
    [
        lambda: pl.DataFrame({
            "workload": [f"w{n}" for n in range(MILLION)],
            **{f"c{n}": [0] * MILLION for n in range(13)},
        }),
        lambda: pl.DataFrame({
            "src": np.repeat([f"m{n}" for n in range(1_000)], 1_000),
            "dst": np.tile([f"m{n}" for n in range(1_000)], 1_000),
            "cost": [0] * MILLION,
        }),
    ],
    ids=["workloads", "machine pairs"],
)  # fmt: skip
def test_large_tables_with_constant_columns_are_within_the_limits(frame: Callable[[], pl.DataFrame]) -> None:
    """Workloads that differ in their names alone, and moves between machines that all cost nothing."""
    made = frame()
    data = packed(made)
    parquet.check_memory(data, read_footer(data), made.columns)
    parquet.check_text(made, len(data))


@pytest.mark.parametrize("position", range(-300, 0, 7))
def test_a_damaged_footer_is_a_fault_or_none(position: int) -> None:
    data = packed(pl.DataFrame({"a": ["x", "y"], "b": [1, 2]}))
    for value in (0, 0x0C, 0x1F, 0x7F, 0xF9, 0xFF):
        damaged = data[:position] + bytes([value]) + data[position + 1 if position + 1 else len(data) :]
        parse_or_refuse(damaged)
