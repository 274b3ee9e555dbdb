"""Parameters of the policy ``mast``, and the values that they may have."""

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass

from mast_opt.core.errors import UsageError
from mast_opt.core.ranks import Reclaim
from mast_opt.live.policies.easy import BACKFILLS, BY_SUBMISSION
from mast_opt.live.policies.whole_servers import NEVER, PACKINGS

SCOPES = ("global", "region")
BINDINGS = (LATE, FREE, SHARE, HOME, COPY) = ("late", "free", "share", "home", "copy")
SHARINGS = (CREDIT, FAIR) = ("credit", "fair")
WITHOUT_LIMITS = (PASS, HOLD) = ("pass", "hold")
MAKE_ROOM_OF = (PREEMPTIBLE, ALL) = ("preemptible", "all")
CHOICES: Mapping[str, tuple[str, ...]] = {
    "scope": SCOPES,
    "bind": BINDINGS,
    "pack": PACKINGS,
    "without_limits": WITHOUT_LIMITS,
    "make_room_of": MAKE_ROOM_OF,
    "backfill": BACKFILLS,
    "reclaim": tuple(Reclaim),
    "sharing": SHARINGS,
}
"""Parameter → its values."""


@dataclass(frozen=True)
class MastParams:
    """Parameters of ``mast``.

    Args:
        scope: ``global``: one queue, and the best bid of all regions; ``region``: jobs run in their home region only.
        runner_up: record the key of the best bid of another region with every placement; it takes a search of each
            region.
        bind: ``late``: a job runs where it first fits; ``free`` or ``share``: when it comes, it is bound to the region,
            of those that hold its data and are large enough, with the most GPUs that nobody has asked for, or the
            largest share of them; ``home``: to its home region; ``copy``: to that with the largest share left, and what
            it lacks of the job's data is copied there.
        age_s: how old the loads are by which jobs are bound; 0 for those of now.
        pack: when a job that takes a part of a server leaves those alone that gangs could have whole: ``never``,
            ``same-tier`` (if another one has room, at the expense of no more important work) or ``always`` (if another
            one has room).
        reserve: one reservation a region, for the first job that does not fit; it matters where jobs have limits.
        without_limits: what becomes of such a job where limits do not say when it fits: ``pass``: others pass it;
            ``hold``: after ``hold_after_s`` of waiting, the servers that it needs are kept for it.
        hold_after_s: see there.
        make_room_after_s: a gang that has a reservation and has waited for so long stops smaller jobs that are as
            important as it is and run on one server each; they start again elsewhere. 0 for never.
        make_room_of: ``preemptible``: only those that may be stopped for more important work stop so; ``all``: the
            others too.
        make_room_share: they hold at most this share of what the gang asks for.
        backfill: order of the jobs that do not hold it: ``submission`` or ``shortest-limit``.
        promote_after_s: each time that a job has waited for so long, it counts as of the next more important tier for
            its place in the queue, though not for what it may stop; 0 for never. Work over its quota does not.
        reclaim: which work within its quota may stop work that borrows: ``any``; ``lower-priority``: only more
            important work; ``never``: none that could not stop it if its quota covered it.
        sharing: of equally important work, whose goes first: ``credit``: of the tenant that left most of its quota
            unused in seven days; ``fair``: of the tenant, and first of the group of tenants, that holds the least
            beyond its quota, as a part of what its siblings own.
        half_life_s: of a tenant's use for ``fair``, which counts instead of what it holds beyond its quota now; 0 for
            now. Uses are known by the day, for seven days.
        weights: of tenants and groups for ``fair``, such as ``lab:2,shop:0.5``; 1 for others.
    """

    scope: str = "global"
    runner_up: bool = False
    bind: str = "late"
    age_s: int = 0
    pack: str = NEVER
    reserve: bool = True
    without_limits: str = PASS
    hold_after_s: int = 96 * 3600
    make_room_after_s: int = 0
    make_room_of: str = PREEMPTIBLE
    make_room_share: float = 0.5
    backfill: str = BY_SUBMISSION
    promote_after_s: int = 0
    reclaim: str = Reclaim.ANY.value
    sharing: str = CREDIT
    half_life_s: int = 0
    weights: str = ""

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise UsageError(f"{name} is {getattr(self, name)!r}; expected one of {', '.join(choices)}")
        for name in ("age_s", "hold_after_s", "make_room_after_s", "promote_after_s", "half_life_s"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} is {getattr(self, name)}; expected at least 0")
        if not 0 <= self.make_room_share <= 1:
            raise UsageError(f"make_room_share is {self.make_room_share}; expected 0 to 1")
        if self.sharing == CREDIT and (self.half_life_s or self.weights):
            raise UsageError(f"sharing is {CREDIT!r}; expected {FAIR} with half_life_s or weights")
        self.weight_of()
        if self.runner_up and self.pack != NEVER:
            raise UsageError(f"pack is {self.pack!r}; expected {NEVER} with runner_up, which takes the best bid")

    def weight_of(self) -> dict[str, float]:
        """Weights of tenants and groups. Raises UsageError for text that states none."""
        found: dict[str, float] = {}
        for name, _, text in (item.rpartition(":") for item in self.weights.split(",") if item):
            try:
                found[name] = float(text)
            except ValueError:
                found[name] = 0.0
            if not name or not 0 < found[name] < math.inf:
                raise UsageError(f"weights is {self.weights!r}; expected TENANT:WEIGHT,…, with numbers above 0")
        return found

    def weights_of_nobody(self, known: Container[str]) -> str:
        """Words on the weights of tenants and groups that are not among the known ones; empty where there are none."""
        unknown = [name for name in self.weight_of() if name not in known]
        return f"weights names {', '.join(unknown)}, and no tenant or group is called so" if unknown else ""
