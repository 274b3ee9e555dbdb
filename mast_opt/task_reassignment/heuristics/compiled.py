"""How kernels are compiled: they release the interpreter, are kept on disk, and may reorder float sums, which are
sums of whole numbers and so exact in any order."""

from __future__ import annotations

from typing import Any

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "nsz", "contract", "nnan", "ninf"},
}
