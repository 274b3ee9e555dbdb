"""The frame around every backend: check the question, run the solver, check the answer.

What holds for all solvers is done here once: a start of the wrong length is an error, a program without
columns needs no solver, Ctrl-C becomes ``cancel``, a solver that ignores it is left behind, a feasible start is
never lost, the objective is that of ``x`` on the program as it was stated, and OPTIMAL means proven within the asked
gap by arithmetic that can see what decides.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import BackendError, UsageError
from mast_opt.core.solve_result import Basis, Limit, SolveParams, SolveResult, Status, within_gap
from mast_opt.problems.backends.base import interruptibly
from mast_opt.problems.backends.progress import Progress, Relay
from mast_opt.problems.mip import Mip, scale

FEASIBILITY_TOLERANCE = 1e-6
"""Tolerance of a scaled row or an integer column in a start, as solvers have it by default."""
WRONG = 1e-4
"""Tolerance of a scaled row beyond which a solver's solution is refused."""
ROUND_OFF = 1e-9
"""Distance from a whole number at which the limit of an integer column still means that number."""
WIDEST_ROW = 1e7
"""Largest ratio between a row's largest integer coefficient and its smallest one up to which a proof counts: beyond it,
an integer column that is off by a tolerance of 1e-7 hides the small coefficient."""
WIDEST_COSTS = 1e10
"""Largest ratio between two costs up to which a proof counts: tolerances follow the largest of them."""
CONTINUOUS = 1e-2
"""Weight of a continuous column's coefficient as the largest of a row: such a column need not be whole."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Answer of a solver, in our words, before it is checked against the program."""

    status: Status
    x: FloatArray | None = None
    bound: float | None = None
    """A lower bound on the handed program's objective, its offset included; ±inf counts as unknown."""
    limit: Limit | None = None
    message: str = ""
    row_price: FloatArray | None = None
    """[rows] of the handed program; see ``SolveResult``."""
    basis: Basis | None = None


class Run:
    """One solve by a solver's library: the program as it is handed over, the clock and the callbacks."""

    def __init__(self, mip: Mip, params: SolveParams, progress: Progress, infinity: float = math.inf) -> None:
        self._mip, self._params, self._progress, self._infinity = mip, params, progress, infinity
        self._relay, self._scaled = Relay(params, progress), scale(mip)

    def _known(self, value: float) -> float | None:
        """Objective value in original units; None for the library's infinity."""
        return None if abs(value) >= self._infinity else self._scaled.to_original_objective(value)


class Supervised(ABC):
    """A backend under ``supervised``."""

    exact = False
    """True if the solver counts in integers, and has no tolerances that hide coefficients."""

    def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
        """The result of one solve by the backend; see ``Backend.solve``."""
        return supervised(self._minimise, mip, params, exact=self.exact)

    @abstractmethod
    def _minimise(self, mip: Mip, params: SolveParams, progress: Progress) -> Outcome:
        """Minimise a program with the backend's library."""


def supervised(
    minimise: Callable[[Mip, SolveParams, Progress], Outcome], mip: Mip, params: SolveParams, *, exact: bool = False
) -> SolveResult:
    """Solve ``mip`` with ``minimise``, which need not care about what the module's docstring promises.

    Args:
        minimise: the solver.
        mip: the program.
        params: what is asked of it.
        exact: the solver counts in integers, and has no tolerances that hide coefficients.

    Raises:
        UsageError: ``params`` do not fit the program, or a number of the program is NaN or infinite.
    """
    check_params(params)
    _check_start(mip, params)
    _check_program(mip)
    progress = Progress(params.on_event, on_solution=params.on_solution)
    start = None if params.start is None else _feasible(mip, params.start)
    if start is not None:
        progress.update(incumbent=mip.objective(start), x=start)
    outcome = _without_solver(mip, params) or interruptibly(
        lambda: minimise(mip, params, progress), params.cancel, lambda: _without_waiting(progress)
    )
    result = _concluded(mip, params, outcome if exact else _believed(mip, params.gap, outcome, start), start)
    progress.update(result.objective, result.bound)
    progress.close()
    return result


def _without_waiting(progress: Progress) -> Outcome | None:
    """The known state of a solve that does not stop; None while the incumbent's columns are not known, or are just
    written."""
    if progress.answering or (progress.incumbent is not None and progress.x is None):
        return None
    status = Status.NO_SOLUTION if progress.x is None else Status.FEASIBLE
    words = "left behind, since the solver did not stop when it was asked to"
    return Outcome(status, progress.x, progress.bound, Limit.INTERRUPT, words)


def check_params(params: SolveParams) -> None:
    """Raises UsageError for limits, a gap, a seed or threads that make no sense for any solver."""
    limit = params.time_limit_s
    if limit is not None and not limit > 0:
        raise UsageError(f"time_limit_s is {limit}; expected a number of seconds above 0, or None for no limit")
    if not 0 <= params.gap < math.inf:
        raise UsageError(f"gap is {params.gap}; expected a finite number of at least 0, as in 1e-4")
    if not 0 <= params.seed < 2**31:
        raise UsageError(f"seed is {params.seed}; expected a whole number from 0 to 2147483647")
    if params.threads is not None and params.threads < 1:
        raise UsageError(f"threads is {params.threads}; expected at least 1, or None to leave it to the solver")
    if params.node_limit is not None and params.node_limit < 1:
        raise UsageError(f"node_limit is {params.node_limit}; expected at least 1, or None for no limit")


