"""Tables in memory: the same problems, plans and faults as from files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mast_opt
from mast_opt.core.errors import Fault, InstanceError, PlanError, UsageError
from mast_opt.planner.io.header import to_fields
from mast_opt.problems.registry import kind_named, kind_names

pytestmark = pytest.mark.filterwarnings(
    "ignore::mast_opt.InstanceWarning"
)  # a small instance asks for more than there is
HEADER = ("name", "rules", "objective", "provenance")


class ArrowOnly:
    """A table that can do nothing but hand over its Arrow stream, as those of other libraries."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


def pandas_frame(frame: pl.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(frame.to_dict(as_series=False))


SHAPES: dict[str, Callable[[pl.DataFrame], Any]] = {
    "polars": lambda frame: frame,
    "lazy": lambda frame: frame.lazy(),
    "arrow": ArrowOnly,
    "pandas": pandas_frame,
    "columns": lambda frame: frame.to_dict(as_series=False),
    "rows": lambda frame: frame.to_dicts(),
    "series": lambda frame: frame.to_dict(),
    "pandas series": lambda frame: dict(pandas_frame(frame).items()),
    "arrays": lambda frame: {
        name: column.to_numpy() if column.dtype.is_numeric() and not column.has_nulls() else column.to_list()
        for name, column in frame.to_dict().items()
    },
}


def header_of(problem: Any) -> dict[str, Any]:
    header, _ = kind_named(problem.kind).tables.problem_to_tables(problem)
    return {name: value for name, value in to_fields(header).items() if name in HEADER}


def small(kind: str) -> Any:
    sizes = {
        "data-placement": {"datasets": 6, "workloads": 8, "regions": 3},
        "job-placement": {"regions": 2, "clusters": 2, "servers": 3, "fill_percent": 80},
        "server-assignment": {"servers": 20, "reservations": 3, "datacenters": 2},
        "task-reassignment": {"processes": 12, "machines": 4, "resources": 2},
        "resource-allocation": {"jobs": 5, "types": 2},
    }[kind]
    return mast_opt.generate(kind, None, seed=3, **sizes)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", kind_names())
def test_a_problem_comes_back_from_its_tables(kind: str, shape: str) -> None:
    problem = small(kind)
    tables = {name: SHAPES[shape](frame) for name, frame in mast_opt.to_tables(problem).items()}
    again = mast_opt.from_tables(kind, tables, **header_of(problem))
    assert mast_opt.checksum(again) == mast_opt.checksum(problem)
    assert header_of(again) == header_of(problem)


@pytest.mark.parametrize("kind", kind_names())
def test_a_plan_comes_back_from_its_tables(kind: str) -> None:
    problem = small(kind)
    solution = mast_opt.solve(problem, "highs", time_limit_s=60, gap=0.5)
    tables = mast_opt.to_tables(problem, solution)
    plan = mast_opt.plan_from_tables(problem, tables)
    assert mast_opt.verify(problem, plan).objective == solution.objective
    again = mast_opt.to_tables(problem, plan)
    assert tables.keys() == again.keys()
    assert all(tables[name].equals(again[name]) for name in tables)


REGIONS = {"region": ["east", "west", "east"], "storage_tb": [1, -2, 3], "cpu_cores": ["10", "ten", None]}
REST = {
    "gpu_supply": {"region": ["nowhere"], "gpu_type": ["h100"], "gpus": [8]},
    "datasets": [{"dataset": "d", "size_tb": 1.5, "colour": "red"}],
    "replicas": {"dataset": ["d", "d"], "region": ["east", "east"]},
    "workloads": [{"workload": "w", "tier": 1.5, "cpu_cores": 1}],
    "gpu_demand": [],
    "reads": {"workload": [], "dataset": [], "tb_per_day": []},
    "redas": [],
}


def faults_of(made: Callable[[], object]) -> tuple[Fault, ...]:
    with pytest.raises(InstanceError) as caught:
        made()
    return caught.value.faults


def test_faults_are_those_of_a_file(tmp_path: Path) -> None:
    """By table, row, column, value and expectation."""
    header = {"format": "mast-opt/1", "kind": "data-placement", "name": "x"}
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"instance": header, "regions": REGIONS, **REST}))
    from_file = faults_of(lambda: mast_opt.read(path))
    in_memory = faults_of(lambda: mast_opt.from_tables("data-placement", {"regions": REGIONS, **REST}))

    def plain(fault: Fault) -> tuple[object, ...]:
        where = fault.file.removeprefix("x.json: ")
        return where, fault.expected.replace("x.json: ", ""), fault.row, fault.column, fault.value

    assert [plain(fault) for fault in in_memory] == [plain(fault) for fault in from_file]
    assert len(in_memory) >= 8


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (3, "gpu_supply: found 'int'; expected a data frame"),
        ("text", "gpu_supply: found 'str'; expected a data frame"),
        ({"region": "east"}, "column region: found \"'east'\"; expected a list of cells"),
        ({"region": ["east"], "gpus": [1, 2]}, "column gpus: found '2 cells'; expected 1 cells"),
        ({"region": [["east"]]}, "row 1, column region: found \"['east']\"; expected text, a number"),
        ({"gpus": np.zeros((2, 2))}, "column gpus: found 'an array of 2 axes'; expected one value for each row"),
        ({"gpus": np.array([1.0, np.nan])}, "row 2, column gpus: found 'NaN'; expected a finite number"),
        ({3: [1]}, "found '3'; expected a column with text as its name"),
        (pd.DataFrame([[1, 2]], columns=["gpus", "gpus"]), "column gpus: expected a column only once"),
        (pl.DataFrame({"gpus": [[1]]}), "column gpus: found 'List(Int64)'; expected a column of text, numbers"),
        ({"gpus": [b"8"]}, "row 1, column gpus: found \"b'8'\"; expected text, a number"),
        ({"region": ["\ud800"]}, "row 1, column region: found"),
    ],
)
def test_what_is_no_table_or_no_cell_is_a_fault(table: object, words: str) -> None:
    with pytest.raises(InstanceError) as caught:
        mast_opt.from_tables("data-placement", {"gpu_supply": table})
    assert words in str(caught.value)


