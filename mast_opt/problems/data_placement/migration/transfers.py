"""Copies under way in a data-placement migration, and what each day still lets them take of ingress and links."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mast_opt.problems.data_placement.migration.replica_moves import Moving, Pair, Sources
from mast_opt.problems.data_placement.migration.state import MigrationState
from mast_opt.problems.data_placement.migration.steps import Step
from mast_opt.problems.data_placement.problem import SHARE


@dataclass
class Transfer:
    """A copy under way."""

    pair: Pair
    left_kb: dict[int | None, int]
    """Volume still to come from each source."""

    @property
    def complete(self) -> bool:
        """Whether all of a copied dataset has arrived."""
        return not any(self.left_kb.values())


class Transfers:
    """All copies under way, with the budgets of the day. Volumes are in thousandths of a MB."""

    def __init__(self, moving: Moving, world: MigrationState) -> None:
        self.moving = moving
        self.world = world
        self.under_way: list[list[Transfer]] = [[] for _ in moving.problem.regions.labels]
        """[R] copies into each region."""
        self.ingress: list[int | None] = list(moving.ingress_kb)
        """[R] what may still arrive today; None without a limit."""
        self._peak: dict[Pair, int] = {}
        """(source, region) → the most that reads took of the link at any time of the day."""
        self._yielded = False

    def copy(self, world: MigrationState) -> "Transfers":
        """Duplicate of these transfers of datasets that belongs to a copy of the state."""
        twin = Transfers(self.moving, world)
        twin.under_way = [[Transfer(one.pair, dict(one.left_kb)) for one in into] for into in self.under_way]
        twin.ingress, twin._peak, twin._yielded = list(self.ingress), dict(self._peak), self._yielded
        return twin

    def begin_day(self) -> None:
        """Renew the day's budgets for copies of ingress and links."""
        self.ingress = list(self.moving.ingress_kb)
        self._peak = {}
        self._yielded = False
        if self.world.remote is not None:
            self.world.remote.copied = {}

    # single copies

    def sources(self, i: int, r: int) -> Sources | None:
        """Sources of a dataset's copy: as planned, else the region from where most can be copied today. None: not
        today, as for a patient copy whose planned links are taken by other copies.
        """
        sources = self.moving.sources(i, r, self.world.held[i])
        if self.world.remote is None or not sources or not self.moving.size_mb[i]:
            return sources
        if all(self._room(q, r) > 0 for q, _ in sources):
            return sources
        if self.moving.patient and sources == self.moving.planned.get((i, r)):
            copied = self.world.remote.copied
            if all(self._room(q, r) + copied.get((q, r), 0) > 0 for q, _ in sources):
                return None
        widest = max(self.world.held[i], key=lambda q: (self._room(q, r), -q))
        return ((widest, SHARE),) if self._room(widest, r) > 0 else None

    def start(self, pair: Pair, sources: Sources) -> Transfer:
        """Begin the copy of a dataset; nothing of it is copied yet."""
        i, r = pair
        size = self.moving.size_mb[i]
        self.world.begin(i, r)
        left: dict[int | None, int] = {q: size * share for q, share in sources} if sources else {None: SHARE * size}
        for q in left:
            self._hold(i, q)
        self.under_way[r].append(Transfer(pair, left))
        return self.under_way[r][-1]

    def advance(self, transfer: Transfer) -> list[tuple[int | None, int]]:
        """Copy as much of a dataset as the day still allows, and return (source, volume) of each part. A copy that is
        complete is no longer under way.
        """
        (i, r), remote = transfer.pair, self.world.remote
        size = self.moving.size_mb[i]
        made = []
        for source, wanted in transfer.left_kb.items():
            amount, ingress = wanted, self.ingress[r]
            if ingress is not None:
                amount = min(amount, ingress)
            if remote is not None and source is not None:
                amount = min(amount, max(self._room(source, r), 0))
            if amount > 0 or not size:
                if ingress is not None:
                    self.ingress[r] = ingress - amount
                if remote is not None and source is not None and amount:
                    remote.copied[source, r] = remote.copied.get((source, r), 0) + amount
                transfer.left_kb[source] = wanted - amount
                made.append((source, amount))
        if transfer.complete:
            self.under_way[r].remove(transfer)
        return made

    def release_sources(self, transfer: Transfer) -> None:
        """Release the sources of a dataset's copy: they may be deleted again."""
        for q in transfer.left_kb:
            self._release(transfer.pair[0], q)

    def repeat(self, today: Sequence[Step]) -> int:
        """Number of the migration's days like today until one of the copies ends; their volume is taken off."""
        left = {transfer.pair: transfer.left_kb for into in self.under_way for transfer in into}
        more = min((left[step.dataset, step.region][step.source] - 1) // step.kb for step in today)
        for step in today if more > 0 else ():
            left[step.dataset, step.region][step.source] -= more * step.kb
        return max(more, 0)

    def _hold(self, i: int, q: int | None) -> None:
        """Keep a source of a copy: its replica may not be deleted."""
        if q is not None:
            self.world.sending[i, q] = self.world.sending.get((i, q), 0) + 1

    def _release(self, i: int, q: int | None) -> None:
        """Release a source of a dataset's copy."""
        sending = self.world.sending
        if q is not None:
            sending[i, q] -= 1
            if not sending[i, q]:
                del sending[i, q]

    # links

    def _room(self, q: int, r: int) -> int:
        """Volume of data that may still be copied over a link today: reads keep what they took at any time
        of the day.
        """
        remote = self.world.remote
        assert remote is not None
        used = max(remote.used[r].get(q, 0), self._peak.get((q, r), 0))
        return remote.link_kb.get((q, r), 0) - used - remote.copied.get((q, r), 0)

    def note_peaks(self) -> None:
        """Remember what remote reads take of the links now."""
        remote = self.world.remote
        if remote is not None:
            for r, used in enumerate(remote.used):
                for q, amount in used.items():
                    self._peak[q, r] = max(self._peak.get((q, r), 0), amount)

    def yield_links(self, waiting: Iterable[Pair]) -> bool:
        """Let remote reads without another way give up links to copies, or reroute copies, once a day; true if anything
        changed.

        Args:
            waiting: (dataset, region) of copies still to begin, in order.
        """
        remote, world = self.world.remote, self.world
        if remote is None or self._yielded:
            return False
        self._yielded, moved = True, False
        for transfer in [transfer for into in self.under_way for transfer in into]:
            i, r = transfer.pair
            for q in [q for q, left in transfer.left_kb.items() if left and q is not None]:
                other = next((one for one in sorted(world.held[i]) if one != q and self._room(one, r) > 0), None)
                if other is not None:
                    if other not in transfer.left_kb:
                        self._hold(i, other)
                    transfer.left_kb[other] = transfer.left_kb.get(other, 0) + transfer.left_kb[q]
                    del transfer.left_kb[q]
                    self._release(i, q)
                    moved = True
                else:
                    moved |= self._make_room(q, r)
        waiting_into: dict[int, list[Pair]] = defaultdict(list)
        for i, r in waiting:
            waiting_into[r].append((i, r))
        for r, pairs in waiting_into.items():
            for i, _ in pairs:
                if world.may_begin(i, r) and any(self._make_room(q, r) for q in sorted(world.held[i])):
                    moved = True
                    break
        return moved

    def _make_room(self, q: int, r: int) -> bool:
        """Move remote reads of a migration off a link to make room for a copy; False if none can."""
        remote = self.world.remote
        assert remote is not None
        moved = remote.make_room(q, r, self.world.held)
        if moved:
            self._peak = {}
            self.note_peaks()
        return moved
