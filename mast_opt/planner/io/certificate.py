"""Named arrays next to a plan's tables: the certificate of its bound, and digests of its instance's rows."""

import io
import math
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import Fault, PlanError
from mast_opt.core.limits import MOST_CERTIFICATE_BYTES, read_regular
from mast_opt.planner.io.faults import shortened
from mast_opt.planner.io.readers.archive import check_archive
from mast_opt.problems.kind.carried_axes import Digests

CERTIFICATE = "certificate.npz"
DIGESTS = "digests.npz"
_KINDS = "biufUS"
"""Kinds of values that an array may hold: truth values, numbers and text."""


def write_certificate(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the arrays, compressed, into a folder that is being filled."""
    named: dict[str, Any] = dict(arrays)
    np.savez_compressed(folder / CERTIFICATE, **named)


def write_digests(folder: Path, digests: Digests) -> None:
    """Write digests of an instance's rows, which do not compress, into a folder that is being filled."""
    named: dict[str, Any] = dict(digests)
    np.savez(folder / DIGESTS, **named)


def read_certificate(plan: str | PathLike[str]) -> dict[str, NDArray[Any]] | None:
    """The certificate next to a plan's tables, or None where there is none. Raises PlanError for a broken file."""
    return _arrays(Path(plan) / CERTIFICATE)


def read_digests(plan: str | PathLike[str], names: Iterable[str]) -> Digests | None:
    """Digests of the rows of a plan's instance, or None where the folder has none, or not those of these names.

    Raises PlanError for a broken file.
    """
    found = _arrays(Path(plan) / DIGESTS)
    if found is None or any(name not in found for name in names):
        return None
    faults = [Fault(DIGESTS, "a row of uint64", column=name) for name in names if not _is_digest(found[name])]
    if faults:
        raise PlanError(faults)
    return found


def _is_digest(array: NDArray[Any]) -> bool:
    """Whether an array of a file can hold digests."""
    return array.dtype == np.uint64 and array.ndim == 1


def _arrays(path: Path) -> dict[str, NDArray[Any]] | None:
    """The arrays of a file, None where there is no file. Raises PlanError for a broken one.

    Pickled objects are refused, so that a file from a stranger can run nothing.
    """
    if not path.exists():
        return None
    try:
        data = read_regular(path, MOST_CERTIFICATE_BYTES, inside=path.parent)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if data[:2] == b"PK":
                check_archive(data, MOST_CERTIFICATE_BYTES)
                _check_arrays(data)
            loaded = np.load(io.BytesIO(data), allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                raise ValueError("a single array")
            with loaded:
                return {name: np.asarray(loaded[name]) for name in loaded.files}
    except Exception as error:  # zip, zlib, struct, tokenizer, memory: damage surfaces anywhere below np.load
        reason = shortened(str(error) or type(error).__name__)
        raise PlanError([Fault(path.name, f"complete arrays in NumPy's .npz format ({reason})")]) from None


def _check_arrays(data: bytes) -> None:
    """Raises ValueError where an array of a certificate's file declares another size than it has: NumPy allocates what
    is declared.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            with archive.open(entry) as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, dtype = read(file)
                size = math.prod(shape) * dtype.itemsize
                if dtype.kind not in _KINDS or dtype.itemsize == 0:
                    raise ValueError(f"{entry.filename} holds {dtype}")
                if min(shape, default=0) < 0 or size != entry.file_size - file.tell():
                    raise ValueError(f"{entry.filename} declares {size:,} bytes and has {entry.file_size:,}")
