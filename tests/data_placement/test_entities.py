"""The groups of a data-placement problem: rows by label, and what is refused."""

from __future__ import annotations

import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mast_opt.core.errors import InstanceError, UsageError
from mast_opt.problems.data_placement.entities import Links
from tests.data_placement.workshop import A100, NO_GPU, PROBLEM, TB, A, B, C, ints


def test_rows_by_label() -> None:
    larger = PROBLEM.replace("regions", "b", cpu_mcores=7, supply_mgpu={"a100": 9_000})
    assert larger.regions.cpu_mcores.tolist() == [100_000, 7, 100_000]
    assert larger.regions.supply_mgpu[B].tolist() == [8_000, 9_000]
    assert larger.datasets is PROBLEM.datasets
    pinned = PROBLEM.replace("datasets", "logs", pinned={"c": True}, copies_min=2).datasets
    assert pinned.pinned[0].tolist() == [False, False, True]
    assert PROBLEM.replace("workloads", "etl", tier=0, app="ads").workloads.app.tolist() == [0, 0, 1]


def test_rows_of_relations_by_key() -> None:
    assert PROBLEM.replace("options", ("train", "a100"), mgpu=3).options.mgpu.tolist() == [8_000, 3, 0, 4_000]
    assert PROBLEM.replace("options", ("etl", None), gpu_type="a100").options.gpu_type[2] == A100
    assert PROBLEM.replace("reads", ("view", "video"), mb_per_day=5).reads.mb_per_day[3] == 5
    assert PROBLEM.replace("cpu_quotas", ("b", "ads"), cpu_mcores=5).cpu_quotas.cpu_mcores.tolist() == [5]
    moved = PROBLEM.replace("current_runs", ("train", "a", "h100"), region="c", gpu_type=None).current_runs
    assert (moved.region[0], moved.gpu_type[0]) == (C, NO_GPU)
    linked = PROBLEM.replace("links", ("a", "b"), capacity_mb_per_day=1).links
    assert linked is not None
    assert linked.capacity_mb_per_day.tolist() == [1, TB, 10 * TB, 10 * TB]
    with pytest.raises(UsageError, match="there is no group 'links'"):
        replace(PROBLEM, links=None).replace("links", ("a", "b"), capacity_mb_per_day=1)


def test_copies_are_equal() -> None:
    twin = pickle.loads(pickle.dumps(PROBLEM))
    assert twin == PROBLEM
    assert hash(twin) == hash(PROBLEM)
    assert not twin.datasets.stored.flags.writeable
    assert twin.replace("regions", "a", cpu_mcores=1) != PROBLEM
    assert replace(PROBLEM, links=None) != PROBLEM
    assert "regions=3, datasets=3, workloads=3, options=4, reads=4" in repr(PROBLEM)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"options.workload": ints(0, 0, 2, 2)}, r"options\.workload: expected an option for each workload.*1 \(etl\)"),
        (
            {"current_runs.workload": ints(0, 0), "current_runs.region": ints(A, B)},
            r"current_runs\.share: found '2000'; expected shares of workload 0 \(train\) .* at most 1000",
        ),
        ({"workloads.tier": ints(0, 2, 1)}, r"workloads\.tier\[etl\]: found '2'; expected a position on tiers"),
        ({"reads.dataset": ints(0, 1, 0, 3)}, r"reads\.dataset\[3\]: found '3'; expected a position on datasets"),
        ({"regions.headroom_milli": ints(0, 1001, 0)}, r"regions\.headroom_milli\[b\]: found '1001'; expected from 0"),
        ({"days": Fraction(0)}, r"days: found '0'; expected a positive number"),
        ({"links": 7}, r"links: found 'int 7'; expected a Links or None"),
        ({"links.source": ints(A, A, B, C)}, r"links\.target\[3\]: found '2'; expected another region than the source"),
    ],
)
def test_what_does_not_fit_is_named(columns: dict[str, object], words: str) -> None:
    with pytest.raises(InstanceError, match=words):
        PROBLEM.with_columns(columns)


def test_a_link_that_occurs_twice() -> None:
    with pytest.raises(InstanceError, match=r"links\.source\[1\].*source, target that differ"):
        Links(ints(A, A), ints(B, B), ints(1, 1), np.ones(2))
