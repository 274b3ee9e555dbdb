"""What the adapters of Meta's Rebalancer share: how they are called, how it searches, and how its answer is written.

They run in an environment of its own (Python 3.12 or newer) and need nothing of mast-opt there:

    python3.12 -m venv .venv-rebalancer && .venv-rebalancer/bin/pip install rebalancer==1.0.4
    mast-opt export my-instance my-instance.json
    .venv-rebalancer/bin/python benchmarks/peers/rebalancer_data.py my-instance.json my-plan.json --time-limit 60
    mast-opt verify my-instance my-plan.json

In a suite: a contestant with ``peer = "../peers/rebalancer_data.py"``; the verifier then has the last word.

Rebalancer gives each object exactly one container, states no bound, and holds the interpreter while it solves.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rebalancer import ProblemSolver

Json = dict[str, Any]
SAMPLES = (10, 100)
"""Of single moves and of swaps: few while that helps, then many."""
END = {1: "optimal", 2: "time limit", 3: "move limit", 5: "plateau", 8: "exception", 9: "unable to find more moves"}
"""Its numbers for why it stopped."""


@dataclass(frozen=True)
class Question:
    """An instance in Rebalancer's words, and the way back."""

    solver: ProblemSolver
    """With objects, containers, constraints and goals, but no search yet."""
    container: str
    """What containers are called."""
    containers: list[str]
    tables_of: Callable[[dict[str, str]], dict[str, list[Json]]]
    """The tables of a plan from object → container."""


def search(asked: Question, time_limit_s: float, seed: int) -> ProblemSolver:
    """Stratified single moves and sampled swaps: the single moves and full swaps of its README stall."""
    everywhere = {"scopeName": asked.container, "scopeItems": asked.containers}
    anywhere = {"moveToScopeItems": {"defaultScopeItems": everywhere}}
    moves: list[Json] = []
    for sample in SAMPLES:
        single = {"destinationsToExplore": anywhere, "stratifiedSampleSize": {"defaultSampleSize": sample}}
        moves += [{"singleRandomStratifiedMoveTypeSpec": single}]
        moves += [{"swapMoveTypeSpec": {"sampleSize": {"defaultSampleSize": sample}}}]
    settings = {"solveTime": max(1, int(time_limit_s)), "randomSeed": seed, "moveTypeList": moves}
    return asked.solver.add_solver({"localSearchSolverSpec": settings})


def run(about: str | None, kind: str, question: Callable[[Json], Question]) -> None:
    """The command: reads an instance, writes a plan, prints one JSON object.

    Args:
        about: the help.
        kind: of the instances that the adapter takes.
        question: puts an instance in Rebalancer's words; exits where it has none.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("instance", type=Path)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for the search")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="it takes the processors that its process may use")
    chosen = parser.parse_args()
    instance = json.loads(chosen.instance.read_text(encoding="utf-8"))
    given = instance["instance"]["kind"]
    if given != kind:
        raise SystemExit(f"this adapter takes {kind}, not {given}")
    asked = question(instance)
    began = time.perf_counter()
    solution = search(asked, chosen.time_limit, chosen.seed).solve()
    spent = time.perf_counter() - began
    plan = {"plan": {"format": "mast-opt/1", "kind": kind}, **asked.tables_of(solution["assignment"])}
    chosen.plan.write_text(json.dumps(plan), encoding="utf-8")
    ends = [END.get(report.get("endReason"), "unknown end") for report in solution.get("solverSummaries", [])]
    answer = {"versions": {"rebalancer": version("rebalancer")}, "message": ", ".join(ends), "solve_s": spent}
    print(json.dumps(answer))
