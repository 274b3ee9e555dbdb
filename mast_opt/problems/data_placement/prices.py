"""Costs in dollars of each run and each replica, for whoever decides: formulation, tetris and the default weights.

A price that depends on the workload, its option, the dataset or the region is added here and nowhere else among them.
What crosses links depends on sources too, and is only in ``most_usd``.
"""

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.units import HOURS_A_MONTH, MB_PER_TB, MICRO, MILLI
from mast_opt.problems.data_placement.problem import DataPlacement


def run_usd(problem: DataPlacement) -> FloatArray:
    """[O, R] running cost of all of a workload on each option in each region, USD a month."""
    p = problem
    gpu_usd = np.append(p.regions.gpu_price_micro / MICRO, np.zeros((len(p.regions), 1)), axis=1)
    hourly = p.options.mgpu[:, None] / MILLI * gpu_usd.T[p.options.gpu_type]
    output_tb = p.workloads.output_mb[p.options.workload, None] / MB_PER_TB
    return np.asarray(hourly * HOURS_A_MONTH + output_tb * (p.regions.storage_price_micro / MICRO))


def replica_usd(problem: DataPlacement) -> tuple[FloatArray, FloatArray]:
    """[I, R] running cost of a replica, USD a month, and [I, R] migration cost of it, USD: 0 where it is today."""
    p = problem
    size_tb = p.datasets.size_mb[:, None] / MB_PER_TB
    arriving = size_tb * (p.regions.copy_price_micro / MICRO)
    return size_tb * (p.regions.storage_price_micro / MICRO), np.where(p.datasets.stored, 0.0, arriving)


def most_usd(problem: DataPlacement) -> tuple[float, float]:
    """The highest bill of a plan with one replica of each dataset, in USD a month, and in USD once.

    Everything is where it costs most, and all reads and copies cross the most expensive link.
    """
    p = problem
    run = np.zeros(len(p.workloads))
    np.maximum.at(run, p.options.workload, run_usd(p).max(axis=1))
    stored, arriving = (usd.max(axis=1).sum() for usd in replica_usd(p))
    link = 0.0 if p.links is None else p.links.price_usd_per_tb.max(initial=0.0) / MB_PER_TB
    read = link * p.remote_reads * p.reads.mb_per_day.sum() * HOURS_A_MONTH / 24
    return float(run.sum() + stored + read), float(arriving + link * p.datasets.size_mb.sum())
