"""Solvers that live in an environment of their own: files in, files out, and our verifier has the last word.

An adapter is a script that needs nothing of mast-opt. It is called with the interpreter of its environment as

    python benchmarks/peers/NAME.py INSTANCE.json PLAN.json --time-limit S --seed N --threads N

reads an instance as ``mast-opt export`` writes it to JSON, writes a plan in the same form (``{"plan": {"format": …,
"kind": …}, TABLE: [one object a row], …}``, every table of the plan), and prints one JSON object ``{"versions": {…},
"message": "…", "solve_s": …}``. The interpreter is that of ``.venv-NAME`` here, or what the variable MAST_OPT_PEER_NAME
says, NAME without what follows an underscore, so that adapters share an environment. (No adapter may have the name of
the library that it imports.)
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from mast_opt.core.errors import BackendError, BackendUnavailable
from mast_opt.core.solve_result import Status
from mast_opt.planner.bench.results.store import Ended
from mast_opt.planner.bench.suites.suite import Trial
from mast_opt.planner.io import read_plan, write
from mast_opt.problems.kind.problem import Problem
from mast_opt.problems.registry import kind_of

SHOWN = 3
"""Violations of a rejected plan that the result names."""


def interpreter(adapter: Path) -> Path:
    """The Python of the peer's environment. Raises BackendUnavailable, saying how to make one."""
    name = adapter.stem.partition("_")[0]
    variable = f"MAST_OPT_PEER_{name.upper()}"
    chosen = Path(os.environ.get(variable) or f".venv-{name}/bin/python")
    if not chosen.is_file():
        raise BackendUnavailable(
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
            raise BackendError(f"{adapter.name} ended {ended.returncode}: {last[0]}")
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
    """The JSON object in the last line that a script printed. Raises BackendError, quoting the line, if it is none."""
    line = (printed.strip().splitlines() or [""])[-1]
    try:
        answer = json.loads(line)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise BackendError(f"{name} printed {line[:80]!r} last; expected a JSON object in the last line")
    return answer


def _judged(problem: Problem[Any], plan_file: Path) -> dict[str, Any]:
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
