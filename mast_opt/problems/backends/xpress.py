"""FICO Xpress, where the user has it."""

import warnings
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mast_opt.core.errors import BackendError, BackendUnavailable, UnsupportedOption
from mast_opt.core.solve_result import Limit, SolveParams, Status
from mast_opt.problems.backends.base import checked_options, converted, load, scaled_start, too_large
from mast_opt.problems.backends.progress import Progress
from mast_opt.problems.backends.supervise import Outcome, Run, Supervised
from mast_opt.problems.mip import Mip

GOVERNED = {
    **dict.fromkeys(("timelimit", "maxtime"), "time_limit_s"),
    **dict.fromkeys(("miprelstop", "mipabsstop"), "gap"),
    "randomseed": "seed",
    "threads": "threads",
}
NODE_LIMIT = "maxnode"


class Xpress(Supervised):
    """FICO Xpress; its community licence takes 5,000 rows and columns together."""

    name = "xpress"
    package = "mast-opt[xpress]"

    def version(self) -> str:
        """The library's version. Raises BackendUnavailable without the library."""
        xpress = self._library()
        return str(xpress.__version__)

    def _library(self) -> Any:
        """Imported Xpress with its licence. Raises BackendUnavailable."""
        xpress = load("xpress", self)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that the community licence is in use, which the size error says
                xpress.init()
        except (xpress.InterfaceError, xpress.SolverError, RuntimeError) as error:
            raise BackendUnavailable(f"xpress has no licence that can be used here: {error}") from error
        return xpress

    def _minimise(self, mip: Mip, params: SolveParams, progress: Progress) -> Outcome:
        """Minimise a program with Xpress."""
        xpress = self._library()
        try:
            return _Run(xpress, mip, params, progress).outcome()
        except (xpress.InterfaceError, xpress.ModelError, xpress.SolverError) as error:
            if any(sign in str(error).lower() for sign in ("?120", "?899", "licen")):
                raise too_large(self.name, mip, f"its licence does not cover that ({error})") from error
            raise BackendError(f"Xpress failed: {error}") from error


class _Run(Run):
    """One solve: the hand-over, the controls, the callbacks, the answer."""

    def __init__(self, xpress: Any, mip: Mip, params: SolveParams, progress: Progress) -> None:
        super().__init__(mip, params, progress, xpress.infinity)
        self._xpress = xpress
        self._problem = xpress.problem()
        self._problem.setOutputEnabled(False)
        self._configure()
        self._load()
        self._problem.addMiplogCallback(self._on_event, None, 0)
        self._problem.addIntsolCallback(self._on_event, None, 0)
        self._problem.addCheckTimeCallback(self._on_event, None, 0)

    def outcome(self) -> Outcome:
        """Run Xpress, and return its outcome."""
        xpress, problem = self._xpress, self._problem
        remaining = self._progress.remaining_s(self._params.time_limit_s)
        if remaining is not None:
            problem.controls.timelimit = max(remaining, 1e-3)
        solved, solution = problem.optimize("")
        self._relay.reraise()
        words = f"{solved.name} {solution.name}"
        attributes, integral = problem.attributes, bool(self._mip.integral.any())
        if solution == xpress.SolStatus.INFEASIBLE:
            return Outcome(Status.INFEASIBLE, message=words)
        if solution == xpress.SolStatus.UNBOUNDED:
            return Outcome(Status.UNBOUNDED, message=words)
        if solved == xpress.SolveStatus.FAILED:
            raise BackendError(f"Xpress failed: {words}")
        optimal = solution == xpress.SolStatus.OPTIMAL
        bound = self._bound(attributes) if integral else None
        if optimal and not integral:
            bound = self._known(attributes.lpobjval)
        if not optimal and not (integral and solution == xpress.SolStatus.FEASIBLE):
            return Outcome(Status.NO_SOLUTION, None, bound, self._limit(), words)
        x = self._scaled.to_original(np.array(problem.getSolution()))
        return Outcome(
            Status.OPTIMAL if optimal else Status.FEASIBLE, x, bound, None if optimal else self._limit(), words
        )

    def _limit(self) -> Limit:
        """Limit that ended the solve in Xpress."""
        if self._relay.stop:
            return self._relay.limit
        stops = self._xpress.StopType
        kinds = {stops.TIMELIMIT: Limit.TIME, stops.NODELIMIT: Limit.ITERATIONS, stops.ITERLIMIT: Limit.ITERATIONS}
        return kinds.get(self._problem.attributes.stopstatus, Limit.OTHER)

    def _configure(self) -> None:
        """Set the controls of the solve in Xpress."""
        controls = self._problem.controls
        for name, value in checked_options("Xpress", self._params, GOVERNED, NODE_LIMIT):
            try:
                setattr(controls, name, converted(value, getattr(controls, name)))
            except (self._xpress.InterfaceError, self._xpress.SolverError, AttributeError, ValueError) as error:
                raise UnsupportedOption(f"Xpress does not accept control {name} = {value!r}: {error}") from error
        # Xpress measures the gap by the larger of objective and bound
        controls.miprelstop = self._params.gap / (1 + self._params.gap)
        controls.mipabsstop = 0.0
        controls.mipaddcutoff = 0.0
        controls.randomseed = self._params.seed + 1
        if self._params.threads is not None:
            controls.threads = self._params.threads

    def _load(self) -> None:
        """Load the program into Xpress."""
        mip = self._scaled.mip
        lower, upper = np.isfinite(mip.row_lower), np.isfinite(mip.row_upper)
        kind = np.where(lower & upper, "R", np.where(upper, "L", np.where(lower, "G", "N")))
        kind = np.where(lower & (mip.row_lower == mip.row_upper), "E", kind)
        limit = np.where(upper, mip.row_upper, np.where(lower, mip.row_lower, 0.0))
        span = np.where(lower & upper, limit - np.where(lower, mip.row_lower, 0.0), 0.0)
        matrix = csr_array((mip.value, mip.index, mip.row_start), shape=mip.shape).tocsc()
        integers = np.flatnonzero(mip.integral)
        infinity = self._xpress.infinity
        self._problem.loadMIP(
            "",
            kind,
            limit,
            span,
            mip.cost,
            matrix.indptr,
            None,
            matrix.indices,
            matrix.data,
            np.maximum(mip.col_lower, -infinity),
            np.minimum(mip.col_upper, infinity),
            np.full(len(integers), "I"),
            integers,
        )
        if mip.offset:
            self._problem.chgObj([-1], [-mip.offset])
        if self._params.start is not None and mip.integral.any():
            self._problem.addMipSol(scaled_start(self._mip, self._scaled, self._params.start))

    def _bound(self, attributes: Any) -> float | None:
        """Xpress's bound; it is 0, not unknown, before the first relaxation is begun."""
        begun = attributes.lpstatus != self._xpress.LPStatus.UNSTARTED
        return self._known(attributes.bestbound) if begun else None

    def _on_event(self, problem: Any, _: Any) -> None:
        """Report Xpress' progress in its callback, and stop it when it should end."""

        def report() -> None:
            attributes = problem.attributes
            incumbent = self._known(attributes.mipbestobjval) if attributes.mipsols else None
            self._progress.update(incumbent, self._bound(attributes))

        if self._mip.integral.any():
            self._relay.call(report)
        if self._relay.stop:
            problem.interrupt()
