"""Asking the processor for memory ahead of its use: a pass that looks up random rows then hardly waits for them."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from mast_opt.core.jit import kernel

LINE = 64
"""Bytes that come at a time."""
READ, KEEP, DATA = 0, 3, 1
"""Arguments of LLVM's ``prefetch``: for reading, to be kept in all caches, in the cache for data."""


def _line(context: Any, array: Any, row: Any, column: Any) -> Any:
    """Ask the processor, in a kernel, for the line of memory that holds an entry."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        held = context.make_array(signature.args[0])(context, builder, values[0])
        pointer_to: Any = cgutils.get_item_pointer
        at = pointer_to(context, builder, signature.args[0], held, values[1:], wraparound=False)
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        builder.call(prefetch, [builder.bitcast(at, pointer), *(number(flag) for flag in (READ, KEEP, DATA))])
        return context.get_dummy_value()

    return types.void(array, row, column), generate


def _nothing(array: NDArray[Any], row: int, column: int) -> None:
    """Do nothing, in the place of a prefetch where kernels are interpreted."""


_settings: Any = config
_fetch: Any = _nothing if _settings.DISABLE_JIT else intrinsic(_line)


@kernel
def fetch_row(array: NDArray[Any], row: int) -> None:
    """Ask the processor for a row of a contiguous array."""
    columns = array.shape[1]
    for column in range(0, columns, LINE // array.itemsize):
        _fetch(array, row, column)
    _fetch(array, row, columns - 1)
