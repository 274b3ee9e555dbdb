"""A data-placement plan: replicas, runs, and where copies and remote reads come from."""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.data_placement.problem import Bools, Ints, freeze


@dataclass(frozen=True, eq=False)
class Plan:
    """The decisions. Shares are integers out of ``problem.SHARE``."""

    place: Bools
    """[I, R] which region holds a replica after the plan."""

    run_workload: Ints
    """[·] ascending; one entry per (workload, region, type) with a positive share."""
    run_region: Ints
    run_type: Ints
    """0..K−1, or K for work without GPUs."""
    run_share: Ints

    copy_dataset: Ints
    """[·] a new replica and where its bytes come from; uploads of datasets stored nowhere are not listed."""
    copy_source: Ints
    copy_target: Ints
    copy_share: Ints

    remote_workload: Ints
    """[·] the part of a workload that reads a dataset from another region."""
    remote_dataset: Ints
    remote_source: Ints
    remote_target: Ints
    remote_share: Ints

    def __post_init__(self) -> None:
        freeze(self)
