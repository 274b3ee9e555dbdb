"""Registration record of resource allocation (``Kind``): the problem as the layers above see it."""

from mast_opt.problems.kind import interfaces
from mast_opt.problems.kind.analysis_hooks import AnalysisHooks
from mast_opt.problems.kind.carried_axes import Continuation
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.resource_allocation.analysis.elastic_program import conflicts
from mast_opt.problems.resource_allocation.formulation.formulation import base, size
from mast_opt.problems.resource_allocation.generate import FAMILIES
from mast_opt.problems.resource_allocation.methods.carried_prices import carried
from mast_opt.problems.resource_allocation.methods.params import AllocationParams
from mast_opt.problems.resource_allocation.methods.solver import solve_policy
from mast_opt.problems.resource_allocation.plan import Plan, check_plan
from mast_opt.problems.resource_allocation.policies import POLICIES
from mast_opt.problems.resource_allocation.presentation.sections import charts, sections
from mast_opt.problems.resource_allocation.problem import ResourceAllocation
from mast_opt.problems.resource_allocation.tables import problem_tables
from mast_opt.problems.resource_allocation.tables.mathprog import write_dat
from mast_opt.problems.resource_allocation.tables.schema import EXAMPLE, PLAN_SCHEMA, SCHEMA
from mast_opt.problems.resource_allocation.verification.price_bound import certified_bound
from mast_opt.problems.resource_allocation.verification.verifier import improvement, verify

ON_A_GRID = (
    "whole shares under total-rate, rate-per-cost, cost, nash and harmonic; no fractional shares, and no level or "
    "worst job (max-min, makespan, finish-time-fairness), which are fractions"
)
"""Objectives that a backend solves that places fractions on a grid."""


def _hooks() -> AnalysisHooks:
    """Analysis hooks of resource allocation, imported when something is asked."""
    from mast_opt.problems.resource_allocation.analysis.hooks import QUESTIONS  # only when something is asked

    return QUESTIONS


KIND: Kind[ResourceAllocation, Plan] = Kind(
    name=ResourceAllocation.kind,
    title="Resource allocation: how much of which resources each running job gets",
    problem_type=ResourceAllocation,
    plan_type=Plan,
    tables=interfaces.TableInterface(
        schema=SCHEMA,
        plan_schema=PLAN_SCHEMA,
        rules=problem_tables.RULES,
        problem_from_tables=problem_tables.problem_from_tables,
        problem_to_tables=problem_tables.problem_to_tables,
        plan_from_tables=problem_tables.plan_from_tables,
        plan_to_tables=problem_tables.plan_to_tables,
        plan_from_matched=problem_tables.plan_from_matched,
        exporters={".dat": write_dat},
        example=EXAMPLE,
    ),
    formulation=interfaces.FormulationInterface({"base": base}, size=size),
    verification=interfaces.VerificationInterface(verify, check_plan, certified_bound, improvement=improvement),
    solvers=interfaces.SolverInterface(
        {},
        method=solve_policy,
        method_again=Continuation(None, (), carried),
        method_params=AllocationParams,
        grid_limits=ON_A_GRID,
    ),
    generate=interfaces.GenerateInterface(FAMILIES),
    presentation=interfaces.PresentationInterface(sections, charts),
    analysis=interfaces.AnalysisInterface(conflicts=conflicts, hooks=_hooks),
    policies=POLICIES,
)
