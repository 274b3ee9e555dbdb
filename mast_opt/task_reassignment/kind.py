"""Task reassignment as the layers above see it."""

from __future__ import annotations

from mast_opt.kind import Kind
from mast_opt.questions import Questions
from mast_opt.search import Found, Pricing, Rehearsal, Tools
from mast_opt.task_reassignment.aggregate import aggregate_bound
from mast_opt.task_reassignment.charts import charts
from mast_opt.task_reassignment.conflicts import conflicts
from mast_opt.task_reassignment.dat import write_dat
from mast_opt.task_reassignment.example import EXAMPLE
from mast_opt.task_reassignment.formulation import base
from mast_opt.task_reassignment.freezing import FREEZING
from mast_opt.task_reassignment.generate import FAMILIES
from mast_opt.task_reassignment.order import order
from mast_opt.task_reassignment.plan import Plan, check_plan
from mast_opt.task_reassignment.plan_tables import build_plan, unbuild_plan
from mast_opt.task_reassignment.present import present
from mast_opt.task_reassignment.problem import TaskReassignment
from mast_opt.task_reassignment.roadef_write import write_assignment, write_model
from mast_opt.task_reassignment.sections import sections
from mast_opt.task_reassignment.size import size
from mast_opt.task_reassignment.tables import PLAN_SCHEMA, SCHEMA, TERMS, build, unbuild
from mast_opt.task_reassignment.today import today
from mast_opt.task_reassignment.verify import verify
from mast_opt.task_reassignment.warnings import warnings


def _twine(problem: TaskReassignment, tools: Tools, start: Plan | None) -> Found[Plan]:
    from mast_opt.task_reassignment.heuristics.twine import twine  # compiles kernels: only when asked for

    return twine(problem, tools, start)


def _rehearsals(solver: str, problem: TaskReassignment | None) -> tuple[Rehearsal, ...]:
    from mast_opt.task_reassignment.heuristics.rehearsals import rehearsals

    return rehearsals()


def _questions() -> Questions:
    from mast_opt.task_reassignment.questions import QUESTIONS  # only when something is asked

    return QUESTIONS


_PRICED = ("load", "balance", "process_move", "service_move", "machine_move")
"""Terms that ``twine`` takes into account."""

KIND: Kind[TaskReassignment, Plan] = Kind(
    name=TaskReassignment.kind,
    title="Task reassignment: which machine runs which process",
    problem_type=TaskReassignment,
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
    heuristics={"twine": _twine},
    rehearsals=_rehearsals,
    pricing={"twine": Pricing(frozenset(_PRICED))},
    families=FAMILIES,
    sections=sections,
    present=present,
    exporters={".dat": write_dat, ".txt": write_model},
    plan_exporters={".txt": write_assignment},
    today=today,
    instance_bound=aggregate_bound,
    steps=order,
    charts=charts,
    freezing=FREEZING,
    example=EXAMPLE,
    questions=_questions,
)
