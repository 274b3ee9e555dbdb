"""MIP well-formedness checks: solvers take arrays as they are, and one wrong position makes them read elsewhere."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import UsageError

if TYPE_CHECKING:
    from mast_opt.problems.mip.program import Mip


def check(mip: "Mip") -> None:
    """Check every array of a program. Raises UsageError that names the array and the position."""
    width, height = _length(mip, "cost"), _length(mip, "row_lower")
    check_objective(mip, width)
    check_limits(mip, width, height)
    _array(mip, "value", "f", "floats", None)
    _finite(mip, "value")
    _array(mip, "integral", "b", "booleans", width)
    _array(mip, "row_start", "iu", "integers", height + 1)
    _array(mip, "index", "iu", "integers", len(mip.value))
    start = mip.row_start
    if int(start[0]) != 0 or int(start[-1]) != len(mip.index) or (start[1:] < start[:-1]).any():
        raise UsageError(
            f"row_start of program {mip.name!r} runs from {start[0]} to {start[-1]}; "
            f"expected ascending positions from 0 to {len(mip.index)}"
        )
    _positions(f"index of program {mip.name!r}", mip.index, width)
    for name, term in mip.terms.items():
        _positions(f"columns of the term {name!r} of program {mip.name!r}", term.columns, width)


def check_objective(mip: "Mip", width: int) -> None:
    """Check a program's objective alone, over so many columns. Raises UsageError."""
    _array(mip, "cost", "f", "floats", width)
    _finite(mip, "cost")
    _finite(mip, "offset")


def check_limits(mip: "Mip", width: int, height: int) -> None:
    """Check the limits of a program's columns and rows alone, over so many of them. Raises UsageError."""
    lengths = {"col_lower": width, "col_upper": width, "row_lower": height, "row_upper": height}
    for name, length in lengths.items():
        _array(mip, name, "f", "floats", length)
        if np.isnan(getattr(mip, name)).any():
            raise UsageError(f"{name} of program {mip.name!r} holds NaN; expected numbers, or ±infinity for no limit")


def _finite(mip: "Mip", name: str) -> None:
    """Raises UsageError where an array of the program holds NaN or infinity."""
    if not np.isfinite(getattr(mip, name)).all():
        raise UsageError(f"{name} of program {mip.name!r} holds NaN or infinity; expected finite numbers")


def _length(mip: "Mip", name: str) -> int:
    """Length of an array of the program. Raises UsageError for what is no array of one dimension."""
    found = getattr(mip, name)
    if not isinstance(found, np.ndarray) or found.ndim != 1:
        raise UsageError(f"{name} of program {mip.name!r} is a {type(found).__name__}; expected an array of floats")
    return len(found)


def _array(mip: "Mip", name: str, kinds: str, content: str, length: int | None) -> None:
    """Raises UsageError where an array of the program has another type or shape than it must."""
    found: NDArray[Any] = getattr(mip, name)
    if not isinstance(found, np.ndarray) or found.dtype.kind not in kinds:
        words = f"dtype {found.dtype}" if isinstance(found, np.ndarray) else f"a {type(found).__name__}"
        raise UsageError(f"{name} of program {mip.name!r} is {words}; expected an array of {content}")
    if found.ndim != 1 or (length is not None and len(found) != length):
        expected = "one dimension" if length is None else f"shape ({length},)"
        raise UsageError(f"{name} of program {mip.name!r} has shape {found.shape}; expected {expected}")


def _positions(what: str, found: NDArray[Any], width: int) -> None:
    """Raises UsageError where positions in a program's array are none, or beyond its width."""
    if not isinstance(found, np.ndarray) or found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise UsageError(f"{what} are no array of positions; expected integers in one dimension")
    if found.size and (int(found.min()) < 0 or int(found.max()) >= width):
        raise UsageError(
            f"{what} go from {found.min():,} to {found.max():,}; expected positions from 0 to {width - 1:,}"
        )
