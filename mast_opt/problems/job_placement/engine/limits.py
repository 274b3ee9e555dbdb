"""Limits of searches and settings of placement (job-placement engine): counts, never times. Imports no kernel, so that
parameters can name them.
"""

from typing import NamedTuple

from mast_opt.core.arguments import a, a_whole, refuse


class SearchLimits(NamedTuple):
    """Limits on the search for the victims of one job; a bid found within these limits is proven to be the best."""

    nodes: int = 2_000
    """Nodes of the branch and bound over victims that lie on several servers, over all groups."""
    candidates: int = 60
    """Jobs on one server that are considered, the cheapest ones; at most 62, as a subset is the bits of one number."""
    subsets: int = 20_000
    """Subsets of the candidates of one server that are enumerated."""
    cells: int = 1 << 27
    """Servers times tasks of a gang: what is larger is not searched, lest memory run out."""
    work: int = 50_000
    """Subsets that are enumerated, and servers times tasks of every node, in all. Each server gets an equal share of
    the subsets, at least one for each candidate; once all is spent, the best set so far is taken. No job is refused for
    it: it may stop more than needed, and its bid is not proven."""


class FillSampling(NamedTuple):
    """How the value of a server's free capacity is estimated from the mix of arrivals (``fill_value``)."""

    samples: int = 16
    """Sequences of arrivals; with more, values are less noisy and each new state of a server costs more."""
    draws: int = 24
    """Arrivals of a sequence; enough to fill a server. With 16, pods that take parts of GPUs do not."""
    scarcity_percent: int = 20
    """Weight of room for the next arrival, more where few servers could hold it, against what a sequence takes. On the
    lists of FGD, 0 refuses jobs of whole servers long before the fleet is full (86.8 instead of 90.0% allocated at 90%
    asked), and 20 costs 0.1 points where more is asked for than there is."""
    shapes: int = 512
    """Shapes of jobs that are counted, by the algorithm of Misra and Gries."""
    growth_percent: int = 150
    """Samples are drawn again when so many percent of the arrivals of the last time have come."""
    window: int = 65_536
    """Number of arrivals after which all counts are halved, so that old ones fade."""
    slots: int = 48
    """Requests whose losses a fleet keeps for every server, the most recent ones; at most 62."""
    memo: int = 1 << 15
    """Values of states of servers that are kept."""


DEFAULT_SAMPLING = FillSampling()
SAMPLING_RANGES = {
    "samples": (1, 4096),
    "draws": (1, 4096),
    "scarcity_percent": (0, 1_000),
    "shapes": (1, 1 << 20),
    "growth_percent": (101, 100_000),
    "window": (1, 1 << 40),
    "slots": (0, 62),
    "memo": (1, 1 << 24),
}
"""Field of ``FillSampling`` → its least and greatest value."""
DEFAULT_LIMITS = SearchLimits()
LIMIT_RANGES = {
    "nodes": (1, 1 << 40),
    "candidates": (1, 62),
    "subsets": (1, 1 << 40),
    "cells": (1, 1 << 40),
    "work": (1, 1 << 40),
}
"""Field of ``SearchLimits`` → its least and greatest value."""


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
