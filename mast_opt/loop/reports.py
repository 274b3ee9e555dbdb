"""Reports of hosts that come twice, or too late to matter: hosts repeat themselves."""

from __future__ import annotations

from mast_opt.loop import events as ev
from mast_opt.loop.job_states import HOLDING, JobState
from mast_opt.loop.state import State


def fits(state: State, event: ev.Event) -> bool:
    """Whether a report of a host is about what is so now."""
    if isinstance(event, ev.Submitted):
        return event.job not in state.jobs
    if isinstance(event, ev.Cancelled):
        return event.job in state.jobs
    if isinstance(event, (ev.Started, ev.Stopped, ev.Finished, ev.Failed)):
        record = state.jobs.get(event.job)
        if record is None or record.attempt != event.attempt:
            return False
        if isinstance(event, ev.Started):
            return record.state is JobState.STARTING and not record.blockers
        return record.state in HOLDING
    if isinstance(event, (ev.ServerDown, ev.ServerUp)):
        return (event.server in state.inventory.up) == isinstance(event, ev.ServerDown)
    if isinstance(event, ev.ServerMoved):
        return state.inventory.moving.get(event.server) == event.cluster
    if isinstance(event, ev.SolveEnded):
        return state.plans.awaited(event.path) == event.checksum
    return not isinstance(event, (ev.CopyProgress, ev.CopyEnded)) or state.datasets.fits(event)