def _check_start(mip: Mip, params: SolveParams) -> None:
    """Raises UsageError for a start or basis that does not fit the program."""
    if params.start is not None:
        if np.shape(params.start) != np.shape(mip.cost):
            raise UsageError(
                f"start has shape {np.shape(params.start)}; expected ({len(mip.cost)},), a value for every column"
            )
        if not np.isfinite(params.start).all():
            column = int(np.flatnonzero(~np.isfinite(params.start))[0])
            raise UsageError(f"start[{column}] is {params.start[column]}; expected a finite value for every column")
    if params.basis is not None and (len(params.basis.rows), len(params.basis.columns)) != mip.shape:
        raise UsageError(
            f"basis has {len(params.basis.rows)} rows and {len(params.basis.columns)} columns; expected "
            f"{mip.shape[0]} and {mip.shape[1]}, as the program has"
        )


def _check_program(mip: Mip) -> None:
    """Raises UsageError where a program's arrays hold NaN, or infinity where it may not be."""
    for name in ("cost", "value", "offset"):
        if not np.isfinite(getattr(mip, name)).all():
            raise UsageError(f"{name} of program {mip.name!r} holds NaN or infinity; expected finite numbers")
    for name in ("col_lower", "col_upper", "row_lower", "row_upper"):
        if np.isnan(getattr(mip, name)).any():
            raise UsageError(f"{name} of program {mip.name!r} holds NaN; expected numbers, or ±infinity for no limit")


def _without_solver(mip: Mip, params: SolveParams) -> Outcome | None:
    """The outcome, if it follows from the sizes alone; solvers disagree about these corners."""
    whole_lower = np.where(mip.integral, np.ceil(mip.col_lower - ROUND_OFF), mip.col_lower)
    whole_upper = np.where(mip.integral, np.floor(mip.col_upper + ROUND_OFF), mip.col_upper)
    for what, lower, upper, name in (
        ("column", whole_lower, whole_upper, mip.column_name),
        ("row", mip.row_lower, mip.row_upper, mip.row_name),
    ):
        crossed = np.flatnonzero((lower > upper) | (lower == np.inf) | (upper == -np.inf))
        if len(crossed):
            at = int(crossed[0])
            return Outcome(
                Status.INFEASIBLE,
                message=f"{what} {name(at)} must lie between {lower[at]:g} and {upper[at]:g}, which is empty",
            )
    if len(mip.cost) == 0:
        if ((mip.row_lower > 0) | (mip.row_upper < 0)).any():
            return Outcome(Status.INFEASIBLE, message="no columns, and a row that 0 does not satisfy")
        return Outcome(Status.OPTIMAL, np.zeros(0), mip.offset, message="no columns")
    if params.cancel.is_set():
        return Outcome(Status.NO_SOLUTION, limit=Limit.INTERRUPT, message="cancelled before the solve began")
    return None


def _feasible(mip: Mip, start: FloatArray) -> FloatArray | None:
    """The start with its integer columns rounded, or None if it breaks a bound, a row or integrality."""
    x = np.where(mip.integral, np.round(start), start)
    scaled = scale(mip)
    off = np.maximum(mip.col_lower - x, x - mip.col_upper) / scaled.column_factor
    missed = (np.abs(x - start), off, _missed(mip, x))
    if max(amount.max(initial=0.0) for amount in missed) > FEASIBILITY_TOLERANCE:
        return None
    return np.clip(x, mip.col_lower, mip.col_upper)


def _missed(mip: Mip, x: FloatArray) -> FloatArray:
    """Amounts by which rows are missed, at the scale at which solvers see them; negative where they hold."""
    activity = mip.activity(x)
    return np.asarray(np.maximum(mip.row_lower - activity, activity - mip.row_upper) * scale(mip).row_factor)


def _check_solution(mip: Mip, x: FloatArray) -> None:
    """Raises BackendError where a backend's solution misses a row or is fractional."""
    missed = _missed(mip, x) / _sizes(mip, x)
    if missed.max(initial=0.0) > WRONG:
        at = int(np.argmax(missed))
        raise BackendError(
            f"the solver calls something a solution that misses row {mip.row_name(at)} by {missed[at]:g} (scaled)"
        )
    if mip.integral.any() and np.abs(x - np.round(x))[mip.integral].max() > WRONG:
        raise BackendError("the solver calls something a solution that has fractions in integer columns")


def _sizes(mip: Mip, x: FloatArray) -> FloatArray:
    """Magnitude of each row that solvers compare its miss with: its activity as they see it, but at least 1."""
    return np.maximum(1.0, np.abs(mip.activity(x)) * scale(mip).row_factor)


