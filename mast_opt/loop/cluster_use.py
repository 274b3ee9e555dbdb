"""GPUs in use by cluster and type over the last days, and the P95 of that."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from mast_opt.loop.demand import DAY_MS, DAYS

INTERVAL_MS = 1_800_000
"""Use is kept as its maximum in intervals of this length."""
INTERVALS = DAYS * DAY_MS // INTERVAL_MS


@dataclass(slots=True)
class _Use:
    mgpu: int = 0
    peaks: deque[tuple[int, int, int]] = field(default_factory=deque)
    """(interval, largest use in it, use at its end), one for each interval in which something changed."""


class ClusterUse:
    """Milli-GPUs that jobs hold in each cluster, by type. Only ``State.apply`` changes it."""

    def __init__(self) -> None:
        self._uses: dict[tuple[str, str], _Use] = {}

    def change(self, cluster: str, gpu_type: str, mgpu: int, now_ms: int) -> None:
        """So much more is in use from now on, or less."""
        use = self._uses.setdefault((cluster, gpu_type), _Use())
        before, use.mgpu = use.mgpu, use.mgpu + mgpu
        now, peaks = now_ms // INTERVAL_MS, use.peaks
        if peaks and peaks[-1][0] == now:
            peaks[-1] = now, max(peaks[-1][1], use.mgpu), use.mgpu
        else:
            peaks.append((now, max(before, use.mgpu), use.mgpu))
        while len(peaks) > 1 and peaks[1][0] <= now - INTERVALS:
            peaks.popleft()

    def p95_mgpu(self, cluster: str, gpu_type: str, now_ms: int) -> int:
        """The use that 95% of the intervals of the last days do not exceed; intervals before the first do not count."""
        use = self._uses.get((cluster, gpu_type))
        if use is None:
            return 0
        now = now_ms // INTERVAL_MS
        since = max(0, now - INTERVALS + 1)
        spans: list[tuple[int, int]] = []
        standing, at = 0, since
        for interval, peak, end in use.peaks:
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
        """What there is, to compare states by."""
        return [(*key, use.mgpu, tuple(use.peaks)) for key, use in sorted(self._uses.items())]
