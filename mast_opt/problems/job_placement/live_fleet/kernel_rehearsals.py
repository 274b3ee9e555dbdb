"""Kernel compilation of the job-placement fast path, for batches and for a live fleet."""

from dataclasses import replace

import numpy as np

from mast_opt.problems.job_placement.engine.best_bid import NOBODY, needed
from mast_opt.problems.job_placement.engine.feasibility import level_in
from mast_opt.problems.job_placement.exhaustive.batch_state import batch_state_of
from mast_opt.problems.job_placement.exhaustive.params import ExhaustiveParams, ExhaustiveRepairParams
from mast_opt.problems.job_placement.exhaustive.ruin_and_recreate import exhaustive_repair
from mast_opt.problems.job_placement.exhaustive.solver import exhaustive
from mast_opt.problems.job_placement.generate import FAMILIES
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.move_plan import MoveBudget
from mast_opt.problems.job_placement.live_fleet.types import Job, Part, Server, Share
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.search.interface import Rehearsal, SearchContext

REPAIR = "exhaustive+repair"
SMALL = 6
"""Sizes, at most, of the batch that is placed."""


def rehearsals(problem: JobPlacement | None, *, repairs: bool) -> tuple[Rehearsal, ...]:
    """Those that a solver needs on a problem, or on any; the one that takes longest comes first.

    ``repairs``: is the solver ``exhaustive+repair``?
    """
    found = []
    if problem is None or len(problem.tiers) > 1:
        if problem is None or bool((problem.jobs.tasks > 1).any()):
            found.append(
                Rehearsal("victims in a group", lambda tools: _full().place(Job("gang", 0, tasks=2, mgpu=2000)))
            )
        found.append(Rehearsal("victims on a server", lambda tools: _full().place(Job("single", 0, mgpu=1000))))
    if problem is None or len(problem.parts):
        found.append(Rehearsal("parts", lambda tools: _in_parts()))
    if repairs:
        found.append(
            Rehearsal("repair", lambda tools: exhaustive_repair(_sample(), tools, None, ExhaustiveRepairParams()))
        )
    return (*found, Rehearsal("queue", _queue))


def live() -> tuple[Rehearsal, ...]:
    """Rehearsals of the kernels that a live fleet needs in addition to those of the solvers."""
    return (Rehearsal("fleet", lambda tools: _operate()),)


def _sample() -> JobPlacement:
    """A small instance of job placement, with which kernels are compiled."""
    (family, *_) = FAMILIES.values()
    sizes = {size: min(default, SMALL) for size, default in family.sizes.items()}
    problem: JobPlacement = family.generate(np.random.default_rng(0), **sizes)
    return problem


def _queue(tools: SearchContext) -> None:
    """Rehearse a batch: place it, repeat its plan, and do everything that may be done with a batch in progress."""
    problem = _sample()
    exhaustive(problem, tools, None, ExhaustiveParams(placement="best-fit"))
    plan = exhaustive(problem, tools, None, ExhaustiveParams()).plan
    batch = batch_state_of(problem)
    request = batch.request(0)
    level_in(batch.state, 0, request)
    needed(batch.state, 0, request, NOBODY)
    assert plan is not None
    batch.replay(plan)
    for j in tuple(batch.placed):
        batch.remove(j)
    for v in range(len(problem.running)):
        batch.stop(v)
    batch.restore_unneeded(np.ones(len(problem.running), np.int64))


def _full(*jobs: Job) -> Fleet:
    """A fleet of two servers with two GPUs each, on which such jobs run; two victims unless given."""
    servers = [Server(f"s{n}", "r", "c", "rack", "gpu", 2, 8000, 8192) for n in range(2)]
    fleet = Fleet(servers, tiers=(0, 1))
    for job in jobs or (_victim(0), _victim(1)):
        _admit(fleet, job)
    return fleet


def _victim(number: int) -> Job:
    """A running job that may be stopped, for rehearsals."""
    return Job(f"victim{number}", 1, mgpu=2000, preemptible=True, gpu_hours_at_risk=number)


def _operate() -> None:
    """Rehearse every operation of a live fleet."""
    fleet = _full()
    _admit(fleet, Job("single", 0, mgpu=1000))
    with fleet.trial():
        fleet.set_at_risk({"single": 1.0})
        fleet.look_at_work(["r"], 0)
        fleet.release("single")
        _admit(fleet, Job("gang", 0, tasks=2, mgpu=2000))
        fleet.bids(Job("large", 0, tasks=9, mgpu=2000))
        fleet.explain(Job("fraction", 0, mgpu=500))
        with fleet.trial():
            fleet.adopt(Job("reported", 1, mgpu=2000), (Share("s1", 1, {0: 1000, 1: 1000}),))
            fleet.release("reported")
    with fleet.trial():
        fleet.resize("single", 2)
    _gather()
    _in_parts()
    with fleet.round():
        fleet.fail("s1")
    fleet.uncordon("s1")
    fleet.drain("s0")
    fleet.add_servers([Server("s2", "r", "c", "rack", "gpu", 2, 8000, 8192)])
    Fleet([Server("s", "r", "c", "rack", "gpu", 1, 0, 0)], placement="best-fit").place(Job("one", 0))


def _in_parts() -> None:
    """Rehearse to place a job of several parts, with and without victims, anywhere and on one server."""
    fleet = _full(_victim(0))
    job = Job("parts", 0, preemptible=True, within="server", parts=(Part("a"), Part("b", mgpu=500)))
    fleet.place_and_commit(job)
    fleet.place(replace(job, name="more", within="region", parts=(Part("a", mgpu=2000), Part("b", mgpu=0))))


def _gather() -> None:
    """Rehearse to move a running job to make room for another one, and for none."""
    fleet = _full(Job("a", 1, preemptible=True), Job("b", 1))
    fleet.adopt(Job("b", 1), (Share("s1", 1, {0: 1000}),))
    fleet.apply(fleet.defragment(MoveBudget(), [Job("two", 0, mgpu=2000)]))
    fleet.defragment(MoveBudget())


def _admit(fleet: Fleet, job: Job) -> None:
    """Start a job in a fleet if it fits."""
    answer = fleet.place(job)
    if isinstance(answer, Bid):
        fleet.commit(answer)
