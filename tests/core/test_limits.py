"""Small files that would take gigabytes, or for ever, are refused with a fault that says why."""

from __future__ import annotations

import gzip
import io
import json
import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
import xlsxwriter

import mast_opt
from mast_opt.core import limits
from mast_opt.core.errors import InputError, InstanceError, PlanError
from mast_opt.core.units import GIB, MIB
from mast_opt.planner.io import read_certificate
from mast_opt.planner.io.readers.archive import TooLarge, check_archive
from tests.platforms import needs

HEADER = 'format = "mast-opt/1"\nkind = "data-placement"\nname = "x"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    mast_opt.write(mast_opt.generate("data-placement", seed=1, datasets=4, workloads=4, regions=2), tmp_path / "i")
    return tmp_path / "i"


def refused(path: Path, words: str) -> None:
    with pytest.raises(InstanceError, match=words):
        mast_opt.read(path)


def test_a_cell_in_the_last_corner_of_a_sheet(tmp_path: Path) -> None:
    path = tmp_path / "corner.xlsx"
    book = xlsxwriter.Workbook(path)
    sheet = book.add_worksheet("instance")
    sheet.write("A1", "key")
    sheet.write("XFD1048576", 1)
    book.close()
    refused(path, "1,048,576 rows and 16,384 columns")


@pytest.mark.parametrize("cell", ["<x:c r='XFD1048576'><x:v>1</x:v></x:c>", '<c\n r = "XFD1048576"/>'])
def test_spellings_of_a_cell(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "corner.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/worksheets/sheet1.xml", f"<sheetData><row><c r='A1'/></row><row>{cell}</row></sheetData>")
    refused(path, "1,048,576 rows")


@pytest.mark.parametrize("place", ["trueE23", "A99999999", "ZZZZZZZZZZZZZZZZZZZZ1"])
def test_a_cell_beyond_the_last_one_of_a_sheet(tmp_path: Path, place: str) -> None:
    path = tmp_path / "corner.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/worksheets/sheet1.xml", f"<sheetData><row><c r='A1'/></row><c r='{place}'/></sheetData>")
    refused(path, f"a cell at {place[:20]}")


def test_a_workbook_that_unpacks_to_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b" " * (limits.FREE_BYTES + 1))
    refused(path, "unpacks to 33,554,433 bytes")


