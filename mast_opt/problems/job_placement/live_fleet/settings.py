"""Settings of the live fleet (job placement), checked: placement, sampling, limits of searches."""

from __future__ import annotations

from mast_opt.core.arguments import a, a_whole, refuse
from mast_opt.problems.job_placement.engine.limits import LIMIT_RANGES, SAMPLING_RANGES, FillSampling, SearchLimits

PLACEMENTS = ("fragmentation", "best-fit")
"""Rules that decide between places that are equally close and equally priced."""


def sound_sampling(sampling: FillSampling) -> FillSampling:
    """The sampling, as it is. Raises UsageError for what is none, and for a number out of range."""
    a(FillSampling)("sampling", sampling)
    for name, (least, most) in SAMPLING_RANGES.items():
        a_whole(least, most)(f"sampling.{name}", getattr(sampling, name))
    return sampling


def sound_limits(limits: SearchLimits) -> SearchLimits:
    """The limits, as they are. Raises UsageError for what are none, and for a number out of range."""
    a(SearchLimits)("search_limits", limits)
    for name, (least, most) in LIMIT_RANGES.items():
        a_whole(least, most)(f"search_limits.{name}", getattr(limits, name))
    return limits


def by_loss(placement: str) -> bool:
    """Whether loss of value decides between servers. Raises UsageError for what is no placement."""
    if not isinstance(placement, str) or placement not in PLACEMENTS:
        raise refuse("placement", placement, "fragmentation or best-fit")
    return placement == PLACEMENTS[0]
