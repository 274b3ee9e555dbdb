"""A job-placement plan: which tasks go to which server, and which running jobs make room."""

from dataclasses import dataclass, field

import numpy as np

from mast_opt.core.arrays import OTHER_INSTANCE, Arrays, amounts, flags, positions
from mast_opt.core.errors import PlanError
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import MOST_TASKS, Bools, Ints
from mast_opt.problems.kind.problem_data import Decisions


def _no_numbers() -> Ints:
    """No numbers: the moves of a plan that moves nothing."""
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Decisions):
    """Decisions of a job placement. A job that occurs in no row is not admitted.

    Raises:
        PlanError: arrays of another type, or that do not fit one another.
    """

    job: Ints
    """[·] ascending; one row per (job, server), or per (job, server, device) for fractions of a GPU."""
    server: Ints
    tasks: Ints
    """[·] how many of the job's tasks; all rows of a job together have all of them."""
    gpu_index: Ints
    """[·] the first device of the row; meaningful where ``indexed``."""
    indexed: Bools
    """[·] True for fractions of a GPU, which share the named device. Whole GPUs need no index."""
    preempt: Bools
    """[V] which running jobs are stopped."""
    moved: Ints = field(default_factory=_no_numbers)
    """[·] running jobs that are moved, ascending; their rows say where all their tasks run afterwards, one per (job,
    server), or per (job, server, device) for fractions."""
    moved_server: Ints = field(default_factory=_no_numbers)
    moved_tasks: Ints = field(default_factory=_no_numbers)
    moved_gpu_index: Ints = field(default_factory=_no_numbers)
    """[·] as ``gpu_index``."""
    moved_indexed: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))

    def __post_init__(self) -> None:
        check = Arrays(self)
        check.take(*COLUMNS)
        if check.faults:
            raise PlanError(check.faults)


COLUMNS = (
    amounts("job", "rows", least=None, total=False),
    amounts("server", "rows", least=None, total=False),
    amounts("tasks", "rows", least=-MOST_TASKS, most=MOST_TASKS),
    amounts("gpu_index", "rows", least=None, total=False),
    flags("indexed", "rows"),
    flags("preempt", "running"),
    amounts("moved", "moved_rows", least=None, total=False),
    amounts("moved_server", "moved_rows", least=None, total=False),
    amounts("moved_tasks", "moved_rows", least=-MOST_TASKS, most=MOST_TASKS),
    amounts("moved_gpu_index", "moved_rows", least=None, total=False),
    flags("moved_indexed", "moved_rows"),
)


def check_plan(problem: JobPlacement, plan: Plan) -> None:
    """Raises PlanError for a plan of another instance: a position that the problem does not have."""
    check = Arrays(plan, {name: len(getattr(problem, name)) for name in ("jobs", "servers", "running")})
    check.take(positions("job", "rows", "jobs"), positions("server", "rows", "servers"), flags("preempt", "running"))
    check.take(positions("moved", "moved_rows", "running"), positions("moved_server", "moved_rows", "servers"))
    if check.faults:
        raise PlanError(check.faults, OTHER_INSTANCE)


def empty(problem: JobPlacement) -> Plan:
    """The plan that admits nothing and stops nothing; it breaks no rule."""
    none = np.zeros(0, np.int64)
    return Plan(none, none, none, none, np.zeros(0, np.bool_), np.zeros(len(problem.running), np.bool_))
