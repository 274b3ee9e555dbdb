"""Gurobi, where the user has it."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mast_opt.core.errors import BackendError, BackendUnavailable, UnsupportedOption
from mast_opt.core.solve_result import Limit, SolveParams, Status
from mast_opt.problems.backends.base import checked_options, converted, load, one_sided, scaled_start, too_large
from mast_opt.problems.backends.progress import Progress, watching
from mast_opt.problems.backends.supervise import Outcome, Run, Supervised
from mast_opt.problems.mip import Mip

GOVERNED = {
    "TimeLimit": "time_limit_s",
    "MIPGap": "gap",
    "MIPGapAbs": "gap",
    "Seed": "seed",
    "Threads": "threads",
}
NODE_LIMIT = "NodeLimit"


class Gurobi(Supervised):
    """Gurobi; its free package solves up to 2,000 rows and 2,000 columns."""

    name = "gurobi"
    package = "mast-opt[gurobi]"

    def version(self) -> str:
        """The library's version. Raises BackendUnavailable without the library or a licence."""
        gurobi = load("gurobipy", self)
        with self._environment(gurobi):
            return ".".join(map(str, gurobi.gurobi.version()))

    def _environment(self, gurobi: Any) -> Any:
        """Licensed environment of Gurobi. Raises BackendUnavailable."""
        environment = gurobi.Env(empty=True)
        environment.setParam("OutputFlag", 0)
        try:
            environment.start()
        except gurobi.GurobiError as error:
            raise BackendUnavailable(f"gurobi has no licence that can be used here: {error}") from error
        return environment

    def _minimise(self, mip: Mip, params: SolveParams, progress: Progress) -> Outcome:
        """Minimise a program with Gurobi."""
        gurobi = load("gurobipy", self)
        with self._environment(gurobi) as environment, gurobi.Model(env=environment) as model:
            run = _Run(gurobi, model, mip, params, progress)
            try:
                return run.outcome()
            except gurobi.GurobiError as error:
                if error.errno == gurobi.GRB.Error.SIZE_LIMIT_EXCEEDED:
                    raise too_large(self.name, mip, "the free licence takes 2,000 rows and 2,000 columns") from error
                raise BackendError(f"Gurobi failed: {error}") from error


class _Run(Run):
    """One solve: the parameters, the hand-over, the callback, the answer."""

    def __init__(self, gurobi: Any, model: Any, mip: Mip, params: SolveParams, progress: Progress) -> None:
        super().__init__(mip, params, progress, gurobi.GRB.INFINITY)
        self._grb = gurobi.GRB
        self._error = gurobi.GurobiError
        self._model = model
        self._x: Any = None

    def outcome(self) -> Outcome:
        """Run Gurobi, and return its outcome."""
        model, grb = self._model, self._grb
        self._configure()
        self._load()
        remaining = self._progress.remaining_s(self._params.time_limit_s)
        if remaining is not None:
            model.setParam("TimeLimit", remaining)
        with watching(self._relay, model.terminate):
            model.optimize(self._on_event)
        self._relay.reraise()
        proven = {
            grb.INFEASIBLE: Status.INFEASIBLE,
            grb.UNBOUNDED: Status.UNBOUNDED,
            grb.INF_OR_UNBD: Status.INFEASIBLE_OR_UNBOUNDED,
        }
        words = next((name for name in STATUSES if getattr(grb, name) == model.Status), str(model.Status))
        if model.Status in proven:
            return Outcome(proven[model.Status], message=words)
        limits = {grb.TIME_LIMIT: Limit.TIME, grb.INTERRUPTED: self._relay.limit}
        limits |= dict.fromkeys((grb.ITERATION_LIMIT, grb.NODE_LIMIT, grb.WORK_LIMIT), Limit.ITERATIONS)
        limit = None if model.Status == grb.OPTIMAL else limits.get(model.Status, Limit.OTHER)
        bound = None
        if self._mip.integral.any():
            bound = self._known(model.ObjBound)
        elif model.Status == grb.OPTIMAL:
            bound = self._known(model.ObjVal)
        if model.SolCount == 0 or (model.Status != grb.OPTIMAL and not self._mip.integral.any()):
            return Outcome(Status.NO_SOLUTION, None, bound, limit or Limit.OTHER, words)
        status = Status.OPTIMAL if model.Status == grb.OPTIMAL else Status.FEASIBLE
        return Outcome(status, self._scaled.to_original(self._x.X), bound, limit, words)

    def _configure(self) -> None:
        """Set the parameters of the solve in Gurobi."""
        for name, value in checked_options("Gurobi", self._params, GOVERNED, NODE_LIMIT):
            try:
                self._model.setParam(name, converted(value, self._model.getParamInfo(name)[2]))
            except (self._error, TypeError, ValueError) as error:
                raise UnsupportedOption(f"Gurobi does not accept parameter {name} = {value!r}: {error}") from error
        self._model.setParam("MIPGap", self._params.gap)
        self._model.setParam("MIPGapAbs", 0.0)
        self._model.setParam("Seed", self._params.seed)
        if self._params.threads is not None:
            self._model.setParam("Threads", self._params.threads)

    def _load(self) -> None:
        """Load the program into Gurobi."""
        mip, model = self._scaled.mip, self._model
        kind = np.where(mip.integral, self._grb.INTEGER, self._grb.CONTINUOUS)
        self._x = model.addMVar(len(mip.cost), lb=mip.col_lower, ub=mip.col_upper, obj=mip.cost, vtype=kind)
        model.ObjCon = mip.offset
        matrix = csr_array((mip.value, mip.index, mip.row_start), shape=mip.shape)
        at, sense, limit = one_sided(mip, "<", ">", "=")
        if len(at):
            model.addMConstr(matrix[at], self._x, sense, limit)
        if self._params.start is not None and mip.integral.any():
            self._x.Start = scaled_start(self._mip, self._scaled, self._params.start)

    def _on_event(self, model: Any, where: int) -> None:
        """Report progress in Gurobi's callback, and stop it when it should end."""
        callback = self._grb.Callback
        if where == callback.MIP:
            best, bound = model.cbGet(callback.MIP_OBJBST), model.cbGet(callback.MIP_OBJBND)
            self._relay.call(lambda: self._progress.update(self._known(best), self._known(bound)))
        elif where == callback.MIPSOL:
            found = model.cbGet(callback.MIPSOL_OBJBST)
            self._relay.call(lambda: self._progress.update(incumbent=self._known(found)))
        if self._relay.stop:
            model.terminate()


STATUSES = [
    *("OPTIMAL", "INFEASIBLE", "INF_OR_UNBD", "UNBOUNDED", "CUTOFF", "ITERATION_LIMIT", "NODE_LIMIT", "TIME_LIMIT"),
    *("SOLUTION_LIMIT", "INTERRUPTED", "NUMERIC", "SUBOPTIMAL", "USER_OBJ_LIMIT", "WORK_LIMIT", "MEM_LIMIT"),
]
