"""The best plans known for instances in files: ``best_known/NAME`` next to each, replaced only by better ones."""

import shutil
from pathlib import Path
from typing import Any

from mast_opt.core.errors import InputError, PlanError
from mast_opt.core.verdict import Verdict
from mast_opt.planner.io import PlanReading, read, read_plan_of
from mast_opt.planner.io.atomic import new_folder
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import kind_of

FOLDER = "best_known"
TOLERANCE = 1e-9
"""Relative; what is better by less is no better."""


def folder_of(instance: Path) -> Path:
    """Folder of the best-known plan of an instance."""
    name = instance.name if instance.is_dir() else instance.stem
    return instance.parent / FOLDER / name


def objective_of(instance: Path) -> float | None:
    """The objective that the best-known plan of an instance states.

    None where there is no such plan, where it is one for another version of the instance, and where the objective is
    lexicographic, which is more than one value.
    """
    if not folder_of(instance).is_dir():
        return None
    problem = read(instance)
    stored = _stored(problem, folder_of(instance))
    objective = None if stored is None or problem.objective.lexicographic else stored.fields.get("objective")
    return None if objective is None else float(objective)


def offer(instance: Path, folder: Path) -> str:
    """Keep the plan in a folder as the best known one if the verifier passes it and it is strictly better.

    With a lexicographic objective the terms are compared in their order, otherwise the objective. A stored plan of
    another version of the instance counts as none.

    Returns:
        What became of it, in words; empty if it is no better.

    Raises:
        InputError: the verifier rejects the plan, or it is one for another instance.
    """
    problem = read(instance)
    offered = read_plan_of(problem, folder)
    verdict = kind_of(problem).verification.verify(problem, offered.plan)
    if not verdict.ok or not offered.same_instance:
        why = verdict.violations[0] if verdict.violations else "it is for another version of the instance"
        raise InputError(f"the plan in {folder} is not one for {instance}: {why}")
    place = folder_of(instance)
    stored = _stored(problem, place)
    before: Verdict | None = None
    if stored is not None:
        before = kind_of(problem).verification.verify(problem, stored.plan)
        if before.ok and not better(problem, verdict, before):
            return ""
    with new_folder(place, _keep_nothing) as fresh:
        shutil.copytree(folder, fresh, dirs_exist_ok=True)
    was = "" if before is None else f" (was {before.objective:.6g})"
    return f"best known: {verdict.objective:.6g}{was}"


def _stored(problem: Problem[PlanT], place: Path) -> PlanReading[PlanT] | None:
    """The best-known plan that is stored for an instance, if it is one for this version of it."""
    try:
        stored = read_plan_of(problem, place) if place.is_dir() else None
    except PlanError:
        return None
    return stored if stored is not None and stored.same_instance else None


def _keep_nothing(target: Path) -> None:
    """Keep nothing of the plan that stands there: it has been compared."""


def better(problem: Problem[Any], one: Verdict, other: Verdict) -> bool:
    """Whether a best-known plan would be strictly better than another."""
    order = problem.objective.order
    pairs = [(one.terms[term], other.terms[term]) for term in order] if order else [(one.objective, other.objective)]
    for ours, theirs in ((problem.sense.minimised(a), problem.sense.minimised(b)) for a, b in pairs):
        margin = TOLERANCE * max(1.0, abs(theirs))
        if ours < theirs - margin:
            return True
        if ours > theirs + margin:
            return False
    return False
