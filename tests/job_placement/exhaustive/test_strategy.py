"""Which strategy exhaustive+repair chooses, as a table."""

from __future__ import annotations

import pytest

from mast_opt.problems.job_placement.exhaustive.params import ExhaustiveRepairParams
from mast_opt.problems.job_placement.exhaustive.sub_mip import ExhaustiveRepairStrategy, choose_strategy
from mast_opt.problems.search.interface import StoppingCriteria
from mast_opt.problems.search.sub_mip import NO_NODE_LIMIT

ROUNDS, CLOCK = StoppingCriteria(iterations=5), StoppingCriteria(time_limit_s=60.0)


@pytest.mark.parametrize(
    ("pairs", "cells", "stop", "given", "chosen"),
    [
        (20_000, None, ROUNDS, {}, (True, True, True, False, 300, 0.0)),
        (20_001, None, ROUNDS, {}, (False, False, False, False, 300, 0.0)),
        (50_000, None, CLOCK, {}, (True, True, True, False, NO_NODE_LIMIT, 2.0)),
        (50_001, None, CLOCK, {}, (True, False, False, False, NO_NODE_LIMIT, 2.0)),
        (200_001, None, CLOCK, {}, (False, False, False, False, NO_NODE_LIMIT, 2.0)),
        (200_001, None, CLOCK, {"sub_mip_columns": 300_000}, (True, False, False, False, NO_NODE_LIMIT, 2.0)),
        (1, None, ROUNDS, {"sub_mip.node_limit": 7}, (True, True, True, False, 7, 0.0)),
        (1, None, ROUNDS, {"whole_share": 0.0}, (True, False, True, False, 300, 0.0)),
        (1, 200_000, ROUNDS, {}, (True, True, True, True, 300, 0.0)),
        (1, 200_001, ROUNDS, {}, (True, True, True, False, 300, 0.0)),
        (1, None, CLOCK, {"sub_mip.node_limit": 7, "sub_mip.time_limit_s": 9.0}, (True, True, True, False, 7, 9.0)),
    ],
)
def test_the_strategy_is_that_of_the_table(
    pairs: int,
    cells: int | None,
    stop: StoppingCriteria,
    given: dict[str, object],
    chosen: tuple[bool, bool, bool, bool, int, float],
) -> None:
    assert choose_strategy(pairs, cells, stop, ExhaustiveRepairParams.of(given)) == ExhaustiveRepairStrategy(*chosen)
