"""Hydra (NSDI'19): how requests are spread over the sub-clusters of a federation that each decide for themselves.

Two formulas, as the authors contributed them to YARN's federation: weights of sub-clusters from their load (global
policy generator), and the split of a request for containers anywhere by headroom and weights (AM-RM proxy). There is no
program. Splits are whole numbers that add up exactly.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.arguments import a_whole
from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.core.errors import UsageError
from mast_opt.live.policies.arguments import numbers

SCALINGS: Mapping[str, Callable[[FloatArray, float], FloatArray]] = {
    "linear": lambda load, most: (most - load) / most,
    "quadratic": lambda load, most: (most**2 - load**2) / most**2,
    "log": lambda load, most: (np.log(most) - np.log(np.maximum(load, 1.0))) / np.log(most),
}
"""Name → share of the weight that a load above the lower limit leaves, and the load that leaves none."""


def load_weights(
    pending: ArrayLike,
    *,
    low: float,
    high: float,
    least_weight: float = 0.0,
    scaling: str = "linear",
    edited: int | None = None,
) -> FloatArray:
    """[C] weights of sub-clusters from their pending containers; 1 up to ``low``, ``least_weight`` from ``high`` on.

    Args:
        pending: [C] containers that wait in each sub-cluster.
        low, high: loads between which the weight falls.
        least_weight: from 0 to 1.
        scaling: how it falls: ``linear``, ``quadratic`` or ``log``, which takes ``high − low`` > 1.
        edited: only so many sub-clusters, those with most pending, are weighted down; None for all.

    Returns:
        The weights; all 1 where every one of them would be 0, since requests must go somewhere.
    """
    load = numbers("pending", pending, (None,))
    span = high - low
    if not (low >= 0 and span > (1 if scaling == "log" else 0)):
        raise UsageError(f"low and high are {low:g} and {high:g}; expected 0 ≤ low < high, for log more than 1 apart")
    if not 0 <= least_weight <= 1:
        raise UsageError(f"least_weight is {least_weight:g}; expected a number from 0 to 1")
    if scaling not in SCALINGS:
        raise UsageError(f"scaling is {scaling!r}; expected one of: {', '.join(SCALINGS)}")
    above = np.clip(load - low, 0.0, span)
    weights = np.where(above > 0, least_weight + (1 - least_weight) * SCALINGS[scaling](above, span), 1.0)
    if edited is not None:
        a_whole(0)("edited", edited)
        weights[np.argsort(-load, kind="stable")[edited:]] = 1.0
    return weights if weights.any() else np.ones(len(load))


def split(
    containers: int, *, headroom: ArrayLike, weights: ArrayLike, active: ArrayLike = True, alpha: float = 1.0
) -> IntArray:
    """[C] how many of the containers each sub-cluster is asked for; they add up to ``containers``.

    Sub-clusters that are active and have a weight take part. A part ``alpha`` goes by headroom: a sub-cluster of n
    whose headroom is not known gets 1/n of it, and the others share the rest in proportion to their headroom. The
    part 1 − alpha goes by weight. Fractions go to the largest remainders, ties to the first.

    Args:
        containers: a whole number.
        headroom: [C] resources that each says to have left; NaN if it is not known.
        weights: [C]
        active: [C] does the sub-cluster answer?
        alpha: from 0 to 1.

    Raises:
        UsageError: no sub-cluster takes part.
    """
    a_whole(0)("containers", containers)
    room = np.asarray(headroom, np.float64)
    known = ~np.isnan(room)
    room = numbers("headroom", np.where(known, room, 0.0), (None,))
    weight = numbers("weights", weights, room.shape)
    if not 0 <= alpha <= 1:
        raise UsageError(f"alpha is {alpha:g}; expected a number from 0 to 1")
    takes = np.broadcast_to(np.asarray(active, np.bool_), room.shape) & (weight > 0)
    if not takes.any():
        raise UsageError("no sub-cluster is active and has a weight above 0; expected at least one")
    share = alpha * _by_headroom(room, known, takes) + (1 - alpha) * _proportional(np.where(takes, weight, 0.0), takes)
    return largest_remainder(containers, share)


def _by_headroom(room: FloatArray, known: BoolArray, takes: BoolArray) -> FloatArray:
    """Hydra's shares of sub-clusters [C]: 1/n where headroom is not known, the rest in proportion to headroom."""
    unknown = takes & ~known
    each: FloatArray = unknown / takes.sum()
    rest = 1 - float(each.sum())
    return each + rest * _proportional(np.where(takes & known, room, 0.0), takes & known)


def _proportional(amount: FloatArray, takes: BoolArray) -> FloatArray:
    """Hydra's shares of sub-clusters that add up to 1, equal where all amounts are 0; all 0 where nobody takes part."""
    shares: FloatArray = amount / amount.sum() if amount.sum() > 0 else takes / max(1, takes.sum())
    return shares


def largest_remainder(total: int, shares: ArrayLike) -> IntArray:
    """[C] whole numbers that add up to ``total`` and differ from total · share by less than 1.

    Args:
        total: a whole number.
        shares: [C] that add up to 1.

    Raises:
        UsageError: they do not.
    """
    a_whole(0)("total", total)
    share = numbers("shares", shares, (None,))
    if not np.isclose(share.sum(), 1.0, rtol=0, atol=1e-9):
        raise UsageError(f"shares add up to {share.sum():g}; expected 1")
    exact = np.round(total * share, 9)  # 37.5 twice is a tie, whatever the last bits say
    parts: IntArray = np.floor(exact).astype(np.int64)
    first = np.argsort(-(exact - parts), kind="stable")[: total - int(parts.sum())]
    parts[first] += 1
    return parts
