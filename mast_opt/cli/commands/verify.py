"""``mast-opt verify``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from mast_opt.cli.exits import Exit
from mast_opt.cli.options import Full, Instance, Json, TheRun
from mast_opt.cli.record import verdict_keys, violation_keys
from mast_opt.cli.run import Answer
from mast_opt.errors import Fault, PlanError
from mast_opt.io import read, read_plan_of
from mast_opt.result import Status, relative_gap
from mast_opt.solving import verify
from mast_opt.verdict import Verdict, Violation

if TYPE_CHECKING:
    from rich.console import Console

AGREEMENT = 1e-6
"""Relative difference allowed between a stated figure and the verifier's."""


def command(
    path: Instance,
    /,
    plan: Annotated[Path, Parameter(help="The plan: what 'mast-opt solve --out' wrote, or tables of your own.")],
    *,
    full: Full = False,
    json: Json = False,
    run: TheRun,
) -> Answer:
    """Check a plan against its instance, without any solver's help.

    Every hard limit is checked in exact integers, and the objective is recomputed from the plan alone; where
    plan.toml states an objective and a bound, these must agree. Exit code 0 if all is well, 5 if not.

        mast-opt verify my-instance my-plan
        mast-opt verify my-instance my-plan --json | jq .violations
    """
    with run.phase("read", f"reading {path}"):
        problem = read(path)
        run.record["kind"] = problem.kind
        reading = read_plan_of(problem, plan)
    with run.phase("verify", "checking"):
        verdict = verify(problem, reading.plan)
    claims = wrong_claims(problem, verdict, reading.fields)
    notes = _notes(reading.same_instance)
    bound = _number(reading.fields, "bound")
    objective = objective_meant(problem, verdict, reading.fields)
    run.record.update(
        verdict_keys(verdict),
        objective=objective,
        solver=reading.fields.get("solver"),
        bound=bound,
        gap=relative_gap(objective, bound),
        same_instance=reading.same_instance,
        notes=notes,
    )
    run.record["violations"] += [violation_keys(claim) for claim in claims]
    found = len(run.record["violations"])
    run.record["status"] = None if found else Status.FEASIBLE.value
    if found:
        run.record["error"] = f"the plan has {found} violation{'s' if found > 1 else ''}"

    def show(out: Console) -> None:
        from mast_opt.report.validation import show_verdict

        show_verdict(out, problem, verdict, claims, notes, full=full)

    return Answer(Exit.VIOLATIONS if found else Exit.OK, show)


def objective_meant(problem: Any, verdict: Verdict, fields: Mapping[str, Any]) -> float:
    """The verifier's value of what ``plan.toml`` calls the objective.

    With a lexicographic objective that is the value of one of its terms: of all of them, the nearest to the stated.
    """
    values = [verdict.terms[term] for term in problem.objective.order] or [verdict.objective]
    stated = _number(fields, "objective")
    return values[0] if stated is None else min(values, key=lambda value: abs(value - stated))


def wrong_claims(problem: Any, verdict: Verdict, fields: Mapping[str, Any]) -> list[Violation]:
    """The figures of ``plan.toml`` that contradict the verifier."""
    right = objective_meant(problem, verdict, fields)
    stated, bound = _number(fields, "objective"), _number(fields, "bound")
    if stated is not None and not _close(stated, right):
        return [Violation("objective", (), abs(stated - right), right, "as stated in plan.toml")]
    if bound is not None and bound > right and not _close(bound, right):
        return [Violation("bound", (), bound - right, right, "as stated in plan.toml")]
    return []


def _close(stated: float, right: float) -> bool:
    return abs(stated - right) <= AGREEMENT * max(1.0, abs(right))


def _number(fields: Mapping[str, Any], name: str) -> float | None:
    """A figure of ``plan.toml``; readers hand numbers over as decimals or as the text they were written in."""
    value = fields.get(name)
    if value is None:
        return None
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise PlanError([Fault("plan.toml", "a finite number, or no such line", column=name, value=str(value))])
    return number


def _notes(same_instance: bool | None) -> list[str]:
    if same_instance is False:
        return ["the plan was made for another instance, or this one has changed since (the checksums differ)"]
    return []
