"""Simulated network: copies of datasets, within what regions take in and what links carry in a day."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.commands import Copy

DAY_MS = 86_400_000
"""Also how often progress is reported."""


@dataclass(slots=True)
class _Transfer:
    copy: Copy
    left: int
    """MB · ``DAY_MS``: it falls by the rate in MB a day times ms."""
    rate_mb_per_day: int | None = 0
    """None: no limit."""

    @property
    def copied_mb(self) -> int:
        """MB of a dataset that a transfer of the simulated network has copied so far."""
        return self.copy.size_mb - -(-self.left // DAY_MS)


class SimulatedNetwork:
    """Copies in virtual time. The copy that was asked first takes what its link and its region have; the next ones get
    what is left. Copies from and to regions that are down wait.

    Args:
        ingress_mb_per_day: region → the most that copies bring in; a region that is not listed has no limit.
        links: (source, target) → MB a day; None: any region reaches any other, without a limit.
    """

    def __init__(
        self, ingress_mb_per_day: Mapping[str, int], links: Mapping[tuple[str, str], int] | None = None
    ) -> None:
        self._ingress, self._links = dict(ingress_mb_per_day), links
        self._transfers: dict[tuple[str, str], _Transfer] = {}
        """(dataset, target) → transfer, in the order in which they were asked."""
        self._by_target: defaultdict[str, dict[str, _Transfer]] = defaultdict(dict)
        """Target → dataset → transfer, in the same order."""
        self._links_to: defaultdict[str, dict[tuple[str, str], int]] = defaultdict(dict)
        for pair, limit in (links or {}).items():
            self._links_to[pair[1]][pair] = limit
        self._free_ingress, self._free_links = dict(self._ingress), dict(links or {})
        self._moving: list[_Transfer] = []
        """Those that have a rate, no limit, or nothing left."""
        self._down: frozenset[str] = frozenset()
        self._at_ms = 0

    def next_ms(self) -> int | None:
        """Time when the simulated network's next report is due; None if none is."""
        ends = [
            self._at_ms + (0 if transfer.rate_mb_per_day is None else -(-transfer.left // transfer.rate_mb_per_day))
            for transfer in self._moving
            if transfer.rate_mb_per_day != 0
        ]
        return min([*ends, (self._at_ms // DAY_MS + 1) * DAY_MS]) if ends else None

    def begin(self, now_ms: int, copy: Copy) -> None:
        """Begin a copy of a dataset over the simulated network."""
        self._advance(now_ms)
        transfer = _Transfer(copy, copy.size_mb * DAY_MS)
        if self._transfers.setdefault((copy.dataset, copy.region), transfer) is transfer:
            self._by_target[copy.region][copy.dataset] = transfer
            self._give(transfer)
            if transfer.rate_mb_per_day != 0 or not transfer.left:
                self._moving.append(transfer)

    def set_down(self, now_ms: int, regions: Collection[str]) -> None:
        """Set the regions that are down in the simulated network; all others are up."""
        self._advance(now_ms)
        if self._down != regions:
            self._down = frozenset(regions)
            self._share(self._by_target)

    def reports(self, now_ms: int) -> list[ev.Event]:
        """Simulated copies that have ended, and at the end of each day how far the others are."""
        self._advance(now_ms)
        ended = [transfer for transfer in self._moving if not transfer.left or transfer.rate_mb_per_day is None]
        reports: list[ev.Event] = [ev.CopyEnded(one.copy.dataset, one.copy.region) for one in ended]
        if ended:
            for one in ended:
                del self._transfers[one.copy.dataset, one.copy.region]
                del self._by_target[one.copy.region][one.copy.dataset]
            self._share({one.copy.region for one in ended})
        if now_ms % DAY_MS == 0:
            reports += [
                ev.CopyProgress(one.copy.dataset, one.copy.region, one.copied_mb)
                for one in self._transfers.values()
                if one.copied_mb
            ]
        return reports

    def _advance(self, now_ms: int) -> None:
        """Advance all transfers of the simulated network to a time."""
        passed, self._at_ms = now_ms - self._at_ms, now_ms
        for transfer in self._moving:
            if transfer.rate_mb_per_day:
                transfer.left = max(0, transfer.left - transfer.rate_mb_per_day * passed)

    def _share(self, targets: Iterable[str]) -> None:
        """Share the ingress of these regions of the simulated network, and the links to them, among the transfers
        there, in order."""
        for target in targets:
            if target in self._ingress:
                self._free_ingress[target] = self._ingress[target]
            self._free_links |= self._links_to.get(target, {})
            for transfer in self._by_target[target].values():
                self._give(transfer)
        self._moving = [one for one in self._transfers.values() if one.rate_mb_per_day != 0 or not one.left]

    def _give(self, transfer: _Transfer) -> None:
        """Give a transfer of the simulated network what those before it leave."""
        pair, ingress = (transfer.copy.source, transfer.copy.region), self._free_ingress
        limits = [ingress[pair[1]]] if pair[1] in ingress else []
        limits += [] if self._links is None else [self._free_links.get(pair, 0)]
        rate = 0 if self._down.intersection(pair) else min(limits, default=None)
        transfer.rate_mb_per_day = rate
        if rate and pair[1] in ingress:
            ingress[pair[1]] -= rate
        if rate and self._links is not None:
            self._free_links[pair] -= rate
