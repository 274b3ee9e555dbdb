"""Targets of the fuzzer: job traces, and logs of events with what is made of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.event_log import log_lines, read_log
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.simulation.traces.fit import warnings_of
from mast_opt.live.simulation.traces.importers import TRACE_IMPORTERS
from mast_opt.live.simulation.traces.trace import read_trace, trace_from_tables
from mast_opt.problems.job_placement.live_fleet.types import Share
from tests.fuzz.common import INSTANCES, texts
from tests.simulation.traces import samples

TRACE = INSTANCES / "traces/philly-small"
CHEAP_JOBS = 1000
SOURCES = (*samples.INPUTS, "sacct-json")
"""Importers; the last one a second time, with the other form of its input."""


def make_trace(form: str, folder: Path) -> None:
    (folder / "t").mkdir()
    for path in TRACE.iterdir():
        if path.suffix == ".csv" and form == "parquet":
            pl.read_csv(path).write_parquet(folder / "t" / f"{path.stem}.parquet")
        elif path.suffix in (".csv", ".toml"):
            shutil.copy(path, folder / "t")


def read_trace_folder(folder: Path) -> None:
    read_trace(folder / "t")


def make_sources(importer: str, folder: Path) -> None:
    for name in inputs_of(importer):
        (folder / name).write_bytes(samples.content(name))


def read_sources(importer: str, folder: Path) -> None:
    name = importer.removesuffix("-json")
    paths = [folder / one for one in inputs_of(importer)]
    found = TRACE_IMPORTERS[name].run(paths, samples.GIVEN.get(name, {}), 0)
    trace = trace_from_tables(found.name, found.provenance, found.tables)
    if len(trace.submissions) <= CHEAP_JOBS:
        [str(warning) for warning in warnings_of(trace)]


def inputs_of(importer: str) -> tuple[str, ...]:
    return ("sacct.json", "sinfo.txt") if importer == "sacct-json" else samples.INPUTS[importer]


def make_event_log(folder: Path) -> None:
    spec = JobSpec(tier=1, mgpu=2000, gpu_types={"H100": 2000}, datasets=("logs",), preemptible=True)
    share = Share("s1", 1, {0: 1000, 1: 1000})
    events = (
        ev.ServerUp("s1", "east", "east-1", "rack-1", "H100", 8, 96_000, 1024),
        ev.Submitted("a", spec),
        ev.Bound("a", "east"),
        ev.Placed("a", 1, "east", "east-1", (share,), (), (None, 0.0, 0, 0, 0.0, 0.5, "east", "east-1", "H100")),
        ev.Started("a", 1),
        ev.StopAsked("a", 1, "for b"),
        ev.Stopped("a", 1, 10, 5),
        ev.QuotaSet("ads", None),
        ev.Refused("a", "no room", "in-use"),
        ev.StorageSet("east", 10),
        ev.DatasetCreated("logs", 4, ("east",), "ads"),
        ev.SolveAsked("data", "sum"),
        ev.SolveEnded("data", "sum", "FEASIBLE", "plan", 1.5, 2.0),
        ev.PlanAdopted("data", "plan", (), (ev.PlanStep("copy", "logs", "west", "east"),), {0: 0.5}),
        ev.CopyAsked("logs", "east", "west", 4),
        ev.CopyEnded("logs", "west"),
        ev.MoveAsked("s1", "east-2"),
        ev.ServerMoved("s1", "east", "east-2"),
    )
    log = [ev.Stored(at + 1, 10 * at, event) for at, event in enumerate(events)]
    texts(folder, {"events.jsonl": "".join(log_lines(log, len(log)))})


def read_event_log(folder: Path) -> None:
    lines = (folder / "events.jsonl").read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    [str(violation) for violation in check_log(list(read_log(lines)))]
