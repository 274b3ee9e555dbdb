"""CPLEX, where the user has it."""

from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from mast_opt.core.errors import BackendError, UnsupportedOption
from mast_opt.core.solve_result import Limit, SolveParams, Status
from mast_opt.problems.backends.base import checked_options, converted, load, one_sided, scaled_start, too_large
from mast_opt.problems.backends.progress import Progress, watching
from mast_opt.problems.backends.supervise import Outcome, Run, Supervised
from mast_opt.problems.mip import Mip

GOVERNED = {
    "timelimit": "time_limit_s",
    **dict.fromkeys(("mip.tolerances.mipgap", "mip.tolerances.absmipgap"), "gap"),
    "randomseed": "seed",
    "threads": "threads",
}
NODE_LIMIT = "mip.limits.nodes"
SIZE_LIMIT = 1016
"""CPLEX's error number for a program over the size of the community edition."""


class Cplex(Supervised):
    """CPLEX; its community edition takes 1,000 rows and 1,000 columns."""

    name = "cplex"
    package = "mast-opt[cplex]"

    def version(self) -> str:
        """The library's version. Raises BackendUnavailable without the library."""
        with load("cplex", self).Cplex() as solver:
            return str(solver.get_version())

    def _minimise(self, mip: Mip, params: SolveParams, progress: Progress) -> Outcome:
        """Minimise a program with CPLEX."""
        cplex = load("cplex", self)
        with cplex.Cplex() as solver:
            try:
                return _Run(cplex, solver, mip, params, progress).outcome()
            except cplex.exceptions.CplexSolverError as error:
                if error.args[2] == SIZE_LIMIT:
                    words = "the community edition takes 1,000 rows and 1,000 columns"
                    raise too_large(self.name, mip, words) from error
                raise BackendError(f"CPLEX failed: {error}") from error


class _Run(Run):
    """One solve: the parameters, the hand-over, the callback, the answer."""

    def __init__(self, cplex: Any, solver: Any, mip: Mip, params: SolveParams, progress: Progress) -> None:
        super().__init__(mip, params, progress, cplex.infinity)
        self._cplex = cplex
        self._solver = solver

    def outcome(self) -> Outcome:
        """Run CPLEX, and return its outcome."""
        solver, integral = self._solver, bool(self._mip.integral.any())
        for silence in ("log", "results", "warning", "error"):
            getattr(solver, f"set_{silence}_stream")(None)
        self._configure()
        self._load()
        if integral:
            contexts = self._cplex.callbacks.Context.id
            solver.set_callback(self, contexts.global_progress | contexts.candidate)
        aborter = solver.use_aborter(self._cplex.Aborter())
        remaining = self._progress.remaining_s(self._params.time_limit_s)
        if remaining is not None:
            solver.parameters.timelimit.set(remaining)
        with watching(self._relay, aborter.abort):
            solver.solve()
        self._relay.reraise()
        return self._answer(integral)

    def _answer(self, integral: bool) -> Outcome:
        """Outcome that CPLEX's status states."""
        solution = self._solver.solution
        statuses, words, code = solution.status, solution.get_status_string(), solution.get_status()
        proven = {
            Status.INFEASIBLE: (statuses.infeasible, statuses.MIP_infeasible),
            Status.UNBOUNDED: (statuses.unbounded, statuses.MIP_unbounded),
            Status.INFEASIBLE_OR_UNBOUNDED: (statuses.infeasible_or_unbounded, statuses.MIP_infeasible_or_unbounded),
        }
        for status, codes in proven.items():
            if code in codes:
                return Outcome(status, message=words)
        optimal = code in (statuses.optimal, statuses.MIP_optimal, statuses.optimal_tolerance)
        bound = self._known(solution.MIP.get_best_objective()) if integral else None
        if optimal and not integral:
            bound = self._known(solution.get_objective_value())
        limit = None if optimal else self._limit(words)
        if not (solution.is_primal_feasible() if integral else optimal):
            return Outcome(Status.NO_SOLUTION, None, bound, limit or Limit.OTHER, words)
        x = self._scaled.to_original(np.array(solution.get_values()))
        return Outcome(Status.OPTIMAL if optimal else Status.FEASIBLE, x, bound, limit, words)

    def _limit(self, words: str) -> Limit:
        """Limit that ended the solve, by CPLEX's words."""
        if self._relay.stop:
            return self._relay.limit
        if "time limit" in words:
            return Limit.TIME
        return Limit.ITERATIONS if "node limit" in words or "iteration limit" in words else Limit.OTHER

    def _configure(self) -> None:
        """Set the parameters of the solve in CPLEX."""
        parameters, params = self._solver.parameters, self._params
        for name, value in checked_options("CPLEX", params, GOVERNED, NODE_LIMIT):
            try:
                parameter = parameters
                for part in name.split("."):
                    parameter = getattr(parameter, part)
                parameter.set(converted(value, parameter.get()))
            except (AttributeError, ValueError, TypeError, self._cplex.exceptions.CplexError) as error:
                raise UnsupportedOption(f"CPLEX does not accept parameter {name} = {value!r}: {error}") from error
        parameters.mip.tolerances.mipgap.set(min(params.gap, 1.0))
        parameters.mip.tolerances.absmipgap.set(0.0)
        parameters.randomseed.set(params.seed)
        if params.threads is not None:
            parameters.threads.set(params.threads)

    def _load(self) -> None:
        """Load the program into CPLEX."""
        mip, solver, infinity = self._scaled.mip, self._solver, self._cplex.infinity
        at, sense, limit = one_sided(mip, "L", "G", "E")
        matrix = csr_array((mip.value, mip.index, mip.row_start), shape=mip.shape)[at].tocsc()
        if matrix.nnz == 0 and len(at):
            matrix = csc_array((np.zeros(1), (np.zeros(1, int), np.zeros(1, int))), shape=matrix.shape)
        solver.copylp(
            numcols=len(mip.cost),
            numrows=len(at),
            objsense=solver.objective.sense.minimize,
            obj=mip.cost.tolist(),
            rhs=limit.tolist(),
            senses="".join(sense),
            matbeg=matrix.indptr[:-1].tolist(),
            matcnt=np.diff(matrix.indptr).tolist(),
            matind=matrix.indices.tolist(),
            matval=matrix.data.tolist(),
            lb=np.maximum(mip.col_lower, -infinity).tolist(),
            ub=np.minimum(mip.col_upper, infinity).tolist(),
        )
        solver.objective.set_offset(mip.offset)
        integers = np.flatnonzero(mip.integral).tolist()
        if integers:
            solver.variables.set_types([(column, "I") for column in integers])
        if self._params.start is not None and integers:
            start = scaled_start(self._mip, self._scaled, self._params.start).tolist()
            pair = self._cplex.SparsePair(list(range(len(start))), start)
            solver.MIP_starts.add(pair, solver.MIP_starts.effort_level.repair)

    def invoke(self, context: Any) -> None:
        """Report progress in CPLEX's generic callback."""

        def report() -> None:
            bound = context.get_double_info(context.info.best_bound)
            feasible = context.get_int_info(context.info.feasible)
            found = context.get_double_info(context.info.best_solution) if feasible else None
            self._progress.update(None if found is None else self._known(found), self._known(bound))

        self._relay.call(report)
        if self._relay.stop:
            context.abort()
