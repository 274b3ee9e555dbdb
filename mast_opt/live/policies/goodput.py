"""Goodput of a training job (Pollux, OSDI'21): throughput times statistical efficiency, at the best batch size.

With r replicas that take b samples each in a step::

    step        gradient of b samples    c(b) = compute_s + compute_s_per_sample·b
                exchange, r replicas     n(r) = 0 for r = 1, else latency_s + latency_s_per_replica·(r − 2)
                the two overlap          t(b, r) = (c^overlap + n^overlap)^(1/overlap)
    throughput  batch / (accumulated·c(b) + t(b, r)),     batch = r·b·(accumulated + 1)
    efficiency  gain(batch) · initial/batch,              gain = (v + q)/(v·initial/batch + q)

with v, q the variance and squared norm of the gradient at the initial batch size: what a sample of a larger batch
teaches, relative to one of the initial batch.
"""

from dataclasses import dataclass

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import UsageError


@dataclass(frozen=True)
class Goodput:
    """Measurements of one job. Raises UsageError for sizes that contradict one another."""

    compute_s: float
    """Fixed seconds of a step."""
    compute_s_per_sample: float
    latency_s: tuple[float, float]
    """Seconds of an exchange inside a node, and between nodes."""
    latency_s_per_replica: tuple[float, float]
    """Further seconds for each replica beyond two; inside a node, and between nodes."""
    overlap: float
    """Exponent of the overlap of computing and exchanging: 1 where they take turns, larger the more they overlap."""
    gradient_squared: float
    """Squared norm of the gradient."""
    gradient_variance: float
    initial_batch: int
    """Samples of the batch that the job was tuned for."""
    largest_batch: int
    least_samples: int = 1
    """Least samples of a replica in one step."""
    most_samples: int | None = None
    """Most samples of a replica in one step; the largest batch unless given."""
    accumulates: bool = False
    """True if steps may be added up before they are exchanged."""

    def __post_init__(self) -> None:
        most = self.largest_batch if self.most_samples is None else self.most_samples
        if not 1 <= self.least_samples <= most:
            raise UsageError(f"samples of a replica go from {self.least_samples} to {most}; expected 1 ≤ least ≤ most")
        if not 1 <= self.initial_batch <= self.largest_batch:
            raise UsageError(
                f"batches go from {self.initial_batch} to {self.largest_batch}; expected an ascending range"
            )

    def best(self, nodes: int, replicas: int) -> float:
        """Samples a second, in samples of the initial batch's worth, at the best batch size; 0 where no batch fits.

        A single replica that does not accumulate keeps the initial batch: it cannot measure the gradient's variance.
        """
        most = self.largest_batch if self.most_samples is None else self.most_samples
        samples = np.arange(self.least_samples, most + 1, dtype=np.float64)[:, None]
        steps = self.largest_batch // (replicas * self.least_samples) if self.accumulates else 1
        accumulated = np.arange(max(1, steps), dtype=np.float64)[None, :]
        batch = replicas * samples * (accumulated + 1)
        fits = (batch >= self.initial_batch) & (batch <= self.largest_batch)
        if replicas == 1:
            fits &= (batch == self.initial_batch) | (accumulated > 0)
        if not fits.any():
            return 0.0
        return float(
            np.where(fits, self._throughput(nodes, replicas, samples, accumulated) * self.efficiency(batch), 0).max()
        )

    def efficiency(self, batch: FloatArray) -> FloatArray:
        """Worth of a sample in a batch of this size, relative to the initial batch; 1 there, and falling."""
        scale = np.asarray(batch, np.float64) / self.initial_batch
        v, q = self.gradient_variance, self.gradient_squared
        worth: FloatArray = (v + q) / (v / scale + q) / scale
        return worth

    def _throughput(self, nodes: int, replicas: int, samples: FloatArray, accumulated: FloatArray) -> FloatArray:
        """Samples a second with so many nodes, replicas and samples a replica."""
        compute = self.compute_s + self.compute_s_per_sample * samples
        between = int(nodes > 1)
        exchange = 0.0
        if replicas > 1:
            exchange = self.latency_s[between] + self.latency_s_per_replica[between] * max(0, replicas - 2)
        step = (compute**self.overlap + exchange**self.overlap) ** (1 / self.overlap)
        rate: FloatArray = replicas * samples * (accumulated + 1) / (accumulated * compute + step)
        return rate
