"""Reports that come twice, or too late to matter: hosts repeat themselves, and people do the same at the same time."""

from collections.abc import Callable, Mapping
from typing import Any

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_states import HOLDING, WAITING, JobState
from mast_opt.live.loop.state import State


def fits(state: State, event: ev.Event) -> bool:
    """Whether a host's report is about the present state, and neither late nor a repetition."""
    check = _CHECKS.get(type(event))
    return check is None or check(state, event)


def _started(state: State, event: ev.Started) -> bool:
    """Whether a host's report that a job has started is news: of its present attempt, which starts."""
    record = state.jobs.get(event.job)
    if record is None or record.attempt != event.attempt:
        return False
    return record.state is JobState.STARTING and not record.blockers


def _ended(state: State, event: ev.Stopped | ev.Finished | ev.Failed) -> bool:
    """Whether a host's report that an attempt has ended is news: the job still holds its servers."""
    record = state.jobs.get(event.job)
    return record is not None and record.attempt == event.attempt and record.state in HOLDING


def _adopted(state: State, event: ev.Adopted) -> bool:
    """Whether a host's report that a waiting job runs is news, on servers that are in service."""
    record = state.jobs.get(event.job)
    if record is None or record.state not in WAITING or event.attempt != record.attempt + 1:
        return False
    return all(share.server in state.inventory.up for share in event.shares)


def _copies(state: State, event: ev.CopyProgress | ev.CopyEnded) -> bool:
    """Whether a host's report of a copy is news."""
    return state.datasets.fits(event)


_CHECKS: Mapping[type, Callable[[State, Any], bool]] = {
    ev.Submitted: lambda state, event: event.job not in state.jobs,
    ev.Cancelled: lambda state, event: event.job in state.jobs,
    ev.Adopted: _adopted,
    ev.CapacitySet: lambda state, event: state.inventory.resizes(event),
    ev.Started: _started,
    ev.Stopped: _ended,
    ev.Finished: _ended,
    ev.Failed: _ended,
    ev.ServerDown: lambda state, event: event.server in state.inventory.up,
    ev.ServerUp: lambda state, event: event.server not in state.inventory.up,
    ev.ServerClosed: lambda state, event: event.stop_ms != state.inventory.closed.get(event.server, "open"),
    ev.ServerOpened: lambda state, event: event.server in state.inventory.closed,
    ev.ServerMoved: lambda state, event: state.inventory.moving.get(event.server) == event.cluster,
    ev.DatasetCreated: lambda state, event: state.datasets.is_news(event),
    ev.ReplicaDropped: lambda state, event: event.region in state.datasets.whole_in(event.dataset),
    ev.SolveAsked: lambda state, event: not state.plans.awaited(event.path),
    ev.SolveEnded: lambda state, event: state.plans.awaited(event.path) == event.checksum,
    ev.CopyProgress: _copies,
    ev.CopyEnded: _copies,
}
"""Report → whether it fits; others always do."""
