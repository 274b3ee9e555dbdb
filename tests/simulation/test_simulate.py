"""Simulations from Python, variants of traces, and what ends a run early."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import Interrupted, UsageError
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.simulation.run import run_trace
from mast_opt.live.simulation.run_folder import read_run
from mast_opt.live.simulation.variants import digest_of, variant
from tests.simulation.traces import samples

SMALL = Path(__file__).parents[2] / "instances" / "traces" / "philly-small"


@pytest.fixture(scope="module")
def trace() -> mast_opt.JobTrace:
    return mast_opt.read_trace(SMALL)


def test_a_run(trace: mast_opt.JobTrace, tmp_path: Path) -> None:
    found = mast_opt.simulate(trace, "federated", params={"rule": "home", "placement": "best-fit"})
    assert (found.trace, found.policy, found.complete) == ("philly-small", "federated", True)
    assert found.metrics.sum_queue_s == 226_773
    assert (found.params["rule"], found.params["age_ms"]) == ("home", 0)
    assert check_log(found.events(), all_end=True) == ()
    found.write(tmp_path / "run")
    assert read_run(tmp_path / "run").metrics["sum_queue_s"] == 226_773
    assert mast_opt.simulate(SMALL, "las", params={"thresholds_gpu_s": [60, 600]}).params == {
        "thresholds_gpu_s": (60, 600)
    }


@pytest.mark.filterwarnings("ignore:.*does not look at it")
def test_a_trace_is_imported(tmp_path: Path) -> None:
    samples.write(tmp_path)
    trace = mast_opt.import_trace("sacct", tmp_path / "sacct.json", tmp_path / "sinfo.txt", needs="gpus")
    assert mast_opt.simulate(trace, "sjf").metrics.finished == 5
    with pytest.raises(UsageError, match=r"no importer of traces called 'gavel'.*gavel-trace"):
        mast_opt.import_trace("gavel", tmp_path / "a", tmp_path / "b")


def test_load_divides_times_and_keeps_durations(trace: mast_opt.JobTrace) -> None:
    dense = variant(trace, 2.0).submissions
    assert dense.submitted_ms.tolist() == (trace.submissions.submitted_ms // 2).tolist()
    assert dense.duration_ms.tolist() == trace.submissions.duration_ms.tolist()
    assert mast_opt.simulate(trace, "fifo", load=4.0).metrics.sum_queue_s > 226_773
    for load in (0.0, 1e-300):
        with pytest.raises(UsageError, match="load is"):
            variant(trace, load)


def test_a_seed_exchanges_times_within_regions(trace: mast_opt.JobTrace) -> None:
    jobs = trace.submissions
    other = variant(trace, seed=3).submissions
    assert other.labels != jobs.labels
    assert sorted(other.labels) == sorted(jobs.labels)
    assert (np.diff(other.submitted_ms) >= 0).all()
    for region in trace.regions:
        before, after = (
            [part.submitted_ms[j] for j, home in enumerate(part.home_region) if home == region]
            for part in (jobs, other)
        )
        assert before == after
    specs = {name: jobs.spec(j) for j, name in enumerate(jobs.labels)}
    assert all(other.spec(j) == specs[name] for j, name in enumerate(other.labels))
    assert digest_of(variant(trace, seed=3)) == digest_of(variant(trace, seed=3)) != digest_of(variant(trace, seed=4))
    assert variant(trace) is trace


def test_types_and_data_move_with_their_jobs(trace: mast_opt.JobTrace) -> None:
    jobs = replace(trace.submissions, gpu_types={0: {"gpu": 1000}}, datasets={0: ("d",)})
    other = variant(replace(trace, submissions=jobs), seed=1).submissions
    at = other.labels.index(jobs.labels[0])
    assert at != 0
    assert (other.gpu_types, other.datasets) == ({at: {"gpu": 1000}}, {at: ("d",)})


def test_a_run_that_is_stopped_keeps_its_log(trace: mast_opt.JobTrace) -> None:
    turns = 0

    def stop() -> bool:
        nonlocal turns
        turns += 1
        return turns == 300

    done = run_trace(trace, "mast", stop=stop)
    assert not done.complete
    assert 300 <= len(list(done.events())) < 2000
    assert check_log(done.events()) == ()
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(Interrupted, match="while fifo was replayed"):
        mast_opt.simulate(trace, "fifo", cancel=cancelled)


@pytest.mark.filterwarnings("ignore:.*does not look at it")
def test_the_sixty_jobs_of_tiresias_in_a_pool_of_16_gpus() -> None:
    """First in, first out: an independent replay has these figures."""
    run = mast_opt.simulate(Path(__file__).parents[2] / "instances" / "traces" / "tiresias-60", "fifo")
    found = run.metrics
    assert found.jobs == found.finished == 60
    assert found.jct_s.mean == pytest.approx(200.8167, abs=1e-4)
    assert found.queue_s.mean == pytest.approx(22.4)
    assert found.makespan_s == 3335
