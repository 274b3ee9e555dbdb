"""A solution's plan in files, with what ``plan.toml`` says about it."""

from __future__ import annotations

from os import PathLike
from typing import Any

from mast_opt import io
from mast_opt.errors import UsageError
from mast_opt.solving.solution import Solution


def write_plan(problem: Any, solution: Solution, path: str | PathLike[str]) -> None:
    """Write a solution's plan as a folder of tables with a ``plan.toml``; an earlier plan there is replaced.

    Where the solver gave a certificate of its bound, the folder holds that too, and so it does the events of the solve.

    Raises:
        UsageError: the solution has no plan.
        InputError: the folder cannot be written; nothing is then left half-written.
    """
    if solution.plan is None:
        raise UsageError(f"there is no plan to write: the solve ended {solution.status.value}")
    certificate = None if solution.certificate is None else solution.certificate.arrays()
    io.write_plan(problem, solution.plan, plan_fields(solution), path, certificate, solution.events)


def plan_fields(solution: Solution) -> dict[str, Any]:
    """What ``plan.toml`` says beside the instance that the plan is for."""
    stages = [
        {"term": stage.term, "objective": stage.objective, "bound": stage.bound}
        for stage in solution.stages
        if stage.objective is not None
    ]
    return {
        "status": solution.status.value,
        "objective": solution.objective,
        "bound": solution.bound,
        "solver": solution.solver,
        "seed": solution.seed,
        "frozen": {what: list(names) for what, names in solution.frozen.items()} or None,
        "stages": stages or None,
        "versions": dict(solution.versions),
    }
