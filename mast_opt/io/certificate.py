"""The certificate of a plan's bound: named arrays in ``certificate.npz``, beside the plan's tables."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.errors import Fault, PlanError
from mast_opt.io.faults import shortened

CERTIFICATE = "certificate.npz"


def write_certificate(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the arrays, compressed, into a folder that is being filled."""
    named: dict[str, Any] = dict(arrays)
    np.savez_compressed(folder / CERTIFICATE, **named)


def read_certificate(plan: str | PathLike[str]) -> dict[str, NDArray[Any]] | None:
    """The arrays beside a plan's tables, or None where there is no certificate. Raises PlanError for a broken file.

    Pickled objects are refused, so that a file from a stranger can run nothing.
    """
    path = Path(plan) / CERTIFICATE
    if not path.exists():
        return None
    try:
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                raise ValueError("a single array")
            with loaded:
                return {name: np.asarray(loaded[name]) for name in loaded.files}
    except Exception as error:  # zip, zlib, struct, tokenizer, memory: damage surfaces anywhere below np.load
        reason = shortened(str(error) or type(error).__name__)
        raise PlanError([Fault(CERTIFICATE, f"complete arrays in NumPy's .npz format ({reason})")]) from None
