"""Parameters of ``tetris``: size thresholds and proposal probabilities of the operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.data_placement.problem import Ints

MANY = 2_000
"""Workloads from which on sweeps come before the annealing."""
FINE = 0.1
"""Share of a region's GPUs that a gang may take for sweeps to come first: larger ones stay where they are at prices."""

LINKED = 1_000_000
"""Reads times links up to which neighbourhoods are better than more annealing."""
SETTLED = 3_000_000
"""Reads times regions up to which the sources of reads and copies are chosen by a MIP solver."""


def usual_share(needs: Ints, limits: Ints) -> float:
    """What the work that takes the usual unit of a resource takes of a region's, on average over regions with any."""
    taken, given = needs.astype(np.float64), limits[limits > 0]
    return float((taken**2).sum() / max(taken.sum(), 1.0) / given.mean()) if len(given) else 0.0


SHARES = {"move": 0.5, "twins": 0.19, "swap": 0.14, "compound_move": 0.04, "compound_swap": 0.2}
"""How often each kind of change is tried, in proportion."""
MOVE, TWINS, SWAP, COMPOUND_MOVE = range(4)
GUIDED_TWINS = 0.4
"""Share of exchanges of twins where they are guided, which makes each of them worth more."""


class OperatorWeights(NamedTuple):
    """What the kernels try."""

    upto: FloatArray
    """[5] cumulative shares of the kinds of change, scaled to 1."""
    guided: bool
    """Are moves and exchanges of twins guided by where the data is? See ``surrogate``."""


def operator_weights(shares: Mapping[str, float] = SHARES, guided: bool = False) -> OperatorWeights:
    """The mix of some shares. A share of 0 switches a kind of change off."""
    amounts = np.cumsum([shares[name] for name in SHARES])
    return OperatorWeights(np.asarray(amounts / amounts[-1], np.float64), guided)


def shares_for(remote_reads: bool, guided: bool = False) -> dict[str, float]:
    """The shares for a problem; compound moves are worth their time only where work cannot leave its data."""
    shares = SHARES | {"twins": GUIDED_TWINS} if guided else dict(SHARES)
    return shares | {"compound_move": 0.0, "compound_swap": 0.0} if remote_reads else shares
