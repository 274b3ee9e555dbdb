"""HiGHS, the default solver, through highspy."""

import math
import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import BackendError, BackendUnavailable, SizeLimitExceeded, UnsupportedOption
from mast_opt.core.solve_result import AT_LOWER, AT_UPPER, BASIC, Basis, Limit, SolveParams, Status
from mast_opt.problems.backends.base import checked_options, load, scaled_start
from mast_opt.problems.backends.progress import Progress
from mast_opt.problems.backends.supervise import Outcome, Run, Supervised
from mast_opt.problems.mip import Mip, Scaled

GOVERNED = {
    "time_limit": "time_limit_s",
    "mip_rel_gap": "gap",
    "mip_abs_gap": "gap",
    "random_seed": "seed",
    "threads": "threads",
    "output_flag": "on_event",
}
NODE_LIMIT = "mip_max_nodes"
TOLERANCE = 1e-9
"""Tolerance of rows and integers in a MIP; options may set another. At its default of 1e-6, HiGHS 1.16 rounds
continuous columns down by all of it, and at 1e-7 its presolve calls 2e9 optimal where 1e6 is possible."""
MANY_COLUMNS = 10_000
"""Columns above which interior point solves the first relaxation of a MIP: on 34,000 columns (``cloud-regions``) it
takes 9 s where the simplex method takes 15."""
WRONG_VERSIONS = {
    "1.13.0": "presolve loses the optimum of small programs",
    "1.13.1": "presolve loses the optimum of small programs",
    "1.14.0": "presolve forgets the integer columns of a row, ERGO-Code/HiGHS#2957",
}
"""Versions that are refused; see decision 8."""


class Highs(Supervised):
    """HiGHS: LPs by simplex or interior point, MIPs by branch and cut."""

    name = "highs"
    package = "highspy>=1.16,<1.17"
    takes_incumbents = True
    """Whether ``SolveParams.incumbents`` is honoured."""
    large_linear = (("solver", "ipm"),)
    """Options for linear programs of many columns: simplex takes several times as long where many rows hold at once."""
    small_linear = (("presolve", "off"), ("simplex_dual_edge_weight_strategy", 1))
    """Options for those of few columns, and for those that begin at a basis: presolve and exact steepest edge take
    longer than they save."""

    def version(self) -> str:
        """The library's version. Raises BackendUnavailable without the library."""
        return _version(self._library())

    def _library(self) -> Any:
        """Imported highspy. Raises BackendUnavailable for versions with wrong answers."""
        highspy = load("highspy", self)
        version = _version(highspy)
        if version in WRONG_VERSIONS:
            raise BackendUnavailable(
                f"HiGHS {version} calls wrong answers optimal ({WRONG_VERSIONS[version]}); "
                f"install another version with: pip install '{self.package}'"
            )
        return highspy

    def _minimise(self, mip: Mip, params: SolveParams, progress: Progress) -> Outcome:
        """Minimise a program with HiGHS."""
        highspy = self._library()
        if len(mip.value) > highspy.kHighsIInf:
            raise SizeLimitExceeded(
                f"HiGHS takes at most {highspy.kHighsIInf:,} entries and the program has {len(mip.value):,}; "
                "use a heuristic, or solve a smaller instance"
            )
        # HiGHS keeps one pool of threads for each calling thread and refuses to change its size.
        highspy.Highs.resetGlobalScheduler(True)
        try:
            return _Run(highspy, mip, params, progress).outcome()
        except _SolveError:
            # Its presolve sometimes ends with an x that it then finds infeasible; without presolve it does not.
            careful = replace(params, basis=None, options=(*params.options, ("presolve", "off")))
            return _Run(highspy, mip, careful, progress).outcome()
        finally:
            highspy.Highs.resetGlobalScheduler(True)


_EXPECTED = re.compile(r"WARNING: (User-supplied .* violations|Problem is badly|Problem has .*excessive|Improve scal)")
"""Words of HiGHS on a start that breaks rows, and may, and on numbers far above ``TOLERANCE``, which ``supervised``
judges."""


class _SolveError(BackendError):
    """HiGHS contradicted itself."""


