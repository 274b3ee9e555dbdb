"""Three policies of Gavel (OSDI'20) in cvxpy, as the paper states them: the peer of ``benchmarks/allocation.py``.

It runs in an environment of its own and needs nothing of mast-opt there:

    python3 -m venv .venv-cvxpy && .venv-cvxpy/bin/pip install cvxpy==1.9.3 ecos clarabel highspy
    .venv-cvxpy/bin/python benchmarks/peers/cvxpy_allocation.py instance.json --repeats 5

The instance has ``rate`` [J][G], ``gang`` [J], ``steps`` [J], ``fair_rate`` [J], ``fair_time_s`` [J] and ``gpus`` [G].
One line of JSON on stdout: policy → solver → the objective and the seconds of each repeat, from arrays to arrays.

Every policy is written once, with whole arrays, for every solver of cvxpy that takes it. A first solve of each is not
counted. ``las`` is the first level of max-min fairness. ``makespan`` searches T by halves as Gavel's own program does,
until 5% are left; its program is built once, with T as a parameter.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np

LINEAR = ("HIGHS", "CLARABEL", "SCIPY")
CONIC = ("CLARABEL", "ECOS", "SCS")
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
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("instance", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    cluster = Cluster(json.loads(arguments.instance.read_text()))
    answer: dict[str, dict[str, Any]] = {}
    for name, (policy, solvers) in POLICIES.items():
        answer[name] = {}
        for solver in solvers:
            try:
                objective = policy(cluster, solver)
            except cp.SolverError as error:
                answer[name][solver] = {"error": str(error).splitlines()[0]}
                continue
            seconds = []
            for _ in range(arguments.repeats):
                start = time.perf_counter()
                policy(cluster, solver)
                seconds.append(time.perf_counter() - start)
            answer[name][solver] = {"objective": objective, "seconds": seconds}
    print(json.dumps({"cvxpy": cp.__version__, "policies": answer}))


if __name__ == "__main__":
    main()
