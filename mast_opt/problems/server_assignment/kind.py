"""Registration record of server assignment (``Kind``): the problem as the layers above see it."""

from mast_opt.problems.kind import interfaces
from mast_opt.problems.kind.analysis_hooks import AnalysisHooks
from mast_opt.problems.kind.carried_axes import Continuation
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.overrides import as_stated, counting
from mast_opt.problems.search.interface import HeuristicSolver, Pricing, Rehearsal, SearchContext, SearchResult
from mast_opt.problems.server_assignment.analysis.current_state import current_state
from mast_opt.problems.server_assignment.formulation.codec import FREEZING
from mast_opt.problems.server_assignment.formulation.formulation import base
from mast_opt.problems.server_assignment.formulation.size import size
from mast_opt.problems.server_assignment.generate import FAMILIES
from mast_opt.problems.server_assignment.migration.planner import migration_plan
from mast_opt.problems.server_assignment.plan import Plan, check_plan, today
from mast_opt.problems.server_assignment.presentation.sections import charts, sections
from mast_opt.problems.server_assignment.problem import OBJECTIVE, ServerAssignment
from mast_opt.problems.server_assignment.ras.carried_prices import carried, stocks
from mast_opt.problems.server_assignment.ras.params import RasParams
from mast_opt.problems.server_assignment.tables import problem_tables
from mast_opt.problems.server_assignment.tables.input_warnings import warnings
from mast_opt.problems.server_assignment.tables.mathprog import write_dat
from mast_opt.problems.server_assignment.tables.schema import EXAMPLE, PLAN_SCHEMA, SCHEMA
from mast_opt.problems.server_assignment.verification.certificate_bound import certified_bound
from mast_opt.problems.server_assignment.verification.verifier import verify


def _ras(problem: ServerAssignment, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """Run ``ras`` on a server assignment."""
    from mast_opt.problems.server_assignment.ras.ras_search import ras  # compiles kernels: only when asked for

    return ras(problem, tools, start, tools.params_as(RasParams))


def _rehearsals(problem: ServerAssignment | None) -> tuple[Rehearsal, ...]:
    """Rehearsals of the kernels of ``ras``."""
    from mast_opt.problems.server_assignment.ras.kernel_rehearsals import rehearsals

    return rehearsals()


def _hooks() -> AnalysisHooks:
    """Analysis hooks of server assignment, imported when something is asked."""
    from mast_opt.problems.server_assignment.analysis.hooks import QUESTIONS  # only when something is asked

    return QUESTIONS


_PRICED = ("shortfall", "moves_in_use", "moves_idle", "spread", "buffer", "affinity", "use", "repair")
"""Terms that ``ras`` takes into account."""

KIND: Kind[ServerAssignment, Plan] = Kind(
    name=ServerAssignment.kind,
    title="Server assignment: which servers form which cluster",
    problem_type=ServerAssignment,
    plan_type=Plan,
    terms=OBJECTIVE,
    goals={"least-change": counting("shortfall", "repair", "moves_in_use", "moves_idle"), "balanced": as_stated},
    tables=interfaces.TableInterface(
        schema=SCHEMA,
        plan_schema=PLAN_SCHEMA,
        rules=(),
        problem_from_tables=problem_tables.problem_from_tables,
        problem_to_tables=problem_tables.problem_to_tables,
        plan_from_tables=problem_tables.plan_from_tables,
        plan_to_tables=problem_tables.plan_to_tables,
        warnings=warnings,
        exporters={".dat": write_dat},
        classes=stocks,
        example=EXAMPLE,
    ),
    formulation=interfaces.FormulationInterface({"base": base}, size=size, fixed_parts=FREEZING),
    verification=interfaces.VerificationInterface(verify, check_plan, certified_bound),
    solvers=interfaces.SolverInterface(
        {"ras": HeuristicSolver(_ras, Pricing(frozenset(_PRICED)), RasParams, rehearsals=_rehearsals)},
        again={"ras": Continuation(1, ("datacenter",), carried)},
    ),
    generate=interfaces.GenerateInterface(FAMILIES),
    presentation=interfaces.PresentationInterface(sections, charts),
    analysis=interfaces.AnalysisInterface(current_state=current_state, current_plan=today, hooks=_hooks),
    migration=interfaces.MigrationInterface(migration_plan),
)
