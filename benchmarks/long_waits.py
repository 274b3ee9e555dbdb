"""Waits of gangs with and without reservations: a month of jobs on 192 GPUs, and clusters of the Philly trace.

    python -m benchmarks.long_waits month --seeds 1 2 3 4 5 6 --out benchmarks/data/long-waits.jsonl
    python -m benchmarks.long_waits philly --out benchmarks/data/long-waits.jsonl
    python -m benchmarks.long_waits month --seeds 1 --limits round x5 --policies foretold --out ROWS
    python -m benchmarks.long_waits page --out benchmarks/data/long-waits.jsonl
    python -m benchmarks.long_waits repeat --out benchmarks/data/long-waits.jsonl

``repeat`` runs all rows of the file again, compares what it finds, and ends with an error if a figure is another one.

The month: 24 servers of 8 GPUs in two partitions, 6,000 jobs of 1 to 32 GPUs that come at random, run times that are
lognormal with a median of 1.5 hours and end at 5 days; times of arrival are stretched until each partition has the
load that is asked for. Philly: the virtual clusters with at least five jobs of 16 GPUs or more, their arrivals as they
were, with as few servers as give that load or hold the largest job. A run that is in the file is not run again.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.study_pages import with_tables
from mast_opt.core.quotas import Quotas
from mast_opt.live.loop import events as ev
from mast_opt.live.simulation.run import run_trace
from mast_opt.live.simulation.traces.trace import JobTrace, Submissions, read_trace
from mast_opt.problems.job_placement.live_fleet.types import Server
from mast_opt.problems.job_placement.units import LEVELS, WHOLE

ROOT = Path(__file__).parents[1]
PHILLY = ROOT / "instances" / "traces" / "philly"
PAGE = ROOT / "docs" / "reservations.md"
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
PARTITIONS = {"train": ("h100", 16, 0.6), "batch": ("a100", 8, 0.4)}
"""Name → GPU type, servers, share of the jobs."""
ROUND_MS = tuple(hours * HOUR_MS // 4 for hours in (1, 4, 16, 48, 96, 192, 480))
"""Limits that people type: 15 min, 1, 4, 12 h, 1, 2, 5 d."""
LIMITS = {
    "exact": "exact",
    "x2": "twice too long",
    "x5": "five times too long",
    "round": "round",
    "half": "round, half of the jobs without",
    "none": "none",
}
GANGS = "above 16"
MONTH = {
    ("fifo", "none"): "`fifo`",
    ("pass", "none"): "`mast`, `reserve=false`",
    ("reserve", "round"): "`mast`, round limits",
    ("reserve", "exact"): "`mast`, exact limits",
    ("reserve", "x5"): "`mast`, limits five times too long",
    ("shortest", "round"): "`backfill=shortest-limit`, round limits",
    ("hold", "none"): "`without_limits=hold`, no limits",
}
"""(policy, limits) → row of the table, in words."""
SAID = {"promised": "promised", "usually_by": "usually by", "expected": "expected"}
POLICIES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "fifo": ("fifo", {}),
    "pass": ("mast", {"reserve": "false"}),
    "reserve": ("mast", {}),
    "shortest": ("mast", {"backfill": "shortest-limit"}),
    "hold": ("mast", {"without_limits": "hold"}),
    "foretold": ("mast", {"estimates": "100"}),
}
Job = tuple[int, int, int, int, str]
"""Submission, tasks, GPUs of a task, duration (both in ms), region."""
Row = dict[str, Any]


def month(seed: int, load: float) -> tuple[list[Job], tuple[Server, ...]]:
    """A month's jobs and servers."""
    rng = random.Random(seed)
    names = list(PARTITIONS)
    at_s, jobs = 0.0, list[Job]()
    for _ in range(6000):
        at_s += rng.expovariate(1 / 440)
        region = rng.choices(names, [share for _, _, share in PARTITIONS.values()])[0]
        tasks = rng.choices([1, 2, 4], [0.85, 0.1, 0.05])[0]
        gpus = 8 if tasks > 1 else rng.choice([1, 1, 2, 4, 8])
        duration_s = min(5 * 86_400, max(1, int(rng.lognormvariate(8.6, 1.5))))
        jobs.append((int(at_s * 1000), tasks, gpus, duration_s * 1000, region))
    servers = tuple(
        Server(f"{region}{n:02d}", region, region, region, kind, 8, 0, 0)
        for region, (kind, count, _) in PARTITIONS.items()
        for n in range(count)
    )
    stretched = list[Job]()
    for region, (_, count, _) in PARTITIONS.items():
        own = [job for job in jobs if job[4] == region]
        span = own[-1][0] - own[0][0]
        factor = sum(tasks * gpus * duration for _, tasks, gpus, duration, _ in own) / (count * 8 * span) / load
        stretched += [(int(job[0] * factor), *job[1:]) for job in own]
    return sorted(stretched, key=lambda job: job[0]), servers


