"""The kinds of problem there are. A further one is a package next to the others and a line here."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from mast_opt.core.arguments import a_text, a_whole, checked, optional
from mast_opt.core.errors import UsageError
from mast_opt.kind.kind import Kind

_MODULES = {
    "data-placement": "mast_opt.data_placement.kind",
    "job-placement": "mast_opt.job_placement.kind",
    "server-assignment": "mast_opt.server_assignment.kind",
    "task-reassignment": "mast_opt.task_reassignment.kind",
}


def kind_names() -> tuple[str, ...]:
    """Every kind's hyphenated name."""
    return tuple(_MODULES)


def kind_named(name: str) -> Kind[Any, Any]:
    """The kind of that name. Raises UsageError, listing the kinds there are."""
    a_text("kind", name)
    if name not in _MODULES:
        raise UsageError(f"there is no kind of problem called {name!r}; expected one of: {', '.join(_MODULES)}")
    kind: Kind[Any, Any] = importlib.import_module(_MODULES[name]).KIND
    return kind


def kind_of(problem: object) -> Kind[Any, Any]:
    """The kind that a problem is of. Raises UsageError if it is no problem at all."""
    name = getattr(type(problem), "kind", None)
    if not isinstance(name, str) or name not in _MODULES:
        raise UsageError(f"a {type(problem).__name__} is not a problem; use mast_opt.read or a generator to make one")
    return kind_named(name)


def check_plan(kind: Kind[Any, Any], problem: Any, plan: Any) -> None:
    """Raises UsageError for what is no plan of this kind, PlanError for one whose arrays do not fit the problem: it is
    of another instance."""
    if not isinstance(plan, kind.plan_type):
        ours, theirs = (f"{type_.__module__}.{type_.__name__}" for type_ in (kind.plan_type, type(plan)))
        raise UsageError(f"a plan for {kind.name} is a {ours}; this is a {theirs}")
    kind.check_plan(problem, plan)


@checked(kind=a_text, family=optional(a_text), seed=a_whole(0))
def generate(kind: str, family: str | None = None, *, seed: int = 0, **sizes: int) -> Any:
    """A synthetic instance; the same arguments give the same instance.

    Args:
        kind: hyphenated, as in ``data-placement``.
        family: one of the kind's families; its first one unless given.
        seed: of every random draw.
        sizes: such as ``datasets=50``; the family's defaults where they are not given.

    Raises:
        UsageError: there is no such kind, family or size, or a number is out of range.
    """
    families = kind_named(kind).families
    name = next(iter(families)) if family is None else family
    if name not in families:
        raise UsageError(f"{kind} has no family called {name!r}; expected one of: {', '.join(families)}")
    known = families[name].sizes
    unknown = [size for size in sizes if size not in known]
    if unknown:
        raise UsageError(f"family {name} has no size called {unknown[0]!r}; expected some of: {', '.join(known)}")
    return families[name].generate(np.random.default_rng(seed), **sizes)
