"""Replays of Gavel's own simulator: average completion time and makespan of its policies on three of its traces.

The expected seconds are those of its code (commit c4fa400, ECOS) on 8 V100, 16 P100 and 24 K80,
with rounds of 360 s and seed 0.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.gavel_habits import replay_gavel
from mast_opt.core.errors import UsageError
from mast_opt.live.loop.job_log import job_log
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.loop.metrics import metrics
from mast_opt.live.policies.round_params import RoundParams
from mast_opt.live.simulation.traces.trace import JobTrace, read_trace

TRACES = Path(__file__).parents[2] / "instances" / "traces"
FIFO = {
    ("medium-test", False): (15867, 24203),
    ("medium-test", True): (9395, 19194),
    ("minimize-makespan", False): (211551, 274228),
    ("minimize-makespan", True): (40258, 90701),
    ("max-min-fairness", False): (35905, 196524),
    ("max-min-fairness", True): (19527, 72320),
}
"""Trace and whether speeds are known → seconds."""
OTHERS = {
    ("max-min", False): (15151, 28403),
    ("max-min", True): (9416, 17045),
    ("finish-time", True): (9464, 16918),
    ("makespan", True): (9487, 15148),
    ("allox", True): (9080, 15148),
}
"""On medium-test."""

PACKED = {
    ("max-min", "medium-test"): (9456, 18188),
    ("max-min", "minimize-makespan"): (32315, 63895),
    ("max-min", "max-min-fairness"): (14083, 63692),
    ("finish-time", "medium-test"): (9736, 18224),
    ("makespan", "minimize-makespan"): (57641, 58794),
}
"""Two jobs may have the same GPUs; its code with the sums of each job's own pairs."""


def played(trace: JobTrace, params: RoundParams, *, whole_steps: bool = False) -> tuple[float, float]:
    log = replay_gavel(trace, params, whole_steps=whole_steps)
    alone, packed = trace.speeds.alone, trace.speeds.packed
    assert check_log(log, all_end=True, durations=not whole_steps, speeds=alone, packed=packed) == ()
    found = metrics(job_log(log))
    assert found.jct_s.mean is not None
    assert found.makespan_s is not None
    return found.jct_s.mean, found.makespan_s


@pytest.mark.parametrize(("name", "aware"), FIFO)
def test_fifo(name: str, aware: bool) -> None:
    trace = read_trace(TRACES / f"gavel-{name}")
    found = played(trace, RoundParams(objective="fifo", aware=aware), whole_steps=not aware)
    assert found == pytest.approx(FIFO[name, aware], rel=0.005)


def test_the_other_policies() -> None:
    trace = read_trace(TRACES / "gavel-medium-test")
    found = {key: played(trace, RoundParams(objective=key[0], aware=key[1])) for key in OTHERS}
    for key, expected in OTHERS.items():
        assert found[key] == pytest.approx(expected, rel=0.03), key
    assert found["max-min", True][0] < found["max-min", False][0]
    assert min(makespan for _, makespan in found.values()) == pytest.approx(found["makespan", True][1])


@pytest.mark.parametrize(("objective", "name"), PACKED)
def test_packing(objective: str, name: str) -> None:
    found = played(read_trace(TRACES / f"gavel-{name}"), RoundParams(objective=objective, packing=True))
    assert found == pytest.approx(PACKED[objective, name], rel=0.03)


def test_packing_does_not_do_whole_steps() -> None:
    with pytest.raises(UsageError, match="whole_steps"):
        replay_gavel(read_trace(TRACES / "gavel-medium-test"), RoundParams(packing=True), whole_steps=True)
