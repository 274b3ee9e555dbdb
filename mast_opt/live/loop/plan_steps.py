"""Steps of plans: whether one still fits when its time has come, and the event with which it begins."""

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_states import HOLDING
from mast_opt.live.loop.snapshot import Snapshot


def misfit(snapshot: Snapshot, step: ev.PlanStep) -> str:
    """Reason why a step cannot be taken now, in words; empty if it can."""
    if step.does == ev.COPY:
        return _copy_misfit(snapshot, step)
    return _drop_misfit(snapshot, step) if step.does == ev.DROP else _move_misfit(snapshot, step)


def event_of(snapshot: Snapshot, step: ev.PlanStep) -> ev.CopyAsked | ev.ReplicaDropped | ev.MoveAsked:
    """The event with which a step begins that fits."""
    if step.does == ev.COPY:
        return ev.CopyAsked(step.name, step.source, step.target, snapshot.datasets.size_mb[step.name])
    if step.does == ev.DROP:
        return ev.ReplicaDropped(step.name, step.target)
    return ev.MoveAsked(step.name, step.target)


def _copy_misfit(snapshot: Snapshot, step: ev.PlanStep) -> str:
    """Reason why a plan's copy of a dataset cannot begin, in words; empty if it can."""
    data = snapshot.datasets
    if step.target in data.whole_in(step.name) or (step.name, step.target) in data.copying:
        return "it is there already, or on its way"
    if step.source not in data.whole_in(step.name):
        return f"{step.source}, from where it was to come, does not hold it"
    if not data.may_be_in(step.name, step.target):
        return "the region is outside its residency now"
    if not data.has_room(step.target, data.size_mb[step.name]):
        return "the region has no room for it any more"
    return ""


def _drop_misfit(snapshot: Snapshot, step: ev.PlanStep) -> str:
    """Reason why a plan's deletion of a replica cannot be made, in words; empty if it can."""
    whole = snapshot.datasets.whole_in(step.name)
    if step.target not in whole:
        return "it is not there"
    if len(snapshot.datasets.readable_in(step.name) - {step.target}) < step.keep:
        return f"fewer than {step.keep} replicas that jobs may read would be left"
    for record in snapshot.readers(step.name):
        if record.state in HOLDING:
            if record.region == step.target:
                return f"job {record.name} reads it there"
        elif snapshot.admissible(record) == (step.target,):
            return f"job {record.name} waits for a place there and can run nowhere else"
    return ""


def _move_misfit(snapshot: Snapshot, step: ev.PlanStep) -> str:
    """Reason why a plan's move of a server to another cluster cannot begin, in words; empty if it can."""
    inventory = snapshot.inventory
    if step.name not in inventory.up:
        return "it is out of service"
    if step.name in inventory.moving:
        return "it moves already"
    here = inventory.server_of[step.name]
    if here.cluster == step.target:
        return "it is there already"
    if step.target not in {server.cluster for server in inventory.server_of.values() if server.region == here.region}:
        return "its region has no such cluster"
    if any(share.server == step.name for record in snapshot.jobs.values() for share in record.shares):
        return "a job runs on it"
    return ""
