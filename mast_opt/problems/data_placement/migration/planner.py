"""Migration planner of data placement: copies, deletions and moves of work, day by day, within every limit."""

from dataclasses import dataclass, replace
from fractions import Fraction

from mast_opt.problems.data_placement.migration.exact_search import least_stops
from mast_opt.problems.data_placement.migration.loads import Loads
from mast_opt.problems.data_placement.migration.relays import relays
from mast_opt.problems.data_placement.migration.replica_moves import Moving
from mast_opt.problems.data_placement.migration.replica_search import Assistance, search
from mast_opt.problems.data_placement.migration.schedule import Calendar
from mast_opt.problems.data_placement.migration.steps import Operation, RunStep, Step
from mast_opt.problems.data_placement.migration.workload_moves import Part
from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement

RELAY_TRIES = 4
"""Times that steps are ordered with relays, each without those of datasets that were late."""
MOST_REPEATED = 100_000
"""Steps that are made again, about, to find out which stops are needed."""


@dataclass(frozen=True)
class Blocked:
    """A replica that cannot arrive, and the room that is missing for it when nothing else moves any more."""

    dataset: int
    region: int
    missing_mb: int
    """0 where storage is not what is missing."""
    full: bool = False
    """True if remote reads take all of the links that could bring it."""


@dataclass(frozen=True)
class Room:
    """Room that a region would have to be lent."""

    region: int
    mb: int


@dataclass(frozen=True)
class Stop:
    """A part of a workload that has to stop and starts again where the plan has it."""

    part: Part
    mgpu: int
    """The GPUs that it uses today."""
    day: int
    days: int
    """Days until it starts again; 0 within a day."""


@dataclass(frozen=True)
class Steps:
    """The steps in order, and what stands in the way where the plan's own moves alone have no order."""

    steps: tuple[Step, ...]
    runs: tuple[RunStep, ...]
    """The steps of work; waves are counted together with ``steps``."""
    stops: tuple[Stop, ...]
    """Work that has to stop for a while."""
    blocked: tuple[Blocked, ...]
    """Replicas that do not arrive; empty where the steps lead to the plan."""
    waiting: tuple[Part, ...]
    """Work that does not get where the plan has it."""
    unknown: tuple[int, ...]
    """Workloads that the plan serves and that do not run today, or in part, as far as the instance says."""
    deadlock: tuple[Blocked, ...]
    """Replicas that could not arrive without replicas in between; empty where the plan's own moves have an order."""
    room: tuple[Room, ...]
    """The least temporary room, added over the regions, with which the plan's own moves have an order."""
    proven: bool
    """True: what is stuck is stuck, and what stops and what is copied in between is the least there is, by exhaustive
    search."""

    @property
    def days(self) -> int:
        """Days of the data-placement migration until the last step has ended."""
        ends = [*(step.day + step.days for step in self.steps), *(run.day + 1 for run in self.runs)]
        return max(ends, default=0)

    @property
    def waves(self) -> int:
        """Number of waves of a data-placement migration."""
        waves = [*(step.wave for step in self.steps), *(run.wave for run in self.runs)]
        return max(waves, default=-1) + 1


def steps(problem: DataPlacement, plan: Plan) -> Steps:
    """An order of copies, deletions and moves of work from today to a plan without violations.

    A replica takes its whole room from the moment that its copy begins until it is deleted, so that both are there
    while a dataset moves. No dataset ever has fewer whole replicas than it must have (or than it has today or in the
    plan, if that is less), and none goes that running work reads and cannot read from elsewhere. Work moves when its
    data is there, or may be read remotely, and cores, quota, storage for outputs and GPUs are free. Each day, copies
    into a region stay within its ingress, and reads and copies over a link within what it carries. What breaks a limit
    today may go on, and gets no worse.

    Copies come from where the plan has them, or from a new replica where that costs less, from the day after it has
    arrived; unless the steps then take longer than the days of the instance, and than they otherwise would.

    Where that has no order, work stops for a while, as few GPUs as the searches find. Where data blocks data, the
    smallest volume of replicas in between that gives an order is used; where none does, the steps go as far as they
    get.
    """
    moving = Moving(problem, plan)
    loads = Loads(moving)
    plain = Calendar(replace(moving, patient=True), loads).run()
    if problem.links is not None and not (plain.complete and _days(plain) <= problem.days):
        plain = Calendar(moving, loads).run()
    latest = max(problem.days, Fraction(_days(plain) if plain.complete else 0))
    relayed = _relayed(moving, loads, latest)
    if relayed is not None:
        return relayed
    if plain.complete:
        return _answer(plain, proven=True)
    exact = least_stops(moving, loads, hops=False)
    ways = []
    if exact.ops is not None:
        ways.append(Calendar(moving, loads, exact.ops).run())
    if exact.ops is None or exact.cost[0] or not ways[0].complete:
        ways.append(_with_stops(plain))
    ways = [way for way in ways if way.complete]
    if ways:
        return _least(moving, loads, ways, exact.exhaustive and exact.ops is not None)
    return _deadlocked(moving, loads, plain)


def _relayed(moving: Moving, loads: Loads, latest: Fraction) -> Steps | None:
    """Steps with the relays that allow an end by the latest day; None where none do."""
    chosen = relays(moving)
    for _ in range(RELAY_TRIES):
        if not chosen:
            break
        way = Calendar(replace(moving, patient=True, relays=chosen), loads).run()
        if way.complete and _days(way) <= latest:
            return _answer(way, proven=True)
        late = {step.dataset for step in way.steps if step.day + step.days > latest} | {i for i, _ in way.copies}
        kept = {pair: q for pair, q in chosen.items() if pair[0] not in late}
        chosen = kept if len(kept) < len(chosen) else {}
    return None


