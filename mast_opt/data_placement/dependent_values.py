"""What follows from the decisions of a plan: GPU demand, and the flows where no links bind them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mast_opt.data_placement.plan import Plan
from mast_opt.data_placement.problem import SHARE, Bools, DataPlacement, Ints


def gpu_demand(problem: DataPlacement, plan: Plan) -> NDArray[np.float64]:
    """[R, K, P] GPUs asked by work of tier ≤ p, in milli-GPUs."""
    shape = (len(problem.regions), len(problem.gpu_types) + 1, len(problem.tiers))
    gpus = np.zeros((len(problem.workloads), shape[1]), np.int64)
    gpus[problem.option_workload, problem.option_type] = problem.option_mgpu
    asked = np.zeros(shape)
    amount = gpus[plan.run_workload, plan.run_type] * plan.run_share / SHARE
    np.add.at(asked, (plan.run_region, plan.run_type, problem.tier[plan.run_workload]), amount)
    return np.cumsum(asked, axis=2)[:, :-1]


def first_holder(held: Bools) -> Ints:
    """[I] the first region that holds each dataset, or −1 where none does."""
    return np.where(held.any(axis=1), held.argmax(axis=1), -1)


def fill_copies(problem: DataPlacement, place: Bools) -> tuple[Ints, Ints, Ints, Ints]:
    """(dataset, source, target, share) of every new replica, from the first region that holds it today."""
    dataset, target = np.nonzero(place & ~problem.stored)
    source = first_holder(problem.stored)[dataset]
    kept = source >= 0
    dataset, source, target = dataset[kept], source[kept], target[kept]
    return dataset, source, target, np.full(len(dataset), SHARE, np.int64)


def read_positions(problem: DataPlacement, workload: Ints, dataset: Ints) -> Ints:
    """[·] the read of a dataset by a workload, as a position among the problem's; −1 where there is none."""
    key = problem.read_workload * len(problem.datasets) + problem.read_dataset
    order = np.argsort(key, kind="stable")
    wanted = workload * len(problem.datasets) + dataset
    at = np.searchsorted(key[order], wanted)
    found = np.append(key[order], -1)[at] == wanted
    return np.where(found, np.append(order, -1)[at], -1)


def fill_remote(
    problem: DataPlacement, place: Bools, workload: Ints, region: Ints, kind: Ints, share: Ints
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """(workload, dataset, source, target, share) of every remote read, from the first region of the plan that
    holds the dataset."""
    regions = len(problem.regions)
    pair, at = np.unique(workload * regions + region, return_inverse=True)
    total = np.bincount(at, weights=share, minlength=len(pair)).astype(np.int64)
    pair_workload, pair_region = pair // regions, pair % regions
    reads = np.bincount(problem.read_workload, minlength=len(problem.workloads))
    start = np.cumsum(reads) - reads
    count = reads[pair_workload]
    entry = np.repeat(np.arange(len(pair)), count)
    ends = np.cumsum(count)
    read = np.arange(len(entry)) - np.repeat(ends - count, count) + np.repeat(start[pair_workload], count)
    dataset, target = problem.read_dataset[read], pair_region[entry]
    far = np.flatnonzero(~place[dataset, target])
    dataset, target, entry = dataset[far], target[far], entry[far]
    return pair_workload[entry], dataset, first_holder(place)[dataset], target, total[entry]
