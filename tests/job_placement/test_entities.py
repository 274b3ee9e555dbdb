"""The groups of a job-placement problem: rows by label, and what is refused."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import InstanceError, UsageError
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.units import LARGEST, MOST_GPUS, SERVER


@pytest.fixture
def problem() -> JobPlacement:
    """Every optional table has rows."""
    return mast_opt.generate("job-placement", "features", seed=1)


def test_rows_by_label(problem: JobPlacement) -> None:
    job, tenant = problem.jobs.labels[3], problem.tenants[1]
    given = problem.replace("jobs", job, tier=problem.tiers[-1], tenant=tenant, within=SERVER)
    assert given.jobs.tier[3] == len(problem.tiers) - 1
    assert given.jobs.tenant[3] == 1
    assert given.jobs.within[3] == SERVER
    assert given.servers is problem.servers
    moved = problem.replace("servers", problem.servers.labels[2], rack=problem.racks.labels[-1], supply={0: 3000})
    assert moved.server_cluster[2] == problem.racks.cluster[-1]
    assert moved.servers.supply[2].tolist() == [3000, *problem.servers.supply[2, 1:].tolist()]
    for part in ("gpus", 3, -1):
        with pytest.raises(UsageError, match=f"supply of .* in servers has no part {part!r}; expected .* 0 to 2"):
            problem.replace("servers", problem.servers.labels[2], supply={part: 1})
    data = problem.replace("datasets", problem.datasets.labels[0], stored={problem.regions[0]: False})
    assert not data.datasets.stored[0, 0]


def test_rows_by_key(problem: JobPlacement) -> None:
    first = problem.jobs.labels[0], problem.gpu_types[problem.options.gpu_type[0]]
    assert problem.replace("options", first, mgpu=500).need_mgpu[0, problem.options.gpu_type[0]] == 500
    tenants, kind = problem.tenants, problem.gpu_types[0]
    quotas = problem.replace("quotas", (tenants[0], None), mgpu=7000).replace("quotas", (tenants[1], kind), mgpu=9000)
    assert quotas.quotas.mgpu[:2].tolist() == [7000, 9000]
    with pytest.raises(UsageError, match=r"dataclasses\.replace, as its rows have no key"):
        problem.replace("allocations", (problem.running.labels[0], problem.servers.labels[0]), tasks=2)


def test_copies_are_equal(problem: JobPlacement) -> None:
    assert len(problem.order) == len(problem.jobs)
    twin = pickle.loads(pickle.dumps(problem))
    assert twin == problem
    assert not twin.jobs.tier.flags.writeable
    assert twin.replace("jobs", problem.jobs.labels[0], credit_milli=12_345) != problem
    assert f"jobs={len(problem.jobs)}, " in repr(problem)


@pytest.mark.parametrize(
    ("group", "values", "words"),
    [
        ("servers", {"supply": {0: 500}}, r"servers\.supply\[{row}, 0\]: found '500'; expected whole GPUs"),
        ("servers", {"supply": {0: (MOST_GPUS + 1) * 1000}}, r"servers\.supply\[{row}, 0\].*at most .* GPUs"),
        ("jobs", {"tasks": 0}, r"jobs\.tasks\[{row}\]: found '0'"),
        ("jobs", {"tasks": 2, "memory_mib": LARGEST}, r"jobs\.memory_mib\[{row}\].*product with the number of tasks"),
        ("jobs", {"tasks": 2, "cpu_mcores": LARGEST}, r"jobs\.cpu_mcores\[{row}\].*product with the number of tasks"),
        ("running", {"at_risk_mgpu_hours": -1}, r"running\.at_risk_mgpu_hours\[{row}\]: found '-1'"),
    ],
)
def test_faults_of_a_row(problem: JobPlacement, group: str, values: dict[str, Any], words: str) -> None:
    row = problem.labels_of(group)[1]
    with pytest.raises(InstanceError, match=words.format(row=row)):
        problem.replace(group, row, **values)


def test_needs_are_whole_gpus_or_less_than_one(problem: JobPlacement) -> None:
    with pytest.raises(InstanceError, match=r"options\.mgpu\[0\]: found '1500'; expected whole GPUs, or less"):
        replace(problem.options, mgpu=np.full(len(problem.options), 1500))
    held = problem.allocations
    with pytest.raises(InstanceError, match=r"allocations\.need\[0, 0\]: found '1500'; expected whole GPUs, or less"):
        replace(held, need=np.full_like(held.need, 1500))
    with pytest.raises(InstanceError, match=r"allocations\.need\[0, 0\].*product with the number of tasks"):
        replace(held, need=np.full_like(held.need, LARGEST // 1000 * 1000), tasks=np.full_like(held.tasks, 2))


def test_what_joins_groups(problem: JobPlacement) -> None:
    last = problem.jobs.labels[-1]
    options = problem.options.rows(problem.options.job < len(problem.jobs) - 1)
    with pytest.raises(InstanceError, match=rf"options\.job.*a GPU type for each job.*{last}"):
        replace(problem, options=options)
    many = problem.options.mgpu * 0 + LARGEST // 1000 * 1000
    with pytest.raises(InstanceError, match=r"options\.mgpu\[.*product with the number of tasks"):
        problem.with_columns({"options.mgpu": many, "jobs.tasks": np.full(len(problem.jobs), 2)})
    held = problem.allocations
    last_gpu = np.full_like(held.gpu_index, MOST_GPUS - 1)
    with pytest.raises(InstanceError, match=r"allocations\.gpu_index\[.*expected a GPU that the server has"):
        replace(problem, allocations=replace(held, gpu_index=last_gpu, indexed=held.tasks > 0))
    rack = problem.servers.labels[0]
    with pytest.raises(InstanceError, match=rf"servers\.rack\[{rack}\].*expected a position on racks"):
        problem.with_columns({"servers.rack": problem.servers.rack + len(problem.racks)})
