"""CP-SAT, the constraint solver of OR-tools, on an integer relaxation (``mip.integer_relaxation``)."""

import math
import os
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from mast_opt.core.arrays import BoolArray, FloatArray
from mast_opt.core.errors import BackendError, SizeLimitExceeded, UnsupportedOption
from mast_opt.core.solve_result import Limit, SolveParams, Status, within_gap
from mast_opt.problems.backends.base import checked_options, load
from mast_opt.problems.backends.progress import Progress, watching
from mast_opt.problems.backends.supervise import FEASIBILITY_TOLERANCE, Outcome, Run, Supervised
from mast_opt.problems.mip import Mip, scale
from mast_opt.problems.mip.integer_relaxation.bound_tightening import endless_gain
from mast_opt.problems.mip.integer_relaxation.coefficients import Coefficients
from mast_opt.problems.mip.integer_relaxation.relaxation import IntegerRelaxation, Unlimited, lattice

GOVERNED = {
    "max_time_in_seconds": "time_limit_s",
    "relative_gap_limit": "gap",
    "absolute_gap_limit": "gap",
    "random_seed": "seed",
    "num_workers": "threads",
    "num_search_workers": "threads",
}
GAP_FOR_SEARCH = 0.9
"""Share of the requested gap that the search may leave; the rest is reserved for the loss of the relaxation."""
COARSE, FINE = 7, 10
"""Digits of the grid for continuous columns. The fine grid comes second, since it weakens the linear relaxation."""
PORTFOLIO, PORTFOLIO_ENTRIES = 8, 3_000_000
"""Number of workers, even on two cores, since with fewer CP-SAT omits those that improve the bound; and the entries of
a model up to which all of them run, since larger models would fill memory."""
SMALL = 2000
"""Number of rows up to which the linear relaxation holds all rows. Adding rows lazily loses precision on one thread."""


class CpSat(Supervised):
    """CP-SAT: exact on integer programs; other continuous columns are placed on a fine grid and then solved for."""

    name = "cpsat"
    package = "ortools>=9.15"
    grid = True
    """Continuous columns are placed on a grid."""
    exact = True

    def version(self) -> str:
        """The version of OR-Tools. Raises BackendUnavailable without it."""
        return str(load("ortools", self).__version__)

    def _minimise(self, mip: Mip, params: SolveParams, progress: Progress) -> Outcome:
        """Minimise a program with CP-SAT, on a coarse grid first and on a finer one if that pays."""
        coarse = self._on_grid(mip, params, progress, COARSE)
        if coarse.status is not Status.OPTIMAL or coarse.x is None or coarse.bound is None:
            return coarse
        objective = mip.objective(coarse.x)
        if within_gap(objective, coarse.bound, params.gap, claimed=True):
            return coarse
        fine = self._on_grid(mip, replace(params, start=coarse.x), progress, FINE)
        bound = coarse.bound if fine.bound is None else max(coarse.bound, fine.bound)
        if fine.x is None or mip.objective(fine.x) > objective:
            return replace(fine, status=Status.FEASIBLE, x=coarse.x, bound=bound)
        return replace(fine, bound=bound)

    def _on_grid(self, mip: Mip, params: SolveParams, progress: Progress, digits: int) -> Outcome:
        """Outcome of CP-SAT on the integer relaxation with so many digits. Raises what it cannot state."""
        cp_model = load("ortools.sat.python.cp_model", self)
        if endless_gain(mip, Coefficients.of(mip)).any():
            return Outcome(Status.INFEASIBLE_OR_UNBOUNDED, message="a column improves the objective without end")
        try:
            integers = lattice(mip, digits)
        except Unlimited as error:
            raise UnsupportedOption(
                f"cpsat needs finite bounds; column {mip.column_name(error.column)} has none, and no row or cost "
                "implies them. Give it bounds, or use highs, scip or cbc."
            ) from error
        except OverflowError as error:
            raise SizeLimitExceeded(
                f"cpsat counts in 64-bit integers, and {error} in {mip.name!r}. Use highs, scip or cbc."
            ) from error
        if integers.empty:
            return Outcome(Status.INFEASIBLE, message="no integers lie between the limits of a column or row")
        return _Run(cp_model, mip, integers, params, progress).outcome()


