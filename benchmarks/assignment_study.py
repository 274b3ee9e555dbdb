"""Generalised assignment: ``exhaustive+repair`` in ten seconds against proven optima and best known values.

    python -m benchmarks.assignment_study [--data FOLDER] [--results FILE] [--seeds 100] [--without-proofs]

Small tight instances of three classes are generated, a seed each: 5 to 10 agents, 15 to 60 items, costs and weights
independent (c), or costs high where weights are low (d, e), capacity for 80% of an even split. HiGHS has 5 s for the
optimum of those that the search does not prove itself; where it proves none, a Lagrangian relaxation gives a bound.
``--data`` adds the published instances of Chu and Beasley (1997) and of Yagiura, Ibaraki and Glover (2004): the folder
``data`` of https://github.com/fontanf/generalizedassignmentsolver; their best known values are in
``gap-values.csv`` next to the suites. Runs that the file of results has are not made again. Prints a table by class.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mast_opt
from mast_opt import Solution
from mast_opt.core.solve_result import Status
from mast_opt.planner.importers.gap import Gap, job_placement, read_gap
from mast_opt.problems.job_placement import JobPlacement, Plan

OURS, EXACT = "exhaustive+repair", "highs"
LIMIT_S, PROOF_S = 10.0, 5.0
GAP = 1e-6
TIGHT = 0.8
"""Share of the agents' mean weight of all items that they have room for: Chu and Beasley's."""
VALUES = Path("mast_opt/planner/bench/suite_files/gap-values.csv")
WITHIN = 0.005
FAILURES = 10
"""Subgradient steps without gain before they are halved."""
Row = dict[str, Any]


def tight(seed: int) -> tuple[str, Gap]:
    """The class and instance of a seed: c, d and e in turn, as Chu and Beasley, and Yagiura et al., draw them."""
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(5, 11)), int(rng.integers(15, 61))
    kind = "cde"[seed % 3]
    if kind == "c":
        weight, cost = rng.integers(5, 26, shape), rng.integers(10, 51, shape)
    elif kind == "d":
        weight = rng.integers(1, 101, shape)
        cost = 111 - weight + rng.integers(-10, 11, shape)
    else:
        exact = 1 - 10 * np.log(1 - rng.random(shape))
        weight = np.rint(exact).astype(np.int64)
        cost = np.rint(1000 / exact - 10 * rng.random(shape)).astype(np.int64)
    capacity = np.maximum((TIGHT * weight.sum(axis=1) / shape[0]).astype(np.int64), weight.min(axis=0).max())
    return f"small, tight {kind}", Gap(np.maximum(cost, 1), weight, capacity)


def generated(seeds: int) -> Iterator[tuple[str, str, Gap]]:
    """(class, name, instance) of every seed."""
    for seed in range(seeds):
        yield (*tight(seed)[:1], f"tight-{seed}", tight(seed)[1])


def published(data: Path) -> Iterator[tuple[str, str, Gap]]:
    """(class, name, instance) of every published instance in a folder."""
    for folder in ("chu1997", "yagiura2004"):
        for path in sorted((data / folder).iterdir()):
            yield f"{folder} {path.name[0]}", path.name, read_gap(path)


def best_published() -> dict[str, tuple[float, float]]:
    """Best known value and bound of every published instance."""
    with VALUES.open() as file:
        return {row["instance"]: (float(row["best"]), float(row["bound"])) for row in csv.DictReader(file)}


def knapsack_bound(gap: Gap, upper: float, steps: int = 400) -> float:
    """Lower bound on the cost of assigning every item: the Lagrangian relaxation that prices assignments and leaves
    each agent a knapsack (Fisher, Jaikumar and Van Wassenhove 1986), by subgradients. ``upper``: cost of some
    assignment."""
    agents, items = gap.cost.shape
    agent, room = np.arange(agents), np.arange(int(gap.capacity.max()) + 1)
    without = room - gap.weight.T[:, :, None]
    fits, without = without >= 0, np.maximum(without, 0)
    price = best_price = np.sort(gap.cost, axis=0)[:2].mean(axis=0)
    best, step, failures = -np.inf, 1.0, 0
    for _ in range(steps):
        value, taken = np.zeros((agents, len(room))), np.zeros((items, agents, len(room)), np.bool_)
        for j in range(items):
            gain = value[agent[:, None], without[j]] + (price[j] - gap.cost[:, j])[:, None]
            taken[j] = fits[j] & (gain > value)
            value = np.where(taken[j], gain, value)
        bound = price.sum() - value[agent, gap.capacity].sum()
        left, times = gap.capacity.copy(), np.zeros(items)
        for j in reversed(range(items)):
            takes = taken[j][agent, left]
            times[j] = takes.sum()
            left -= np.where(takes, gap.weight[:, j], 0)
        if bound > best:
            best, best_price, failures = bound, price, 0
        else:
            failures += 1
            if failures == FAILURES:
                price, step, failures = best_price, step / 2, 0
        if (times == 1).all():
            break
        price = price + step * max(upper - bound, 0.1) / ((1 - times) ** 2).sum() * (1 - times)
    return float(best)


def run(kind: str, name: str, problem: JobPlacement) -> Row:
    """What the search finds."""
    wall, cpu = time.monotonic(), time.process_time()
    solution = mast_opt.solve(problem, OURS, time_limit_s=LIMIT_S, threads=1, seed=0, gap=GAP)
    times = {"wall_s": round(time.monotonic() - wall, 2), "cpu_s": round(time.process_time() - cpu, 2)}
    return {"class": kind, "jobs": len(problem.jobs), **_row(name, OURS, solution), **times}


def prove(name: str, gap: Gap, ours: Row) -> Row:
    """What an exact solver finds, and the better bound of its own and of the knapsacks."""
    problem = job_placement(gap, name)
    solution = mast_opt.solve(problem, EXACT, formulation="strong", time_limit_s=PROOF_S, threads=1, gap=GAP)
    row = _row(name, EXACT, solution)
    least = float(np.ceil(knapsack_bound(gap, ours["objective"]) - GAP))
    return {**row, "bound": max(row["bound"], ours["bound"], least)}


def _row(name: str, solver: str, solution: Solution[Plan]) -> Row:
    if solution.plan is None or solution.objective is None:
        raise RuntimeError(f"{solver} has no plan for {name}: {solution.message}")
    return {
        "instance": name,
        "solver": solver,
        "proven": solution.status is Status.OPTIMAL,
        "objective": round(solution.objective, 6),
        "bound": solution.bound,
        "admitted": len(np.unique(solution.plan.job)),
    }


class Study:
    """The rows in a file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        text = path.read_text() if path.exists() else ""
        self.rows = {(row["instance"], row["solver"]): row for row in map(json.loads, text.splitlines())}

    def add(self, row: Row) -> None:
        self.rows[row["instance"], row["solver"]] = row
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def lacks(self, name: str, solver: str) -> bool:
        return (name, solver) not in self.rows

    def best(self, published: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
        """Best known value and bound of every instance of which there is a row."""
        found = {}
        for name, solver in self.rows:
            if solver == OURS:
                rows = [self.rows[name, OURS], self.rows.get((name, EXACT), self.rows[name, OURS])]
                value = min(row["objective"] for row in rows)
                proven = value if any(row["proven"] for row in rows) else max(row["bound"] or 0.0 for row in rows)
                found[name] = published.get(name, (value, proven))
        return found

    def table(self, published: dict[str, tuple[float, float]]) -> str:
        """One line a class."""
        heads = ["class", "instances", "optimum known", "mean gap", "worst", "within 0.5%", "at the best known"]
        heads += ["mean gap to a bound", "left out", "s"]
        lines = [f"| {' | '.join(heads)} |", f"|---|{'--:|' * (len(heads) - 1)}"]
        ours, known = [row for (_, solver), row in self.rows.items() if solver == OURS], self.best(published)
        for kind in sorted({row["class"] for row in ours}):
            here = [row for row in ours if row["class"] == kind]
            best, bound = np.array([known[row["instance"]] for row in here]).T
            value = np.array([row["objective"] for row in here])
            gap = value / best - 1
            cells = [
                *(len(here), (bound >= best - GAP * best).sum()),
                *(f"{gap.mean():.2%}", f"{gap.max():.2%}", (gap <= WITHIN).sum(), (gap <= GAP).sum()),
                *(f"{(value / bound - 1).mean():.2%}", sum(row["jobs"] - row["admitted"] for row in here)),
                f"{np.mean([row['wall_s'] for row in here]):.1f}",
            ]
            lines.append(f"| {kind} | {' | '.join(map(str, cells))} |")
        return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the published instances; without it, none of them is run")
    parser.add_argument("--results", type=Path, default=Path("benchmarks/data/assignment-study.jsonl"))
    parser.add_argument("--seeds", type=int, default=100, help="generated instances")
    parser.add_argument("--without-proofs", action="store_true", help="run the search alone")
    asked = parser.parse_args()
    study = Study(asked.results)
    mast_opt.warm_up("job-placement")
    instances = [*generated(asked.seeds), *(published(asked.data) if asked.data is not None else [])]
    for kind, name, gap in instances:
        if study.lacks(name, OURS):
            study.add(run(kind, name, job_placement(gap, name)))
    best = best_published()
    for _, name, gap in () if asked.without_proofs else instances:
        if study.lacks(name, EXACT) and name not in best and not study.rows[name, OURS]["proven"]:
            study.add(prove(name, gap, study.rows[name, OURS]))
    print(study.table(best))


if __name__ == "__main__":
    main()
