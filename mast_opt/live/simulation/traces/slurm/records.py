"""Rows of Slurm's accounting, and the resources that a job held (TRES)."""

import enum
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

GPU = "gres/gpu"
SHARED = ("gres/shard", "gres/mps")
"""Parts of GPUs, which a trace cannot hold."""
MOST = 10**9
"""Largest number of anything; sums stay exact in 64 bits."""
_MIB = {"K": 1 / 1024, "": 1.0, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_AMOUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)([KMGTP]?)")


class Stage(enum.Enum):
    """Stage of a job that a row of the accounting records."""

    ENDED = "its job is over"
    INTERRUPTED = "this run is over, and its job goes on or starts again"
    GOING = "it waits or runs"


_STAGES = {
    Stage.ENDED: "COMPLETED FAILED CANCELLED TIMEOUT OUT_OF_MEMORY DEADLINE",
    Stage.INTERRUPTED: (
        "REQUEUED REQUEUE_FED REQUEUE_HOLD SPECIAL_EXIT RESIZING NODE_FAIL PREEMPTED BOOT_FAIL LAUNCH_FAILED"
        " RECONFIG_FAIL"
    ),
    Stage.GOING: (
        "PENDING RUNNING SUSPENDED CONFIGURING COMPLETING EXPEDITING POWER_UP_NODE RESV_DEL_HOLD REVOKED SIGNALING"
        " STAGE_OUT STOPPED UPDATE_DB"
    ),
}
STATES = {name: stage for stage, names in _STAGES.items() for name in names.split()}
"""State of Slurm → how far it leads."""


def stage_of(states: Iterable[str]) -> Stage | None:
    """Stage of a Slurm job by the states of a row (``CANCELLED by 1000``; later versions list a state and its flags);
    None where none is stated. Raises ValueError for a state that Slurm does not have.
    """
    found = set()
    for state in states:
        name = state.split(" ", 1)[0].rstrip("+").upper()
        if name not in STATES:
            raise ValueError(state)
        found.add(STATES[name])
    return next((stage for stage in (Stage.INTERRUPTED, Stage.ENDED, Stage.GOING) if stage in found), None)


@dataclass(frozen=True, slots=True)
class SacctRow:
    """A row of the accounting: a job, or a part of its life between two changes."""

    row: int
    """Row or position in its file, from 1."""
    name: str
    submitted_s: int
    """Seconds since some moment, the same for all rows of a file."""
    ended_s: int | None
    """None while it has not ended."""
    elapsed_s: int
    stage: Stage | None
    """None where the file has no states."""
    partition: str
    nodes: int
    requested: Mapping[str, int]
    """Resource, such as ``cpu``, ``mem`` (MiB), ``gres/gpu``, ``gres/gpu:a100`` → how much it asked for."""
    allocated: Mapping[str, int]
    """Resources that it held; empty if it never ran."""
    account: str = ""
    user: str = ""
    qos: str = ""
    started_s: int | None = None
    limit_s: int | None = None
    """Time limit of the job; None for no limit, or the partition's."""
    restarts: int = 0
    """Number of times that its job had been requeued, where the file says so."""

    @property
    def ran(self) -> bool:
        """Whether a row of Slurm's accounting held something, and holds it no more."""
        return bool(self.allocated) and self.ended_s is not None and self.stage is not Stage.GOING


def gpus_in(resources: Mapping[str, int]) -> int:
    """GPUs of all types in a Slurm row; Slurm counts them together only where it is configured to."""
    typed = sum(count for name, count in resources.items() if name.startswith(GPU + ":"))
    return max(resources.get(GPU, 0), typed)


def gpu_types_in(resources: Mapping[str, int]) -> tuple[str, ...]:
    """GPU types that a row of Slurm's accounting names."""
    return tuple(sorted(name.partition(":")[2] for name in resources if name.startswith(GPU + ":")))


def resources_in(text: str) -> dict[str, int]:
    """Resource of Slurm (TRES) → amount, from text such as ``cpu=4,gres/gpu=2,mem=4000M,node=1``; memory in MiB,
    rounded up.

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
