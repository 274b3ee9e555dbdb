"""Where a job could go, counted over classes of servers, against every server looked at by itself."""

from __future__ import annotations

import numpy as np
import pytest

import mast_opt
from mast_opt.problems.job_placement.formulation.domain_reduction import possible_options, room_by_tier
from mast_opt.problems.job_placement.formulation.index_sets import job_servers, options_of
from mast_opt.problems.job_placement.kind import KIND
from mast_opt.problems.job_placement.movable_jobs import movable_jobs
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import CPU, GPU, MEMORY, RACK, SERVER, WHOLE

SMALL = {"jobs": 25, "servers": 4}


@pytest.fixture(params=[(family, seed) for family in KIND.generate.families for seed in range(3)], ids=str)
def problem(request: pytest.FixtureRequest) -> JobPlacement:
    family, seed = request.param
    sizes = {name: size for name, size in SMALL.items() if name in KIND.generate.families[family].sizes}
    found: JobPlacement = mast_opt.generate(KIND.name, family, seed=seed, **sizes)
    return found


def test_options_are_where_some_server_has_room(problem: JobPlacement) -> None:
    p, options = problem, options_of(problem)
    job, server = job_servers(p)
    true = sorted(set(zip(job.tolist(), p.server_cluster[server].tolist(), p.servers.gpu_type[server].tolist())))
    assert list(zip(options.job.tolist(), options.cluster.tolist(), options.type.tolist())) == true


def test_an_option_is_possible_where_one_place_holds_all_tasks(problem: JobPlacement) -> None:
    p, options = problem.standing, options_of(problem.standing)
    room = room_by_tier(movable_jobs(p))
    true = []
    for job, cluster, kind in zip(options.job.tolist(), options.cluster.tolist(), options.type.tolist()):
        held: dict[int, int] = {}
        for s in np.flatnonzero((p.server_cluster == cluster) & (p.servers.gpu_type == kind)).tolist():
            place = {SERVER: s, RACK: int(p.servers.rack[s])}.get(int(p.jobs.within[job]), 0)
            held[place] = held.get(place, 0) + _tasks(p, job, kind, room[s, :, p.queue_tier[job]].tolist())
        true.append(max(held.values()) >= p.jobs.tasks[job])
    assert possible_options(movable_jobs(p), options).tolist() == true


def _tasks(problem: JobPlacement, job: int, kind: int, room: list[int]) -> int:
    p, mgpu = problem, int(problem.need_mgpu[job, kind])
    most = [int(p.jobs.tasks[job])]
    if mgpu >= WHOLE:
        most.append(room[GPU] // WHOLE // (mgpu // WHOLE))
    elif mgpu:
        most.append(room[GPU] // mgpu)
    most += [
        room[at] // int(need[job]) for at, need in ((CPU, p.jobs.cpu_mcores), (MEMORY, p.jobs.memory_mib)) if need[job]
    ]
    return min(most)
