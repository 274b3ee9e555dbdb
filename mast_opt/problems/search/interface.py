"""Interface of heuristic solvers: when to stop, how to report, and the MIP solver that large neighbourhoods use."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.sense import Sense
from mast_opt.core.solve_result import Event, Limit, SolveParams, SolveResult, Status, relative_gap, within_gap
from mast_opt.problems.mip import Mip
from mast_opt.problems.search.params import Params
from mast_opt.problems.search.strategy import Strategy

PlanT = TypeVar("PlanT")
ParamsT = TypeVar("ParamsT", bound=Params)


class MipSolver(Protocol):
    """An exact solver for sub-problems, whichever backend stands behind it."""

    def __call__(self, mip: Mip, params: SolveParams) -> SolveResult:
        """The result of solving the program; what goes wrong is raised as by ``Backend.solve``."""


@dataclass(frozen=True)
class StoppingCriteria:
    """Conditions that end a search: time, gap, iterations or a request, whichever comes first."""

    time_limit_s: float | None = None
    gap: float = 1e-4
    iterations: int | None = None
    """Rounds of the search; with it, a seed and a number of threads the answer is the same on every machine, unless a
    part that is solved exactly has a limit in seconds: the solver's page says so."""
    cancel: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Pricing:
    """Terms of the objective that a heuristic takes into account."""

    terms: frozenset[str]
    unless: Callable[[Any, Any], Mapping[str, str]] = lambda problem, params: {}
    """(problem, parameters of the solver or None) → those of the terms that it does not take into account on this
    problem, and why."""

    def missing(self, problem: object, weighted: Iterable[str], params: Params | None = None) -> dict[str, str]:
        """Terms with a weight that a heuristic does not take into account, and why ("" where they never are).

        ``params``: of the solver; its defaults unless given.
        """
        unpriced = self.unless(problem, params)
        return {term: unpriced.get(term, "") for term in weighted if term not in self.terms or term in unpriced}


class SearchMonitor:
    """The clock of one search: keeps incumbent and bound, emits events, says when to stop."""

    def __init__(
        self,
        stop: StoppingCriteria,
        on_event: Callable[[Event], None] | None = None,
        on_strategy: Callable[[Strategy], None] | None = None,
        sense: Sense = Sense.MIN,
        gap_scale: float = 0.0,
        on_plan: Callable[[float, Callable[[], object]], None] | None = None,
    ) -> None:
        self.stop = stop
        self.sense = sense
        self.gap_scale = gap_scale
        self._on_event = on_event
        self._on_strategy = on_strategy
        self._on_plan = on_plan
        self._began = time.perf_counter()
        self.objective: float | None = None
        self.bound: float | None = None
        self.round = 0
        self.stage: str | None = None
        self.strategy: Strategy | None = None

    def chose(self, strategy: Strategy) -> None:
        """Record what the heuristic does on this instance."""
        self.strategy = strategy
        if self._on_strategy is not None:
            self._on_strategy(strategy)

    def begin(self, stage: str) -> None:
        """Turn to another term of a lexicographic objective: what was known of the last one is forgotten."""
        self.stage = stage
        self.objective = self.bound = None
        self.round = 0

    @property
    def elapsed_s(self) -> float:
        """Seconds since the search began."""
        return time.perf_counter() - self._began

    @property
    def remaining_s(self) -> float:
        """Seconds left for the search, not below 0; infinite without a time limit."""
        limit = self.stop.time_limit_s
        return float("inf") if limit is None else max(0.0, limit - self.elapsed_s)

    @property
    def gap(self) -> float | None:
        """Relative gap of the search's incumbent and bound; None while either is missing."""
        return relative_gap(self.objective, self.bound, self.sense)

    def report(
        self,
        objective: float | None = None,
        bound: float | None = None,
        plan: Callable[[], object] | None = None,
    ) -> None:
        """Record what the search knows now; an event is emitted if either improved.

        ``plan`` makes the plan of the objective, for a solver that works on the same instance at the same time; it is
        called later and from another thread, if at all.
        """
        better = objective is not None and (self.objective is None or self._less(objective, self.objective))
        tighter = bound is not None and (self.bound is None or self._less(self.bound, bound))
        if better:
            self.objective = objective
        if tighter:
            self.bound = bound
        if better and objective is not None and plan is not None and self._on_plan is not None and self.stage is None:
            self._on_plan(objective, plan)
        if (better or tighter) and self._on_event is not None:
            self._on_event(Event(self.elapsed_s, self.objective, self.bound, self.stage, sense=self.sense))

    def _less(self, one: float, other: float) -> bool:
        """Whether one objective value in the search is better than another."""
        return self.sense.minimised(one) < self.sense.minimised(other)

    def limit(self) -> Limit | None:
        """The limit of the search that has been reached, if any; a reached gap is not a limit (see ``done``)."""
        if self.stop.cancel.is_set():
            return Limit.INTERRUPT
        if self.remaining_s <= 0:
            return Limit.TIME
        if self.stop.iterations is not None and self.round >= self.stop.iterations:
            return Limit.ITERATIONS
        return None

    @property
    def done(self) -> bool:
        """Whether a limit of the search or the asked gap is reached."""
        return self.limit() is not None or self.near_enough(self.objective)

    def near_enough(self, objective: float | None) -> bool:
        """Whether an objective is within the requested gap of the bound."""
        return within_gap(objective, self.bound, self.stop.gap, sense=self.sense, scale=self.gap_scale)


