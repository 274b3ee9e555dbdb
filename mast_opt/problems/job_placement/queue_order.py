"""Queue order of job placement: tier, then credit, then age; work over quota behind all other work."""

from __future__ import annotations

import numpy as np

from mast_opt.problems.job_placement.units import Ints


def rank(tier: Ints, credit_milli: Ints, submitted_ms: Ints) -> Ints:
    """Positions in queue order: lowest tier number, then most credit, then oldest, then as listed."""
    return np.lexsort((submitted_ms, -credit_milli, tier)).astype(np.int64)
