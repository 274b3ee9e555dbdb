"""Migration plan, for every kind of problem: the way from today to a plan, step by step."""

from dataclasses import dataclass
from datetime import date

from mast_opt.core.dates import date_of
from mast_opt.core.summary import Summarised, Summary
from mast_opt.core.wording import listed, noticed, plain

COPIES = ("copy", "upload")
"""Actions of steps that may go on over several rows."""
OUTSIDE = "outside"
"""Source of data that no place holds today."""
COPIES_TO_MAKE = "Copies to make"
"""Title of what shows, between each two places, the copies of a plan; those of its steps where they are known."""


@dataclass(frozen=True)
class Move:
    """One step. Steps of the same wave may run at the same time, one wave after another."""

    wave: int
    """0, 1, …"""
    action: str
    """A verb: ``copy``, ``delete``, ``move``, ``stop``, ``start``, ``wait``, …"""
    what: str
    """Label of what it is done to."""
    source: str | None
    target: str | None
    """Place to which it goes. That of a ``stop`` or ``wait`` is where the work waits for GPUs, None where the plan does
    not serve it. Work that waited there starts with its own place as the source."""
    amount: float | None = None
    """Amount in ``unit``; for a copy over several days, the volume of each day."""
    day: int | None = None
    """0, 1, …; None where steps take no time that counts."""
    days: int = 1
    """Number of days in a row, from ``day`` on."""
    hop: bool = False
    """True: the target is a stopover that the plan does not name."""
    unit: str = ""
    """Unit of the amount; empty where steps have no amount."""
    share: float | None = None
    """Share of the workload that moves, stops or starts, up to 1."""
    gpu_type: str | None = None
    """GPU type on which such a workload runs afterwards, or ran before a stop; None for work without GPUs."""
    from_type: str | None = None
    """GPU type on which work that moves ran before; None for work without GPUs."""
    gpus_missing: float = 0.0
    """GPUs of the amount that such work does not get there once the plan is carried out; see ``Waiting``."""
    usd: float | None = None
    """USD for a copy, all of its days; None of other steps."""

    @property
    def origin(self) -> str | None:
        """Origin of a migration step in words, with the GPU type of work that runs there."""
        place = self._place(self.source, self.gpu_type if self.target is None else self.from_type)
        return f"waits: {place}" if self.action == "start" and place else place

    @property
    def destination(self) -> str | None:
        """Destination of a migration step in words, with the GPU type of work that will run there."""
        place = self._place(self.target, self.gpu_type)
        return f"waits: {place}" if self.action in ("stop", "wait") and place else place

    def _place(self, place: str | None, gpu_type: str | None) -> str | None:
        """Place of a migration step in words, with its GPU type."""
        if place is None or (self.gpu_type is None and self.from_type is None):
            return place
        return f"{place} {gpu_type or 'no GPU'}"


@dataclass(frozen=True)
class Stuck:
    """Something that does not get where the plan wants it, and what is in its way."""

    what: str
    target: str
    reason: str


@dataclass(frozen=True)
class Stopped:
    """Work that has to stop for a while because no order keeps all of it running, or that is down from the start."""

    what: str
    share: float
    """Share that stops, up to 1."""
    gpus: float
    """GPUs that it uses today."""
    day: int
    """0, 1, …"""
    days: int | None
    """Days until it starts again; 0 within a day. None where the plan refuses it, or has no GPUs for it."""
    lost: str | None = None
    """Region that is lost, of work that is down from the start; None for work that stops on the way."""
    tier: int | None = None
    """Tier of work that is down from the start."""
    waits_for: tuple[str, ...] = ()
    """Datasets copied to where such work starts, which it reads and starts after."""
    room_in: tuple[str, ...] = ()
    """Regions where such work waits for room, where it waits for no copy."""
    gpus_asked: float = 0.0
    """GPUs that such work asks for where it starts."""
    gpus_missing: float = 0.0
    """GPUs of these that it does not get; see ``Waiting``."""
    lost_data: tuple[str, ...] = ()
    """Datasets without any copy that such work reads."""

    @property
    def runs(self) -> bool:
        """Whether the work starts, and has GPUs."""
        return self.days is not None and (not self.gpus_missing or self.gpus_missing < self.gpus_asked)


@dataclass(frozen=True)
class Waiting:
    """Work that has no GPUs, or too few, once a plan is carried out: more important work takes them."""

    what: str
    tier: int
    region: str
    gpu_type: str
    gpus: float
    """GPUs that it asks for in this region, of this type."""
    missing: float
    """GPUs of these that it does not get."""
    day: int = 0
    """Day from which it waits; 0 for work that waits today."""
    until: int | None = None
    """Day on which it gets its GPUs; None where no plan has them for it."""


@dataclass(frozen=True)
class Got:
    """Work that waits for GPUs today, and gets them on the way to a plan."""

    what: str
    region: str
    """Region where it waits."""
    gpu_type: str
    day: int
    """Day on which it waits there no longer."""
    starts_in: str
    """Region where it then starts."""
    arriving: tuple[str, ...] = ()
    """Datasets copied there before, which it reads."""


