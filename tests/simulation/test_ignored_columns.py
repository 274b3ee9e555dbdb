"""Columns of submissions that a run reads: what a policy claims is proved by what happens without the column."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xlsxwriter

import mast_opt
from mast_opt.core.errors import InstanceWarning
from mast_opt.core.quota_tree import Quota
from mast_opt.core.quotas import Quotas
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.speeds import Speeds
from mast_opt.live.simulation.kernel import POLICIES as ORDER_ONLY
from mast_opt.live.simulation.order_only import REFUSED
from mast_opt.live.simulation.run import policy_names, run_trace, unread
from mast_opt.live.simulation.traces.fit import OPTIONAL
from mast_opt.live.simulation.traces.schema import SUBMISSIONS
from mast_opt.live.simulation.traces.surroundings import Happening, Surroundings
from mast_opt.live.simulation.traces.trace import JobTrace, Submissions
from mast_opt.problems.job_placement.live_fleet.types import Server
from mast_opt.problems.kind.schema import ColumnType

JOBS = 14
SEEDS = 20
ALWAYS = {"duration_s", "steps", "limit_s"}
"""What a run needs, whatever decides."""
NO_OCCASION = {
    **dict.fromkeys(("fifo", "sjf"), REFUSED | {"checkpoint_s", "restart_s"}),
    **dict.fromkeys(("srtf", "las"), REFUSED),
    "allox": {"within", "prefer"},
}
"""Policy → columns that it would look at: it stops no job, refuses traces that state them, or places single GPUs."""
CASES: list[tuple[str, dict[str, str]]] = [
    *((policy, {}) for policy in policy_names()),
    ("mast", {"bind": "home"}),
    ("mast", {"scope": "region"}),
    ("federated", {"rule": "home"}),
]
OUTAGES = [(at, what, name) for at, what in ((1, "server_down"), (2, "server_up")) for name in ("a0", "a1", "b1", "b2")]
"""Second of each outage in thousands, what happens, and the server."""
QUICK = [("fifo", {}), ("srtf", {}), ("mast", {}), ("federated", {"rule": "home"}), ("pai", {})]
"""Cases of the first tier; the others solve a program for every round, or differ little from these."""


@lru_cache(maxsize=64)
def drawn(seed: int, *, single: bool = False, plain: bool = False) -> JobTrace:
    """A trace in which every column is stated and GPUs are short.

    Args:
        single: of jobs of one GPU.
        plain: of what order-only policies take.
    """
    rng = np.random.default_rng(seed)

    def of(*values: int) -> Any:
        return rng.choice(values, JOBS).astype(np.int64)

    def texts(*values: str) -> tuple[str, ...]:
        return tuple(str(value) for value in rng.choice(values, JOBS))

    tasks, mgpu = (of(1), of(1000)) if single else (of(1, 1, 2), of(1000, 2000, 4000))
    models = texts("m", "n") if seed % 2 and not plain else ()
    needs = {job: {"h100": int(mgpu[job]), "t4": int(mgpu[job])} for job in range(JOBS)} if models else {}
    servers = tuple(
        Server(
            f"{region}{number}",
            region,
            f"c-{region}" if plain else f"c{number % 2}-{region}",
            f"c{number % 2}-{region}/k{number // 2}",
            "h100" if plain or number % 2 else "t4",
            4,
            0 if plain else 8000,
            0 if plain else 8192,
        )
        for region in ("a", "b")
        for number in range(2 if plain else 4)
    )
    submissions = Submissions(
        labels=tuple(f"j{job}" for job in range(JOBS)),
        submitted_ms=np.sort(rng.integers(0, 4_000_000, JOBS)),
        duration_ms=rng.integers(1, 4_000_000, JOBS),
        limit_ms=np.full(JOBS, -1, np.int64),
        tier=of(0, 1, 2),
        tasks=tasks,
        mgpu=mgpu,
        cpu_mcores=of(0) if plain else of(0, 1000, 4000),
        memory_mib=of(0) if plain else of(0, 1024, 4096),
        within=of(1) if plain else of(0, 1, 2),
        prefer=of(0, 1, 2),
        preemptible=rng.random(JOBS) < 0.6,
        checkpoint_ms=of(0, 60_000, 3_600_000),
        restart_ms=of(0, 60_000),
        min_tasks=np.ones(JOBS, np.int64),
        max_tasks=tasks * 2,
        tenant=texts("x", "y", ""),
        workload=texts("w", "v", ""),
        namespace=texts("s", "u", ""),
        home_region=texts("a", "b"),
        gpu_types=needs,
        datasets={},
        model=models,
    )
    speeds = {
        (model, kind, size): int(rng.integers(1, 9)) for model in "mn" for kind in ("h100", "t4") for size in (1, 2)
    }
    fails = [Happening(at * 1_000_000, what, name) for at, what, name in OUTAGES]
    return JobTrace(
        "drawn",
        ("a", "b"),
        servers,
        submissions,
        {},
        Quotas({} if plain else {"x": {None: Quota(int(rng.integers(0, 9)) * 1000)}}),
        surroundings=Surroundings(happenings=tuple(fails) if seed % 3 == 0 and not plain else ()),
        speeds=Speeds(speeds, {}),
    )


def without(trace: JobTrace, name: str) -> JobTrace:
    """The trace in which every cell of a column is empty."""
    column, jobs = SUBMISSIONS.column(name), trace.submissions
    empty: Any = np.full(JOBS, -1 if column.default is None else column.default, np.int64)
    if name == "preemptible":
        empty = jobs.tier > 0
    elif column.type is ColumnType.LABEL:
        empty = () if name == "model" else ("",) * JOBS
    return replace(trace, submissions=replace(jobs, **{column.attribute: empty}))


def happens(trace: JobTrace, policy: str, params: dict[str, str]) -> list[tuple[int, ev.Event]] | None:
    """What follows from the submissions; None where the policy refuses them."""
    try:
        run = run_trace(trace, policy, params)
    except mast_opt.MastOptError:
        return None
    return [(stored.at_ms, stored.event) for stored in run.events() if not isinstance(stored.event, ev.Submitted)]


def matters(name: str, policy: str, params: dict[str, str], seeds: range) -> bool:
    """Whether the column changes what happens on one of the drawn traces."""
    single, plain = policy == "allox", policy in ORDER_ONLY
    traces = (drawn(seed, single=single, plain=plain) for seed in seeds)
    return any(happens(trace, policy, params) != happens(without(trace, name), policy, params) for trace in traces)


@pytest.mark.parametrize(
    ("policy", "params"),
    [pytest.param(*case, marks=pytest.mark.second_tier if case not in QUICK else ()) for case in CASES],
)
def test_a_policy_reads_what_it_claims(policy: str, params: dict[str, str]) -> None:
    plain = policy in ORDER_ONLY
    trace = drawn(1, single=policy == "allox", plain=plain)
    unread = {warning.column for warning in run_trace(trace, policy, params).warnings if warning.file == "submissions"}
    for column in OPTIONAL:
        name = column.name
        if name not in ALWAYS | NO_OCCASION.get(policy, set()):
            assert matters(name, policy, params, range(SEEDS if name not in unread else 3)) == (name not in unread), (
                name
            )


def test_warnings_name_the_column_and_its_first_value() -> None:
    trace = drawn(1)
    found = [str(warning) for warning in run_trace(trace, "pai").warnings]
    first = trace.submissions.tenant.index(next(name for name in trace.submissions.tenant if name))
    count = sum(name != "" for name in trace.submissions.tenant) - 1
    named = f"submissions, column tenant: {trace.submissions.tenant[first]!r}: pai does not look at it"
    assert f"{named} (and {count} more like it)" in found
    assert "quotas: pai does not look at it" in found
    assert not any("tenant" in text or "quotas" in text for text in map(str, run_trace(trace, "mast").warnings))
    only_defaults = without(trace, "tenant")
    assert not any(warning.column == "tenant" for warning in run_trace(only_defaults, "pai").warnings)


def test_plans_of_data_read_what_recurs() -> None:
    found = [{one.column for one in unread(drawn(0), "mast", {}, slow)} for slow in ((), ("servers",), ("data",))]
    assert found[0] == found[1] == found[2] | {"namespace", "workload"}
    assert {"min_tasks", "max_tasks", "home_region"} == found[2]


def test_python_warns_and_keeps_the_warnings() -> None:
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        found = mast_opt.simulate(drawn(0, plain=True), "fifo")
    assert {one.category for one in raised} == {InstanceWarning}
    assert [str(one.message) for one in raised] == [str(one) for one in found.warnings]
    assert {one.filename for one in raised} == {__file__}
    assert {"min_tasks", "max_tasks", "tenant"} <= {warning.column for warning in found.warnings}


def test_every_format_warns(tmp_path: Path) -> None:
    header = {"format": "mast-opt/1", "kind": "job-trace", "name": "t"}
    job = {
        "job": "a",
        "submitted_s": 0,
        "tier": 1,
        "tasks": 2,
        "gpus": 1,
        "duration_s": 9,
        "min_tasks": 1,
        "max_tasks": 4,
    }
    server = {"server": "s", "cluster": "c", "rack": "k", "gpu_type": "h100", "gpus": 8, "cpu_cores": 8, "memory_gb": 9}
    tables: dict[str, dict[str, Any]] = {
        "regions": {"region": "r"},
        "clusters": {"cluster": "c", "region": "r"},
        "servers": server,
        "submissions": job,
    }
    (tmp_path / "t.json").write_text(json.dumps({"instance": header, **{name: [row] for name, row in tables.items()}}))
    with xlsxwriter.Workbook(tmp_path / "t.xlsx") as book:
        sheet = book.add_worksheet("instance")
        for at, pair in enumerate(header.items()):
            sheet.write_row(at, 0, pair)
        for name, row in tables.items():
            sheet = book.add_worksheet(name)
            sheet.write_row(0, 0, list(row))
            sheet.write_row(1, 0, list(row.values()))
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "instance.toml").write_text("".join(f'{name} = "{value}"\n' for name, value in header.items()))
    for name, row in tables.items():
        (tmp_path / "t" / f"{name}.csv").write_text(f"{','.join(row)}\n{','.join(map(str, row.values()))}\n")
    for form in ("t", "t.json", "t.xlsx"):
        found = run_trace(mast_opt.read_trace(tmp_path / form), "mast").warnings
        assert {warning.column: warning.value for warning in found} == {"min_tasks": "1", "max_tasks": "4"}, form
