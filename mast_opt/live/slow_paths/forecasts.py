"""Forecasts of demand that a data plan is made for: from the log, or from the log with errors."""

import zlib
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.live.loop.demand import DAY_MS, DemandClass
from mast_opt.live.loop.snapshot import Snapshot


class Forecast(Protocol):
    """Interface of a forecast of what jobs of a class will ask for in the next days."""

    def __call__(self, snapshot: Snapshot, of: DemandClass) -> int:
        """Milli-GPUs on average."""
        ...


def weighted_mean(snapshot: Snapshot, of: DemandClass) -> int:
    """The forecast of the log: see ``Demand.forecast_mgpu``."""
    return snapshot.demand.forecast_mgpu(of, snapshot.now_ms)


def by_arrivals(snapshot: Snapshot, of: DemandClass) -> int:
    """The forecast of the log without its backlog: see ``Demand.forecast_by_arrivals_mgpu``."""
    return snapshot.demand.forecast_by_arrivals_mgpu(of, snapshot.now_ms)


@dataclass(frozen=True)
class WithErrors:
    """A forecast times a lognormal error of mean 1, drawn for each class and day.

    Args:
        forecast: without errors.
        sigma: of the error's logarithm.
        seed: of the draws.
    """

    forecast: Forecast
    sigma: float
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.sigma <= 5:
            raise UsageError(f"the error of a forecast is {self.sigma}; expected 0 to 5")

    def __call__(self, snapshot: Snapshot, of: DemandClass) -> int:
        """The forecast times a random error that is drawn for each class and day."""
        key = zlib.crc32(repr(tuple(of)).encode())
        rng = np.random.Generator(np.random.PCG64([self.seed, key, snapshot.now_ms // DAY_MS]))
        return round(self.forecast(snapshot, of) * float(rng.lognormal(-(self.sigma**2) / 2, self.sigma)))
