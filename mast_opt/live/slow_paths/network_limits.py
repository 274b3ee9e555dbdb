"""Limits of the network of regions for a day."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class NetworkLimits:
    """MB that copies may take in a day.

    Args:
        ingress_mb_per_day: region → the most that copies bring in; a region that is not listed has no limit.
        links: (source, target) → what the link carries; None: any region reaches any other, without a limit.
    """

    ingress_mb_per_day: Mapping[str, int] = field(default_factory=dict)
    links: Mapping[tuple[str, str], int] | None = None

    def total_mb_per_day(self, regions: tuple[str, ...]) -> int | None:
        """Volume that all regions of a data plan together can take in a day; None if there is no limit."""
        if self.links is not None:
            return sum(self.links.values())
        if any(region not in self.ingress_mb_per_day for region in regions):
            return None
        return sum(self.ingress_mb_per_day[region] for region in regions)
