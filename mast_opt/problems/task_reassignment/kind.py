"""Registration record of task reassignment (``Kind``): the problem as the layers above see it."""

from mast_opt.problems.kind import interfaces
from mast_opt.problems.kind.analysis_hooks import AnalysisHooks
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.overrides import as_stated, counting
from mast_opt.problems.search.interface import HeuristicSolver, Pricing, Rehearsal, SearchContext, SearchResult
from mast_opt.problems.task_reassignment.analysis.current_state import current_state
from mast_opt.problems.task_reassignment.analysis.static_conflicts import conflicts
from mast_opt.problems.task_reassignment.formulation.codec import FREEZING
from mast_opt.problems.task_reassignment.formulation.formulation import base
from mast_opt.problems.task_reassignment.formulation.size import size
from mast_opt.problems.task_reassignment.generate import FAMILIES
from mast_opt.problems.task_reassignment.migration.planner import migration_plan
from mast_opt.problems.task_reassignment.plan import Plan, check_plan, today
from mast_opt.problems.task_reassignment.presentation.sections import charts, sections
from mast_opt.problems.task_reassignment.problem import OBJECTIVE, TaskReassignment
from mast_opt.problems.task_reassignment.tables import problem_tables
from mast_opt.problems.task_reassignment.tables.input_warnings import warnings
from mast_opt.problems.task_reassignment.tables.mathprog import write_dat
from mast_opt.problems.task_reassignment.tables.roadef import write_assignment, write_model
from mast_opt.problems.task_reassignment.twine.params import TwineParams
from mast_opt.problems.task_reassignment.verification.aggregate_bound import aggregate_bound
from mast_opt.problems.task_reassignment.verification.verifier import verify


def _twine(problem: TaskReassignment, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """Run ``twine`` on a task reassignment."""
    from mast_opt.problems.task_reassignment.twine.solver import twine  # compiles kernels: only when asked for

    return twine(problem, tools, start, tools.params_as(TwineParams))


def _rehearsals(problem: TaskReassignment | None) -> tuple[Rehearsal, ...]:
    """Rehearsals of the kernels of ``twine``."""
    from mast_opt.problems.task_reassignment.twine.kernel_rehearsals import rehearsals

    return rehearsals()


def _hooks() -> AnalysisHooks:
    """Analysis hooks of task reassignment, imported when something is asked."""
    from mast_opt.problems.task_reassignment.analysis.hooks import QUESTIONS  # only when something is asked

    return QUESTIONS


_PRICED = ("load", "balance", "process_move", "service_move", "machine_move")
"""Terms that ``twine`` takes into account."""

KIND: Kind[TaskReassignment, Plan] = Kind(
    name=TaskReassignment.kind,
    title="Task reassignment: which machine runs which process",
    problem_type=TaskReassignment,
    plan_type=Plan,
    terms=OBJECTIVE,
    goals={"least-change": counting("load", "process_move", "service_move", "machine_move"), "balanced": as_stated},
    tables=interfaces.TableInterface(
        schema=problem_tables.SCHEMA,
        plan_schema=problem_tables.PLAN_SCHEMA,
        rules=(),
        problem_from_tables=problem_tables.problem_from_tables,
        problem_to_tables=problem_tables.problem_to_tables,
        plan_from_tables=problem_tables.plan_from_tables,
        plan_to_tables=problem_tables.plan_to_tables,
        warnings=warnings,
        exporters={".dat": write_dat, ".txt": write_model},
        plan_exporters={".txt": write_assignment},
        example=problem_tables.EXAMPLE,
    ),
    formulation=interfaces.FormulationInterface({"base": base}, size=size, fixed_parts=FREEZING),
    verification=interfaces.VerificationInterface(verify, check_plan, instance_bound=aggregate_bound),
    solvers=interfaces.SolverInterface(
        {"twine": HeuristicSolver(_twine, Pricing(frozenset(_PRICED)), TwineParams, rehearsals=_rehearsals)}
    ),
    generate=interfaces.GenerateInterface(FAMILIES),
    presentation=interfaces.PresentationInterface(sections, charts),
    analysis=interfaces.AnalysisInterface(conflicts, current_state=current_state, current_plan=today, hooks=_hooks),
    migration=interfaces.MigrationInterface(migration_plan),
)
