"""Advice after a solve, in a sentence or two."""

from pathlib import Path
from shlex import join
from typing import Any

from mast_opt.core.solve_result import Status
from mast_opt.planner.solving import Solution
from mast_opt.planner.solving.auto_strategy import AUTO
from mast_opt.problems.registry import kind_named

WIDE = 0.05
"""Gap of an exact solver from which on it is worth asking a heuristic."""


def next_step(path: Path, solution: Solution[Any], out: Path | None, *, interrupted: bool) -> str:
    """A sentence that says where the plan is, or why there is none, and what to do next."""
    if solution.plan is not None:
        return _with_a_plan(path, solution, out, interrupted=interrupted)
    if solution.conflicts:
        return f"Proven infeasible: {'; '.join(conflict.message for conflict in solution.conflicts)}"
    if solution.status is Status.NO_SOLUTION:
        if interrupted:
            words = "No plan had been found yet; let it run longer"
        else:
            words = "No plan was found; raise --time-limit"
        return f"{words} or try {_heuristics(solution) or 'another solver (mast-opt backends lists them)'}."
    if solution.status is Status.UNBOUNDED:
        return "The objective has no minimum, which is a fault in mast-opt; please report it."
    if solution.frozen:
        return "Proven infeasible: no plan keeps every limit and the frozen part; keep less of it."
    stated = (solution.overrides.fields().get("limits") or {}).items()
    limits = [text for name, most in stated for text in ("--limit", f"{name}={most}")]
    explain = join(["mast-opt", "explain", str(path), *limits])
    return f"Proven infeasible: no plan keeps every limit. Which ones conflict, and what would help:\n  {explain}"


def _with_a_plan(path: Path, solution: Solution[Any], out: Path | None, *, interrupted: bool) -> str:
    """Sentences after a solve with a plan: where it is, how to verify it, and what may find a better one."""
    others = "" if interrupted or solution.gap is None or solution.gap <= WIDE else _heuristics(solution)
    better = f"\nA heuristic often finds a better plan sooner: try {others}." if others else ""
    if out is None:
        return f"The plan was not saved; add --out DIR to save it.{better}"
    verify = join(["mast-opt", "verify", str(path), str(out)])
    return f"The plan is in {out}. Check it independently:\n  {verify}{better}"


def _heuristics(solution: Solution[Any]) -> str:
    """The heuristics that the advice after a solve says to try instead of an exact solver; none where a part is frozen,
    which not all of them can.
    """
    kind = kind_named(solution.kind)
    if solution.solver == AUTO or solution.solver in kind.solvers.heuristics or solution.frozen:
        return ""
    return " or ".join(f"--solver {name}" for name, ours in kind.solvers.usable() if not ours.constructive)
