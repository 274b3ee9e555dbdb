"""What is wrong inside tables: each fault with its file, row, column and value, and all of them at once."""

from __future__ import annotations

import polars as pl
import pytest

from mast_opt.core.errors import InstanceError
from mast_opt.planner.io import read
from mast_opt.planner.io.faults import LISTED
from tests.io.conftest import Folder, faults_of, places

SITES = "site,storage_tb,ingress_tb,headroom\n"
ITEMS = "item,size_tb,memory_gb,tier,frozen\n"


@pytest.mark.parametrize(
    ("row", "column", "value", "expected"),
    [
        ("eu,,,", "storage_tb", "", "a number (disk, TB), not an empty cell"),
        ("eu,ten,,", "storage_tb", "ten", "a number (disk, TB)"),
        ("eu,-1,,", "storage_tb", "-1", "a number (disk, TB) of at least 0"),
        ("eu,-0.0000001,,", "storage_tb", "-0.0000001", "a number (disk, TB) of at least 0"),
        ("eu,nan,,", "storage_tb", "nan", "a finite number (disk, TB)"),
        ("eu,-inf,,", "storage_tb", "-inf", "a finite number (disk, TB)"),
        ("eu,9223372036854.775808,,", "storage_tb", "9223372036854.775808", "of at most 9223372036854.775807"),
        ("eu,1e13,,", "storage_tb", "1e13", "of at most 9223372036854.775807"),
        ('eu,"1,000",,', "storage_tb", "1,000", "a number (disk, TB)"),
        ("eu,1,-2,", "ingress_tb", "-2", "a number of at least 0"),
        ("eu,1,,1.001", "headroom", "1.001", "a number (share kept free) of at most 1"),
        ("eu,1,,1.0000001", "headroom", "1.0000001", "a number (share kept free) of at most 1"),
        (",1,,", "site", "", "a label, not an empty cell"),
        ('"",1,,', "site", "", "a label, not an empty cell"),
        (" eu,1,,", "site", " eu", "without leading or trailing spaces"),
        ("eu\t,1,,", "site", "eu\t", "without leading or trailing spaces"),
        ('"e\nu",1,,', "site", "e\nu", "without control characters"),
        ("e\x07u,1,,", "site", "e\x07u", "without control characters"),
    ],
)
def test_a_bad_cell(folder: Folder, row: str, column: str, value: str, expected: str) -> None:
    path = folder(sites=f"{SITES}zz,1,,\n{row}\n", holds="item,site\n", rules=None)
    [fault] = faults_of(path)
    assert (fault.file, fault.row, fault.column, fault.value) == ("sites.csv", 2, column, value)
    assert expected in fault.expected


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("12,5", "; did you mean 12.5?"),
        ("-0,25", "; did you mean -0.25?"),
        ("10%", "; did you mean 0.1?"),
        ("12,5 %", "; did you mean 0.125?"),
        ("20 TB", "; did you mean 20? (omit the unit)"),
        ("1,000", "; omit thousands separators and use a decimal point"),
        ("1 000 000", "; omit thousands separators and use a decimal point"),
        ("1.000,5", "; omit thousands separators and use a decimal point"),
        ("2026-05-03 00:00:00", "; the cell is a date: format it as a number and retype it"),
        ("ten", ""),
    ],
)
def test_a_number_as_spreadsheets_show_it(folder: Folder, value: str, meant: str) -> None:
    [fault] = faults_of(folder(sites=f'{SITES}zz,1,,\neu,"{value}",,\n', holds="item,site\n", rules=None))
    assert fault.value == value
    assert fault.expected == f"a number (disk, TB){meant}"


