"""GPUs in use by cluster and type over the last days, and the P95 of that."""

from collections import deque
from dataclasses import dataclass, field

from mast_opt.live.loop.demand import DAY_MS, DAYS

INTERVAL_MS = 1_800_000
"""Use is kept as its maximum in intervals of this length."""
INTERVALS = DAYS * DAY_MS // INTERVAL_MS


@dataclass(slots=True)
class _Use:
    interval: int
    """Interval in which something changed last."""
    mgpu: int = 0
    """Use now, which the ledger has by tenant and the fleet by region."""
    peak_mgpu: int = 0
    """Largest use in that interval."""
    peaks: deque[tuple[int, int, int]] = field(default_factory=deque)
    """(interval, largest use in it, use at its end) of the intervals before, one for each in which something changed.
    """

    def change(self, mgpu: int, interval: int) -> None:
        """Add to the milli-GPUs in use in a cluster from now on; a negative amount takes away."""
        if interval != self.interval:
            peaks = self.peaks
            peaks.append((self.interval, self.peak_mgpu, self.mgpu))
            self.interval, self.peak_mgpu = interval, self.mgpu
            while len(peaks) > 1 and peaks[1][0] <= interval - INTERVALS:
                peaks.popleft()
        self.mgpu += mgpu
        if self.mgpu > self.peak_mgpu:
            self.peak_mgpu = self.mgpu


class ClusterUse:
    """Milli-GPUs that jobs hold in each cluster, by type. Only ``State.apply`` changes it."""

    def __init__(self) -> None:
        self._uses: dict[tuple[str, str], _Use] = {}

    def change(self, cluster: str, gpu_type: str, mgpu: int, now_ms: int) -> None:
        """Add to the milli-GPUs of a cluster and GPU type that are in use from now on; a negative amount takes away."""
        use, interval = self._uses.get((cluster, gpu_type)), now_ms // INTERVAL_MS
        if use is None:
            use = self._uses[cluster, gpu_type] = _Use(interval)
        use.change(mgpu, interval)

    def p95_mgpu(self, cluster: str, gpu_type: str, now_ms: int) -> int:
        """The use of a cluster's GPUs that 95% of the intervals of the last days do not exceed; intervals before the
        first do not count.
        """
        use = self._uses.get((cluster, gpu_type))
        if use is None:
            return 0
        now = now_ms // INTERVAL_MS
        since = max(0, now - INTERVALS + 1)
        spans: list[tuple[int, int]] = []
        standing, at = 0, since
        for interval, peak, end in (*use.peaks, (use.interval, use.peak_mgpu, use.mgpu)):
            if interval >= since:
                spans += [(standing, interval - at), (peak, 1)]
                at = interval + 1
            standing = end
        spans.append((standing, now + 1 - at))
        left = 95 * (now + 1 - since)
        for mgpu, count in sorted(spans):
            left -= 100 * count
            if left <= 0:
                return mgpu
        return standing

    def fields(self) -> list[tuple[object, ...]]:
        """Fields of the use of clusters to compare states by."""
        return [
            (*key, use.interval, use.mgpu, use.peak_mgpu, tuple(use.peaks)) for key, use in sorted(self._uses.items())
        ]
