"""Which strategy exhaustive+repair chooses, as a table."""

from __future__ import annotations

import pytest

from mast_opt.job_placement.exhaustive.params import ExhaustiveRepairParams
from mast_opt.job_placement.exhaustive.strategy import ExhaustiveRepairStrategy, choose_strategy
from mast_opt.search.interface import StoppingCriteria
from mast_opt.search.sub_mip import NO_NODE_LIMIT

ROUNDS, CLOCK = StoppingCriteria(iterations=5), StoppingCriteria(time_limit_s=60.0)


@pytest.mark.parametrize(
    ("pairs", "stop", "given", "chosen"),
    [
        (20_000, ROUNDS, {}, (True, True, 300, 0.0)),
        (20_001, ROUNDS, {}, (False, False, 300, 0.0)),
        (50_000, CLOCK, {}, (True, True, NO_NODE_LIMIT, 2.0)),
        (50_001, CLOCK, {}, (True, False, NO_NODE_LIMIT, 2.0)),
        (200_001, CLOCK, {}, (False, False, NO_NODE_LIMIT, 2.0)),
        (200_001, CLOCK, {"sub_mip_columns": 300_000}, (True, False, NO_NODE_LIMIT, 2.0)),
        (1, ROUNDS, {"sub_mip.node_limit": 7}, (True, True, 7, 0.0)),
        (1, ROUNDS, {"whole_share": 0.0}, (True, False, 300, 0.0)),
        (1, CLOCK, {"sub_mip.node_limit": 7, "sub_mip.time_limit_s": 9.0}, (True, True, 7, 9.0)),
    ],
)
def test_the_strategy_is_that_of_the_table(
    pairs: int, stop: StoppingCriteria, given: dict[str, object], chosen: tuple[bool, bool, int, float]
) -> None:
    assert choose_strategy(pairs, stop, ExhaustiveRepairParams.of(given)) == ExhaustiveRepairStrategy(*chosen)
