"""Problems, plans and answers as data frames of each library."""

from __future__ import annotations

import sys
from typing import Any

import pandas as pd
import polars as pl
import pytest

import mast_opt
from mast_opt.planner.report.answer_tables import CONVERT
from tests.instance_rows import DataRows


def problem() -> mast_opt.DataPlacement:
    builder = DataRows("two regions")
    builder.add_region("east", storage_tb=100, cpu_cores=1000, gpus={"h100": 8})
    builder.add_region("west", storage_tb=50, cpu_cores=1000, gpus={"h100": 64})
    builder.add_dataset("clicks", size_tb=12, replicas=["east"])
    builder.add_workload("rank", tier=0, cpu_cores=80, gpus={"h100": 32}, reads={"clicks": 3})
    builder.add_workload("report", tier=1, cpu_cores=8, reads={"clicks": 1})
    builder.add_current_run("rank", "east").add_current_run("report", "east")
    return builder.build()


@pytest.fixture(scope="module")
def solved() -> tuple[mast_opt.DataPlacement, Any]:
    one = problem()
    return one, mast_opt.solve(one, "highs").plan


def test_pandas_without_arrow(solved: tuple[mast_opt.DataPlacement, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    one, plan = solved
    tables = mast_opt.to_tables(one, frames="pandas")
    assert all(isinstance(table, pd.DataFrame) for table in tables.values())
    again = mast_opt.from_tables("data-placement", tables, name=one.name)
    assert mast_opt.checksum(again) == mast_opt.checksum(one)
    runs = mast_opt.to_tables(one, plan, frames="pandas")["runs"]
    assert runs.set_index("workload")["region"].to_dict() == {"rank": "west", "report": "west"}
    with pytest.raises(mast_opt.UsageError, match="pip install pyarrow"):
        mast_opt.to_tables(one, frames="arrow")


def test_whole_numbers_with_empty_cells_stay_whole() -> None:
    table = CONVERT["pandas"](pl.DataFrame({"whole": [1, None], "flag": [True, None], "real": [0.5, None]}))
    assert [str(table[name].dtype) for name in table.columns] == ["Int64", "boolean", "float64"]
    assert table["whole"].tolist() == [1, pd.NA]


def test_each_answer_has_the_tables_of_its_command(solved: tuple[mast_opt.DataPlacement, Any]) -> None:
    one, plan = solved
    runs = mast_opt.to_tables(mast_opt.diff(one, None, plan))["runs"].to_dicts()
    assert [(row["sign"], row["workload"], row["region"]) for row in runs if row["workload"] == "rank"] == [
        ("+", "rank", "west"),
        ("−", "rank", "east"),
    ]
    answer = mast_opt.explain(one, plan, ["rank", "clicks"])
    alternatives = mast_opt.to_tables(answer)["Alternatives"]
    options = [option.change for why in answer.reasons for option in why.options]
    assert alternatives["change"].to_list() == options
    assert set(alternatives["name"]) == {"rank", "clicks"}
    assert list(mast_opt.to_tables(mast_opt.marginal_values(one, resources=["storage"]))) == ["Marginal values"]
    frontier = mast_opt.pareto(one, ("copy", "overload"), points=2)
    assert len(mast_opt.to_tables(frontier)["copy against overload"]) == len(frontier.points)
    scenario = mast_opt.Scenario("more storage", {"add_storage_tb": {"west": 10}})
    assert list(mast_opt.to_tables(mast_opt.whatif(one, [scenario]))) == ["Scenarios", "Terms", "Key figures"]
    lost = mast_opt.whatif(one, [mast_opt.Scenario("a region is lost", {"lose_regions": ["west"]})], plan=plan)
    assert mast_opt.to_tables(lost)["Lost data"].rows() == [("a region is lost", "clicks", 12.0, "rank, report")]


def test_a_conflict_and_its_repairs() -> None:
    vault = mast_opt.read("instances/data_placement/infeasible-pins")
    tables = mast_opt.to_tables(mast_opt.explain(vault))
    assert list(tables) == ["Conflict", "Repairs"]
    assert tables["Repairs"]["change"].to_list()[0] == "raise storage of vault by 2 TB"


def test_what_makes_no_sense_is_refused(solved: tuple[mast_opt.DataPlacement, Any]) -> None:
    one, plan = solved
    order: Any = mast_opt.steps(one, plan)
    with pytest.raises(mast_opt.UsageError, match="has its own tables"):
        mast_opt.to_tables(order, plan)
    wrong: Any = "dask"
    with pytest.raises(mast_opt.UsageError, match="'polars', 'pandas', 'arrow'"):
        mast_opt.to_tables(one, frames=wrong)


def test_odd_values_are_warned_of_and_listed() -> None:
    tables = mast_opt.to_tables(problem()) | {
        "gpu_demand": pd.DataFrame({"workload": ["rank"], "gpu_type": ["H100"], "gpus": [32]})
    }
    with pytest.warns(
        mast_opt.InstanceWarning, match="gpu_demand, row 1, column gpu_type: 'H100'.*did you mean 'h100'"
    ):
        odd = mast_opt.from_tables("data-placement", tables)
    reading = mast_opt.validate(odd)
    assert [(one.file, one.row, one.suggestion) for one in reading.warnings] == [
        ("gpu_demand", 1, "did you mean 'h100'?")
    ]
    assert reading.path is None
    assert reading.rows["workloads"] == 2
    assert reading.conflicts
    assert not mast_opt.validate(problem()).warnings
