"""Worst ratio of demand to supply when work may be spread over the places where it can run.

The ratio θ is the least with which demand can be spread so that no place gets more than θ times its supply. It equals
the largest, over sets of places, of the demand that is confined to a set over its supply (P. Hall, 1935, for
fractions: max-flow min-cut). From the set of all places, each step goes to the cut that shows that the ratio of the
last set is too small, until a flow shows that it is not (Dinkelbach, 1967).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from mast_opt.problems.job_placement.units import Ints

Mask = frozenset[int]
"""Places where some work can run."""
MOST_FLOW = 2**30
"""All demand in the units of a flow, whose amounts have 32 bits."""


@dataclass(frozen=True)
class WorstRatio:
    """Worst ratio of demand to supply, and the prices that prove it."""

    ratio: float
    prices: tuple[float, ...]
    """[C] of each place: by how much the ratio grows with a further unit of demand that can run only there. Times
    supply they add up to 1 where there is demand."""
    stranded: int
    """Demand that no place with supply can take; it is left out."""


def worst_ratio(demand: Mapping[Mask, int], supply: Sequence[int], guess: Mask | None = None) -> WorstRatio:
    """The worst ratio of demands to the supply of the places where they can run: that of the set of places that the
    prices show. No set has more, or only as much as one unit of demand more at each of its places.

    Args:
        demand: mask → how much of such work there is.
        supply: [C] of each place.
        guess: places that may be the worst set, such as that of an hour ago; it saves time where they are.
    """
    usable = frozenset(c for c, amount in enumerate(supply) if amount > 0)
    confined: dict[Mask, int] = {}
    stranded = 0
    for mask, amount in demand.items():
        if mask & usable:
            confined[mask & usable] = confined.get(mask & usable, 0) + amount
        else:
            stranded += amount
    confined = {mask: amount for mask, amount in confined.items() if amount}
    if not confined:
        return WorstRatio(0.0, (0.0,) * len(supply), stranded)

    def amounts(places: Mask) -> tuple[int, int]:
        """Demand that is confined to places, and their supply."""
        return sum(amount for mask, amount in confined.items() if mask <= places), sum(supply[c] for c in places)

    network = _Network(confined, sorted(usable))
    first = ((guess or usable) & usable) or usable
    worst: Mask | None = max(usable, first, key=lambda places: Fraction(*amounts(places)))
    while worst is not None:
        chosen = worst
        asked, there = amounts(chosen)
        worst = network.overloaded([-(-asked * supply[c] * network.scale // there) for c in network.places])
    prices = tuple(1 / there if c in chosen else 0.0 for c in range(len(supply)))
    return WorstRatio(asked / there, prices, stranded)


class _Network:
    """Flows from the source (node 0) over masks and places to the sink (the last node)."""

    def __init__(self, confined: Mapping[Mask, int], places: list[int]) -> None:
        total = sum(confined.values())
        self.places, self.scale = places, max(1, MOST_FLOW // total)
        """Units of a flow in one of demand; many of demand are one only where all of it has more than 30 bits."""
        self._unit = max(1, total // MOST_FLOW)
        asked = [amount * self.scale // self._unit for amount in confined.values()]
        self._total = sum(asked)
        first = 1 + len(asked)
        node = {c: first + at for at, c in enumerate(places)}
        rows = [0] * len(asked) + [1 + at for at, mask in enumerate(confined) for _ in mask] + list(node.values())
        columns = (
            list(range(1, first)) + [node[c] for mask in confined for c in mask] + [first + len(places)] * len(places)
        )
        fixed = asked + [amount for amount, mask in zip(asked, confined) for _ in mask]
        self._first, self._edges = first, (np.array(rows), np.array(columns))
        self._fixed: Ints = np.array(fixed, np.int32)

    def overloaded(self, most: list[int]) -> Mask | None:
        """Places to which more is confined than they may have together; None if all demand can be spread.

        Args:
            most: demand that each place may have, in units of ``scale``.
        """
        last = self._first + len(self.places)
        limits = np.array([min(-(-one // self._unit), self._total) for one in most], np.int32)
        capacity = csr_matrix((np.concatenate([self._fixed, limits]), self._edges), shape=(last + 1, last + 1))
        found = maximum_flow(capacity, 0, last)
        if found.flow_value == self._total:
            return None
        left = capacity - found.flow
        left.data = np.maximum(left.data, 0)
        left.eliminate_zeros()
        reached = breadth_first_order(left, 0, return_predecessors=False).tolist()
        return frozenset(self.places[node - self._first] for node in reached if self._first <= node < last)
