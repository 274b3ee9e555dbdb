# ruff: noqa: I001 - one line for each module
"""The public names of mast-opt, each from where it is defined; ``__init__.py`` loads them when they are first used."""

__all__: list[str]
__version__: str

from .planner.analysis.explain import Explanation as Explanation, explain as explain
from .planner.analysis.goals import Goals as Goals, solve_goals as solve_goals
from .planner.analysis.joint_periods import JointPeriods as JointPeriods, plan_periods_jointly as plan_periods_jointly
from .planner.analysis.marginal_values import Marginals as Marginals, marginal_values as marginal_values
from .planner.analysis.migration_plan import steps as steps
from .planner.analysis.pareto import Frontier as Frontier, pareto as pareto
from .planner.analysis.periods import Periods as Periods, plan_periods as plan_periods
from .planner.analysis.plan_diff import Diff as Diff, diff as diff
from .planner.analysis.purchase_question import BuyParams as BuyParams, Purchases as Purchases
from .planner.analysis.purchases import buy as buy
from .planner.analysis.purchases_in_time import PurchasesInTime as PurchasesInTime, buy_in_time as buy_in_time
from .planner.analysis.risk import risk as risk
from .planner.analysis.scenario_files import (
    Scenario as Scenario,
    read_periods as read_periods,
    read_scenarios as read_scenarios,
)
from .planner.analysis.whatif import WhatIf as WhatIf, whatif as whatif
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
    PluginError as PluginError,
    PluginWarning as PluginWarning,
    SizeLimitExceeded as SizeLimitExceeded,
    StaleBid as StaleBid,
    UnsupportedOption as UnsupportedOption,
    UsageError as UsageError,
    VerificationError as VerificationError,
)
from .core.solve_limits import SolveLimits as SolveLimits
from .core.solve_result import Event as Event, Limit as Limit, Status as Status
from .core.verdict import Conflict as Conflict, Verdict as Verdict, Violation as Violation
from .problems.data_placement import DataPlacement as DataPlacement
from .problems.data_placement.tetris.params import TetrisParams as TetrisParams
from .planner.importers import import_instance as import_instance
from .planner.io import (
    checksum as checksum,
    from_tables as from_tables,
    plan_from_tables as plan_from_tables,
    read as read,
    read_plan as read_plan,
    validate as validate,
    write as write,
    write_template as write_template,
)
from .planner.io.read import Reading as Reading
from .problems.job_placement import JobPlacement as JobPlacement
from .problems.job_placement.engine.limits import FillSampling as FillSampling, SearchLimits as SearchLimits
from .problems.job_placement.exhaustive.params import (
    ExhaustiveParams as ExhaustiveParams,
    ExhaustiveRepairParams as ExhaustiveRepairParams,
)
from .problems.job_placement.live_fleet.answers import Bid as Bid, Refused as Refused
from .problems.job_placement.live_fleet.fleet import Fleet as Fleet
from .problems.job_placement.live_fleet.move_plan import (
    JobMove as JobMove,
    MoveBudget as MoveBudget,
    MovePlan as MovePlan,
)
from .problems.job_placement.live_fleet.types import Job as Job, Part as Part, Server as Server, Share as Share
from .problems.kind.migration_plan import Order as Order
from .live.loop.metrics import Metrics as Metrics
from .problems.registry import generate as generate
from .planner.report.answer_tables import to_tables as to_tables
from .planner.report.html.write import write_report as write_report
from .planner.report.plan_files import write_plan as write_plan
from .live.reports.plots import (
    Figure as Figure,
    plot_frontier as plot_frontier,
    plot_plan as plot_plan,
    plot_run as plot_run,
    plot_search as plot_search,
)
from .planner.report.workbook.results import write_workbook as write_workbook
from .problems.resource_allocation import ResourceAllocation as ResourceAllocation
from .problems.resource_allocation.methods.params import AllocationParams as AllocationParams
from .problems.server_assignment import ServerAssignment as ServerAssignment
from .problems.server_assignment.ras.params import RasParams as RasParams
from .live.simulation.simulate import Simulation as Simulation, import_trace as import_trace, simulate as simulate
from .live.simulation.traces.trace import JobTrace as JobTrace, read_trace as read_trace
from .planner.solving import (
    CrossCheck as CrossCheck,
    Reuse as Reuse,
    Solution as Solution,
    SolverInfo as SolverInfo,
    SolveRun as SolveRun,
    Stage as Stage,
    resolve as resolve,
    solve as solve,
    solvers as solvers,
    start as start,
    verify as verify,
    warm_up as warm_up,
)
from .planner.solving.auto_strategy import AutoParams as AutoParams
from .planner.solving.export_files import export as export, formulate as formulate, write_program as write_program
from .problems.task_reassignment import TaskReassignment as TaskReassignment
from .problems.task_reassignment.twine.params import TwineParams as TwineParams
