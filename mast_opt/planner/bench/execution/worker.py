"""One run inside its own process: load the instance, solve, verify, write down what happened.

    python -m mast_opt.planner.bench.execution.worker TRIAL RESULT [PLAN]

TRIAL is a pickled ``Trial``, RESULT the JSON file to write, PLAN a folder for the plan. Whatever goes wrong within
Python ends up in RESULT; what does not come back at all is for the parent to see.

A solver may live in an environment of its own: files in, files out, and our verifier has the last word. Its adapter is
a script that needs nothing of mast-opt. It is called with the interpreter of its environment as

    python benchmarks/peers/NAME.py INSTANCE.json PLAN.json --time-limit S --seed N --threads N

reads an instance as ``mast-opt export`` writes it to JSON, writes a plan in the same form (``{"plan": {"format": …,
"kind": …}, TABLE: [one object a row], …}``, every table of the plan), and prints one JSON object ``{"versions": {…},
"message": "…", "solve_s": …}``. The interpreter is that of ``.venv-NAME`` here, or what the variable MAST_OPT_PEER_NAME
says, NAME without what follows an underscore, so that adapters share an environment. (No adapter may have the name of
the library that it imports.)
"""

import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mast_opt.core import errors
from mast_opt.core.sense import Sense
from mast_opt.core.solve_result import Event, Status
from mast_opt.planner.bench.results.store import Ended
from mast_opt.planner.bench.suites.instances import Program
from mast_opt.planner.bench.suites.suite import Trial
from mast_opt.planner.io import read_plan, write
from mast_opt.planner.solving import solve, write_plan_folder
from mast_opt.planner.solving.auto_strategy import AUTO, EXACT
from mast_opt.planner.solving.kernel_compilation import needed, rehearse
from mast_opt.problems import backends
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import Problem
from mast_opt.problems.registry import kind_of

SHOWN = 3
"""Violations of a rejected plan that the result names."""


def interpreter(adapter: Path) -> Path:
    """The Python of a benchmark peer's environment. Raises BackendUnavailable, saying how to make one."""
    name = adapter.stem.partition("_")[0]
    variable = f"MAST_OPT_PEER_{name.upper()}"
    chosen = Path(os.environ.get(variable) or f".venv-{name}/bin/python")
    if not chosen.is_file():
        raise errors.BackendUnavailable(
            f"{name} has no environment at {chosen}; docs/benchmarks/peers.md says how to make one, "
            f"or let {variable} name the Python of one"
        )
    return chosen


def solve_with_peer(trial: Trial, problem: Problem[Any]) -> dict[str, Any]:
    """The result of a peer on a problem: status, objective and terms as our verifier sees its plan.

    Raises:
        BackendUnavailable: its environment is missing.
        BackendError: the adapter failed; carries its last words.
    """
    adapter = trial.contestant.peer
    assert adapter is not None
    python = interpreter(adapter)
    with tempfile.TemporaryDirectory() as folder:
        instance, plan_file = Path(folder) / "instance.json", Path(folder) / "plan.json"
        write(problem, instance)
        options = ["--time-limit", trial.time_limit_s, "--seed", trial.seed, "--threads", trial.threads]
        words = [python, adapter, instance, plan_file, *options]
        ended = subprocess.run([str(word) for word in words], capture_output=True, encoding="utf-8", check=False)
        if ended.returncode:
            last = ended.stderr.strip().splitlines()[-1:] or ["without a word"]
            raise errors.BackendError(f"{adapter.name} ended {ended.returncode}: {last[0]}")
        answer = last_object(ended.stdout, adapter.name)
        record: dict[str, Any] = {
            "status": Status.NO_SOLUTION.value,
            "message": answer.get("message", ""),
            "versions": answer.get("versions", {}),
            "runtime_s": {"solve": answer.get("solve_s", 0.0)},
            "events": [],
        }
        if plan_file.exists():
            record |= _judged(problem, plan_file)
    return record


def last_object(printed: str, name: str) -> dict[str, Any]:
    """The JSON object in the last line that a benchmarked script printed. Raises BackendError, quoting the line, if it
    is none.
    """
    line = (printed.strip().splitlines() or [""])[-1]
    try:
        answer = json.loads(line)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise errors.BackendError(f"{name} printed {line[:80]!r} last; expected a JSON object in the last line")
    return answer


def _judged(problem: Problem[Any], plan_file: Path) -> dict[str, Any]:
    """Result of a peer's plan as our verifier judges it."""
    verdict = kind_of(problem).verification.verify(problem, read_plan(problem, plan_file))
    if not verdict.ok:
        broken = "; ".join(str(violation) for violation in verdict.violations[:SHOWN])
        return {"status": Ended.REJECTED.value, "error": f"{len(verdict.violations)} violations: {broken}"}
    return {
        "status": Status.FEASIBLE.value,
        "objective": verdict.objective,
        "terms": dict(verdict.terms),
        "metrics": dict(verdict.metrics),
    }


SLOT = 1.05
"""Factor between the end and the beginning of a slot of time; only the last event within a slot is kept."""


def main(arguments: Sequence[str]) -> int:
    """The process of one run: reads a pickled ``Trial``, writes the result as JSON. Returns the exit code.

    Args:
        arguments: the file of the trial, the file for the result, and the folder for the plan unless none is wanted.
    """
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    trial_file, result_file, *plan_folder = (Path(argument) for argument in arguments)
    trial: Trial = pickle.loads(trial_file.read_bytes())
    record = run(trial, plan_folder[0] if plan_folder else None)
    record["peak_memory_mb"] = peak_memory_mb()
    result_file.write_text(json.dumps(record, allow_nan=False), encoding="utf-8")
    return 0


