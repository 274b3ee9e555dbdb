"""Every command and every public function on small instances: ``python -W error -m tests.every_call DIR``.

Prints each call that ended otherwise than it should, and ends with 1 where there is one.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mast_opt
from mast_opt.cli import main
from mast_opt.cli.app import COMMANDS
from mast_opt.core.errors import UnsupportedOption, UsageError
from mast_opt.live.policies import gavel
from mast_opt.problems.registry import kind_of
from mast_opt.problems.resource_allocation.policies import POLICIES
from tests.resource_allocation.support import odd

GIVEN: dict[str, tuple[str, dict[str, int]]] = {
    "data-placement": ("features", {"datasets": 5, "workloads": 6, "regions": 2}),
    "job-placement": ("features", {"regions": 2, "clusters": 1, "servers": 2, "jobs": 6}),
    "server-assignment": ("features", {"servers": 12, "reservations": 2, "datacenters": 2}),
    "task-reassignment": ("challenge", {"processes": 10, "machines": 3, "resources": 2}),
    "resource-allocation": ("features", {"jobs": 4, "types": 2}),
}
"""Kind → family and sizes of an instance."""
ELSEWHERE = {
    "advise": "needs SkyPilot or Slurm; tests/hosts runs it",
    "dispatch": "goes on until it is stopped, and needs clusters; the tests of hosts/ run it",
    "serve": "goes on until it is stopped; the tests of service/ run it",
    "drain": "asks a service that runs; tests/service/test_drains.py does",
    "bench": "starts a process for each run",
    "import": "reads files of other tools; the tests of importers/ run it",
    "import_instance": "the same",
    "import_trace": "the same",
}
"""Commands and functions that are not called here, and why."""
SIMULATED = ("fifo", "sjf", "srtf", "las", "mast", "federated", "gavel", "tiresias")
TRACES = Path(__file__).parents[1] / "instances" / "traces"
USED: set[str] = set()
"""Names of the commands and functions that were called."""


class Calls:
    """What was called and what became of it."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.count = 0

    def command(self, name: str, *tokens: object, codes: tuple[int, ...] = (0,)) -> None:
        """Run a command, which has to end with one of these codes and say nothing of a warning."""
        USED.add(name)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([name, *map(str, tokens)])
        words = err.getvalue()
        self._note(
            f"mast-opt {name} {' '.join(map(str, tokens))}",
            code in codes and "Warning" not in words,
            f"{code}: {words}",
        )

    def function(self, function: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Call a function and return what it returns; an option that a kind does not support is said, and None."""
        USED.add(function.__name__)
        words = f"{function.__name__}({', '.join(type(one).__name__ for one in given)}, {', '.join(named)})"
        try:
            found = function(*given, **named)
        except (UnsupportedOption, UsageError) as error:
            self._note(f"{words}: {error}", True, "")
            return None
        except Exception:  # a warning is one
            self._note(words, False, traceback.format_exc())
            return None
        self._note(words, True, "")
        return found

    def _note(self, words: str, right: bool, said: str) -> None:
        self.count += 1
        if not right:
            self.failed.append(words)
            print(f"FAILED {words}\n{said}", flush=True)


def run(folder: Path) -> Calls:
    """Every call, with files in this folder."""
    calls = Calls()
    os.chdir(folder)
    for kind in GIVEN:
        commands_of(calls, kind, folder / kind)
        functions_of(calls, kind, folder / f"{kind}-functions")
    allocations(calls)
    of_time(calls, folder)
    return calls


def commands_of(calls: Calls, kind: str, folder: Path) -> None:
    """Every command that takes an instance of this kind; 2 is a question that the kind does not answer."""
    family, sizes = GIVEN[kind]
    folder.mkdir()
    instance, plan, asked = folder / "instance", folder / "plan", (0, 2)
    values = [token for name, value in sizes.items() for token in (f"--{name}", value)]
    calls.command("generate", kind, instance, "--family", family, *values)
    calls.command("validate", instance)
    for solver in ("highs", "scip", *kind_of(mast_opt.read(instance)).solvers.heuristics):
        limits = ("--time-limit", 3, "--out", folder / f"plan-{solver}", "--seed", 1)
        calls.command("solve", instance, "--solver", solver, *limits, codes=(0, 2, 4))
    calls.command("solve", instance, "--solver", "highs", "--out", plan)
    calls.command("verify", instance, plan)
    calls.command("prove", instance, plan, "--out", folder / "proof", "--time-limit", 1)
    calls.command("prove", "--check", folder / "proof")
    calls.command("diff", instance, plan, codes=asked)
    calls.command("steps", instance, plan, codes=(0, 2, 3))
    calls.command("explain", instance, codes=asked)
    calls.command("marginal", instance, "--plan", plan, codes=asked)
    calls.command("buy", instance, "--time-limit", 10, codes=(0, 2, 4))
    calls.command("pareto", instance, "--terms", "storage,peak", "--points", 2, codes=asked)
    scenarios = folder / "scenarios.toml"
    scenarios.write_text('[[scenario]]\nname = "same"\n')
    calls.command("whatif", instance, "--scenarios", scenarios, "--plan", plan, codes=asked)
    periods = folder / "periods.toml"
    periods.write_text('[[period]]\nname = "first"\n[[period]]\nname = "second"\n')
    calls.command("periods", instance, "--periods", periods, codes=asked)
    calls.command("report", instance, plan, "--out", folder / "report.html")
    calls.command("report", instance, plan, "--out", folder / "results.xlsx", codes=asked)
    for ending in (".lp", ".mps", ".dat", ".xlsx", ".json"):
        calls.command("export", instance, folder / f"exported{ending}", codes=asked)
    calls.command("template", kind, folder / "template.xlsx")
    calls.command("solve", folder / "template.xlsx", "--solver", "highs")


def functions_of(calls: Calls, kind: str, folder: Path) -> None:
    """Every public function of an instance of this kind and of a plan of it."""
    family, sizes = GIVEN[kind]
    folder.mkdir()
    problem = calls.function(mast_opt.generate, kind, family, **sizes)
    solution = calls.function(mast_opt.solve, problem, "highs")
    plan, ask = solution.plan, calls.function
    header = {"objective": {"policy": "max-min"}} if kind == "resource-allocation" else {}
    for function in (mast_opt.checksum, mast_opt.formulate, mast_opt.validate, mast_opt.to_tables, mast_opt.solvers):
        ask(function, kind if function is mast_opt.solvers else problem)
    ask(mast_opt.from_tables, kind, mast_opt.to_tables(problem), **header)
    ask(mast_opt.plan_from_tables, problem, mast_opt.to_tables(problem, plan))
    ask(mast_opt.verify, problem, plan)
    ask(mast_opt.resolve, problem, solution)
    ask(mast_opt.diff, problem, None, plan)
    ask(mast_opt.steps, problem, plan)
    ask(mast_opt.risk, problem, plan)
    ask(mast_opt.explain, problem, plan)
    ask(mast_opt.marginal_values, problem, plan)
    ask(mast_opt.buy, problem, time_limit_s=10)
    frontier = ask(mast_opt.pareto, problem, ("storage", "peak"), points=2)
    scenarios = (mast_opt.Scenario("same"),)
    ask(mast_opt.whatif, problem, scenarios, plan)
    ask(mast_opt.plan_periods, problem, scenarios)
    ask(mast_opt.buy_in_time, problem, scenarios, time_limit_s=10)
    ask(mast_opt.solve_goals, problem, solver="highs", time_limit_s=9)
    ask(mast_opt.plan_periods_jointly, problem, scenarios)
    ask(mast_opt.start, problem, time_limit_s=3).result()
    ask(mast_opt.write, problem, folder / "instance")
    ask(mast_opt.read, folder / "instance")
    ask(mast_opt.write_plan, problem, solution, folder / "plan")
    ask(mast_opt.read_plan, problem, folder / "plan")
    ask(mast_opt.export, problem, folder / "program.lp")
    ask(mast_opt.write_program, mast_opt.formulate(problem), folder / "program.mps")
    ask(mast_opt.write_report, problem, plan, folder / "report.html")
    ask(mast_opt.write_workbook, problem, plan, folder / "results.xlsx")
    ask(mast_opt.write_template, kind, folder / "template.xlsx")
    ask(mast_opt.plot_plan, problem, plan)
    ask(mast_opt.plot_search, solution)
    if frontier is not None:
        ask(mast_opt.plot_frontier, frontier)


def allocations(calls: Calls) -> None:
    """Every policy of resource allocation, and Gavel's, on ordinary and on odd instances."""
    for policy in POLICIES:
        for whole in (False, True):
            for seed in range(0 if whole and policy == "hierarchical" else 6):
                calls.function(mast_opt.solve, odd(seed, policy, whole=whole), "highs")
    rates = np.array([[9.0, 7.0], [6.0, 8.0], [1.0, 4.0]])
    jobs = gavel.Jobs(rates, steps=np.full(3, 100.0), entity=np.zeros(3, np.int64), entity_weight=np.ones(1))
    for policy in gavel.POLICIES:
        price = np.ones(2) if policy == "cost" else None
        calls.function(gavel.solve, jobs, [1.0, 3.0], policy, price=price)


def of_time(calls: Calls, folder: Path) -> None:
    """Traces, scenarios and periods, and what is asked without an instance."""
    trace = TRACES / "tiresias-60"
    for policy in SIMULATED:
        calls.command("simulate", trace, "--policy", policy)
    calls.command("simulate", trace, "--policy", "mast", "--out", folder / "run")
    calls.command("report", folder / "run", "--out", folder / "run.html")
    calls.function(mast_opt.plot_run, calls.function(mast_opt.simulate, mast_opt.read_trace(trace), "fifo"))
    calls.function(mast_opt.read_trace, trace)
    for table, read in (("scenario", mast_opt.read_scenarios), ("period", mast_opt.read_periods)):
        path = folder / f"{table}s.toml"
        path.write_text(f'[[{table}]]\nname = "same"\n')
        calls.function(read, path)
    calls.command("backends")
    calls.command("backends", "resource-allocation")
    calls.command("plug-ins")
    calls.command("warm-up", "simulation")
    calls.function(mast_opt.warm_up, "simulation")


if __name__ == "__main__":
    warnings.simplefilter("ignore", mast_opt.InstanceWarning)  # ours, of values that are odd
    ended = run(Path(sys.argv[1]))
    public = {name for name in mast_opt.__all__ if inspect.isfunction(getattr(mast_opt, name))}
    missing = sorted((public | set(COMMANDS)) - USED - ELSEWHERE.keys())
    print(f"{ended.count} calls, {len(ended.failed)} failed; never called: {', '.join(missing) or 'none'}")
    raise SystemExit(1 if ended.failed or missing else 0)
