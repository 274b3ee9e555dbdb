"""Kernels over sums of whole numbers, which are exact in any order: the compiler may reorder them."""

from __future__ import annotations

from mast_opt.core.jit import FunctionT, define

_REORDER = {"reassoc", "nsz", "contract", "nnan", "ninf"}


def compiled(function: FunctionT) -> FunctionT:
    """The function, compiled when it is first called; Python and other kernels may call it. It allocates nothing."""
    return define(function, _nrt=False, fastmath=_REORDER)


def inlined(function: FunctionT) -> FunctionT:
    """The function as part of its callers, for what is called often: handing over some forty arrays costs more than
    most of these functions. Python may call it too."""
    return define(function, _nrt=False, fastmath=_REORDER, forceinline=True)
