"""Policies of Gavel (OSDI'20), Nash welfare and the harmonic mean in cvxpy: the peer of ``benchmarks/allocation.py``.

It runs in an environment of its own and needs nothing of mast-opt there:

    python3 -m venv .venv-cvxpy && .venv-cvxpy/bin/pip install cvxpy==1.9.3 ecos clarabel highspy
    .venv-cvxpy/bin/python benchmarks/peers/cvxpy_allocation.py

It answers lines of JSON on stdin with one line each. ``{"instance": PATH}`` reads ``rate`` [J][G], ``gang`` [J],
``steps`` [J], ``fair_rate`` [J], ``fair_time_s`` [J] and ``gpus`` [G]; the answer is policy → its solvers.
``{"policy": …, "solver": …}`` solves; the answer has the objective, and seconds and processor seconds from arrays to
arrays, or an error.

Every policy is written once, with whole arrays, for every solver of cvxpy that fits. ``las`` is the first level of
max-min fairness. ``makespan`` searches T by halves as Gavel's own program does, until 5% are left; its program is built
once, with T as a parameter. ``ftf`` is one program with a cone for each job. ``ftf-by-job`` is the same program as
Gavel's published code writes it: one expression for each job, and the maximum of all.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np

LINEAR = ("HIGHS", "CLARABEL", "SCIPY")
CONIC = ("CLARABEL", "ECOS")
"""SCS takes a hundred times as long at 512 jobs."""
LEFT = 1.05
"""Ratio of the two ends of the interval of T at which the halving ends."""
FIRST_S = (100.0, 1e6)
"""Gavel's first interval of T."""


class Cluster:
    """An instance, and what every policy asks of an allocation."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.rate, self.gang, self.steps, self.fair_rate, self.fair_time_s, self.gpus = (
            np.asarray(data[name], float) for name in ("rate", "gang", "steps", "fair_rate", "fair_time_s", "gpus")
        )

    def allocation(self) -> tuple[cp.Variable, list[cp.Constraint]]:
        x = cp.Variable(self.rate.shape, nonneg=True)
        return x, [cp.sum(x, axis=1) <= 1, self.gang @ x <= self.gpus]

    def speed(self, x: cp.Variable) -> cp.Expression:
        return cp.sum(cp.multiply(self.rate, x), axis=1)


def las(cluster: Cluster, solver: str) -> float:
    """The smallest rate over the fair one, as large as possible."""
    x, limits = cluster.allocation()
    program = cp.Problem(cp.Maximize(cp.min(cluster.speed(x) / cluster.fair_rate)), limits)
    program.solve(solver=solver)
    return float(((cluster.rate * x.value).sum(axis=1) / cluster.fair_rate).min())


def finish_time_fairness(cluster: Cluster, solver: str) -> float:
    """The largest time to finish over the fair one, as small as possible."""
    x, limits = cluster.allocation()
    ratio = cp.multiply(cluster.steps / cluster.fair_time_s, cp.inv_pos(cluster.speed(x)))
    cp.Problem(cp.Minimize(cp.max(ratio)), limits).solve(solver=solver)
    return float((cluster.steps / (cluster.rate * x.value).sum(axis=1) / cluster.fair_time_s).max())


def finish_time_fairness_by_job(cluster: Cluster, solver: str) -> float:
    """The same as Gavel's code states it."""
    x, limits = cluster.allocation()
    ratios = [
        steps * cp.inv_pos(cp.sum(cp.multiply(rate, x[job]))) / fair
        for job, (rate, steps, fair) in enumerate(zip(cluster.rate, cluster.steps, cluster.fair_time_s))
    ]
    cp.Problem(cp.Minimize(cp.maximum(*ratios)), limits).solve(solver=solver)
    return float((cluster.steps / (cluster.rate * x.value).sum(axis=1) / cluster.fair_time_s).max())


def nash(cluster: Cluster, solver: str) -> float:
    """The sum of the logarithms of the rates."""
    x, limits = cluster.allocation()
    cp.Problem(cp.Maximize(cp.sum(cp.log(cluster.speed(x)))), limits).solve(solver=solver)
    return float(np.log((cluster.rate * x.value).sum(axis=1)).sum())


def harmonic(cluster: Cluster, solver: str) -> float:
    """The sum of the fair rates over the rates."""
    x, limits = cluster.allocation()
    inverse = cp.multiply(cluster.fair_rate, cp.inv_pos(cluster.speed(x)))
    cp.Problem(cp.Minimize(cp.sum(inverse)), limits).solve(solver=solver)
    return float((cluster.fair_rate / (cluster.rate * x.value).sum(axis=1)).sum())


def makespan(cluster: Cluster, solver: str) -> float:
    """The time until all jobs have ended, by halving."""
    x, limits = cluster.allocation()
    inverse = cp.Parameter(nonneg=True)
    program = cp.Problem(cp.Maximize(0), [*limits, cluster.speed(x) >= cluster.steps * inverse])
    low, high = FIRST_S
    found = None
    while found is None:
        ceiling = high
        while LEFT * low < high:
            middle = (low + high) / 2
            inverse.value = 1.0 / middle
            program.solve(solver=solver)
            if program.status == cp.OPTIMAL:
                found, high = x.value, middle
            else:
                low = middle
        low, high = ceiling, 10 * ceiling
    return float((cluster.steps / (cluster.rate * found).sum(axis=1)).max())


POLICIES: dict[str, tuple[Callable[[Cluster, str], float], tuple[str, ...]]] = {
    "las": (las, LINEAR),
    "makespan": (makespan, LINEAR),
    "ftf": (finish_time_fairness, CONIC),
    "ftf-by-job": (finish_time_fairness_by_job, CONIC),
    "nash": (nash, CONIC),
    "harmonic": (harmonic, CONIC),
}


def solved(cluster: Cluster, policy: str, solver: str) -> dict[str, Any]:
    """The objective and what it took."""
    wall, processor = time.perf_counter(), time.process_time()
    try:
        objective = POLICIES[policy][0](cluster, solver)
    except cp.SolverError as error:
        return {"error": str(error).splitlines()[0]}
    return {
        "objective": objective,
        "seconds": time.perf_counter() - wall,
        "processor_s": time.process_time() - processor,
    }


def main() -> None:
    cluster: Cluster | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        if "instance" in asked:
            cluster = Cluster(json.loads(Path(asked["instance"]).read_text()))
            answer: dict[str, Any] = {name: solvers for name, (_, solvers) in POLICIES.items()}
        else:
            assert cluster is not None
            answer = solved(cluster, asked["policy"], asked["solver"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
