"""Migration plans: the order in which a plan can be carried out, for every kind of problem that has one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from mast_opt.core.arguments import anything, checked, each
from mast_opt.core.errors import UsageError
from mast_opt.core.verdict import Verdict
from mast_opt.core.wording import counted, listed, plain
from mast_opt.problems.kind.migration_plan import COPIES, Order, OverAfter, RemoteRead, Stopped, Waiting
from mast_opt.problems.kind.origin import Origin, made_for
from mast_opt.problems.kind.overrides import NO_OVERRIDES, Overrides
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import check_plan, kind_of

REMAINDERS = "parts of workloads of less than a GPU are too small to be moved, and stay with the rest of their workload"
"""Note on steps to a plan that has such parts."""


def executable(problem: Problem[PlanT], plan: PlanT) -> PlanT:
    """The plan without parts that are too small to be moved, or the plan itself where it breaks a limit without."""
    kind = kind_of(problem)
    problem = check_plan(kind, problem, plan)
    whole: PlanT = kind.migration.whole(problem, plan)
    return whole if whole is plan or kind.verification.verify(problem, whole).ok else plan


@checked(then=each(anything))
def steps(problem: Problem[PlanT], plan: PlanT, begin: date | None = None, *, then: Sequence[PlanT] = ()) -> Order:
    """An order of what has to be done to get from today to the plan, what blocks it, and what would help.

    Args:
        problem: the instance, which gives the present state.
        plan: a plan of it without violations.
        begin: date of the first day, for steps that take days.
        then: further plans of it, each of which begins once the one before is carried out.

    Raises:
        UsageError: the kind of problem has no order of steps, or a plan breaks a limit.
    """
    order, state = _steps(problem, plan, begin), problem
    for number, later in enumerate(then, 2):
        hooks = kind_of(problem).analysis.hooks()
        if hooks.rolling is None:
            raise UsageError(f"a plan for {problem.kind} leads to no state in which another one begins")
        if order.stuck:
            break
        check_plan(kind_of(problem), problem, later)
        state = hooks.rolling.carried(state, executable(state, plan))
        plan = made_for(state, hooks.adapted(state, later), _overrides_of(later))
        waits = [replace(one, day=one.day - order.free_day) for one in order.waiting[-1]] if order.waiting else None
        order = _followed(order, _steps(state, plan, begin, waits), number)
    return order


def _overrides_of(plan: object) -> Overrides:
    """Overrides with which a plan was solved, as far as it knows them."""
    origin: Origin | None = getattr(plan, "origin", None)
    return NO_OVERRIDES if origin is None else origin.overrides


def _followed(first: Order, second: Order, number: int) -> Order:
    """The steps to a plan, then those to the one with this number. What the first refuses may start in the second."""
    day, wave = first.free_day, first.waves
    moves = (replace(one, wave=one.wave + wave, day=None if one.day is None else one.day + day) for one in second.moves)
    later = [
        replace(
            one,
            day=one.day if one.lost is not None else one.day + day,
            days=None if one.days is None else one.days + day * (one.lost is not None),
        )
        for one in second.stopped
    ]
    waiting = [tuple(_until(one, second, day) for one in rows) for rows in first.waiting]
    begins = "" if first.days is None else f", {first.date_of(day) or f'day {day + 1}'}"
    note = f"the steps to plan {number} begin with wave {wave + 1}{begins}"
    return replace(
        first,
        moves=(*first.moves, *moves),
        stuck=second.stuck,
        relief=(*first.relief, *second.relief),
        proven=first.proven and second.proven,
        stopped=(
            *(_served(one, waiting, second) for one in first.stopped if one.lost is not None and one.days is not None),
            *(_stopped_until(one, waiting) for one in first.stopped if one.lost is None),
            *later,
        ),
        notes=tuple(dict.fromkeys((*first.notes, note, *second.notes))),
        late="; ".join(filter(None, [first.late, second.late])),
        waiting=(*waiting, *_later(second, day)),
        gets=(*first.gets, *(replace(one, day=one.day + day) for one in second.gets)),
        remote=_remote_reads(first, second, day, waiting),
        over_after=_over_after(first, second, day),
    )


def _over_after(first: Order, second: Order, day: int) -> tuple[OverAfter, ...]:
    """GPUs over the supply after each day of two plans, a row a day."""
    rows = {one.day: one for one in first.over_after or second.over_after[:1]}
    for one in second.over_after:
        if one.day is not None:
            at = one.day + day
            steps_before = rows[at].steps if at in rows else 0
            rows[at] = replace(one, day=at, steps=steps_before + one.steps)
    return tuple(rows.values())


def _stopped_until(one: Stopped, waiting: Sequence[Sequence[Waiting]]) -> Stopped:
    """Work that stops in the first of two plans, until the day on which the second one gives it its GPUs."""
    days = [row.until for rows in waiting for row in rows if row.what == one.what and row.until is not None]
    return one if one.days is not None or not days else replace(one, days=max(days) - one.day)


def _until(one: Waiting, second: Order, day: int) -> Waiting:
    """Work that waits in the first of two plans, with the day on which it does so no longer in the second one."""
    days = [got.day + day for got in second.gets if (got.what, got.region, got.gpu_type) == _place(one)]
    return one if one.until is not None or not days else replace(one, until=days[0])


def _place(one: Waiting) -> tuple[str, str, str]:
    """Work that waits, and where."""
    return one.what, one.region, one.gpu_type


def _later(second: Order, day: int) -> list[tuple[Waiting, ...]]:
    """Work that waits in the second of two plans, with its days counted from the first step."""
    return [tuple(replace(one, day=one.day + day) for one in rows) for rows in second.waiting]


def _remote_reads(
    first: Order, second: Order, day: int, waiting: Sequence[Sequence[Waiting]]
) -> tuple[RemoteRead, ...]:
    """Remote reads of two plans: those of the first end when the data arrives or the work leaves in the second."""
    then = [(one.what, one.region, one.tb_a_day) for one in second.remote]
    known = [(one.what, one.region, one.tb_a_day) for one in first.remote]
    waits = {(row.what, row.region): row.until for rows in waiting for row in rows if row.missing >= row.gpus}
    rows = []
    for key, one in zip(known, first.remote, strict=True):
        ends = one.until if key in then or one.until is not None else _read_until(one, second, day)
        begins = waits.get((one.what, one.region)) or one.day
        rows.append(replace(one, day=begins if ends is None else min(begins, ends), until=ends))
    new = (one for key, one in zip(then, second.remote, strict=True) if key not in known)
    return (*rows, *(replace(one, day=one.day + day) for one in new))


def _read_until(one: RemoteRead, second: Order, day: int) -> int:
    """Day on which a second plan ends a remote read: its last dataset has arrived, or the work has left the region."""
    arrives, left, leaves = 0, one.share, second.days or 0
    for move in second.moves:
        if move.action in COPIES and move.what in one.datasets and move.target == one.region:
            arrives = max(arrives, (move.day or 0) + move.days)
        if move.what == one.what and move.source == one.region:
            left -= move.share or 0.0
            leaves = min(leaves, move.day or 0) if round(left, 6) <= 0 else leaves
    return day + min(arrives or leaves, leaves)


def _served(one: Stopped, waiting: Sequence[Sequence[Waiting]], second: Order) -> Stopped:
    """Work that starts in the first of two plans; where only the second one has GPUs for it, once it gets them, and
    with those that this one lacks."""
    rows = [row for rows in waiting for row in rows if row.what == one.what]
    days = [row.until for row in rows if row.until is not None]
    if one.runs or not days or len(days) < len(rows):
        return one
    got = [each for each in second.gets if each.what == one.what]
    arriving = tuple(dict.fromkeys(data for each in got for data in each.arriving))
    rooms = () if arriving else tuple(dict.fromkeys(each.starts_in for each in got))
    lacks = sum(row.missing for row in second.waiting[-1] if row.what == one.what) if second.waiting else 0.0
    return replace(one, days=max(days), waits_for=arriving, room_in=rooms, gpus_missing=lacks)


def _steps(problem: Problem[PlanT], plan: PlanT, begin: date | None, waiting: Sequence[Waiting] | None = None) -> Order:
    """The steps to one plan, see ``steps``; with the starts of the work that waits today, where that is known."""
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
    after = kind.migration.after
    order = (
        kind.migration.steps(problem, wanted) if waiting is None or after is None else after(problem, wanted, waiting)
    )
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
    stopped: tuple[Stopped, ...] = ()
    """Work that stops on the way."""
    usd: float | None = None
    """USD that copies cost on the way; None without any."""


NO_WAY = Way()


def way_to(problem: Problem[PlanT], plan: PlanT | None, first: PlanT | None = None) -> Way:
    """The size of the way from today to a plan; nothing of it without a plan, or where the steps cannot be ordered."""
    order = None if plan is None else order_to(problem, plan, first=first)
    return NO_WAY if order is None else way_of(problem, order)


def order_to(
    problem: Problem[PlanT], plan: PlanT, begin: date | None = None, first: PlanT | None = None
) -> Order | None:
    """The steps to a plan, after those to a first one if there is any; None where they cannot be ordered."""
    try:
        return steps(problem, plan, begin) if first is None else steps(problem, first, begin, then=[plan])
    except UsageError:
        return None


def way_of(problem: Problem[Any], order: Order) -> Way:
    """The size of the way that an order of steps is."""
    rolling = kind_of(problem).analysis.hooks().rolling
    over = 0.0 if not order.late or rolling is None else float((order.days or 0) - rolling.days(problem))
    return Way(len(order.moves), order.days, len(order.stuck), over, order.stopped, order.usd)


def first_steps(problem: Problem[PlanT], plan: PlanT, count: int, order: Order | None = None) -> tuple[Order, PlanT]:
    """The first steps to a plan, as ``steps`` lists them, and the plan that they lead to, which keeps every limit.

    Where a limit is broken after the last of these steps, the plan is the one that fewer of them lead to. A note of
    the order says so, and what the steps reach.

    Args:
        problem: the instance, which gives the present state.
        plan: a plan of it without violations.
        count: how many steps, at least 0.
        order: all steps to it, where they are known.

    Raises:
        UsageError: as by ``steps``; the kind does not tell what some of the steps lead to; or a limit that is broken
            today still is after these steps, and the message says how many mend it.
    """
    kind, order = kind_of(problem), order or steps(problem, plan)
    meant, plan = _overrides_of(plan).applied_to(problem), executable(problem, plan)
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
    reached = (partial(problem, plan, order.moves, number) for number in (0, made, every))
    objectives = [kind.verification.verify(meant, one).objective for one in reached]
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
        begins = min((move.day for move in order.moves[asked:] if move.day is not None), default=0)
        over = tuple(one for one in order.over_after if one.day is None or one.day < begins)
        cut = replace(cut, stuck=(), late="", relief=relief, stopped=kept, over_after=over)
    return cut, partial(problem, plan, order.moves, made)
