"""Server assignment as the layers above see it."""

from __future__ import annotations

from mast_opt.kind import Kind
from mast_opt.questions import Questions
from mast_opt.search import Found, Pricing, Rehearsal, Tools
from mast_opt.server_assignment.build import build
from mast_opt.server_assignment.charts import charts
from mast_opt.server_assignment.conflicts import conflicts
from mast_opt.server_assignment.dat import write_dat
from mast_opt.server_assignment.example import EXAMPLE
from mast_opt.server_assignment.formulation import base
from mast_opt.server_assignment.freezing import FREEZING
from mast_opt.server_assignment.generate import FAMILIES
from mast_opt.server_assignment.order import order
from mast_opt.server_assignment.plan import Plan, check_plan
from mast_opt.server_assignment.plan_tables import build_plan, unbuild_plan
from mast_opt.server_assignment.present import present
from mast_opt.server_assignment.problem import ServerAssignment
from mast_opt.server_assignment.recheck import certified_bound
from mast_opt.server_assignment.sections import sections
from mast_opt.server_assignment.size import size
from mast_opt.server_assignment.tables import PLAN_SCHEMA, SCHEMA, TERMS
from mast_opt.server_assignment.today import today
from mast_opt.server_assignment.unbuild import unbuild
from mast_opt.server_assignment.verify import verify
from mast_opt.server_assignment.warnings import warnings


def _ras(problem: ServerAssignment, tools: Tools, start: Plan | None) -> Found[Plan]:
    from mast_opt.server_assignment.heuristics.ras import ras  # compiles kernels: only when asked for

    return ras(problem, tools, start)


def _rehearsals(solver: str, problem: ServerAssignment | None) -> tuple[Rehearsal, ...]:
    from mast_opt.server_assignment.heuristics.rehearsals import rehearsals

    return rehearsals()


def _questions() -> Questions:
    from mast_opt.server_assignment.questions import QUESTIONS  # only when something is asked

    return QUESTIONS


_PRICED = ("shortfall", "moves_in_use", "moves_idle", "spread", "buffer", "affinity", "use", "repair")
"""Terms that ``ras`` takes into account."""

KIND: Kind[ServerAssignment, Plan] = Kind(
    name=ServerAssignment.kind,
    title="Server assignment: which servers form which cluster",
    problem_type=ServerAssignment,
    plan_type=Plan,
    schema=SCHEMA,
    plan_schema=PLAN_SCHEMA,
    terms=TERMS,
    rules=(),
    build=build,
    unbuild=unbuild,
    build_plan=build_plan,
    unbuild_plan=unbuild_plan,
    check_plan=check_plan,
    conflicts=conflicts,
    warnings=warnings,
    verify=verify,
    formulations={"base": base},
    size=size,
    heuristics={"ras": _ras},
    rehearsals=_rehearsals,
    pricing={"ras": Pricing(frozenset(_PRICED))},
    families=FAMILIES,
    sections=sections,
    present=present,
    today=today,
    certified_bound=certified_bound,
    exporters={".dat": write_dat},
    steps=order,
    charts=charts,
    freezing=FREEZING,
    example=EXAMPLE,
    questions=_questions,
)
