"""The tables of the pages on speed, guarantees, ablations and releases, from the runs in benchmarks/data.

    python -m benchmarks.measured_pages

Of several runs of one case, the one with the least processor time counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import ablation, proofs, releases
from benchmarks.assignment_study import Study, best_published
from benchmarks.study_pages import with_tables

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs"
Row = Mapping[str, Any]
Stated = tuple[str, str, str, str, float, str]
"""Case, what was done, what was found (both with fields of the run), the field that has an aim ("" for none), the aim
and its unit."""
LOOP: tuple[Stated, ...] = (
    (
        "philly",
        "{jobs:,} jobs of two months, arrivals over 5, one queue for all regions (`fifo`), {events:,} events",
        "{cpu_s:.1f} s", "cpu_s", 10, "s",
    ),
    (
        "gavel",
        "{jobs:,} jobs on 108 GPUs of three types, `fifo` with speeds, {rounds:,.0f} rounds of 360 s",
        "{cpu_s:.1f} s", "", 0, "",
    ),
    (
        "turns",
        "one job comes to a full fleet where {waiting:,} wait (`mast`)",
        "{median_us:.0f} µs at the median", "median_us", 200, "µs",
    ),
    (
        "queue",
        "one turn with a queue on 104,000 GPUs in 12 regions (`mast`); {placed:,} jobs are placed",
        "{cpu_s:.1f} s, {job_us:.0f} µs a job", "cpu_s", 3, "s",
    ),
    (
        "preempting",
        "an important job comes to a full fleet of 2,816 GPUs where {waiting:,} wait, and others stop for it",
        "{median_ms:.1f} ms at the median, {victims} victims in 100 turns", "", 0, "",
    ),
    (
        "priorities",
        "order of 1,000,000 workloads of 500 tenants before and after their quotas; {over:,} are beyond one",
        "{cpu_s:.1f} s", "cpu_s", 2, "s",
    ),
    (
        "weeks",
        "7 days on 2,000 GPUs, {jobs:,} jobs that ask for 1.3 times what there is (`mast`), {events:,} events",
        "{cpu_s:.0f} s", "cpu_s", 45, "s",
    ),
)  # fmt: skip
KUEUE: tuple[Stated, ...] = tuple(
    (f"kueue {load}", "{jobs:,} workloads in {cohorts} cohorts (`" + load + "`), {events:,} events", "{cpu_s:.1f} s",
     "cpu_s", aim_s, "s")
    for load, aim_s in (("baseline", 3.5), ("large-scale", 12))
)  # fmt: skip
SERVICE: tuple[Stated, ...] = (
    (
        "append",
        "single durable append",
        "{event_us:.0f} µs; {median_wall_ms:.1f} ms by the clock, at the median", "median_wall_ms", 10, "ms",
    ),
    ("append-groups", "an event appended in groups of 1,000", "{event_us:.1f} µs", "event_us", 10, "µs"),
    ("read", "an event read from the log", "{event_us:.1f} µs", "event_us", 5, "µs"),
    ("restart-log", "restart from a log of {events:,} events", "{cpu_s:.1f} s", "cpu_s", 10, "s"),
    ("restart-snapshot", "restart from a snapshot at its end", "{cpu_s:.2f} s", "cpu_s", 2, "s"),
    (
        "decisions",
        "decision on 104,000 GPUs, {used:.0%} in use, {rate} jobs come in a second",
        "{median_us:.0f} µs at the median, P99 {p99_us:,.0f} µs", "median_us", 100, "µs",
    ),
    (
        "submissions",
        "a job submitted by {clients} clients, {batch:,} in a request",
        "{cpu_us_per_job:.0f} µs", "cpu_us_per_job", 500, "µs",
    ),
    (
        "lists",
        "a job submitted by {clients} clients, {batch:,} in a request",
        "{cpu_us_per_job:.0f} µs", "cpu_us_per_job", 20, "µs",
    ),
)  # fmt: skip
FLEET: tuple[Stated, ...] = (
    ("all answers", "median of all {count:,} answers", "{median_us:.0f} µs", "median_us", 100, "µs"),
    ("all + commit", "the same, with commits", "{median_us:.0f} µs", "median_us", 100, "µs"),
    ("free + commit", "median, placed and committed without victims", "{median_us:.0f} µs", "median_us", 100, "µs"),
    ("with victims + commit", "the same with victims", "{median_us:.0f} µs", "median_us", 100, "µs"),
    ("free + commit", "P99, placed and committed without victims", "{p99_us:,.0f} µs", "p99_us", 1000, "µs"),
    ("with victims + commit", "the same with victims", "{p99_us:,.0f} µs", "p99_us", 5000, "µs"),
    ("large", "P99 on {gpus:,} GPUs, placed and committed without victims", "{p99_us:,.0f} µs", "p99_us", 15_000, "µs"),
    (
        "fleet",
        "memory that opening the fleet takes",
        "{opened_mib} MiB, the ledger {ledger_mib} of them", "opened_mib", 500, "MiB",
    ),
    ("ranking", "ranking {jobs:,} jobs", "{cpu_s:.2f} s", "cpu_s", 2, "s"),
    (
        "queue",
        "a queue of {jobs:,} ranked and placed; {placed:,} get in, many with victims",
        "{cpu_s:.2f} s", "cpu_s", 3, "s",
    ),
)  # fmt: skip
ANSWERS = {
    "free": "a bid without victims",
    "free + commit": "the same, placed and committed",
    "with victims": "a bid with victims",
    "with victims + commit": "the same, placed and committed",
    "refused": "refused, with the reason",
    "remembered": "refused, remembered",
    "commit": "`commit` alone",
}
"""What became of a job → in words."""
NO_BUDGET = 10**9
"""``work`` of a search that has no budget."""
SOLVERS = ("tetris", "twine", "exhaustive+repair", "ras")


def read(name: str) -> list[Row]:
    return [json.loads(line) for line in (ROOT / "benchmarks" / "data" / f"{name}.jsonl").read_text().splitlines()]


def best(rows: Iterable[Row], **wanted: Any) -> Row:
    """The run with the least processor time among those with these values."""
    found = (row for row in rows if all(row.get(name) == value for name, value in wanted.items()))
    return min(found, key=_spent)


def _spent(row: Row) -> float:
    if "answers" in row:
        return float(row["answers"]["all answers"]["median_us"])
    return float(next(row[name] for name in ("cpu_us_per_job", "cpu_s", "median_us", "median_ms") if name in row))


def lined(head: str, rows: Iterable[Sequence[object]]) -> str:
    lines = (f"| {' | '.join(map(str, cells))} |" for cells in rows)
    return "\n".join([f"| {head} |", "|---" * (head.count("|") + 1) + "|", *lines])


def aimed(of: Mapping[str, Row], stated: Sequence[Stated]) -> str:
    """A row for each case: what was done, what was found, the aim and whether it is met."""
    lines = []
    for case, done, figure, field, aim, unit in stated:
        row = of[case]
        words = f"{aim:,g} {unit}: {'met' if row[field] <= aim else '**missed**'}" if field else "none"
        lines.append([done.format(**row), figure.format(**row), words])
    return lined("what | figure | aim", lines)


def loop(rows: list[Row]) -> str:
    return aimed({case: best(rows, case=case) for case, *_ in LOOP}, LOOP)


def kueue(rows: list[Row]) -> str:
    return aimed({case: best(rows, case=case) for case, *_ in KUEUE}, KUEUE)


def sizes(rows: list[Row]) -> str:
    """A row for each size of fleet: processor time of a job, and the share of each part of the package."""
    found = [best(rows, case="size", gpus=gpus) for gpus in sorted({row["gpus"] for row in rows if "gpus" in row})]
    lines = [
        [
            *(f"{row[name]:,}" for name in ("gpus", "regions", "jobs")),
            f"{1000 * row['cpu_s'] / row['jobs']:.1f} ms",
            *(f"{100 * share:.0f}%" for share in row["shares"].values()),
        ]
        for row in found
    ]
    return lined(f"GPUs | regions | jobs | a job | {' | '.join(found[0]['shares'])}", lines)


def kernels(rows: list[Row]) -> str:
    found = min((row for row in rows if row["case"] == "kernels"), key=lambda row: row["srtf"]["cpu_s"])
    orders = list(found["tenth"])
    sizes = {"1,370,000 on 56,000": found, "137,000 on 5,600": found["tenth"]}
    lines = [
        [size, *(f"{one[order]['cpu_s']:.2f} s" if order in one else "–" for order in orders)]
        for size, one in sizes.items()
    ]
    return lined(f"jobs and GPUs | {' | '.join(f'`{order}`' for order in orders)}", lines)


def targets(rows: list[Row]) -> str:
    fleet = best(rows, case="fleet")
    large = best(rows, case="grow", gpus=max(row["gpus"] for row in rows if row["case"] == "grow"))
    one = {case: best(rows, case=case) for case in ("fleet", "ranking", "queue")}
    grown = {**large, **large["answers"]["free + commit"]}
    return aimed({**fleet["answers"], **one, "large": grown}, FLEET)


def one_job(rows: list[Row]) -> str:
    fleet = best(rows, case="fleet")
    lines = []
    for what, words in ANSWERS.items():
        found = fleet["answers"][what]
        times = [f"{found['median_us']:.0f} µs", f"{found['p99_us']:,.0f} µs"]
        lines.append([words, f"{found['count']:,}", *times, f"{found['median_us'] / fleet['pass_us']:.0f}"])
    return lined("answer | times | median | P99 | median / one NumPy pass", lines)


def gangs(rows: list[Row]) -> str:
    rows = [row for row in rows if row["case"] == "gangs"]
    most, *works = sorted({row["work"] for row in rows}, reverse=True)
    lines = []
    for gang in dict.fromkeys(row["gang"] for row in rows):
        whole = best(rows, work=most, gang=gang)
        cells = [gang, f"{whole['median_ms']:,.1f} ms"]
        for work in works:
            found = best(rows, work=work, gang=gang)
            more = found["gpu_hours_lost"] / whole["gpu_hours_lost"] - 1
            cells += [f"{found['median_ms']:.1f} ms", f"{100 * more:+.1f}%"]
        lines.append(cells)
    first = "no budget" if most == NO_BUDGET else f"{most:,}"
    return lined(f"gang: tasks × GPUs | {first} | {' | '.join(f'{work:,} | lost' for work in works)}", lines)


def growth(rows: list[Row]) -> str:
    lines = []
    for gpus in sorted({row["gpus"] for row in rows if row["case"] == "grow"}):
        row = best(rows, case="grow", gpus=gpus)
        medians = [
            f"{row['answers'][what]['median_us']:.0f} µs" if what in row["answers"] else "–"
            for what in ("free", "with victims", "refused")
        ]
        lines.append([*(f"{row[name]:,}" for name in ("gpus", "servers", "running")), *medians, row["opened_mib"]])
    return lined("GPUs | servers | running jobs | without victims | with victims | refused | fleet in MiB", lines)


def guarantees(rows: list[Row]) -> str:
    lines = [[row["promise"], row["result"], f"`{row['command']}`"] for row in rows]
    return lined("promise | result | command", lines)


def speed(rows: list[Row]) -> str:
    of = {case: best(rows, case=case) for case, *_ in SERVICE if case not in ("submissions", "lists")}
    timed = {
        case: {**row, "event_us": 1e6 * row["cpu_s"] / row["events"]} for case, row in of.items() if "events" in row
    }
    by = {name: best(rows, case="submissions", batch=batch) for name, batch in (("submissions", 1), ("lists", 1000))}
    return aimed({**of, **timed, **by}, SERVICE)


def ablated(rows: Sequence[Row], solver: str, changed: Callable[..., float | None] = ablation.change) -> str:
    """The table of a solver; each instance with its rounds and seeds."""
    runs = [row for row in rows if row["solver"] == solver]
    seeds = {name: len({row["seed"] for row in runs if row["instance"] == name}) for name in _instances(runs)}
    named = [
        {**row, "instance": f"{row['instance']} ({row['rounds']} rounds, seeds: {seeds[row['instance']]})"}
        for row in runs
    ]
    return ablation.table(named, _instances(named), changed)


def _instances(runs: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(run["instance"] for run in runs))


def assigned() -> str:
    return Study(ROOT / "benchmarks" / "data" / "assignment-study.jsonl").table(best_published()).strip()


def released() -> str:
    head = (
        "problem, solver | release | gap to the best known | proven gap | primal integral | within 1% | seconds to 1%"
    )
    return lined(head, releases.lines(read("releases")))


def proven() -> str:
    head = (
        "problem | instances (committed) | bound proven to 1e-9 | accepted by `--check`, `viprchk` | changed proofs "
        "that they accept | `proof.vipr`, median; largest | bytes / certificate | time / solve"
    )
    return lined(head, proofs.lines(read("proofs")))


def tables() -> dict[str, dict[str, Callable[[], str]]]:
    """Page → table → what makes it."""
    of_loop, at_size, fleet, service, parts = map(read, ("loop", "loop-at-size", "live-fleet", "service", "ablation"))
    return {
        "benchmarks/loop": {
            "cases": partial(loop, of_loop),
            "sizes": partial(sizes, at_size),
            "kueue": partial(kueue, at_size),
            "kernels": partial(kernels, of_loop),
        },
        "benchmarks/live-fleet": {
            "targets": partial(targets, fleet),
            "jobs": partial(one_job, fleet),
            "gangs": partial(gangs, fleet),
            "growth": partial(growth, fleet),
        },
        "benchmarks/service": {
            "guarantees": partial(guarantees, read("guarantees")),
            "speed": partial(speed, service),
        },
        "benchmarks/ablation": {
            **{name.partition("+")[2] or name: partial(ablated, parts, name) for name in SOLVERS},
            "bounds": partial(ablated, parts, "ras", ablation.bound_change),
        },
        "benchmarks": {"releases": released},
        "heuristics/exhaustive-repair": {"assigned": assigned},
        "how-to/prove": {"proofs": proven},
    }


def main() -> None:
    for name, made in tables().items():
        page = PAGES / f"{name}.md"
        page.write_text(with_tables(page.read_text(), made))


if __name__ == "__main__":
    main()
