"""Microsoft's Philly trace as a trace of jobs: each virtual cluster is a region with servers of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import SourceError, UsageError
from mast_opt.core.units import MILLI
from mast_opt.live.simulation.traces.schema import KIND
from mast_opt.live.simulation.traces.tables import Given, TraceTables, equal_servers, trace_tables
from mast_opt.planner.importers.base import Importer, Input, setting
from mast_opt.planner.importers.traces.csv_table import read_table
from mast_opt.planner.importers.traces.philly import Jobs, read_jobs
from mast_opt.planner.io.faults import Faults
from mast_opt.problems.kind.schema import integer, label

_NODES = "node num"
CLUSTER_COLUMNS = (
    label("vc", "vc", help="virtual cluster"),
    integer(_NODES, minimum=1, maximum=100_000, help="servers of the virtual cluster"),
)
RESTART_S = (7, 30, 60)
"""Seconds that a job of one GPU, of at most one server's GPUs, and of more takes to get going again: those of Helios's
simulator."""


@dataclass(frozen=True)
class PhillySettings:
    """Part of the trace to import."""

    since: str = setting("2017-10-01 00:00:00", "first submission that counts; time 0 of the trace")
    until: str = setting("2017-11-30 23:59:00", "last submission that counts")
    gpus: int = setting(8, "GPUs of a server")
    name: str = setting("philly", "of the trace")

    def __post_init__(self) -> None:
        if not 1 <= self.gpus <= 4096:
            raise UsageError(f"setting gpus is {self.gpus}; expected a whole number from 1 to 4,096")
        if _epoch("until", self.until) <= _epoch("since", self.since):
            raise UsageError(f"setting until is {self.until}; expected a time after {self.since}")


def philly(paths: Sequence[Path], settings: PhillySettings, rng: np.random.Generator) -> TraceTables:
    """The trace from ``philly.csv`` (plain or gzipped) and a list of virtual clusters with their servers.

    Jobs of other virtual clusters are left out. Nothing is drawn. Raises SourceError.
    """
    faults = Faults()
    jobs = read_jobs(paths[0], faults)
    clusters = read_table(paths[1], CLUSTER_COLUMNS, faults)
    if jobs is None or clusters is None or faults:
        raise SourceError(faults.found)
    names = clusters.labels["vc"].to_list()
    if len(set(names)) < len(names):
        faults.add(clusters.file, "each virtual cluster once", column="vc")
        raise SourceError(faults.found)
    since, until = (_epoch(what, getattr(settings, what)) for what in ("since", "until"))
    place = {cluster: at for at, cluster in enumerate(names)}
    region = np.array([place.get(cluster, -1) for cluster in jobs.cluster])
    wanted = (jobs.submitted_s >= since) & (jobs.submitted_s <= until) & (region >= 0)
    order = np.flatnonzero(wanted)[np.argsort(jobs.submitted_s[wanted], kind="stable")]
    if not len(order):
        faults.add(str(paths[0]), f"jobs of these virtual clusters from {settings.since} to {settings.until}")
        raise SourceError(faults.found)
    tables = _tables(jobs, order, region[order], names, clusters.numbers[_NODES], settings.gpus, since)
    provenance = (
        f"Microsoft's Philly trace (CC BY 4.0), jobs submitted from {settings.since} to {settings.until} in "
        f"{len(names)} virtual clusters; seconds of a restart are those of Helios's simulator"
    )
    return trace_tables(settings.name, provenance, tables)


def _tables(
    jobs: Jobs,
    order: NDArray[np.int64],
    region: NDArray[np.int64],
    names: list[str],
    nodes: NDArray[np.int64],
    gpus: int,
    since: int,
) -> dict[str, Mapping[str, Given]]:
    """Tables of a trace from Philly's jobs and virtual clusters."""
    held = jobs.gpus[order]
    task = np.where(held <= gpus, held, np.gcd(held, gpus))
    one, several, many = (np.int64(seconds * MILLI) for seconds in RESTART_S)
    return {
        **equal_servers(names, nodes.tolist(), gpus),
        "submissions": {
            "job": [str(number) for number in range(1, len(order) + 1)],
            "submitted_s": (jobs.submitted_s[order] - since) * MILLI,
            "tier": np.ones(len(order), np.int64),
            "tasks": held // task,
            "gpus": task * MILLI,
            "duration_s": jobs.duration_s[order] * MILLI,
            "home_region": [names[at] for at in region.tolist()],
            "checkpoint_s": np.zeros(len(order), np.int64),
            "restart_s": np.where(held == 1, one, np.where(held <= gpus, several, many)),
        },
    }


def _epoch(what: str, text: str) -> int:
    """Seconds since 1970 of a time without a zone, for Philly's trace. Raises UsageError."""
    try:
        time = datetime.fromisoformat(text)
        return int((time - datetime(1970, 1, 1)).total_seconds())
    except (ValueError, TypeError):  # TypeError: a time with a zone
        raise UsageError(f"setting {what} is {text!r}; expected a time such as 2017-10-01 00:00:00") from None


PHILLY = Importer(
    kind=KIND,
    help="a trace of jobs from Microsoft's Philly clusters, each virtual cluster a region of its own",
    inputs=(
        Input("philly", "philly.csv, plain or gzipped, or its folder"),
        Input("virtual-clusters", "a CSV file with the columns vc and node num"),
    ),
    settings_type=PhillySettings,
    build=philly,
)
