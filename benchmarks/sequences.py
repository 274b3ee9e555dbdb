"""Sequences of instances that change by a percent at each step: each is solved from the last plan, some from scratch.

    python benchmarks/sequences.py data --steps 200 --cold 20 --out ROWS.jsonl
    python benchmarks/sequences.py servers --size 200000 --steps 20 --out ROWS.jsonl
    python benchmarks/sequences.py jobs --out ROWS.jsonl
    python benchmarks/sequences.py page ROWS.jsonl --picture PICTURE.svg > docs/benchmarks/sequences.md

A step is a line of ROWS.jsonl. One thread; times are processor time, so they hardly depend on other work on the
machine. At a step with a cold solve, that one has the same number of rounds as the first solve and ends at the gap that
the re-solve reached; another has the rounds of the re-solve.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

import mast_opt

matplotlib.use("svg")
from matplotlib import pyplot as plt

Row = dict[str, Any]
SHARE = 0.01
"""Share of workloads, sizes, servers or reservations that a step changes."""
FIRST: dict[str, tuple[str, int | None]] = {"data": ("tetris", 400), "servers": ("ras", 20), "jobs": ("highs", None)}
"""Solver, and rounds of a solve from scratch."""
AS_LONG = {"data": 6, "servers": 1, "jobs": None}
"""Rounds of a re-solve."""


SHAPES = {8_000: (5_000, 20), 500_000: (100_000, 30)}
"""Workloads of a data placement → its datasets and regions."""


def data(size: int) -> Any:
    """Data placement with so many workloads; see ``SHAPES``."""
    datasets, regions = SHAPES[size]
    sizes = {"datasets": datasets, "workloads": size, "regions": regions}
    return mast_opt.generate("data-placement", "standard", seed=1, **sizes)


def servers(size: int) -> Any:
    """Server assignment with so many servers and 200 reservations."""
    sizes = {"servers": size, "reservations": 200, "datacenters": 10}
    return mast_opt.generate("server-assignment", "standard", seed=1, **sizes)


def jobs(size: int) -> Any:
    """Max-min fair shares of so many jobs on GPUs of three types."""
    return mast_opt.generate("resource-allocation", "standard", seed=1, jobs=size, types=3)


def some(count: int, rng: np.random.Generator) -> Any:
    """Positions of what a step changes."""
    return rng.choice(count, max(1, int(count * SHARE)), replace=False)


def data_later(problem: Any, plan: Any, rng: np.random.Generator, step: int) -> Any:
    """New workloads in place of others, other sizes, a region with 1% more or fewer GPUs."""
    new, resized = some(len(problem.workloads), rng), some(len(problem.datasets), rng)
    labels = np.array(problem.workloads.labels, object)
    labels[new] = [f"new-{step}-{at}" for at in new.tolist()]
    cpu, volume = problem.workloads.cpu_mcores.copy(), problem.reads.mb_per_day.copy()
    cpu[new] = cpu[rng.choice(len(cpu), len(new))]
    mine = np.flatnonzero(np.isin(problem.reads.workload, new))
    volume[mine] = volume[rng.permutation(mine)]
    size, supply = problem.datasets.size_mb.copy(), problem.regions.supply_mgpu.copy()
    size[resized] = (size[resized] * rng.uniform(0.8, 1.25, len(resized))).astype(np.int64)
    region = rng.integers(len(supply))
    supply[region] = supply[region] * rng.choice([99, 101]) // 100_000 * 1000
    return problem.with_columns(
        {
            "workloads.labels": tuple(labels.tolist()),
            "workloads.cpu_mcores": cpu,
            "reads.mb_per_day": volume,
            "datasets.size_mb": size,
            "regions.supply_mgpu": supply,
        }
    )


def servers_later(problem: Any, plan: Any, rng: np.random.Generator, step: int) -> Any:
    """The last plan is carried out; servers are replaced, and reservations ask for up to 3% more or less."""
    new, changed = some(len(problem.servers), rng), some(len(problem.reservations), rng)
    labels = np.array(problem.servers.labels, object)
    labels[new] = [f"new-{step}-{at}" for at in new.tolist()]
    kind, owner, used = problem.servers.type.copy(), plan.reservation.copy(), problem.servers.in_use.copy()
    kind[new], owner[new], used[new] = kind[rng.choice(len(kind), len(new))], len(problem.reservations), False
    asked = problem.reservations.asked_mrru.copy()
    asked[changed] = (asked[changed] * rng.uniform(0.97, 1.03, len(changed))).astype(np.int64)
    return problem.with_columns(
        {
            "servers.labels": tuple(labels.tolist()),
            "servers.type": kind,
            "servers.owner": owner,
            "servers.in_use": used,
            "reservations.asked_mrru": asked,
        }
    )


def jobs_later(problem: Any, plan: Any, rng: np.random.Generator, step: int) -> Any:
    """New jobs, like others, in place of some; a type has 1% more or fewer GPUs, or one."""
    new = some(len(problem.jobs), rng)
    like = rng.choice(len(problem.jobs), len(new))
    labels, rate, fair = (
        np.array(problem.jobs.labels, object),
        problem.members.rate.copy(),
        problem.jobs.fair_rate.copy(),
    )
    labels[new] = [f"new-{step}-{at}" for at in new.tolist()]
    speed = rng.uniform(0.5, 2, len(new))
    for job, other, factor in zip(new.tolist(), like.tolist(), speed.tolist(), strict=True):
        rate[problem.members.job == job] = factor * problem.members.rate[problem.members.job == other]
        fair[job] = factor * problem.jobs.fair_rate[other]
    owner = np.zeros(len(problem.configurations), np.int64)
    owner[problem.members.configuration] = problem.members.job
    names = [
        f"{labels[job]}@{old.split('@')[1]}" for job, old in zip(owner, problem.configurations.labels, strict=True)
    ]
    amount, kind = problem.resources.amount.copy(), rng.integers(len(problem.resources.amount))
    amount[kind] += rng.choice([-1, 1]) * max(1, round(amount[kind] * SHARE))
    return problem.with_columns(
        {
            "jobs.labels": tuple(labels.tolist()),
            "jobs.fair_rate": fair,
            "configurations.labels": tuple(names),
            "members.rate": rate,
            "resources.amount": amount,
        }
    )


def timed(solve: Any, *arguments: Any, **asked: Any) -> tuple[Any, Row]:
    """A solution, and its figures."""
    began, clock = time.process_time(), time.perf_counter()
    found = solve(*arguments, threads=1, **asked)
    wall_s = time.perf_counter() - clock
    row = {"cpu_s": time.process_time() - began, "objective": found.objective, "bound": found.bound, "gap": found.gap}
    for phase in ("solve", "verify"):
        row[phase] = found.runtime_s[phase] / wall_s
    return found, row


def sequence(what: str, size: int, steps: int, cold: int, out: Path) -> None:
    """Append the rows of a sequence to a file."""
    make, later = MAKE[what]
    solver, rounds = FIRST[what]
    problem, rng = make(size), np.random.default_rng(1)
    mast_opt.warm_up(problem.kind)
    begin = 1 if what == "servers" else rounds
    solution, first = timed(mast_opt.solve, problem, solver, iterations=begin, gap=0.0)
    with out.open("a") as file:
        file.write(json.dumps({"what": what, "size": size, "step": 0, "first": first}) + "\n")
        for step in range(1, steps + 1):
            problem = later(problem, solution.plan, rng, step)
            solution, row = timed(mast_opt.resolve, problem, solution, gap=0.0)
            row |= {"what": what, "size": size, "step": step, "changed": dict(solution.reuse.changed)}
            row["cold_because"] = solution.reuse.cold
            if step % cold == 0:
                _, row["cold"] = timed(mast_opt.solve, problem, solver, iterations=rounds, gap=solution.gap)
                _, row["as_long"] = timed(mast_opt.solve, problem, solver, iterations=AS_LONG[what])
            file.write(json.dumps(row) + "\n")
            file.flush()


def read(path: Path) -> dict[tuple[str, int], list[Row]]:
    """Problem and size → the rows of the steps after the first solve."""
    found: dict[tuple[str, int], list[Row]] = {}
    for row in map(json.loads, path.read_text().splitlines()):
        found.setdefault((row["what"], row["size"]), []).extend([row] if row["step"] else [])
    return found


def draw(rows: dict[tuple[str, int], list[Row]], path: Path) -> None:
    """One panel a sequence: seconds of each step, those of them that search takes, and those of solves from scratch."""
    style: Any = {"svg.hashsalt": "mast-opt", "svg.fonttype": "path", "font.size": 8}
    style |= {"axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(style):
        size_inch = (2.0 * len(rows), 2.4)
        figure, panels = plt.subplots(1, len(rows), figsize=size_inch, sharey=True, layout="constrained")
        for panel, ((what, size), mine) in zip(panels, rows.items()):
            steps = [row["step"] for row in mine]
            scratch = [row for row in mine if "cold" in row]
            panel.plot(steps, [row["cpu_s"] for row in mine], ".", ms=3, color="#1f77b4", label="re-solve")
            search = [row["cpu_s"] * row["solve"] for row in mine]
            panel.plot(steps, search, ".", ms=2, color="#ff7f0e", label="search in it")
            at = [row["step"] for row in scratch]
            panel.plot(at, [row["cold"]["cpu_s"] for row in scratch], "D", ms=3, color="#555555", label="from scratch")
            panel.set(title=NAMES[what].replace(", ", "\n", 1) + f" {size:,}", yscale="log")
            panel.grid(alpha=0.3)
            panel.xaxis.get_major_locator().set_params(integer=True)
        panels[0].yaxis.set_major_formatter("{x:g}")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
        figure.supxlabel("step", fontsize=9)
        figure.supylabel("processor time, s", fontsize=9)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def page(rows: dict[tuple[str, int], list[Row]]) -> str:
    """The page of these rows."""
    lines = [HEAD]
    for (what, size), mine in rows.items():
        compared = [row for row in mine if "cold" in row]
        changed = statistics.median(sum(row["changed"].values()) for row in mine)
        cells = [
            f"{NAMES[what]}, {size:,}",
            f"{len(mine)}",
            f"{changed:,.0f}",
            f"{statistics.median(row['cpu_s'] for row in mine):.2f}",
            f"{100 * statistics.median(row['solve'] for row in mine):.0f}%",
            f"{100 * statistics.median(row['verify'] for row in mine):.0f}%",
            f"{100 * mine[-1]['gap']:.1f}%",
        ]
        if compared:
            ratio = statistics.median(row["cold"]["cpu_s"] / row["cpu_s"] for row in compared)
            worse, longer = (
                100 * statistics.median(row["objective"] / row[name]["objective"] - 1 for row in compared)
                for name in ("cold", "as_long")
            )
            cold_s = statistics.median(row["cold"]["cpu_s"] for row in compared)
            cells += [f"{cold_s:.1f}", f"{ratio:.0f}", f"{worse:+.1f}%", f"{longer:+.1f}%"]
        lines.append(f"| {' | '.join(cells + ['not run'] * (11 - len(cells)))} |")
    return "\n".join([*lines, "", PICTURE, "", TAIL])


MAKE = {"data": (data, data_later), "servers": (servers, servers_later), "jobs": (jobs, jobs_later)}
NAMES = {
    "data": "data placement, workloads",
    "servers": "server assignment, servers",
    "jobs": "resource allocation, max-min, jobs",
}
HEAD = """# Sequences of instances that change a little

