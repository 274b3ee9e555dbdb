"""What a reading says in addition to the problem."""

from __future__ import annotations

import pytest

from mast_opt.planner.io import validate
from tests.io.conftest import Folder


def test_rounded_cells_are_counted(folder: Folder) -> None:
    path = folder(
        sites="site,storage_tb,ingress_tb\neu,1.00000001,0.1\nus,2.9999999,0.10000001\n",
        items="item,size_tb,memory_gb,tier\na,0.0000001,0.3,0\nb,1e-9,0.5,1\nc,2,0.25,2\n",
        holds="item,site\n",
        rules=None,
    )
    reading = validate(path)
    assert [str(rounding) for rounding in reading.roundings] == [
        "2 cells of sites.storage_tb were rounded down",
        "1 cell of sites.ingress_tb was rounded down",
        "2 cells of items.size_tb were rounded up",
        "1 cell of items.memory_gb was rounded up",
    ]
    tables = reading.problem.tables
    assert tables.get("sites", "storage_tb").tolist() == [1_000_000, 2_999_999]
    assert tables.get("items", "size_tb").tolist() == [1, 1, 2_000_000]
    assert tables.get("items", "memory_gb").tolist() == [308, 512, 256]
    assert reading.notes[-1] == "no table rules: reads as empty"


def test_rows_missing_tables_and_format(folder: Folder) -> None:
    reading = validate(folder(rules=None))
    assert (reading.kind.name, reading.format) == ("toy", "folder")
    assert dict(reading.rows) == {"sites": 2, "items": 2, "holds": 3}
    assert reading.missing == ("rules",)
    assert reading.seconds > 0
    assert reading.conflicts == ()


def test_conflicts_are_no_faults(folder: Folder) -> None:
    items = "item,size_tb,memory_gb,tier\nhuge,1,1,0\n"
    reading = validate(folder(items=items, holds="item,site\n", rules=None))
    assert [str(conflict) for conflict in reading.conflicts] == ["huge fits nowhere"]


@pytest.mark.parametrize("count", [3000])
def test_axes_follow_the_rows(folder: Folder, count: int) -> None:
    names = [f"item-{(n * 7919) % count:05}" for n in range(count)]
    items = "item,size_tb,memory_gb,tier,colour\n" + "".join(f"{name},1,1,0,c{n % 7}\n" for n, name in enumerate(names))
    holds = "item,site,colour\n" + "".join(f"{name},us,c{n % 11}\n" for n, name in enumerate(reversed(names)))
    tables = validate(folder(items=items, holds=holds, rules=None)).problem.tables
    assert tables.axes["item"] == tuple(names)
    assert tables.axes["colour"] == tuple(f"c{n}" for n in (*range(7), *range(7, 11)))
    assert tables.get("holds", "item").tolist() == list(range(count))[::-1]
    assert [tables.axes["colour"][c] for c in tables.get("holds", "colour").tolist()] == [
        f"c{n % 11}" for n in range(count)
    ]
