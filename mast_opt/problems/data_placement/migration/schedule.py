"""Migration schedule of data placement in days: each step as early as storage, cores, quotas, GPUs and links allow.

A day is a row of waves. A wave makes every step that is possible: deletions first, then work that moves, then copies,
those first that let an old replica go. Copies share the day's ingress and links; reads go first on a link. Where
nothing can go on, work may read remotely for a while what the plan has in its region, then work ends that the plan does
not serve, and only then, if that is allowed, work stops.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from dataclasses import dataclass, field, replace

from mast_opt.problems.data_placement.migration.loads import Loads
from mast_opt.problems.data_placement.migration.replica_moves import Moving, Pair
from mast_opt.problems.data_placement.migration.state import MigrationState, Where
from mast_opt.problems.data_placement.migration.steps import Operation, RunStep, Step
from mast_opt.problems.data_placement.migration.stops import Stoppable, cheapest_stop
from mast_opt.problems.data_placement.migration.transfers import Transfer, Transfers
from mast_opt.problems.data_placement.problem import SHARE


@dataclass(eq=False)
class Calendar:
    """The days of one way to carry a plan out.

    Args:
        follow: an order of steps that are made one after another, except for those that have nothing in common; None
            makes steps as they come.
        may_stop: parts of workloads that may stop where nothing else can go on.
        reserve: keep the room free that the outputs of work to come take.
    """

    moving: Moving
    loads: Loads
    follow: Sequence[Operation] | None = None
    may_stop: AbstractSet[int] = frozenset()
    reserve: bool = False

    steps: list[Step] = field(default_factory=list, init=False)
    runs: list[RunStep] = field(default_factory=list, init=False)
    stopped: list[int] = field(default_factory=list, init=False)
    """Parts that stopped although the plan serves them."""
    day: int = field(default=0, init=False)
    wave: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        m = self.moving
        regions = range(len(m.problem.regions))
        self.world = MigrationState(m, self.loads)
        self.queue = None if self.follow is None else list(self.follow)
        listed = {(op.kind, op.at, op.region) for op in self.follow or ()}
        self.copies = set(m.incoming)
        """(dataset, region) still to begin."""
        self.deletes = set(m.outgoing)
        where = self.world.where
        self.enters = {u for u, part in enumerate(self.loads.parts) if where[u] is Where.TODAY and part.runs_then}
        self.ends = {u for u, part in enumerate(self.loads.parts) if where[u] is Where.TODAY and not part.runs_then}
        for op in self.follow or ():
            if op.kind == "copy":
                self.copies.add((op.at, op.region))
            elif op.kind == "delete":
                self.deletes.add((op.at, op.region))
        self.transfers = Transfers(m, self.world)
        self._tier_down = self._tiers_of_down_work()
        """(dataset, region) → urgency of the most important work that starts or moves there with it after a loss."""
        free = [pair for pair in m.incoming if ("copy", *pair) not in listed]
        self._rank = {pair: n for n, pair in enumerate(sorted(free, key=self._urgency))}
        self.awake_copies: list[set[Pair]] = [set() for _ in regions]
        for pair in free:
            self.awake_copies[pair[1]].add(pair)
        self._free_deletes = {pair for pair in m.outgoing if ("delete", *pair) not in listed}
        self.awake_deletes = set(self._free_deletes)
        self._free_enters = {u for u in self.enters if ("enter", u, -1) not in listed}
        self.awake_enters = set(self._free_enters)
        self._shy: set[tuple[str, int, int]] = set()
        """Steps that only wait so that nothing is read remotely that need not be."""
        self.reserved = [0] * len(regions)
        if self.reserve:
            for u in self.enters:
                self._reserve(u, 1)
        self._due: list[Callable[[], None]] = []
        self._resumes = False
        """True if the day before ended because nothing could go on."""
        self._new: set[Pair] = set()
        """Replicas that arrived today, from which no relay begins before tomorrow."""
        self._freed: dict[int, bool] = {}
        """Regions where something was freed in this wave, and whether that is storage alone."""

    def run(self) -> "Calendar":
        """Spend days until all is done, or nothing can go on any more."""
        while not self.complete:
            if not self._spend_day():
                break
            if self._idle() and not self.complete:
                self._resumes = True
                break
            self.day += 1
        return self

    def go_on(self, may_stop: AbstractSet[int]) -> "Calendar":
        """Go on from where nothing could any more, with leave to stop these parts; this calendar stays as it is."""
        twin = copy(self)
        twin.may_stop, twin.world = may_stop, self.world.copy()
        for name, value in vars(self).items():
            if isinstance(value, set | dict | list):
                setattr(twin, name, copy(value))
        twin.transfers = self.transfers.copy(twin.world)
        twin.awake_copies = [set(pairs) for pairs in self.awake_copies]
        return twin.run()

    @property
    def complete(self) -> bool:
        """Whether nothing of the migration is left to do."""
        return not (self.copies or self.deletes or self.enters or self.ends or any(self.transfers.under_way))

    @property
    def stop_cost(self) -> int:
        """Cost of the parts of workloads in a migration that stopped although the plan serves them."""
        return sum(self.loads.loads[u].cost for u in self.stopped)

    # a day

    def _spend_day(self) -> bool:
        """Make waves of the migration until nothing more can happen today. Returns whether anything did."""
        if not self._resumes:
            self._begin_day()
        self._resumes = False
        first, first_run = len(self.steps), len(self.runs)
        while True:
            if self._spend_wave():
                continue
            fresh = len(self.steps) == first and len(self.runs) == first_run
            if self.complete or not ((fresh or self._idle()) and self._unstick(fresh)):
                break
        if fresh:
            return False
        if not self._settled:
            self._repeat(first)
        return True

    def _begin_day(self) -> None:
        """Begin a day of the migration: transfers start, deletions and starts are tried again."""
        self.transfers.begin_day()
        self._settled, self._new = False, set()
        if self.world.remote is not None:
            self.awake_deletes |= self.deletes & self._free_deletes
            self.awake_enters |= self.enters & self._free_enters

    def _idle(self) -> bool:
        """Whether tomorrow in the migration brings nothing that today does not."""
        remote = self.world.remote
        if any(self.transfers.under_way) or any(self.awake_copies) or (remote is not None and remote.copied):
            return False
        return self.queue is None or not any(self.transfers.ingress[r] == 0 for _, r in self.copies)

    def _spend_wave(self) -> bool:
        """Take the steps of one wave of the migration; False if there were none."""
        before = len(self.steps), len(self.runs)
        if self.queue is not None:
            self._follow_order(self.queue)
        for pair in sorted(self.awake_deletes):
            self.awake_deletes.discard(pair)
            self._delete(pair)
        for u in sorted(self.awake_enters):
            self.awake_enters.discard(u)
            self._enter(u)
        self.transfers.note_peaks()
        self._copy()
        return self._end_wave(before)

    def _end_wave(self, before: tuple[int, int]) -> bool:
        """End a wave of the migration: its effects take place and wake what waited for them."""
        due, self._due = self._due, []
        self._settled |= bool(due)
        for effect in due:
            effect()
        for r, storage_only in self._freed.items():
            self._wake_region(r, storage_only)
        self._freed = {}
        happened = (len(self.steps), len(self.runs)) != before
        self.wave += happened
        return happened or bool(due)

    def _follow_order(self, queue: list[Operation]) -> None:
        """Make the steps of the migration that are next, and those after them that have nothing in common with one that
        waits.
        """
        waits: set[object] = set()
        every = len(self.moving.problem.regions)
        kept: list[Operation] = []
        for n, op in enumerate(queue):
            if len([one for one in waits if isinstance(one, int)]) >= every or "all" in waits:
                kept += queue[n:]
                break
            touched = self._touched(op)
            if not waits & touched and op.kind != "stop" and self._make(op):
                continue
            waits |= touched
            kept.append(op)
        queue[:] = kept

    def _make(self, op: Operation) -> bool:
        """Carry out an operation of the migration  of its schedule; False if it must wait."""
        pair = (op.at, op.region)
        if op.kind == "copy":
            return self._begin(pair)
        return self._delete(pair, shy=False) if op.kind == "delete" else self._enter(op.at, shy=False)

    def _touched(self, op: Operation) -> set[object]:
        """Regions and datasets whose state the step changes or depends on."""
        if self.world.remote is not None:
            return {"all"}
        if op.kind in ("copy", "delete"):
            return {op.region, ("data", op.at)}
        part, load = self.loads.parts[op.at], self.loads.loads[op.at]
        cells = [cell for piece in part.pieces for cell in (piece.source, piece.target) if cell is not None]
        return {r for r, _ in cells} | {("data", i) for i, *_ in (*load.reads_now, *load.reads_then)}

    # single steps

    def _delete(self, pair: Pair, shy: bool = True) -> bool:
        """Delete a replica; False if it must wait."""
        i, r = pair
        if shy and self.world.local_readers_leave(i, r):
            self._shy.add(("delete", i, r))
            return False
        if not self.world.delete(i, r):
            return False
        self.deletes.discard(pair)
        self._shy.discard(("delete", i, r))
        hop = not (self.moving.problem.datasets.stored[i, r])
        self.steps.append(Step(self.day, 1, self.wave, i, r, None, 0, True, hop))
        self._due.append(lambda: self._deleted(i, r))
        return True

    def _deleted(self, i: int, r: int) -> None:
        """Note that a replica is gone, and its room free."""
        self.world.deleted(i, r)
        self._freed.setdefault(r, True)

    def _enter(self, u: int, shy: bool = True) -> bool:
        """Let a part of a workload run where the plan has it; False if it must wait."""
        world, part = self.world, self.loads.parts[u]
        if not world.fits(u):
            return False
        if shy and not world.has_data(u, local=True):
            self._shy.add(("enter", u, -1))
            return False
        if not world.enter(u):
            return False
        if self.reserve:
            self._reserve(u, -1)
        self.enters.discard(u)
        self._shy.discard(("enter", u, -1))
        stopped = world.where[u] is Where.STOPPED
        for piece in part.pieces:
            source = None if stopped else piece.source
            self.runs.append(RunStep(self.day, self.wave, u, part.workload, source, piece.target, piece.share))
        self._due.append(lambda: self._left(u, stopped))
        return True

    def _left(self, u: int, stopped: bool) -> None:
        """End the run of a part of a workload where it runs today, and wake what waits for it."""
        self.world.leave(u)
        if not stopped:
            self._wake_after(u)

    def _stop(self, u: int) -> None:
        """Stop a part of a workload in the migration to make room."""
        world, part = self.world, self.loads.parts[u]
        for piece in part.pieces:
            if piece.source is not None:
                self.runs.append(RunStep(self.day, self.wave, u, part.workload, piece.source, None, piece.share))
        if part.runs_then:
            if self.reserve and not part.stays:
                self._reserve(u, -1)
            self.stopped.append(u)
        world.stop(u)
        self.ends.discard(u)
        if part.runs_then:
            self.enters.add(u)
            if self.reserve:
                self._reserve(u, 1)
            if self.queue is None or not any(op.kind == "enter" and op.at == u for op in self.queue):
                self._free_enters.add(u)
                self.awake_enters.add(u)
        self._wake_after(u)

    def _reserve(self, u: int, sign: int) -> None:
        """Reserve (1) or release (−1) the amounts of a part of a workload."""
        for limit, amount in self.world.taken(u):
            if limit < len(self.reserved):
                self.reserved[limit] += sign * amount

    # what may be possible now

    def _wake_after(self, u: int) -> None:
        """Note that a part of a workload has left its place of today."""
        load = self.loads.loads[u]
        regions = {piece.source[0] for piece in self.loads.parts[u].pieces if piece.source is not None}
        self._freed |= dict.fromkeys(regions, False)
        for i in {i for i, *_ in load.reads_now}:
            self._wake_deletes(i)

    def _wake_region(self, r: int, storage_only: bool) -> None:
        """Try again the copies and work that wait for room in a region of the migration."""
        self.awake_copies[r] |= {
            pair for pair in self.moving.incoming_pairs_at[r] if pair in self.copies and pair in self._rank
        }
        for u in self.loads.storing_into[r] if storage_only else self.loads.into[r]:
            if u in self.enters and u in self._free_enters:
                self.awake_enters.add(u)
        if self.world.remote is not None:
            self.awake_deletes |= self.deletes & self._free_deletes

    def _wake_deletes(self, i: int) -> None:
        """Try again the deletions of a dataset's replicas in the migration."""
        for pair in self.moving.outgoing_of.get(i, ()):
            if pair in self.deletes and pair in self._free_deletes:
                self.awake_deletes.add(pair)

    def _arrived(self, i: int, r: int) -> None:
        """Note that a replica has arrived, and wake what waits for it."""
        self._new.add((i, r))
        self.world.arrive(i, r)
        self._wake_deletes(i)
        for u in self.loads.reading_then.get(i, ()):
            if u in self.enters and u in self._free_enters:
                self.awake_enters.add(u)
        for pair in self.moving.incoming_of.get(i, ()):
            if pair in self.copies and pair in self._rank:
                self.awake_copies[pair[1]].add(pair)
        if self.world.remote is not None:
            self._freed[r] = False

    # copies

    def _tiers_of_down_work(self) -> dict[Pair, int]:
        """Pairs that work reads where it starts or moves once regions are lost, with its most important tier; work that
        is down comes before all that moves."""
        p, found = self.moving.problem, dict[Pair, int]()
        lost = set(p.current_runs.workload[p.gone[p.current_runs.region]].tolist())
        for u, part in enumerate(self.loads.parts):
            down = part.workload in lost and not part.runs_today
            if down or (lost and u in self.enters):
                tier = int(p.workloads.tier[part.workload]) + (0 if down else len(p.tiers))
                for i, r, *_ in self.loads.loads[u].reads_then:
                    found[i, r] = min(found.get((i, r), tier), tier)
        return found

    def _urgency(self, pair: Pair) -> tuple[int, bool, int, Pair]:
        """Copies for work that is down first, by tier; then those that let an old replica go, and large ones."""
        tier = self._tier_down.get(pair, 2 * len(self.moving.problem.tiers))
        return tier, not self.moving.outgoing_of[pair[0]], -self.moving.size_mb[pair[0]], pair

    def _copy(self) -> None:
        """Copy datasets as far as the day allows, and begin further copies."""
        for r, under_way in enumerate(self.transfers.under_way):
            for transfer in list(under_way):
                self._transfer(transfer)
            for pair in sorted(self.awake_copies[r], key=self._rank.__getitem__):
                if self.transfers.ingress[r] == 0 and self.moving.size_mb[pair[0]]:
                    break
                self._begin(pair)

    def _begin(self, pair: Pair) -> bool:
        """Begin the copy of a dataset; False if it must wait."""
        i, r = pair
        world, size = self.world, SHARE * self.moving.size_mb[i]
        if not world.may_begin(i, r) or (size and size > world.free[r] - self.reserved[r]):
            self.awake_copies[r].discard(pair)
            return False
        if size and self.transfers.ingress[r] == 0:
            return False
        sources = self.transfers.sources(i, r)
        if sources is None or (pair in self.moving.relays and any((i, q) in self._new for q, _ in sources)):
            return False
        self.copies.discard(pair)
        self.awake_copies[r].discard(pair)
        self._settled = True
        self._transfer(self.transfers.start(pair, sources))
        return True

    def _transfer(self, transfer: Transfer) -> None:
        """Copy as much of a dataset as the day still allows."""
        i, r = transfer.pair
        hop = not self.moving.plan.place[i, r]
        for source, kb in self.transfers.advance(transfer):
            self.steps.append(Step(self.day, 1, self.wave, i, r, source, kb, False, hop))
        if transfer.complete:
            self._due.append(lambda: self._copied(transfer))

    def _copied(self, transfer: Transfer) -> None:
        """Note that the copy of a dataset is complete."""
        self.transfers.release_sources(transfer)
        self._arrived(*transfer.pair)

    def _repeat(self, first: int) -> None:
        """Repeat a day: one of the migration that only went on with copies is like those after it, until one of them
        ends.
        """
        today = self.steps[first:]
        more = self.transfers.repeat(today)
        self.steps[first:] = [replace(step, days=1 + more) for step in today]
        self.day += more

    # where nothing can go on

    def _unstick(self, fresh: bool) -> bool:
        """Try steps of the migration that were put off, when nothing else moves; true if something did."""
        before = len(self.steps), len(self.runs)
        if fresh and self.transfers.yield_links(sorted(self.copies)):
            return True
        for kind, at, r in sorted(self._shy):
            self._shy.discard((kind, at, r))
            waits = (at, r) in self.deletes if kind == "delete" else at in self.enters
            if waits and (self._delete((at, r), shy=False) if kind == "delete" else self._enter(at, shy=False)):
                return self._end_wave(before)
        stops = sorted(self.ends)
        if stops and self.queue:
            self.queue[:] = [op for op in self.queue if op.kind != "stop" or op.at not in self.ends]
        stops = stops or list(self._next_stop())
        for u in stops:
            self._stop(u)
        self._settled |= bool(stops)
        return self._end_wave(before)

    def _next_stop(self) -> Sequence[int]:
        """The next work of the migration that stops: in its order, or the cheapest that lets others go on."""
        waits: set[object] = set()
        for n, op in enumerate(self.queue or ()):
            touched = self._touched(op)
            if op.kind == "stop" and not waits & touched:
                assert self.queue is not None
                del self.queue[n]
                return [op.at]
            waits |= touched
        may = self.may_stop - set(self.stopped)
        if not may:
            return ()
        head = self.queue[0] if self.queue else None
        copies = {(head.at, head.region)} if head and head.kind == "copy" else self.copies & self._rank.keys()
        deletes = {(head.at, head.region)} if head and head.kind == "delete" else self.deletes & self._free_deletes
        wanted = Stoppable(self.world, may, self.enters, copies, deletes, self.reserved, head is not None)
        return cheapest_stop(wanted)