def _holds_when_whole(mip: Mip, x: FloatArray) -> bool:
    """Whether every row holds once the integer columns are whole: a coefficient of 1e9 makes much of 1e-7, and a
    tolerance relative to the row makes much of a large one."""
    return bool(_missed(mip, np.where(mip.integral, np.round(x), x)).max(initial=0.0) <= WRONG)


def _believed(mip: Mip, gap: float, outcome: Outcome, start: FloatArray | None) -> Outcome:
    """The outcome, without its proof where tolerances hide what decides, or where a better start refutes it."""
    why = None
    if mip.integral.any():
        scaled = scale(mip).mip
        why = _hidden_rows(scaled)
        if why is not None and outcome.x is not None:
            try:
                _check_solution(mip, np.clip(outcome.x, mip.col_lower, mip.col_upper))
            except BackendError as error:
                words = f"{error}, since {why}"
                return Outcome(Status.NO_SOLUTION, limit=outcome.limit or Limit.OTHER, message=words)
        if why is None and outcome.status is not Status.INFEASIBLE:
            why = _hidden_costs(scaled)
    if why is None and outcome.status is Status.OPTIMAL and outcome.x is not None and start is not None:
        beaten = not within_gap(mip.objective(outcome.x), mip.objective(start), gap, claimed=True)
        why = "the start is better" if beaten else None
    unproven = {Status.OPTIMAL: Status.FEASIBLE, Status.INFEASIBLE: Status.NO_SOLUTION}
    if why is None or (outcome.status not in unproven and outcome.bound is None):
        return outcome
    words = f"{outcome.message}; its proof does not count, since {why}"
    status = unproven.get(outcome.status, outcome.status)
    return replace(outcome, status=status, bound=None, limit=outcome.limit or Limit.OTHER, message=words)


def _hidden_costs(mip: Mip) -> str | None:
    """Reason why a backend's tolerance may hide costs of the program; None where it does not."""
    costs = np.abs(mip.cost[mip.cost != 0.0])
    apart = len(costs) > 0 and costs.max() > WIDEST_COSTS * costs.min()
    return "costs lie too far apart" if apart else None


def _hidden_rows(mip: Mip) -> str | None:
    """Reason why a backend's tolerance may hide coefficients of a row; None where it does not."""
    filled = np.flatnonzero(np.diff(mip.row_start))
    if len(filled) == 0:
        return None
    size, start = np.abs(mip.value), mip.row_start[filled]
    largest = np.maximum.reduceat(np.where(mip.integral[mip.index], size, CONTINUOUS * size), start)
    size[size == 0.0] = np.inf
    if (largest > WIDEST_ROW * np.minimum.reduceat(size, start)).any():
        return "coefficients of a row lie too far apart"
    return None


def _concluded(mip: Mip, params: SolveParams, outcome: Outcome, start: FloatArray | None) -> SolveResult:
    """Result of a backend's outcome: checked, with the better of point and start, and a status that holds."""
    status, limit = outcome.status, outcome.limit
    bound = max(_known(outcome.bound), _trivial_bound(mip))
    x = None if outcome.x is None else np.clip(outcome.x, mip.col_lower, mip.col_upper)
    words = outcome.message
    if start is not None and status.is_infeasible:  # it had a cutoff, or another idea of tolerances
        words = f"the solver says {status.value}, although the start is feasible: {words}"
        status, limit = Status.NO_SOLUTION, Limit.OTHER
    open_ended = status in (Status.FEASIBLE, Status.NO_SOLUTION)
    if start is not None and open_ended and (x is None or mip.objective(start) < mip.objective(x)):
        status, x = Status.FEASIBLE, start
    if not status.has_solution:
        known = math.isfinite(bound) and status is Status.NO_SOLUTION
        return SolveResult(status, None, None, bound if known else None, limit, words)
    if x is None:
        raise BackendError(f"the solver claims {status.value} and gives no solution: {outcome.message}")
    _check_solution(mip, x)
    objective = mip.objective(x)
    bound = min(bound, objective)
    if status is Status.FEASIBLE and within_gap(objective, bound, params.gap):
        status, limit = Status.OPTIMAL, None
    elif status is Status.OPTIMAL and not within_gap(objective, bound, params.gap, claimed=True):
        status = Status.FEASIBLE
    if status is Status.OPTIMAL and not _holds_when_whole(mip, x):
        status, limit, words = Status.FEASIBLE, Limit.OTHER, f"{words}; rows hold by the solver's tolerance alone"
    x.setflags(write=False)
    price, basis = (outcome.row_price, outcome.basis) if status is Status.OPTIMAL else (None, None)
    return SolveResult(status, x, objective, bound if math.isfinite(bound) else None, limit, words, price, basis)


def _known(bound: float | None) -> float:
    """Bound of a backend's outcome; −inf where it is not known."""
    return float(bound) if bound is not None and math.isfinite(bound) else -math.inf


def _trivial_bound(mip: Mip) -> float:
    """The trivial bound of a program: the objective with every column at its cheaper bound, or −inf."""
    priced = mip.cost != 0
    cheaper = np.where(mip.cost > 0, mip.col_lower, mip.col_upper)[priced]
    return float(mip.cost[priced] @ cheaper) + mip.offset
