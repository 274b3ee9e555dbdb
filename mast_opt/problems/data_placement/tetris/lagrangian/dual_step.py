"""Multipliers and dual steps of tetris's Lagrangian relaxation: prices of GPU rows, each projected into its box."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.core.by_reference import by_reference
from mast_opt.core.jit import compiled
from mast_opt.problems.data_placement.problem import Bools
from mast_opt.problems.data_placement.tetris.lagrangian.projections import simplex_shift


@by_reference
class Multipliers(NamedTuple):
    """The multipliers. Any values in their boxes give a valid bound."""

    read: NDArray[Any]
    """[N, R] in [0, remote price · volume]; unbounded where remote reads are forbidden."""
    worst: NDArray[Any]
    """[R, K, P, J] ≥ 0 of the row and its roundings, adding up over regions and j to at most the price of the peak."""
    over: NDArray[Any]
    """[R, K, P, J] ≥ 0, adding up over j to at most the overload price, per milli-GPU."""
    under: NDArray[Any]
    """[R, K] in [0, idle price], per milli-GPU."""
    cpu: NDArray[Any]
    storage: NDArray[Any]
    ingress: NDArray[Any]
    quota: NDArray[Any]
    data_lift: NDArray[Any]
    """[I, R] what trees charge for a replica of their root; no rows without trees."""
    work_lift: NDArray[Any]
    """[W, R] the same of workloads."""

    @property
    def of_regions(self) -> tuple[NDArray[Any], ...]:
        """Those of the regions' rows, GPUs first."""
        return self.worst, self.over, self.under, self.cpu, self.storage, self.ingress, self.quota

    def copy(self) -> Multipliers:
        """Multipliers of their own with the same values."""
        return Multipliers(*(price.copy() for price in self))


@compiled
def worst_step(worst: FloatArray, gradient: FloatArray, row: FloatArray, pace: float, price: FloatArray) -> None:
    """Dual step of the rows ``worst``: [R, K, P, J] prices ≥ 0 that add up over regions and j to at most ``price`` [P].

    The projection is that of the metric Σ (x − v)² · row² with ``row`` [R, K, P], in which the steps are taken.
    """
    regions, kinds, tiers, rows = worst.shape
    for k in range(kinds):
        for t in range(tiers):
            total, high = 0.0, 0.0
            for r in range(regions):
                if row[r, k, t] > 0.0:
                    for j in range(rows):
                        raised = max(worst[r, k, t, j] + pace * gradient[r, k, t, j] / row[r, k, t] ** 2, 0.0)
                        worst[r, k, t, j] = raised
                        total += raised
                        high = max(high, raised * row[r, k, t] ** 2)
            if total <= price[t]:
                continue
            low = 0.0
            for _ in range(60):
                middle = 0.5 * (low + high)
                total = 0.0
                for r in range(regions):
                    if row[r, k, t] > 0.0:
                        for j in range(rows):
                            total += max(worst[r, k, t, j] - middle / row[r, k, t] ** 2, 0.0)
                if total > price[t]:
                    low = middle
                else:
                    high = middle
            for r in range(regions):
                if row[r, k, t] > 0.0:
                    for j in range(rows):
                        worst[r, k, t, j] = max(worst[r, k, t, j] - high / row[r, k, t] ** 2, 0.0)


@compiled
def over_step(over: FloatArray, gradient: FloatArray, supplied: Bools, pace: FloatArray, price: FloatArray) -> None:
    """Dual step of the rows ``gpu``, by ``pace`` [K, P]: [R, K, P, J] prices ≥ 0 that add up over j to at most
    ``price`` [K, P]."""
    regions, kinds, tiers, rows = over.shape
    values = np.empty(rows, np.float32)
    for r in range(regions):
        for k in range(kinds):
            for t in range(tiers):
                total, most = 0.0, price[k, t]
                for j in range(rows):
                    raised = over[r, k, t, j] + pace[k, t] * gradient[r, k, t, j]
                    over[r, k, t, j] = max(raised, 0.0) if supplied[r, k] and most > 0.0 else 0.0
                    total += over[r, k, t, j]
                if total <= most:
                    continue
                for j in range(rows):
                    values[j] = over[r, k, t, j] / most
                shift = most * simplex_shift(values, rows)
                for j in range(rows):
                    over[r, k, t, j] = max(over[r, k, t, j] - shift, 0.0)
