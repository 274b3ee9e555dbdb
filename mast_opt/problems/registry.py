"""The kinds of problem there are, with the heuristics of other packages. A further kind is a package next to the others
and a line here, or an entry point in the group ``mast_opt.kinds``; see ``docs/how-to/plug-ins.md``."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np

from mast_opt.core.arguments import a_text, a_whole, checked, optional
from mast_opt.core.errors import UsageError
from mast_opt.core.plugins import Extensions
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.origin import Origin
from mast_opt.problems.kind.problem import PlanT, Problem, ProblemT
from mast_opt.problems.plugin_heuristics import with_plug_ins

if TYPE_CHECKING:
    from mast_opt.problems.data_placement import DataPlacement
    from mast_opt.problems.job_placement import JobPlacement
    from mast_opt.problems.resource_allocation import ResourceAllocation
    from mast_opt.problems.server_assignment import ServerAssignment
    from mast_opt.problems.task_reassignment import TaskReassignment

KindName: TypeAlias = (
    Literal["data-placement", "job-placement", "server-assignment", "task-reassignment", "resource-allocation"] | str
)
"""The name of a kind. Editors complete the names there are."""
SolverName: TypeAlias = (
    Literal[
        "auto", "highs", "cpsat", "scip", "cbc", "gurobi", "xpress", "copt", "cplex",
        "tetris", "exhaustive", "exhaustive+repair", "federated", "best-fit", "least-loaded", "random",
        "fgd", "gpu-packing", "gpu-clustering", "dot-product", "reserve-and-pack", "ras", "twine",
    ]
    | str
)  # fmt: skip
"""The name of a MIP backend or of a heuristic; plug-ins may add further ones."""
TermName: TypeAlias = (
    Literal[
        "peak", "overload", "idle", "remote", "egress", "copy", "storage", "moved_work", "retyped_work", "unserved",
        "running_cost", "migration_cost", "moved_items",
        "rejected", "preemption", "cost", "fragmentation",
        "shortfall", "moves_in_use", "moves_idle", "spread", "buffer", "affinity", "use", "repair",
        "load", "balance", "process_move", "service_move", "machine_move",
    ]
    | str
)  # fmt: skip
"""The name of a term of some kind's objective."""

KINDS: Extensions[Kind[Any, Any]] = Extensions(
    "mast_opt.kinds",
    "kind of problem",
    {
        "data-placement": "mast_opt.problems.data_placement.kind:KIND",
        "job-placement": "mast_opt.problems.job_placement.kind:KIND",
        "server-assignment": "mast_opt.problems.server_assignment.kind:KIND",
        "task-reassignment": "mast_opt.problems.task_reassignment.kind:KIND",
        "resource-allocation": "mast_opt.problems.resource_allocation.kind:KIND",
    },
    Kind,
)
"""name → kind, without the heuristics of other packages."""


def kind_names() -> tuple[str, ...]:
    """Every kind's hyphenated name."""
    return tuple(KINDS)


def kinds() -> Iterator[Kind[Any, Any]]:
    """Every kind that can be loaded."""
    return (with_plug_ins(kind) for _, kind in KINDS.usable())


def kind_named(name: str) -> Kind[Any, Any]:
    """The kind of that name.

    Raises:
        UsageError: there is none; lists the kinds there are.
        PluginError: it is another package's, and cannot be loaded.
    """
    a_text("kind", name)
    return with_plug_ins(KINDS.named(name))


def kind_of(problem: Problem[PlanT]) -> Kind[Any, PlanT]:
    """The kind that a problem is of. Raises UsageError if it is no problem at all."""
    name = getattr(type(problem), "kind", None)
    if not isinstance(name, str) or name not in KINDS:
        raise UsageError(f"a {type(problem).__name__} is not a problem; use mast_opt.read or a generator to make one")
    return kind_named(name)


def check_plan(kind: Kind[Any, PlanT], problem: ProblemT, plan: object) -> ProblemT:
    """The problem by which a plan is judged: with the overrides of the plan's solve, unless it states others itself.

    Raises:
        UsageError: this is no plan of this kind.
        PlanError: its arrays do not fit the problem, or it was made for an instance with other labels or data.
    """
    if not isinstance(plan, kind.plan_type):
        ours, theirs = (f"{type_.__module__}.{type_.__name__}" for type_ in (kind.plan_type, type(plan)))
        hint = "; pass its plan, which has this type" if isinstance(getattr(plan, "plan", None), kind.plan_type) else ""
        raise UsageError(f"a plan for {kind.name} is a {ours}; this is a {theirs}{hint}")
    kind.verification.check_plan(problem, plan)
    origin: Origin | None = getattr(plan, "origin", None)
    if origin is None:
        return problem
    origin.check(problem)
    return origin.judge(problem)


@overload
def generate(
    kind: Literal["data-placement"], family: str | None = None, *, seed: int = 0, **sizes: int
) -> "DataPlacement": ...
@overload
def generate(
    kind: Literal["job-placement"], family: str | None = None, *, seed: int = 0, **sizes: int
) -> "JobPlacement": ...
@overload
def generate(
    kind: Literal["server-assignment"], family: str | None = None, *, seed: int = 0, **sizes: int
) -> "ServerAssignment": ...
@overload
def generate(
    kind: Literal["task-reassignment"], family: str | None = None, *, seed: int = 0, **sizes: int
) -> "TaskReassignment": ...
@overload
def generate(
    kind: Literal["resource-allocation"], family: str | None = None, *, seed: int = 0, **sizes: int
) -> "ResourceAllocation": ...
@overload
def generate(kind: KindName, family: str | None = None, *, seed: int = 0, **sizes: int) -> Any: ...  # noqa: ANN401 - a kind that is not written out
@checked(kind=a_text, family=optional(a_text), seed=a_whole(0))
def generate(kind: KindName, family: str | None = None, *, seed: int = 0, **sizes: int) -> Any:
    """A synthetic instance; the same arguments give the same instance.

    Args:
        kind: hyphenated, as in ``data-placement``.
        family: one of the kind's families; its first one unless given.
        seed: of every random draw.
        sizes: such as ``datasets=50``; the family's defaults where they are not given.

    Raises:
        UsageError: there is no such kind, family or size, or a number is out of range.
    """
    families = kind_named(kind).generate.families
    name = next(iter(families)) if family is None else family
    if name not in families:
        raise UsageError(f"{kind} has no family called {name!r}; expected one of: {', '.join(families)}")
    known = families[name].sizes
    unknown = [size for size in sizes if size not in known]
    if unknown:
        raise UsageError(f"family {name} has no size called {unknown[0]!r}; expected some of: {', '.join(known)}")
    return families[name].generate(np.random.default_rng(seed), **sizes)
