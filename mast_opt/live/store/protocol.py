"""Interface of a store of a live loop."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future
from typing import Protocol

from mast_opt.live.loop.events import Stored
from mast_opt.live.store.records import Answer, Batch, Lead, OpenCommand, Snapshot, StoredPlan


class Store(Protocol):
    """A log, and what belongs to it. Every method may raise StoreError."""

    def lead(self) -> Lead | None:
        """The present leader; None if there never was one."""
        ...

    def take_lead(self, holder: str, ttl_s: float) -> int:
        """Lead from now on; returns the epoch, which every write carries.

        A leader whose process has ended is followed at once; one that cannot be seen to have ended, when it has not
        renewed its lead for ``ttl_s`` seconds by the clock of who asks.

        Raises:
            LeadHeld: somebody else leads. Ask again.
        """
        ...

    def renew_lead(self, epoch: int) -> None:
        """Say that the leader is alive. Raises Fenced."""
        ...

    def release_lead(self, epoch: int) -> None:
        """Let the next one lead at once. Raises Fenced."""
        ...

    def append(self, epoch: int, batch: Batch) -> int:
        """Write a batch; it is durable on return. Returns the number of the last event.

        Raises:
            Fenced: somebody else leads.
            Conflict: the batch does not follow the last event.
        """
        ...

    def append_soon(self, epoch: int, batch: Batch) -> Future[int]:
        """Append a batch like ``append``, without waiting. Batches that come together are committed together."""
        ...

    def last_seq(self) -> int:
        """Number of the last event."""
        ...

    def first_seq(self) -> int:
        """Number of the first event that is still kept."""
        ...

    def read(self, after_seq: int = 0, to_seq: int | None = None) -> Iterator[Stored]:
        """Events in order. Raises CorruptStore at the first one that is not what was written."""
        ...

    def of_job(self, job: str) -> list[Stored]:
        """The events about a job that are still kept."""
        ...

    def known_jobs(self, names: Collection[str]) -> set[str]:
        """Those of these names that were submitted, as far as events are kept."""
        ...

    def open_commands(self) -> list[OpenCommand]:
        """Commands without an answer, in the order in which they were given."""
        ...

    def answer(self, principal: str, key: str) -> Answer | None:
        """The stored answer to a request; None if it is not known."""
        ...

    def save_plan(self, epoch: int, plan: StoredPlan) -> None:
        """Keep what a plan is and where; one of the same id is replaced. Raises Fenced."""
        ...

    def plans(self) -> list[StoredPlan]:
        """Records of every stored plan, the newest first."""
        ...

    def save_snapshot(self, epoch: int, snapshot: Snapshot) -> None:
        """Keep the state after an event; older snapshots but the last go."""
        ...

    def snapshots(self) -> list[Snapshot]:
        """Snapshots, the newest first; damaged ones are left out."""
        ...

    def retain(self, epoch: int, *, events_from: int, answers_from_ms: int) -> Mapping[str, int]:
        """Delete events before one of that number, and answers before that time; returns how many of each.

        Raises:
            StoreError: there is no snapshot from which the events that stay would lead to the state.
        """
        ...

    def check(self) -> int:
        """Read everything that is kept; returns the number of events. Raises CorruptStore."""
        ...

    def close(self) -> None:
        """Write what has come, and give everything back."""
        ...
