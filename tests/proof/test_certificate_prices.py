"""The prices of every heuristic's certificate prove its bound block by block, and the proof is accepted."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import mast_opt
from mast_opt.core.solve_result import SolveParams
from mast_opt.planner.io import read_certificate
from mast_opt.planner.proof import write_proof as writing
from mast_opt.planner.proof.certificate_prices import certificate_limits, certificate_prices
from mast_opt.planner.proof.checker import check_folder
from mast_opt.planner.solving.export_files import formulated
from mast_opt.problems.backends import get
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.exhaustive.capacity_prices import capacity_prices
from mast_opt.problems.job_placement.verification.certificate import CapacityBound
from mast_opt.problems.kind.problem import Problem
from mast_opt.problems.registry import kind_of
from mast_opt.problems.resource_allocation import ResourceAllocation
from mast_opt.problems.server_assignment import ServerAssignment
from mast_opt.problems.task_reassignment import TaskReassignment
from mast_opt.problems.task_reassignment.verification.aggregate_bound import aggregate_bound
from tests.examples import examples
from tests.job_placement import strategies as jobs
from tests.proof.mutants import accepted, lines_of, mutant
from tests.server_assignment import strategies as servers
from tests.server_assignment.support import proven
from tests.server_assignment.verification.test_certificate import random_certificate

INSTANCES = Path(__file__).parents[2] / "instances"
PLANS = INSTANCES / "resource_allocation" / "best_known"


def proves(problem: Problem[Any], arrays: Mapping[str, Any] | None, bound: float) -> str:
    """The proof that the prices alone give of a bound in the program's sense, which our checker accepts; nothing for
    a bound of 0, which needs no prices.
    """
    if bound == 0:
        return ""
    mip = formulated(problem).mip
    best = proven(mip)
    assert best.x is not None
    with (
        tempfile.TemporaryDirectory() as scratch,
        patch.object(writing, "strengthened", side_effect=AssertionError("the whole program is solved")),
    ):
        folder = Path(scratch) / "proof"
        found = writing.write_proof(
            mip,
            best.x,
            bound,
            folder,
            time_limit_s=60.0,
            most_leaves=4096,
            rows_of=certificate_limits(problem, arrays),
            prices=certificate_prices(problem, arrays, mip),
        )
        assert found.bound is not None
        assert found.bound >= bound - 1e-9 * max(1.0, abs(bound))
        assert check_folder(folder).bound == found.bound
        _refused(folder)
        return (folder / writing.PROOF).read_text(encoding="utf-8")


def _refused(folder: Path) -> None:
    """Changes of the proof are refused; those of its program may leave an equal one."""
    program, proof = lines_of(folder)
    rng = random.Random(57)
    for _ in range(4):
        changed = mutant(program, proof, rng)
        assert changed[0] in ("program", "row") or not accepted(folder, changed), changed[0]
    assert accepted(folder, ("nothing", program, proof))


@examples(25)
@given(problem=servers.problems(), seed=st.integers(0, 2**32))
def test_servers(problem: ServerAssignment, seed: int) -> None:
    """Random prices, whole servers counted: the bound of each reservation is proven by splits where it needs them."""
    arrays = random_certificate(problem, seed)
    bound = kind_of(problem).verification.certified_bound
    assert bound is not None
    wanted = bound(problem, arrays)
    event(f"bound: {wanted > 0}")
    text = proves(problem, arrays, wanted)
    event(f"splits: {' uns ' in text}")


@examples(25)
@given(problem=jobs.problems(jobs=3, running=2, moves=True), seed=st.integers(0, 2**32))
def test_jobs(problem: JobPlacement, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bound = CapacityBound(problem)
    solved = capacity_prices(problem, bound, get("highs").solve, SolveParams(threads=1))
    shape = (len(problem.servers), len(problem.standing.tiers), 3)
    drawn = rng.choice([0.0, 1e-3, 0.1], shape) * rng.uniform(size=shape) / 1000
    for capacity in [drawn] if solved is None else [drawn, solved.capacity]:
        arrays = {"capacity": capacity}
        certified = kind_of(problem).verification.certified_bound
        assert certified is not None
        wanted = certified(problem, arrays)
        event(f"bound: {wanted > 0}")
        proves(problem, arrays, wanted)


@pytest.mark.parametrize("seed", range(12))
def test_tasks(seed: int) -> None:
    """The bound of all machines taken as one, where some have no balance goal and some resources are transient."""
    rng = np.random.default_rng(seed)
    problem = mast_opt.generate("task-reassignment", seed=seed, machines=4, processes=8)
    assert isinstance(problem, TaskReassignment)
    problem = problem.with_columns(
        {
            "machines.balanced": rng.random(4) < 0.7,
            "machines.safety": problem.machines.safety * rng.integers(0, 3, problem.machines.safety.shape) // 3,
        }
    )
    if rng.random() < 0.5:
        problem = replace(problem, objective=replace(problem.objective, order=("balance", "load")))
    bound = aggregate_bound(problem)
    assert (bound > 0) == bool(proves(problem, None, bound))


@pytest.mark.parametrize(
    "policy", ["total-rate", "cost", "rate-per-cost", "packed-pairs", "max-min", "hierarchical", "makespan"]
)
def test_shares(policy: str) -> None:
    problem = mast_opt.read(INSTANCES / "resource_allocation" / policy)
    assert isinstance(problem, ResourceAllocation)
    arrays = read_certificate(PLANS / policy)
    certified = kind_of(problem).verification.certified_bound
    assert certified is not None
    assert arrays is not None
    bound = certified(problem, arrays)
    if policy == "makespan":
        bound = 1 / bound
    assert proves(problem, arrays, problem.sense.minimised(bound) if policy != "makespan" else -bound)
