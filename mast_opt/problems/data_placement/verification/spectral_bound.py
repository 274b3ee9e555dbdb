"""Spectral bound on remote reads where every dataset that is read has one copy (Donath & Hoffman, IBM JRD 17, 1973).

A plan then is a partition of the datasets, and a workload that reads both i and j reads at least c[i,j] remotely where
these are apart: the sum of c[i,j] over the pairs of a workload that are apart is no more than what it reads remotely,
wherever it runs, for c[i,j] = min(volume of i, volume of j) / (reads − 1), since one of i and j is then remote.

Let L be the Laplacian of the graph with the weights c, S the diagonal of sizes, x[r] the vector of the datasets in r,
and u any vector. The cut is ½ Σ_r x[r]ᵀ (L + diag u) x[r] − ½ Σ u. The S^½ x[r] are orthogonal, with squared norms m[r]
that are the storage used, so with the eigenvalues λ[1] ≤ λ[2] ≤ … of A = S^−½ (L + diag u) S^−½ (Ky Fan)

    cut ≥ ½ Σ_i λ[i] m[i] − ½ Σ u,    m as descending as the storage of the regions allows.

Bounds on eigenvalues are proven, not computed: with V, τ ≥ 0 and θ kept, A + V diag τ Vᵀ − θ I has a Cholesky
factorisation even after rounding is taken off its diagonal, so λ[i] ≥ θ − the i-th largest eigenvalue of V diag τ Vᵀ.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.data_placement.problem import DataPlacement

Floats = NDArray[np.float64]

MOST_NODES = 5_000
"""Datasets up to which a certificate is checked: a dense factorisation, 200 MB and a few seconds there."""
MOST_READS = 24
"""Workloads that read more are left out; they read remotely what they like."""
ROUNDING = 8 * np.finfo(np.float64).eps
"""Allowance for rounding, times rows and trace (Rump, "Verification of positive definiteness", BIT 46, 2006)."""


class CutGraph(NamedTuple):
    """The datasets that have a size and share readers."""

    size: Floats
    """[N] storage, in means of all of them."""
    laplacian: Any
    """[N, N] sparse, MB a day."""
    storage: Floats
    """[R] descending, in the same unit."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Data that proves a spectral bound."""

    shift: Floats
    """[N] u, MB a day."""
    vectors: Floats
    """[N, B] V"""
    drop: Floats
    """[B] τ"""
    level: Floats
    """[1] θ"""

    def fits(self, nodes: int) -> bool:
        """Whether a spectrum's shapes and values are such as a bound can be computed from."""
        width = len(self.drop) if self.drop.ndim == 1 else -1
        shapes = (self.shift.shape, self.vectors.shape, self.level.shape) == ((nodes,), (nodes, width), (1,))
        arrays = (self.shift, self.vectors, self.drop, self.level)
        return shapes and all(bool(np.isfinite(one).all()) for one in arrays) and bool((self.drop >= 0).all())


def cut_graph(p: DataPlacement) -> CutGraph | None:
    """The graph whose cuts bound remote reads from below; None where plans are no partitions, or it is too large."""
    from scipy.sparse import coo_array, diags_array

    copied = p.datasets.copies_max[p.reads.dataset] > 1
    missing = p.datasets.copies_min[p.reads.dataset] < 1
    if not p.remote_reads or p.may_refuse or not len(p.reads) or copied.any() or missing.any():
        return None
    left, right, weight = _pairs(p)
    sized = (p.datasets.size_mb[left] > 0) & (p.datasets.size_mb[right] > 0) & (weight > 0)
    nodes, at = np.unique(np.concatenate([left[sized], right[sized]]), return_inverse=True)
    if not len(p.regions) < len(nodes) <= MOST_NODES:
        return None
    left, right, weight = at[: sized.sum()], at[sized.sum() :], weight[sized]
    both = np.concatenate([left, right]), np.concatenate([right, left])
    adjacent = coo_array((np.concatenate([weight, weight]), both), shape=(len(nodes), len(nodes))).tocsr()
    size = p.datasets.size_mb[nodes].astype(np.float64)
    unit = size.mean()
    storage = np.sort(p.usable_storage_mb.astype(np.float64))[::-1] / unit
    return CutGraph(size / unit, (diags_array(adjacent.sum(axis=1)) - adjacent).tocsr(), storage)


