"""Registration record of data placement (``Kind``): the problem as the layers above see it."""

from mast_opt.core.solve_result import SolveParams
from mast_opt.problems.data_placement.analysis.current_state import current_state
from mast_opt.problems.data_placement.analysis.static_conflicts import conflicts
from mast_opt.problems.data_placement.formulation.codec import FREEZING
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.data_placement.formulation.size import size
from mast_opt.problems.data_placement.generate import FAMILIES
from mast_opt.problems.data_placement.goals import GOALS
from mast_opt.problems.data_placement.limits import LIMITS
from mast_opt.problems.data_placement.migration.partial_plan import partial_plan
from mast_opt.problems.data_placement.migration.plan_rows import migration_plan
from mast_opt.problems.data_placement.migration.remainders import without_remainders
from mast_opt.problems.data_placement.plan import Plan, check_plan, today
from mast_opt.problems.data_placement.presentation.answers import COMPARED, answers, change_notes, lacking_words, moves
from mast_opt.problems.data_placement.presentation.charts import charts
from mast_opt.problems.data_placement.presentation.details import details
from mast_opt.problems.data_placement.presentation.sections import sections
from mast_opt.problems.data_placement.prices import with_cheapest_sources
from mast_opt.problems.data_placement.problem import OBJECTIVE, DataPlacement
from mast_opt.problems.data_placement.tables import problem_tables
from mast_opt.problems.data_placement.tables.input_warnings import warnings
from mast_opt.problems.data_placement.tables.mathprog import write_dat
from mast_opt.problems.data_placement.tables.schema import EXAMPLE, PLAN_SCHEMA, RULES, SCHEMA
from mast_opt.problems.data_placement.tetris.carried_prices import carried
from mast_opt.problems.data_placement.tetris.params import TetrisParams
from mast_opt.problems.data_placement.tetris.plan_limits import PRICED
from mast_opt.problems.data_placement.tetris.priced_terms import TETRIS
from mast_opt.problems.data_placement.verification.certificate import certified_bound
from mast_opt.problems.data_placement.verification.verifier import use_of_limits, verify
from mast_opt.problems.kind import interfaces
from mast_opt.problems.kind.analysis_hooks import AnalysisHooks
from mast_opt.problems.kind.carried_axes import Continuation
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.overrides import Secured
from mast_opt.problems.search.interface import HeuristicSolver, Rehearsal, SearchContext, SearchResult


def _tetris(problem: DataPlacement, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """Run ``tetris`` on a data placement."""
    from mast_opt.problems.data_placement.tetris.solver import tetris  # compiles kernels: only when asked for

    return tetris(problem, tools, start, tools.params_as(TetrisParams))


def _rehearsals(problem: DataPlacement | None) -> tuple[Rehearsal, ...]:
    """Rehearsals of the kernels of ``tetris`` that an instance needs."""
    from mast_opt.problems.data_placement.tetris.kernel_rehearsals import rehearsals

    return rehearsals(problem)


def _hooks() -> AnalysisHooks:
    """Analysis hooks of data placement, imported when something is asked."""
    from mast_opt.problems.data_placement.analysis.hooks import QUESTIONS  # only when something is asked

    return QUESTIONS


def _secured(problem: DataPlacement, params: SolveParams | None) -> Secured:
    """Replicas with which the worst loss of a region leaves the fewest GPUs missing."""
    from mast_opt.problems.data_placement.analysis.safest import secured  # only when something is asked

    return secured(problem, params)


KIND: Kind[DataPlacement, Plan] = Kind(
    name=DataPlacement.kind,
    title="Data placement: where each dataset lives and each workload runs",
    problem_type=DataPlacement,
    plan_type=Plan,
    terms=OBJECTIVE,
    goals=GOALS,
    secured={"safest": _secured},
    tidied=with_cheapest_sources,
    limits=LIMITS,
    tables=interfaces.TableInterface(
        schema=SCHEMA,
        plan_schema=PLAN_SCHEMA,
        rules=RULES,
        problem_from_tables=problem_tables.problem_from_tables,
        problem_to_tables=problem_tables.problem_to_tables,
        plan_from_tables=problem_tables.plan_from_tables,
        plan_to_tables=problem_tables.plan_to_tables,
        warnings=warnings,
        exporters={".dat": write_dat},
        example=EXAMPLE,
    ),
    formulation=interfaces.FormulationInterface({"base": base}, size=size, fixed_parts=FREEZING),
    verification=interfaces.VerificationInterface(verify, check_plan, certified_bound, use_of_limits),
    solvers=interfaces.SolverInterface(
        {"tetris": HeuristicSolver(_tetris, TETRIS, TetrisParams, frozenset(PRICED), rehearsals=_rehearsals)},
        again={"tetris": Continuation(6, ("region", "gpu_type"), carried)},
    ),
    generate=interfaces.GenerateInterface(FAMILIES),
    presentation=interfaces.PresentationInterface(
        sections, charts, answers, details, COMPARED, change_notes=change_notes, moves=moves, lacking=lacking_words
    ),
    analysis=interfaces.AnalysisInterface(conflicts, current_state=current_state, current_plan=today, hooks=_hooks),
    migration=interfaces.MigrationInterface(migration_plan, partial_plan, migration_plan, without_remainders),
)
