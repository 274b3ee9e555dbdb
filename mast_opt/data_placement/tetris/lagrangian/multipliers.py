"""The multipliers of the relaxation's rows."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray


class Prices(NamedTuple):
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

    def copy(self) -> Prices:
        return Prices(*(price.copy() for price in self))