def philly(load: float) -> Iterable[tuple[str, list[Job], tuple[Server, ...]]]:
    """The virtual clusters of Philly with gangs, each cut to a load."""
    trace = read_trace(PHILLY)
    own = trace.submissions
    for region in trace.regions:
        rows = [j for j in range(len(own)) if own.home_region[j] == region]
        gangs = own.gang_mgpu[rows] // WHOLE
        if (gangs >= 16).sum() < 5:
            continue
        span = int(own.submitted_ms[rows[-1]] - own.submitted_ms[rows[0]])
        work = int((own.duration_ms[rows] * gangs).sum())
        count = max(math.ceil(work / span / load / 8), math.ceil(int(gangs.max()) / 8))
        jobs = list[Job]()
        for j, size in zip(rows, gangs.tolist(), strict=True):
            tasks = max(1, math.ceil(size / 8))
            jobs.append((int(own.submitted_ms[j]), tasks, min(size, 8), int(own.duration_ms[j]), region))
        yield region, jobs, tuple(Server(f"{region}/{n}", region, region, region, "gpu", 8, 0, 0) for n in range(count))


def limits_of(durations_ms: Sequence[int], kind: str, seed: int) -> list[int]:
    """Time limits of jobs, -1 for none: exact, so many times too long, round, round for half of them, or none."""
    rng = random.Random(f"limits {seed}")
    found = list[int]()
    for duration in durations_ms:
        at = next((at for at, limit in enumerate(ROUND_MS) if limit >= duration), len(ROUND_MS) - 1)
        rounded = max(duration, ROUND_MS[min(len(ROUND_MS) - 1, at + rng.choice([0, 1, 2]))])
        without = rng.random() < 0.5
        limit = {"exact": duration, "x2": 2 * duration, "x5": 5 * duration, "none": -1, "round": rounded}.get(kind)
        found.append((-1 if without else rounded) if limit is None else limit)
    return found


def trace_of(name: str, jobs: Sequence[Job], servers: tuple[Server, ...], limits: Sequence[int]) -> JobTrace:
    """The trace of these jobs."""
    number = len(jobs)
    kinds = {server.region: server.gpu_type for server in servers}

    def same(value: int) -> Any:
        return np.full(number, value, np.int64)

    none = ("",) * number
    submissions = Submissions(
        labels=tuple(f"j{j}" for j in range(number)),
        submitted_ms=np.array([job[0] for job in jobs], np.int64),
        duration_ms=np.array([job[3] for job in jobs], np.int64),
        limit_ms=np.array(limits, np.int64),
        tier=same(1),
        tasks=np.array([job[1] for job in jobs], np.int64),
        mgpu=np.array([job[2] * WHOLE for job in jobs], np.int64),
        cpu_mcores=same(0),
        memory_mib=same(0),
        within=same(LEVELS.index("cluster")),
        prefer=same(0),
        preemptible=np.zeros(number, np.bool_),
        checkpoint_ms=same(HOUR_MS),
        restart_ms=same(60_000),
        min_tasks=same(-1),
        max_tasks=same(-1),
        tenant=none,
        workload=none,
        namespace=none,
        home_region=tuple(job[4] for job in jobs),
        gpu_types={j: {kinds[job[4]]: job[2] * WHOLE} for j, job in enumerate(jobs)},
        datasets={},
    )
    return JobTrace(name, tuple(dict.fromkeys(server.region for server in servers)), servers, submissions, {}, Quotas())


