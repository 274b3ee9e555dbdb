"""Where the parts of POP are solved: the same plan everywhere, also when a worker is lost, and limits that are kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import mast_opt
from mast_opt.core.executor import Call, Executor, FoundT, GivenT, WorkerLost
from mast_opt.core.solve_result import Limit, Status
from tests.narrowing import some
from tests.platforms import needs
from tests.resource_allocation.methods.test_pop import packed

ON_RAY = """
import numpy as np
import ray
import mast_opt
ray.init(num_cpus=2, include_dashboard=False, logging_level="error")
problem = mast_opt.generate("resource-allocation", "packing", seed=1, jobs=9, types=2)
here = mast_opt.solve(problem, params={"pop": 3}, threads=1)
there = mast_opt.solve(problem, params={"pop": 3, "pop_workers": "ray"}, threads=1)
cut = mast_opt.solve(problem, params={"pop": 3, "pop_workers": "ray"}, time_limit_s=0.001, start=here.plan)
ray.shutdown()
np.testing.assert_array_equal(here.plan.share, there.plan.share)
assert (here.bound, here.message) == (there.bound, there.message)
assert cut.objective >= here.objective * (1 - 1e-9), cut
"""

INTERRUPTED = """
import multiprocessing
import threading
import time
import mast_opt

def say_when_a_worker_is_there():
    while not multiprocessing.active_children():
        time.sleep(0.01)
    print("begun", flush=True)

problem = mast_opt.generate("resource-allocation", "packing", seed=1, jobs=9, types=2)
start = mast_opt.solve(problem).plan
threading.Thread(target=say_when_a_worker_is_there, daemon=True).start()
found = mast_opt.solve(problem, params={"pop": 3, "pop_workers": "processes"}, start=start, threads=1)
print(found.limit.value, found.plan is not None, multiprocessing.active_children())
"""


@pytest.mark.second_tier
def test_processes_find_the_plan_that_threads_find() -> None:
    problem = packed("max-min", 1, jobs=20)
    here = mast_opt.solve(problem, params={"pop": 5}, threads=2)
    there = mast_opt.solve(problem, params={"pop": 5, "pop_workers": "processes"}, threads=2)
    np.testing.assert_array_equal(some(there.plan).share, some(here.plan).share)
    assert (there.bound, there.message) == (here.bound, here.message)
    assert there.params == {"pop": 5, "pop_workers": "processes"}


@needs("ray")
def test_a_ray_cluster_finds_the_plan_that_threads_find() -> None:
    ended = subprocess.run([sys.executable, "-c", ON_RAY], capture_output=True, encoding="utf-8", check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]


class Losing:
    """An executor that loses the first call after making it."""

    size = 2

    def __init__(self) -> None:
        self.made = 0

    def run(self, call: Call[GivenT, FoundT], given: GivenT, stopped: Callable[[], bool]) -> FoundT:
        self.made += 1
        if self.made == 1:
            raise WorkerLost
        return call(given, threading.Event())


def test_a_part_whose_worker_is_lost_is_solved_here(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = packed("max-min", 1)
    best = mast_opt.solve(problem, params={"pop": 3})
    losing = Losing()

    @contextmanager
    def executor(name: str, size: int, cancel: threading.Event, address: str) -> Iterator[Executor]:
        assert (name, address) == ("ray", "head:6379")
        yield losing

    monkeypatch.setattr("mast_opt.problems.resource_allocation.methods.pop.executor", executor)
    found = mast_opt.solve(problem, params={"pop": 3, "pop_workers": "ray", "pop_ray": "head:6379"})
    assert losing.made == 3
    np.testing.assert_array_equal(some(found.plan).share, some(best.plan).share)
    assert found.message == f"{best.message}, 1 of them solved again here because a worker was lost"


@pytest.mark.second_tier
def test_a_solve_that_is_out_of_time_ends_with_its_start() -> None:
    problem = packed("max-min", 1)
    best = mast_opt.solve(problem)
    params = {"pop": 3, "pop_workers": "processes"}
    found = mast_opt.solve(problem, params=params, start=best.plan, time_limit_s=0.01)
    assert (found.status, found.limit) == (Status.FEASIBLE, Limit.TIME)
    assert "lost" not in found.message
    assert some(found.objective) >= some(best.objective) * (1 - 1e-9)


@pytest.mark.second_tier
@needs("signals")
def test_ctrl_c_ends_the_workers_and_leaves_a_plan() -> None:
    """The signal goes to the whole group of processes, as that of a terminal does."""
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        assert some(process.stdout).readline() == "begun\n"
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (out.splitlines()[-1], err) == ("interrupt True []", "")


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"pop": 2, "pop_workers": "fork"}, "one of: threads, processes, ray"),
        ({"pop_workers": "processes"}, "set pop to how many there are"),
        ({"pop": 2, "pop_ray": "head:6379"}, "set pop_workers to ray"),
    ],
)
def test_parameters_that_would_do_nothing_are_refused(params: dict[str, object], words: str) -> None:
    with pytest.raises(mast_opt.UsageError, match=words):
        mast_opt.solve(packed("max-min", 1), params=params)


def test_without_ray_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(mast_opt.BackendUnavailable, match=r"pip install 'mast-opt\[ray\]'"):
        mast_opt.solve(packed("max-min", 1), params={"pop": 2, "pop_workers": "ray"})
