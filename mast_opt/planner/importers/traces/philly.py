"""Microsoft's Philly trace as a list of jobs: when, how long, on how many GPUs, in which virtual cluster."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mast_opt.planner.importers.traces.csv_table import find, read_table
from mast_opt.planner.io.faults import Faults
from mast_opt.problems.kind.schema import integer, label, need

HOUR_S = 3600
DAY_S = 24 * HOUR_S
LENGTHS = (("short", HOUR_S), ("medium", DAY_S), ("long", None))
"""Classes of duration: under an hour, under a day, longer."""
COLUMNS = (
    label("timestamp", "time", help="when it was submitted, as 2017-10-09 07:01:55"),
    need("duration", 1, minimum=1, help="seconds that it ran"),
    integer("num_gpus", minimum=1, help="GPUs that it held"),
    label("cluster", "cluster", help="its virtual cluster"),
)


@dataclass(frozen=True, eq=False)
class JobClass:
    """Jobs of one virtual cluster with the same number of GPUs and a similar duration: work that recurs."""

    cluster: str
    gpus: int
    """GPUs of one job."""
    length: str
    jobs: int
    mean_gpus: float
    """GPUs that such jobs hold on average over the trace."""

    @property
    def name(self) -> str:
        """Label of a class of Philly's jobs: cluster, GPUs and duration."""
        return f"{self.cluster}-{self.gpus}gpu-{self.length}"


@dataclass(frozen=True, eq=False)
class Jobs:
    """Jobs of the trace, as arrays."""

    cluster: tuple[str, ...]
    gpus: NDArray[np.int64]
    duration_s: NDArray[np.int64]
    """Rounded up."""
    submitted_s: NDArray[np.int64]
    """Seconds of submission since 1970."""

    @property
    def span_s(self) -> float:
        """Seconds of Philly's trace from the first submission to the last."""
        return float(self.submitted_s.max() - self.submitted_s.min())

    def classes(self) -> tuple[JobClass, ...]:
        """Every class of Philly's jobs that occurs, in order of cluster, GPUs and duration."""
        length = np.searchsorted([limit for _, limit in LENGTHS if limit], self.duration_s, side="right")
        frame = pl.DataFrame({"cluster": self.cluster, "gpus": self.gpus, "length": length, "s": self.duration_s})
        grouped = frame.group_by("cluster", "gpus", "length").agg(pl.len(), pl.col("s").sum())
        return tuple(
            JobClass(cluster, gpus, LENGTHS[at][0], jobs, gpus * seconds / self.span_s)
            for cluster, gpus, at, jobs, seconds in grouped.sort("cluster", "gpus", "length").iter_rows()
        )


def read_jobs(path: Path, faults: Faults) -> Jobs | None:
    """The jobs in ``philly.csv``, plain or gzipped, or in its folder; None, and faults that say why, if they cannot be
    had."""
    file = find(path, "philly.csv", faults) if path.is_dir() else path
    table = None if file is None else read_table(file, COLUMNS, faults)
    if table is None:
        return None
    text = table.labels["timestamp"]
    time = text.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False)
    bad = np.flatnonzero(time.is_null().to_numpy())
    faults.cells(table.file, "timestamp", bad + 1, lambda n: text[int(bad[n])], "a time such as 2017-10-09 07:01:55")
    seconds = time.dt.epoch("s").fill_null(0).to_numpy()
    if not len(bad) and seconds.max() == seconds.min():
        faults.add(table.file, "jobs submitted at different times", column="timestamp")
    return Jobs(tuple(table.labels["cluster"].to_list()), table.numbers["num_gpus"], table.numbers["duration"], seconds)
