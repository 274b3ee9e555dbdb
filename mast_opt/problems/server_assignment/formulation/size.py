"""Size of the server-assignment MIP before it is built, counted by type instead of by stock."""

import numpy as np

from mast_opt.problems.mip.size import Size
from mast_opt.problems.server_assignment.problem import SHARED, ServerAssignment


def size(problem: ServerAssignment) -> Size:
    """Exact but for rows that only a limit which today breaks asks for: all of those are counted."""
    p, stocks = problem, problem.stocks
    reservations, boards, affinities = len(p.reservations), len(p.switchboards), len(p.affinities)
    types = len(p.types)
    per_type = np.bincount(p.servers.type[stocks.first], minlength=types)
    worth = p.reservations.value_mrru > 0
    pairs = worth @ per_type
    """[Q] stocks that are worth something to the reservation, or that it has today."""
    owned = np.flatnonzero(p.owned)
    today = np.unique(np.stack([stocks.of[owned], p.servers.owner[owned]]), axis=1)
    useless = ~worth[today[1], p.servers.type[stocks.first[today[0]]]]
    np.add.at(pairs, today[1, useless], 1)
    held = today.shape[1]
    kinds = len(np.unique(np.stack([stocks.of[owned], p.servers.owner[owned], p.servers.in_use[owned]]), axis=1)[0])
    every = int(pairs.sum())
    counted = p.buffered | ((p.reservations.buffer == SHARED) & (p.pool is not None))
    buffered, limited = int(p.buffered.sum()), int(p.reservations.spread_limited.sum())
    excess = limited * boards
    return Size.of(
        {
            "n": every,
            "left": kinds,
            "short": reservations,
            "largest": buffered,
            "excess": excess,
            "slack": affinities,
        },
        {
            "once": (len(stocks), every),
            "stays": (held, held + kinds),
            "survive": (reservations, every + buffered + reservations),
            "loss": (buffered * boards, int(pairs[counted].sum()) + buffered * boards),
            "spread": (excess, int(pairs[p.reservations.spread_limited].sum()) + excess),
            "affinity": (2 * affinities, 2 * int(pairs[p.affinities.reservation].sum()) + 2 * affinities),
            "no_worse": (reservations + excess + affinities, reservations + excess + affinities),
        },
    )
