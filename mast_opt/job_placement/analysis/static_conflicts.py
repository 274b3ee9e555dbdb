"""Limits that contradict one another: there are none, because the plan that admits nothing breaks no rule."""

from __future__ import annotations

from mast_opt.core.verdict import Conflict
from mast_opt.job_placement.problem import JobPlacement


def conflicts(problem: JobPlacement) -> tuple[Conflict, ...]:
    """Always empty. A job that fits nowhere is not a contradiction: it waits, and ``reasons`` says why."""
    return ()
