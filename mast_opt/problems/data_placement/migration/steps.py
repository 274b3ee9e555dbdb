"""Steps of a data-placement migration: copies and deletions of replicas, and shares of work that move."""

from dataclasses import dataclass

from mast_opt.problems.data_placement.migration.workload_moves import Cell


@dataclass(frozen=True)
class Step:
    """A copy, the part of one that a day takes, or a deletion. Steps of the same wave may run at the same time."""

    day: int
    """0, 1, …"""
    days: int
    """Number of days in a row, from ``day`` on, on which this volume is copied."""
    wave: int
    """0, 1, …; a deletion makes room for the waves after it, a copy holds its whole room from its first step on."""
    dataset: int
    region: int
    """Region where the replica arrives or is deleted."""
    source: int | None
    """None for a deletion, and for an upload from outside."""
    kb: int
    """Copied on each of the days, in thousandths of a MB; 0 for a deletion."""
    deletes: bool
    hop: bool
    """True for a replica in between that the plan does not have."""


@dataclass(frozen=True)
class RunStep:
    """A share of a workload that moves, stops or starts; what it used is free for the waves after it."""

    day: int
    wave: int
    part: int
    """Position among the parts of all workloads."""
    workload: int
    source: Cell | None
    """None: it starts."""
    target: Cell | None
    """None: it stops, for a while or because the plan does not serve it."""
    share: int


@dataclass(frozen=True)
class Operation:
    """A step of an order that the schedule follows."""

    kind: str
    """``copy``, ``delete``, ``enter`` or ``stop``."""
    at: int
    """The dataset, or the part of a workload."""
    region: int = -1
    """Region of a copy or deletion."""
