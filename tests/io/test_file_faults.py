"""Files that are missing, broken, or not what their name says: a clear fault, never another exception."""

from __future__ import annotations

import os
import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import mast_opt
from mast_opt.core.errors import InstanceError, UsageError
from mast_opt.planner.io import FORMATS, read, write
from mast_opt.planner.io.readers.base import panics_as_text
from tests.io.conftest import Folder, faults_of, places
from tests.io.toy import GOOD, HEADER

HEADS = "item,site\n"
JUNK = bytes(random.Random(0).randrange(256) for _ in range(2000))


def test_missing_path(tmp_path: Path) -> None:
    [fault] = faults_of(tmp_path / "nowhere")
    assert fault.file == str(tmp_path / "nowhere")
    assert "there is nothing at this path" in fault.expected


def test_odd_paths(tmp_path: Path, folder: Folder) -> None:
    path = folder()
    [fault] = faults_of(path / "instance.toml")
    assert "give the folder that holds this file" in fault.expected
    (tmp_path / "book.xls").write_bytes(JUNK)
    [fault] = faults_of(tmp_path / "book.xls")
    assert "an .xlsx workbook" in fault.expected
    with pytest.raises(UsageError, match="without NUL"):
        mast_opt.read(Path("a\0b"))
    assert len(faults_of(tmp_path / ("x" * 400))) == 1


def test_folder_without_header(folder: Folder) -> None:
    [fault] = faults_of(folder(header=None))
    assert fault.file == "instance.toml"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "the file is empty"),
        (b"\n\n\n", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (JUNK, "a binary file"),
        (JUNK.replace(b"\0", b""), "UTF-8"),
        (GOOD["holds"].encode("utf-16"), "UTF-16"),
        (b"item;site\na;eu\n", "columns separated by commas"),
        (b"item\tsite\na\teu\n", "columns separated by commas"),
        (b'item,site\na,"eu\n', "a closing quotation mark"),
        (b'"item,site\na,eu\n', "a closing quotation mark"),
        (b"item," + b"x" * 200_000 + b"\n", "columns"),
    ],
)
def test_broken_csv(folder: Folder, content: bytes, expected: str) -> None:
    faults = faults_of(folder(holds=content))
    assert {fault.file for fault in faults} == {"holds.csv"}
    assert expected in faults[0].expected


def test_rows_of_unequal_length(folder: Folder) -> None:
    path = folder(holds=HEADS + 'a,eu\na\na,us\na,eu,red\n\n"b, the second",eu\na,"e,u"x\n', rules=None)
    faults = faults_of(path)
    assert [(fault.row, fault.value) for fault in faults] == [(7, 'a,"e,u"x'), (2, "a"), (4, "a,eu,red"), (5, "")]
    assert faults[0].expected == 'quotation marks around a whole field, doubled ("") inside it'
    assert faults[2].expected == "2 fields, as in the header, not 3"


def test_rows_beside_a_broken_one_are_checked_under_their_own_number(folder: Folder) -> None:
    assert places(folder(holds=HEADS + "a,eu\na\na,mars\n")) == [
        ("holds.csv", 2, None, "a"),
        ("holds.csv", 3, "site", "mars"),
    ]


def test_mentions_of_labels_in_an_unreadable_file_are_no_faults(folder: Folder) -> None:
    assert places(folder(items=JUNK)) == [("items.csv", None, None, None)]
    cut = folder(name="cut", items="item,size_tb,memory_gb,tier\na,1,1,0\nb\n")
    assert places(cut) == [("items.csv", 2, None, "b")]


def test_other_encodings_show_their_rows(folder: Folder) -> None:
    sites = "site,storage_tb\nZürich,1\neu,1\nus,1\n".encode("latin-1")
    path = folder(sites=sites, holds=HEADS + "a,Zürich\n")
    assert places(path) == [("sites.csv", 1, None, "Z�rich,1")]


def test_spreadsheet_habits_are_fine(folder: Folder) -> None:
    text = (
        GOOD["sites"].replace("\n", "\r\n").replace("storage_tb", ' "storage_tb"'.strip()).replace("site,", " site ,")
    )
    same = folder(sites=b"\xef\xbb\xbf" + text.encode() + b"\r\n\r\n", name="windows")
    old = folder(sites=GOOD["sites"].replace("\n", "\r"), name="mac")
    trailing = folder(sites=GOOD["sites"].replace("\n", ",\n"), name="trailing")
    upper = folder(name="upper")
    (upper / "sites.csv").rename(upper / "sites.CSV")
    (upper / "README.md").write_text("what this is")
    (upper / ".DS_Store").write_bytes(JUNK)
    (upper / "plan").mkdir()
    expected = read(folder()).tables.values["sites"]
    for path in (same, old, trailing, upper):
        found = read(path).tables.values["sites"]
        assert {name: cells.tolist() for name, cells in found.items()} == {n: c.tolist() for n, c in expected.items()}


