"""Objective terms that ``tetris`` takes into account. Imports no kernel, so that ``kind`` can say it."""

from collections.abc import Mapping

from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.data_placement.tetris.params import TetrisParams
from mast_opt.problems.search.interface import Pricing

_TERMS = (
    "peak",
    "overload",
    "idle",
    "remote",
    "copy",
    "storage",
    "moved_work",
    "retyped_work",
    "moved_items",
    "unserved",
)
_DOLLARS = ("egress", "running_cost", "migration_cost")
"""Terms that count what crosses links."""


def _unpriced(problem: DataPlacement, params: TetrisParams | None) -> Mapping[str, str]:
    """Links with a cost, where no MIP solver chooses the sources: the annealing does not price links."""
    p = problem
    if p.links is None or not p.links.price_usd_per_tb.any():
        return {}
    reads = len(p.reads)
    params = params or TetrisParams()
    links, regions = params.neighbourhoods.link_cells, params.completion.read_cells
    for count, most, what in ((len(p.links), links, "links"), (len(p.regions), regions, "regions")):
        if reads * count > most:
            words = (
                f"with prices of links up to {most:,} reads times {what} only, and this instance has {reads:,} reads "
                f"and {count:,} {what}"
            )
            return dict.fromkeys(_DOLLARS, words)
    return {}


TETRIS = Pricing(frozenset((*_TERMS, *_DOLLARS)), _unpriced)
