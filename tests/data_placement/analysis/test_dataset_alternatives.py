"""Why a dataset is stored where it is: the plan with one copy less, more, or elsewhere, and nothing else changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mast_opt
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.analysis.dataset_alternatives import alternatives, now
from tests.data_placement.strategies import plans, problems
from tests.data_placement.workshop import IMAGES, LOGS, PLAN, PROBLEM, VIDEO
from tests.examples import examples
from tests.narrowing import some

FREE = replace(PROBLEM, links=None)


def test_where_it_is_stored_and_who_reads_it_there() -> None:
    assert now(PROBLEM, PLAN, LOGS) == "in a (read by etl and etl remotely) and b (read by train)"
    (one,) = mast_opt.explain(PROBLEM, PLAN, ["images"]).reasons
    assert one.now == "is stored in b (read by train)"


@pytest.mark.parametrize("problem", [PROBLEM, FREE], ids=["links", "no links"])
def test_without_its_copy_the_readers_read_remotely(problem: DataPlacement) -> None:
    """train in b then reads the 4 TB of logs that a has."""
    (one,) = mast_opt.explain(problem, PLAN, ["logs"]).reasons
    option = next(option for option in one.options if option.words == "without the copy in b")
    assert not option.forbidden
    assert option.terms["remote"] > 0 > option.terms["copy"]
    by_hand = next(a for a in alternatives(problem, PLAN, LOGS) if a.words == option.words)
    before, after = mast_opt.verify(problem, PLAN), mast_opt.verify(problem, some(by_hand.plan))
    assert after.ok
    assert option.change == pytest.approx(after.objective - before.objective)


def test_bans_pins_and_missing_links_forbid() -> None:
    logs = {option.words: option.forbidden for option in mast_opt.explain(PROBLEM, PLAN, ["logs"]).reasons[0].options}
    assert "dataset logs is forbidden in c" in logs["with a copy in c as well"]
    images = {o.words: o.forbidden for o in mast_opt.explain(PROBLEM, PLAN, ["images"]).reasons[0].options}
    assert "dataset images is pinned to b" in images["in a instead of b"]
    assert len(images["without the copy in b"]) >= 2
    assert VIDEO != IMAGES


def test_too_few_copies_are_told_from_too_many() -> None:
    builder = mast_opt.DataPlacementBuilder("copies", remote_reads="price")
    for name in ("east", "west", "north"):
        builder.add_region(name, storage_tb=9, cpu_cores=9)
    builder.add_dataset("logs", size_tb=1, replicas=["east", "west"], copies_min=2)
    builder.add_dataset("clicks", size_tb=1, replicas=["east"], copies_min=0, copies_max=1)
    builder.add_workload("rank", tier=0, cpu_cores=1, reads={"logs": 1, "clicks": 1}, current_region="east")
    problem = builder.build()
    plan = some(mast_opt.solve(problem, "highs", threads=1).plan)
    logs, clicks = mast_opt.explain(problem, plan, ["logs", "clicks"]).reasons
    fewer = {words for option in logs.options for words in option.forbidden if "cop" in words}
    assert "dataset logs would have 1 copy, fewer than its minimum of 2" in fewer
    more = {words for option in clicks.options for words in option.forbidden if "cop" in words}
    assert more >= {"dataset clicks would have 2 copies, more than its maximum of 1"}


def test_a_name_of_a_workload_and_a_dataset_asks_about_both() -> None:
    labels = ("train", *PROBLEM.datasets.labels[1:])
    shared = replace(PROBLEM, datasets=replace(PROBLEM.datasets, labels=labels))
    first, second = mast_opt.explain(shared, PLAN, ["train"]).reasons
    assert first.now.startswith("runs")
    assert second.now.startswith("is stored")
    with pytest.raises(mast_opt.UsageError, match=r"no workload or dataset called 'videos'.*did you mean 'video'"):
        mast_opt.explain(PROBLEM, PLAN, ["videos"])


@examples(40)
@given(problem=problems(), data=st.data())
def test_nothing_but_the_copies_and_their_reads_changes(problem: DataPlacement, data: st.DataObject) -> None:
    plan = data.draw(plans(problem))
    before = mast_opt.verify(problem, plan)
    for i in range(len(problem.datasets)):
        for one in alternatives(problem, plan, i):
            changed = some(one.plan)
            moved = np.argwhere(changed.place != plan.place)
            assert (moved[:, 0] == i).all()
            assert len(moved) == (2 if "instead" in one.words else 1)
            assert np.array_equal(changed.run_region, plan.run_region)
            for name in ("copy", "remote"):
                dataset, old = getattr(changed, f"{name}_dataset"), getattr(plan, f"{name}_dataset")
                rows = sorted(getattr(changed, f"{name}_target")[dataset != i].tolist())
                assert rows == sorted(getattr(plan, f"{name}_target")[old != i].tolist())
            after = mast_opt.verify(problem, changed)
            if before.ok and problem.links is None and problem.remote_reads and changed.place[i].any():
                kinds = {violation.constraint for violation in after.violations}
                assert not kinds & {"local", "remote", "copy", "copied", "share"}