class _Run(Run):
    """One solve: the options, the hand-over, the callbacks, the answer."""

    def __init__(self, highspy: Any, mip: Mip, params: SolveParams, progress: Progress) -> None:
        super().__init__(mip, params, progress)
        self._highspy = highspy
        self._complaints: list[str] = []
        self._solver = quiet(highspy)
        wanted = params.start if mip.integral.any() else None
        self._start = None if wanted is None else scaled_start(mip, self._scaled, wanted)
        self._listen()
        if self._start is not None or params.incumbents is not None:
            self._solver.cbMipUserSolution += partial(self._on_turn, mip, params.incumbents)
        self._configure()
        pass_program(highspy, self._solver, self._scaled, self._check)
        if params.basis is not None and not mip.integral.any():
            self._begin(params.basis)

    def outcome(self) -> Outcome:
        """Run HiGHS, and return its outcome."""
        remaining = self._progress.remaining_s(self._params.time_limit_s)
        if remaining is not None:
            self._set("time_limit", remaining)
        status = self._solver.run()
        self._relay.reraise()
        kind = self._solver.getModelStatus()
        words = "; ".join([self._solver.modelStatusToString(kind), *self._complaints])
        statuses = self._highspy.HighsModelStatus
        proven = {
            statuses.kInfeasible: Status.INFEASIBLE,
            statuses.kUnbounded: Status.UNBOUNDED,
            statuses.kUnboundedOrInfeasible: Status.INFEASIBLE_OR_UNBOUNDED,
        }
        if kind in proven:
            return Outcome(proven[kind], message=words)
        limits = {
            statuses.kOptimal: None,
            statuses.kTimeLimit: Limit.TIME,
            statuses.kInterrupt: self._relay.limit,
            statuses.kIterationLimit: Limit.ITERATIONS,
            statuses.kSolutionLimit: Limit.OTHER,
            statuses.kObjectiveBound: Limit.OTHER,
            statuses.kObjectiveTarget: Limit.OTHER,
            statuses.kMemoryLimit: Limit.OTHER,
            statuses.kUnknown: Limit.OTHER,
        }
        if kind == statuses.kSolveError:
            raise _SolveError(f"HiGHS failed: {words}")
        if status == self._highspy.HighsStatus.kError or kind not in limits:
            raise BackendError(f"HiGHS failed: {words}")
        return self._with_what_is_known(kind == statuses.kOptimal, limits[kind], words)

    def _with_what_is_known(self, optimal: bool, limit: Limit | None, words: str) -> Outcome:
        """Outcome of HiGHS with its bound, point, prices and basis, as far as they are known."""
        info = self._solver.getInfo()
        bound: float | None = None
        if self._scaled.mip.integral.any():
            bound = self._scaled.to_original_objective(info.mip_dual_bound)
        elif optimal:
            bound = self._scaled.to_original_objective(info.objective_function_value)
        if info.primal_solution_status != int(self._highspy.SolutionStatus.kSolutionStatusFeasible):
            return Outcome(Status.NO_SOLUTION, None, bound, limit or Limit.OTHER, words)
        solution = self._solver.getSolution()
        x = self._scaled.to_original(np.array(solution.col_value))
        price: FloatArray | None = None
        basis: Basis | None = None
        if optimal and not self._scaled.mip.integral.any():
            basis = self._basis(info, solution)
            if solution.dual_valid:
                price = self._scaled.to_original_price(np.array(solution.row_dual))
        return Outcome(Status.OPTIMAL if optimal else Status.FEASIBLE, x, bound, limit, words, price, basis)

    def _basis(self, info: Any, solution: Any) -> Basis | None:
        """The basis of the answer; scaling changes none. None where it is no vertex."""
        if info.basis_validity != int(self._highspy.BasisValidity.kBasisValidityValid):
            return None
        found, basic = self._solver.getBasis(), int(self._highspy.HighsBasisStatus.kBasic)
        mip = self._scaled.mip  # getBasicVariables would be quicker, and crashes after the interior-point method
        columns = _not_basic(np.array(solution.col_value), mip.col_lower, mip.col_upper)
        rows = _not_basic(np.array(solution.row_value), mip.row_lower, mip.row_upper)
        columns[np.array([int(status) for status in found.col_status], np.int64) == basic] = BASIC
        rows[np.array([int(status) for status in found.row_status], np.int64) == basic] = BASIC
        return Basis(columns, rows)

    def _begin(self, basis: Basis) -> None:
        """Begin at a basis, which HiGHS completes where it does not fit."""
        known = self._highspy.HighsBasisStatus
        named = np.empty(3, object)
        named[[AT_LOWER, BASIC, AT_UPPER]] = known.kNonbasic, known.kBasic, known.kUpper
        given = self._highspy.HighsBasis()
        given.col_status, given.row_status = named[basis.columns].tolist(), named[basis.rows].tolist()
        given.valid = given.alien = True
        self._check(self._solver.setBasis(given), "take the basis")

    def _configure(self) -> None:
        """Set the options of the solve in HiGHS."""
        params = self._params
        self._set("log_file", os.devnull)  # HiGHS up to 1.13 passes to a callback only what it also writes somewhere
        self._set("mip_rel_gap", params.gap)
        self._set("mip_abs_gap", 0.0)
        self._set("mip_feasibility_tolerance", TOLERANCE)
        self._set("large_matrix_value", math.inf)  # what HiGHS would refuse, ``supervised`` judges
        if len(self._scaled.mip.cost) >= MANY_COLUMNS:
            self._set("mip_lp_solver", "ipm")
        self._set("random_seed", params.seed)
        if params.threads is not None:
            self._set("threads", params.threads)
        for name, value in checked_options("HiGHS", params, GOVERNED, NODE_LIMIT, takes_incumbents=True):
            self._set(name, value)

    def _set(self, name: str, value: str | float | bool) -> None:
        """Set one option of HiGHS. Raises UsageError if it is refused."""
        before = len(self._complaints)
        if self._solver.setOptionValue(name, value) != self._highspy.HighsStatus.kOk:
            words = " ".join(self._complaints[before:]) or "see the list of options in the HiGHS documentation"
            raise UnsupportedOption(f"HiGHS does not accept option {name} = {value!r}: {words}")

    def _check(self, status: Any, what: str) -> None:
        """Warnings are kept for the message; errors are raised."""
        if status == self._highspy.HighsStatus.kError:
            raise BackendError(f"HiGHS could not {what}: {' '.join(self._complaints) or 'no reason given'}")

    def _listen(self) -> None:
        """Subscribe to HiGHS' callbacks."""
        solver = self._solver
        solver.cbLogging += self._on_log
        solver.cbMipImprovingSolution += self._on_solution
        solver.cbMipLogging += self._on_mip
        solver.cbMipInterrupt += self._on_mip
        solver.cbSimplexInterrupt += self._on_interrupt
        solver.cbIpmInterrupt += self._on_interrupt

    def _on_log(self, event: Any) -> None:
        """Keep warnings and errors, apart from those that are expected; ``supervised`` checks every answer."""
        if event.data_out.log_type in (self._highspy.HighsLogType.kWarning, self._highspy.HighsLogType.kError):
            words = " ".join(event.message.split())
            if not _EXPECTED.match(words):
                self._complaints.append(words)

    def _on_solution(self, event: Any) -> None:
        """Report HiGHS' new incumbent and bound."""
        objective = self._scaled.to_original_objective(event.data_out.objective_function_value)
        x = self._scaled.to_original(np.array(event.data_out.mip_solution))
        self._relay.call(lambda: self._progress.update(incumbent=objective, x=x))
        self._on_mip(event)

    def _on_turn(self, mip: Mip, incumbents: Callable[[], FloatArray | None] | None, event: Any) -> None:
        """Hand over the start, then what was found elsewhere; HiGHS checks both.

        A start that ``setSolution`` sets is carried into the presolved program without a check, and HiGHS 1.16 returns
        it in place of the better solution that it has become there.
        """

        def hand_over() -> None:
            given, self._start = self._start, None
            if given is None and incumbents is not None:
                found = incumbents()
                given = None if found is None else scaled_start(mip, self._scaled, found)
            if given is not None:
                event.data_in.setSolution(given)

        self._relay.call(hand_over)

    def _on_mip(self, event: Any) -> None:
        """Report HiGHS' bound, and stop it when it should end."""
        bound = event.data_out.mip_dual_bound
        if abs(bound) < self._highspy.kHighsInf:
            self._relay.call(lambda: self._progress.update(bound=self._scaled.to_original_objective(bound)))
        self._on_interrupt(event)

    def _on_interrupt(self, event: Any) -> None:
        """Stop HiGHS in its callback when it should end."""
        if self._relay.stop:
            event.interrupt()


