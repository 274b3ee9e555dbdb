"""Search for a spectral bound: the shift of the diagonal that maximises it, and the vectors that prove it.

The bound is concave in the shift (Cullum, Donath & Wolfe, "The minimization of certain nondifferentiable sums of
eigenvalues", 1975); Polyak's subgradient steps raise it. ``verification/spectral_bound.py`` has the formula.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.data_placement.verification.spectral_bound import (
    ROUNDING,
    CutGraph,
    Spectrum,
    cut_graph,
    largest_shares,
    shifted,
)

DENSE = 1_200
"""Nodes up to which eigenvectors are computed densely."""
MORE = 4
"""Number of eigenvectors beyond those of the bound, so that omitted eigenvalues are larger."""


@dataclass(frozen=True)
class SpectralParams:
    """Parameters of the spectral bound, which is computed if the start is multilevel."""

    iterations: int = 25
    """Most steps of the shift; 0: no spectral bound. More add a percent."""
    share: float = 0.06
    """Share of the time of a search for it. The bound is 0 without it."""
    check_s: ClassVar[float] = 2e-11
    """Seconds of the check, divided by the cube of the number of datasets. If the check would exceed the share, there
    is no spectral bound. Measured: 2.2 s with 5,000 datasets."""
    step: ClassVar[float] = 0.3
    """Increase of the bound that the first step aims at, as a share of the bound."""


def spectrum_of(
    problem: DataPlacement, over: Callable[[], bool], rng: np.random.Generator, params: SpectralParams
) -> Spectrum | None:
    """Spectrum with the best bound found until ``over`` returns True; None if there is no spectral bound."""
    from scipy.sparse.linalg import ArpackError

    graph = cut_graph(problem) if params.iterations else None
    if graph is None:
        return None
    try:
        return _raised(graph, over, rng, params)
    except ArpackError:  # Lanczos did not converge
        return None


def _raised(graph: CutGraph, over: Callable[[], bool], rng: np.random.Generator, params: SpectralParams) -> Spectrum:
    """Spectrum of tetris' graph of datasets after subgradient steps."""
    share, aim = largest_shares(graph), params.step
    shift = best = np.zeros(len(graph.size))
    best_cut, start = -np.inf, rng.standard_normal(len(graph.size))
    for _ in range(params.iterations):
        values, vectors = _lowest(graph, shift, len(share), start)
        start = vectors[:, 0]
        cut = float(values @ share - shift.sum()) / 2
        if cut > best_cut:
            best_cut, best = cut, shift
        else:
            aim /= 2
        slope = ((vectors**2 / graph.size[:, None]) @ share - 1) / 2
        steepness = float(slope @ slope)
        if over() or aim < 0.01 or steepness <= 0:
            break
        rise = best_cut + aim * max(best_cut, 0.05 * graph.laplacian.diagonal().sum() / 2) - cut
        shift = shift + rise / steepness * slope
    values, vectors = _lowest(graph, best, len(share) + MORE, start)
    matrix = shifted(graph, best)
    residual = matrix @ vectors - vectors * values
    rounded = ROUNDING * (len(shift) + len(values)) * (np.abs(matrix.diagonal()).sum() + len(shift) * abs(values[-1]))
    slack = 1.5 * float(np.linalg.norm(residual)) + 8 * float(rounded)
    return Spectrum(best, vectors, values[-1] - values, np.array([values[-1] - slack]))


def _lowest(graph: CutGraph, shift: FloatArray, count: int, start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(values [count], vectors [nodes, count]) of the ``count`` lowest eigenvalues of tetris' graph of datasets,
    ascending."""
    from scipy.linalg import eigh
    from scipy.sparse.linalg import eigsh

    matrix, nodes = shifted(graph, shift), len(graph.size)
    if nodes > DENSE:
        values, vectors = eigsh(matrix, count, which="SA", ncv=4 * count, tol=1e-4, v0=start)
        order = np.argsort(values)
        return values[order], vectors[:, order]
    values, vectors = eigh(matrix.toarray(), subset_by_index=[0, min(count, nodes) - 1])
    return values, vectors
