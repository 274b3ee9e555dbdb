"""Inputs of the papers' examples."""

from __future__ import annotations

import numpy as np

from mast_opt.live.policies.goodput import Goodput

JOB = Goodput(
    compute_s=0.121,
    compute_s_per_sample=0.00568,
    latency_s=(0.0118, 0.0236),
    latency_s_per_replica=(0.00317, 0.00634),
    overlap=1.14,
    gradient_squared=0.00136,
    gradient_variance=0.000502,
    initial_batch=128,
    largest_batch=1280,
    least_samples=64,
    most_samples=256,
)
"""Pollux: parameters of the test of the authors' goodput function."""

POINTS = np.array([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [12.0]])
"""Synergy: numbers of CPUs."""
RATES = np.array([[0.2, 0.4, 0.5, 0.6, 0.7, 1.0, 1.5], [0.6, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]])
"""Synergy: rates of alexnet and gnmt with so many CPUs."""
FAIR = 2
"""Synergy: position of the point of 3 CPUs, the fair share of a job."""

T0, T1 = [2.0, 1.0, 0.5], [3.0, 2.0, 1.0]
"""Gavel: steps a second of two jobs on v100, p100, k80."""
