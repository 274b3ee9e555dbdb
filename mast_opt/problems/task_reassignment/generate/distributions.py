"""Random distributions of generated task-reassignment instances. Every function takes the generator first."""

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.task_reassignment.problem import Ints

MEDIAN_NEED = 10_000
SIGMA = 1.0
"""Standard deviation of the logarithm of a process's size."""
SIZES = (1.0, 2.0, 4.0)
"""Machines come in these sizes."""


def needs(rng: np.random.Generator, processes: int, resources: int) -> Ints:
    """[P, K] lognormal sizes, and each resource within a factor of about two of the size."""
    size = rng.lognormal(np.log(MEDIAN_NEED), SIGMA, (processes, 1))
    return np.ceil(size * rng.lognormal(0.0, 0.5, (processes, resources))).astype(np.int64)


def machine_sizes(rng: np.random.Generator, machines: int, resources: int) -> NDArray[np.float64]:
    """[M, K] relative capacities: one of three sizes, and each resource within 20% of it."""
    return rng.choice(SIZES, (machines, 1)) * rng.uniform(0.8, 1.2, (machines, resources))


def random_fit(rng: np.random.Generator, need: Ints, service: Ints, capacity: Ints) -> tuple[Ints, Ints]:
    """A random machine for each process, the large ones first, and the capacities that this takes: those given,
    except where a process fitted nowhere. No two processes of a service share a machine."""
    processes, machines = len(need), len(capacity)
    capacity = capacity.copy()
    free = capacity.copy()
    machine = np.zeros(processes, np.int64)
    used = np.zeros((int(service.max()) + 1, machines), np.bool_)
    relative = (need / np.maximum(capacity.max(axis=0), 1)).max(axis=1)
    for p in np.argsort(-relative, kind="stable").tolist():
        open_to = ~used[service[p]]
        fits = np.flatnonzero(open_to & (free >= need[p]).all(axis=1))
        if len(fits):
            m = int(rng.choice(fits))
        else:
            closed = np.where(open_to, 0.0, np.inf)
            shortage = ((need[p] - free) / np.maximum(capacity, 1)).max(axis=1)
            m = int((shortage + closed).argmin())
            short = np.maximum(need[p] - free[m], 0)
            capacity[m] += short
            free[m] += short
        machine[p] = m
        free[m] -= need[p]
        used[service[p], m] = True
    return machine, capacity
