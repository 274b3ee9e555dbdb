"""Allocations of running jobs (job placement): what they hold, one row for each job and server."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import GPU, WHOLE, Ints


@dataclass(frozen=True, eq=False)
class Allocations:
    """A rows, sorted by job and server; V running jobs."""

    first: Ints
    """[V + 1] the first row of each job."""
    server: Ints
    """Server of each allocation, [A]."""
    tasks: Ints
    amount: Ints
    """[A, 3] of all tasks together."""
    device: NDArray[np.int32]
    """[A, D] milli-GPUs of each GPU of the server."""


def allocations_of(problem: JobPlacement) -> Allocations:
    """The allocations of an instance, those of one job on one server added up."""
    p = problem
    where, at = np.unique(np.stack([p.allocations.running, p.allocations.server], axis=1), axis=0, return_inverse=True)
    at = at.reshape(-1)
    amount, tasks = np.zeros((len(where), 3), np.int64), np.zeros(len(where), np.int64)
    np.add.at(amount, at, p.held)
    np.add.at(tasks, at, p.allocations.tasks)
    most = max(int(p.servers.supply[:, GPU].max(initial=0)) // WHOLE, 1)
    device = np.zeros((len(where), most), np.int32)
    entries = p.held_devices
    np.add.at(device, (at[entries.row], entries.device), entries.mgpu)
    first = np.searchsorted(where[:, 0], np.arange(len(p.running) + 1))
    return Allocations(first, where[:, 1], tasks, amount, device)
