"""Migration plans: the order in which a plan can be carried out, for every kind of problem that has one."""

from dataclasses import dataclass, replace
from datetime import date

from mast_opt.core.errors import UsageError
from mast_opt.core.verdict import Verdict
from mast_opt.core.wording import counted, listed, plain
from mast_opt.problems.kind.migration_plan import Order
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import check_plan, kind_of

COPIES = ("copy", "upload")
"""Actions of steps that may go on over several rows."""
REMAINDERS = "parts of workloads of less than a GPU are too small to be moved, and stay with the rest of their workload"
"""Note on steps to a plan that has such parts."""


def executable(problem: Problem[PlanT], plan: PlanT) -> PlanT:
    """The plan without parts that are too small to be moved, unless that breaks a limit."""
    kind = kind_of(problem)
    whole: PlanT = kind.migration.whole(problem, plan)
    return plan if whole is plan or not kind.verification.verify(problem, whole).ok else whole


def steps(problem: Problem[PlanT], plan: PlanT, begin: date | None = None) -> Order:
    """An order of what has to be done to get from today to the plan, what blocks it, and what would help.

    Args:
        problem: the instance, which gives the present state.
        plan: a plan of it without violations.
        begin: date of the first day, for steps that take days.

    Raises:
        UsageError: the kind of problem has no order of steps, or the plan breaks a limit.
    """
    kind = kind_of(problem)
    if kind.migration.steps is None:
        raise UsageError(f"a plan for {kind.name} has no steps to order")
    problem = check_plan(kind, problem, plan)
    verdict = kind.verification.verify(problem, plan)
    if not verdict.ok:
        raise UsageError(
            f"the plan breaks {verdict.violations[0]}, so there is no way to it within the limits; "
            "'mast-opt verify' lists every violation"
        )
    wanted = executable(problem, plan)
    order = kind.migration.steps(problem, wanted)
    now: PlanT | None = kind.analysis.current_plan(problem)
    broken = () if now is None else kind.verification.verify(problem, now).violations
    mending = {label for violation in broken for label in violation.index}
    moves = sorted(order.moves, key=lambda move: (move.wave, move.what not in mending))
    notes = order.notes if wanted is plan else (*order.notes, REMAINDERS)
    return replace(order, moves=tuple(moves), begin=begin, notes=notes)


@dataclass(frozen=True)
class Way:
    """The size of the way to a plan."""

    steps: int = 0
    days: int | None = None
    """Days until it is done; None where steps take no days, or the way is not known."""
    stuck: int = 0
    """Steps that cannot be carried out."""
    days_over: float = 0.0
    """Days by which it is longer than the instance states."""


NO_WAY = Way()


def way_to(problem: Problem[PlanT], plan: PlanT | None) -> Way:
    """The size of the way from today to a plan; nothing of it without a plan, or where the steps cannot be ordered."""
    try:
        order = None if plan is None else steps(problem, plan)
    except UsageError:
        order = None
    if order is None:
        return NO_WAY
    rolling = kind_of(problem).analysis.hooks().rolling
    over = 0.0 if not order.late or rolling is None else float((order.days or 0) - rolling.days(problem))
    return Way(len(order.moves), order.days, len(order.stuck), over)


def first_steps(problem: Problem[PlanT], plan: PlanT, count: int, begin: date | None = None) -> tuple[Order, PlanT]:
    """The first steps to a plan, as ``steps`` lists them, and the plan that they lead to, which keeps every limit.

    Where a limit is broken after the last of these steps, the plan is the one that fewer of them lead to. A note of
    the order says so, and what the steps reach.

    Args:
        problem: the instance, which gives the present state.
        plan: a plan of it without violations.
        count: how many steps, at least 0.
        begin: date of the first day.

    Raises:
        UsageError: as by ``steps``; the kind does not tell what some of the steps lead to; or a limit that is broken
            today still is after these steps, and the message says how many mend it.
    """
    kind, order = kind_of(problem), steps(problem, plan, begin)
    plan = executable(problem, plan)
    partial, every = kind.migration.partial, len(order.moves)
    if partial is None:
        raise UsageError(f"single steps to a plan of {kind.name} cannot be separated")

    def after(number: int) -> Verdict:
        """The verdict on the state after so many steps."""
        return kind.verification.verify(problem, partial(problem, plan, order.moves, number))

    asked = min(count, every)
    last = after(asked)
    made = asked if last.ok else next((number for number in range(asked - 1, -1, -1) if after(number).ok), None)
    if made is None:
        later = next((number for number in range(asked + 1, every + 1) if after(number).ok), None)
        which = "no later step mends it" if later is None else f"the first {later:,} keep every limit"
        raise UsageError(f"after {counted(asked, 'step')} of {every:,} the plan breaks {last.violations[0]}; {which}")
    whole = asked == every
    begun = {(move.what, move.target) for move in order.moves[:made] if move.action in COPIES}
    begun &= {(move.what, move.target) for move in order.moves[made:] if move.action in COPIES}
    objectives = (after(0).objective, after(made).objective, after(every).objective)
    words = f"{counted(asked, 'step')} of {every:,}; objective {{}} today, {{}} after them, {{}} after all"
    notes = [words.format(*map(plain, objectives))]
    if begun:
        notes.append(f"not finished by then: {listed([f'{what} to {target}' for what, target in sorted(begun)])}")
    if made < asked:
        notes.append(f"the plan has the first {made:,}: after the next, {last.violations[0]}")
    cut = replace(order, moves=order.moves[:asked], notes=(*notes, *order.notes))
    if not whole:
        stopped = {move.what for move in cut.moves if move.action == "stop"}
        kept = tuple(one for one in order.stopped if one.lost is not None or one.what in stopped)
        relief = order.relief if any(one.lost is None for one in kept) else ()
        cut = replace(cut, stuck=(), late="", relief=relief, stopped=kept)
    return cut, partial(problem, plan, order.moves, made)