@dataclass(frozen=True)
class RemoteRead:
    """Data that work in a region reads from other regions once a plan is carried out."""

    what: str
    region: str
    datasets: tuple[str, ...]
    sources: tuple[str, ...]
    share: float
    """Share of the workload that reads there, up to 1."""
    tb_a_day: float
    usd_a_day: float
    day: int = 0
    """Day from which it reads there; 0 for work that runs there today."""
    until: int | None = None
    """Day on which a later plan ends it; None where no plan does."""

    @property
    def usd(self) -> float | None:
        """USD until it ends; None where it does not."""
        return None if self.until is None else self.usd_a_day * (self.until - self.day)


@dataclass(frozen=True)
class OverAfter:
    """GPUs over the supply once the steps of a day are done."""

    day: int | None
    """None: today, before any step."""
    steps: int
    """Steps that begin on this day."""
    gpus: float


@dataclass(frozen=True, repr=False)
class Order(Summarised):
    """The moves in order."""

    moves: tuple[Move, ...]
    stuck: tuple[Stuck, ...] = ()
    """Moves that are left when nothing can move any more; empty where the moves lead to the plan."""
    relief: tuple[str, ...] = ()
    """Sentences on what would resolve, or did resolve, the deadlock of the plan's own moves."""
    unit: str = ""
    """Unit of the amounts of most moves."""
    proven: bool = True
    """False: a further search may find an order where this one is stuck, or a smaller relief."""
    stopped: tuple[Stopped, ...] = ()
    """Work that stops and starts again on the way, and work that is down from the start."""
    notes: tuple[str, ...] = ()
    """Sentences on how the order was made that the reader should know."""
    lost: str = ""
    """Sentences on data without any copy and the work that waits for it; empty without."""
    late: str = ""
    """Sentence on steps that take longer than they may, with what would mend it; empty where they do not."""
    begin: date | None = None
    """Date of the first day; None where days are only counted."""
    waiting: tuple[tuple[Waiting, ...], ...] = ()
    """Work without GPUs once each plan is carried out, one plan after another."""
    gets: tuple[Got, ...] = ()
    """Work that waits today and gets GPUs."""
    remote: tuple[RemoteRead, ...] = ()
    """Reads from other regions once the plans are carried out, and those of a plan that a later one ends."""
    over_after: tuple[OverAfter, ...] = ()
    """GPUs over the supply today and after each day with steps; empty where there are none over it, or no days."""

    def _summary(self) -> Summary:
        """Summary of the order of moves."""
        facts = [("moves", f"{len(self.moves):,}"), ("waves", f"{self.waves:,}")]
        facts += [] if self.days is None else [("days", f"{self.days:,}")]
        facts += [("stuck", f"{len(self.stuck):,}")] if self.stuck else []
        rows = tuple(
            (
                f"{move.wave + 1}",
                move.action,
                move.what,
                move.origin or "",
                move.destination or "",
                "" if move.amount is None else f"{plain(move.amount)} {move.unit}".rstrip(),
            )
            for move in self.moves
        )
        return Summary("Order", tuple(facts), ("wave", "step", "what", "from", "to", "amount"), rows)

    @property
    def waves(self) -> int:
        """Number of waves of a migration plan."""
        return max((move.wave + 1 for move in self.moves), default=0)

    @property
    def days(self) -> int | None:
        """Days that a migration plan's moves take; None where they take no time that counts."""
        ends = [move.day + move.days for move in self.moves if move.day is not None]
        return max(ends, default=None)

    @property
    def usd(self) -> float | None:
        """USD that a migration plan's copies cost; None without any."""
        paid = [move.usd for move in self.moves if move.usd is not None]
        return sum(paid) if paid else None

    @property
    def price(self) -> str:
        """Price of a migration plan's copies in words; empty where they cost nothing."""
        return f"Copies cost {self.usd:,.0f} USD" if self.usd and noticed(self.usd, "usd") else ""

    @property
    def copied(self) -> dict[tuple[str, str], dict[str, float]]:
        """(from, to) → what a migration plan copies between the two → the amount of all its days."""
        copied: dict[tuple[str, str], dict[str, float]] = {}
        for move in self.moves:
            if move.action in COPIES and move.target is not None:
                each = copied.setdefault((move.source or OUTSIDE, move.target), {})
                each[move.what] = each.get(move.what, 0.0) + (move.amount or 0.0) * move.days
        return copied

    @property
    def free_day(self) -> int:
        """First day on which further copies can begin: work moves at once, copies take the whole of their days."""
        return max(
            (move.day + move.days * (move.action in COPIES) for move in self.moves if move.day is not None), default=0
        )

    def date_of(self, day: int | None) -> str | None:
        """ISO date of a day of the steps; None without one, or where days are only counted."""
        return date_of(self.begin, day)

    @property
    def last_date(self) -> str | None:
        """ISO date of the day on which the last step ends; None where days are only counted."""
        return self.date_of(None if self.days is None else self.days - 1)


def waits_for(one: Stopped) -> str:
    """Words on the copies or room that work which is down waits for; empty where it starts at once or is refused."""
    if one.lost_data:
        return f"{listed(one.lost_data)}: no copy left"
    copies = f"copies of {', '.join(one.waits_for)}" if one.waits_for else ""
    return copies or (f"room in {', '.join(one.room_in)}" if one.room_in else "")
