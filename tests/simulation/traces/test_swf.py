"""Logs in the Standard Workload Format: what is read, what is said, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from mast_opt.core.errors import SourceError, UsageError
from mast_opt.live.simulation.traces.swf import NAMES, SWF, UNREAD
from mast_opt.live.simulation.traces.trace import JobTrace, trace_from_tables
from mast_opt.planner.importers.notices import with_warnings

HEAD = ("; Computer: A machine", "; MaxNodes: 4", "; MaxProcs: 16", "; UnixStartTime: 1000000000", "; Note: x: y")


def line(job: int, **known: float) -> str:
    """A line; what is not given is −1."""
    given = {name.replace("_", " "): value for name, value in known.items()} | {"job number": job}
    assert given.keys() <= set(NAMES)
    return " ".join(f"{given.get(name, -1):g}" for name in NAMES)


def imported(folder: Path, *lines: str, head: tuple[str, ...] = HEAD, **given: Any) -> tuple[JobTrace, list[str]]:
    (folder / "log.swf.gz").write_bytes(gzip.compress("\n".join([*head, "", *lines, ""]).encode()))
    found, warned = with_warnings(lambda: SWF.run([folder / "log.swf.gz"], given, 0))
    return trace_from_tables(found.name, found.provenance, found.tables), [str(one) for one in warned]


def job(number: int, submit: float, run: float, processors: int, status: int = 1, **more: float) -> str:
    known = {"submit_time": submit, "run_time": run, "allocated_processors": processors, "status": status}
    return line(number, **{**known, **more})


def test_a_log(tmp_path: Path) -> None:
    trace, warned = imported(
        tmp_path,
        job(1, 10, 100, 4, user=7, group=2, application=3),
        job(2, 20.5, 60, 12, status=0, user=8),
        job(3, 30, 60, 6),
        job(4, 40, 0, 1),
        job(5, 50, -1, 4),
        job(6, 60, 0, 4, status=5),
        job(7, 70, 30, 4, status=5),
        line(8, submit_time=80, run_time=5, requested_processors=3, status=1),
    )
    jobs = trace.submissions
    assert warned == []
    assert jobs.labels == ("1", "2", "3", "4", "7", "8")
    assert jobs.submitted_ms.tolist() == [0, 10_500, 20_000, 30_000, 60_000, 70_000]
    assert jobs.duration_ms.tolist() == [100_000, 60_000, 60_000, 1, 30_000, 5_000]
    assert list(zip(jobs.tasks.tolist(), jobs.cpu_mcores.tolist(), strict=True)) == [
        (1, 4000), (3, 4000), (3, 2000), (1, 1000), (1, 4000), (1, 3000),
    ]  # fmt: skip
    assert (jobs.tenant[0], jobs.workload[0], jobs.tenant[2]) == ("user-7", "app-3", "")
    assert [(server.gpus, server.cpu_mcores) for server in trace.servers] == [(0, 4000)] * 4
    assert "2 that never ran" in trace.provenance
    assert "A machine" in trace.provenance
    assert "1000000000" in trace.provenance


def test_settings(tmp_path: Path) -> None:
    lines = (job(1, 0, 100, 4, requested_processors=8, group=2), job(2, 0, 100, 3))
    trace, _ = imported(tmp_path, *lines, sizes="requested", become="gpus", tenant="group", name="x")
    assert trace.name == "x"
    assert trace.submissions.tasks.tolist() == [2, 1]
    assert trace.submissions.mgpu.tolist() == [4000, 3000]
    assert trace.submissions.tenant == ("group-2", "")
    assert sum(server.gpus for server in trace.servers) == 16
    trace, _ = imported(tmp_path, *lines, head=(), nodes="3", processors="7")
    assert sorted(server.cpu_mcores for server in trace.servers) == [2000, 2000, 3000]
    wrongs: tuple[dict[str, Any], ...] = ({"sizes": "all"}, {"become": "tpus"}, {"tenant": "x"}, {"nodes": "-1"})
    for wrong in wrongs:
        with pytest.raises(UsageError, match="expected"):
            imported(tmp_path, *lines, **wrong)


def test_memory_is_of_each_processor(tmp_path: Path) -> None:
    lines = (job(1, 0, 100, 4, requested_memory=2048), job(2, 0, 100, 2, used_memory=1000), job(3, 0, 100, 2))
    trace, warned = imported(tmp_path, *lines, head=(*HEAD, "; MaxMemory: 1048576"))
    assert trace.submissions.memory_mib.tolist() == [8, 2, 0]
    assert {server.memory_mib for server in trace.servers} == {1024}
    assert warned == []
    trace, warned = imported(tmp_path, *lines)
    assert not trace.submissions.memory_mib.any()
    assert "MaxMemory" in warned[0]


def test_parts_of_a_job_count_once(tmp_path: Path) -> None:
    lines = (job(1, 0, 30, 4), job(1, 0, 10, 4, status=2), job(1, 0, 20, 4, status=3), job(2, 5, 9, 1, status=4))
    trace, warned = imported(tmp_path, *lines)
    assert (trace.submissions.labels, trace.submissions.duration_ms.tolist()) == (("1",), [30_000])
    assert len(warned) == 2
    assert "part of a job" in warned[0]
    assert "'2': this job has lines for its parts and none for the whole" in warned[1]


@pytest.mark.parametrize("name", [field.name for field in UNREAD])
def test_what_is_not_read_is_said(tmp_path: Path, name: str) -> None:
    lines = (
        job(1, 0, 30, 4),
        job(2, 0, 30, 4, **{name.replace(" ", "_"): 3}),
        job(3, 1, 30, 4, **{name.replace(" ", "_"): 5}),
    )
    _, warned = imported(tmp_path, *lines)
    assert len(warned) == 1
    assert f"column {name}: " in warned[0]
    assert "and 1 more like it" in warned[0]


def test_odd_statuses_and_orders_are_said(tmp_path: Path) -> None:
    _, warned = imported(tmp_path, job(1, 9, 30, 4, status=6), job(2, 0, 30, 4))
    assert "'6': this status is not in the definition" in warned[0]
    assert "not in the order of submit times" in warned[1]


@pytest.mark.parametrize(
    ("lines", "head", "words"),
    [
        (("1 2 3",), HEAD, "row 7: found '1 2 3'; expected 18 numbers"),
        ((job(1, 0, 1, 1) + " 7",), HEAD, "expected 18 numbers"),
        ((job(1, 0, 1, 1).replace("-1", "x", 1),), HEAD, "expected 18 numbers"),
        ((job(1, -1, 1, 1),), HEAD, "row 7, column submit time: found '-1'"),
        ((job(1, 0, -5, 1),), HEAD, "column run time: found '-5'"),
        ((line(1, submit_time=0, run_time=1, allocated_processors=1.5),), HEAD, "processors: found '1.5'"),
        ((job(1, 0, 1, 1), job(1, 0, 1, 1)), HEAD, "row 7, column job number: found '1'; expected each job once"),
        ((job(1, 0, 1, 1),), (), "a comment MaxNodes or MaxProcs"),
        ((job(1, 0, 1, 1),), ("; MaxNodes: many",), "column MaxNodes: found 'many'"),
        ((job(1, 0, -1, 1),), HEAD, "at least one job with a run time"),
        ((), HEAD, "at least one line with a job"),
    ],
)  # fmt: skip
def test_faults(tmp_path: Path, lines: tuple[str, ...], head: tuple[str, ...], words: str) -> None:
    with pytest.raises(SourceError) as raised:
        imported(tmp_path, *lines, head=head)
    assert words in str(raised.value)
