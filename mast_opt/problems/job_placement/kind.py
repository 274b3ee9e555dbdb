"""Registration record of job placement (``Kind``): the problem as the layers above see it."""

from collections.abc import Mapping
from importlib import import_module

import numpy as np

from mast_opt.core.errors import UnsupportedOption, UsageError
from mast_opt.problems.job_placement.analysis.current_state import current_state
from mast_opt.problems.job_placement.exhaustive.params import ExhaustiveParams, ExhaustiveRepairParams
from mast_opt.problems.job_placement.formulation.codec import FREEZING
from mast_opt.problems.job_placement.formulation.formulation import base
from mast_opt.problems.job_placement.formulation.size import size
from mast_opt.problems.job_placement.formulation.strengthened import strong
from mast_opt.problems.job_placement.generate import FAMILIES, SIZES_HELP
from mast_opt.problems.job_placement.live_fleet.reservations import facts
from mast_opt.problems.job_placement.migration.plan_rows import migration_plan
from mast_opt.problems.job_placement.plan import Plan, check_plan
from mast_opt.problems.job_placement.presentation.sections import charts, sections
from mast_opt.problems.job_placement.problem import OBJECTIVE, JobPlacement
from mast_opt.problems.job_placement.tables import problem_tables
from mast_opt.problems.job_placement.tables.input_warnings import warnings
from mast_opt.problems.job_placement.tables.mathprog import write_dat
from mast_opt.problems.job_placement.tables.schema import EXAMPLE, PLAN_SCHEMA, RULES, SCHEMA
from mast_opt.problems.job_placement.verification.certificate import certified_bound
from mast_opt.problems.job_placement.verification.verifier import verify
from mast_opt.problems.kind import interfaces
from mast_opt.problems.kind.analysis_hooks import AnalysisHooks
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.overrides import Overrides, as_stated, counting
from mast_opt.problems.search.interface import HeuristicSolver, Pricing, Rehearsal, SearchContext, SearchResult
from mast_opt.problems.search.params import Params

_IN_ORDER = ("rejected", "preemption", "balance", "spread", "fragmentation")
"""Terms that the order of the queue and of the bids stands for, whatever their weights."""


def _unpriced(problem: JobPlacement, params: Params | None) -> Mapping[str, str]:
    """Terms that no rule looks at, where they are not equal in all clusters that are open to a job."""
    p = problem
    found = {}
    rule = "the solver follows a fixed order, in which {} does not occur"
    if (p.costs.cost_micro > 0).any():
        found["cost"] = rule.format("cost")
    if p.remote_reads and np.ptp(np.where(p.open_region, p.missing_mb, 0), axis=1).any():
        found["remote"] = rule.format("the volume of remote reads")
    return found


BY_RULE = Pricing(frozenset(_IN_ORDER) | {"remote", "cost"}, _unpriced)
"""Pricing of ``federated`` and the baselines, which place the jobs one by one in a fixed order without a price."""
PRICED = Pricing(frozenset(_IN_ORDER) | {"remote", "cost"})
"""Pricing of ``exhaustive``, whose bids have a price, and ``exhaustive+repair``, which minimises the weighted terms."""


def _solver(
    name: str, module: str, function: str, priced: Pricing, params: type[Params] | None = None
) -> HeuristicSolver:
    """A solver of the subpackage ``exhaustive``, with parameters if it has some; its kernels are loaded when it is
    first asked for."""

    repairs = params is ExhaustiveRepairParams

    def search(problem: JobPlacement, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
        if len(problem.movable) and params is None:
            raise UnsupportedOption(
                f"{name} moves no running jobs, and the table movable has {len(problem.movable)}; use an exact solver, "
                "such as highs, or exhaustive+repair, or leave the table out"
            )
        if len(problem.parts) and params is None:
            raise UnsupportedOption(
                f"{name} places no jobs of several parts, and the table job_parts has {len(problem.multipart_jobs)}; "
                "use exhaustive, exhaustive+repair, or an exact solver such as highs"
            )
        loaded = import_module(f"mast_opt.problems.job_placement.exhaustive.{module}")
        given = () if params is None else (tools.params_as(params),)
        found: SearchResult[Plan] = getattr(loaded, function)(problem, tools, start, *given)
        return found

    def own_rehearsals(problem: JobPlacement | None) -> tuple[Rehearsal, ...]:
        from mast_opt.problems.job_placement.live_fleet.kernel_rehearsals import rehearsals

        return rehearsals(problem, repairs=repairs)

    return HeuristicSolver(search, priced, params, constructive=not repairs, rehearsals=own_rehearsals)


_SOLVERS = {
    "exhaustive": _solver("exhaustive", "solver", "exhaustive", PRICED, ExhaustiveParams),
    "exhaustive+repair": _solver("exhaustive+repair", "repair_with_moves", "repair", PRICED, ExhaustiveRepairParams),
    "federated": _solver("federated", "baselines", "federated", BY_RULE),
    "random": _solver("random", "baselines", "random", BY_RULE),
    "least-loaded": _solver("least-loaded", "baselines", "least_loaded", BY_RULE),
    "best-fit": _solver("best-fit", "baselines", "best_fit", BY_RULE),
    "fgd": _solver("fgd", "baselines", "fgd", BY_RULE),
    "gpu-packing": _solver("gpu-packing", "baselines", "gpu_packing", BY_RULE),
    "gpu-clustering": _solver("gpu-clustering", "baselines", "gpu_clustering", BY_RULE),
    "dot-product": _solver("dot-product", "baselines", "dot_product_policy", BY_RULE),
    "reserve-and-pack": _solver("reserve-and-pack", "baselines", "reserve_and_pack", BY_RULE),
}


def _live() -> tuple[Rehearsal, ...]:
    """Rehearsals of the kernels that a live fleet of job placement needs."""
    from mast_opt.problems.job_placement.live_fleet.kernel_rehearsals import live

    return live()


def _hooks() -> AnalysisHooks:
    """Analysis hooks of job placement, imported when something is asked."""
    from mast_opt.problems.job_placement.analysis.hooks import QUESTIONS  # only when something is asked

    return QUESTIONS


def _cheapest(problem: JobPlacement) -> Overrides:
    """The least costs with which as much work is admitted as can be."""
    if not len(problem.costs):
        raise UsageError(f"{problem.name} states no costs, so no plan is cheaper than another; add the table costs")
    return Overrides(order=("rejected", "remote", "cost", "preemption"))


KIND: Kind[JobPlacement, Plan] = Kind(
    name=JobPlacement.kind,
    title="Job placement: which pending job runs where, and which running one makes room",
    problem_type=JobPlacement,
    plan_type=Plan,
    terms=OBJECTIVE,
    goals={"least-change": counting("rejected", "preemption", "remote"), "balanced": as_stated, "cheapest": _cheapest},
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
    formulation=interfaces.FormulationInterface(
        {"base": base, "strong": strong}, size=size, fixed_parts=FREEZING, has_kernels=True
    ),
    verification=interfaces.VerificationInterface(verify, check_plan, certified_bound),
    solvers=interfaces.SolverInterface(_SOLVERS, live=_live),
    generate=interfaces.GenerateInterface(FAMILIES, SIZES_HELP),
    presentation=interfaces.PresentationInterface(sections, charts, facts=facts),
    analysis=interfaces.AnalysisInterface(current_state=current_state, hooks=_hooks),
    migration=interfaces.MigrationInterface(migration_plan),
)