@dataclass(frozen=True)
class StageBound:
    """A term of a lexicographic objective and what is proven of it under the terms before."""

    term: str
    bound: float | None


class Certificate(Protocol):
    """Interface of data that makes a bound checkable without trusting the search."""

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Arrays of a heuristic's certificate to be kept in a file, by name; the kind's ``certified_bound`` computes
        the bound from them.
        """
        ...


@dataclass(frozen=True)
class Carried:
    """Parts of an earlier solve besides its plan, matched to the instance of this one."""

    certificate: Mapping[str, NDArray[Any]] | None
    """Arrays of a certificate for this instance; None where the earlier solve had none."""


@dataclass(frozen=True)
class SearchResult(Generic[PlanT]):
    """Result of a heuristic."""

    plan: PlanT | None
    bound: float | None
    """A proven lower bound, or None."""
    limit: Limit | None
    message: str
    certificate: Certificate | None = None
    """Certificate of ``bound``; None where there is none."""
    stages: tuple[StageBound, ...] = ()
    """One for each term that was minimised, where the objective is lexicographic; ``bound`` is then the first's."""
    status: Status | None = None
    """Proven status where there is no plan, such as INFEASIBLE; None where nothing is proven."""
    finished: bool = True
    """Whether all that the objective asks for is proven once the bound proves its value: not where later levels are
    open."""


@dataclass(frozen=True)
class SearchContext:
    """Arguments of a heuristic in addition to the problem."""

    rng: np.random.Generator
    watch: SearchMonitor
    threads: int
    backends: Callable[[str], MipSolver]
    """Name of a MIP backend → its solver, for ``search.sub_mip``."""
    params: Params | None = None
    """The parameters of the solver, where they were given; see ``params_as``."""
    mip_solver: MipSolver | None = None
    """The MIP backend that the caller chose, for a kind's own method (``SolverInterface.method``); None in a
    heuristic, whose parameters name the backends of its sub-problems."""
    certificate: Mapping[str, NDArray[Any]] | None = None
    """Arrays of a certificate for this instance, from whose prices the search of a bound goes on; None for none."""

    def params_as(self, cls: type[ParamsT]) -> ParamsT:
        """The solver's parameters that were given, or the defaults of their class."""
        if self.params is None:
            return cls()
        assert isinstance(self.params, cls), f"{type(self.params).__name__} where {cls.__name__} is needed"
        return self.params


@dataclass(frozen=True)
class Rehearsal:
    """A small run that compiles some of the kernels of a solver, or loads them from the cache."""

    name: str
    """Unique among the rehearsals of a kind of problem."""
    run: Callable[[SearchContext], object]
    """Calls the kernels with the same types of arguments as the solver, on an instance of its own."""


class Heuristic(Protocol):
    """A solver of our own for one kind of problem."""

    def __call__(self, problem: Any, tools: SearchContext, start: Any | None) -> SearchResult[Any]:  # noqa: ANN401 - each takes its own kind
        """The result of one search.

        Args:
            problem: the instance.
            tools: limits, random numbers, progress, and a solver of sub-problems.
            start: the plan to begin from; None for none.
        """


@dataclass(frozen=True)
class HeuristicSolver:
    """A heuristic with what ``solve`` has to know of it."""

    search: Heuristic
    pricing: Pricing
    """The terms that it takes into account; ``solve`` refuses it where a weighted term is missing."""
    params: type[Params] | None = None
    """The class of its parameters, of which it finds an object in ``SearchContext.params``; None: it has none."""
    limits: frozenset[str] = frozenset()
    """The limits on a whole plan that it keeps; ``solve`` refuses it where the instance has another."""
    orders: bool = False
    """True if it minimises an order of terms one after another (``SearchResult.stages``); ``solve`` refuses a plug-in
    without it where the objective is an order."""
    constructive: bool = False
    """True if it builds one plan and ends. It takes neither a start nor a number of iterations then."""
    rehearsals: Callable[[Any], tuple[Rehearsal, ...]] = lambda problem: ()
    """Problem → what compiles every kernel that it can call on this problem, the longest first; for None, on any
    problem."""
    package: str | None = None
    """Package of a plug-in, with its version; None for a heuristic of mast-opt."""
