"""Parameters and results of solvers."""

import enum
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.sense import Sense

AGREEMENT = 1e-6
"""Relative difference allowed between a stated figure, such as a solver's objective, and the verifier's."""
ROUND_OFF = 1e-9
"""Absolute difference allowed in such a comparison, where both figures are close to 0."""


class Status(enum.Enum):
    """Outcome of a solve, in the words of the command-line contract."""

    OPTIMAL = "OPTIMAL"
    """A solution, proven within the requested gap."""
    FEASIBLE = "FEASIBLE"
    """A solution; a limit or the lack of a proof stopped the search."""
    INFEASIBLE = "INFEASIBLE"
    UNBOUNDED = "UNBOUNDED"
    INFEASIBLE_OR_UNBOUNDED = "INFEASIBLE_OR_UNBOUNDED"
    NO_SOLUTION = "NO_SOLUTION"
    """Nothing found and nothing proven before a limit."""

    @property
    def has_solution(self) -> bool:
        """Whether a status says that there is a plan."""
        return self in (Status.OPTIMAL, Status.FEASIBLE)

    @property
    def is_infeasible(self) -> bool:
        """Whether it is proven that there is no solution. No objective of ours falls without end, so a program that is
        either infeasible or unbounded is infeasible."""
        return self in (Status.INFEASIBLE, Status.INFEASIBLE_OR_UNBOUNDED)


class Limit(enum.Enum):
    """The limit that stopped a search before its proof."""

    TIME = "time"
    INTERRUPT = "interrupt"
    ITERATIONS = "iterations"
    OTHER = "other"
    """A limit of the solver's own, named in its message."""


@dataclass(frozen=True, slots=True)
class Event:
    """A moment of progress: what is known ``elapsed_s`` seconds after the solve began."""

    elapsed_s: float
    incumbent: float | None
    bound: float | None
    stage: str | None = None
    """The term being minimised, when the objective is lexicographic; of several goals, the one being solved for."""
    compiling: bool = False
    """True for the event which says that kernels are being compiled; the search begins afterwards."""
    sense: Sense = Sense.MIN
    """Direction of the objective."""

    @property
    def gap(self) -> float | None:
        """Relative gap of incumbent and bound; None while either is missing."""
        return relative_gap(self.incumbent, self.bound, self.sense)


def relative_gap(objective: float | None, bound: float | None, sense: Sense = Sense.MIN) -> float | None:
    """(objective − bound) / max(|objective|, 1e-9), or None when either is unknown; bound − objective if maximised."""
    if objective is None or bound is None:
        return None
    return max(0.0, sense.minimised(objective - bound) / max(abs(objective), 1e-9))


def within_gap(
    objective: float | None,
    bound: float | None,
    gap: float,
    *,
    claimed: bool = False,
    sense: Sense = Sense.MIN,
    scale: float = 0.0,
) -> bool:
    """Whether a bound proves an objective within a relative gap: the one definition, for solvers of all sorts.

    Args:
        objective: of the best solution known; None proves nothing, nor does an unknown bound.
        bound: a lower bound on the minimum, or an upper one on the maximum.
        gap: the requested gap, relative to the objective as in ``relative_gap``.
        claimed: a solver has stopped there by its own arithmetic, which may differ from ours by ``AGREEMENT`` of the
            objective and by ``ROUND_OFF``. Without a claim, as where a search asks whether to stop, nothing is allowed.
        sense: of the objective.
        scale: what the gap is relative to where the objective is closer to 0 than that.
    """
    reached = relative_gap(objective, bound, sense)
    if reached is None or objective is None or bound is None:
        return False
    left = sense.minimised(objective - bound)
    return reached <= gap or left <= gap * scale or (claimed and left <= (gap + AGREEMENT) * abs(objective) + ROUND_OFF)


AT_LOWER, BASIC, AT_UPPER = 0, 1, 2
"""Status of a column or row in a ``Basis``; AT_LOWER is also that of a free column which is not basic."""


@dataclass(frozen=True, eq=False, slots=True)
class Basis:
    """A vertex of a linear program: which columns and rows are at a limit, and which are determined by those."""

    columns: NDArray[np.int8]
    rows: NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class SolveParams:
    """Parameters that every solver takes. A field that a backend cannot honour raises UnsupportedOption."""

    time_limit_s: float | None = None
    gap: float = 1e-4
    """Relative gap at which the search may stop."""
    seed: int = 0
    threads: int | None = None
    """None leaves the choice to the solver."""
    node_limit: int | None = None
    """Most nodes of the branch-and-bound tree; None for no limit."""
    start: NDArray[np.float64] | None = None
    """A value for every column, offered as a first incumbent."""
    basis: Basis | None = None
    """Basis from which a linear program starts. It changes no answer but the choice among several, so a backend that
    cannot begin at a vertex begins elsewhere. One that does not fit is completed."""
    incumbents: Callable[[], NDArray[np.float64] | None] | None = None
    """Called now and then while the solver runs: a solution found elsewhere since the last call, a value for every
    column, or None. One that breaks a limit changes nothing. Only a backend that ``takes_incumbents`` can honour it."""
    on_solution: Callable[[float, NDArray[np.float64]], None] | None = None
    """Called from the solving thread with the objective and the columns of every better incumbent, by backends that
    learn the columns while they run."""
    on_event: Callable[[Event], None] | None = None
    """Called from the solving thread when the incumbent or the bound improves."""
    cancel: threading.Event = field(default_factory=threading.Event)
    """Set it from any thread to stop the solve and keep the incumbent."""
    options: tuple[tuple[str, str | int | float | bool], ...] = ()
    """Solver-specific options by the solver's own names; an unknown one is an error."""


@dataclass(frozen=True, slots=True)
class SolveResult:
    """A backend's answer. ``x`` and ``objective`` are present exactly when the status has a solution."""

    status: Status
    x: NDArray[np.float64] | None
    objective: float | None
    bound: float | None
    """A proven lower bound on the minimum, or None; never a guess."""
    limit: Limit | None
    message: str
    """The solver's own words."""
    row_price: NDArray[np.float64] | None = None
    """[rows] of a linear program solved to its optimum: by how much the minimum rises with a row's limit, per unit.
    None where the solver does not say; ``mast_opt.problems.mip.duality`` then finds them."""
    basis: Basis | None = None
    """Basis of a linear program solved to its optimum, where the solver states it."""

    def __post_init__(self) -> None:
        if self.status.has_solution != (self.x is not None and self.objective is not None):
            raise ValueError(f"{self.status.value} and x, objective contradict each other")
        for name in ("objective", "bound"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{name} is {value}; unknown is written None")

    @property
    def gap(self) -> float | None:
        """Relative gap of objective and bound; None if either is missing."""
        return relative_gap(self.objective, self.bound)