def _version(highspy: Any) -> str:
    """Version of HiGHS."""
    return f"{highspy.HIGHS_VERSION_MAJOR}.{highspy.HIGHS_VERSION_MINOR}.{highspy.HIGHS_VERSION_PATCH}"


def quiet(highspy: Any) -> Any:
    """An object of HiGHS that never writes to stdout: HiGHS 1.16 prints two lines when the first one takes
    callbacks.
    """

    class Quiet(highspy.Highs):  # type: ignore[misc]
        def enableCallbacks(self) -> None:
            """Start the threads of callbacks without a message on the console."""
            self.setOptionValue("log_to_console", False)
            super().enableCallbacks()

    return Quiet()


def _not_basic(value: FloatArray, lower: FloatArray, upper: FloatArray) -> NDArray[np.int8]:
    """The limit in HiGHS' basis at which each column or row is that is not basic."""
    return np.where(upper - value < value - lower, AT_UPPER, AT_LOWER).astype(np.int8)


def pass_program(highspy: Any, solver: Any, scaled: Scaled, check: Any) -> None:
    """Hand the scaled program to a solver object; ``check`` takes HiGHS's status and what was tried."""
    mip = scaled.mip
    rows, columns = mip.shape
    status = solver.passModel(
        columns,
        rows,
        len(mip.value),
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMinimize),
        mip.offset,
        mip.cost,
        mip.col_lower,
        mip.col_upper,
        mip.row_lower,
        mip.row_upper,
        mip.row_start,
        mip.index,
        mip.value,
        mip.integral.astype(np.int32),
    )
    check(status, "take the program")
