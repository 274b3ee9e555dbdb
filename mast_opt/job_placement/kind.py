"""Registration record of job placement (``Kind``): the problem as the layers above see it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mast_opt.job_placement.analysis.current_state import present
from mast_opt.job_placement.exhaustive.params import ExhaustiveParams, ExhaustiveRepairParams
from mast_opt.job_placement.exhaustive.priced_terms import BY_RULE, PRICED
from mast_opt.job_placement.formulation.codec import FREEZING
from mast_opt.job_placement.formulation.formulation import base
from mast_opt.job_placement.formulation.size import size
from mast_opt.job_placement.formulation.strengthened import strong
from mast_opt.job_placement.generate import FAMILIES, SIZES_HELP
from mast_opt.job_placement.migration.plan_rows import migration_plan
from mast_opt.job_placement.plan import Plan, check_plan
from mast_opt.job_placement.presentation.charts import charts
from mast_opt.job_placement.presentation.sections import sections
from mast_opt.job_placement.problem import TERMS, JobPlacement
from mast_opt.job_placement.tables.example import EXAMPLE
from mast_opt.job_placement.tables.input_warnings import warnings
from mast_opt.job_placement.tables.mathprog import write_dat
from mast_opt.job_placement.tables.plan_tables import plan_from_tables, plan_to_tables
from mast_opt.job_placement.tables.problem_tables import problem_from_tables, problem_to_tables
from mast_opt.job_placement.tables.schema import PLAN_SCHEMA, RULES, SCHEMA
from mast_opt.job_placement.verification.verifier import verify
from mast_opt.kind.analysis_hooks import AnalysisHooks
from mast_opt.kind.kind import Kind
from mast_opt.search.interface import Heuristic, Rehearsal, SearchContext, SearchResult
from mast_opt.search.params import Params


def _lazy(module: str, function: str, params: type[Params] | None = None) -> Heuristic:
    """A solver of the room ``exhaustive``, with parameters if it has some; its kernels are loaded when it is first
    asked for."""

    def solver(problem: JobPlacement, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
        loaded = import_module(f"mast_opt.job_placement.exhaustive.{module}")
        given = () if params is None else (tools.params_as(params),)
        found: SearchResult[Plan] = getattr(loaded, function)(problem, tools, start, *given)
        return found

    return solver


_REPAIR = "exhaustive+repair"
_SOLVERS = {
    "exhaustive": _lazy("solver", "exhaustive", ExhaustiveParams),
    _REPAIR: _lazy("ruin_and_recreate", "exhaustive_repair", ExhaustiveRepairParams),
    "federated": _lazy("baselines", "federated"),
    "random": _lazy("baselines", "random"),
    "least-loaded": _lazy("baselines", "least_loaded"),
    "best-fit": _lazy("baselines", "best_fit"),
}


def _rehearsals(solver: str, problem: JobPlacement | None) -> tuple[Rehearsal, ...]:
    from mast_opt.job_placement.live_fleet.kernel_rehearsals import rehearsals

    return rehearsals(solver, problem)


def _live() -> tuple[Rehearsal, ...]:
    from mast_opt.job_placement.live_fleet.kernel_rehearsals import live

    return live()


def _questions() -> AnalysisHooks:
    from mast_opt.job_placement.analysis.hooks import QUESTIONS  # only when something is asked

    return QUESTIONS


KIND: Kind[JobPlacement, Any] = Kind(
    name=JobPlacement.kind,
    title="Job placement: which pending job runs where, and which running one makes room",
    problem_type=JobPlacement,
    plan_type=Plan,
    schema=SCHEMA,
    plan_schema=PLAN_SCHEMA,
    terms=TERMS,
    rules=RULES,
    build=problem_from_tables,
    unbuild=problem_to_tables,
    build_plan=plan_from_tables,
    unbuild_plan=plan_to_tables,
    check_plan=check_plan,
    warnings=warnings,
    verify=verify,
    formulations={"base": base, "strong": strong},
    size=size,
    heuristics=_SOLVERS,
    params={"exhaustive": ExhaustiveParams, _REPAIR: ExhaustiveRepairParams},
    pricing={name: PRICED if name.startswith("exhaustive") else BY_RULE for name in _SOLVERS},
    constructive=frozenset(_SOLVERS) - {_REPAIR},
    rehearsals=_rehearsals,
    live=_live,
    families=FAMILIES,
    sizes_help=SIZES_HELP,
    sections=sections,
    present=present,
    exporters={".dat": write_dat},
    steps=migration_plan,
    charts=charts,
    freezing=FREEZING,
    example=EXAMPLE,
    questions=_questions,
)
