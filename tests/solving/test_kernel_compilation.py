"""Kernels are compiled before the clock starts, once, and then no solve and no live fleet compiles anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest

import mast_opt
from mast_opt.core.errors import Interrupted
from mast_opt.core.solve_result import Event
from mast_opt.planner.solving import clock, one_solver
from mast_opt.planner.solving import kernel_compilation as compiling
from mast_opt.problems.backends.base import solver_left_behind
from mast_opt.problems.registry import kind_named, kind_names
from mast_opt.problems.search.interface import Rehearsal, SearchContext

COUNTING = """
import json, sys
from numba.core import event

class Listener(event.Listener):
    compiled = []
    def on_start(self, event):
        self.compiled.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass

event.register("numba:compile", Listener())
import mast_opt
mast_opt.warm_up(KIND)
warm = list(Listener.compiled)
Listener.compiled.clear()
WORK
print(json.dumps([warm, Listener.compiled]))
"""
SOLVE = """
from dataclasses import replace
from mast_opt.core.errors import Interrupted
from mast_opt.problems.registry import kind_named
kind = kind_named(KIND)

def priced(problem, solver):
    weights = dict(problem.objective.weights)
    unpriced = kind.solvers.heuristics[solver].pricing.missing(problem, weights)
    return replace(problem, objective=replace(problem.objective, weights=weights | dict.fromkeys(unpriced, 0.0)))

