"""What is read of a job in Slurm's accounting, and of the resources that it held (TRES)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

GPU = "gres/gpu"
MOST = 10**9
"""Of any count; sums stay exact in 64 bits."""
_MIB = {"K": 1 / 1024, "": 1.0, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_AMOUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)([KMGTP]?)")


@dataclass(frozen=True, slots=True)
class SacctJob:
    """A job."""

    row: int
    """Row or position in its file, from 1."""
    name: str
    submitted_s: int
    """Seconds since some moment, the same for all jobs of a file."""
    elapsed_s: int
    ended: bool
    partition: str
    nodes: int
    requested: Mapping[str, int]
    """Resource, such as ``cpu``, ``mem`` (MiB), ``gres/gpu``, ``gres/gpu:a100`` → how much it asked for."""
    allocated: Mapping[str, int]
    """How much it held; empty if it never ran."""
    account: str = ""
    user: str = ""
    qos: str = ""

    @property
    def gpus(self) -> int:
        """GPUs that it held, of all types."""
        return gpus_in(self.allocated)

    @property
    def gpu_types(self) -> tuple[str, ...]:
        """GPU types that it asked for by name."""
        return tuple(sorted(name.partition(":")[2] for name in self.requested if name.startswith(GPU + ":")))


def gpus_in(resources: Mapping[str, int]) -> int:
    """GPUs of all types; Slurm counts them together only where it is configured to."""
    typed = sum(count for name, count in resources.items() if name.startswith(GPU + ":"))
    return max(resources.get(GPU, 0), typed)


def resources_in(text: str) -> dict[str, int]:
    """Resource → amount, from text such as ``cpu=4,gres/gpu=2,mem=4000M,node=1``; memory in MiB, rounded up.

    Raises:
        ValueError: the text is not of that form.
    """
    found: dict[str, int] = {}
    for part in text.split(",") if text else []:
        name, equals, amount = part.partition("=")
        match = _AMOUNT.fullmatch(amount)
        if not name or not equals or match is None or (match[2] and name != "mem") or name in found:
            if name in ("cpu", "mem", "node") or name.startswith(GPU) or not equals:
                raise ValueError(part)
            continue  # energy and licences have forms of their own
        value = float(match[1]) * (_MIB[match[2]] if name == "mem" else 1.0)
        if value > MOST:
            raise ValueError(part)
        found[name] = -int(-value // 1)
    return found
