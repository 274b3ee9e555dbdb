"""Clusters of datasets that are read together, and blocks of clusters with about equal loads.

Clusters come from label propagation (Raghavan, Albert & Kumara 2007) between workloads and datasets, with a limit on
the reads of a cluster (Ugander & Backstrom, "Balanced label propagation for partitioning massive graphs", 2013): its
time and memory grow with the number of reads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.core.jit import compiled
from mast_opt.problems.data_placement.problem import DataPlacement, Ints
from mast_opt.problems.data_placement.tetris.blocks.params import BlockParams


def block_of_workloads(problem: DataPlacement, count: int, params: BlockParams) -> Ints:
    """[W] the block of each workload, 0 to ``count`` − 1."""
    cluster = _cluster_of_workloads(problem, count, params)
    loads = _loads(problem, cluster)
    packed: Ints = _packed(loads, count, np.argsort(-loads.max(axis=1), kind="stable"))
    return packed[cluster]


def owner_of_datasets(problem: DataPlacement, block: Ints, count: int) -> Ints:
    """[I] the block that reads most of each dataset; unread ones are dealt out in turn."""
    reads, datasets = problem.reads, len(problem.datasets)
    volume = np.zeros((datasets, count))
    for b in range(count):
        mine = np.flatnonzero(block[reads.workload] == b)
        volume[:, b] = np.bincount(reads.dataset[mine], weights=reads.mb_per_day[mine] + 1, minlength=datasets)
    unread = ~volume.any(axis=1)
    owner: Ints = volume.argmax(axis=1)
    owner[unread] = np.arange(int(unread.sum())) % count
    return owner


def _cluster_of_workloads(problem: DataPlacement, count: int, params: BlockParams) -> Ints:
    """[W] a cluster each, numbered without gaps."""
    reads, workloads, datasets = problem.reads, len(problem.workloads), len(problem.datasets)
    start = np.searchsorted(reads.workload, np.arange(workloads + 1))
    by_dataset = np.argsort(reads.dataset, kind="stable")
    reader_start = np.searchsorted(reads.dataset[by_dataset], np.arange(datasets + 1))
    volume = reads.mb_per_day.astype(np.float64) + 1.0
    label = np.arange(datasets)
    work = np.full(workloads, -1)
    most = max(1.0, params.cluster_share * len(reads) / count)
    weight = np.diff(reader_start).astype(np.float64)
    for _ in range(params.sweeps):
        _label_workloads(start, reads.dataset, volume, label, work)
        moved = _label_datasets(reader_start, by_dataset, reads.workload, volume, work, label, weight, most)
        if moved == 0:
            break
    _label_workloads(start, reads.dataset, volume, label, work)
    alone = np.flatnonzero(work < 0)
    work[alone] = datasets + np.arange(len(alone))  # work that reads nothing
    return np.unique(work, return_inverse=True)[1].astype(np.int64).ravel()


@compiled
def _label_workloads(start: Ints, dataset: Ints, volume: FloatArray, label: Ints, work: Ints) -> None:
    """Each workload takes the label with most of what it reads."""
    for w in range(len(work)):
        best, most = -1, -1.0
        for n in range(start[w], start[w + 1]):
            total = 0.0
            for m in range(start[w], start[w + 1]):
                total += volume[m] if label[dataset[m]] == label[dataset[n]] else 0.0
            if total > most:
                best, most = label[dataset[n]], total
        work[w] = best


@compiled
def _label_datasets(
    start: Ints, read: Ints, reader: Ints, volume: FloatArray, work: Ints, label: Ints, weight: FloatArray, most: float
) -> int:
    """Each dataset takes the label with most of what is read of it, unless that has too many reads; how many change.

    Args:
        weight: [I] reads of each label, kept up to date.
        most: reads of a label.
    """
    moved = 0
    total = np.zeros(len(label))
    for i in range(len(label)):
        own = start[i + 1] - start[i]
        best, highest = label[i], 0.0
        for n in range(start[i], start[i + 1]):
            to = work[reader[read[n]]]
            total[to] += volume[read[n]]
        highest = total[label[i]]
        for n in range(start[i], start[i + 1]):
            to = work[reader[read[n]]]
            if total[to] > highest and (to == label[i] or weight[to] + own <= most):
                best, highest = to, total[to]
        for n in range(start[i], start[i + 1]):
            total[work[reader[read[n]]]] = 0.0
        if best != label[i]:
            weight[label[i]] -= own
            weight[best] += own
            label[i] = best
            moved += 1
    return moved


def _loads(problem: DataPlacement, cluster: Ints) -> FloatArray:
    """[C, D] what each cluster has of reads, GPUs by type, cores by application and of the whole: shares of the sum."""
    p, clusters = problem, int(cluster.max(initial=-1)) + 1
    options = np.bincount(p.options.workload, minlength=len(p.workloads))
    columns: list[NDArray[Any]] = [np.bincount(cluster[p.reads.workload], minlength=clusters)]
    for k in range(len(p.gpu_types)):
        mine = np.flatnonzero(p.options.gpu_type == k)
        work = p.options.workload[mine]
        columns.append(np.bincount(cluster[work], weights=p.options.mgpu[mine] / options[work], minlength=clusters))
    for a in range(len(p.apps)):
        cores = np.where(p.workloads.app == a, p.workloads.cpu_mcores, 0)
        columns.append(np.bincount(cluster, weights=cores, minlength=clusters))
    loads = np.stack(columns, axis=1).astype(np.float64)
    return np.asarray(loads / np.maximum(loads.sum(axis=0), 1.0))


@compiled
def _packed(loads: FloatArray, count: int, order: Ints):  # type: ignore[no-untyped-def]
    """[C] a block for each cluster, in this order, each where the fullest load then stays least."""
    clusters, sorts = loads.shape
    block, used = np.zeros(clusters, np.int64), np.zeros((count, sorts))
    for c in order:
        best, least = 0, np.inf
        for b in range(count):
            full = 0.0
            for d in range(sorts):
                full += (used[b, d] + loads[c, d]) ** 2 - used[b, d] ** 2
            if full < least:
                best, least = b, full
        block[c] = best
        for d in range(sorts):
            used[best, d] += loads[c, d]
    return block
