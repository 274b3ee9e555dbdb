"""Explanation (``explain``): why there is no plan and what would help, or why a plan does what it does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from mast_opt.core.arguments import a_price, a_whole, checked, mapping_of, optional, texts
from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_limits import TimeLimits, keywords_of, params_of
from mast_opt.core.solve_result import Status
from mast_opt.core.summary import Summarised, Summary
from mast_opt.core.verdict import Conflict
from mast_opt.core.wording import did_you_mean, listed
from mast_opt.planner.analysis.alternatives import Reasons, reasons
from mast_opt.planner.analysis.common import asked, exact_solver
from mast_opt.planner.analysis.infeasibility.elastic_program import Elastic
from mast_opt.planner.analysis.infeasibility.iis import DeletionFilter
from mast_opt.planner.analysis.infeasibility.repairs import Repair, RepairSearch, price_list
from mast_opt.planner.solving.auto_strategy import DEFAULT_SOLVER
from mast_opt.planner.solving.clock import Clock
from mast_opt.planner.solving.kernel_compilation import needed, rehearse
from mast_opt.problems import backends
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import SolverName, check_plan

DEFAULT_ALTERNATIVES = 3
HEAVIEST = 5
"""Things that are questioned where none is named."""
ALONE_SHARE = 0.5
"""Part of the time for repairs that goes to limits on the whole plan, each moved alone."""
CONFLICT_SHARE, WITH_ALONE = 0.6, 0.4
"""Part of the time for the conflict, without and with limits on the whole plan; the rest is for the repairs."""


@dataclass(frozen=True, repr=False)
class Explanation(Summarised):
    """The answer of ``explain``."""

    kind: str
    status: Status | None
    """INFEASIBLE with a conflict; FEASIBLE if there is a plan; NO_SOLUTION if time ran out before either was known;
    None where the plan that is asked about breaks limits."""
    conflict: tuple[str, ...] = ()
    """Limits that contradict one another, in the words of the domain."""
    limits: Mapping[str, tuple[int, ...]] | None = None
    """Positions by kind of limit, for programs; None where only ``seen`` is known."""
    minimal: bool = False
    """True if it is proven that without any one of these limits the others can be kept."""
    proven: int = 0
    """Number of these limits for which that is proven."""
    seen: tuple[Conflict, ...] = ()
    """Conflicts that show without solving."""
    repairs: tuple[Repair, ...] = ()
    """The cheapest first; each leaves the limits of the earlier ones alone."""
    at_least: tuple[str, ...] = ()
    """Proven of each limit on the whole plan whose least feasible value is not known: what raising it alone takes."""
    reasons: tuple[Reasons, ...] = ()
    """Reasons for each thing that was asked about; empty without a plan."""
    solves: int = 0
    """Programs that were solved to find the conflict."""

    def _summary(self) -> Summary:
        """Summary of an explanation: status, reasons, conflict and repairs."""
        status = "breaks limits" if self.status is None else self.status.value
        rows = [("why", reason.sentence) for reason in self.reasons]
        rows += [("conflict", limit) for limit in self.conflict]
        rows += [("conflict", str(found)) for found in self.seen if not self.conflict]
        rows += [("repair", "; ".join(repair.changes)) for repair in self.repairs]
        facts = (("kind", self.kind), ("status", status), *((what, words) for what, words in rows[:1]))
        return Summary("Explanation", facts, ("", ""), tuple(rows))


@checked(keywords_of(TimeLimits, threads=1), names=texts, prices=optional(mapping_of(a_price)), alternatives=a_whole(0))
def explain(
    problem: Problem[PlanT],
    plan: PlanT | None = None,
    names: Sequence[str] = (),
    *,
    solver: SolverName = DEFAULT_SOLVER,
    prices: Mapping[str, float] | None = None,
    alternatives: int = DEFAULT_ALTERNATIVES,
    **limits: Unpack[TimeLimits],
) -> Explanation:
    """Explain why an instance has no plan, or why a plan does what it does.

    Without a plan: an irreducible set of limits that contradict one another (each was left out once, and a plan for
    the others was found), and the cheapest repairs. A repair pays for every limit that it moves or gives up: enlarging
    storage, cores, ingress or a link by the size of an average one costs 1, giving up a pin or a ban 1, allowing remote
    reads or a new GPU type in a region 5, leaving out a workload 10; ``prices`` multiplies these by kind of limit.
    Capacities are raised by what can be ordered (whole TB, cores, TB a day, GPUs); ``Repair.exact`` has the amounts
    before that, which the price counts. Every repair is tried out: its instance is solved and the plan verified.

    With a plan: for each named workload, dataset, job, process or reservation, what else could be done with it while
    all else stays, with the exact change of every term, and the limits that forbid the rest.

    Args:
        problem: an instance.
        plan: a plan of it; None to ask why there is none.
        names: what to ask about in the plan, such as ``["rank", "clicks"]``: workloads and datasets of a data
            placement, jobs, processes or reservations of other kinds. The heaviest few workloads, jobs, … unless given.
            A name that a workload and a dataset share asks about both.
        solver: a MIP backend.
        prices: factors such as ``{"storage": 3, "pin": float("inf")}``; infinite means never.
        alternatives: repairs to look for; each uses none of the limits that the earlier ones use.
        limits: see ``TimeLimits``; ``time_limit_s`` is for the conflict and the repairs together. What is not proven by
            then is said to be not proven.

    Raises:
        UsageError: this kind of problem cannot be infeasible, or an argument cannot be honoured.
        PlanError: the plan was made for another instance.
        Interrupted: cancelled before the kernels were compiled.
    """
    kind, questions = asked(problem)
    if plan is not None:
        problem = check_plan(kind, problem, plan)
        of_solves = (solver, alternatives) != (DEFAULT_SOLVER, DEFAULT_ALTERNATIVES)
        if prices or of_solves or (limits["time_limit_s"], limits["threads"]) != (None, 1):
            raise UsageError(
                "asking about a plan solves nothing: leave out solver, time limit, prices, alternatives and threads, "
                "or the plan"
            )
        return _of_plan(kind, problem, plan, names)
    if names:
        raise UsageError("names are asked about in a plan: give the plan as well")
    if questions.relief is None:
        raise UsageError(
            f"a {kind.name} instance always has a plan, so there is nothing to explain; give a plan to ask about it"
        )
    backend = backends.get(exact_solver(kind, solver))
    params = replace(params_of(limits), gap=1e-6, time_limit_s=None)
    rehearse(kind, needed(kind, backend.name, problem), params.cancel)
    clock = Clock(limits["time_limit_s"])
    seen = kind.analysis.conflicts(problem)
    kind.check_memory(problem, heuristics_too=False)
    elastic = Elastic(questions.relief(problem))
    price = price_list(elastic.relief, prices or {})
    search = DeletionFilter(
        elastic,
        backend,
        params,
        Clock(clock.budget_s(WITH_ALONE if any(one.alone for one in elastic.relief.limits) else CONFLICT_SHARE)),
    )
    possible = False if seen else search.feasible(np.ones(elastic.count, np.bool_), 0.5)
    if possible is not False:
        status = Status.NO_SOLUTION if possible is None else Status.FEASIBLE
        return Explanation(kind.name, status, seen=seen, solves=search.solves)
    found = search.infeasible_set()
    members = None if found is None else search.irreducible(found)
    named = None if members is None else elastic.by_name(members)
    words = tuple(one.message for one in seen) if named is None else elastic.relief.story(named)
    repaired, least = _repaired(
        RepairSearch(problem, elastic, backend, params, clock), price, alternatives, members or ()
    )
    return Explanation(
        kind=kind.name,
        status=Status.INFEASIBLE,
        conflict=words,
        limits=None if named is None else {name: tuple(at) for name, at in named.items()},
        minimal=named is not None and search.minimal,
        proven=0 if named is None else len(search.needed),
        seen=seen,
        repairs=repaired,
        at_least=least,
        solves=search.solves,
    )


def _repaired(
    search: RepairSearch, price: FloatArray, alternatives: int, conflict: Sequence[int]
) -> tuple[tuple[Repair, ...], tuple[str, ...]]:
    """The cheapest repairs, then the least that each limit on the whole plan has to be moved by alone; and what is
    proven of that, where it is not known.

    Args:
        search: for repairs.
        price: [G] of moving each limit by a unit.
        alternatives: most repairs to look for.
        conflict: limits that contradict one another; none where the time did not suffice to find them.
    """
    limits, sort = search.elastic.relief.limits, search.elastic.sort.tolist()
    every = (
        [g for g in conflict or range(search.elastic.count) if limits[sort[g]].alone and price[g] < np.inf]
        if alternatives
        else []
    )
    tried = [
        search.alone(g, price, ALONE_SHARE / left) for g, left in zip(every, range(len(every), 0, -1), strict=True)
    ]
    found = search.repairs(price, alternatives)
    known = {repair.changes for repair in found}
    more = tuple(one for one, _ in tried if one is not None and one.changes not in known)
    return (*found, *more), tuple(words for _, words in tried if words)


def _of_plan(kind: Kind[Any, PlanT], problem: Problem[PlanT], plan: PlanT, names: Sequence[str]) -> Explanation:
    """Explanation of a plan: why these workloads or datasets, or the heaviest ones, are where they are."""
    _, questions = asked(problem)
    sorts = questions.choices
    if not sorts:
        raise UsageError(f"plans of {kind.name} cannot be questioned this way; see 'mast-opt solve' for their tables")
    found = [(sorts[0], int(at)) for at in list(sorts[0].heaviest(problem))[:HEAVIEST]] if not names else []
    known = [{name: at for at, name in enumerate(choices.names(problem))} for choices in sorts]
    for name in names:
        own = [(choices, at[name]) for choices, at in zip(sorts, known, strict=True) if name in at]
        if not own:
            every = [label for at in known for label in at]
            nouns = " or ".join(choices.noun for choices in sorts)
            expected = f"expected some of {listed(every)}{did_you_mean(name, every)}"
            raise UsageError(f"{problem.name} has no {nouns} called {name!r}; {expected}")
        found += own
    status = Status.FEASIBLE if kind.verification.verify(problem, plan).ok else None
    return Explanation(
        kind.name, status, reasons=tuple(reasons(kind, choices, problem, plan, at) for choices, at in found)
    )
