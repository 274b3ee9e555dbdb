"""What is fuzzed: for each reader, sound files, and a function that reads a folder of them.

Everything is made from the code and from committed instances, without chance, so that a case can be repeated.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import xlsxwriter

import mast_opt
from mast_opt.cli.options import parts_to_freeze
from mast_opt.planner.analysis.scenario_files import check_scenarios, happened, scenario_warnings
from mast_opt.planner.io import read_certificate, read_events, validate
from mast_opt.planner.io.certificate import write_certificate
from mast_opt.planner.io.header import FORMAT
from mast_opt.planner.io.read import kind_of_file, read_plan_of
from mast_opt.problems.registry import kind_named, kind_names, kind_of
from mast_opt.problems.server_assignment.verification.certificate import Certificate, Prices
from tests.fuzz import imports, suites, traces
from tests.fuzz.common import CHEAP_ROWS, INSTANCES, Target, generated, stored, texts, use
from tests.importers import test_gap

PLANS = {
    "data-placement": ("data_placement/residency", "data_placement/best_known/residency"),
    "job-placement": ("job_placement/tiny-victims.json", "job_placement/best_known/tiny-victims"),
    "server-assignment": ("server_assignment/repair-first", "server_assignment/best_known/repair-first"),
    "task-reassignment": ("task_reassignment/crowded-machine", "task_reassignment/best_known/crowded-machine"),
    "resource-allocation": ("resource_allocation/max-min", "resource_allocation/best_known/max-min"),
}
LABELS = {
    "data-placement": {"east": "r0", "H100": "h100", "logs": "d0"},
    "job-placement": {"east-1": "region-1-c1", "east": "region-1", "H100": "h100", "logs": "data-1"},
    "server-assignment": {"training": "q1", "gpu": "compute-1"},
    "task-reassignment": {"hall-a": "l0", "cpu": "r0"},
    "resource-allocation": {"v100": "gpu-1", "k80": "gpu-2", "bert": "job-1"},
}
"""Labels in the examples of scenarios → those of the generated instance."""
CERTIFIED = {"cloud-links": 1.0, "cloud-regions": 0.1}
"""Instances of data placement whose best-known plan has a certificate → weight."""


def targets() -> tuple[Target, ...]:
    """Every reader."""
    found = []
    for kind in kind_names():
        for form in ("csv", "parquet", "xlsx", "json"):
            make = functools.partial(_make_instance, kind, form)
            found.append(Target(f"instance-{form}-{kind}", make, _read_instance))
        for form in ("csv", "parquet", "xlsx", "json"):
            make = functools.partial(_make_plan, kind, form)
            found.append(Target(f"plan-{form}-{kind}", make, functools.partial(_read_plan, kind)))
        make, read = functools.partial(_make_scenarios, kind), functools.partial(_read_scenarios, kind)
        found.append(Target(f"scenarios-{kind}", make, read))
    return (
        *found,
        *(
            Target(f"limits-{form}", functools.partial(_make_limits, form), _read_instance, 0.5)
            for form in ("csv", "xlsx", "json")
        ),
        Target("overrides", _make_overrides, functools.partial(_read_plan, "data-placement")),
        Target("movable", _make_movable, _read_instance),
        Target("parts", _make_parts, _read_instance),
        Target("certificate", _make_certificate, _read_certificate),
        *(
            Target(
                f"certified-bound-{name}",
                functools.partial(_make_certified, name),
                functools.partial(_read_certified, name),
                weight,
            )
            for name, weight in CERTIFIED.items()
        ),
        Target("certified-bound-servers", _make_certified_servers, _read_certified_servers),
        Target("suite", suites.make_suite, suites.read_suite),
        Target("results", suites.make_results, suites.read_results),
        Target("events", _make_events, _read_events),
        *(
            Target(f"trace-{form}", functools.partial(traces.make_trace, form), traces.read_trace_folder, 0.5)
            for form in ("csv", "parquet")
        ),
        *(
            Target(
                f"import-{name}",
                functools.partial(traces.make_sources, name),
                functools.partial(traces.read_sources, name),
                0.5,
            )
            for name in traces.SOURCES
        ),
        Target("event-log", traces.make_event_log, traces.read_event_log),
        Target("freeze", lambda folder: texts(folder, {"f.csv": 'what,name\nregion,r1\nregion,"a,b"\n'}), _read_freeze),
        Target("import-gap", lambda folder: texts(folder, {"i.gap": test_gap.HAND}), imports.read_gap),
        Target("import-gavel", imports.make_gavel, imports.read_gavel),
        Target("import-tables", imports.make_mapped, imports.read_mapped),
        Target("import-roadef", imports.make_roadef, imports.read_roadef),
        Target("import-cloud-regions", imports.make_cloud_regions, imports.read_cloud_regions, 0.5),
        Target("import-gpu-fleet", imports.make_gpu_fleet, imports.read_gpu_fleet, 0.5),
    )


def _make_instance(kind: str, form: str, folder: Path) -> None:
    mast_opt.write(generated(kind), folder / (f"i.{form}" if form in ("xlsx", "json") else "i"), form)


def _read_instance(folder: Path) -> None:
    (path,) = folder.iterdir()
    kind_of_file(path)
    reading = validate(path)
    [str(note) for note in (*reading.notes, *reading.warnings)]
    if sum(reading.rows.values()) <= CHEAP_ROWS:
        use(reading.problem)


def _make_limits(form: str, folder: Path) -> None:
    limits = {"copied_tb": 12, "moved_work": "1/3", "unserved": 0, "moves": 5}
    problem = generated("data-placement").with_limits(limits)
    mast_opt.write(problem, folder / (f"i.{form}" if form in ("xlsx", "json") else "i"), form)


def _make_movable(folder: Path) -> None:
    problem = generated("job-placement")
    mast_opt.write(problem, folder / "i", "csv")
    running = pl.read_csv(folder / "i" / "running.csv")["job"].to_list()
    rows = "".join(f"{job},{at + 0.5}\n" for at, job in enumerate(running))
    (folder / "i" / "movable.csv").write_text("job,restart_gpu_hours\n" + rows)
    (folder / "i" / "move_limits.csv").write_text("limit,most\nmoves,3\nrestart_gpu_hours,9.5\n")


def _make_parts(folder: Path) -> None:
    problem = generated("job-placement")
    mast_opt.write(problem, folder / "i", "csv")
    jobs = pl.read_csv(folder / "i" / "jobs.csv")["job"].to_list()[:3]
    rows = "".join(f"{job},{part},2,{gpus},1.5,4,rack\n" for job in jobs for part, gpus in (("a", 1), ("b", 0)))
    (folder / "i" / "job_parts.csv").write_text("job,part,tasks,gpus,cpu_cores,memory_gb,within\n" + rows)
    types = pl.read_csv(folder / "i" / "job_gpu_types.csv").filter(~pl.col("job").is_in(jobs))
    types.write_csv(folder / "i" / "job_gpu_types.csv")


def _make_overrides(folder: Path) -> None:
    _make_plan("data-placement", "csv", folder)
    with (folder / "p" / "plan.toml").open("a") as file:
        file.write("\n[overrides]\norder = []\n")
        file.write('[overrides.weights]\nstorage = 2.5\n[overrides.limits]\ncopied_tb = 12\nmoved_work = "1/3"\n')


def _make_plan(kind: str, form: str, folder: Path) -> None:
    source = INSTANCES / PLANS[kind][1]
    tables = {table.name: source / f"{table.name}.csv" for table in kind_named(kind).tables.plan_schema.tables}
    frames = {name: pl.read_csv(file) for name, file in tables.items() if file.exists()}
    if form == "csv":
        shutil.copytree(source, folder / "p", ignore=shutil.ignore_patterns("certificate.npz", "events.jsonl"))
    elif form == "parquet":
        (folder / "p").mkdir()
        shutil.copy(source / "plan.toml", folder / "p")
        for name, frame in frames.items():
            frame.write_parquet(folder / "p" / f"{name}.parquet")
    elif form == "xlsx":
        _make_plan_book(kind, frames, folder / "p.xlsx")
    else:
        content = {
            "plan": {"format": FORMAT, "kind": kind},
            **{name: frame.to_dicts() for name, frame in frames.items()},
        }
        (folder / "p.json").write_text(json.dumps(content))


def _make_plan_book(kind: str, frames: dict[str, pl.DataFrame], path: Path) -> None:
    with xlsxwriter.Workbook(path) as book:
        header = book.add_worksheet("plan")
        for row, cells in enumerate([("key", "value"), ("format", FORMAT), ("kind", kind)]):
            header.write_row(row, 0, cells)
        for name, frame in frames.items():
            sheet = book.add_worksheet(name)
            sheet.write_row(0, 0, frame.columns)
            for row, values in enumerate(frame.iter_rows(), start=1):
                sheet.write_row(row, 0, values)


def _read_plan(kind: str, folder: Path) -> None:
    (path,) = folder.iterdir()
    problem = stored(PLANS[kind][0])
    reading = read_plan_of(problem, path)
    verdict = kind_of(problem).verification.verify(problem, reading.plan)
    [str(violation) for violation in verdict.violations]


def _make_scenarios(kind: str, folder: Path) -> None:
    changes = kind_named(kind).analysis.hooks().changes
    lines = [f'[[scenario]]\nname = "{key}"\nweight = 2\n{change.example}\n' for key, change in changes.items()]
    everything = "\n".join(change.example for change in changes.values())
    text = "\n".join([*lines, f'[[scenario]]\nname = "all"\n{everything}\n'])
    labels = LABELS[kind]
    text = re.sub(r"\b(?:" + "|".join(labels) + r")\b(?!_)", lambda found: labels[found[0]], text)
    texts(folder, {"s.toml": text})


def _read_scenarios(kind: str, folder: Path) -> None:
    scenarios = mast_opt.read_scenarios(folder / "s.toml")
    check_scenarios(kind_named(kind), scenarios)
    scenario_warnings(kind_named(kind), scenarios, "s.toml")
    for scenario in scenarios:
        try:
            happened(kind_named(kind), generated(kind), scenario)
        except mast_opt.MastOptError as error:
            str(error)


def _make_certificate(folder: Path) -> None:
    arrays: dict[str, Any] = {
        "a": np.arange(9),
        "b": np.zeros((3, 2)),
        "c": np.array(["x", "yz"]),
        "d": np.array([True]),
    }
    np.savez_compressed(folder / "certificate.npz", **arrays)


def _read_certificate(folder: Path) -> None:
    read_certificate(folder)


def _make_certified(name: str, folder: Path) -> None:
    shutil.copy(INSTANCES / "data_placement/best_known" / name / "certificate.npz", folder)


def _read_certified(name: str, folder: Path) -> None:
    _check_certificate(stored(f"data_placement/{name}"), folder)


def _make_certified_servers(folder: Path) -> None:
    problem = generated("server-assignment")
    affinities = len(problem.affinities)
    prices = Prices(
        once=np.full(len(problem.stocks), 0.01),
        survive=np.full(len(problem.reservations), 1e-6),
        loss=np.zeros(len(problem.switchboards)),
        affinity_most=np.zeros(affinities),
        affinity_least=np.zeros(affinities),
    )
    certificate = replace(
        Certificate.in_fractions(prices),
        other_of=np.array([0, 1]),
        other_survive=np.zeros(2),
    )
    write_certificate(folder, certificate.arrays())


def _read_certified_servers(folder: Path) -> None:
    _check_certificate(generated("server-assignment"), folder)


def _check_certificate(problem: Any, folder: Path) -> None:
    arrays = read_certificate(folder)
    bound = kind_of(problem).verification.certified_bound
    assert bound is not None
    if arrays is not None:
        bound(problem, arrays)


def _make_events(folder: Path) -> None:
    event = '{"elapsed_s": 1.0, "incumbent": 2, "bound": 0.5, "gap": 0.75, "stage": null, "compiling": false}\n'
    texts(folder, {"events.jsonl": event * 5})


def _read_events(folder: Path) -> None:
    read_events(folder)


def _read_freeze(folder: Path) -> None:
    parts_to_freeze([str(folder / "f.csv")])
