"""The same rows through every door: files, frames, builders, traces and HTTP give the same base units."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
import xlsxwriter

import mast_opt
from mast_opt.live.loop.event_log import log_lines, read_log
from mast_opt.live.loop.events import Stored, Submitted
from mast_opt.live.policies.mast import Mast
from mast_opt.live.service.requests import JOB_COLUMNS, SERVER_COLUMNS, base_units, jobs_in
from mast_opt.live.simulation.slow_runs import READS
from mast_opt.live.simulation.traces.schema import OF_A_GANG
from mast_opt.live.simulation.traces.schema import SCHEMA as TRACE
from mast_opt.live.simulation.traces.trace import read_trace
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.tables.schema import SCHEMA
from mast_opt.problems.kind.schema import Column, ColumnType
from tests.instance_rows import JobRows

pytestmark = pytest.mark.filterwarnings("ignore::mast_opt.core.errors.InstanceWarning")  # amounts far apart

Rows = dict[str, list[dict[str, Any]]]
HEADER = {"format": "mast-opt/1", "kind": "job-placement", "name": "doors"}
DOORS = ("csv", "parquet", "xlsx", "json", "frames", "builder")


@pytest.fixture(params=range(4))
def rows(request: pytest.FixtureRequest) -> Rows:
    """Servers and jobs with amounts that are finer than the base units."""
    draw = random.Random(request.param)

    def amount(most: float) -> float:
        return round(draw.uniform(0, most), draw.randrange(7))

    servers = [
        {"server": f"s{at}", "cluster": "c", "rack": "r", "gpu_type": "h100", "gpus": draw.randrange(1, 9)}
        | {"cpu_cores": amount(99), "memory_gb": amount(999)}
        for at in range(9)
    ]
    servers[0] |= {"gpus": 8, "cpu_cores": 99.99999, "memory_gb": 999.99999}
    jobs = [
        {"job": f"j{at}", "tier": draw.randrange(4), "tasks": draw.randrange(1, 5), "submitted_s": amount(9)}
        | {"gpus": draw.choice([draw.randrange(9), round(draw.random() * 0.99, 6)])}
        | {"cpu_cores": amount(9), "memory_gb": amount(99)}
        for at in range(30)
    ]
    empty = {"running": ["job", "tier", "preemptible", "gpu_hours_at_risk"], "replicas": ["dataset", "region"]}
    empty |= {"allocations": ["job", "server", "tasks", "gpus", "cpu_cores", "memory_gb"]}
    empty |= {"job_gpu_types": ["job", "gpu_type"], "job_datasets": ["job", "dataset"]}
    tables: Rows = {"regions": [{"region": "e"}], "clusters": [{"cluster": "c", "region": "e"}]}
    return tables | {"servers": servers, "jobs": jobs} | {name: [{"#": heads}] for name, heads in empty.items()}


def _frames(rows: Rows) -> dict[str, pl.DataFrame]:
    return {
        name: pl.DataFrame(
            {head: [] for head in cells[0]["#"]}, schema_overrides=dict.fromkeys(cells[0]["#"], pl.String)
        )
        if "#" in cells[0]
        else pl.DataFrame(cells)
        for name, cells in rows.items()
    }


def _through(door: str, rows: Rows, path: Path) -> JobPlacement:
    frames = _frames(rows)
    if door == "frames":
        problem: Any = mast_opt.from_tables("job-placement", frames, name="doors")
        return problem  # type: ignore[no-any-return]
    if door == "builder":
        builder = JobRows("doors").add_cluster("c", region="e")
        for row in rows["servers"]:
            builder.add_server(**row)
        for row in rows["jobs"]:
            builder.add_job(**row)
        return builder.build()
    if door == "json":
        path = path / "doors.json"
        path.write_bytes(msgspec.json.encode({"instance": HEADER} | {name: frames[name].to_dicts() for name in rows}))
    elif door == "xlsx":
        path = path / "doors.xlsx"
        book = xlsxwriter.Workbook(path)
        sheet = book.add_worksheet("instance")
        for at, pair in enumerate(HEADER.items()):
            sheet.write_row(at, 0, pair)
        for name, frame in frames.items():
            sheet = book.add_worksheet(name)
            for at, cells in enumerate([frame.columns, *frame.rows()]):
                sheet.write_row(at, 0, cells)
        book.close()
    else:
        (path / "instance.toml").write_text("\n".join(f'{key} = "{value}"' for key, value in HEADER.items()))
        for name, frame in frames.items():
            if door == "csv":
                frame.write_csv(path / f"{name}.csv")
            else:
                frame.write_parquet(path / f"{name}.parquet")
    found: Any = mast_opt.read(path)
    return found  # type: ignore[no-any-return]


def _base(column: Column, row: Mapping[str, Any]) -> int | None:
    return base_units(column, row[column.name])


@pytest.mark.parametrize("door", DOORS)
def test_files_frames_and_builders_agree_with_http(tmp_path: Path, rows: Rows, door: str) -> None:
    problem = _through(door, rows, tmp_path)
    jobs = [spec for job in rows["jobs"] for _, spec in jobs_in(_posted(job))[0]]
    assert problem.jobs.labels == tuple(row["job"] for row in rows["jobs"])
    assert problem.jobs.cpu_mcores.tolist() == [spec.cpu_mcores for spec in jobs]
    assert problem.jobs.memory_mib.tolist() == [spec.memory_mib for spec in jobs]
    assert problem.need_mgpu[:, 0].tolist() == [spec.mgpu for spec in jobs]
    servers = [[_base(column, row) for column in SERVER_COLUMNS] for row in rows["servers"]]
    assert problem.servers.supply.tolist() == servers


def _posted(job: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode({name: value for name, value in job.items() if name != "submitted_s"})


def test_a_trace_agrees_with_http(tmp_path: Path, rows: Rows) -> None:
    draw = random.Random(7)
    extra = ("duration_s", "checkpoint_s", "restart_s")
    jobs = [row | {name: round(draw.uniform(1, 99), 6) for name in extra} for row in rows["jobs"]]
    (tmp_path / "instance.toml").write_text('format = "mast-opt/1"\nkind = "job-trace"\nname = "doors"\n')
    for name, table in (("regions", rows["regions"]), ("clusters", rows["clusters"]), ("servers", rows["servers"])):
        pl.DataFrame(table).write_csv(tmp_path / f"{name}.csv")
    pl.DataFrame(jobs).write_csv(tmp_path / "submissions.csv")
    trace = read_trace(tmp_path)
    found = {name: trace.submissions.spec(at) for at, name in enumerate(trace.submissions.labels)}
    assert found == {row["job"]: jobs_in(_posted(row))[0][0][1] for row in jobs}


def test_the_log_gives_back_what_http_took(rows: Rows) -> None:
    events = [
        Stored(at, 0, Submitted(name, spec))
        for at, (name, spec) in enumerate((jobs_in(_posted(row))[0][0] for row in rows["jobs"]), start=1)
    ]
    assert list(read_log(log_lines(events))) == events


def test_what_http_leaves_out_is_what_files_leave_out(tmp_path: Path) -> None:
    job = {"job": "a", "tier": 1, "tasks": 1, "gpus": 1}
    (tmp_path / "instance.toml").write_text('format = "mast-opt/1"\nkind = "job-trace"\nname = "doors"\n')
    (tmp_path / "regions.csv").write_text("region\ne\n")
    (tmp_path / "clusters.csv").write_text("cluster,region\nc,e\n")
    (tmp_path / "servers.csv").write_text("server,cluster,rack,gpu_type,gpus,cpu_cores,memory_gb\ns,c,r,h100,8,9,9\n")
    pl.DataFrame([job | {"submitted_s": 0}]).write_csv(tmp_path / "submissions.csv")
    assert read_trace(tmp_path).submissions.spec(0) == jobs_in(msgspec.json.encode(job))[0][0][1]


def test_one_column_is_the_same_in_instances_and_traces() -> None:
    for column in JOB_COLUMNS:
        if column.type is not ColumnType.QUANTITY or column.name.endswith("_s"):
            continue
        other = SCHEMA.table("jobs").column(column.name)
        assert (column.scale, column.role) == (other.scale, other.role)
    assert TRACE.table("servers") == SCHEMA.table("servers")


def test_http_takes_no_column_that_the_live_policy_ignores() -> None:
    optional = {column.name for column in JOB_COLUMNS if not column.required} - OF_A_GANG.keys()
    assert optional <= Mast().reads.union(*READS.values())


def test_equal_requests_are_checked_once_and_others_are_not_taken_for_them() -> None:
    bodies: list[dict[str, Any]] = [
        {"gpus": 2},
        {"gpus": 2, "duration_s": 1},
        {"gpus": 2, "tenant": "t"},
        {"gpus": 2, "datasets": ["d"]},
        {"gpu_types": {"a": 1, "b": 2}},
        {"gpu_types": {"a": 2, "b": 1}},
    ]
    first = [jobs_in(msgspec.json.encode({"job": "a", **body}))[0][0][1] for body in bodies]
    again = [jobs_in(msgspec.json.encode([{"job": "b", **body}]))[0][0][1] for body in bodies]
    assert all(one is other for one, other in zip(first, again, strict=True))
    assert len({repr(one) for one in first}) == len(bodies)
    assert [one.mgpu for one in first] == [2000] * 4 + [1000] * 2
    assert [one.gpu_types for one in first[4:]] == [{"a": 1000, "b": 2000}, {"a": 2000, "b": 1000}]
