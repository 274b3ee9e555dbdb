"""Use of the fleet by tenants, now and in the mean of the last days."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

DAY_MS = 86_400_000
DAYS = 7
"""Days over which the use of a tenant is averaged."""


@dataclass(slots=True)
class _Use:
    mgpu: int = 0
    """Use since ``at_ms``: the ledger no longer has it when it changes, and the integral needs it then."""
    mgpu_ms: int = 0
    """Integral of ``mgpu`` up to ``at_ms``."""
    at_ms: int = 0
    days: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=DAYS + 1))
    """(time, integral at that time), one for each day in which something changed."""

    def advance(self, now_ms: int) -> None:
        """Bring the integral of a tenant's use up to now."""
        self.mgpu_ms += self.mgpu * (now_ms - self.at_ms)
        self.at_ms = now_ms
        if not self.days or now_ms - self.days[-1][0] >= DAY_MS:
            self.days.append((now_ms, self.mgpu_ms))


class Tenants:
    """Use of the fleet by tenants, now and in the mean of the last days."""

    def __init__(self) -> None:
        self._uses: dict[str, _Use] = {}

    def change(self, tenant: str, mgpu: int, now_ms: int) -> None:
        """Add to the use of a tenant from now on, or take away."""
        use = self._uses.get(tenant)
        if use is None:
            use = self._uses[tenant] = _Use(at_ms=now_ms)
        use.advance(now_ms)
        use.mgpu += mgpu

    def credit_milli(self, tenant: str, quota_mgpu: int, now_ms: int) -> int:
        """Thousandths of its quota that a tenant left unused in the mean of the last days. It is negative for one that
        used more."""
        if not quota_mgpu:
            return 0
        use = self._uses.get(tenant)
        if use is None:
            return 1000
        first = next(((at, total) for at, total in use.days if now_ms - at <= DAYS * DAY_MS), (use.at_ms, use.mgpu_ms))
        total = use.mgpu_ms + use.mgpu * (now_ms - use.at_ms)
        span = max(1, min(DAYS * DAY_MS, now_ms))
        return 1000 * (quota_mgpu * span - (total - first[1])) // (quota_mgpu * span)

    def mean_mgpu(self, tenant: str, half_life_ms: int, now_ms: int) -> float:
        """Use of a tenant in the mean of the days that are kept, in which what is older by a half-life counts half."""
        use = self._uses.get(tenant)
        if use is None:
            return 0.0
        now = now_ms, use.mgpu_ms + use.mgpu * (now_ms - use.at_ms)
        times, totals = np.array([*use.days, now], np.float64).T
        counts = np.diff(np.exp2((times - now_ms) / half_life_ms))
        return float(counts @ (np.diff(totals) / np.maximum(1.0, np.diff(times))))

    def fields(self) -> list[tuple[object, ...]]:
        """Every fact about tenants, in a fixed order, to compare states by."""
        return [(name, use.mgpu, use.mgpu_ms, use.at_ms, tuple(use.days)) for name, use in sorted(self._uses.items())]