def test_a_column_without_a_name_or_twice(folder: Folder) -> None:
    path = folder(sites="site,storage_tb,,site\neu,1,x,us\nus,1,,\n")
    assert places(path) == [("sites.csv", None, None, ""), ("sites.csv", None, "site", None)]


def test_files_that_are_no_tables(folder: Folder, tmp_path: Path) -> None:
    path = folder()
    (path / "item.csv").write_text("item\n")
    (path / "rules.csv").rename(path / "rules.tsv")
    shutil.copy(path / "sites.csv", path / "sites.parquet")
    (path / "holds.csv").unlink()
    (path / "holds.csv").mkdir()
    faults = faults_of(path)
    assert [fault.file for fault in faults] == ["sites.parquet", "rules.tsv", "item.csv", "holds.csv"]
    assert "sites.csv is there too" in faults[0].expected
    assert "rules.csv or rules.parquet" in faults[1].expected
    assert "did you mean 'items'?" in faults[2].expected
    assert faults[3].expected == "a file, not a folder"


def test_an_unreadable_file(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder()
    original = os.open

    def refuse(file: Any, *args: Any, **options: Any) -> int:
        if isinstance(file, Path) and file.name == "holds.csv":
            raise PermissionError(13, "Permission denied")
        return original(file, *args, **options)

    monkeypatch.setattr(os, "open", refuse)
    [fault] = faults_of(path)
    assert (fault.file, fault.expected) == ("holds.csv", "a file that can be read (Permission denied)")


@pytest.mark.parametrize("content", [b"", JUNK, b"PAR1" + JUNK + b"PAR1"])
def test_broken_parquet(folder: Folder, content: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    path = folder(holds=None)
    (path / "holds.parquet").write_bytes(content)
    [fault] = faults_of(path)
    assert fault.file == "holds.parquet"
    assert fault.expected.startswith("a complete Parquet file (")
    assert capfd.readouterr() == ("", "")


def test_reading_parquet_leaves_stderr_and_descriptors_alone(
    folder: Folder, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(read(folder()), tmp_path / "out", "parquet")
    read(tmp_path / "out")
    before = os.dup(2)
    os.close(before)
    for _ in range(5):
        read(tmp_path / "out")
    after = os.dup(2)
    os.close(after)
    assert after == before
    assert capfd.readouterr() == ("", "")


def test_what_other_threads_write_to_stderr_arrives(capfd: pytest.CaptureFixture[str]) -> None:
    with panics_as_text():
        os.write(2, b"a warning")
        assert capfd.readouterr().err == "a warning"


def test_a_panic_becomes_one_line() -> None:
    with panics_as_text() as panics:
        raise pl.exceptions.PanicException("no such page\nstack")
    assert panics == ["no such page"]


@pytest.mark.parametrize("format", FORMATS)
def test_damaged_files_never_raise_anything_else(
    folder: Folder, tmp_path: Path, format: str, capfd: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / {"xlsx": "good.xlsx", "json": "good.json"}.get(format, "good")
    write(read(folder()), target, format)
    files = sorted(target.iterdir()) if target.is_dir() else [target]
    contents = {file: file.read_bytes() for file in files}
    rng, refused = random.Random(format), 0
    for _ in range(80):
        file = rng.choice(files)
        damaged = bytearray(contents[file])
        if rng.random() < 0.3:
            del damaged[rng.randrange(len(damaged)) :]
        else:
            for _ in range(rng.randrange(1, 5)):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        for intact in files:
            intact.write_bytes(contents[intact])
        file.write_bytes(damaged)
        with suppress(InstanceError):
            read(target)
            continue
        refused += 1
    assert refused > 20
    captured = capfd.readouterr()
    assert captured.out == ""
    if format != "parquet":  # whose reader reports its panics itself
        assert captured.err == ""


def test_the_header_can_have_a_byte_order_mark(folder: Folder) -> None:
    read(folder(header=b"\xef\xbb\xbf" + HEADER.encode()))
