"""COPT, where the user has it."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mast_opt.core.errors import BackendError, BackendUnavailable, UnsupportedOption
from mast_opt.core.solve_result import Limit, SolveParams, Status
from mast_opt.problems.backends.base import checked_options, converted, load, scaled_start, too_large
from mast_opt.problems.backends.progress import Progress, watching
from mast_opt.problems.backends.supervise import Outcome, Run, Supervised
from mast_opt.problems.mip import Mip

GOVERNED = {
    **dict.fromkeys(("TimeLimit", "SolTimeLimit"), "time_limit_s"),
    **dict.fromkeys(("RelGap", "AbsGap"), "gap"),
    "Threads": "threads",
}
NODE_LIMIT = "NodeLimit"

_REDIRECTING = threading.Lock()


class Copt(Supervised):
    """COPT; without a licence it takes 2,000 rows and 2,000 columns, and LPs of 10,000."""

    name = "copt"
    package = "mast-opt[copt]"

    def version(self) -> str:
        """The library's version. Raises BackendUnavailable without the library."""
        coptpy = load("coptpy", self)
        return ".".join(str(getattr(coptpy.COPT, f"VERSION_{part}")) for part in ("MAJOR", "MINOR", "TECHNICAL"))

    def _environment(self, coptpy: Any) -> Any:
        """Licensed environment of COPT. Raises BackendUnavailable."""
        settings = coptpy.EnvrConfig()
        settings.set("nobanner", "1")
        try:
            with _stdout_to_stderr():
                return coptpy.Envr(settings)
        except coptpy.CoptError as error:
            raise BackendUnavailable(f"copt has no licence that can be used here: {error}") from error

    def _minimise(self, mip: Mip, params: SolveParams, progress: Progress) -> Outcome:
        """Minimise a program with COPT."""
        coptpy = load("coptpy", self)
        if params.seed:
            raise UnsupportedOption(f"copt has no seed; seed = {params.seed} cannot be honoured, leave it at 0")
        environment = self._environment(coptpy)
        try:
            return _Run(coptpy, environment.createModel(), mip, params, progress).outcome()
        except coptpy.CoptError as error:
            if "licen" in str(error).lower() or "size" in str(error).lower():
                raise too_large(self.name, mip, f"its licence does not cover that ({error})") from error
            raise BackendError(f"COPT failed: {error}") from error
        finally:
            environment.close()


@contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Send standard output to stderr: without a licence COPT writes to it whatever its options, and ours must stay
    clean."""
    with _REDIRECTING:
        sys.stdout.flush()
        saved = os.dup(1)
        try:
            os.dup2(2, 1)
            yield
        finally:
            os.dup2(saved, 1)
            os.close(saved)


class _Run(Run):
    """One solve: the parameters, the hand-over, the callback, the answer."""

    def __init__(self, coptpy: Any, model: Any, mip: Mip, params: SolveParams, progress: Progress) -> None:
        super().__init__(mip, params, progress, coptpy.COPT.INFINITY)
        self._coptpy = coptpy
        self._copt = coptpy.COPT
        self._model = model

    def outcome(self) -> Outcome:
        """Run COPT, and return its outcome."""
        model, copt, integral = self._model, self._copt, bool(self._mip.integral.any())
        self._configure()
        self._load()
        if integral:
            model.setCallback(self._listener(), copt.CBCONTEXT_INCUMBENT | copt.CBCONTEXT_MIPNODE)
        remaining = self._progress.remaining_s(self._params.time_limit_s)
        if remaining is not None:
            model.setParam("TimeLimit", remaining)
        with watching(self._relay, model.interrupt):
            model.solve()
        self._relay.reraise()
        words = next((name for name in STATUSES if getattr(copt, name) == model.status), str(model.status))
        proven = {
            copt.INFEASIBLE: Status.INFEASIBLE,
            copt.UNBOUNDED: Status.UNBOUNDED,
            copt.INF_OR_UNB: Status.INFEASIBLE_OR_UNBOUNDED,
        }
        if model.status in proven:
            return Outcome(proven[model.status], message=words)
        optimal = model.status == copt.OPTIMAL
        limits = {copt.TIMEOUT: Limit.TIME, copt.INTERRUPTED: self._relay.limit}
        limits |= {copt.NODELIMIT: Limit.ITERATIONS, copt.ITERLIMIT: Limit.ITERATIONS}
        limit = None if optimal else limits.get(model.status, Limit.OTHER)
        bound = self._known(model.BestBnd) if integral else None
        if optimal and not integral:
            bound = self._known(model.LpObjVal)
        if not (model.HasMipSol if integral else optimal):
            return Outcome(Status.NO_SOLUTION, None, bound, limit or Limit.OTHER, words)
        x = self._scaled.to_original(np.array(model.getInfo("Value", model.getVars()), np.float64))
        return Outcome(Status.OPTIMAL if optimal else Status.FEASIBLE, x, bound, limit, words)

    def _configure(self) -> None:
        """Set the parameters of the solve in COPT."""
        self._model.setParam("Logging", 0)
        for name, value in checked_options("COPT", self._params, GOVERNED, NODE_LIMIT):
            try:
                self._model.setParam(name, converted(value, self._model.getParam(name)))
            except (self._coptpy.CoptError, AttributeError, TypeError, ValueError) as error:
                raise UnsupportedOption(f"COPT does not accept parameter {name} = {value!r}: {error}") from error
        # COPT measures the gap by the larger of objective and bound
        self._model.setParam("RelGap", self._params.gap / (1 + self._params.gap))
        self._model.setParam("AbsGap", 0.0)
        if self._params.threads is not None:
            self._model.setParam("Threads", self._params.threads)

    def _load(self) -> None:
        """Load the program into COPT."""
        mip, copt, model = self._scaled.mip, self._copt, self._model
        matrix = csr_array((mip.value, mip.index, mip.row_start), shape=mip.shape).tocsc()
        kind = np.where(mip.integral, copt.INTEGER, copt.CONTINUOUS)
        infinity = copt.INFINITY
        limits = (mip.row_lower, mip.row_upper, mip.col_lower, mip.col_upper)
        model.loadMatrix(mip.cost, matrix, *(np.clip(limit, -infinity, infinity) for limit in limits), kind)
        model.setObjConst(mip.offset)
        model.setObjSense(copt.MINIMIZE)
        if self._params.start is not None and mip.integral.any():
            model.setMipStart(model.getVars(), scaled_start(self._mip, self._scaled, self._params.start))
            model.loadMipStart()

    def _listener(self) -> Any:
        """COPT callback that reports progress and interrupts the solve."""
        run, info = self, self._copt.CbInfo

        class Listener(self._coptpy.CallbackBase):  # type: ignore[name-defined, misc]
            def callback(self) -> None:
                """Report incumbent and bound to the solve."""

                def report() -> None:
                    best = self.getInfo(info.BestObj) if self.getInfo(info.HasIncumbent) else None
                    bound = self.getInfo(info.BestBnd)
                    run._progress.update(None if best is None else run._known(best), run._known(bound))

                run._relay.call(report)
                if run._relay.stop:
                    self.interrupt()

        return Listener()


STATUSES = [
    *("OPTIMAL", "INFEASIBLE", "UNBOUNDED", "INF_OR_UNB", "NUMERICAL"),
    *("NODELIMIT", "IMPRECISE", "TIMEOUT", "UNFINISHED", "INTERRUPTED"),
]
