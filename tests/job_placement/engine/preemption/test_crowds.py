"""More victims on a server, and more tasks in a gang, than are searched through."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mast_opt.problems.job_placement.live_fleet.answers import Bid, Refused
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job
from tests.job_placement.fleets import admit, server
from tests.job_placement.reference import assert_exact


@pytest.mark.parametrize("tasks", [1, 2])
def test_many_cheap_jobs_that_free_nothing_needed_do_not_hide_the_one_that_does(tasks: int) -> None:
    fleet = Fleet([server(f"s{n}", gpus=8) for n in range(tasks)])
    for n in range(tasks):
        admit(fleet, Job(f"big{n}", 3, mgpu=8000, preemptible=True, gpu_hours_at_risk=100))
    for n in range(61 * tasks):
        admit(fleet, Job(f"small{n}", 3, mgpu=0, cpu_mcores=1000, preemptible=True))
    bid = fleet.place(Job("urgent", 0, tasks=tasks, mgpu=8000))
    assert isinstance(bid, Bid)
    assert (bid.victims, bid.proven) == (tuple(f"big{n}" for n in range(tasks)), True)


@pytest.mark.parametrize("tasks", [1, 2])
def test_more_victims_than_are_searched_are_found_and_none_is_stopped_in_vain(tasks: int) -> None:
    """64 jobs of a core on every server of 64 cores."""
    fleet = Fleet([server(f"s{n}") for n in range(tasks)])
    for n in range(64 * tasks):
        admit(fleet, Job(f"small{n}", 3, mgpu=0, cpu_mcores=1000, preemptible=True, gpu_hours_at_risk=n % 64))
    urgent = Job("urgent", 0, tasks=tasks, mgpu=0, cpu_mcores=62_000)
    (report,) = fleet.explain(urgent)
    assert report.words == f"it fits if {62 * tasks} running jobs are stopped"
    bid = fleet.place(urgent)
    assert isinstance(bid, Bid)
    assert (len(bid.victims), bid.proven) == (62 * tasks, False)
    assert fleet.commit(bid) == bid.victims
    assert_exact(fleet._books)
    assert isinstance(fleet.place(Job("more", 0, mgpu=0, cpu_mcores=2001)), Refused)


def test_a_gang_larger_than_memory_is_refused() -> None:
    fleet = Fleet([server(f"s{n}") for n in range(100)])
    answer = fleet.place(Job("x", 0, tasks=10**9, mgpu=0, cpu_mcores=1000))
    assert isinstance(answer, Refused)
    assert isinstance(fleet.place(Job("y", 0, tasks=10**9, mgpu=1000, within="server")), Refused)


def test_a_gang_that_is_too_large_to_be_searched_for_is_placed() -> None:
    """A million tasks on 200 servers, each of which would hold them all but for a job there."""
    fleet = Fleet([replace(server(f"s{n}"), memory_mib=8000) for n in range(200)])
    for n in range(200):
        admit(fleet, Job(f"old{n}", 3, memory_mib=7000, mgpu=0, preemptible=True))
    bid = fleet.place(Job("x", 0, tasks=1_000_000, mgpu=0, memory_mib=1))
    assert isinstance(bid, Bid)
    assert (len(bid.victims), bid.proven) == (115, False)
    assert sum(share.tasks for share in bid.shares) == 1_000_000
