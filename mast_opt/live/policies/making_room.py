"""Room for gangs (policy ``mast``): smaller jobs that are as important stop, and start again elsewhere.

A gang that takes whole servers waits for ever where each server has a small job that it may not stop. It never stops a
job as large as one of its own tasks, so that no two jobs stop each other.
"""

from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.policies.part_times import Times


class MakingRoom:
    """The rule of when jobs stop for a gang, and how many.

    Args:
        after_ms: how long it has waited before; 0 for never. It is also the time from one attempt to the next.
        share: of what the gang asks for, which those jobs hold at most.
        preemptible: whether only jobs stop that more important work may stop.
    """

    def __init__(self, after_ms: int, share: float, preemptible: bool) -> None:
        self._after_ms, self._share, self._preemptible = after_ms, share, preemptible
        self._next_ms: dict[str, int] = {}
        """Job → time before which it is not tried again."""
        self._lost_ms: dict[str, int] = {}
        """Job for which others would have lost too much → the same time, at which nothing else may happen."""

    @property
    def on(self) -> bool:
        """Whether any job ever stops so."""
        return self._after_ms > 0

    def first_ms(self, record: JobRecord) -> int:
        """Time from which jobs may stop for a gang, or may again."""
        return max(record.since_ms + self._after_ms, self._lost_ms.get(record.name, 0))

    def make(self, record: JobRecord, times: Times, snapshot: Snapshot, actions: Actions) -> bool:
        """Ask the jobs to stop that keep a gang from its servers, if it is time and they would lose no more GPU time
        than it has waited; False if none is asked."""
        now_ms = snapshot.now_ms
        if not self.on or now_ms < max(self.first_ms(record), self._next_ms.get(record.name, 0)):
            return False
        self._next_ms = {name: at_ms for name, at_ms in self._next_ms.items() if at_ms > now_ms}
        self._lost_ms = {name: at_ms for name, at_ms in self._lost_ms.items() if at_ms > now_ms}
        self._next_ms[record.name] = now_ms + self._after_ms
        stopped = times.room(int(self._share * record.asked_mgpu), self._preemptible, snapshot)
        if sum(one.unsaved_mgpu_ms(now_ms) for one in stopped) > record.asked_mgpu * (now_ms - record.since_ms):
            self._lost_ms[record.name] = self._next_ms[record.name]
            return False
        for each in stopped:
            actions.preempt(each.name, f"room for {record.name}")
        return bool(stopped)
