"""The one JSON object that every command prints with ``--json``.

Its keys are there whatever happened, so that a script can always read ``status`` and ``error``; a command adds
keys of its own.
"""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mast_opt.core.verdict import Verdict, Violation
    from mast_opt.kind.current_state import Present
    from mast_opt.solving import Solution

Record = dict[str, Any]

PHASES = ("read", "formulate", "solve", "verify", "compile")


def blank() -> Record:
    """Every key of the contract, nothing known yet."""
    return {
        "kind": None,
        "solver": None,
        "versions": {"mast-opt": version("mast-opt"), "python": platform.python_version()},
        "status": None,
        "objective": None,
        "bound": None,
        "gap": None,
        "runtime_s": dict.fromkeys(PHASES, 0.0),
        "terms": {},
        "metrics": {},
        "violations": [],
        "stages": [],
        "error": None,
    }


def solution_keys(solution: Solution) -> Record:
    """What a solve found; ``runtime_s`` is left to the caller, who also knows how long reading took."""
    verdict = {} if solution.verdict is None else verdict_keys(solution.verdict)
    return {
        "kind": solution.kind,
        "solver": solution.solver,
        "versions": dict(solution.versions),
        "status": solution.status.value,
        **verdict,
        "objective": solution.objective,
        "bound": solution.bound,
        "gap": solution.gap,
        "stages": [
            {"term": stage.term, "objective": stage.objective, "bound": stage.bound, "gap": stage.gap}
            for stage in solution.stages
        ],
        "seed": solution.seed,
        "limit": None if solution.limit is None else solution.limit.value,
        "message": solution.message,
        "conflicts": [conflict.message for conflict in solution.conflicts],
    }


def today_keys(state: Present | None) -> Record | None:
    """What the instance says of the present state; None where its kind has none."""
    if state is None:
        return None
    return {
        "complete": state.complete,
        "known": {one.what: {"known": one.known, "of": one.of, "share": one.share} for one in state.known},
        "violations": [
            {"constraint": one.limit, "index": list(one.index), "message": one.message} for one in state.broken
        ],
        "notes": list(state.notes),
    }


def verdict_keys(verdict: Verdict) -> Record:
    """What the verifier says."""
    return {
        "objective": verdict.objective,
        "terms": dict(verdict.terms),
        "metrics": dict(verdict.metrics),
        "violations": [violation_keys(violation) for violation in verdict.violations],
    }


def violation_keys(violation: Violation) -> Record:
    return {
        "constraint": violation.constraint,
        "index": list(violation.index),
        "amount": violation.amount,
        "limit": violation.limit,
        "unit": violation.unit,
    }
