"""Metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest

from mast_opt.live.loop.job_states import JobState
from mast_opt.live.service.live import Live
from mast_opt.problems.job_placement.units import WHOLE

_STEPS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5)


class Figures:
    """Metrics of the service: counters, and the present state of its loop.

    Args:
        live: the loop.
    """

    def __init__(self, live: Live) -> None:
        self._live = live
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "mast_opt_requests", "Requests that were answered", ["method", "status"], registry=self._registry
        )
        self.seconds = Histogram(
            "mast_opt_request_seconds", "Time until the answer", ["method"], registry=self._registry, buckets=_STEPS
        )
        self._registry.register(self)

    def describe(self) -> tuple[GaugeMetricFamily, ...]:
        """Nothing: the loop may not have begun."""
        return ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Gauges of the loop's present state."""
        jobs = GaugeMetricFamily("mast_opt_jobs", "Jobs whose end is not known", labels=["state"])
        supply = GaugeMetricFamily("mast_opt_gpus", "GPUs of servers in service", labels=["region"])
        used = GaugeMetricFamily("mast_opt_gpus_used", "GPUs of jobs that start and run", labels=["region"])
        with self._live.state() as state:
            counts = dict.fromkeys(JobState, 0)
            for record in state.jobs.values():
                counts[record.state] += 1
            supplied, taken = dict(state.inventory.supply_mgpu), dict(state.inventory.used_mgpu)
            seq = state.seq
        for kind, count in counts.items():
            jobs.add_metric([kind.value], count)
        for region, mgpu in supplied.items():
            supply.add_metric([region], mgpu / WHOLE)
            used.add_metric([region], taken.get(region, 0) / WHOLE)
        turns = sorted(self._live.turn_s)
        yield from (jobs, supply, used)
        yield GaugeMetricFamily("mast_opt_events", "Number of the last event", seq)
        yield GaugeMetricFamily("mast_opt_epoch", "Epoch of this leader", self._live.epoch)
        yield GaugeMetricFamily("mast_opt_ready", "Whether requests are taken in", float(not self._live.problem))
        if turns:
            slow = turns[min(len(turns) - 1, 99 * len(turns) // 100)]
            yield GaugeMetricFamily("mast_opt_turn_p99_seconds", "P99 of the last turns, with their log", slow)

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self._registry)
