"""Handover of servers between jobs: a job may start on a server where others still stop only when they have stopped."""

from collections.abc import Iterable

from mast_opt.live.loop.jobs import JobRecord

_NOBODY: frozenset[str] = frozenset()


class Handovers:
    """Jobs that still stop on a server, and jobs that wait for them."""

    def __init__(self) -> None:
        self._stopping_on: dict[str, set[str]] = {}
        self._waiters: dict[str, list[JobRecord]] = {}

    def begin(self, record: JobRecord) -> bool:
        """Register a job that is to start; its ``blockers`` become those that still stop on its servers. False if there
        are any."""
        if not self._stopping_on:
            return True
        for share in record.shares:
            record.blockers |= self._stopping_on.get(share.server, _NOBODY)
        for blocker in record.blockers:
            self._waiters.setdefault(blocker, []).append(record)
        return not record.blockers

    def busy(self, server: str) -> bool:
        """Whether a job still stops on a server."""
        return server in self._stopping_on

    def wait(self, record: JobRecord, blocker: str) -> None:
        """Let a job that is to start wait for one more job that still stops on its servers."""
        if blocker not in record.blockers:
            record.blockers |= {blocker}
            self._waiters.setdefault(blocker, []).append(record)

    def withdraw(self, record: JobRecord) -> None:
        """Withdraw a job that was to start."""
        for blocker in record.blockers:
            self._waiters[blocker].remove(record)
        record.blockers = _NOBODY

    def stopping(self, record: JobRecord) -> None:
        """Note that a job stops from now on; it holds its servers until it has stopped."""
        for share in record.shares:
            self._stopping_on.setdefault(share.server, set()).add(record.name)

    def stopped(self, record: JobRecord) -> Iterable[str]:
        """Note that a job has stopped, and return the jobs that may start now."""
        for server in {share.server: None for share in record.shares}:
            there = self._stopping_on[server]
            there.discard(record.name)
            if not there:
                del self._stopping_on[server]
        ready = []
        for waiter in self._waiters.pop(record.name, ()):
            waiter.blockers -= {record.name}
            if not waiter.blockers:
                ready.append(waiter.name)
        return ready
