"""Which algorithms tetris runs: one line a case, and the case differs from an ordinary one in what is named."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

import mast_opt
from mast_opt.problems.data_placement.tetris.params import TetrisParams
from mast_opt.problems.data_placement.tetris.stage_objective import StageObjective
from mast_opt.problems.data_placement.tetris.strategy import (
    Budget,
    Features,
    Finish,
    Search,
    TetrisStrategy,
    TreeCuts,
    choose_strategy,
)
from tests.narrowing import some

ORDINARY = Features(
    workloads=1_000,
    regions=10,
    read_cells=30_000,
    link_cells=None,
    option_cells=10_000,
    gang_share=0.05,
    remote_reads=True,
    splittable=False,
    replicas_priced=True,
    one_copy=False,
    gpus=True,
    start=False,
)
WEIGHTS = {"peak": 1.0, "overload": 10.0, "remote": 5.0, "copy": 0.5, "storage": 0.1}
WHOLE = StageObjective(WEIGHTS, {})
PEAK = StageObjective(dict.fromkeys(WEIGHTS, 0.0) | {"peak": 1.0}, {})
LATER = StageObjective(dict.fromkeys(WEIGHTS, 0.0) | {"peak": 1e3, "remote": 1.0}, {"peak": 1.0})
SECOND = StageObjective(dict.fromkeys(WEIGHTS, 0.0) | {"overload": 1e3, "peak": 1.0}, {"overload": 1.0})
MINUTE = Budget(60.0, counted=False, threads=2)
PARAMS = TetrisParams()

MULTISTART, PARALLEL, GIBBS, MULTILEVEL = Search.MULTISTART, Search.PARALLEL, Search.GIBBS, Search.MULTILEVEL
SHARES, WORKLOADS, NEIGHBOURS, FULL = Finish.SHARES, Finish.WORKLOADS, Finish.NEIGHBOURHOODS, Finish.WHOLE
NEVER, SEARCH, SUB_MIPS = TreeCuts.NEVER, TreeCuts.WITH_SEARCH, TreeCuts.WITH_SUB_MIPS

GRAPH = {"one_copy": True, "gpus": False}

CASES: dict[str, tuple[dict[str, Any], StageObjective, tuple[Any, ...]]] = {
    "ordinary": ({}, WHOLE, (PARALLEL, SHARES, SEARCH, 1.0)),
    "500 workloads": ({"workloads": 500}, WHOLE, (MULTISTART, SHARES, SEARCH, 1.0)),
    "501 workloads": ({"workloads": 501}, WHOLE, (PARALLEL, SHARES, SEARCH, 1.0)),
    "few reads": ({"read_cells": 20_000}, WHOLE, (PARALLEL, NEIGHBOURS, SUB_MIPS, 1.0)),
    "few reads, 500 workloads": (
        {"workloads": 500, "read_cells": 20_000},
        WHOLE,
        (MULTISTART, NEIGHBOURS, SUB_MIPS, 1.0),
    ),
    "small, with a start": ({"workloads": 500, "start": True}, WHOLE, (PARALLEL, SHARES, SEARCH, 0.05)),
    "2,000 workloads": ({"workloads": 2_000}, WHOLE, (GIBBS, SHARES, SEARCH, 0.1)),
    "large, with a start": ({"workloads": 2_000, "start": True}, WHOLE, (PARALLEL, SHARES, SEARCH, 0.05)),
    "large, large gangs": ({"workloads": 2_000, "gang_share": 0.11}, WHOLE, (PARALLEL, SHARES, SEARCH, 1.0)),
    "large, a later term": ({"workloads": 2_000}, LATER, (PARALLEL, SHARES, NEVER, 0.3)),
    "no remote reads": ({"remote_reads": False}, WHOLE, (PARALLEL, SHARES, SEARCH, 4.0)),
    "no remote reads, small": ({"remote_reads": False, "read_cells": 600}, WHOLE, (PARALLEL, FULL, SUB_MIPS, 4.0)),
    "no remote reads, beyond": ({"remote_reads": False, "read_cells": 601}, WHOLE, (PARALLEL, SHARES, SEARCH, 4.0)),
    "no remote reads, split work": (
        {"remote_reads": False, "read_cells": 600, "splittable": True},
        WHOLE,
        (PARALLEL, SHARES, SEARCH, 4.0),
    ),
    "links": ({"link_cells": 1_000_000}, WHOLE, (PARALLEL, NEIGHBOURS, SUB_MIPS, 1.0)),
    "many links": ({"link_cells": 1_000_001}, WHOLE, (PARALLEL, SHARES, SEARCH, 1.0)),
    "GPU terms alone": ({}, PEAK, (PARALLEL, WORKLOADS, NEVER, 16.0)),
    "GPU terms alone, too large": ({"option_cells": 20_001}, PEAK, (PARALLEL, SHARES, NEVER, 16.0)),
    "GPU terms alone, no remote reads": ({"remote_reads": False}, PEAK, (PARALLEL, SHARES, NEVER, 16.0)),
    "GPU terms alone, links": ({"link_cells": 9}, PEAK, (PARALLEL, NEIGHBOURS, NEVER, 16.0)),
    "a second GPU term": ({}, SECOND, (PARALLEL, WORKLOADS, NEVER, 1.0)),
    "a later term": ({"read_cells": 20_000}, LATER, (PARALLEL, NEIGHBOURS, NEVER, 0.3)),
    "a later term, small": ({"read_cells": 2_500}, LATER, (PARALLEL, FULL, NEVER, 0.3)),
    "a later term, too large": ({"read_cells": 20_001}, LATER, (PARALLEL, SHARES, NEVER, 0.3)),
    "cells beyond patience": ({"read_cells": 120_000}, WHOLE, (PARALLEL, SHARES, NEVER, 1.0)),
    "one copy, no GPUs": (GRAPH, WHOLE, (MULTILEVEL, SHARES, SEARCH, 0.01)),
    "one copy, no GPUs, large": ({**GRAPH, "workloads": 9_000}, WHOLE, (MULTILEVEL, SHARES, SEARCH, 0.01)),
    "one copy, no GPUs, 500 workloads": ({**GRAPH, "workloads": 500}, WHOLE, (MULTILEVEL, SHARES, SEARCH, 0.01)),
    "one copy, GPUs": ({"one_copy": True}, WHOLE, (PARALLEL, SHARES, SEARCH, 1.0)),
    "copies, no GPUs": ({"gpus": False}, WHOLE, (PARALLEL, SHARES, SEARCH, 1.0)),
    "one copy, no GPUs, a start": ({**GRAPH, "start": True}, WHOLE, (PARALLEL, SHARES, SEARCH, 0.05)),
    "one copy, no GPUs, links": ({**GRAPH, "link_cells": 9}, WHOLE, (PARALLEL, NEIGHBOURS, SUB_MIPS, 1.0)),
    "one copy, no GPUs, a later term": (GRAPH, LATER, (PARALLEL, SHARES, NEVER, 0.3)),
    "one copy, no GPUs, no remote reads": ({**GRAPH, "remote_reads": False}, WHOLE, (PARALLEL, SHARES, SEARCH, 4.0)),
    "one copy, no GPUs, one region": ({**GRAPH, "regions": 1}, WHOLE, (PARALLEL, SHARES, SEARCH, 1.0)),
    "a graph too large": ({**GRAPH, "read_cells": 2_000_001}, WHOLE, (PARALLEL, SHARES, NEVER, 1.0)),
    "replicas are free": ({"replicas_priced": False}, WHOLE, (PARALLEL, SHARES, NEVER, 1.0)),
}


def strategy(
    features: Features = ORDINARY, objective: StageObjective = WHOLE, budget: Budget = MINUTE
) -> TetrisStrategy:
    return choose_strategy(features, objective, budget, PARAMS)


@pytest.mark.parametrize("case", CASES)
def test_algorithms_of(case: str) -> None:
    changes, objective, expected = CASES[case]
    found = strategy(replace(ORDINARY, **changes), objective)
    assert (found.search, found.finish, found.tree_cuts, found.hot) == expected


def test_time_is_shared_between_search_and_sub_mips() -> None:
    usable = 60.0 * 0.96
    few = replace(ORDINARY, read_cells=0)
    assert strategy(replace(few, read_cells=20_001)).search_s == pytest.approx(usable, rel=0.01)
    for workloads in (500, 1_000):
        assert strategy(replace(few, workloads=workloads)).search_share == 0.8
    assert strategy(replace(few, link_cells=9)).search_s == pytest.approx(0.3 * usable)
    assert strategy(few, LATER).search_s == pytest.approx(0.2 * usable)
    assert strategy(replace(few, remote_reads=False)).search_s == pytest.approx(0.3 * usable)
    for cells, share in ((0, 0.1), (7_000, 0.5), (20_000, 0.6)):
        assert strategy(replace(few, option_cells=cells), PEAK).search_s == pytest.approx(share * usable)
    assert strategy(budget=Budget(math.inf, False, 2)).search_s == math.inf
    assert strategy(replace(few, read_cells=10**9)).search_s == 30.0  # handing over takes half the time at most


def test_where_rounds_are_counted_no_sub_mip_has_a_clock() -> None:
    counted = Budget(math.inf, counted=True, threads=2)
    for features, objective in ((replace(ORDINARY, link_cells=9), WHOLE), (ORDINARY, PEAK), (ORDINARY, LATER)):
        assert strategy(features, objective, counted).finish is SHARES
    assert strategy(replace(ORDINARY, read_cells=20_000), budget=counted).tree_cuts is SEARCH
    assert strategy(replace(ORDINARY, read_cells=20_001), budget=counted).tree_cuts is NEVER


def test_chains_are_threads_or_pairs_of_regions() -> None:
    many = Budget(60.0, False, 1_000)
    assert strategy(budget=many).chains == 5
    assert strategy(replace(ORDINARY, regions=1), budget=many).chains == 1
    assert strategy(replace(ORDINARY, workloads=9), budget=Budget(60.0, False, 7)).chains == 7
    assert strategy(replace(ORDINARY, workloads=9), budget=many).chains == 128


def test_features_are_those_of_the_instance() -> None:
    problem = mast_opt.generate("data-placement", "links", seed=1, datasets=6, workloads=9, regions=3)
    features, reads = Features.of(problem, None), len(problem.reads)
    assert (features.workloads, features.regions, features.read_cells) == (9, 3, 3 * reads)
    assert features.link_cells == reads * len(some(problem.links).source)
    assert features.option_cells == problem.option_regions.sum()
    assert (features.start, features.one_copy, features.gpus) == (False, False, True)


def test_a_plan_records_the_strategy() -> None:
    problem = mast_opt.generate("data-placement", "standard", seed=1, datasets=6, workloads=9, regions=3)
    solution = mast_opt.solve(problem, "tetris", iterations=1, threads=1)
    expected = choose_strategy(Features.of(problem, None), WHOLE, Budget(math.inf, True, 1), PARAMS).facts
    assert solution.strategy == expected
    assert "search_s" not in expected
