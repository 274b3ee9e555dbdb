"""How large work is, and from which size on the search goes about it differently.

Imports no kernel, so that ``kind`` can say it.
"""

import numpy as np

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
