"""Units and shared words of job placement."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

RESOURCES = ("gpu", "cpu", "memory")
"""Milli-GPUs, millicores, MiB: the second axis of every array of needs and supplies."""
GPU, CPU, MEMORY = range(3)
UNITS = ("milli-GPUs", "millicores", "MiB")
WHOLE = 1000
"""Milli-GPUs of one device."""
LARGEST = 2**53
"""Base units of a job or a server; floating-point numbers hold all integers up to here exactly."""
MOST_GPUS = 4096
"""GPUs of a server; there are arrays with a place for each."""
MOST_POOLED = 2_000_000
"""GPUs of a server of a live fleet; those of a server with more than ``MOST_GPUS``, a pool, have no numbers."""
MOST_TASKS = 10**9
"""Tasks of a job; sums over many jobs stay exact."""
LEVELS = ("server", "rack", "cluster")
"""Levels within which a gang may stay, closest first."""
SERVER, RACK, CLUSTER, REGION = range(4)
WHOLE_JOB_LEVELS = (*LEVELS, "region")
"""Levels within which a job of several parts may stay as a whole, closest first."""
MOVE_LIMITS = ("moves", "restart_gpu_hours")
"""Quantities of all moves together that a limit may be on."""
MOVES, RESTART_GPU_HOURS = range(2)
NO_GPU = "none"
"""Label of the type of servers that have no GPU and name no type."""