for name, family in kind.generate.families.items():
    sizes = {size: max(family.least.get(size, 1), default // 8) for size, default in family.sizes.items()}
    small = mast_opt.generate(KIND, name, **sizes)
    mast_opt.solve(small, "highs", gap=0.9, threads=1, time_limit_s=20, options={"mip_max_nodes": 1})
    problem = mast_opt.generate(KIND, name, **EXTRA[name]) if name in EXTRA else small
    for solver in kind.solvers.heuristics:
        stated = priced(problem, solver)
        constructive = kind.solvers.is_constructive(solver)
        for threads in (1,) if constructive else (1, 2):
            mast_opt.solve(stated, solver, iterations=None if constructive else 3, threads=threads, time_limit_s=20)
"""
EXTRA = {"data-placement": {"standard": {"datasets": 100, "workloads": 2000, "regions": 4}}}
"""Kind → family → sizes, where kernels for large instances would not run otherwise."""
OPERATE = """
import numpy as np
from tests.job_placement.operations import random_operation, small_fleet
for seed in range(3):
    rng = np.random.default_rng(seed)
    fleet = small_fleet(rng)
    for number in range(200):
        random_operation(rng, fleet, number)
        fleet.explain(mast_opt.Job("asked", 0, tasks=2))
        fleet.bids(mast_opt.Job("asked", 0, tasks=2))
        fleet.defragment(mast_opt.MoveBudget(moves=2), [mast_opt.Job("asked", 0, tasks=2)])
    fleet.defragment(mast_opt.MoveBudget(moves=1))
"""
ROOT = Path(__file__).parents[2]


def _compiled(kind: str, work: str) -> tuple[list[str], list[str]]:
    """What a new process compiles to warm up, and what it compiles afterwards."""
    code = COUNTING.replace("WORK", work).replace("KIND", repr(kind)).replace("EXTRA", repr(EXTRA.get(kind, {})))
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert ended.returncode == 0, ended.stderr
    warm, later = json.loads(ended.stdout.splitlines()[-1])
    return warm, later


@pytest.mark.second_tier
@pytest.mark.parametrize("kind", kind_names())
def test_after_a_warm_up_nothing_compiles(kind: str) -> None:
    assert _compiled(kind, SOLVE)[1] == []
    assert _compiled(kind, "") == ([], []), "a second process finds everything in the cache"


@pytest.mark.second_tier
def test_after_a_warm_up_no_operation_of_a_live_fleet_compiles() -> None:
    assert _compiled("job-placement", OPERATE)[1] == []


def test_the_limit_does_not_cover_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    later = [0.0]
    monkeypatch.setattr(clock, "time", SimpleNamespace(perf_counter=lambda: time.perf_counter() + later[0]))

    def slowly(*arguments: object) -> None:
        later[0] += 5000.0
        arguments[-1]()  # type: ignore[operator]
        later[0] += 5000.0

    monkeypatch.setattr(one_solver, "rehearse", slowly)
    events: list[Event] = []
    problem = mast_opt.generate("data-placement", datasets=5, workloads=5, regions=2)
    for solver in ("tetris", "highs"):
        solution = mast_opt.solve(problem, solver, time_limit_s=1000, gap=0.5, on_event=events.append)
        assert solution.plan is not None
        assert solution.limit is None
        assert solution.runtime_s["compile"] >= 10_000
        assert solution.runtime_s["solve"] < 1000
        first, second, *_ = solution.events
        assert (first.compiling, second.compiling) == (True, False)
        assert first.incumbent is first.bound is second.incumbent is None
        assert all(event.elapsed_s < 1000 for event in solution.events)


def test_a_rehearsal_runs_once_and_says_when_it_compiles() -> None:
    kind, said, ran = kind_named("data-placement"), [], []

    @numba.njit
    def fresh(value):  # type: ignore[no-untyped-def]
        return value + 1

    def run(tools: SearchContext) -> None:
        ran.append(fresh(1))

    rehearsals = [Rehearsal("a test", run)]
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(Interrupted):
        compiling.rehearse(kind, rehearsals, cancelled)
    assert ran == []
    for _ in range(2):
        compiling.rehearse(kind, rehearsals, on_compile=lambda: said.append(len(ran)))
    assert ran == [2]
    assert said == [0]


def test_every_heuristic_says_what_it_needs() -> None:
    for name in kind_names():
        kind = kind_named(name)
        names = [rehearsal.name for rehearsal in compiling.all_needed(kind)]
        assert len(names) == len(set(names))
        for solver in kind.solvers.heuristics:
            assert kind.solvers.heuristics[solver].rehearsals(None)


CANCELLED = """
import threading
import mast_opt

problem = mast_opt.generate("data-placement", datasets=6, workloads=6, regions=2)
start = mast_opt.solve(problem, "highs", gap=0.9).plan if START else None
cancel = threading.Event()

def on_event(event):
    if event.compiling:
        cancel.set()

solution = mast_opt.solve(problem, "tetris", start=start, cancel=cancel, on_event=on_event)
print(solution.status.value, solution.limit.value, solution.message, sep="|")
"""


@pytest.mark.second_tier
@pytest.mark.parametrize(("start", "status"), [(True, "FEASIBLE"), (False, "NO_SOLUTION")])
def test_a_cancelled_solve_does_not_wait_for_the_compiler(tmp_path: Path, start: bool, status: str) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    code = CANCELLED.replace("START", repr(start))
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(f"{status}|interrupt|")
    assert "while kernels were compiled" in ended.stdout
    assert ended.stderr == ""


def test_what_cannot_be_compiled_elsewhere_is_given_up_at_the_next_step_of_the_compiler() -> None:
    cancel, ran = threading.Event(), []

    @numba.njit
    def fresh(value):  # type: ignore[no-untyped-def]
        return value + 1

    rehearsals = [Rehearsal("a test that is cancelled", lambda tools: ran.append(fresh(1)))]
    with pytest.raises(Interrupted):
        compiling.rehearse(kind_named("data-placement"), rehearsals, cancel, on_compile=cancel.set)
    while solver_left_behind():
        time.sleep(0.01)
    assert ran == []
    assert fresh.signatures == []


def test_a_thread_that_waits_for_another_one_to_compile_can_be_cancelled() -> None:
    compiles, go_on, cancel = threading.Event(), threading.Event(), threading.Event()
    kind = kind_named("data-placement")

    def run(tools: SearchContext) -> None:
        compiles.set()
        go_on.wait()

    other = threading.Thread(target=compiling.rehearse, args=(kind, [Rehearsal("a test that waits", run)]))
    other.start()
    compiles.wait()
    cancel.set()
    try:
        with pytest.raises(Interrupted):
            compiling.rehearse(kind, [Rehearsal("a test that follows", lambda tools: None)], cancel)
    finally:
        go_on.set()
        other.join()


def test_who_listens_hears_of_every_compilation_and_how_long_it_took() -> None:
    heard: list[tuple[str, bool]] = []

    @numba.njit
    def fresh(value):  # type: ignore[no-untyped-def]
        return value + 1

    kind = kind_named("data-placement")
    with compiling.compilation_heard(lambda name, seconds: heard.append((name, seconds is None))):
        compiling.rehearse(kind, [Rehearsal("a test that is heard", lambda tools: fresh(1) and None)])
        compiling.rehearse(kind, [Rehearsal("a test that compiles nothing", lambda tools: None)])
    compiling.rehearse(kind, [Rehearsal("a test that nobody hears", lambda tools: fresh(1.5) and None)])
    assert heard == [("data-placement", True), ("data-placement", False)]
