"""Limits of the search for victims (job-placement engine). Imports no kernel, so that parameters can name them."""

from __future__ import annotations

from typing import NamedTuple


class SearchLimits(NamedTuple):
    """How much is searched for the victims of one job; a bid found within these limits is proven to be the best."""

    nodes: int = 2_000
    """Nodes of the branch and bound over victims that lie on several servers, over all groups."""
    candidates: int = 60
    """Jobs on one server that are considered, the cheapest ones; at most 62, as a subset is the bits of one number."""
    subsets: int = 20_000
    """Subsets of the candidates of one server that are enumerated."""
    cells: int = 1 << 27
    """Servers times tasks of a gang: what is larger is not searched, lest memory run out."""


DEFAULT_LIMITS = SearchLimits()
