"""What is known of today, which limits it breaks, and that figures of a part of today are called so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import mast_opt
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.analysis.current_state import complete, current_state, known
from mast_opt.problems.data_placement.analysis.scenarios import lose_regions, priced
from mast_opt.problems.data_placement.plan import today
from mast_opt.problems.data_placement.verification.verifier import verify
from mast_opt.problems.registry import kind_of
from tests.data_placement.strategies import problems
from tests.data_placement.workshop import (
    A100,
    ETL,
    H100,
    IMAGES,
    LOGS,
    NO_GPU,
    PROBLEM,
    TB,
    TRAIN,
    VIDEO,
    VIEW,
    A,
    B,
    C,
    grid,
    ints,
)
from tests.examples import examples
from tests.narrowing import some

STATED: dict[str, Any] = {
    "current_runs.workload": ints(TRAIN, ETL, VIEW),
    "current_runs.region": ints(A, A, C),
    "current_runs.gpu_type": ints(H100, NO_GPU, A100),
    "current_runs.share": ints(1000, 1000, 1000),
    "datasets.stored": grid((LOGS, A), (IMAGES, A), (IMAGES, B), (VIDEO, C)),
}
WHOLE = PROBLEM.with_columns(STATED)


def test_a_state_that_is_known_and_keeps_every_limit() -> None:
    state = current_state(WHOLE)
    assert state.complete
    assert state.broken == ()
    assert [(one.what, one.known, one.of) for one in state.known] == [
        ("workloads", 3, 3),
        ("GPUs", 12, 12),
        ("cores", 65, 65),
    ]


def test_missing_runs_are_counted() -> None:
    part = WHOLE.with_columns({name: STATED[name][1:] for name in STATED if name != "datasets.stored"})
    assert [(one.known, one.of) for one in known(part)] == [(2, 3), (4, 12), (55, 65)]
    assert not complete(part)
    nothing = WHOLE.with_columns({name: STATED[name][:0] for name in STATED if name != "datasets.stored"})
    assert [one.known for one in known(nothing)] == [0, 0, 0]
    assert "where work runs is not known" in current_state(nothing).notes[0]
    assert current_state(nothing).broken == ()


def test_a_type_that_is_not_stated_is_not_known() -> None:
    """train accepts two types, so an empty cell is a guess; view accepts one."""
    vague = replace(WHOLE, current_runs=replace(WHOLE.current_runs, gpu_type=ints(NO_GPU, NO_GPU, NO_GPU)))
    assert [one.known for one in known(vague)] == [3, 4, 65]
    assert not complete(vague)
    assert "1 workload runs on a GPU type that is not stated" in current_state(vague).notes[0]


def test_prices_that_count_for_nothing_are_said() -> None:
    prices = np.full_like(WHOLE.regions.gpu_price_micro, 4_000_000)
    priced = WHOLE.with_columns({"regions.gpu_price_micro": prices})
    free = priced.with_objective({"running_cost": 0.0, "migration_cost": 0.0, "egress": 0.0})
    assert "plans do not count money" in current_state(free).notes[-1]
    assert "plans do not count money" in current_state(priced.with_objective({}, ("overload",))).notes[-1]
    for counted in (priced.with_objective({"running_cost": 1e-6}), priced.with_objective({}, ("running_cost",))):
        assert not [note for note in current_state(counted).notes if "money" in note]


@pytest.mark.parametrize(
    ("changes", "limit", "index", "message"),
    [
        (
            {"regions.storage_mb": ints(9, 20, 20) * TB},
            "storage",
            ("a",),
            "storage of a (9 TB usable) is exceeded by 1 TB",
        ),
        ({"regions.cpu_mcores": ints(59, 100, 100) * 1000}, "cpu", ("a",), "CPU of a (59 cores) is exceeded by 1 core"),
        (
            {"cpu_quotas.region": ints(A), "cpu_quotas.cpu_mcores": ints(9000)},
            "quota",
            ("a", "ads"),
            "CPU quota of ads in a (9 cores) is exceeded by 1 core",
        ),
        (
            {"datasets.copies_max": ints(2, 1, 3)},
            "copies",
            ("images",),
            "dataset images has 2 replicas; expected at most 1",
        ),
        (
            {"datasets.copies_min": ints(2, 1, 1)},
            "copies",
            ("logs",),
            "dataset logs has 1 replica; expected at least 2",
        ),
        (
            {"datasets.pinned": grid((LOGS, B))},
            "place",
            ("logs", "b"),
            "dataset logs has no replica in b, where it is pinned",
        ),
        (
            {"datasets.forbidden": grid((IMAGES, A))},
            "place",
            ("images", "a"),
            "dataset images has a replica in a, where it is forbidden",
        ),
        (
            {"datasets.residency": grid((IMAGES, A))},
            "residency",
            ("images", "b"),
            "dataset images has a replica in b, outside its residency; it may only be a source of copies",
        ),
        (
            {"datasets.residency": grid((LOGS, B))},
            "residency",
            ("train", "logs", "a"),
            "train reads logs in a, outside the residency of the data",
        ),
        (
            {"current_runs.gpu_type": ints(NO_GPU, A100, A100)},
            "run",
            ("etl", "a", "a100"),
            "etl runs in a on a100, which it does not accept",
        ),
        (
            {"current_runs.gpu_type": ints(A100, NO_GPU, A100)},
            "run",
            ("train", "a", "a100"),
            "train runs in a on a100, and a has no supply of it",
        ),
        (
            {"current_runs.gpu_type": ints(H100, NO_GPU, H100)},
            "run",
            ("view", "c", "h100"),
            "view runs in c on h100, which it does not accept",
        ),
        ({"workloads.forbidden": grid((ETL, A))}, "run", ("etl", "a", "none"), "etl runs in a, where it is forbidden"),
        (
            {"workloads.pinned": grid((ETL, B))},
            "run",
            ("etl", "a", "none"),
            "etl runs in a, and it is pinned to another region",
        ),
        (
            {"datasets.stored": grid((LOGS, A), (IMAGES, A), (IMAGES, B))},
            "local",
            ("view", "video", "c"),
            "view runs in c and reads video, which is stored nowhere",
        ),
        (
            {"datasets.stored": grid((LOGS, A), (IMAGES, B), (VIDEO, C)), "remote_reads": False},
            "local",
            ("train", "images", "a"),
            "train runs in a and reads images, which a does not hold, and remote reads are forbidden",
        ),
        (
            {"datasets.stored": grid((LOGS, A), (IMAGES, C), (VIDEO, C))},
            "local",
            ("train", "images", "a"),
            "train runs in a and reads images, which a does not hold, and no link brings it there",
        ),
    ],
)
def test_each_limit_that_today_breaks_is_named(
    changes: dict[str, Any], limit: str, index: tuple[str, ...], message: str
) -> None:
    broken = current_state(WHOLE.with_columns(changes)).broken
    assert message in [one.message for one in broken if (one.limit, one.index) == (limit, index)]


def test_work_of_a_lost_region_stands_still_and_breaks_no_limit() -> None:
    lost = priced(lose_regions(WHOLE, ["a"]))
    assert not [one for one in current_state(lost).broken if "a" in one.index]
    now = some(today(lost))
    assert not (now.run_region == A).any()
    assert verify(lost, now).terms["unserved"] > 0


def test_reads_over_a_link_break_nothing() -> None:
    """images are in b alone, from where a link leads to a."""
    assert current_state(WHOLE.with_columns({"datasets.stored": grid((LOGS, A), (IMAGES, B), (VIDEO, C))})).broken == ()


def test_a_run_on_a_type_that_is_not_accepted_is_no_known_demand() -> None:
    wrong = replace(WHOLE, current_runs=replace(WHOLE.current_runs, gpu_type=ints(H100, NO_GPU, H100)))
    assert [one.known for one in known(wrong)] == [3, 8, 65]
    message = next(one.message for one in current_state(wrong).broken if one.limit == "run")
    assert message == "view runs in c on h100, which it does not accept"


@examples(60)
@given(problem=problems())
def test_counts_and_storage_against_brute_force(problem: DataPlacement) -> None:
    p, state = problem, current_state(problem)
    accepts = {w: set(p.options.gpu_type[p.options.workload == w].tolist()) for w in range(len(p.workloads))}
    fewest = {w: int(p.options.mgpu[p.options.workload == w].min()) for w in accepts}
    shares = gpus = cores = 0.0
    output = [0.0] * len(p.regions)
    for w, r, k, share in zip(
        p.current_runs.workload, p.current_runs.region, p.current_runs.gpu_type, p.current_runs.share
    ):
        shares += share / 1000
        cores += share * p.workloads.cpu_mcores[w] / 1e6
        output[r] += p.workloads.output_mb[w] * share / 1000
        certain = k in accepts[w] or (k == len(p.gpu_types) and len(accepts[w]) == 1)
        gpus += share * fewest[w] / 1e6 if certain else 0
    assert [one.known for one in state.known] == pytest.approx([shares, gpus, cores])
    assert state.complete == all(one.known >= one.of for one in state.known)
    full = {
        p.regions.labels[r]
        for r in range(len(p.regions))
        if p.datasets.size_mb @ p.datasets.stored[:, r] + output[r] > p.usable_storage_mb[r]
    }
    assert {one.index[0] for one in state.broken if one.limit == "storage"} == full


def test_partial_figures_are_called_so() -> None:
    part = WHOLE.with_columns({name: STATED[name][1:] for name in STATED if name != "datasets.stored"})
    plan = mast_opt.solve(part).plan
    for problem, title in ((part, "known ratio before"), (WHOLE, "ratio before")):
        [gpus] = [s for s in kind_of(problem).presentation.sections(problem, some(plan)) if "GPU" in s.title]
        assert title in [head.title for head in gpus.heads]


@pytest.mark.parametrize("kind", ["job-placement", "server-assignment", "task-reassignment"])
def test_other_kinds_have_a_present_state(kind: str) -> None:
    problem = mast_opt.generate(kind, seed=1)
    state = kind_of(problem).analysis.current_state(problem)
    assert state is not None
    assert state.known
    assert all(0 <= one.known <= one.of for one in state.known)


def test_a_server_that_holds_more_than_it_has() -> None:
    problem = mast_opt.generate("job-placement", seed=1)
    assert len(problem.allocations)
    state = kind_of(problem).analysis.current_state(problem)
    assert state is not None
    assert "capacity" not in {one.limit for one in state.broken}
    server = problem.servers.labels[problem.allocations.server[0]]
    state = kind_of(problem).analysis.current_state(problem.replace("servers", server, supply=[0, 0, 0]))
    assert state is not None
    assert (server, "cores") in {one.index for one in state.broken}


def test_what_a_first_assignment_breaks() -> None:
    problem = mast_opt.generate("task-reassignment", seed=1)
    verdict = mast_opt.verify(problem, some(kind_of(problem).analysis.current_plan(problem)))
    state = kind_of(problem).analysis.current_state(problem)
    assert state is not None
    assert len(state.broken) == len(verdict.violations)