@pytest.mark.parametrize(("value", "meant"), [("Yes", "true"), ("n", "false"), ("treu", "'true'"), ("perhaps", "")])
def test_a_truth_value_as_people_say_it(folder: Folder, value: str, meant: str) -> None:
    [fault] = faults_of(folder(items=f"{ITEMS}a,1,1,0,{value}\n", holds="item,site\n", rules=None))
    assert fault.expected.partition("; ")[2] == (f"did you mean {meant}?" if meant else "")


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [
        ("a,1,1,1.5,", "tier", "1.5"),
        ("a,1,1,-1,", "tier", "-1"),
        ("a,1,1,x,", "tier", "x"),
        ("a,1,1,9223372036854775808,", "tier", "9223372036854775808"),
        ("a,1,1,0,yes", "frozen", "yes"),
        ("a,1,1,0,1", "frozen", "1"),
    ],
)
def test_a_bad_item(folder: Folder, row: str, column: str, value: str) -> None:
    assert places(folder(items=f"{ITEMS}{row}\n", holds="item,site\n", rules=None)) == [("items.csv", 1, column, value)]


@pytest.mark.parametrize("row", ["a,+1,1,1e0, true ", "a,1.,.5,0.0,FALSE", "a, 1 ,1,00,"])
def test_spellings_that_are_fine(folder: Folder, row: str) -> None:
    read(folder(items=f"{ITEMS}{row}\n", holds="item,site\n", rules=None))


def test_a_misspelt_choice_gets_a_suggestion(folder: Folder) -> None:
    [fault] = faults_of(folder(rules="item,site,rule\na,eu,pined\n"))
    assert (fault.column, fault.value) == ("rule", "pined")
    assert fault.expected == "pinned, forbidden; did you mean 'pinned'?"


def test_references_and_keys(folder: Folder) -> None:
    path = folder(
        holds="item,site,colour\na,eu,\na,EU,red\nc,us,\na,eu,\na,eu,red\na,eu,red\n",
        rules="item,site,rule\na,mars,pinned\n",
    )
    faults = faults_of(path)
    assert [(fault.file, fault.row, fault.column, fault.value) for fault in faults] == [
        ("holds.csv", 3, "item", "c"),
        ("holds.csv", 2, "site", "EU"),
        ("holds.csv", 4, "item, site, colour", "a, eu, "),
        ("holds.csv", 6, "item, site, colour", "a, eu, red"),
        ("rules.csv", 1, "site", "mars"),
    ]
    assert faults[1].expected == "a label listed in sites.csv; did you mean 'eu'?"
    assert faults[2].expected == "each item and site and colour once; row 1 has it already"


def test_a_label_twice_in_its_own_table(folder: Folder) -> None:
    path = folder(sites=f"{SITES}eu,1,,\nus,2,,\neu,3,,\n")
    [fault] = faults_of(path)
    assert (fault.file, fault.row, fault.column, fault.value) == ("sites.csv", 3, "site", "eu")
    assert "row 1 has it already" in fault.expected


def test_a_bad_label_is_one_fault_and_not_one_for_each_mention(folder: Folder) -> None:
    path = folder(sites=f"{SITES}eu ,1,,\nus,1,,\n", holds='item,site\na,eu\na,us\na,"eu "\na,ue\n', rules=None)
    assert places(path) == [
        ("sites.csv", 1, "site", "eu "),
        ("holds.csv", 3, "site", "eu "),
        ("holds.csv", 4, "site", "ue"),
    ]


def test_all_faults_at_once(folder: Folder) -> None:
    path = folder(
        header='format = "mast-opt/1"\nkind = "toy"\nname = "x"\n[objective.weights]\npeek = 1\n',
        sites="site,storage_tb,color\neu,-1,x\n",
        items="item,size_tb,tier\na,nan,0.5\n",
        holds=None,
        rules="item,site,rule\na,eu,maybe\n",
    )
    (path / "extra.csv").write_text("a,b\n")
    assert places(path) == [
        ("instance.toml: objective.weights.peek", None, None, "peek"),
        ("extra.csv", None, None, None),
        ("sites.csv", None, "color", None),
        ("sites.csv", 1, "storage_tb", "-1"),
        ("items.csv", 1, "size_tb", "nan"),
        ("items.csv", None, "memory_gb", None),
        ("items.csv", 1, "tier", "0.5"),
        ("holds.csv", None, None, None),
        ("rules.csv", 1, "rule", "maybe"),
    ]


