"""Every format gives back exactly what was written, and the same checksum."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from mast_opt.planner.io import FORMATS, checksum, read, validate, write
from mast_opt.problems.kind.schema import Tables
from tests.io.conftest import Folder
from tests.io.strategies import TOYS
from tests.io.toy import SCHEMA, Toy

TARGETS = {"csv": "toy", "parquet": "toy", "xlsx": "toy.xlsx", "json": "toy.json"}


def assert_same(found: Tables, expected: Tables) -> None:
    assert dict(found.axes) == dict(expected.axes)
    assert found.missing == expected.missing
    for table in SCHEMA.tables:
        for column in table.columns:
            values, wanted = found.get(table.name, column.name), expected.get(table.name, column.name)
            assert values.dtype == wanted.dtype, (table.name, column.name)
            np.testing.assert_array_equal(values, wanted, f"{table.name}.{column.name}")
            np.testing.assert_array_equal(found.has(table.name, column.name), expected.has(table.name, column.name))


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=25, deadline=None)
@given(toy=TOYS)
def test_written_and_read_again(format: str, toy: Toy) -> None:
    with tempfile.TemporaryDirectory() as parent:
        path = Path(parent) / TARGETS[format]
        write(toy, path, format)
        reading = validate(path)
    assert_same(reading.problem.tables, toy.tables)
    assert reading.problem.header == toy.header
    assert reading.roundings == ()
    assert checksum(reading.problem) == checksum(toy)


def test_the_formats_can_be_mixed_in_a_folder(folder: Folder, tmp_path: Path) -> None:
    toy = read(folder())
    write(toy, tmp_path / "parquet", "parquet")
    mixed = folder(name="mixed", items=None)
    (tmp_path / "parquet" / "items.parquet").rename(mixed / "items.parquet")
    assert_same(read(mixed).tables, toy.tables)


def test_arrays_are_read_only(folder: Folder) -> None:
    tables = read(folder()).tables
    with pytest.raises(ValueError, match="read-only"):
        tables.get("items", "size_tb")[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        tables.has("items", "colour")[0] = False


def test_a_missing_table_is_not_an_empty_one(folder: Folder, tmp_path: Path) -> None:
    missing, empty = read(folder(rules=None)), read(folder(name="empty", rules="item,site,rule\n"))
    assert missing.tables.missing == {"rules"}
    assert empty.tables.missing == frozenset()
    assert checksum(missing) != checksum(empty)
    for format in FORMATS:
        for toy in (missing, empty):
            path = tmp_path / f"{format}-{len(toy.tables.missing)}" / TARGETS[format]
            write(toy, path, format)
            assert_same(read(path).tables, toy.tables)


def test_the_checksum_is_of_the_content_alone(folder: Folder) -> None:
    original = read(folder())
    same = folder(
        name="same",
        sites="headroom,storage_tb,site,ingress_tb\n,20500e-3,us,\n1e-1,10.000,eu,.5\n",
        holds='item,site,colour,share\n"b, the second",us,red,1\na,eu,,1.0\na,eu,blue,0.250\n',
    )
    assert checksum(read(same)) == checksum(original)
    header = replace(original.header, name="other", provenance="elsewhere")
    assert checksum(Toy(header, original.tables)) == checksum(original)


@pytest.mark.parametrize(
    "change",
    [
        {"sites": "site,storage_tb,ingress_tb,headroom\neu,10,0.5,0.1\nus,20.500001,,\n"},
        {"sites": "site,storage_tb,ingress_tb,headroom\neu,10,0.5,0.1\nus,20.5,0,\n"},
        {"holds": 'item,site,colour,share\na,eu,red,0.25\na,eu,,\n"b, the second",us,red,1\n'},
        {"holds": "item,site,colour,share\na,eu,blue,0.25\na,eu,,\n"},
        {"header": 'format = "mast-opt/1"\nkind = "toy"\nname = "a toy"\n[rules]\ndays = 2\n'},
        {"header": 'format = "mast-opt/1"\nkind = "toy"\nname = "a toy"\n[objective.weights]\npeak = 2\n'},
    ],
)
def test_the_checksum_sees_every_change(folder: Folder, change: dict[str, str]) -> None:
    assert checksum(read(folder())) != checksum(read(folder(name="changed", **change)))
