"""Kernels over sums of whole numbers, which are exact in any order: the compiler may reorder them."""

from mast_opt.core.jit import FunctionT, define, kernel

_REORDER = {"reassoc", "nsz", "contract", "nnan", "ninf"}


def compiled(function: FunctionT) -> FunctionT:
    """The function, compiled when it is first called; Python and other kernels may call it. It allocates nothing."""
    return define(function, _nrt=False, fastmath=_REORDER)


def inlined(function: FunctionT) -> FunctionT:
    """The function as a part of kernels that call it; Python cannot."""
    return kernel(function, fastmath=_REORDER)
