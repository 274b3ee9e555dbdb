"""SCIP, through PySCIPOpt. It has no array interface, so programs reach it as a file that its C code reads."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import BackendError, UnsupportedOption
from mast_opt.core.solve_result import Limit, SolveParams, Status
from mast_opt.problems.backends.base import checked_options, converted, load, scaled_start
from mast_opt.problems.backends.progress import Progress, watching
from mast_opt.problems.backends.supervise import Outcome, Run, Supervised
from mast_opt.problems.mip import Mip
from mast_opt.problems.mip.export import write_mps

GOVERNED = {
    "limits/time": "time_limit_s",
    "limits/gap": "gap",
    "limits/absgap": "gap",
    "randomization/randomseedshift": "seed",
    "lp/threads": "threads",
}
NODE_LIMIT = "limits/nodes"
PROVEN = {
    "infeasible": Status.INFEASIBLE,
    "unbounded": Status.UNBOUNDED,
    "inforunbd": Status.INFEASIBLE_OR_UNBOUNDED,
}
LIMITS = {
    "timelimit": Limit.TIME,
    "nodelimit": Limit.ITERATIONS,
    "totalnodelimit": Limit.ITERATIONS,
    "stallnodelimit": Limit.ITERATIONS,
}


class Scip(Supervised):
    """SCIP: branch, cut and price on one thread."""

    name = "scip"
    package = "mast-opt[scip]"

    def version(self) -> str:
        """The version of SCIP. Raises BackendUnavailable without the library."""
        return str(load("pyscipopt", self).Model().version())

    def _minimise(self, mip: Mip, params: SolveParams, progress: Progress) -> Outcome:
        """Minimise a program with SCIP. Raises UnsupportedOption for several threads."""
        if params.threads not in (None, 1):
            raise UnsupportedOption(f"scip solves on one thread; threads = {params.threads} cannot be honoured")
        return _Run(load("pyscipopt", self), mip, params, progress).outcome()


class _Run(Run):
    """One solve: the hand-over, the parameters, the events, the answer."""

    def __init__(self, pyscipopt: Any, mip: Mip, params: SolveParams, progress: Progress) -> None:
        super().__init__(mip, params, progress)
        self._model = pyscipopt.Model()
        self._infinity = self._model.infinity()
        self._model.hideOutput()
        self._configure()
        with tempfile.TemporaryDirectory(prefix="mast-opt-") as folder:
            path = Path(folder) / "program.mps"
            write_mps(self._scaled.mip, path, readable=False)
            self._model.readProblem(str(path))
        self._columns = sorted(self._model.getVars(), key=lambda variable: int(variable.name[1:]))
        if params.start is not None:
            self._offer(mip, params.start)
        self._listen(pyscipopt)

    def outcome(self) -> Outcome:
        """Run SCIP, and return its outcome."""
        model = self._model
        remaining = self._progress.remaining_s(self._params.time_limit_s)
        if remaining is not None:
            model.setParam("limits/time", remaining)
        with watching(self._relay, self._interrupt):
            try:
                model.optimizeNogil()
            except Exception as error:  # PySCIPOpt has no class of its own for what SCIP cannot overcome
                raise BackendError(f"{error} (in SCIP's search)") from error
        self._relay.reraise()
        words = model.getStatus()
        if words in PROVEN:
            return Outcome(PROVEN[words], message=words)
        bound = self._known(model.getDualbound())
        limit = self._relay.limit if words == "userinterrupt" else LIMITS.get(words, Limit.OTHER)
        if model.getNSols() == 0:
            if words == "optimal":
                raise BackendError("SCIP says optimal but has no solution")
            return Outcome(Status.NO_SOLUTION, None, bound, limit, words)
        best = model.getBestSol()
        x = self._scaled.to_original(np.array([model.getSolVal(best, column) for column in self._columns]))
        if words in ("optimal", "gaplimit"):
            return Outcome(Status.OPTIMAL, x, bound, message=words)
        return Outcome(Status.FEASIBLE, x, bound, limit, words)

    def _configure(self) -> None:
        """Set the parameters of the solve in SCIP."""
        for name, value in checked_options("SCIP", self._params, GOVERNED, NODE_LIMIT):
            try:
                self._model.setParam(name, converted(value, self._model.getParam(name)))
            except (KeyError, ValueError, TypeError) as error:
                raise UnsupportedOption(f"SCIP does not accept parameter {name} = {value!r}: {error}") from error
        self._model.setParam("misc/catchctrlc", False)
        self._model.setParam("limits/gap", self._params.gap)
        self._model.setParam("limits/absgap", 0.0)
        self._model.setParam("randomization/randomseedshift", self._params.seed)

    def _offer(self, mip: Mip, start: FloatArray) -> None:
        """Offer a start to SCIP."""
        values = scaled_start(mip, self._scaled, start)
        solution = self._model.createSol()
        for column in np.flatnonzero(values).tolist():
            self._model.setSolVal(solution, self._columns[column], values[column])
        self._model.addSol(solution)

    def _interrupt(self) -> None:
        """Interrupt SCIP; the watcher tries again where it refuses."""
        try:
            self._model.interruptSolve()
        except Exception:  # between two stages SCIP refuses; the watcher tries again
            return

    def _report(self) -> None:
        """Report SCIP's incumbent and bound."""
        incumbent = self._known(self._model.getPrimalbound()) if self._model.getNSols() else None
        self._progress.update(incumbent, self._known(self._model.getDualbound()))

    def _listen(self, pyscipopt: Any) -> None:
        """Subscribe to SCIP's events of new incumbents and bounds."""
        kinds = pyscipopt.SCIP_EVENTTYPE
        run = self

        class Listener(pyscipopt.Eventhdlr):  # type: ignore[misc]
            def eventinit(self) -> None:
                """Subscribe to new incumbents and bounds."""
                self.model.catchEvent(kinds.BESTSOLFOUND, self)
                self.model.catchEvent(kinds.DUALBOUNDIMPROVED, self)

            def eventexec(self, event: Any) -> None:
                """Report an event to the solve, and interrupt it if it should stop."""
                run._relay.call(run._report)
                if run._relay.stop:
                    run._interrupt()

        self._model.includeEventhdlr(Listener(), "progress", "reports incumbent and bound")