def test_missing_values_of_each_library_are_empty_cells() -> None:
    problem = small("data-placement")
    tables: dict[str, Any] = dict(mast_opt.to_tables(problem))
    count = len(tables["regions"])
    limits = [5.0, *[None] * (count - 1)]
    frames = [
        pandas_frame(tables["regions"]).assign(ingress_tb_per_day=limits),  # None becomes NaN here
        pandas_frame(tables["regions"]).assign(ingress_tb_per_day=pd.array(limits, "Float64")),
        {**tables["regions"].to_dict(as_series=False), "ingress_tb_per_day": limits},
        {
            **tables["regions"].to_dict(as_series=False),
            "ingress_tb_per_day": np.ma.masked_array([5.0] * count, [False, *[True] * (count - 1)]),
        },
    ]
    for frame in frames:
        read = mast_opt.from_tables("data-placement", tables | {"regions": frame}, **header_of(problem))
        back = mast_opt.to_tables(read)["regions"]["ingress_tb_per_day"].to_list()
        assert back == limits


def test_labels_may_be_numbers_and_categories() -> None:
    problem = mast_opt.from_tables(
        "server-assignment",
        {
            "servers": pd.DataFrame(
                {
                    "server": [1, 2],
                    "type": pd.Categorical(["c1", "c1"]),
                    "rack": [7, 7],
                    "switchboard": np.array(["a", "b"]),
                    "datacenter": ["dc", "dc"],
                    "in_use": np.array([True, False]),
                }
            ),
            "reservations": {"reservation": ["web"], "rru": [np.float32(0.1)]},
            "values": {"reservation": ["web"], "type": ["c1"], "rru": [1]},
        },
    )
    assert problem.servers.labels == ("1", "2")
    assert mast_opt.to_tables(problem)["reservations"]["rru"].to_list() == [0.1]


def test_nothing_given_is_shared_or_changed() -> None:
    problem = small("task-reassignment")
    tables: dict[str, Any] = dict(mast_opt.to_tables(problem))
    capacity = tables["capacities"]["capacity"].to_numpy().copy()
    tables["capacities"] = {**tables["capacities"].to_dict(as_series=False), "capacity": capacity}
    made = mast_opt.from_tables("task-reassignment", tables, **header_of(problem))
    before = mast_opt.checksum(made)
    capacity += 1
    assert mast_opt.checksum(made) == before == mast_opt.checksum(problem)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(UsageError, match="tables is a list"):
        mast_opt.from_tables("data-placement", [])  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="no kind of problem called 'data'"):
        mast_opt.from_tables("data", {})
    with pytest.raises(UsageError, match="no argument 'rule'"):
        mast_opt.from_tables("data-placement", {}, rule={})  # type: ignore[call-overload]
    with pytest.raises(InstanceError, match=r"from_tables: rules.remote_reads: found 'never'"):
        mast_opt.from_tables("data-placement", {}, rules={"remote_reads": "never"})
    with pytest.raises(UsageError, match=r"mast_opt\.from_tables"):
        mast_opt.read({"regions": []})  # type: ignore[arg-type]


def test_plans_are_checked_against_the_problem() -> None:
    problem, other = small("task-reassignment"), small("data-placement")
    with pytest.raises(PlanError, match=r"assignments: expected this table"):
        mast_opt.plan_from_tables(problem, {})
    first = mast_opt.to_tables(problem)["processes"].select("process").head(1)
    elsewhere = {"assignments": first.with_columns(machine=pl.lit("moon"))}
    with pytest.raises(
        PlanError, match=r"assignments, row 1, column machine: found 'moon'; expected a label listed in"
    ):
        mast_opt.plan_from_tables(problem, elsewhere)
    plan = kind_named("task-reassignment").analysis.current_plan(problem)
    with pytest.raises(UsageError, match="a plan for data-placement"):
        mast_opt.to_tables(other, plan)
