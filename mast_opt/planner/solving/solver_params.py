"""Parameters of a solver as ``solve`` is given them, and the MIP backends that solve its sub-problems."""

from collections.abc import Mapping
from typing import Any

from mast_opt.core.arguments import refuse
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import SolveParams, SolveResult
from mast_opt.core.wording import did_you_mean
from mast_opt.planner.solving.auto_strategy import AUTO, AutoParams
from mast_opt.problems import backends
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.mip import Mip
from mast_opt.problems.search.interface import MipSolver
from mast_opt.problems.search.params import Params
from mast_opt.problems.search.sub_mip import SubMipParams


def params_class(kind: Kind[Any, Any], solver: str) -> type[Params]:
    """The class of the parameters of a heuristic, or of the method by which backends solve a kind.

    Raises:
        UsageError: there are none; says which solvers of the kind have some.
    """
    cls = class_of(kind, solver)
    if cls is not None:
        return cls
    able = ", ".join(kind.solvers.params)
    others = f"; of the solvers for {kind.name} these have: {able}" if able else ""
    if solver in backends.names():
        raise UsageError(f"{solver} is a MIP backend: it takes options by its own names and has no parameters{others}")
    raise UsageError(f"{solver} has no parameters{others}")


def solver_params(kind: Kind[Any, Any], solver: str, given: Params | Mapping[str, object] | None) -> Params | None:
    """Parameters with which a heuristic or a kind's own method is run; None where it has none.

    Raises:
        UsageError: parameters of another solver, a name that there is not, or a value that does not fit.
    """
    if given is None or (isinstance(given, Mapping) and not given):
        cls = class_of(kind, solver)
        return None if cls is None else cls()
    if not isinstance(given, (Params, Mapping)):
        raise refuse("params", given, 'the parameters of a solver, or a mapping as in {"sub_mip.gap": 0.01}')
    cls = params_class(kind, solver)
    if isinstance(given, Mapping):
        return cls.of(given)
    if not isinstance(given, cls):
        raise UsageError(f"params is a {type(given).__name__}; {solver} takes a {cls.__name__}")
    return given


def class_of(kind: Kind[Any, Any], solver: str) -> type[Params] | None:
    """The class of a solver's parameters; None where it has none."""
    if solver == AUTO and kind.solvers.method is None:
        return AutoParams
    return kind.solvers.method_params if solver in (AUTO, *backends.names()) else kind.solvers.params.get(solver)


class SubSolvers:
    """The MIP backends inside a heuristic, by name, and the versions of those that were called."""

    def __init__(self) -> None:
        self.versions: dict[str, str] = {}

    def __call__(self, name: str) -> MipSolver:
        """The backend as a solver of sub-problems; its library is loaded when it is first called."""

        def solve(mip: Mip, params: SolveParams) -> SolveResult:
            backend = backends.get(name)
            if name not in self.versions:
                self.versions[name] = backend.version()
            return backend.solve(mip, params)

        return solve

    def check(self, params: Params | None) -> None:
        """Check that the backends which a solver's parameters name can be used here.

        Raises:
            UsageError: there is none of that name.
            BackendUnavailable: its package is missing or has no licence.
        """
        default = set() if params is None else _named_in(type(params)())
        for name in set() if params is None else _named_in(params) - default:
            if name not in backends.names():
                hint = did_you_mean(name, backends.names()) or f"; expected one of: {', '.join(backends.names())}"
                raise UsageError(f"parameter solver of {SubMipParams.__name__} is {name!r}, which is no backend{hint}")
            backends.get(name).version()


def _named_in(params: Params) -> set[str]:
    """Names of the MIP backends that a solver's parameters name for its sub-problems."""
    return {one.solver for one in params.groups() if isinstance(one, SubMipParams)}
