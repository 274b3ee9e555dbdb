"""Fleet state of the job-placement engine: what is free on every server, for each tier, and who holds the rest.

The ledger has a column for each tier: ``slack[…, p]`` is what all work of tier p and less important work together
may still take, that is free + Σ_{victims of tier > p} held − Σ_{placed jobs of tier ≥ p} needs, exactly the slack of
the model's capacity and device rows. A job of tier q counts in the columns 0 … q, so what it may take is the least
of these; those minima stand in arrays of their own, laid out by tier so that a search reads them in one go.

Few arrays with a first axis of fields, rather than one array a field: the compiler's time grows with the number of
arrays that a function is handed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.by_reference import by_reference
from mast_opt.problems.job_placement.units import Ints

Small = NDArray[np.int32]

VICTIM = 1 << 16
"""A cost is GPU-hours lost (in thousandths) · VICTIM + victims, so that fewer victims decide between equal hours."""
MOST_HOURS = 10**9
"""More GPU-hours count as so many."""
ROUND_OFF = 4
"""Decimals of a thousandth of a GPU-hour that count; 1.001 hours times a thousand are not quite 1001."""
HOUR_MS = 3_600_000
LEVELS = 4
"""A bid's value is its cost · LEVELS + its excess level, so that levels decide between equal costs."""
NEVER = 1 << 62
"""More than any value."""

NO_PLACE = (1 << 31) - 1
"""More than any loss of value: the job does not fit."""

VALUE_DIRTY = 1 << 62
ALL_DIRTY = (1 << 63) - 1
"""All slots and the value."""


@by_reference
class EngineState(NamedTuple):
    """State of a fleet in the engine, as arrays that the kernels read and change.

    S servers by position, D GPUs at most, P tiers, G groups, R regions; V places for running jobs and A for their
    allocations.
    """

    server: Ints
    """[8, S]"""
    group: Ints
    """[4, G + 1]"""
    region: Ints
    """[4, R + 1]"""
    slack: Ints
    """[2, S, P] millicores and MiB."""
    slack_device: Small
    """[S, D, P] milli-GPUs."""
    room: Ints
    """[4, P, S]"""
    reclaim: Ints
    """[5, P + 1, S]"""
    total: Ints
    """[3, P + 1, G]"""
    job: Ints
    """[11, V]"""
    row: Ints
    """[8, A]"""
    row_device: Small
    """[A, D] milli-GPUs of each GPU that an allocation holds."""
    free_places: Ints
    """Numbers of free places and the other counts, [4]."""
    sample: Ints
    """[K, L, T + 3] draws of arrivals (``fill_value``): milli-GPUs of a task on each type (−1 where it may not run),
    millicores, MiB, tasks. No sample: no server has a value."""
    demand: Ints
    """[N, T + 4] shapes of arrivals (``arrival_mix.Arrivals``): as a draw, and what room for a
    milli-GPU of theirs is worth, in thousandths."""
    memo: Ints
    """[M, 2] hash of a server's free capacity, and its value."""
    loss: Small
    """[slots, S] what the request of a slot loses on a server."""
    slot: Ints
    """[slots, T + 5] when it was last used; the request: milli-GPUs on each type, millicores, MiB, tasks, tier."""
