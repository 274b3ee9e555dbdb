"""Strategy of ras: a table of what runs where."""

from __future__ import annotations

from typing import Any

import pytest

from mast_opt.problems.kind.header import Objective
from mast_opt.problems.search.interface import StoppingCriteria
from mast_opt.problems.server_assignment.ras.params import RasParams
from mast_opt.problems.server_assignment.ras.ras_search import RasStrategy, choose_strategy

WEIGHTED, ORDERED = (
    Objective({"use": 1.0, "buffer": 1.0}),
    Objective({"use": 1.0, "buffer": 1.0}, order=("buffer", "use")),
)
CLOCK, ROUNDS = StoppingCriteria(time_limit_s=60), StoppingCriteria(iterations=9)


@pytest.mark.parametrize(
    ("pairs", "objective", "stop", "given", "chosen"),
    [
        (20_000, WEIGHTED, CLOCK, {}, RasStrategy((), True, True, "by time", 5)),
        (20_001, WEIGHTED, CLOCK, {}, RasStrategy((), False, True, "by time", 5)),
        (400_000, WEIGHTED, ROUNDS, {}, RasStrategy((), False, True, "every round", 5)),
        (400_001, WEIGHTED, ROUNDS, {}, RasStrategy((), False, False, "every round", 5)),
        (10, ORDERED, CLOCK, {}, RasStrategy(("buffer", "use"), True, True, "by time", 5)),
        (10, WEIGHTED, CLOCK, {"lp_pairs": 9}, RasStrategy((), False, True, "by time", 5)),
        (10, WEIGHTED, CLOCK, {"sub_mip_most_pairs": 9}, RasStrategy((), True, False, "by time", 5)),
        (10, WEIGHTED, CLOCK, {"rack_reservations": 0}, RasStrategy((), True, True, "by time", 0)),
    ],
)
def test_the_table(
    pairs: int, objective: Objective, stop: StoppingCriteria, given: dict[str, Any], chosen: RasStrategy
) -> None:
    assert choose_strategy(pairs, objective, stop, RasParams.of(given)) == chosen


def test_it_reads_as_a_line() -> None:
    said = str(RasStrategy((), True, False, "by time", 5))
    assert said == "stages = none, linear_relaxation = true, sub_mips = false, integer_bound = by time, racks = 5"