def measure(trace: JobTrace, policy: str) -> Row:
    """Waits by size, GPUs in use between the first and the last arrival of each region, and what became of promises."""
    name, params = POLICIES[policy]
    own = trace.submissions
    if name == "fifo":  # the compiled replay takes no GPU types; regions have one each
        trace = replace(trace, submissions=replace(own, gpu_types={}))
    began = time.process_time()
    run = run_trace(trace, name, params)
    cpu_s = time.process_time() - began
    at = dict(zip(own.labels, own.submitted_ms.tolist(), strict=True))
    gpus = dict(zip(own.labels, (own.gang_mgpu // WHOLE).tolist(), strict=True))
    end_of = dict(zip(own.labels, own.duration_ms.tolist(), strict=True))
    spans = dict[str, list[int]]()
    for region, submitted_ms in zip(own.home_region, own.submitted_ms.tolist(), strict=True):
        spans.setdefault(region, [submitted_ms, 0])[1] = submitted_ms
    waits, used, promised, ended = dict[str, float](), 0, set[str](), 0
    for stored in run.events():
        event = stored.event
        if isinstance(event, ev.Placed):
            waits[event.job] = (stored.at_ms - at[event.job]) / HOUR_MS
            last = spans[event.region][1]
            used += gpus[event.job] * max(0, min(last, stored.at_ms + end_of[event.job]) - stored.at_ms)
        elif isinstance(event, ev.Promised):
            promised.add(event.job)
        elif isinstance(event, ev.PromiseEnded):
            ended += 1
    supply = sum(server.gpus * (spans[server.region][1] - spans[server.region][0]) for server in trace.servers)
    row: Row = {"jobs": len(waits), "used": used / supply, "promised": len(promised), "ended": ended, "cpu_s": cpu_s}
    for label, low, high in (("1-7", 1, 7), ("8", 8, 8), ("16", 16, 16), (GANGS, 17, 10**6)):
        those = [wait for job, wait in waits.items() if low <= gpus[job] <= high]
        if those:
            row[label] = {"jobs": len(those), "mean_h": float(np.mean(those)), "max_h": max(those)}
    if params.get("estimates"):
        row["starts"] = run.starts
    return row


def _runs(given: argparse.Namespace) -> Iterable[tuple[Row, JobTrace]]:
    """The cases that are asked for, and the trace of each."""
    for limits in given.limits:
        if given.case == "month":
            for seed in given.seeds:
                jobs, servers = month(seed, given.load)
                own = limits_of([job[3] for job in jobs], limits, seed)
                yield {"seed": seed, "limits": limits}, trace_of("month", jobs, servers, own)
        else:
            for region, jobs, servers in philly(given.load):
                row = {"region": region, "servers": len(servers), "limits": limits}
                yield row, trace_of(region, jobs, servers, limits_of([job[3] for job in jobs], limits, 0))


def repeated(rows: Sequence[Row]) -> Iterable[tuple[Row, Row]]:
    """Rows, and what the same runs give now."""
    clusters: dict[float, dict[str, tuple[list[Job], tuple[Server, ...]]]] = {}
    for row in rows:
        load, limits = row["load"], row["limits"]
        if row["case"] == "philly" and load not in clusters:
            clusters[load] = {region: (jobs, servers) for region, jobs, servers in philly(load)}
        jobs, servers = month(row["seed"], load) if row["case"] == "month" else clusters[load][row["region"]]
        own = limits_of([job[3] for job in jobs], limits, row.get("seed", 0))
        found = measure(trace_of(row.get("region", "month"), jobs, servers, own), row["policy"])
        yield row, row | rounded(found)


def rounded(value: Any) -> Any:
    """Numbers of a row with as many digits as anybody reads."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return round(value, 4) if isinstance(value, float) else value


def read(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def month_table(rows: Sequence[Row]) -> str:
    """Means over the seeds of the month, and the worst seed's longest wait over that of fifo, in Markdown."""
    lines = ["| | GPUs in use | 1 to 7 GPUs, mean | 8 GPUs, mean | 32 GPUs, mean | longest | over that of `fifo` |"]
    lines.append("|---|--:|--:|--:|--:|--:|--:|")
    fifo = {row["seed"]: row for row in rows if row["case"] == "month" and row["policy"] == "fifo"}
    for (policy, limits), words in MONTH.items():
        own = [row for row in rows if (row["case"], row["policy"], row["limits"]) == ("month", policy, limits)]
        assert sorted(row["seed"] for row in own) == sorted(fifo), (policy, limits)

        def mean(size: str, figure: str, own: Sequence[Row] = own) -> float:
            return float(np.mean([row[size][figure] for row in own]))

        ratios = [row[GANGS]["max_h"] / fifo[row["seed"]][GANGS]["max_h"] for row in own]
        cells = [f"{100 * float(np.mean([row['used'] for row in own])):.1f}%", f"{mean('1-7', 'mean_h'):.1f} h"]
        cells += [
            f"{mean(size, figure):.0f} h" for size, figure in (("8", "mean_h"), (GANGS, "mean_h"), (GANGS, "max_h"))
        ]
        lines.append(f"| {words} | {' | '.join(cells)} | {min(ratios):.2f} to {max(ratios):.2f} |")
    return "\n".join(lines)


def philly_table(rows: Sequence[Row]) -> str:
    """Longest waits above 16 GPUs in the clusters of Philly that have such jobs, in Markdown."""
    lines = ["| cluster | servers | such jobs | `fifo` | `reserve=false` | with reservations | over `fifo` |"]
    lines.append("|---" + "|--:" * 6 + "|")
    of = {(row["region"], row["policy"], row["limits"]): row for row in rows if row["case"] == "philly"}
    for region in dict.fromkeys(region for region, _, _ in of):
        own = [
            of[region, policy, limits] for policy, limits in (("fifo", "none"), ("pass", "none"), ("reserve", "round"))
        ]
        if GANGS in own[0]:
            fifo_h, pass_h, reserve_h = (row[GANGS]["max_h"] for row in own)
            cells = [
                region,
                own[0]["servers"],
                own[0][GANGS]["jobs"],
                *(f"{h:.0f} h" for h in (fifo_h, pass_h, reserve_h)),
            ]
            lines.append(f"| {' | '.join(map(str, cells))} | {reserve_h / fifo_h:.2f} |")
    return "\n".join(lines)


def starts_table(rows: Sequence[Row]) -> str:
    """How far promises and foretold starts were off, in Markdown."""
    lines = ["| limits | said | jobs | started by then | within a factor of 2 | too long by, P10, median, P90 |"]
    lines.append("|---|---" + "|--:" * 4 + "|")
    for row in rows:
        for kind, one in row.get("starts", {}).items():
            hours = ", ".join(f"{one[f'too_long_h_p{p}']:.1f}" for p in (10, 50, 90))
            shares = f"{one['started_by_then']:.0%} | {one['within_factor_2']:.0%}"
            lines.append(f"| {LIMITS[row['limits']]} | {SAID[kind]} | {one['jobs']:,} | {shares} | {hours} h |")
    return "\n".join(lines)


def page_tables(rows: Sequence[Row]) -> dict[str, Callable[[], str]]:
    """The tables of docs/reservations.md."""
    makers = {"month": month_table, "philly": philly_table, "starts": starts_table}
    return {name: partial(make, rows) for name, make in makers.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=["month", "philly", "page", "repeat"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5, 6])
    parser.add_argument("--load", type=float, default=0.95)
    parser.add_argument("--limits", nargs="+", choices=list(LIMITS), default=["round"])
    parser.add_argument("--policies", nargs="+", choices=list(POLICIES), default=list(POLICIES))
    parser.add_argument("--out", type=Path, default=Path("long-waits.jsonl"))
    given = parser.parse_args()
    if given.case == "page":
        PAGE.write_text(with_tables(PAGE.read_text(), page_tables(read(given.out))))
        return
    if given.case == "repeat":
        differ = 0
        for at, (row, again) in enumerate(repeated(read(given.out)), 1):
            wrong = [name for name in row if name != "cpu_s" and row[name] != again[name]]
            differ += bool(wrong)
            print(f"{at}: {row['case']}, {row['policy']}, {row['limits']}: {wrong or 'the same'}", flush=True)
        raise SystemExit(differ > 0)
    keys = ("case", "load", "policy", "seed", "region", "limits")
    done = {tuple(row.get(key) for key in keys) for row in read(given.out)}
    for found, trace in _runs(given):
        for policy in given.policies:
            # limits do nothing there
            limits = "none" if policy in ("fifo", "pass") else found["limits"]
            row = {"case": given.case, "load": given.load, "policy": policy, **found, "limits": limits}
            if tuple(row.get(key) for key in keys) not in done:
                done.add(tuple(row.get(key) for key in keys))
                row |= measure(trace, policy)
                print(json.dumps(row), flush=True)
                with given.out.open("a") as out:
                    out.write(json.dumps(rounded(row)) + "\n")


if __name__ == "__main__":
    main()