def _days(way: Calendar) -> int:
    """Days until the last step of a calendar has ended."""
    return _answer(way, proven=True).days


def _least(moving: Moving, loads: Loads, ways: list[Calendar], exhaustive: bool) -> Steps:
    """The way that stops least; one with replicas in between where that stops less."""
    best = min(ways, key=_price)
    if not best.stopped:
        return _answer(best, proven=True)
    detour = least_stops(moving, loads, hops=True, most_cost=best.stop_cost)
    if detour.ops is not None:
        way = Calendar(moving, loads, detour.ops).run()
        if way.complete and way.stop_cost < best.stop_cost:
            return _answer(way, proven=detour.exhaustive)
    return _answer(best, proven=exhaustive and detour.exhaustive and detour.ops is None)


def _deadlocked(moving: Moving, loads: Loads, plain: Calendar) -> Steps:
    """Data blocks data, or links are full: replicas in between, or how far the steps get."""
    data = search(moving, Assistance.NOTHING)
    stuck: tuple[Blocked, ...] = ()
    room: tuple[Room, ...] = ()
    found, proven = data, data.exhaustive
    if not data.complete:
        free = data.end.free_mb
        waits = [pair for pair in moving.incoming if pair not in data.end.arrived]
        stuck = tuple(Blocked(i, r, max(moving.size_mb[i] - free[r], 0)) for i, r in waits)
        lent = search(moving, Assistance.ROOM)
        room = tuple(Room(r, mb) for r, mb in enumerate(lent.end.lent_mb) if mb) if lent.complete else ()
        found = search(moving, Assistance.HOPS)
        if not found.complete and not found.exhaustive:
            found = search(moving, Assistance.HOPS, after=data)
        proven = proven and lent.exhaustive and found.exhaustive
    if found.complete:
        ways = []
        if loads.parts:
            exact = least_stops(moving, loads, hops=True)
            proven = proven and exact.exhaustive
            ways += [Calendar(moving, loads, exact.ops).run()] if exact.ops is not None else []
        follow = [Operation("copy" if move.arrives else "delete", move.dataset, move.region) for move in found.moves]
        ways.append(_with_stops(Calendar(moving, loads, follow, reserve=True).run()))
        ways = [way for way in ways if way.complete]
        if ways:
            return _answer(min(ways, key=_price), proven, deadlock=stuck, room=room)
        proven = False
    left = {*plain.copies, *(transfer.pair for transfers in plain.transfers.under_way for transfer in transfers)}
    free_mb = [amount // SHARE for amount in plain.world.free]
    blocked = tuple(
        Blocked(i, r, max(moving.size_mb[i] - free_mb[r], 0), plain.world.links_full(i, r)) for i, r in sorted(left)
    )
    return _answer(plain, proven, deadlock=stuck or blocked, room=room, blocked=blocked)


def _with_stops(stuck: Calendar) -> Calendar:
    """Go on by stopping work where nothing else can; then without the stops that turn out not to be needed."""
    loads = stuck.loads
    may_stop = {u for u, part in enumerate(loads.parts) if part.runs_today and part.runs_then}
    best = stuck.go_on(may_stop)
    left = len(stuck.enters) + len(stuck.copies) + len(stuck.deletes)
    tries = MOST_REPEATED // (left + len(loads.parts) // 10 + 1)
    for u in sorted(best.stopped, key=lambda u: -loads.loads[u].cost):
        if not best.complete or tries <= 0:
            break
        if u in best.stopped:
            tries -= 1
            other = stuck.go_on(may_stop - {u})
            if other.complete and other.stop_cost < best.stop_cost:
                best, may_stop = other, may_stop - {u}
    return best


def _price(way: Calendar) -> tuple[int, int, int]:
    """GPUs that stop, GPUs times days, days."""
    stops = _stops(way)
    return way.stop_cost, sum(stop.mgpu * stop.days for stop in stops), way.day


def _stops(way: Calendar) -> tuple[Stop, ...]:
    """Workloads that stop in a migration, from which day to which."""
    begun: dict[int, int] = {}
    ended: dict[int, int] = {}
    for run in way.runs:
        if run.target is None:
            begun.setdefault(run.part, run.day)
        else:
            ended[run.part] = run.day
    loads, found = way.loads, []
    for u in way.stopped:
        part = loads.parts[u]
        pieces = [piece for piece in part.pieces if piece.source is not None]
        mgpu = sum(loads.mgpu(part.workload, piece.source[1]) * piece.share for piece in pieces if piece.source)
        found.append(Stop(part, mgpu // SHARE, begun[u], ended.get(u, way.day) - begun[u]))
    return tuple(found)


def _answer(
    way: Calendar,
    proven: bool,
    deadlock: tuple[Blocked, ...] = (),
    room: tuple[Room, ...] = (),
    blocked: tuple[Blocked, ...] = (),
) -> Steps:
    """The steps of a migration from its calendar, with what blocks the rest."""
    parts = way.loads.parts
    unknown = {part.workload for part in parts for piece in part.pieces if piece.source is None}
    waiting = tuple(parts[u] for u in sorted(way.enters))
    rows = (tuple(way.steps), tuple(way.runs), _stops(way))
    return Steps(*rows, blocked, waiting, tuple(sorted(unknown)), deadlock, room, proven)
