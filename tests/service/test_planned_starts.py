"""Starts of the jobs that a plan leaves waiting, at the command line and in the words of the service."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.live.loop.state import State
from mast_opt.live.service.planned_starts import in_words, planned_starts, state_after
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.generate import FAMILIES
from mast_opt.problems.job_placement.live_fleet.reservations import reservations
from mast_opt.problems.job_placement.live_fleet.types import Job
from mast_opt.problems.job_placement.plan import Plan, empty
from mast_opt.problems.job_placement.units import GPU
from mast_opt.problems.job_placement.verification.measures import free_after
from tests.cli.conftest import Call
from tests.cli.conftest import call as call
from tests.job_placement.live_fleet.test_reservations import NEED, SIZE, two_regions, with_parts
from tests.job_placement.verification.test_verifier import plan
from tests.simulation.test_order_only import trace_of

NAMES = ("gang", "last", "one")


def crowded() -> tuple[JobPlacement, Plan]:
    """``gang`` waits for both servers in west, ``last`` for the end of ``one`` in east."""
    builder = two_regions()
    builder.add_job("gang", tier=1, tasks=2, gpus=4, limit_s=999, **NEED)
    builder.add_job("one", tier=1, tasks=1, gpus=4, limit_s=600, **NEED)
    builder.add_job("last", tier=1, tasks=1, gpus=4, **NEED)
    problem = builder.build()
    return problem, plan(problem, ("one", "s3", 1, None))


def test_promised_usual_and_sooner() -> None:
    found = planned_starts(*crowded(), NAMES)
    assert found == {
        "gang": {
            "promised_s": 7200,
            "usually_within_s": 7200,
            "expected_s": None,
            "fits_within_s": 7200,
            "sooner": [{"change": "1 tasks instead of 2", "fits_within_s": 600}],
        },
        "last": {
            "promised_s": 600,
            "usually_within_s": 600,
            "expected_s": None,
            "fits_within_s": 600,
            "sooner": [],
        },
    }
    words = "gang starts: promised within 120 min, usually within 120 min, if nobody were before it within 120 min."
    assert in_words("gang", found["gang"]).startswith(words)
    assert in_words("gang", found["gang"]).endswith("It would fit sooner with: 1 tasks instead of 2 (within 10 min).")


def test_expected_starts_go_by_what_jobs_used_of_their_limits() -> None:
    """Eleven jobs used half of their limits: so will those that run, which have just begun."""
    history = trace_of(*({"duration_ms": 500, "limit_ms": 1000} for _ in range(11)))
    found = planned_starts(*crowded(), NAMES, history)
    assert [found[name]["expected_s"] for name in ("gang", "last")] == [3600, 300]


def test_nothing_is_said_where_no_limit_does() -> None:
    problem, done = crowded()
    zero = {"jobs.limit_ms": np.zeros(3, np.int64), "running.ends_within_ms": np.zeros(3, np.int64)}
    found = planned_starts(problem.with_columns(zero), done, ["last"])["last"]
    assert in_words("last", found) == "last: limits do not say when it starts."
    assert planned_starts(problem, done, ["one"]) == {}


def test_a_job_of_several_parts_says_when_it_starts() -> None:
    """The name of any part finds the job's start."""
    problem = with_parts(4, 4)
    found = planned_starts(problem, empty(problem), ["both/b"])
    assert found == {
        "both/b": {
            "promised_s": 7200,
            "usually_within_s": 7200,
            "expected_s": None,
            "fits_within_s": 7200,
            "sooner": [],
        }
    }
    assert in_words("both/b", found["both/b"]).startswith("both/b starts: promised within 120 min, usually within")
    history = trace_of(*({"duration_ms": 500, "limit_ms": 1000} for _ in range(11)))
    assert planned_starts(problem, empty(problem), ["both/a"], history)["both/a"]["expected_s"] == 3600


def test_changes_that_make_a_job_of_parts_fit_sooner() -> None:
    """With half of its tasks it fits into west, and on the other type of GPUs into south at once."""
    builder = two_regions()
    builder.add_cluster("c-south", region="south")
    for name in ("s4", "s5"):
        builder.add_server(name, "c-south", gpus=16, gpu_type="a100", **SIZE)
    builder.add_job("both", tier=1)
    for part in "ab":
        builder.add_job_part("both", part, tasks=2, gpus=4, gpu_types=["h100"], **NEED)
    problem = builder.build()
    found = planned_starts(problem, empty(problem), ["both/b"])["both/b"]
    assert found["fits_within_s"] is None
    assert found["sooner"] == [
        {"change": "GPUs of any type", "fits_within_s": 0},
        {"change": "half of the tasks of each part", "fits_within_s": 7200},
    ]


@pytest.mark.parametrize("seed", range(5))
def test_the_state_has_what_the_plan_leaves(seed: int) -> None:
    problem = FAMILIES["features"].generate(np.random.default_rng(seed))
    done = mast_opt.solve(problem, "exhaustive").plan or empty(problem)
    state = state_after(problem, done)
    assert _free(state) == dict(zip(problem.servers.labels, free_after(problem, done)[:, GPU].tolist()))
    left = [j for j in problem.order.tolist() if j not in done.job and problem.counts_once[j]]
    waiting = [Job.of(problem, j).name for j in left]
    assert [name for name, one in state.jobs.items() if one.waits] == waiting


def _free(state: State) -> dict[str, int]:
    free = {server.name: server.gpus * 1000 for server in state.inventory.in_service()}
    for name in state.fleet.running():
        for share in state.fleet.shares(name):
            free[share.server] -= sum(share.gpus.values())
    return free


def test_the_loop_promises_what_the_plan_reserves() -> None:
    problem, done = crowded()
    found = reservations(problem, done, problem.order[~np.isin(problem.order, done.job)])
    ours = {problem.jobs.labels[j]: (one.by_ms or 0) / 1000 for j, one in found.items()}
    assert {name: one["promised_s"] for name, one in planned_starts(problem, done, NAMES).items()} == ours


def test_explain_tells_the_starts(call: Call, tmp_path: Path) -> None:
    problem, _ = crowded()
    mast_opt.write(problem, tmp_path / "batch")
    mast_opt.write_plan(problem, mast_opt.solve(problem, "exhaustive"), tmp_path / "plan")
    asked = ("explain", tmp_path / "batch", "--plan", tmp_path / "plan", "--job", "gang,one")
    record = call(*asked, "--json").record
    assert {name: one["promised_s"] for name, one in record["starts"].items()} == {"gang": 7200}
    assert "gang starts: promised within 120 min" in call(*asked).out
    history = Path(mast_opt.__file__).parents[1] / "instances" / "traces" / "philly-small"
    assert call(*asked, "--history", history, "--json").record["starts"]["gang"]["expected_s"] is not None
    ended = call("explain", tmp_path / "batch", "--history", history)
    assert ended.code != 0
