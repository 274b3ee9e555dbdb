"""Preallocated workspace of tetris's kernels, which allocate nothing themselves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.by_reference import by_reference
from mast_opt.problems.data_placement.problem import Ints
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.search.random_scalar import gumbel

NOISES, ENTRIES = 4096, 256
"""Draws of noise, and options of which GPU prices are cached."""


@by_reference
class CompoundMoveBuffers(NamedTuple):
    """Space for the datasets and workloads of a dependency closure; kernels hand on how many there are of each."""

    workloads: Ints
    datasets: Ints
    action: NDArray[np.int8]
    """[workloads, …] what became of the replicas that each workload reads, for undoing the change."""


@by_reference
class SurrogateBuffers(NamedTuple):
    """Space for guessing where a workload would cost least."""

    saved: NDArray[np.float32]
    """[R] what each region saves because it holds what the workload reads."""
    entry: NDArray[np.float32]
    """[ENTRIES, R] GPU price of some options in every region."""
    entry_of: Ints
    """[ENTRIES] which options; −1: none."""
    noise: NDArray[np.float32]
    """[NOISES + …] quantiles of a Gumbel distribution in random order; a choice takes some in a row."""


@by_reference
class Workspace(NamedTuple):
    """Space for the kernels of one thread."""

    first: NDArray[np.int8]
    """Changes made to the replicas that a workload reads, for undoing them."""
    second: NDArray[np.int8]
    closure: CompoundMoveBuffers
    other_closure: CompoundMoveBuffers
    surrogate: SurrogateBuffers


def workspace_for(
    a: TetrisArrays, closure_workloads: int = 0, closure_datasets: int = 0, partners: int = 0
) -> Workspace:
    """Space for every change: for dependency closures up to a size, and for so many partners of an exchange."""
    widest = max(1, int(np.diff(a.read_start).max(initial=1)))
    return Workspace(
        first=np.zeros(widest, np.int8),
        second=np.zeros(widest, np.int8),
        closure=_closure_for(closure_workloads, closure_datasets, widest),
        other_closure=_closure_for(closure_workloads, closure_datasets, widest),
        surrogate=_surrogate_for(a.supply.shape[0], partners),
    )


def _closure_for(workloads: int, datasets: int, widest: int) -> CompoundMoveBuffers:
    """Buffers of tetris' kernels for compound moves."""
    return CompoundMoveBuffers(
        workloads=np.zeros(workloads, np.int64),
        datasets=np.zeros(datasets, np.int64),
        action=np.zeros((workloads, widest), np.int8),
    )


def _surrogate_for(regions: int, partners: int) -> SurrogateBuffers:
    """Buffers of tetris' kernels for surrogate costs, with their noise."""
    return SurrogateBuffers(
        saved=np.zeros(regions, np.float32),
        entry=np.zeros((ENTRIES, regions), np.float32),
        entry_of=np.full(ENTRIES, -1, np.int64),
        noise=gumbel(NOISES, max(regions, partners)),
    )
