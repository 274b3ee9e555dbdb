"""Solves in blocks: verified plans, certified bounds, the same plan wherever they are solved, also by lost workers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import mast_opt
from mast_opt.core.executor import Call, Executor, FoundT, GivenT, Shared, SharedInT, WorkerLost, executor
from mast_opt.planner.solving import Solution
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.generate import FAMILIES
from mast_opt.problems.data_placement.verification.certificate import certified_bound
from tests.data_placement.support import RELATIVE, made, same_plan
from tests.narrowing import some
from tests.platforms import needs

WORK = """
import os, signal, sys, threading, time
os.environ["RAY_worker_niceness"] = "0"  # or a busy machine leaves nothing for the workers
import mast_opt

def problem():
    return mast_opt.generate("data-placement", "organisation", seed=1, datasets=150, workloads=500, regions=3)

def solved(workers, **more):
    params = {"blocks.workers": workers, "blocks.count": 2, "gibbs.workloads": 100_000, "multistart.most_workloads": 0}
    return mast_opt.solve(problem(), "tetris", params=params, **({"threads": 2, "iterations": 8} | more))

def workers_now(name):
    parent, lines = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as line, open(f"/proc/{pid}/stat") as stat:
                state, above = stat.read().rsplit(")", 1)[1].split()[:2]
                parent[int(pid)], lines[int(pid)] = int(above), "" if state == "Z" else line.read()
        except OSError:
            pass

    def mine(pid):
        above = parent[pid]
        while above > 1 and above != os.getpid():
            above = parent.get(above, 0)
        return above == os.getpid()

    return [pid for pid, line in lines.items() if name in line and mine(pid)]

def when_busy(name, then):
    def wait():
        while not workers_now(name):
            time.sleep(0.01)
        time.sleep(0.3)
        then(workers_now(name))
    threading.Thread(target=wait, daemon=True).start()
"""
LOST_ON_RAY = """
import ray
ray.init(num_cpus=2, include_dashboard=False, logging_level="error")
here = solved("threads")
when_busy("ray::_in_task", lambda pids: os.kill(pids[0], signal.SIGKILL))
there = solved("ray")
ray.shutdown()
for name in ("place", "run_workload", "run_region", "run_type", "run_share"):
    assert (getattr(here.plan, name) == getattr(there.plan, name)).all(), name
assert there.bound == here.bound
assert "made again because a worker was lost" in there.message, there.message
"""
INTERRUPTED = """
if __name__ == "__main__":
    if WORKERS == "ray":
        import ray
        ray.init(num_cpus=2, include_dashboard=False, logging_level="error")
    when_busy(NAME, lambda pids: os.kill(os.getpid(), signal.SIGINT))
    found = solved(WORKERS, iterations=None, time_limit_s=300)
    print(found.limit.value, found.verdict.ok, found.bound is not None)
"""


def run(problem: DataPlacement, count: int = 2, **given: Any) -> Solution[Any]:
    params = {"blocks.count": count} | given.pop("params", {})
    return mast_opt.solve(problem, "tetris", **({"iterations": 8, "threads": 2, "gap": 0.0} | given), params=params)


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in ("links", "features", "lexicographic")])
def test_plan_and_bound_enclose_the_optimum(family: str) -> None:
    problem = made(family, datasets=20, workloads=30, regions=3)
    solution = run(problem, iterations=4)
    assert solution.verdict is not None
    assert solution.verdict.ok
    bound = some(solution.bound)
    assert bound <= some(solution.objective)
    assert certified_bound(problem, some(solution.certificate).arrays()) == pytest.approx(bound, rel=1e-12)
    exact = mast_opt.solve(problem, "highs", time_limit_s=2, threads=1, start=solution.plan)
    assert bound <= some(exact.objective) * (1 + RELATIVE)


def test_blocks_prove_nearly_what_one_search_proves() -> None:
    problem = made("standard", datasets=60, workloads=80, regions=3)
    blocks, whole = run(problem, iterations=4), mast_opt.solve(problem, "tetris", iterations=4, threads=1)
    assert some(blocks.bound) >= 0.95 * some(whole.bound)
    assert some(blocks.objective) <= 1.05 * some(whole.objective)


@pytest.mark.second_tier
def test_processes_find_the_plan_that_threads_find() -> None:
    problem = made("standard", datasets=60, workloads=60, regions=3)
    here = run(problem, 3, iterations=2)
    there = run(problem, 3, iterations=2, params={"blocks.workers": "processes"})
    assert same_plan(some(there.plan), some(here.plan))
    assert (there.bound, there.message) == (here.bound, here.message)
    assert there.params == {"blocks.count": 3, "blocks.workers": "processes"}


class Losing:
    """Threads that lose the first two calls of every three."""

    size = 2

    def __init__(self, inner: Executor) -> None:
        self.inner, self.made = inner, 0

    def share(self, value: SharedInT) -> Shared[SharedInT]:
        return self.inner.share(value)

    def run(self, call: Call[GivenT, FoundT], given: GivenT, stopped: Callable[[], bool]) -> FoundT:
        self.made += 1
        if self.made % 3:
            raise WorkerLost
        return self.inner.run(call, given, stopped)


def test_a_block_whose_worker_is_lost_is_solved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = made("standard", datasets=20, workloads=40, regions=3)
    best = run(problem, iterations=2)

    class Executors:
        def __init__(self, *args: Any) -> None:
            self.inner = executor(*args)

        def __enter__(self) -> Losing:
            return Losing(self.inner.__enter__())

        def __exit__(self, *error: Any) -> None:
            self.inner.__exit__(*error)

    monkeypatch.setattr("mast_opt.problems.data_placement.tetris.blocks.driver.executor", Executors)
    found = run(problem, iterations=2)
    assert same_plan(some(found.plan), some(best.plan))
    assert found.bound == best.bound
    assert found.message.startswith(f"{best.message}, ")
    assert found.message.endswith("made again because a worker was lost")


@needs("ray")
def test_a_ray_worker_that_is_killed_changes_nothing() -> None:
    script = [sys.executable, "-c", WORK + LOST_ON_RAY]
    ended = subprocess.run(script, capture_output=True, encoding="utf-8", check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]


@needs("signals")
@needs("ray")
@pytest.mark.parametrize(("workers", "name"), [("processes", "spawn_main"), ("ray", "ray::_in_task")])
def test_ctrl_c_leaves_the_best_plan(workers: str, name: str, tmp_path: Any) -> None:
    script = tmp_path / "interrupted.py"
    script.write_text(f"WORKERS, NAME = {workers!r}, {name!r}\n" + WORK + INTERRUPTED, encoding="utf-8")
    ended = subprocess.run([sys.executable, script], capture_output=True, encoding="utf-8", check=False)
    assert ended.stdout.splitlines()[-1:] == ["interrupt True True"], ended.stderr[-3000:]


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"blocks.workers": "fork"}, mast_opt.UsageError, "one of: threads, processes, ray"),
        ({"blocks.ray": "head:6379"}, mast_opt.UsageError, "set blocks.workers to ray"),
        ({"blocks.count": 500}, mast_opt.MastOptError, "500 blocks are more than the 15 workloads"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(given: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        mast_opt.solve(made("standard"), "tetris", iterations=2, params=given)


@pytest.mark.parametrize(("family", "words"), [("links", "cannot share links"), ("lexicographic", "not in an order")])
def test_instances_that_blocks_cannot_divide_are_refused(family: str, words: str) -> None:
    with pytest.raises(mast_opt.MastOptError, match=words):
        run(made(family))
