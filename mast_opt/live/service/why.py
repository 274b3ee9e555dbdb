"""Reasons of jobs that wait, in one line each: what keeps a job, what would have to happen, and its place in the queue.

Equal jobs have equal reasons, which are worked out once.
"""

from collections import Counter
from collections.abc import Collection
from typing import Any

from mast_opt.core.wording import counted
from mast_opt.live.loop.job_states import WAITING
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.longest_waits import size_class
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.loop.state import State
from mast_opt.problems.job_placement.live_fleet.answers import Refused
from mast_opt.problems.job_placement.units import WHOLE

NEVER = frozenset({"size", "task", "gpu-type", "data-and-type"})
"""Codes of what no end of another job helps."""
_SHORT = ("gpus", "cpu", "memory", "fragmented", "out-of-service")
"""Codes of clusters that would hold a job, the most telling first."""


class Why:
    """Reasons of waiting jobs as a state is now."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._known: dict[tuple[object, ...], tuple[str, bool]] = {}

    def of(self, record: JobRecord) -> dict[str, Any]:
        """Reason, for a client, of a job that waits, empty for another one, and whether it can never run as the fleet
        is.
        """
        if record.state not in WAITING:
            blockers = len(record.blockers)
            return {"why": f"{blockers} jobs still stop there" if blockers else "", "never": False}
        spec = record.spec
        key = spec.tier, spec.shape, spec.datasets, spec.tenant, spec.preemptible, record.bound
        if key not in self._known:
            self._known[key] = self._reason(record)
        words, never = self._known[key]
        return {"why": "; ".join(filter(None, (record.held, words))), "never": never}

    def _reason(self, record: JobRecord) -> tuple[str, bool]:
        """Reason for a client why a job waits, in one line, and whether it can never run as the fleet is."""
        fleet, job = self._state.fleet, record.job
        found = fleet.place(job)
        if not isinstance(found, Refused):
            return "it fits, and waits for its turn" if not record.held else "", False
        words = found.reason
        if found.code in NEVER:
            return f"{words}: it can never run as the fleet is", True
        clusters = fleet.explain(job)
        if found.code in ("data", "residency") and any(one.code == "data" for one in clusters):
            return f"{words}; a copy of it would have to be made where there is room", False
        if not any(one.fits or one.code in _SHORT for one in clusters):
            return f"{words}: {'; '.join(sorted({one.words for one in clusters}))}; it can never run as it is", True
        short = [one for one in clusters if one.code in _SHORT]
        if short:
            nearest = min(short, key=lambda one: (_SHORT.index(one.code), one.cluster))
            many = counted(record.asked_mgpu / WHOLE / record.spec.tasks, "GPU")
            many = f"{record.spec.tasks:,} times {many}" if record.spec.tasks > 1 else many
            least, most = record.spec.sizes
            many += f" (it may have {least:,} to {most:,} tasks)" if least < most else ""
            many, of = ("all parts", f", {nearest.part}") if record.spec.parts else (many, "")
            words = f"no cluster has {many} free for it; {nearest.cluster}{of}: {nearest.words}"
        return "; ".join(filter(None, (self._over_quota(record), words))), False

    def _over_quota(self, record: JobRecord) -> str:
        """Words for a client on a job that its tenant's quota does not cover; empty for another one."""
        over = self._state.fleet.short_of_quota(record.job)
        of = f"over the quota of {record.spec.tenant} by {counted(over / WHOLE, 'GPU')}"
        return f"{of}, so it stops no work within quotas" if over > 0 else ""


def waiting_longest(state: State) -> dict[int, JobRecord]:
    """Size, see ``size_class``, ascending → the job of it that came first of those that wait."""
    found: dict[int, JobRecord] = {}
    for record in state.jobs.values():
        if record.waits:
            found.setdefault(size_class(record.asked_mgpu), record)
    return dict(sorted(found.items()))


def ahead(state: State) -> dict[str, int]:
    """Tenant with a quota → its rank among others of a tier, see ``Snapshot.credit_milli``; others have 0."""
    snapshot = Snapshot(state, ())
    return {tenant: -snapshot.credit_milli(tenant) for tenant, kind, *_ in state.quotas.rows() if kind is None}


def places(state: State, names: Collection[str], promote_ms: int) -> dict[str, int]:
    """Those of these jobs that wait, with their places in the queue: by tier (see ``JobRecord.queue_tier``), by what
    their tenants left of their quotas, then by submission."""
    wanted = {name for name in names if state.jobs[name].state in WAITING}
    counts, found = Counter[tuple[int, int]](), dict[str, tuple[tuple[int, int], int]]()
    first = ahead(state)
    for record in state.jobs.values() if wanted else ():
        if record.state in WAITING:
            tier = record.queue_tier(state.now_ms, promote_ms) if promote_ms else record.spec.tier
            rank = tier, first.get(record.spec.tenant, 0) if first else 0
            counts[rank] += 1
            if record.name in wanted:
                found[record.name] = rank, counts[rank]
    return {name: at + sum(counts[one] for one in counts if one < rank) for name, (rank, at) in found.items()}
