"""Why a workload runs where it runs: exact changes, and the limits that forbid the rest."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mast_opt
from mast_opt.planner.analysis.alternatives import Option, Reasons, grouped
from mast_opt.problems.data_placement import DataPlacement, Links
from mast_opt.problems.data_placement.analysis.alternatives import alternatives
from mast_opt.problems.data_placement.problem import SHARE
from mast_opt.problems.registry import kind_of
from tests.data_placement.strategies import plans, problems
from tests.data_placement.workshop import H100, IMAGES, LINKS, LOGS, PLAN, PROBLEM, TRAIN, A, B
from tests.examples import examples
from tests.narrowing import some

FREE = replace(PROBLEM, links=None)


def of(problem: DataPlacement, name: str) -> Reasons:
    (one,) = mast_opt.explain(problem, PLAN, [name]).reasons
    return one


def test_where_it_runs_now() -> None:
    assert of(PROBLEM, "train").now == "runs in b on h100"
    assert of(PROBLEM, "etl").now == "runs 60.0% in a and 40.0% in c"


def test_possible_ones_first_and_cheapest_first() -> None:
    options = of(FREE, "train").options
    ranked = [(bool(option.forbidden), math.inf if option.change is None else option.change) for option in options]
    assert ranked == sorted(ranked)
    assert {option.place for option in options} == {"a", "b", "c"}


def test_forbidden_by_rules_types_and_room() -> None:
    by_words = {option.words: option.forbidden for option in of(FREE, "train").options}
    assert by_words["in a on a100"] == ("a has no a100",)
    in_c = next(limits for words, limits in by_words.items() if words.startswith("in c on a100, with new copies"))
    assert "workload train is forbidden in c" in in_c
    assert "dataset logs is forbidden in c" in in_c
    pinned = {option.place: option.forbidden for option in of(FREE, "view").options if option.change is not None}
    assert "workload view is pinned to c" in pinned["b"]


def test_a_replica_that_the_plan_deletes_is_no_new_copy() -> None:
    stored = FREE.datasets.stored.copy()
    stored[IMAGES, A] = True
    kept = FREE.with_columns({"datasets.stored": stored})
    assert "in a on h100, with today's copies of images" in [option.words for option in of(kept, "train").options]


def test_links_bring_data_or_forbid() -> None:
    by_words = {option.words: option.forbidden for option in of(PROBLEM, "train").options}
    assert not by_words["in a on h100, reading images remotely"]
    view = {option.words: option.forbidden for option in of(PROBLEM, "view").options}
    assert any("no link brings video" in words for words in view["in b on a100, reading video remotely"])


def test_rules_come_before_links() -> None:
    """A pin or ban stays whatever links there are; that no link brings the data is said after it."""
    view = {option.words: option.forbidden for option in of(PROBLEM, "view").options}
    far = view["in b on a100, reading video remotely"]
    assert far[0] == "workload view is pinned to c"
    assert "no link brings video" in far[-1]
    unlinked = replace(PROBLEM, links=Links(*(getattr(LINKS, field.name)[:0] for field in fields(LINKS))))
    train = {option.words: option.forbidden for option in of(unlinked, "train").options}
    near = next(limits for words, limits in train.items() if words.startswith("in c on a100, with new copies"))
    brings = [at for at, words in enumerate(near) if words.startswith("no link brings")]
    rules = [at for at, words in enumerate(near) if "is forbidden in c" in words]
    assert len(rules) == len(brings) == 2
    assert max(rules) < min(brings)


def test_the_change_is_the_verifiers() -> None:
    """train moved to a by hand: h100 demand moves, images are read remotely instead of logs being copied."""
    option = next(o for o in of(FREE, "train").options if o.words == "in a on h100, reading images remotely")
    far = next(a for a in alternatives(FREE, PLAN, TRAIN) if a.words == option.words)
    rows = np.flatnonzero(some(far.plan).run_workload == TRAIN)
    assert some(far.plan).run_region[rows].tolist() == [A]
    assert some(far.plan).run_type[rows].tolist() == [H100]
    assert some(far.plan).place[LOGS, A]
    assert not some(far.plan).place[IMAGES, A]
    before, after = mast_opt.verify(FREE, PLAN), mast_opt.verify(FREE, some(far.plan))
    assert option.change == pytest.approx(after.objective - before.objective)
    assert option.terms["remote"] == pytest.approx(after.terms["remote"] - before.terms["remote"])
    assert B in PLAN.run_region


def test_the_sentence_says_what_the_next_best_costs() -> None:
    assert "the next best" in of(FREE, "train").sentence
    assert "limits forbid every alternative" in of(FREE, "view").sentence


def test_terms_that_come_first_decide() -> None:
    """Where it runs today, train has not moved; but there it would read remotely."""
    order = ("remote", "overload", "copy", "moved_work")
    weights = {**FREE.objective.weights, "moved_work": 1000.0}
    weighted = replace(FREE, objective=replace(FREE.objective, weights=weights))
    staged = replace(weighted, objective=replace(weighted.objective, order=order))
    remote, here = (
        next(option for option in of(one, "train").options if option.words == "in a on h100, reading images remotely")
        for one in (weighted, staged)
    )
    assert remote.change is not None
    assert remote.change < 0
    assert (here.decides, here.change) == ("remote", here.terms["remote"])
    assert some(here.change) > 0
    options = [option for option in of(staged, "train").options if not option.forbidden]
    ranks = [[option.terms.get(name, 0.0) for name in order] for option in options]
    assert ranks == sorted(ranks)
    assert "less" in of(weighted, "train").sentence
    assert of(staged, "train").sentence.endswith("more in copy.")
    short = replace(staged, objective=replace(staged.objective, order=order[:1]))
    assert of(short, "train").sentence.endswith("the same.")


@examples(30)
@given(problem=problems(), data=st.data())
def test_every_alternative_moves_the_whole_workload_and_nothing_else(
    problem: DataPlacement, data: st.DataObject
) -> None:
    plan = data.draw(plans(problem))
    kind = kind_of(problem)
    for w in range(len(problem.workloads)):
        for one in alternatives(problem, plan, w):
            if one.plan is None:
                there = problem.regions.supply_mgpu[problem.regions.labels.index(one.place)]
                assert one.why_not in [f"{one.place} has no {problem.gpu_types[k]}" for k in np.flatnonzero(there == 0)]
                continue
            others = plan.run_workload != w
            kept = one.plan.run_workload != w
            assert np.array_equal(one.plan.run_region[kept], plan.run_region[others])
            assert np.array_equal(one.plan.run_share[kept], plan.run_share[others])
            assert (one.plan.run_workload[~kept] == w).all()
            assert one.plan.run_share[~kept].sum() == (0 if one.words == "left out" else SHARE)
            kind.verification.verify(problem, one.plan)


def test_unknown_names_and_broken_plans() -> None:
    with pytest.raises(mast_opt.UsageError, match="no workload or dataset called 'nobody'"):
        mast_opt.explain(PROBLEM, PLAN, ["nobody"])
    full = replace(PROBLEM, regions=replace(PROBLEM.regions, storage_mb=PROBLEM.regions.storage_mb // 4))
    assert mast_opt.explain(full, PLAN).status is None


@pytest.mark.parametrize(
    "given",
    [{"solver": "cbc"}, {"time_limit_s": 5.0}, {"prices": {"storage": 2.0}}, {"alternatives": 7}, {"threads": 2}],
)
def test_what_no_solve_would_use_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(mast_opt.UsageError, match="solves nothing"):
        mast_opt.explain(PROBLEM, PLAN, ["train"], **given)


def test_the_heaviest_are_asked_about() -> None:
    assert mast_opt.explain(PROBLEM, PLAN).reasons[0].name == "train"


def test_weighted_contributions_add_up_and_equal_options_are_one_row() -> None:
    answer = mast_opt.explain(PROBLEM, PLAN, ["train"])
    (one,) = answer.reasons
    assert any(option.parts for option in one.options)
    for option in one.options:
        if option.change is not None:
            assert option.change == pytest.approx(sum(option.parts.values()))
            assert all(PROBLEM.objective.weights[name] for name in option.parts)
    there = Option("in east on A100", "east", 1.0, {"peak": 1.0}, (), {"peak": 1.0})
    alike = replace(there, words="in west on A100", place="west")
    other = replace(there, words="in west on H100", place="west")
    assert grouped([there, alike, other]) == [(there, 1), (other, 0)]
