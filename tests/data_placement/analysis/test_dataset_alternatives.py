"""Why a dataset is stored where it is: the plan with one copy less, more, or elsewhere, and nothing else changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mast_opt
from mast_opt.core.verdict import Violation
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.analysis.alternatives import phrase
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


@pytest.mark.parametrize(
    ("limits", "over", "limit", "words"),
    [
        ((2, 3), 1, 2, "1 copy, fewer than its minimum of 2"),
        ((1, 2), 1, 2, "3 copies, more than its maximum of 2"),
        ((1, 1), 2, 1, "3 copies, more than its maximum of 1"),
        ((2, 2), 1, 2, "a number of copies other than 2"),
    ],
)
def test_too_few_copies_are_told_from_too_many(limits: tuple[int, int], over: int, limit: int, words: str) -> None:
    least, most = (np.full(len(PROBLEM.datasets), one) for one in limits)
    problem = PROBLEM.with_columns({"datasets.copies_min": least, "datasets.copies_max": most})
    violation = Violation("copies", ("logs",), over, limit, "replicas")
    assert phrase(problem, violation) == f"dataset logs would have {words}"


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
