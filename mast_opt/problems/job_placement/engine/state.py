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
LEVELS = 4
"""A bid's value is its cost · LEVELS + its excess level, so that levels decide between equal costs."""
NEVER = 1 << 62
"""More than any value."""

NO_PLACE = (1 << 31) - 1
"""More than any loss of value: the job does not fit."""

S_GROUP, S_RACK, S_DEVICES, S_BLOCKED, S_ROW, S_VALUE, S_DIRTY, S_SIZE = range(8)
"""Columns of a server: group, rack, devices, 1 if it takes no work, first allocation or −1, value of what is free
(outside rounds), bits for what is out of date here (one for each slot of losses, and VALUE_DIRTY), and milli-GPUs of a
device. A device is a GPU; only a pool, a server whose GPUs have no numbers, has one device of more than ``WHOLE``."""
VALUE_DIRTY = 1 << 62
ALL_DIRTY = (1 << 63) - 1
"""All slots and the value."""
G_START, G_TYPE, G_REGION, G_ENTRY = range(4)
"""Columns of a group: first server, GPU type, region; and the groups once more, by region and first server as
listed."""
R_START, R_RANK, R_MGPU, R_USED = range(4)
"""Columns of a region: first of its entries among the groups by region, place as listed, milli-GPUs, milli-GPUs in
use."""
A_WHOLE, A_FREE, A_CPU, A_MEMORY = range(4)
"""Columns of the room that work of a tier finds on a server: whole GPUs, milli-GPUs, millicores, MiB (−1 on blocked
servers)."""
C_MGPU, C_CPU, C_MEMORY, C_LEAST, C_DENSITY = range(5)
"""Columns of what jobs whose limit is at least p hold on a server: three amounts, the smallest cost of one of them, the
smallest cost per milli-GPU that one of them holds anywhere (both NEVER where there is none)."""
T_WHOLE, T_FREE, T_RECLAIM = range(3)
"""Totals of a group: whole GPUs, milli-GPUs, milli-GPUs held by jobs whose limit is at least p."""
J_TIER, J_LIMIT, J_COST, J_MGPU, J_FRESH, J_ROW, J_MARK, J_STACK = range(8)
"""Columns of a running job: tier; limit: work of tier p may stop it if p is below this (its tier where it may be
stopped by more important work, 0 where it may not be stopped); cost; milli-GPUs in all; 1 if it was placed in this
round (and so counts only in the columns up to its tier); first allocation or −1; scratch (−1); and free places on a
stack."""
L_JOB, L_SERVER, L_CPU, L_MEMORY, L_NEXT, L_AFTER, L_BEFORE, L_STACK = range(8)
"""Columns of an allocation: job, server, millicores, MiB, the job's next one, the server's next and previous one (−1 at
the ends), and free places on a stack."""
N_JOBS, N_ROWS, N_ROUND, N_LARGEST = range(4)
"""Columns of the counts: places on the two stacks that are valid; 1 in a round, when tiers may find different room on a
server; milli-GPUs of the largest server, at least one GPU."""


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
    """[8, V]"""
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