def test_columns_are_named_and_suggested(folder: Folder) -> None:
    faults = faults_of(folder(sites="site,storage,ingress_tb\neu,1,2\nus,1,2\n"))
    assert [(fault.column, fault.expected) for fault in faults] == [
        ("storage", "no column of this name; did you mean 'storage_tb'?"),
        ("storage_tb", "this column (disk, TB)"),
    ]


def test_tables_without_rows(folder: Folder) -> None:
    [fault] = faults_of(folder(sites=SITES, holds="item,site\n", rules=None))
    assert (fault.file, fault.row) == ("sites.csv", None)
    assert "at least one row" in fault.expected
    read(folder(name="relations", holds="item,site\n", rules="item,site,rule\n"))


def test_many_faults_are_counted(folder: Folder) -> None:
    count = 5000
    path = folder(holds="item,site\n" + "".join(f"x{n},eu\n" for n in range(count)))
    with pytest.raises(InstanceError) as caught:
        read(path)
    faults = caught.value.faults
    assert [fault.row for fault in faults] == [*range(1, LISTED + 1), None]
    assert sum(fault.count for fault in faults) == count
    assert str(faults[-1]) == "holds.csv, column item: 4,980 more; expected a label listed in items.csv"
    assert str(caught.value).startswith("5,000 faults in the instance:")


def test_one_more_than_the_cap_is_listed_too(folder: Folder) -> None:
    path = folder(holds="item,site\n" + "".join(f"x{n},eu\n" for n in range(LISTED + 1)))
    assert [fault.row for fault in faults_of(path)] == [*range(1, LISTED + 2)]


def test_a_total_must_fit_as_well(folder: Folder) -> None:
    big = "5000000000000"
    [fault] = faults_of(folder(sites=f"{SITES}eu,{big},,\nus,{big},,\n"))
    assert (fault.column, fault.row, fault.value) == ("storage_tb", None, "a total of 1e+13")


def test_what_only_the_problem_sees_gets_the_name_of_the_file(folder: Folder) -> None:
    path = folder(items=f"{ITEMS}cursed,1,1,0,\n", holds="item,site\n", rules=None)
    assert places(path) == [("items.csv", 1, "item", "cursed")]


def test_long_values_are_cut(folder: Folder) -> None:
    [fault] = faults_of(folder(sites=f"{SITES}eu,{'x' * 500},,\nus,1,,\n"))
    assert fault.value == "x" * 79 + "…"


def test_parquet_types(folder: Folder) -> None:
    path = folder(sites=None)
    frame = pl.DataFrame({"site": ["eu", "us"], "storage_tb": [0.1, float("nan")], "headroom": [[1], [2]]})
    frame.write_parquet(path / "sites.parquet")
    assert places(path) == [
        ("sites.parquet", None, "headroom", "List(Int64)"),
        ("sites.parquet", 2, "storage_tb", "NaN"),
    ]


@pytest.mark.parametrize("dtype", [pl.Int16, pl.UInt64, pl.Float32, pl.Float64, pl.Decimal(20, 3), pl.String])
def test_parquet_numbers_of_any_type(folder: Folder, dtype: pl.DataType) -> None:
    path = folder(sites=None)
    sites = pl.Series(["eu", "us"], dtype=pl.Categorical)
    frame = pl.DataFrame({"site": sites, "storage_tb": pl.Series([3, 20]).cast(dtype)})
    frame.write_parquet(path / "sites.parquet")
    assert read(path).tables.get("sites", "storage_tb").tolist() == [3_000_000, 20_000_000]


def test_float32_means_its_shortest_decimal(folder: Folder) -> None:
    path = folder(sites=None)
    frame = pl.DataFrame({"site": ["eu", "us"], "storage_tb": pl.Series([0.1, 0.3], dtype=pl.Float32)})
    frame.write_parquet(path / "sites.parquet")
    assert read(path).tables.get("sites", "storage_tb").tolist() == [100_000, 300_000]
