"""Checks of the arrays that callers hand to policies."""

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.arguments import refuse
from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import UsageError


def numbers(
    name: str,
    value: ArrayLike,
    shape: tuple[int | None, ...],
    *,
    least: float = 0.0,
    above: float | None = None,
    infinite: bool = False,
) -> FloatArray:
    """An argument of a policy, checked, as a read-only array of floats.

    Args:
        name: of the argument, for errors.
        value: what was given; a single number stands for an array of it where the shape is known.
        shape: length of each axis; None for any.
        least: smallest value allowed.
        above: a value that all must exceed.
        infinite: may they be infinite?

    Raises:
        UsageError: it is no such array; names the first entry that is wrong.
    """
    try:
        found = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise refuse(name, value, "an array of numbers") from None
    if found.ndim == 0 and None not in shape:
        found = np.broadcast_to(found, [length or 0 for length in shape])
    if found.ndim != len(shape) or any(
        wanted is not None and wanted != length for wanted, length in zip(shape, found.shape, strict=True)
    ):
        axes = " × ".join("any" if length is None else str(length) for length in shape)
        raise UsageError(f"{name} has shape {found.shape}; expected {axes}")
    broken = (np.isnan(found) if infinite else ~np.isfinite(found)) | (
        found < least if above is None else found <= above
    )
    expected = (
        f"{'' if infinite else 'finite '}numbers {f'of at least {least:g}' if above is None else f'above {above:g}'}"
    )
    if broken.any():
        at = np.argwhere(broken)[0].tolist()
        place = ", ".join(map(str, at))
        raise UsageError(f"{name}[{place}] is {found[tuple(at)]:g}; expected {expected}")
    found = np.array(found)
    found.setflags(write=False)
    return found
