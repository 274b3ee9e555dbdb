# ruff: noqa: I001 - one line for each module
"""The public names of mast-opt, each from where it is defined; ``__init__.py`` loads them when they are first used."""

__all__: list[str]
__version__: str

from .analysis.explain import Explanation as Explanation, explain as explain
from .analysis.joint_periods import JointPeriods as JointPeriods, plan_periods_jointly as plan_periods_jointly
from .analysis.marginal_values import Marginals as Marginals, marginal_values as marginal_values
from .analysis.migration_plan import steps as steps
from .analysis.pareto import Frontier as Frontier, pareto as pareto
from .analysis.periods import Periods as Periods, plan_periods as plan_periods
from .analysis.plan_diff import Diff as Diff, diff as diff
from .analysis.purchases import BuyParams as BuyParams, Purchases as Purchases, buy as buy
from .analysis.risk import risk as risk
from .analysis.scenario_files import (
    Scenario as Scenario,
    read_periods as read_periods,
    read_scenarios as read_scenarios,
)
from .analysis.whatif import WhatIf as WhatIf, whatif as whatif
from .builders import (
    DataPlacementBuilder as DataPlacementBuilder,
    JobPlacementBuilder as JobPlacementBuilder,
    ResourceAllocationBuilder as ResourceAllocationBuilder,
    ServerAssignmentBuilder as ServerAssignmentBuilder,
    TaskReassignmentBuilder as TaskReassignmentBuilder,
)
from .core.errors import (
    BackendError as BackendError,
    BackendUnavailable as BackendUnavailable,
    Contradiction as Contradiction,
    Fault as Fault,
    FormulationTooLarge as FormulationTooLarge,
    InputError as InputError,
    InstanceError as InstanceError,
    InstanceWarning as InstanceWarning,
    Interrupted as Interrupted,
    MastOptError as MastOptError,
    NotRunning as NotRunning,
    PlanError as PlanError,
    SizeLimitExceeded as SizeLimitExceeded,
    StaleBid as StaleBid,
    UnsupportedOption as UnsupportedOption,
    UsageError as UsageError,
    VerificationError as VerificationError,
)
from .core.solve_result import Event as Event, Limit as Limit, Status as Status
from .core.verdict import Conflict as Conflict, Verdict as Verdict, Violation as Violation
from .data_placement import DataPlacement as DataPlacement
from .data_placement.tetris.params import TetrisParams as TetrisParams
from .importers import import_instance as import_instance
from .io import (
    checksum as checksum,
    from_tables as from_tables,
    plan_from_tables as plan_from_tables,
    read as read,
    read_plan as read_plan,
    validate as validate,
    write as write,
    write_template as write_template,
)
from .io.read import Reading as Reading
from .job_placement import JobPlacement as JobPlacement
from .job_placement.engine.limits import FillSampling as FillSampling, SearchLimits as SearchLimits
from .job_placement.exhaustive.params import (
    ExhaustiveParams as ExhaustiveParams,
    ExhaustiveRepairParams as ExhaustiveRepairParams,
)
from .job_placement.live_fleet.answers import Bid as Bid, Refused as Refused
from .job_placement.live_fleet.fleet import Fleet as Fleet
from .job_placement.live_fleet.move_plan import JobMove as JobMove, MoveBudget as MoveBudget, MovePlan as MovePlan
from .job_placement.live_fleet.types import Job as Job, Part as Part, Server as Server, Share as Share
from .kind.migration_plan import Order as Order
from .loop.metrics import Metrics as Metrics
from .registry import generate as generate
from .report.answer_tables import to_tables as to_tables
from .report.html import write_report as write_report
from .report.plan_files import write_plan as write_plan
from .report.plots import (
    Figure as Figure,
    plot_frontier as plot_frontier,
    plot_plan as plot_plan,
    plot_run as plot_run,
    plot_search as plot_search,
)
from .report.workbook.results import write_workbook as write_workbook
from .resource_allocation import ResourceAllocation as ResourceAllocation
from .resource_allocation.methods.params import AllocationParams as AllocationParams
from .server_assignment import ServerAssignment as ServerAssignment
from .server_assignment.ras.params import RasParams as RasParams
from .simulation.simulate import Simulation as Simulation, import_trace as import_trace, simulate as simulate
from .simulation.traces.trace import JobTrace as JobTrace, read_trace as read_trace
from .solving import (
    CrossCheck as CrossCheck,
    Solution as Solution,
    SolverInfo as SolverInfo,
    SolveRun as SolveRun,
    Stage as Stage,
    solve as solve,
    solvers as solvers,
    start as start,
    verify as verify,
    warm_up as warm_up,
)
from .solving.auto_strategy import AutoParams as AutoParams
from .solving.export_files import export as export, formulate as formulate, write_program as write_program
from .task_reassignment import TaskReassignment as TaskReassignment
from .task_reassignment.twine.params import TwineParams as TwineParams
