"""Tunables of tetris's annealing kernel: how often each operator is tried, and how changes are proposed."""

from __future__ import annotations

from typing import NamedTuple

from mast_opt.core.arrays import FloatArray

MOVE, TWINS, SWAP, COMPOUND_MOVE = range(4)
"""Positions in ``Proposals.upto``; the compound swap is last."""


class Proposals(NamedTuple):
    """What the kernel tries; the fields but the first are those of ``OperatorParams``."""

    upto: FloatArray
    """[5] cumulative shares of the operators, scaled to 1."""
    guided: bool
    """Does a surrogate of the cost guide moves and exchanges of twins?"""
    surrogate_share: float
    holder_share: float
    window: int
    partners: int