def _end_with(parent: int) -> None:
    """End this process and its children once its parent is gone, since an abandoned run disturbs the next."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os.killpg(0, signal.SIGKILL)


def run(trial: Trial, plan_folder: Path | None) -> dict[str, Any]:
    """The result of a run, whatever its end."""
    began = time.perf_counter()
    try:
        if isinstance(trial.source, Program):
            return _program(trial, trial.source)
        problem = trial.source.load()
        read_s = time.perf_counter() - began
        if trial.contestant.peer is not None:
            record = solve_with_peer(trial, problem)
        else:
            _warm(trial, kind_of(problem), problem)
            record = _solve(trial, problem, plan_folder)
        if problem.sense is not Sense.MIN:
            record["sense"] = problem.sense.value
        if problem.objective.lexicographic:
            record["order"] = list(problem.objective.order)
        warm_s = time.perf_counter() - began - read_s - sum(record["runtime_s"].values())
        record["runtime_s"] = {**record["runtime_s"], "read": read_s, "warm": max(0.0, warm_s)}
        return record
    except errors.BackendUnavailable as error:
        return failed(Ended.UNAVAILABLE, error)
    except (errors.SizeLimitExceeded, errors.FormulationTooLarge) as error:
        return failed(Ended.TOO_LARGE, error)
    except errors.VerificationError as error:
        return failed(Ended.REJECTED, error)
    except MemoryError as error:
        return failed(Ended.MEMORY, error)
    except Exception as error:
        return failed(Ended.ERROR, error)


def failed(status: Ended, error: BaseException) -> dict[str, Any]:
    """The result of a run that ended with an exception."""
    return {"status": status.value, "error": f"{type(error).__name__}: {error}"}


def _warm(trial: Trial, kind: Kind[Any, Any], problem: Problem[Any]) -> None:
    """Load the libraries and kernels of the solver, or of all that ``auto`` runs, which a run is not charged for."""
    solver = trial.contestant.solver
    assert solver is not None
    for name in (EXACT, *kind.solvers.heuristics) if solver == AUTO else (solver,):
        if name not in kind.solvers.heuristics:
            backends.get(name).version()
        rehearse(kind, needed(kind, name, problem))


def _solve(trial: Trial, problem: Problem[Any], plan_folder: Path | None) -> dict[str, Any]:
    """Result of a run that solves the problem: status, objective, bound, times, events."""
    assert trial.contestant.solver is not None
    cpu_began = time.process_time()
    solution = solve(
        problem,
        trial.contestant.solver,
        time_limit_s=trial.time_limit_s,
        gap=trial.gap,
        seed=trial.seed,
        threads=trial.threads,
        iterations=trial.contestant.iterations,
        formulation=trial.contestant.formulation,
        options=trial.contestant.options,
        params=trial.contestant.params,
    )
    record: dict[str, Any] = {
        "status": solution.status.value,
        "objective": solution.objective,
        "bound": solution.bound,
        "gap": solution.gap,
        "limit": None if solution.limit is None else solution.limit.value,
        "message": solution.message,
        "runtime_s": dict(solution.runtime_s),
        "cpu_s": time.process_time() - cpu_began,
        "versions": dict(solution.versions),
        **({"strategy": dict(solution.strategy)} if solution.strategy else {}),
        "events": thinned(solution.events),
    }
    if solution.verdict is not None:
        record |= {"terms": dict(solution.verdict.terms), "metrics": dict(solution.verdict.metrics)}
    if solution.stages:
        record["stages"] = [asdict(stage) for stage in solution.stages]
    if plan_folder is not None and solution.plan is not None:
        write_plan_folder(problem, solution, plan_folder)
    return record


def _program(trial: Trial, source: Program) -> dict[str, Any]:
    """Result of a run of a program of its own: the figures that it prints."""
    words = source.words(trial.contestant.name, trial.seed)
    ended = subprocess.run([sys.executable, *words], capture_output=True, encoding="utf-8", check=False)
    if ended.returncode:
        last = ended.stderr.strip().splitlines()[-1:] or ["without a word"]
        return {"status": Ended.ERROR.value, "error": f"{source.path.name} ended {ended.returncode}: {last[0]}"}
    return {"status": Ended.MEASURED.value, "figures": last_object(ended.stdout, source.path.name)}


def thinned(events: Sequence[Event]) -> list[list[Any]]:
    """[seconds, incumbent, bound] (and the stage, where there are stages), of a benchmark's run, the last of each slot
    of time.
    """
    kept: list[list[Any]] = []
    end_s = 0.0
    for event in events:
        row = [round(event.elapsed_s, 4), event.incumbent, event.bound, *([event.stage] if event.stage else [])]
        if kept and event.elapsed_s <= end_s and kept[-1][3:] == row[3:] and kept[-1][1] is not None:
            kept[-1] = row
            continue
        kept.append(row)
        end_s = event.elapsed_s * SLOT
    return kept


def peak_memory_mb() -> float:
    """Highest resident size of a benchmark's run: of this process or of one that it started, MB.

    On Linux ``ru_maxrss`` of a fresh process still counts what its parent held when it was started, so the high-water
    mark of this process's own memory is read instead.
    """
    status = Path("/proc/self/status")
    own = float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        own = float(line.split()[1])
    kilobytes = max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    return round(kilobytes / 1024 / (1024 if sys.platform == "darwin" else 1), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
