"""The digest of a state: the same for a log that was lived through and for one that was read again."""

import hashlib
from typing import TYPE_CHECKING

from mast_opt.live.loop.jobs import JobRecord

if TYPE_CHECKING:
    from mast_opt.live.loop.state import State


def digest_of(state: "State") -> str:
    """Digest of a state of the loop, equal for equal states."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(state.jobs):
        digest.update(repr((name, *_fields(state.jobs[name]))).encode())
    inventory = state.inventory
    for mapping in (inventory.supply_mgpu, inventory.used_mgpu, inventory.moving, inventory.shrinking):
        digest.update(repr(sorted(mapping.items())).encode())
    if inventory.closed:  # so that a log without it has the digest that it had before there was this
        digest.update(repr(sorted(inventory.closed.items())).encode())
    for part in (state.tenants, state.datasets, state.demand, state.use, state.plans):
        digest.update(repr(part.fields()).encode())
    digest.update(repr(state.quotas.rows()).encode())
    digest.update(repr((state.seq, state.now_ms, state.submitted, sorted(inventory.up), state.rules)).encode())
    return digest.hexdigest()


def _fields(record: JobRecord) -> tuple[object, ...]:
    """Values of a job's record that count for the digest of a state."""
    without = ("spec", *(name for name in ("promise", "resized") if not getattr(record, name)))
    names = ("asked_mgpu" if name == "of" else name for name in JobRecord.__slots__ if name not in without)
    return tuple(_canonical(getattr(record, name)) for name in names)


def _canonical(value: object) -> object:
    """A value for the digest of a state: sets in order."""
    return sorted(value) if isinstance(value, (set, frozenset)) else value
