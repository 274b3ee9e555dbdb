"""Worst ratio of demand to supply when work may be spread over the places where it can run.

The ratio θ is the least with which demand can be spread so that no place gets more than θ times its supply: a linear
program. It equals the largest, over sets of places, of the demand that is confined to a set over its supply
(P. Hall, 1935, for fractions: max-flow min-cut).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

Mask = frozenset[int]
"""Places where some work can run."""


class NoAnswer(ArithmeticError):
    """The linear program of a worst ratio has not been solved; the message is the solver's."""


@dataclass(frozen=True)
class WorstRatio:
    """Worst ratio of demand to supply, and the prices that prove it."""

    ratio: float
    prices: tuple[float, ...]
    """[C] of each place: by how much the ratio grows with a further unit of demand that can run only there. Times
    supply they add up to 1 where there is demand."""
    stranded: int
    """Demand that no place with supply can take; it is left out."""


def worst_ratio(demand: Mapping[Mask, int], supply: Sequence[int]) -> WorstRatio:
    """The worst ratio of demands to the supply of the places where they can run.

    Args:
        demand: mask → how much of such work there is.
        supply: [C] of each place.

    Raises:
        NoAnswer: the solver has failed.
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
    masks, places = sorted(confined, key=sorted), sorted(usable)
    row = np.repeat(np.arange(len(masks)), [len(mask) for mask in masks])
    place = np.array([places.index(c) for mask in masks for c in sorted(mask)])
    column = np.arange(len(row))
    scale = float(max(supply))
    amounts = np.array([supply[c] for c in places]) / scale
    ones = np.ones(len(row))
    spread = csr_matrix((ones, (row, column)), shape=(len(masks), len(row) + 1))
    taken = csr_matrix(
        (
            np.concatenate([ones, -amounts]),
            (np.concatenate([place, np.arange(len(places))]), np.concatenate([column, np.full(len(places), len(row))])),
        ),
        shape=(len(places), len(row) + 1),
    )
    cost = np.zeros(len(row) + 1)
    cost[-1] = 1.0
    asked = np.array([confined[mask] for mask in masks]) / scale
    found = linprog(cost, A_ub=taken, b_ub=np.zeros(len(places)), A_eq=spread, b_eq=asked, method="highs")
    if found.status != 0:
        raise NoAnswer(str(found.message))
    prices = np.zeros(len(supply))
    prices[places] = np.maximum(-found.ineqlin.marginals, 0.0) / scale
    return WorstRatio(float(found.fun), tuple(prices.tolist()), stranded)