def largest_shares(graph: CutGraph) -> Floats:
    """[R] storage that regions use at most, the fullest first, as far as the datasets go."""
    before = np.concatenate([[0.0], np.cumsum(graph.storage)[:-1]])
    share: Floats = np.clip(graph.size.sum() - before, 0.0, graph.storage)
    return share


def shifted(graph: CutGraph, shift: Floats) -> Any:  # noqa: ANN401 - a sparse array
    """The matrix A of the spectral bound on data placement."""
    from scipy.sparse import diags_array

    scale = diags_array(1 / np.sqrt(graph.size))
    return scale @ (graph.laplacian + diags_array(shift)) @ scale


def spectral_bound(p: DataPlacement, weights: Mapping[str, float], kept: Spectrum) -> float:
    """The lower bound that a spectrum proves for Σ weight · term; −∞ where it proves none."""
    from scipy.linalg import LinAlgError, cholesky

    graph = cut_graph(p)
    if graph is None or not kept.fits(len(graph.size)):
        return -np.inf
    # Inertia: A + V diag τ Vᵀ − θ I is positive semidefinite.
    matrix = shifted(graph, kept.shift).toarray()
    added = kept.vectors * kept.drop
    trace = np.abs(matrix.diagonal()).sum() + np.abs(added * kept.vectors).sum() + len(matrix) * abs(kept.level[0])
    matrix += added @ kept.vectors.T
    matrix[np.diag_indices_from(matrix)] -= kept.level[0] + ROUNDING * (len(matrix) + len(kept.drop)) * trace
    try:
        cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return -np.inf
    root = np.sqrt(kept.drop)
    gram = root[:, None] * (kept.vectors.T @ kept.vectors) * root
    share = largest_shares(graph)
    drop = np.zeros(max(len(share), len(kept.drop)))
    drop[: len(kept.drop)] = np.clip(np.linalg.eigvalsh(gram)[::-1], 0.0, None)
    slack = ROUNDING * len(graph.size) * (np.abs(gram).sum() + abs(kept.level[0]))
    parts = np.concatenate([(kept.level[0] - drop[: len(share)] - slack) * share, -kept.shift])
    cut_mb = (parts.sum() - ROUNDING * len(parts) * np.abs(parts).sum()) / 2
    total_mb = int(p.datasets.size_mb.sum())
    stored = float(p.datasets.copies_min @ p.datasets.size_mb) / max(total_mb, 1)
    remote = max(0.0, float(cut_mb)) / int(p.reads.mb_per_day.sum())
    return (weights["remote"] * remote + weights["storage"] * stored) * (1 - 1e-9)


def _pairs(p: DataPlacement) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """(dataset, dataset, c) of each pair of reads of a workload."""
    order = np.lexsort((p.reads.dataset, p.reads.workload))
    workload, dataset = p.reads.workload[order], p.reads.dataset[order]
    volume = p.reads.mb_per_day[order].astype(np.float64)
    count = np.bincount(workload, minlength=len(p.workloads))
    usable = count[workload] <= MOST_READS
    workload, dataset, volume = workload[usable], dataset[usable], volume[usable]
    found: list[tuple[NDArray[np.int64], NDArray[np.int64], Floats]] = []
    for apart in range(1, MOST_READS):
        first = np.flatnonzero(workload[apart:] == workload[: len(workload) - apart])
        second = first + apart
        least = np.minimum(volume[first], volume[second]) / np.maximum(count[workload[first]] - 1, 1)
        found.append((dataset[first], dataset[second], least))
    left, right, weight = (np.concatenate(columns) for columns in zip(*found))
    return left, right, weight
