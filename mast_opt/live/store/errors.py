"""Errors of a store.

StoreError           nothing was written; the message says why
├── Conflict         other events are there already
├── Fenced           another process leads
│   └── LeadHeld     another process leads, and has been heard of lately
└── CorruptStore     what is stored is not what was written
"""

from typing import Any

from mast_opt.core.errors import MastOptError


class StoreError(MastOptError):
    """A store that cannot do what was asked of it: a full disk, a lost connection, a wrong path."""

    code = "store"


class Conflict(StoreError):
    """Events that do not follow those that are stored."""

    code = "store-conflict"


class Fenced(StoreError):
    """This process does not lead any more, and may not write."""

    code = "fenced"


class LeadHeld(Fenced):
    """Another process leads.

    Args:
        holder: its name.
        epoch: since which it leads.
    """

    code = "lead-held"

    def __init__(self, holder: str, epoch: int) -> None:
        super().__init__(f"{holder} leads (epoch {epoch}) and is alive, or was a moment ago")
        self.holder, self.epoch = holder, epoch

    def _fields(self) -> dict[str, Any]:
        """Fields of the error that another process leads the log, for programs."""
        return {"holder": self.holder, "epoch": self.epoch}


class CorruptStore(StoreError):
    """Raised when what is stored is not what was written."""

    code = "corrupt-store"
