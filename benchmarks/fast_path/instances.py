"""The batches of the study, as seeds of the generator's family ``study``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.generate import FAMILIES

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Batches:
    """Instances of one size and fill: those of the first seeds that have what is required."""

    name: str
    sizes: Sizes
    wanted: int
    """Instances with a proven optimum that admits between 1/1.5 and 1/1.1 of the GPUs that are asked for."""
    limit_s: float = 60.0
    """For the exact solver, on each."""
    first_seed: int = 0

    def generate(self, seed: int) -> JobPlacement:
        problem: JobPlacement = FAMILIES["study"].generate(np.random.default_rng(seed), **self.sizes)
        return problem


def _sizes(regions: int, clusters: int, servers: int, fill_percent: int) -> Sizes:
    return {"regions": regions, "clusters": clusters, "servers": servers, "fill_percent": fill_percent}


BATCHES = (
    *(Batches(f"30 servers, {fill}% full", _sizes(3, 2, 5, fill), 15) for fill in (90, 95, 98)),
    *(Batches(f"60 servers, {fill}% full", _sizes(3, 2, 10, fill), 40) for fill in (90, 92, 95, 98)),
    *(Batches(f"120 servers, {fill}% full", _sizes(4, 3, 10, fill), 30) for fill in (90, 95, 98)),
    *(Batches(f"240 servers, {fill}% full", _sizes(4, 4, 15, fill), 16, 120.0) for fill in (90, 95)),
    Batches("300 servers, 90% full", _sizes(4, 5, 15, 90), 8, 240.0),
)
HELD_OUT = (
    Batches("held out: 60 servers, 95% full", _sizes(3, 2, 10, 95), 40, first_seed=10_000),
    Batches("held out: 120 servers, 90% full", _sizes(4, 3, 10, 90), 20, first_seed=10_000),
)
"""Seeds that nothing was tuned on."""
FILLS = (80, 84, 88, 92, 96, 98, 100)
"""Percent of the GPUs that are held when the queue arrives, for exhaustive search against early binding."""
FILL_SEEDS = 120


def filling(fill: int, seed: int) -> JobPlacement:
    """A fleet of about 240 servers, and a queue that does not depend on how full it is."""
    sizes = {"regions": 4, "clusters": 4, "servers": 15, "jobs": 60, "fill_percent": fill}
    problem: JobPlacement = FAMILIES["standard"].generate(np.random.default_rng([seed, fill]), **sizes)
    return problem