Each step changes 1% of the workloads and of the dataset sizes and the GPUs of one region; or replaces 1% of the servers and changes the demand of 1% of the
reservations; or replaces 1% of the jobs and changes the GPUs of one type. It is solved by `mast_opt.resolve` from the last plan. Some steps
are also solved from scratch: to the gap that the re-solve reached (or as near as that many rounds come), and with as many rounds as the re-solve had.

Figures are medians; seconds are processor time of one thread on a shared machine; shares are of the re-solve's time, and what is left of
it matches labels, carries prices over and reads results.

| instance | steps | changed rows | s | search | verifier | last gap | s, from scratch | times as long | re-solve's objective against it | against as many rounds |
|---|---|---|---|---|---|---|---|---|---|---|"""  # noqa: E501 - a table's head
PICTURE = "![Processor time of each step of the sequences, of the search in it, and of solves from scratch](images/sequences.svg)"  # noqa: E501
TAIL = """The smaller data placement has 5,000 datasets and 20 regions, the larger one 100,000 and 30; today's state
does not change. Fleets have 200 reservations in 10 datacenters; each plan is carried out before the next step.
Jobs run on three GPU types. `benchmarks/sequences.py` makes rows, page and picture.

On such fleets a solve from scratch begins next to the last plan as well, and is as quick to the same gap. In data
placement it is not, and with 8,000 workloads its plan and bound end a little better than those that only ever went on:
solve from scratch now and then. Max-min shares begin at the basis that the last plan and its prices describe; four
fifths of their time is one linear program in HiGHS, which takes 15 ms however few of its columns change."""


def main() -> None:
    """Run a sequence, or print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    for what, size in (("data", 8_000), ("servers", 200_000), ("jobs", 1024)):
        one = commands.add_parser(what)
        one.add_argument("--size", type=int, default=size)
        one.add_argument("--steps", type=int, default=200)
        one.add_argument("--cold", type=int, default=20)
        one.add_argument("--out", type=Path, required=True)
    written = commands.add_parser("page")
    written.add_argument("rows", type=Path)
    written.add_argument("--picture", type=Path, help="SVG that is drawn too")
    asked = parser.parse_args()
    if asked.what == "page":
        rows = read(asked.rows)
        print(page(rows))
        if asked.picture is not None:
            draw(rows, asked.picture)
    else:
        sequence(asked.what, asked.size, asked.steps, asked.cold, asked.out)


if __name__ == "__main__":
    main()
