"""Undoing in the engine's state (job placement): what it takes to bring back a job that stopped, and whole arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.job_placement.engine.capacity_ledger import resume
from mast_opt.problems.job_placement.engine.state import (
    ALL_DIRTY,
    J_ROW,
    J_STACK,
    L_NEXT,
    L_STACK,
    S_DIRTY,
    EngineState,
)
from mast_opt.problems.job_placement.units import Ints


@dataclass(frozen=True, eq=False)
class Stopped:
    """Entries that the engine's state had of a job before it stopped."""

    place: int
    last: int
    """The last tier to which it gave back what it held."""
    job: Ints
    """Its column of ``EngineState.job``."""
    rows: list[int]
    """Its allocations."""
    row: Ints
    """[·, allocations] their columns of ``EngineState.row``."""
    device: NDArray[np.int32]
    """[allocations, D]"""

    @classmethod
    def of(cls, state: EngineState, place: int, last: int) -> Stopped:
        """A job that is about to stop."""
        rows, row = [], int(state.job[J_ROW, place])
        while row >= 0:
            rows.append(row)
            row = int(state.row[L_NEXT, row])
        column = state.job[:J_STACK, place].copy()
        return cls(place, last, column, rows, state.row[:L_STACK, rows], state.row_device[rows])

    def resume(self, state: EngineState) -> None:
        """Let the job run again, when all that changed since it stopped has been undone."""
        resume_all(state, [self])


def resume_all(state: EngineState, stopped: Sequence[Stopped]) -> None:
    """Let jobs run again, when all that changed since the last of them stopped has been undone.

    Args:
        stopped: in the order in which they stopped, each as it was before the first one did. Lists of servers lead from
            one to another, so all of them have their columns again before the first one resumes.
    """
    for one in stopped:
        state.job[:J_STACK, one.place] = one.job
        state.row[:L_STACK, one.rows] = one.row
        state.row_device[one.rows] = one.device
    for one in reversed(stopped):
        resume(state, one.place, one.last)


def restore_values(state: EngineState, old: EngineState) -> EngineState:
    """A state with the samples and values of an older one; what that knows of servers is out of date."""
    state.server[S_DIRTY] = ALL_DIRTY
    return state._replace(sample=old.sample, demand=old.demand, memo=old.memo, loss=old.loss, slot=old.slot)


def restore_arrays(state: EngineState, old: EngineState, free_places: Ints) -> EngineState:
    """A state with the jobs and allocations of an older, smaller one, which has not changed since."""
    state.free_places[:] = free_places
    return state._replace(job=old.job, row=old.row, row_device=old.row_device)
