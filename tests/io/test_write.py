"""Written files are complete or absent, and nothing that is not ours is ever replaced."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mast_opt.core.errors import InputError, InstanceError, UsageError
from mast_opt.planner.io import FORMATS, atomic, read, write
from mast_opt.planner.io.atomic import check_writable
from mast_opt.planner.io.writers import excel
from mast_opt.problems.kind.schema import Tables
from tests.io.conftest import Folder
from tests.io.toy import Toy
from tests.platforms import needs

TARGETS = {"csv": "out", "parquet": "out", "xlsx": "out.xlsx", "json": "out.json"}


def listing(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


@pytest.fixture
def out(tmp_path: Path) -> Path:
    path = tmp_path / "results"
    path.mkdir()
    return path


def test_the_suffix_chooses_the_format(folder: Folder, out: Path) -> None:
    toy = read(folder())
    for name in ("a", "b.json", "c.xlsx", "d.v2"):
        write(toy, out / name)
        assert read(out / name).header == toy.header
    assert listing(out) == ["a", "b.json", "c.xlsx", "d.v2"]
    assert listing(out / "a") == ["holds.csv", "instance.toml", "items.csv", "rules.csv", "sites.csv"]


def test_what_the_files_look_like(folder: Folder, out: Path) -> None:
    toy = read(folder())
    write(toy, out / "csv")
    assert (out / "csv" / "items.csv").read_text() == (
        "item,size_tb,memory_gb,tier,copies_min,copies_max,frozen,colour\n"
        'a,1.5,0.5,0,1,3,true,red\n"b, the second",0.000001,2,1,2,,false,\n'
    )
    write(toy, out / "toy.json")
    content = json.loads((out / "toy.json").read_text())
    assert content["sites"][1] == {"site": "us", "storage_tb": 20.5, "ingress_tb": None, "headroom": 0}
    write(toy, out / "parquet", "parquet")
    frame = pl.read_parquet(out / "parquet" / "items.parquet")
    assert frame.schema["size_tb"] == pl.Float64
    assert frame.schema["frozen"] == pl.Boolean
    assert (out / "csv").stat().st_mode & 0o777 == out.stat().st_mode & 0o777


def test_unfit_formats(folder: Folder, out: Path) -> None:
    toy = read(folder())
    with pytest.raises(UsageError, match="expected one of: csv, parquet, xlsx, json"):
        write(toy, out / "a", "feather")
    with pytest.raises(UsageError, match=r"ends in \.xlsx"):
        write(toy, out / "a", "xlsx")
    wrong: Any = "toy"
    with pytest.raises(UsageError, match="is not a problem"):
        write(wrong, out / "a")
    assert listing(out) == []


@pytest.mark.parametrize("format", FORMATS)
def test_an_existing_instance_needs_force(folder: Folder, out: Path, format: str) -> None:
    toy = read(folder())
    target = out / TARGETS[format]
    write(toy, target, format)
    renamed = Toy(replace(toy.header, name="second"), toy.tables)
    with pytest.raises(InputError, match="exists already"):
        write(renamed, target, format)
    assert read(target).header.name == "a toy"
    write(renamed, target, format, force=True)
    assert read(target).header.name == "second"
    assert listing(out) == [target.name]


def test_csv_tables_give_way_to_parquet(folder: Folder, out: Path) -> None:
    toy = read(folder())
    write(toy, out / "a")
    write(toy, out / "a", "parquet", force=True)
    assert listing(out / "a") == ["holds.parquet", "instance.toml", "items.parquet", "rules.parquet", "sites.parquet"]


def test_an_empty_folder_is_filled(folder: Folder, out: Path) -> None:
    (out / "a").mkdir()
    write(read(folder()), out / "a")
    read(out / "a")


@pytest.mark.parametrize("foreign", ["thesis.tex", "items.txt", "plan"])
def test_what_is_not_ours_stays(folder: Folder, out: Path, foreign: str) -> None:
    toy = read(folder())
    write(toy, out / "a")
    (out / "a" / foreign).write_text("precious")
    with pytest.raises(InputError, match=foreign):
        write(toy, out / "a", force=True)
    (out / "b").mkdir()
    (out / "b" / foreign).write_text("precious")
    with pytest.raises(InputError, match=foreign):
        write(toy, out / "b", force=True)
    (out / "file").write_text("precious")
    with pytest.raises(InputError, match="is not a folder"):
        write(toy, out / "file", force=True)
    (out / "c.json").mkdir()
    with pytest.raises(InputError, match="exists already"):
        write(toy, out / "c.json", force=True)
    assert (out / "a" / foreign).read_text() == (out / "file").read_text() == "precious"


@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk_leaves_what_was_there(
    folder: Folder, out: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy, target = read(folder()), out / TARGETS[format]
    write(toy, target, format)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match="No space left on device; free some space"):
            write(Toy(replace(toy.header, name="second"), toy.tables), target, format, force=True)
        with pytest.raises(InputError, match="No space left on device"):
            write(toy, out / f"fresh-{target.name}", format)
    assert listing(out) == [target.name]
    assert read(target).header.name == "a toy"


def test_a_failed_rename_puts_the_old_folder_back(folder: Folder, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = read(folder())
    write(toy, out / "a")
    original = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if target == out / "a" and (self / "instance.toml").read_text().count("second"):
            raise OSError(errno.EACCES, "Permission denied")
        return original(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", rename)
        patch.setattr(atomic, "exchange", lambda one, other: False)
        with pytest.raises(InputError, match="Permission denied; choose a folder that you may write to"):
            write(Toy(replace(toy.header, name="second"), toy.tables), out / "a", force=True)
    assert read(out / "a").header.name == "a toy"
    [there, kept] = listing(out)
    assert there == "a"
    assert read(out / kept).header.name == "second"


def test_what_came_meanwhile_costs_nothing(folder: Folder, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = read(folder())
    write(toy, out / "a")
    original = os.fsync

    def while_it_is_written(descriptor: int) -> None:
        (out / "a" / ".~lock.items.csv#").touch()
        original(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", while_it_is_written)
        with pytest.raises(InputError, match=r"lock\.items\.csv.*complete in") as refused:
            write(Toy(replace(toy.header, name="second"), toy.tables), out / "a", force=True)
    [_, kept] = listing(out)
    assert str(out / kept) in str(refused.value)
    assert read(out / kept).header.name == "second"
    assert (out / "a" / ".~lock.items.csv#").exists()


def test_a_mount_point_is_refused_before_anything_is_done(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_mount", lambda self: self == out.resolve())
    with pytest.raises(InputError, match="is a mount point, which cannot be replaced; choose a folder inside"):
        check_writable(out)
    check_writable(out / "inside")


def test_an_interrupt_leaves_nothing(folder: Folder, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = read(folder())

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    for target in ("a", "b.json", "c.xlsx"):
        with pytest.raises(KeyboardInterrupt):
            write(toy, out / target)
    assert listing(out) == []


def test_a_parent_that_is_a_file(folder: Folder, out: Path) -> None:
    (out / "file").write_text("x")
    with pytest.raises(InputError, match="could not be written"):
        write(read(folder()), out / "file" / "a" / "b")
    with pytest.raises(InputError, match="could not be written"):
        write(read(folder(name="again")), out / "file" / "a.json")


@needs("links")
def test_a_link_stays_and_what_it_points_to_is_written(folder: Folder, out: Path) -> None:
    toy = read(folder())
    for name in ("a", "b.json"):
        (out / f"link-{name}").symlink_to(out / name)
        write(toy, out / f"link-{name}")
        write(toy, out / f"link-{name}", force=True)
        assert (out / f"link-{name}").is_symlink()
        assert read(out / name).header.name == "a toy"
    with pytest.raises(InputError, match="link-a exists already"):
        write(toy, out / "link-a")
    assert listing(out) == ["a", "b.json", "link-a", "link-b.json"]


def test_missing_parents_are_made(folder: Folder, out: Path) -> None:
    write(read(folder()), out / "x" / "y" / "a")
    read(out / "x" / "y" / "a")


def relabelled(toy: Toy, *sites: str) -> Toy:
    axes = {**toy.tables.axes, "site": sites}
    return Toy(toy.header, Tables(axes, toy.tables.values, toy.tables.present, toy.tables.missing))


@pytest.mark.parametrize("label", ["", " eu", "e\nu", "us", "\ud800"])
def test_labels_that_no_file_could_carry(folder: Folder, out: Path, label: str) -> None:
    with pytest.raises(InstanceError) as caught:
        write(relabelled(read(folder()), label, "us"), out / "a")
    assert [fault.file for fault in caught.value.faults] == ["site"]
    assert listing(out) == []


@pytest.mark.parametrize("name", ["", " "])
def test_a_name_that_could_not_be_read_again(folder: Folder, out: Path, name: str) -> None:
    toy = read(folder())
    with pytest.raises(InstanceError, match="a name that is not empty"):
        write(Toy(replace(toy.header, name=name), toy.tables), out / "a")
    assert listing(out) == []


def test_a_table_too_long_for_a_sheet(folder: Folder, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = read(folder())
    with monkeypatch.context() as patch:
        patch.setattr(excel, "MOST_ROWS", 3)
        with pytest.raises(UsageError, match=r"table holds has 3 rows .* write a folder of Parquet tables instead"):
            write(toy, out / "a.xlsx")
    with pytest.raises(UsageError, match=r"a site of more than 32,767 characters"):
        write(relabelled(toy, "x" * 40_000, "us"), out / "a.xlsx")
    assert listing(out) == []


def test_no_digit_is_lost_in_a_workbook(folder: Folder, out: Path) -> None:
    digits = "1234567890.123456"
    toy = read(folder(sites=f"site,storage_tb\neu,{digits}\nus,0.1\n"))
    write(toy, out / "a.xlsx")
    assert read(out / "a.xlsx").tables.get("sites", "storage_tb").tolist() == [1_234_567_890_123_456, 100_000]
