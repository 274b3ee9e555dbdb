"""Jobs as Gavel's simulator draws them: its own first ones, and the trace that is committed."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from benchmarks.gavel_jobs import MODELS, drawn_jobs, gavel_jobs
from mast_opt.core.errors import UsageError
from mast_opt.live.loop.speeds import Speeds
from mast_opt.live.simulation.traces.trace import read_trace, write_trace

COMMITTED = Path(__file__).parents[2] / "instances" / "traces" / "gavel-single-gpu"
OF_GAVEL = [
    (0, 68344.35010595087, "ResNet-18 (batch size 64)"),
    (244.5860729103015, 31016.60914593223, "Transformer (batch size 16)"),
    (951.7748275290958, 2146.6088374387864, "Recommendation (batch size 2048)"),
    (1367.5426956563874, 7386.674819745945, "Recommendation (batch size 8192)"),
]
"""What its code (commit c4fa400) drew with seed 0 at 4 jobs an hour: arrival, duration on a V100, model."""


def test_the_first_jobs_are_those_of_gavel() -> None:
    found = islice(drawn_jobs(4.0, seed=0), len(OF_GAVEL))
    assert [(job.arrival_s, job.duration_s, job.model) for job in found] == OF_GAVEL


def test_a_rate_changes_the_times_alone() -> None:
    slow, fast = (list(islice(drawn_jobs(rate, seed=1), 20)) for rate in (1.0, 2.0))
    assert [(job.duration_s, job.model) for job in slow] == [(job.duration_s, job.model) for job in fast]
    assert [job.arrival_s for job in slow] == pytest.approx([2 * job.arrival_s for job in fast])


def test_the_committed_trace_is_drawn_so(tmp_path: Path) -> None:
    speeds = read_trace(COMMITTED).speeds
    found = gavel_jobs(speeds, rate_per_h=4.0, jobs=200, seed=0)
    write_trace(tmp_path / "again", "gavel-single-gpu", found.provenance, found.tables)
    for file in sorted(COMMITTED.iterdir()):
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes(), file.name


def test_durations_are_those_on_the_fastest_type() -> None:
    """Recommendation is faster on a P100 than on the V100 for which its duration was drawn."""
    trace = read_trace(COMMITTED)
    runs = trace.speeds.runs[OF_GAVEL[2][2], 1]
    assert runs["p100"] > runs["v100"] > 0
    expected = OF_GAVEL[2][1] * 1000 * runs["v100"] / runs["p100"]
    assert int(trace.submissions.duration_ms[2]) == round(expected)


def test_what_cannot_be_is_refused() -> None:
    speeds = read_trace(COMMITTED).speeds
    with pytest.raises(UsageError, match="rate_per_h"):
        gavel_jobs(speeds, rate_per_h=0.0, jobs=1, seed=0)
    with pytest.raises(UsageError, match="jobs and gpus"):
        gavel_jobs(speeds, rate_per_h=1.0, jobs=0, seed=0)
    known = {key: speed for key, speed in speeds.alone.items() if key[:2] != (MODELS[3], "k80")}
    with pytest.raises(UsageError, match=r"ResNet-18 \(batch size 128\) on k80"):
        gavel_jobs(Speeds(known), rate_per_h=1.0, jobs=1, seed=0)