class _Run(Run):
    """One solve of CP-SAT: its model, parameters, callbacks and outcome."""

    def __init__(
        self, cp_model: Any, mip: Mip, integers: IntegerRelaxation, params: SolveParams, progress: Progress
    ) -> None:
        super().__init__(mip, params, progress)
        self._cp_model = cp_model
        self._integers = integers
        self._model = _model(cp_model, integers)
        if params.start is not None:
            hint = self._model.proto.solution_hint
            hint.vars.extend(range(len(mip.cost)))
            hint.values.extend(integers.to_z(params.start).tolist())
        self._solver = cp_model.CpSolver()
        self._configure()

    def _configure(self) -> None:
        """Set the parameters of the solve in CP-SAT."""
        params, chosen = self._params, self._solver.parameters
        chosen.add_lp_constraints_lazily = len(self._integers.rows.lower) > SMALL
        for name, value in checked_options("CP-SAT", params, GOVERNED, None):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if not hasattr(chosen, name) or not chosen.merge_text_format(f"{name}: {text}"):
                raise UnsupportedOption(
                    f"CP-SAT does not accept parameter {name} = {value!r}; see sat_parameters.proto"
                )
        chosen.relative_gap_limit = GAP_FOR_SEARCH * params.gap
        chosen.absolute_gap_limit = 0.0
        chosen.random_seed = params.seed
        small = len(self._integers.rows.value) <= PORTFOLIO_ENTRIES
        chosen.num_workers = params.threads or max(PORTFOLIO if small else 1, os.cpu_count() or 1)
        chosen.catch_sigint_signal = False
        remaining = self._progress.remaining_s(params.time_limit_s)
        if remaining is not None:
            chosen.max_time_in_seconds = remaining

    def outcome(self) -> Outcome:
        """Run CP-SAT, and return its outcome."""
        integers, relay = self._integers, self._relay
        solver = self._solver

        def on_bound(value: float) -> None:
            relay.call(lambda: self._progress.update(bound=integers.to_bound(value)))

        def on_solution(value: float) -> None:
            relay.call(lambda: self._progress.update(incumbent=integers.to_objective(value)))

        class Listener(self._cp_model.CpSolverSolutionCallback):  # type: ignore[name-defined, misc]
            def on_solution_callback(self) -> None:
                on_solution(self.objective_value)

        solver.best_bound_callback = on_bound
        with watching(relay, solver.stop_search):
            status = solver.solve(self._model, Listener())
        relay.reraise()
        words = solver.status_name(status)
        if status == self._cp_model.MODEL_INVALID:
            raise BackendError(f"CP-SAT calls the model invalid: {self._model.validate()}")
        if status == self._cp_model.INFEASIBLE:
            return Outcome(Status.INFEASIBLE, message=words)
        limit = self._limit()
        if status == self._cp_model.UNKNOWN:
            return Outcome(Status.NO_SOLUTION, None, self._progress.bound, limit, words)
        bound = integers.to_bound(solver.best_objective_bound)
        proven = status == self._cp_model.OPTIMAL
        free = integers.grid if proven else ~self._mip.integral
        z = np.array(solver.response_proto.solution, np.int64)
        x = _completed(
            self._mip, np.clip(integers.to_x(z), self._mip.col_lower, self._mip.col_upper), free, self._left_s()
        )
        if x is None:
            words += "; rounding to the grid of the continuous columns left no feasible x"
            return Outcome(Status.NO_SOLUTION, None, bound, limit or Limit.OTHER, words)
        return Outcome(Status.OPTIMAL if proven else Status.FEASIBLE, x, bound, None if proven else limit, words)

    def _limit(self) -> Limit:
        """Limit that ended the solve in CP-SAT."""
        if self._relay.stop:
            return self._relay.limit
        limit = self._params.time_limit_s
        remaining = self._progress.remaining_s(limit)
        if limit is None or remaining is None:
            return Limit.OTHER
        return Limit.TIME if remaining < max(0.1, 0.05 * limit) else Limit.OTHER

    def _left_s(self) -> float:
        """Seconds left for CP-SAT; infinite without a time limit."""
        remaining = self._progress.remaining_s(self._params.time_limit_s)
        return math.inf if remaining is None else max(1.0, remaining)


def _model(cp_model: Any, integers: IntegerRelaxation) -> Any:
    """The CP-SAT model, written into its protocol buffer: a Python step per row, none per column or entry."""
    model = cp_model.CpModel()
    proto = model.proto
    scratch = cp_model.CpModelProto()  # held until the end: what it gives out does not keep it alive
    kinds = scratch.variables
    lower, of_lower = np.unique(integers.lower, return_inverse=True)
    upper, of_upper = np.unique(integers.upper, return_inverse=True)
    pairs, which = np.unique(of_lower * len(upper) + of_upper, return_inverse=True)
    for low, high in zip(lower[pairs // len(upper)].tolist(), upper[pairs % len(upper)].tolist(), strict=True):
        kinds.add().domain.extend((low, high))
    proto.variables.extend([kinds[at] for at in which.tolist()])
    rows = integers.rows
    start, index, value = rows.start.tolist(), rows.index.tolist(), rows.value.tolist()
    constraints = proto.constraints
    for at, (low, high) in enumerate(zip(rows.lower.tolist(), rows.upper.tolist(), strict=True)):
        linear = constraints.add().linear
        linear.vars.extend(index[start[at] : start[at + 1]])
        linear.coeffs.extend(value[start[at] : start[at + 1]])
        linear.domain.extend((low, high))
    priced = np.flatnonzero(integers.cost)
    proto.objective.vars.extend(priced.tolist())
    proto.objective.coeffs.extend(integers.cost[priced].tolist())
    proto.objective.offset = integers.cost_offset
    return model


def _completed(mip: Mip, x: FloatArray, free: BoolArray, time_limit_s: float) -> FloatArray | None:
    """``x`` with its free columns optimised while the others are fixed; None if that program has no solution.

    A search cut short leaves continuous columns higher than they need to be, and a grid leaves them next to the point.
    """
    if not free.any():
        return x
    scaled = scale(mip)
    program, at = scaled.mip, scaled.to_scaled(x)
    matrix = csr_array((program.value, program.index, program.row_start), shape=program.shape).tocsc()
    part = matrix[:, free].tocsr()
    rows = np.flatnonzero(np.diff(part.indptr))
    rest = matrix @ np.where(free, 0.0, at)
    lower, upper = (program.row_lower - rest)[rows], (program.row_upper - rest)[rows]
    answer = milp(
        program.cost[free],
        bounds=Bounds(program.col_lower[free], program.col_upper[free]),
        constraints=LinearConstraint(part[rows], lower, upper),
        options={"time_limit": time_limit_s},
    )
    if answer.x is not None:
        at[free] = answer.x
        return scaled.to_original(at)
    sums = part[rows] @ at[free]
    missed = np.maximum(lower - sums, sums - upper)
    return x if missed.max(initial=0.0) <= FEASIBILITY_TOLERANCE else None
