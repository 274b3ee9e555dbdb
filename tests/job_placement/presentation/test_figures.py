"""Tables and charts of worked plans: the figures that a report shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.presentation.sections import charts, sections
from tests.instance_rows import JobRows
from tests.job_placement.verification.test_verifier import plan


@pytest.fixture(name="fleet")
def _fleet() -> JobPlacement:
    """c0 has 4 + 4 GPUs of two types, c1 has 6, c2 none; s0 runs r0, s1 runs r1 and r2; j2 is over its quota."""
    builder = JobRows()
    builder.add_region("east")
    for cluster, region in (("c0", "west"), ("c2", "west"), ("c1", "east")):
        builder.add_cluster(cluster, region=region)
    size: dict[str, Any] = {"cpu_cores": 8, "memory_gb": 8}
    need: dict[str, Any] = {"cpu_cores": 1, "memory_gb": 1}
    for name, cluster, gpus, kind in (("s0", "c0", 4, "a100"), ("s1", "c1", 6, "h100"), ("s3", "c0", 4, "h100")):
        builder.add_server(name, cluster, gpus=gpus, gpu_type=kind, **size)
    builder.add_server("s2", "c2", gpus=0, **size)
    for name, tier, risk, server, gpus in (("r0", 1, 0, "s0", 1), ("r1", 2, 4.5, "s1", 2), ("r2", 1, 10, "s1", 3)):
        builder.add_running(name, tier=tier, preemptible=name != "r0", gpu_hours_at_risk=risk)
        builder.add_allocation(name, server, gpus=gpus, **need)
    builder.add_quota("x", gpus=0)
    builder.add_job("j0", tier=0, tasks=1, gpus=2, value=7, **need)
    builder.add_job("j1", tier=2, tasks=3, gpus=1, value=3, **need)
    builder.add_job("j2", tier=1, tasks=1, gpus=1, value=2, tenant="x", **need)
    builder.add_job("j3", tier=0, tasks=9, gpus=1, value=9, **need)
    return builder.build()


ROWS = (("j0", "s0", 1, None), ("j1", "s0", 1, None), ("j1", "s3", 2, None))


def test_sections(fleet: JobPlacement) -> None:
    admitted, clusters, stopped, waiting = sections(fleet, plan(fleet, *ROWS, stop=("r1", "r2")))
    assert admitted.rows == ((0, 2, 1, 7 + 9, 7), (2, 2, 1, 3 + 2, 3))
    assert admitted.note == "2 of 4 jobs are admitted. 1 job over its tenant's quota counts behind all other work."
    assert clusters.rows == (
        ("c0", "west", 8, 1 / 8, 6 / 8, 2),
        ("c2", "west", 0, None, None, 0),
        ("c1", "east", 6, 5 / 6, 0, 6),
    )
    assert clusters.note == "42.9% of all GPUs are in use after the plan."
    assert stopped.rows == (("r2", 1, 3, 10), ("r1", 2, 2, 4.5))
    assert stopped.note == "2 jobs are stopped; 14.5 GPU-hours are lost."
    assert [row[:4] for row in waiting.rows] == [("j3", 0, 9, 1), ("j2", 2, 1, 1)]
    assert waiting.note == "2 jobs wait."
    assert [row[4] for row in waiting.rows] == ["", "east"], "nothing holds j3; west has fewer GPUs free for j2"


def test_one_reservation_a_region_for_the_first_that_others_keep_out(fleet: JobPlacement) -> None:
    """j3 is larger than any cluster; j0 takes the region with the most free GPUs, j2 the other, and j1 none."""
    waiting = sections(fleet, plan(fleet))[-1]
    assert [(row[0], row[4]) for row in waiting.rows] == [("j0", "west"), ("j3", ""), ("j1", "east"), ("j2", "")]


def test_one_waits_and_several_are_over_quota(fleet: JobPlacement) -> None:
    rows = (*ROWS, ("j2", "s1", 1, None))
    assert sections(fleet, plan(fleet, *rows))[-1].note == "1 job waits."
    crowded = fleet.with_columns({"jobs.tenant": np.zeros(4, np.int64)})
    note = sections(crowded, plan(crowded, *rows))[0].note
    assert note == "3 of 4 jobs are admitted. 4 jobs over tenants' quotas count behind all other work."


def test_charts(fleet: JobPlacement) -> None:
    shown: Any = charts(fleet, plan(fleet, *ROWS, stop=("r1", "r2")))
    heat, clusters, gpus, jobs = shown
    assert (heat.rows, heat.columns) == (("east", "west"), ("a100", "h100"))
    assert (heat.before, heat.after) == (((None, 5 / 6), (1 / 4, 0)), ((None, 0), (4 / 4, 2 / 4)))
    assert clusters.categories == ("c0", "c1")
    assert clusters.series == (("before", (1 / 8, 5 / 6)), ("after", (6 / 8, 0)))
    assert gpus.series == (("running before", (0, 4, 2)), ("still running", (0, 1, 0)), ("started", (2, 0, 3)))
    assert jobs.series == (("pending", (2, 0, 2)), ("admitted", (1, 0, 1)))
