"""mast-opt: data placement, job placement and server assignment for machine-learning training over many regions.

    import mast_opt

    problem = mast_opt.read("my-instance")
    solution = mast_opt.solve(problem, time_limit_s=60)
    mast_opt.write_plan(problem, solution, "my-plan")

Everything public is listed in ``__all__``. Names are loaded when they are first used, and a solver's library when
that solver first runs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import mast_opt.core.fork_safety  # noqa: F401 - notices forks from now on

if TYPE_CHECKING:
    __version__: str
    from mast_opt.analysis.explain import Explanation, explain
    from mast_opt.analysis.joint_periods import JointPeriods, plan_periods_jointly
    from mast_opt.analysis.marginal_values import Marginals, marginal_values
    from mast_opt.analysis.migration_plan import steps
    from mast_opt.analysis.pareto import Frontier, pareto
    from mast_opt.analysis.periods import Periods, plan_periods
    from mast_opt.analysis.plan_diff import Diff, diff
    from mast_opt.analysis.purchases import BuyParams, Purchases, buy
    from mast_opt.analysis.risk import risk
    from mast_opt.analysis.scenario_files import Scenario, read_periods, read_scenarios
    from mast_opt.analysis.whatif import WhatIf, whatif
    from mast_opt.builders import (
        DataPlacementBuilder,
        JobPlacementBuilder,
        ResourceAllocationBuilder,
        ServerAssignmentBuilder,
        TaskReassignmentBuilder,
    )
    from mast_opt.core.errors import (
        BackendError,
        BackendUnavailable,
        Fault,
        FormulationTooLarge,
        InputError,
        InstanceError,
        InstanceWarning,
        Interrupted,
        MastOptError,
        NotRunning,
        PlanError,
        SizeLimitExceeded,
        StaleBid,
        UnsupportedOption,
        UsageError,
        VerificationError,
    )
    from mast_opt.core.solve_result import Event, Limit, Status
    from mast_opt.core.verdict import Conflict, Verdict, Violation
    from mast_opt.data_placement import DataPlacement
    from mast_opt.data_placement.tetris.params import TetrisParams
    from mast_opt.importers import import_instance
    from mast_opt.io import (
        checksum,
        from_tables,
        plan_from_tables,
        read,
        read_plan,
        validate,
        write,
        write_template,
    )
    from mast_opt.io.read import Reading
    from mast_opt.job_placement import JobPlacement
    from mast_opt.job_placement.engine.limits import FillSampling, SearchLimits
    from mast_opt.job_placement.exhaustive.params import ExhaustiveParams, ExhaustiveRepairParams
    from mast_opt.job_placement.live_fleet.answers import Bid, Refused
    from mast_opt.job_placement.live_fleet.fleet import Fleet
    from mast_opt.job_placement.live_fleet.move_plan import JobMove, MoveBudget, MovePlan
    from mast_opt.job_placement.live_fleet.types import Job, Part, Server, Share
    from mast_opt.kind.migration_plan import Order
    from mast_opt.loop.metrics import Metrics
    from mast_opt.registry import generate
    from mast_opt.report.answer_tables import to_tables
    from mast_opt.report.html import write_report
    from mast_opt.report.plan_files import write_plan
    from mast_opt.report.plots import Figure, plot_frontier, plot_plan, plot_run, plot_search
    from mast_opt.report.workbook.results import write_workbook
    from mast_opt.resource_allocation import ResourceAllocation
    from mast_opt.resource_allocation.methods.params import AllocationParams
    from mast_opt.server_assignment import ServerAssignment
    from mast_opt.server_assignment.ras.params import RasParams
    from mast_opt.simulation.simulate import Simulation, import_trace, simulate
    from mast_opt.simulation.traces.trace import JobTrace, read_trace
    from mast_opt.solving import (
        Solution,
        SolverInfo,
        SolveRun,
        Stage,
        solve,
        solvers,
        start,
        verify,
        warm_up,
    )
    from mast_opt.solving.auto_strategy import AutoParams
    from mast_opt.solving.export_files import export, formulate, write_program
    from mast_opt.task_reassignment import TaskReassignment
    from mast_opt.task_reassignment.twine.params import TwineParams

__all__ = [
    "AllocationParams",
    "AutoParams",
    "BackendError",
    "BackendUnavailable",
    "Bid",
    "BuyParams",
    "Conflict",
    "DataPlacement",
    "DataPlacementBuilder",
    "Diff",
    "Event",
    "ExhaustiveParams",
    "ExhaustiveRepairParams",
    "Explanation",
    "Fault",
    "Figure",
    "FillSampling",
    "Fleet",
    "FormulationTooLarge",
    "Frontier",
    "InputError",
    "InstanceError",
    "InstanceWarning",
    "Interrupted",
    "Job",
    "JobMove",
    "JobPlacement",
    "JobPlacementBuilder",
    "JobTrace",
    "JointPeriods",
    "Limit",
    "Marginals",
    "MastOptError",
    "Metrics",
    "MoveBudget",
    "MovePlan",
    "NotRunning",
    "Order",
    "Part",
    "Periods",
    "PlanError",
    "Purchases",
    "RasParams",
    "Reading",
    "Refused",
    "ResourceAllocation",
    "ResourceAllocationBuilder",
    "Scenario",
    "SearchLimits",
    "Server",
    "ServerAssignment",
    "ServerAssignmentBuilder",
    "Share",
    "Simulation",
    "SizeLimitExceeded",
    "Solution",
    "SolveRun",
    "SolverInfo",
    "Stage",
    "StaleBid",
    "Status",
    "TaskReassignment",
    "TaskReassignmentBuilder",
    "TetrisParams",
    "TwineParams",
    "UnsupportedOption",
    "UsageError",
    "Verdict",
    "VerificationError",
    "Violation",
    "WhatIf",
    "buy",
    "checksum",
    "diff",
    "explain",
    "export",
    "formulate",
    "from_tables",
    "generate",
    "import_instance",
    "import_trace",
    "marginal_values",
    "pareto",
    "plan_from_tables",
    "plan_periods",
    "plan_periods_jointly",
    "plot_frontier",
    "plot_plan",
    "plot_run",
    "plot_search",
    "read",
    "read_periods",
    "read_plan",
    "read_scenarios",
    "read_trace",
    "risk",
    "simulate",
    "solve",
    "solvers",
    "start",
    "steps",
    "to_tables",
    "validate",
    "verify",
    "warm_up",
    "whatif",
    "write",
    "write_plan",
    "write_program",
    "write_report",
    "write_template",
    "write_workbook",
]

_HOMES = {
    "mast_opt.analysis.explain": ("Explanation", "explain"),
    "mast_opt.analysis.marginal_values": ("Marginals", "marginal_values"),
    "mast_opt.analysis.purchases": ("BuyParams", "Purchases", "buy"),
    "mast_opt.analysis.joint_periods": ("JointPeriods", "plan_periods_jointly"),
    "mast_opt.analysis.periods": ("Periods", "plan_periods"),
    "mast_opt.analysis.pareto": ("Frontier", "pareto"),
    "mast_opt.analysis.risk": ("risk",),
    "mast_opt.analysis.scenario_files": ("Scenario", "read_periods", "read_scenarios"),
    "mast_opt.analysis.whatif": ("WhatIf", "whatif"),
    "mast_opt.analysis.migration_plan": ("steps",),
    "mast_opt.analysis.plan_diff": ("Diff", "diff"),
    "mast_opt.builders": (
        "DataPlacementBuilder",
        "JobPlacementBuilder",
        "ResourceAllocationBuilder",
        "ServerAssignmentBuilder",
        "TaskReassignmentBuilder",
    ),
    "mast_opt.data_placement": ("DataPlacement",),
    "mast_opt.core.errors": (
        "BackendError",
        "BackendUnavailable",
        "Fault",
        "FormulationTooLarge",
        "InputError",
        "InstanceError",
        "InstanceWarning",
        "Interrupted",
        "MastOptError",
        "NotRunning",
        "PlanError",
        "SizeLimitExceeded",
        "StaleBid",
        "UnsupportedOption",
        "UsageError",
        "VerificationError",
    ),
    "mast_opt.io": (
        "checksum",
        "from_tables",
        "plan_from_tables",
        "read",
        "read_plan",
        "validate",
        "write",
        "write_template",
    ),
    "mast_opt.importers": ("import_instance",),
    "mast_opt.io.read": ("Reading",),
    "mast_opt.job_placement": ("JobPlacement",),
    "mast_opt.job_placement.live_fleet.fleet": ("Fleet",),
    "mast_opt.job_placement.live_fleet.move_plan": ("JobMove", "MoveBudget", "MovePlan"),
    "mast_opt.job_placement.live_fleet.answers": ("Bid", "Refused"),
    "mast_opt.job_placement.live_fleet.types": ("Job", "Part", "Server", "Share"),
    "mast_opt.registry": ("generate",),
    "mast_opt.kind.migration_plan": ("Order",),
    "mast_opt.report.answer_tables": ("to_tables",),
    "mast_opt.report.html": ("write_report",),
    "mast_opt.report.plan_files": ("write_plan",),
    "mast_opt.report.plots": ("Figure", "plot_frontier", "plot_plan", "plot_run", "plot_search"),
    "mast_opt.report.workbook.results": ("write_workbook",),
    "mast_opt.resource_allocation": ("ResourceAllocation",),
    "mast_opt.core.solve_result": ("Event", "Limit", "Status"),
    "mast_opt.server_assignment": ("ServerAssignment",),
    "mast_opt.job_placement.engine.limits": ("FillSampling", "SearchLimits"),
    "mast_opt.job_placement.exhaustive.params": ("ExhaustiveParams", "ExhaustiveRepairParams"),
    "mast_opt.resource_allocation.methods.params": ("AllocationParams",),
    "mast_opt.server_assignment.ras.params": ("RasParams",),
    "mast_opt.data_placement.tetris.params": ("TetrisParams",),
    "mast_opt.solving": (
        "Solution",
        "SolveRun",
        "SolverInfo",
        "Stage",
        "solve",
        "solvers",
        "start",
        "verify",
        "warm_up",
    ),
    "mast_opt.solving.auto_strategy": ("AutoParams",),
    "mast_opt.loop.metrics": ("Metrics",),
    "mast_opt.simulation.simulate": ("Simulation", "import_trace", "simulate"),
    "mast_opt.simulation.traces.trace": ("JobTrace", "read_trace"),
    "mast_opt.solving.export_files": ("export", "formulate", "write_program"),
    "mast_opt.task_reassignment": ("TaskReassignment",),
    "mast_opt.task_reassignment.twine.params": ("TwineParams",),
    "mast_opt.core.verdict": ("Conflict", "Verdict", "Violation"),
}


if not TYPE_CHECKING:  # a type checker knows every name from the imports above, and finds misspelt ones

    def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
        if name == "__version__":
            from importlib.metadata import version

            return version("mast-opt")
        for home, names in _HOMES.items():
            if name in names:
                value = getattr(importlib.import_module(home), name)
                globals()[name] = value
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