def test_an_archive_that_understates_its_content() -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b"x" * 10_000_000)
    data = content.getvalue().replace((10_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    with pytest.raises(TooLarge, match="larger than the archive says"):
        check_archive(data, GIB)


def test_json_rows_with_a_key_of_their_own_each(tmp_path: Path) -> None:
    path = tmp_path / "i.json"
    rows = [{f"k{n}": 1} for n in range(9_000)]
    path.write_text(json.dumps({"instance": {"format": "mast-opt/1", "kind": "data-placement"}, "regions": rows}))
    refused(path, "9,000 keys in 9,000 rows")


def test_repeated_keys_are_found_in_linear_time(tmp_path: Path) -> None:
    path = tmp_path / "i.json"
    keys = ", ".join(f'"k{n}": 1' for n in range(200_000))
    path.write_text('{"instance": {' + keys + ', "k199999": 2}}')
    refused(path, "k199999")


def test_a_table_with_too_many_columns(folder: Path) -> None:
    (folder / "regions.csv").write_text("," * 1_000_000)
    refused(folder, "at most 1,000 columns, not 1,000,001")


def test_a_key_of_many_parts(folder: Path) -> None:
    (folder / "instance.toml").write_text(HEADER + "a." * 100_000 + "b = 1\n")
    refused(folder, "64 parts")


def test_long_words_and_texts_in_a_header_are_fine(folder: Path) -> None:
    text = (folder / "instance.toml").read_text()
    said = f'provenance = "{"a" * 500_000} {"..." * 500}"'
    text = "\n".join(said if line.startswith("provenance") else line for line in text.splitlines())
    (folder / "instance.toml").write_text(text)
    mast_opt.read(folder)


def test_a_header_that_is_too_large(folder: Path) -> None:
    (folder / "instance.toml").write_text("#" * (limits.MOST_HEADER_BYTES + 1))
    refused(folder, "at most 4,194,304 are read")


def certificate(folder: Path, arrays: dict[str, bytes]) -> None:
    with zipfile.ZipFile(folder / "certificate.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in arrays.items():
            archive.writestr(f"{name}.npy", content)


def test_a_certificate_that_unpacks_to_gigabytes(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "certificate.npz", a=np.zeros(limits.FREE_BYTES // 8 + 1000))
    with pytest.raises(PlanError, match="unpacks to"):
        read_certificate(tmp_path)


@pytest.mark.parametrize(
    ("dtype", "shape", "words"),
    [("<f8", "(1000000000000,)", "declares 8,000,000,000,000 bytes"), ("|O", "(1,)", "object"), ("|V0", "(9,)", "V0")],
)
def test_a_certificate_whose_array_lies(tmp_path: Path, dtype: str, shape: str, words: str) -> None:
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    certificate(tmp_path, {"a": b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode()})
    with pytest.raises(PlanError, match=words):
        read_certificate(tmp_path)


def test_gzip_that_unpacks_to_gigabytes() -> None:
    with pytest.raises(OSError, match="unpacked"):
        limits.unzipped(gzip.compress(bytes(limits.FREE_BYTES + 1)))
    assert limits.unzipped(gzip.compress(b"ab" * 1000)) == b"ab" * 1000


@needs("links")
def test_pipes_and_devices_are_refused_at_once(folder: Path, tmp_path: Path) -> None:
    (folder / "regions.csv").unlink()
    os.mkfifo(folder / "regions.csv")
    refused(folder, "a pipe or a device")
    with pytest.raises(InputError, match="a pipe or a device"):
        mast_opt.read_scenarios("/dev/zero")
    pipe = tmp_path / "i.json"
    os.mkfifo(pipe)
    refused(pipe, "a pipe or a device")


@needs("links")
def test_links_are_followed_inside_the_folder_only(folder: Path, tmp_path: Path) -> None:
    regions = (folder / "regions.csv").read_text()
    (folder / "regions.csv").rename(folder / ".kept")
    (folder / "regions.csv").symlink_to(folder / ".kept")
    mast_opt.read(folder)
    (folder / "regions.csv").unlink()
    (tmp_path / "secret").write_text("secret" + regions)
    (folder / "regions.csv").symlink_to(tmp_path / "secret")
    with pytest.raises(InstanceError, match="outside the folder") as error:
        mast_opt.read(folder)
    assert "secret" not in str(error.value)


def test_a_link_to_the_folder_itself_is_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    mast_opt.read(tmp_path / "link")


def test_a_small_file_takes_little_memory(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"x")
    tracemalloc.start()
    try:
        assert limits.read_regular(tmp_path / "small") == b"x"
        assert tracemalloc.get_traced_memory()[1] < 16 * MIB
    finally:
        tracemalloc.stop()


def test_the_page_on_security_states_the_limits_of_files() -> None:
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
    mib, gib = MIB, GIB
    rows = (
        f"a public data set | {limits.MOST_FILE_BYTES // gib} GiB, after gzip too |",
        f"a workbook, packed and unpacked | {limits.MOST_DOCUMENT_BYTES // gib} GiB |",
        f"| {limits.MOST_HEADER_BYTES // mib} MiB; keys of at most {limits.MOST_KEY_PARTS} parts |",
        f"a certificate, unpacked | {limits.MOST_CERTIFICATE_BYTES // mib} MiB;",
        f"a file of benchmark results | {limits.MOST_EVENTS_BYTES // mib} MiB |",
        f"a `--freeze` file | {limits.MOST_FREEZE_BYTES // mib} MiB |",
        f"| {limits.MOST_RATIO} times the packed size, or {limits.FREE_BYTES // mib} MiB if that is more |",
        f"JSON table | {limits.MOST_COLUMNS:,} |",
        f"| {limits.FREE_CELLS // 10**6} million cells, and {limits.CELLS_PER_CELL} for each cell that it states |",
        f"node list | {limits.MOST_GPUS_A_NODE:,} |",
        f"| {limits.FREE_TABLE_BYTES // mib} MiB, and {limits.TABLE_BYTES_PER_BYTE} bytes for each byte of the file;",
        f"the size of the file, or {limits.FREE_TEXT_BYTES} bytes a cell",
        f"footer of a Parquet file | {limits.MOST_FOOTER_BYTES // mib} MiB |",
        f"{limits.TABLE_CELL_BYTES} bytes for each cell and {limits.TABLE_ROW_BYTES} bytes for each row",
    )
    assert [row for row in rows if row not in page] == []
    assert limits.MOST_RESULTS_BYTES == limits.MOST_EVENTS_BYTES
